//! Operators that have no bundle: both executors run them from the program.

use hadal_ir::program::{Ap, Op, Program};

use super::{Core, activation, block_transpose, copy, elementwise, reduce, select};
use crate::error::{Fault, OperandFault};
use crate::memory::View;

/// Executes an operator that has no encoding.
pub(crate) fn execute(core: &mut Core<'_>, program: &Program, op: &Op) -> Result<(), OperandFault> {
    let view = |core: &Core<'_>, name, ap: &Ap| {
        if ap.index.is_some() {
            return Err(Fault::Unsupported {
                what: format!("a gathered operand of {}", op.name()),
                why: "only the operands of a dense matmul are gathered",
            }
            .on(name));
        }
        View::of(core.machine, program, name, ap)
    };
    core.stats.host += 1;
    match op {
        Op::DmaCopy { dst, src } => {
            let (dst, src) = (view(core, "dst", dst)?, view(core, "src", src)?);
            copy::dma(core, &dst, &src)
        }
        Op::TensorCopy { dst, src } => {
            let (dst, src) = (view(core, "dst", dst)?, view(core, "src", src)?);
            copy::tensor(core, &dst, &src)
        }
        Op::Memset { dst, value } => {
            let dst = view(core, "dst", dst)?;
            copy::memset(core, &dst, *value)
        }
        Op::TensorTensor { dst, src0, src1, op } => {
            let dst = view(core, "dst", dst)?;
            let (src0, src1) = (view(core, "src0", src0)?, view(core, "src1", src1)?);
            elementwise::tensor_tensor(core, &dst, &src0, &src1, *op)
        }
        Op::TensorScalar { dst, src, op0, operand0, second } => {
            let (dst, src) = (view(core, "dst", dst)?, view(core, "src", src)?);
            elementwise::tensor_scalar(core, &dst, &src, (*op0, *operand0), *second)
        }
        Op::Activation { dst, src, func, scale, bias, accumulate } => {
            let (dst, src) = (view(core, "dst", dst)?, view(core, "src", src)?);
            activation::activation(core, &dst, &src, *func, (*scale, *bias), *accumulate)
        }
        Op::TensorReduce { dst, src, op, axes } => {
            let (dst, src) = (view(core, "dst", dst)?, view(core, "src", src)?);
            reduce::reduce(core, &dst, &src, *op, *axes)
        }
        Op::ReadActivationAccumulator { dst } => {
            let dst = view(core, "dst", dst)?;
            activation::read_accumulator(core, &dst)
        }
        Op::Transpose { dst, src } => {
            let (dst, src) = (view(core, "dst", dst)?, view(core, "src", src)?);
            block_transpose::transpose(core, &dst, &src)
        }
        Op::AffineSelect(a) => {
            let (dst, src) = (view(core, "dst", &a.dst)?, view(core, "src", &a.src)?);
            select::affine_select(core, &dst, &src, a)
        }
        Op::Matmult(_) | Op::MatmultSparse(_) | Op::MatmultMx(_) | Op::QuantizeMx { .. } => {
            Err(Fault::Unsupported {
                what: format!("{} without its bundles", op.name()),
                why: "it has an encoding; the stream must hold its bundles",
            }
            .into())
        }
    }
}
