//! The subcommands, one a file.

mod arrays;
pub(crate) mod asm;
pub(crate) mod cast;
pub(crate) mod compile;
pub(crate) mod dis;
pub(crate) mod gemm;
pub(crate) mod isa;
mod load;
pub(crate) mod mx;
pub(crate) mod probe;
pub(crate) mod run;
pub(crate) mod verify;
