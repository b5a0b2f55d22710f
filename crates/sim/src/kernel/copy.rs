//! DmaCopy, TensorCopy and Memset.

use hadal_ir::program::Immediate;
use hadal_num::Dtype;

use super::elementwise::same_elements;
use super::{Core, narrow};
use crate::error::{Fault, OperandFault};
use crate::memory::View;

/// Copies bytes; both sides have containers of one size.
pub(crate) fn dma(core: &mut Core<'_>, dst: &View, src: &View) -> Result<(), OperandFault> {
    same_elements(dst, src)?;
    if dst.dtype.bytes() != src.dtype.bytes() {
        let got = format!("containers of {} bytes", src.dtype.bytes());
        let want = format!("{} as the destination has", dst.dtype.bytes());
        return Err(Fault::Shape { what: "DMA source", got, want }.on(src.operand));
    }
    if core.machine.copy(dst, src, core.options.uninit)? {
        return Ok(());
    }
    let bytes = core.read(src)?;
    core.machine.scatter(dst, &bytes)
}

/// Copies elements: the same bits when the types are equal, else through float32 (64-bit integers between
/// each other as integers).
pub(crate) fn tensor(core: &mut Core<'_>, dst: &View, src: &View) -> Result<(), OperandFault> {
    same_elements(dst, src)?;
    if dst.dtype == src.dtype {
        if core.machine.copy(dst, src, core.options.uninit)? {
            return Ok(());
        }
        let bytes = core.read(src)?;
        return core.machine.scatter(dst, &bytes);
    }
    if dst.dtype.lanes() != src.dtype.lanes() {
        let text = "a copy keeps the number of lanes of a container";
        return Err(Fault::Type { text, dtype: src.dtype }.on(src.operand));
    }
    let values = core.read_f32(src)?;
    core.write_f32(dst, &values)
}

/// Containers of one value.
///
/// An integer keeps all its bits in an integer type, saturating at the type's limits; everything else goes
/// through float32.
pub(crate) fn constant(core: &Core<'_>, dtype: Dtype, value: Immediate) -> Result<Vec<u8>, OperandFault> {
    if let (Immediate::Int(i), Some((lo, hi))) = (value, limits(dtype)) {
        let clamped = i128::from(i).clamp(lo, hi);
        return Ok(clamped.to_le_bytes().into_iter().take(dtype.bytes()).collect());
    }
    narrow(dtype, &vec![value.as_f32(); dtype.lanes()], core.overflow(dtype))
}

/// Least and greatest value of an integer type.
fn limits(dtype: Dtype) -> Option<(i128, i128)> {
    if !dtype.is_integer() {
        return None;
    }
    let bits = 8 * dtype.bytes() as u32;
    Some(if super::is_signed(dtype) {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    })
}

/// Fills an operand.
pub(crate) fn memset(core: &mut Core<'_>, dst: &View, value: Immediate) -> Result<(), OperandFault> {
    core.machine.check(dst)?;
    let one = constant(core, dst.dtype, value)?;
    let count = usize::try_from(dst.elements()).unwrap_or(usize::MAX);
    core.machine.scatter(dst, &one.repeat(count))
}
