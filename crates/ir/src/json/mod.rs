//! The interchange form of programs: `.bir.json`.
//!
//! [`parse`] turns text into a [`Module`] and refuses, with the place of the offending value, whatever it
//! does not know: keys, names, types and numbers outside the limits below. It judges form only; whether a
//! program fits a target is for the verifier. [`write()`] emits the same form.
//!
//! # The form
//!
//! The top object holds `"format": "hadal-bir"`, `"version": 1`, optionally `name`, and either one program
//! (`attrs`, `memlocs`, `instructions`) or `cores`, a list of such programs, core 0 first.
//!
//! A location has `name`, `space` and
//! * `SB`: `partitions`, `bytes` (in each partition), optional `partition` and `offset`;
//! * `PSUM`: the same and an optional `bank`; `offset` is inside the bank;
//! * `DRAM`: `dtype`, `shape`, optional `role` (`input`, `output`, `internal`).
//!
//! An instruction has `op`, `name`, an optional `engine`, and the keys of its operator, which are the fields
//! of [`Op`](crate::program::Op). The key `op` being taken, the ALU operation of TensorTensor and
//! TensorReduce is `alu`, and `axis` of TensorReduce counts the innermost free dimensions reduced.
//! An operand is `{"loc", "dtype", "pattern": [[step, num], ...]}` with optional `partition`, `offset` (bytes)
//! and `index`; the first pair counts partitions. A floating-point scalar that is not finite is one of the
//! strings `"inf"`, `"-inf"` and `"nan"`.

mod error;
mod instr;
mod node;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use error::{JsonError, JsonErrorKind};
pub use write::write;

use crate::program::Module;

/// Limits on what a document may hold. They bound memory and time, not what a target can do.
pub mod limits {
    /// Largest count of one `[step, num]` pair.
    pub const MAX_COUNT: i64 = 1 << 24;
    /// Largest magnitude of a step.
    pub const MAX_STEP: i64 = 1 << 31;
    /// Most pairs of a pattern: the partition pair and four free dimensions.
    pub const MAX_PAIRS: usize = 5;
    /// Most partitions of a location, and the largest partition number.
    pub const MAX_PARTITIONS: i64 = 1024;
    /// Most bytes a location takes in one partition.
    pub const MAX_PARTITION_BYTES: i64 = 1 << 20;
    /// Largest bank number.
    pub const MAX_BANK: i64 = 64;
    /// Most bytes of a DRAM tensor.
    pub const MAX_DRAM_BYTES: u64 = 1 << 32;
    /// Most dimensions of a DRAM tensor.
    pub const MAX_DIMS: usize = 16;
    /// Most instructions, and most locations, of one core.
    pub const MAX_ITEMS: usize = 1_000_000;
    /// Most cores of a module.
    pub const MAX_CORES: usize = 64;
    /// Most bytes of a name.
    pub const MAX_NAME: usize = 255;
}

/// Reads a module from `.bir.json` text; `file` is the name that positions and messages give.
///
/// # Errors
///
/// The first thing wrong with the document, in document order as far as the form allows.
pub fn parse(text: &str, file: &str) -> Result<Module, JsonError> {
    read::module(text, file)
}
