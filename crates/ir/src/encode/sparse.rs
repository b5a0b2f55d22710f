//! The structured-sparse matmul: LoadTagsSparse, LoadStationary, MatmultSparse.

use hadal_isa::{
    Inst, LoadStationary, LoadTagsSparse, MatmultSparse, PerfMode, PerfVariant, col_group, operand_tag,
    row_group, sparse_col_grp,
};
use hadal_num::Dtype;

use crate::geom;
use crate::program::{self, Ap, Instr, PARTITIONS, Pair, Program};
use crate::verify::LowerOptions;

use super::cache::WeightCache;
use super::dense::byte;
use super::stream::{Side, Stream};
use super::{EncodeError, operand};

/// Byte 2D of LoadTagsSparse.
const TAGS_AUX: u8 = 0x0F;

/// Emits one sparse matmul: tags, then load and matmul; for float32 the low pass, then the high one.
pub(super) fn matmul(
    p: &Program,
    at: (usize, &Instr),
    mm: &program::MatmultSparse,
    o: &LowerOptions,
    cache: &mut WeightCache,
    s: &mut Stream,
) -> Result<(), EncodeError> {
    let (index, instr) = at;
    let fail = |operand: &'static str, what: String| EncodeError { instr: instr.name.clone(), operand, what };
    let tag = |operand: &'static str, d: Dtype| {
        operand_tag(d, o.target.generation).map_err(|e| fail(operand, e.to_string()))
    };
    let start = |ap: &Ap| p.loc(ap.loc).and_then(|l| geom::start_partition(ap, l)).unwrap_or(0);
    let (row, col) = (start(&mm.weights), start(&mm.out));
    let rows = byte(instr, "weights", mm.weights.partitions())?;
    let cols = byte(instr, "weights", mm.weights.free_elements())?;
    let density = row_group(row, PARTITIONS / mm.compress_ratio.max(1));
    let force = mm.ifmap.dtype == Dtype::Float32r;
    let columns = col_group(col, u32::from(cols), force);
    let tags = LoadTagsSparse {
        tags: operand::pattern(p, instr, "tags", &mm.tags)?,
        tags_tag: tag("tags", mm.tags.dtype)?,
        col_grp: sparse_col_grp(density)
            .ok_or_else(|| fail("tags", format!("invalid structured-sparsity row group {density:02X}")))?,
        rows,
        active_cols: cols,
        row_group: density,
        aux: TAGS_AUX,
    };
    let load = LoadStationary {
        transpose: 0,
        weights: operand::pattern(p, instr, "weights", &mm.weights)?,
        weights_tag: tag("weights", mm.weights.dtype)?,
        perf_variant: match mm.weights.dtype {
            Dtype::Float32 => PerfVariant::FLOAT32,
            Dtype::Float32r => PerfVariant::PERF,
            _ => PerfVariant::DEFAULT,
        },
        perf_mode: PerfMode::None.code(),
        replication: [0; 2],
        rows,
        active_cols: cols,
        row_group: row_group(row, u32::from(rows)),
        col_group: columns,
        xbus: 0,
    };
    let mut moving = mm.ifmap.clone();
    if mm.compress_ratio == 1 && moving.free().first().is_none_or(|q| q.num != 1) {
        // The ratio dimension leads even when it counts one (D-40).
        moving.pattern.insert(1.min(moving.pattern.len()), Pair::new(1, 1));
    }
    let compute = |pass: u8| -> Result<MatmultSparse, EncodeError> {
        Ok(MatmultSparse {
            moving: operand::pattern(p, instr, "ifmap", &moving)?,
            moving_tag: tag("ifmap", mm.ifmap.dtype)?,
            dst_tag: tag("out", mm.out.dtype)?,
            rows,
            active_cols: cols,
            pass,
            row_group: density,
            col_group: columns,
            dst: operand::pattern(p, instr, "out", &mm.out)?,
        })
    };
    let side =
        Side { e4m3fn: [mm.weights.dtype, mm.ifmap.dtype].contains(&Dtype::Float8E4m3fn), ..Side::default() };
    cache.evict((load.row_group, load.col_group));
    s.bundle(index, Inst::from(tags).encode(o.target), side);
    let passes: &[u8] = if mm.ifmap.dtype == Dtype::Float32 { &[1, 2] } else { &[0] };
    for &pass in passes {
        s.bundle(index, Inst::from(load).encode(o.target), side);
        s.bundle(index, Inst::from(compute(pass)?).encode(o.target), side);
    }
    Ok(())
}
