//! The `.klr` front end: kernels as the KLR compiler writes them.
//!
//! [`File::parse`] reads a file. The reader walks a table of types ([`schema`]) over a bounded cursor, so
//! that every operator is recognised, and refuses what no accepted dialect has by name and byte offset
//! ([`KlrError`]). [`json::to_json`] shows the tree; [`ast`], [`ops`] and [`tensor`] are its typed view.
//! [`lower()`] makes a program of it and reports every statement that has no place in one.

mod access;
pub mod ast;
mod buffers;
mod cursor;
pub mod error;
mod fault;
pub mod json;
mod lower;
pub mod ops;
pub mod read;
pub mod schema;
mod statement;
pub mod tensor;
#[cfg(test)]
mod tests;
pub mod value;
mod view;

pub use ast::{Block, File, Kernel, Stmt};
pub use error::KlrError;
pub use lower::{KlrTranspose, lower};
pub use read::is_klr;
