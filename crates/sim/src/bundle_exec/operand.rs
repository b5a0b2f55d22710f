//! Descriptors of bundles resolved to memory.

use hadal_ir::encode::Side;
use hadal_ir::program::{Op, Program};
use hadal_isa::{Addr4, IndirectPattern, Pattern, PerfMode, Place};
use hadal_num::Dtype;

use crate::error::{Fault, OperandFault};
use crate::ir_exec::pair_first;
use crate::kernel::{Core, Moving, Tile, read_gathered};
use crate::memory::{Dim, Store, View};

/// Type of the positions of a gather when no program says: 16-bit unsigned (ASSUMED; the wire has no tag
/// for it).
const DEFAULT_INDEX: Dtype = Dtype::Uint16;

/// Tells apart the two FP8 formats that share tag 0E.
pub(crate) fn fp8(dtype: Dtype, side: Side) -> Dtype {
    match dtype {
        Dtype::Float8E4m3 | Dtype::Float8E4m3fn if side.e4m3fn => Dtype::Float8E4m3fn,
        Dtype::Float8E4m3 | Dtype::Float8E4m3fn => Dtype::Float8E4m3,
        other => other,
    }
}

/// Type of a gather's positions, from the instruction the bundle came from.
pub(crate) fn index_type(program: Option<&Program>, instr: usize, operand: &str) -> Dtype {
    let ap = match program.and_then(|p| p.instrs.get(instr)).map(|i| &i.op) {
        Some(Op::Matmult(m)) => Some(if operand == "ifmap" { &m.ifmap } else { &m.weights }),
        _ => None,
    };
    ap.and_then(|ap| ap.index.as_ref()).map_or(DEFAULT_INDEX, |i| i.dtype)
}

/// The memory a static start address names: (memory, partition, byte in the partition).
pub(crate) fn place(operand: &'static str, addr: Addr4) -> Result<(Store, i64, i64), OperandFault> {
    let wrong = |why| Err(Fault::Address { addr: addr.0, why }.on(operand));
    match addr.place() {
        Place::Sbuf { partition, offset } => Ok((Store::Sbuf, i64::from(partition), i64::from(offset))),
        Place::Psum { partition, bank, offset } => {
            let byte = bank * hadal_isa::PSUM_BANK_BYTES + offset;
            Ok((Store::Psum, i64::from(partition), i64::from(byte)))
        }
        Place::Register(_) => wrong("names a register, whose value no bundle here sets"),
        Place::Indirect(_) => wrong("is a gather, which this operand cannot be"),
        Place::Outside => wrong("names no memory"),
    }
}

/// A static pattern over `rows` partitions.
pub(crate) fn pattern<const N: usize>(
    operand: &'static str,
    p: &Pattern<N>,
    dtype: Dtype,
    rows: u8,
) -> Result<View, OperandFault> {
    let (store, partition, offset) = place(operand, p.start)?;
    if p.counts.contains(&0) || rows == 0 {
        let what = "a count of the operand";
        return Err(Fault::Shape { what, got: "0".into(), want: "at least 1".into() }.on(operand));
    }
    let dims = p.strides.iter().zip(p.counts);
    Ok(View {
        operand,
        store,
        dtype,
        partition,
        partition_step: 1,
        row_step: None,
        rows: u64::from(rows),
        offset,
        dims: dims.map(|(&step, num)| Dim { step: i64::from(step), num: u64::from(num) }).collect(),
    })
}

/// Reads the weights of a load, static or gathered.
pub(crate) fn weights(
    core: &Core<'_>,
    p: &Pattern<3>,
    dtype: Dtype,
    rows: u8,
    perf: PerfMode,
    index_type: Dtype,
) -> Result<Tile, OperandFault> {
    if let Some(gather) = p.as_indirect() {
        return gathered(core, ("weights", "weights index"), &gather, (dtype, index_type), rows);
    }
    let view = pattern("weights", p, dtype, rows)?;
    if perf == PerfMode::DoubleRow {
        pair_first(&view)?;
    }
    Tile::read(core, &view)
}

/// The moving operand, static or gathered.
pub(crate) fn moving<const N: usize>(
    core: &Core<'_>,
    p: &Pattern<N>,
    dtype: Dtype,
    rows: u8,
    index_type: Dtype,
) -> Result<Moving, OperandFault> {
    match p.as_indirect() {
        None => pattern("ifmap", p, dtype, rows).map(Moving::InPlace),
        Some(gather) => {
            gathered(core, ("ifmap", "ifmap index"), &gather, (dtype, index_type), rows).map(Moving::Gathered)
        }
    }
}

fn gathered<const N: usize>(
    core: &Core<'_>,
    (name, index_name): (&'static str, &'static str),
    gather: &IndirectPattern<N>,
    (dtype, index_type): (Dtype, Dtype),
    rows: u8,
) -> Result<Tile, OperandFault> {
    let base = Pattern { start: gather.data, strides: [1; N], counts: [1; N] };
    let base = pattern(name, &base, dtype, rows)?;
    let index = Pattern { start: gather.index, strides: [1; N], counts: gather.counts };
    let index = pattern(index_name, &index, index_type, rows)?;
    read_gathered(core, &base, 1, &index)
}
