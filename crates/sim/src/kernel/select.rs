//! AffineSelect: a value or a constant by the sign of an affine function of the position.

use std::cmp::Ordering;

use hadal_ir::program::{AffineSelect, AluOp};

use super::elementwise::same_elements;
use super::{Core, copy};
use crate::error::{Fault, OperandFault};
use crate::memory::View;

/// `dst = cmp(base + channel_multiplier * p + sum(i_k * step_k), 0) ? src : on_false`, `p` counting the
/// operand's partitions from 0 and `i_k` the given free dimensions, outermost first.
pub(crate) fn affine_select(
    core: &mut Core<'_>,
    dst: &View,
    src: &View,
    a: &AffineSelect,
) -> Result<(), OperandFault> {
    same_elements(dst, src)?;
    let holds: fn(Ordering) -> bool = match a.cmp {
        AluOp::IsEqual => Ordering::is_eq,
        AluOp::NotEqual => Ordering::is_ne,
        AluOp::IsGe => Ordering::is_ge,
        AluOp::IsGt => Ordering::is_gt,
        AluOp::IsLe => Ordering::is_le,
        AluOp::IsLt => Ordering::is_lt,
        other => {
            return Err(Fault::Unsupported {
                what: format!("AffineSelect with {}", other.name()),
                why: "it compares with is_equal, not_equal, is_ge, is_gt, is_le or is_lt",
            }
            .into());
        }
    };
    let per_row = a.pattern.iter().fold(1u64, |n, p| n.saturating_mul(p.num));
    if per_row != dst.per_row() {
        let got = format!("{per_row} positions");
        let want = format!("{} as the destination's rows have", dst.per_row());
        return Err(Fault::Shape { what: "pattern", got, want }.on(dst.operand));
    }
    if dst.dtype.bytes() != src.dtype.bytes() && dst.dtype.lanes() != src.dtype.lanes() {
        let text = "a select keeps the number of lanes of a container";
        return Err(Fault::Type { text, dtype: src.dtype }.on(src.operand));
    }
    core.machine.check(dst)?;
    let mut bytes = if dst.dtype == src.dtype {
        core.read(src)?
    } else {
        let values = core.read_f32(src)?;
        super::narrow(dst.dtype, &values, core.overflow(dst.dtype))?
    };
    let other = copy::constant(core, dst.dtype, a.on_false)?;
    if per_row == 0 {
        return Ok(());
    }
    // i128 holds every sum of products of these operands.
    let mut row = vec![0i128];
    for p in &a.pattern {
        row = row
            .iter()
            .flat_map(|s| (0..p.num).map(move |i| s + i128::from(p.step) * i128::from(i)))
            .collect();
    }
    let size = dst.dtype.bytes();
    for (p, line) in bytes.chunks_mut((row.len() * size).max(1)).enumerate() {
        let base = i128::from(a.base) + i128::from(a.channel_multiplier) * p as i128;
        for (offset, element) in row.iter().zip(line.chunks_mut(size)) {
            if !holds((base + offset).cmp(&0)) {
                element.copy_from_slice(&other);
            }
        }
    }
    core.machine.scatter(dst, &bytes)
}
