//! Validators: descriptors alone, in a role, and whole bundles.
//!
//! The descriptor validators take wire bytes and answer what the hardware's own decoders would:
//! [`tensor_start_addr_valid`], [`mem1d_valid`] to [`mem4d_valid`], [`mm_dst_mem3d_valid`],
//! [`mxmem1d_valid`], [`check_accumulation_flag`]. Each gives the first [`Fault`] it meets.
//! [`check`] runs them over a bundle, with the bundle's own rules, and gives every [`Violation`].

mod address;
mod bundle;
mod fault;
mod mx;
mod pattern;
mod rules;
mod violation;

pub use address::{Role, addr_aligned_dtype, tensor_start_addr_valid};
pub use bundle::check;
pub use fault::{Fault, FaultKind};
pub use mx::mxmem1d_valid;
pub use pattern::{m4d_not_in_psum, mem1d_valid, mem2d_valid, mem3d_valid, mem4d_valid, mm_dst_mem3d_valid};
pub use rules::RULES;
pub use violation::Violation;

/// True for the accumulate bytes that hardware accepts: 0, 1, 2, 3, 4 and 6 (CONFIRMED).
#[must_use]
pub fn check_accumulation_flag(byte: u8) -> bool {
    crate::ACCUMULATE_LEGAL.contains(&byte)
}
