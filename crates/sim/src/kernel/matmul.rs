//! One pass of a dense matmul, from prepared weights to PSUM.

use hadal_isa::Gen;
use hadal_num::Dtype;

use super::{Core, Moving, Part, Weights, Writeback, pe_transpose};
use crate::error::OperandFault;
use crate::fp32_pass::Pass;
use crate::memory::View;
use crate::options::Fp32Mode;

/// Room that one matmul leaves to the next.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(super) moving: Vec<u8>,
    pub(super) sums: Vec<f32>,
}

/// Streams a moving operand through the array.
pub(crate) fn issue(
    core: &mut Core<'_>,
    weights: &Weights,
    moving: &Moving,
    zero_point: u8,
    dst: &View,
    pass: Pass,
    how: Writeback,
) -> Result<(), OperandFault> {
    core.check_destination(dst, weights.columns, weights.moving_columns(moving)?)?;
    if weights.transpose && core.target.generation != Gen::Gen2 {
        if pass == Pass::Second {
            return Ok(());
        }
        let bits = pe_transpose::transpose(weights, &moving.tile(core)?)?;
        return core.write_transposed(dst, bits.bytes, bits.dtype, how);
    }
    let two_pass = weights.tile.dtype == Dtype::Float32 && core.options.fp32 == Fp32Mode::TwoPass;
    let (part, how) = match (pass, two_pass) {
        (Pass::First, false) => (Part::Whole, how),
        // Nothing is added, not even a zero, which would turn -0 into +0.
        (Pass::Second, false) => return Ok(()),
        (Pass::First, true) => (Part::High, how),
        (Pass::Second, true) => (Part::Low, Writeback::SECOND_PASS),
    };
    let Scratch { moving: mut room, mut sums } = std::mem::take(&mut core.scratch);
    let done = weights
        .product(core, part, moving, zero_point, &mut room, &mut sums)
        .and_then(|()| core.write_psum(dst, &sums, how));
    core.scratch = Scratch { moving: room, sums };
    done
}
