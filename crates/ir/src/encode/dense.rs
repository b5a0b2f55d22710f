//! The dense matmul: LoadStationary and Matmul.

use hadal_isa::{
    ACCUMULATE, Gen, Inst, LoadStationary, Matmul, Pattern, PerfVariant, START, STOP, col_group, operand_tag,
    row_group,
};
use hadal_num::Dtype;

use crate::geom;
use crate::program::{Ap, Instr, Matmult, Program};
use crate::verify::{self, LowerOptions};

use super::cache::{Group, Tile, WeightCache};
use super::stream::{Side, Stream};
use super::{EncodeError, operand};

/// Byte 2E of gen2 bundles (D-34).
const XBUS: u8 = 0x10;
/// Byte 0C of a transposing load on gen3 and later.
const TRANSPOSE_V3: u8 = 2;
/// Bit 7 of byte 13 on gen2.
const TRANSPOSE_V2: u8 = 1;

/// Emits one matmul: load (unless the array holds the tile) and matmul, twice for float32.
pub(super) fn emit(
    p: &Program,
    at: (usize, &Instr),
    mm: &Matmult,
    o: &LowerOptions,
    cache: &mut WeightCache,
    s: &mut Stream,
) -> Result<(), EncodeError> {
    let (index, instr) = at;
    let group = tile_group(p, mm).ok_or_else(|| EncodeError {
        instr: instr.name.clone(),
        operand: "weights",
        what: "its location has no address".to_owned(),
    })?;
    let side = Side {
        e4m3fn: [mm.weights.dtype, mm.ifmap.dtype].contains(&Dtype::Float8E4m3fn),
        zero_point_ifmap: mm.zero_point_ifmap.unwrap_or(0),
        zero_point_weights: mm.zero_point_weights.unwrap_or(0),
    };
    let weights: Pattern<3> = operand::pattern(p, instr, "weights", &mm.weights)?;
    let load = Inst::from(load_bundle(instr, mm, o, group, weights)?).encode(o.target);
    let flags = mm.flags.unwrap_or(0);
    if mm.ifmap.dtype == Dtype::Float32 {
        // Two passes, never cached: the first keeps START, the second STOP.
        for byte in [flags & !STOP, flags & !START | ACCUMULATE] {
            s.bundle(index, load, side);
            s.bundle(index, Inst::from(matmul_bundle(p, instr, mm, o, group, byte)?).encode(o.target), side);
        }
        cache.clear();
        return Ok(());
    }
    let tile = Tile {
        weights,
        partitions: mm.weights.partitions(),
        tag: tag(instr, "weights", &mm.weights, o)?,
        e4m3fn: side.e4m3fn,
        zero_point: side.zero_point_weights,
        perf_mode: mm.perf_mode,
        transpose: mm.is_transpose,
        replication: mm.replication,
        tile_size: mm.tile_size,
    };
    if !cache.hit(group, &tile) {
        s.bundle(index, load, side);
        cache.loaded(group, tile, operand::placed_area(p, &mm.weights));
    }
    s.bundle(index, Inst::from(matmul_bundle(p, instr, mm, o, group, flags)?).encode(o.target), side);
    Ok(())
}

/// Row and column group: from the tile position, or the operands' first partitions when unset (D-27);
/// the sizes are the operands'.
fn tile_group(p: &Program, mm: &Matmult) -> Option<Group> {
    let start = |ap: &Ap| p.loc(ap.loc).and_then(|l| geom::start_partition(ap, l));
    let [row, col] = match mm.tile_position {
        Some(t) => t,
        None => [start(&mm.weights)?, start(&mm.out)?],
    };
    let shape = verify::shape(mm);
    let force = mm.is_transpose || mm.background_transpose || mm.ifmap.dtype == Dtype::Float32r;
    let size = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Some((row_group(row, size(shape.k)), col_group(col, size(shape.m), force)))
}

fn tag(instr: &Instr, operand: &'static str, ap: &Ap, o: &LowerOptions) -> Result<u8, EncodeError> {
    operand_tag(ap.dtype, o.target.generation).map_err(|e| EncodeError {
        instr: instr.name.clone(),
        operand,
        what: e.to_string(),
    })
}

/// Byte 21: 80 for float32, 02 for float32r and any performance mode, else 00.
fn perf_variant(mm: &Matmult) -> u8 {
    match mm.ifmap.dtype {
        Dtype::Float32 => PerfVariant::FLOAT32,
        Dtype::Float32r => PerfVariant::PERF,
        _ if mm.perf_mode != hadal_isa::PerfMode::None => PerfVariant::PERF,
        _ => PerfVariant::DEFAULT,
    }
}

/// A count that the verifier bounded to one byte.
pub(super) fn byte(instr: &Instr, operand: &'static str, n: u64) -> Result<u8, EncodeError> {
    u8::try_from(n).map_err(|_| EncodeError {
        instr: instr.name.clone(),
        operand,
        what: format!("count {n} does not fit a byte"),
    })
}

fn load_bundle(
    instr: &Instr,
    mm: &Matmult,
    o: &LowerOptions,
    group: Group,
    weights: Pattern<3>,
) -> Result<LoadStationary, EncodeError> {
    let v2 = o.target.generation == Gen::Gen2;
    let transpose = if v2 { TRANSPOSE_V2 } else { TRANSPOSE_V3 };
    Ok(LoadStationary {
        transpose: if mm.is_transpose { transpose } else { 0 },
        weights,
        weights_tag: tag(instr, "weights", &mm.weights, o)?,
        perf_variant: perf_variant(mm),
        perf_mode: mm.perf_mode.code(),
        replication: if v2 { [mm.replication; 2] } else { [0; 2] },
        rows: byte(instr, "weights", mm.weights.partitions())?,
        active_cols: byte(instr, "weights", verify::shape(mm).m)?,
        row_group: group.0,
        col_group: group.1,
        xbus: if v2 { XBUS } else { 0 },
    })
}

fn matmul_bundle(
    p: &Program,
    instr: &Instr,
    mm: &Matmult,
    o: &LowerOptions,
    group: Group,
    accumulate: u8,
) -> Result<Matmul, EncodeError> {
    let v2 = o.target.generation == Gen::Gen2;
    Ok(Matmul {
        moving: operand::pattern(p, instr, "ifmap", &mm.ifmap)?,
        moving_tag: tag(instr, "ifmap", &mm.ifmap, o)?,
        perf_variant: perf_variant(mm),
        dst_tag: tag(instr, "out", &mm.out, o)?,
        replication: if v2 { [mm.replication; 2] } else { [0; 2] },
        rows: byte(instr, "ifmap", mm.ifmap.partitions())?,
        active_cols: byte(instr, "weights", verify::shape(mm).m)?,
        accumulate,
        row_group: group.0,
        col_group: group.1,
        xbus: if v2 { XBUS } else { 0 },
        psum_zero_region: mm.psum_zero_region.unwrap_or(0),
        dst: operand::pattern(p, instr, "out", &mm.out)?,
    })
}
