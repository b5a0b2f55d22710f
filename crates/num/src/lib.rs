//! Number formats of the Trainium tensor engine: exact casts, MX blocks and dot products.
//!
//! Everything here is a definition of bits. Each function has one right answer, given by the format's table and
//! the rules below, and every way of computing it (any instruction set, any number of threads, any shape)
//! returns that answer. Only speed is left open.
//!
//! - Arithmetic is float32. Narrow elements are widened first, exactly; results are narrowed last, in one
//!   rounding to nearest with ties to even ([`encode`], [`narrow`]). What lies beyond the largest finite value
//!   follows an explicit [`Overflow`] rule.
//! - A NaN that arithmetic makes is 7FC00000, whatever its operands were (D-63); casts keep a NaN's sign.
//! - A product of matrices adds in ascending order of the contraction index, every product rounded before it is
//!   added ([`matmul`]).
//! - MX blocks of 8 x 4 elements share a power of two, chosen by an explicit [`mx::ScaleRule`].
//!
//! Element types are [`Dtype`]s: what programs name and memory holds. A [`Format`] is how one code is read; the
//! two differ for the `x4` types, whose containers hold four codes. Which byte names a type in an instruction is
//! not known here.
//!
//! Functions on buffers check lengths and return [`NumError`]; nothing here panics on any input, and nothing
//! prints. Large buffers use the current rayon pool, and [`simd`] says how the instruction set is chosen.

mod codec;
mod definition;
mod dtype;
mod error;
mod format;
mod lane;
mod lane16;
pub mod matmul;
pub mod mx;
mod round;
pub mod simd;
mod slice;
mod wide;

pub use dtype::Dtype;
pub use error::NumError;
pub use format::{Format, Overflow, decode, encode, round_f32r};
pub use slice::{convert, narrow, widen};
pub use wide::{narrow_f64, round_to_odd};
