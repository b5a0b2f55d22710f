//! The 64-byte instruction bundles of the Trainium tensor engine: table, codec, text, checks.
//!
//! A program for the PE array is a sequence of [`Word`]s, one instruction each. This crate knows
//! bytes and names, never arithmetic: what a bundle computes is decided elsewhere.
//!
//! Every bundle is described once, in [`table`]: which bits hold which field, on which generation,
//! under which recovered name, with what confidence. The typed structs ([`LoadStationary`],
//! [`Matmul`], ...), the codec ([`Inst::encode`], [`decode`]), the assembly text ([`text`]), the
//! validators ([`valid`]), the field listing ([`fields()`]) and the manual ([`manual`]) all read
//! that one table, and the compiler refuses a table in which two fields overlap or a bit is
//! unaccounted for.
//!
//! Decoding is total: any 64 bytes become an [`Inst`] and a residue, and encode back to the same
//! 64 bytes.
//!
//! ```
//! use hadal_isa::{Addr4, LoadStationary, Pattern, Target, decode, row_group, text};
//!
//! let load = LoadStationary {
//!     weights: Pattern { start: Addr4::sbuf(0, 4608), strides: [1; 3], counts: [128, 1, 1] },
//!     weights_tag: 0x06,
//!     rows: 128,
//!     active_cols: 128,
//!     row_group: row_group(0, 128),
//!     col_group: 0x0F,
//!     ..LoadStationary::default()
//! };
//! let word = hadal_isa::Inst::from(load).encode(Target::TRN2);
//! assert_eq!(decode(&word, Target::TRN2).inst, load.into());
//! assert_eq!(
//!     text::print(&word, Target::TRN2),
//!     "LoadStationary weights=bfloat16@sbuf[0, 4608][1x128] rows=128 active_cols=128 row_group=0x0f col_group=0x0f",
//! );
//! ```

mod addr;
mod codes;
mod fields;
mod groups;
mod inst;
pub mod manual;
mod mx_pattern;
mod pattern;
pub mod properties;
pub mod table;
mod tag;
mod target;
pub mod text;
pub mod valid;
mod word;

pub use addr::{Addr4, PSUM_BANK_BYTES, PSUM_BANKS, Place};
pub use codes::{ACCUMULATE, ACCUMULATE_LEGAL, PerfMode, PerfVariant, START, STOP, UnknownPerfMode};
pub use fields::{FieldRow, fields};
pub use groups::{GROUPS_LEGAL, col_group, group_lanes, row_group, sparse_col_grp};
pub use inst::{Decoded, decode};
pub use mx_pattern::{MxIndirect, MxPattern};
pub use pattern::{IndirectPattern, Pattern};
pub use table::{
    Inst, LdWeightMx, LoadStationary, LoadTagsSparse, Matmul, MatmultMx, MatmultSparse, QuantizeMx,
};
pub use tag::{
    TagError, mx_tag, mx_tag_dtype, mx_tag_name, operand_dtype, operand_tag, tag, tag_bytes, tag_dtype,
    tag_name,
};
pub use target::{Gen, Target, TargetError};
pub use word::{Word, WordError, words_from_bytes, words_from_hex};
