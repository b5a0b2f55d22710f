//! Assembly text: one instruction a line, and back.
//!
//! ```text
//! .target trn2
//! LoadStationary weights=bfloat16@sbuf[0, 4608][1x128] rows=128 active_cols=128 row_group=0x0f col_group=0x0f
//! Matmul moving=bfloat16@sbuf[0, 512][1x512] dst=float32@psum[0, 1, 0][1x512] rows=128 ...  ; comment
//! .word 7f10000000...                                                                       // any 64 bytes
//! ```
//!
//! A line is a mnemonic (the bundle's name) and `key=value` pairs in any order; the keys are the
//! members of the typed structs. Pairs whose value is 0 are left out; operands are always given.
//!
//! - Operand: `type@place[stride x count ...]`. Dimensions are in wire order; trailing `1x1`
//!   dimensions are left out. The type is that of the operand's tag byte, or `tag:0xNN`.
//! - Place: `sbuf[partition, offset]`, `psum[partition, bank, offset]`, `reg[id]`, or the raw
//!   `addr[0xNNNNNNNN]`.
//! - Gather: `type@gather[data place, index place][count ...]`.
//! - MX operand: `type@mx[data place, scale place, scale partition][step x K]`; its gather form is
//!   `type@mxgather[indices place, data place, scale place, scale partition][step x K]`.
//! - Accumulate flags: `start`, `stop` and `accumulate` joined by `|`, or a number.
//! - `bytes{OO:VV ...}` sets bytes that no field covers, so that every word has a text.
//! - `.word` and 128 hex digits give a word as it is; `.target NAME` says what the listing is for.
//!
//! `float32r` sets the tag of float32 and, when `perf_variant` is not given, variant 02.

mod cursor;
mod error;
mod operand;
mod parse;
mod print;
mod profile;
mod write;

pub use error::{AsmError, AsmErrorKind};
pub use parse::{listing_target, parse, parse_listing};
pub use print::{print, print_into, print_listing};
pub use profile::{print_profile, print_profile_into};
pub(crate) use write::{push_dec, push_place};
