//! MX operators: LdWeightMx, MatmultMx, QuantizeMx.

use hadal_isa::{
    Addr4, Inst, LdWeightMx, MatmultMx, MxIndirect, MxPattern, QuantizeMx, mx_tag, operand_tag, row_group,
};

use crate::geom;
use crate::program::{self, Ap, Instr, Program};
use crate::verify::LowerOptions;

use super::cache::WeightCache;
use super::dense::byte;
use super::stream::{Side, Stream};
use super::{EncodeError, operand};

/// The MX column group: the whole axis.
const COLUMNS: u8 = 0x0F;

/// Emits one MX matmul: always a load, then the matmul.
pub(super) fn matmul(
    p: &Program,
    at: (usize, &Instr),
    mm: &program::MatmultMx,
    o: &LowerOptions,
    cache: &mut WeightCache,
    s: &mut Stream,
) -> Result<(), EncodeError> {
    let (index, instr) = at;
    let start = p.loc(mm.weights.loc).and_then(|l| geom::start_partition(&mm.weights, l)).unwrap_or(0);
    let row = mm.tile_position.map_or(start, |t| t[0]);
    let rows = byte(instr, "weights", mm.weights.partitions())?;
    let group = row_group(row, u32::from(rows));
    let load = LdWeightMx {
        weights: pattern(p, instr, "weights", &mm.weights, &mm.weights_scale)?,
        weights_tag: mx_tag(mm.weights.dtype),
        rows,
        active_cols: byte(instr, "weights", mm.weights.free_elements())?,
        row_group: group,
        col_group: COLUMNS,
    };
    let compute = MatmultMx {
        moving: pattern(p, instr, "ifmap", &mm.ifmap, &mm.ifmap_scale)?,
        moving_tag: mx_tag(mm.ifmap.dtype),
        rows,
        active_cols: load.active_cols,
        dst_tag: operand_tag(mm.out.dtype, o.target.generation).map_err(|e| EncodeError {
            instr: instr.name.clone(),
            operand: "out",
            what: e.to_string(),
        })?,
        accumulate: mm.accumulate_flags.unwrap_or(0),
        row_group: group,
        col_group: COLUMNS,
        psum_zero_region: mm.psum_zero_region.unwrap_or(0),
        dst: operand::pattern(p, instr, "out", &mm.out)?,
    };
    cache.evict((group, COLUMNS));
    s.bundle(index, Inst::from(load).encode(o.target), Side::default());
    s.bundle(index, Inst::from(compute).encode(o.target), Side::default());
    Ok(())
}

/// Emits one QuantizeMx.
pub(super) fn quantize(
    p: &Program,
    at: (usize, &Instr),
    (src, data, scale): (&Ap, &Ap, &Ap),
    o: &LowerOptions,
    s: &mut Stream,
) -> Result<(), EncodeError> {
    let (index, instr) = at;
    let q = QuantizeMx {
        saturate: u8::from(p.attrs.fp8_conv_config[0] == 0),
        src: operand::pattern(p, instr, "src", src)?,
        src_tag: mx_tag(src.dtype),
        src_partitions: byte(instr, "src", src.partitions())?,
        data_tag: mx_tag(data.dtype),
        out: pattern(p, instr, "data", data, scale)?,
    };
    s.bundle(index, Inst::from(q).encode(o.target), Side::default());
    Ok(())
}

/// Data and scale of an MX operand, and its positions when it is a gather.
fn pattern(
    p: &Program,
    instr: &Instr,
    name: &'static str,
    data: &Ap,
    scale: &Ap,
) -> Result<MxPattern, EncodeError> {
    let fail = |what: &str| EncodeError { instr: instr.name.clone(), operand: name, what: what.to_owned() };
    let start = operand::address(p, data).ok_or_else(|| fail("its location has no address"))?;
    let loc = p.loc(scale.loc).ok_or_else(|| fail("its scale has no location"))?;
    let (Some(partition), Some(offset)) = (geom::start_partition(scale, loc), geom::start_byte(scale, loc))
    else {
        return Err(fail("its scale has no address"));
    };
    let k = u16::try_from(data.free_elements().saturating_mul(4)).map_err(|_| fail("extent over 16 bits"))?;
    let step = if data.free().first().is_some_and(|q| q.step < 0) { 0xFF } else { 0x01 };
    let offset = u32::try_from(offset).map_err(|_| fail("scale offset over 32 bits"))?;
    let scale_partition = (partition % 32) as u8;
    let scale = Addr4::mx_scale(partition, offset);
    let Some(index) = data.index.as_deref() else {
        return Ok(MxPattern::new(start, scale, k, step, scale_partition));
    };
    let indices = operand::address(p, index).ok_or_else(|| fail("its positions have no address"))?;
    Ok(MxIndirect { indices, data: start, scale, k, step, scale_partition }.to_pattern())
}
