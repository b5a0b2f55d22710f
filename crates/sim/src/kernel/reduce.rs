//! TensorReduce: the innermost free dimensions folded into one value.

use hadal_ir::program::AluOp;

use super::{Core, alu};
use crate::error::{Fault, OperandFault};
use crate::memory::View;

/// A reduction that has an order-free meaning, as a float32 fold.
pub(crate) fn fold(op: AluOp) -> Result<alu::FloatOp, Fault> {
    match op {
        AluOp::Add => Ok(|a, b| a + b),
        AluOp::Mult => Ok(|a, b| a * b),
        AluOp::Max => Ok(alu::max),
        AluOp::Min => Ok(alu::min),
        other => Err(Fault::Unsupported {
            what: format!("reduction with {}", other.name()),
            why: "reductions are add, mult, max or min",
        }),
    }
}

/// Folds the innermost `axes` free dimensions in float32, element after element, starting with the first.
pub(crate) fn reduce(
    core: &mut Core<'_>,
    dst: &View,
    src: &View,
    op: AluOp,
    axes: u32,
) -> Result<(), OperandFault> {
    let f = fold(op)?;
    let inner = usize::try_from(axes).unwrap_or(usize::MAX);
    if inner == 0 || inner > src.dims.len() {
        let got = axes.to_string();
        let want = format!("1 to {}, the source's free dimensions", src.dims.len());
        return Err(Fault::Shape { what: "reduced axes", got, want }.on(src.operand));
    }
    let run = src.dims.iter().rev().take(inner).fold(1u64, |n, d| n.saturating_mul(d.num));
    if dst.elements().saturating_mul(run) != src.elements() {
        let got = format!("{} elements", dst.elements());
        let want = format!("{} / {run}", src.elements());
        return Err(Fault::Shape { what: "destination of a reduction", got, want }.on(dst.operand));
    }
    let values = core.read_f32(src)?;
    let run = usize::try_from(run).unwrap_or(usize::MAX).max(1);
    let out: Vec<f32> =
        values.chunks(run).map(|c| alu::settled(op, c.iter().copied().reduce(f).unwrap_or(0.0))).collect();
    core.write_f32(dst, &out)
}
