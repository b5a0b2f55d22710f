//! Why a product was not planned or not computed.

use std::io;

use hadal_ir::diag::Violation;
use hadal_ir::encode::EncodeError;
use hadal_isa::{Gen, Target};
use hadal_num::NumError;
use hadal_sim::{ExecError, Fault};
use thiserror::Error;

use crate::Format;

/// Why a product was not planned or not computed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GemmError {
    /// No format of that name.
    #[error("G-001: no format {name:?}; use {all}", all = names(Format::ALL))]
    UnknownFormat {
        /// The name given.
        name: String,
    },
    /// A format that the target's array does not take.
    #[error("G-002: {target} does not multiply {format}; it takes {valid}", valid = names(Format::of(*generation)))]
    FormatNotOnTarget {
        /// The format.
        format: Format,
        /// The target.
        target: Target,
        /// Its generation.
        generation: Gen,
    },
    /// An extent of zero, or one too large to address.
    #[error(
        "G-003: a product of {m} x {k} by {k} x {n} is {why}; M and N are from 1 to {limit}, K to {k_limit}, M x N to {outputs}: split it",
        limit = crate::LIMIT,
        k_limit = crate::K_LIMIT,
        outputs = crate::OUTPUTS
    )]
    Extent {
        /// Rows of the result.
        m: usize,
        /// Columns of the result.
        n: usize,
        /// Contraction extent.
        k: usize,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Shapes of the operands that do not belong together, or to the plan.
    #[error(
        "G-004: {what} has shape {got:?}, the product needs {want:?}; the columns of A are the rows of B"
    )]
    Shape {
        /// Which operand.
        what: &'static str,
        /// Its shape.
        got: [usize; 2],
        /// The shape it needs.
        want: [usize; 2],
    },
    /// The planned program broke a rule of the target.
    #[error("G-005: the planned program breaks {} of {target}, first: {}; report it with the shapes", count(.found), first(.found))]
    Rules {
        /// The target.
        target: Target,
        /// What was broken.
        found: Vec<Violation>,
    },
    /// The planned program could not be encoded.
    #[error("G-006: the planned program cannot be encoded: {0}; report it with the shapes")]
    Encode(#[from] EncodeError),
    /// The planned program stopped.
    #[error("G-007: the planned program stopped at {}: {}; {}", .0.place(), .0.fault, .0.remedy())]
    Exec(#[from] ExecError),
    /// The program's tensors do not fit the device's memory.
    #[error("G-011: {0}; split the product")]
    Memory(#[from] Fault),
    /// The system gave no threads.
    #[error("G-012: cannot start {count} threads: {why}; ask for fewer")]
    Threads {
        /// How many there were to be.
        count: usize,
        /// The reason.
        why: String,
    },
    /// An operand could not be read.
    #[error("G-008: cannot read {what}: {error}; check the file")]
    Read {
        /// Which operand.
        what: &'static str,
        /// The reason.
        error: io::Error,
    },
    /// The arithmetic refused a length. Not caused by any input.
    #[error("G-009: {0}; report it with the shapes")]
    Num(#[from] NumError),
    /// A tensor of the program that the machine does not have. Not caused by any input.
    #[error("G-010: the program has no tensor `{name}` of {bytes} bytes; report it with the shapes")]
    Tensor {
        /// The tensor.
        name: &'static str,
        /// Its size.
        bytes: usize,
    },
}

impl GemmError {
    /// Code that stays the same between versions.
    pub fn code(&self) -> &'static str {
        match self {
            GemmError::UnknownFormat { .. } => "G-001",
            GemmError::FormatNotOnTarget { .. } => "G-002",
            GemmError::Extent { .. } => "G-003",
            GemmError::Shape { .. } => "G-004",
            GemmError::Rules { .. } => "G-005",
            GemmError::Encode(_) => "G-006",
            GemmError::Exec(_) => "G-007",
            GemmError::Read { .. } => "G-008",
            GemmError::Num(_) => "G-009",
            GemmError::Tensor { .. } => "G-010",
            GemmError::Memory(_) => "G-011",
            GemmError::Threads { .. } => "G-012",
        }
    }
}

fn names(formats: impl IntoIterator<Item = Format>) -> String {
    formats.into_iter().map(Format::name).collect::<Vec<_>>().join(", ")
}

fn count(found: &[Violation]) -> String {
    if found.len() == 1 { "1 rule".to_owned() } else { format!("{} rules", found.len()) }
}

fn first(found: &[Violation]) -> String {
    found.first().map_or_else(String::new, |v| format!("{} {} ({})", v.code, v.text, v.place()))
}
