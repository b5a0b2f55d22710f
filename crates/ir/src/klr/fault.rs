//! What keeps a statement from being lowered, before it is known which statement it was.

use hadal_isa::table::Confidence;

use crate::diag::Violation;
use crate::program::Pos;

/// A rule that an operand or an operator breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) code: &'static str,
    pub(super) text: String,
    pub(super) remedy: &'static str,
}

/// Operators without a lowering.
pub(super) const OPERATOR: &str = "KLR-101";
/// Offsets, values and operands known only when the kernel runs.
pub(super) const DYNAMIC: &str = "KLR-102";
/// An access that sees another container size.
pub(super) const OVERRIDE: &str = "KLR-103";
/// A pattern that no access of one partition dimension and free dimensions expresses.
pub(super) const PATTERN: &str = "KLR-104";
/// An access outside its tensor.
pub(super) const BOUNDS: &str = "KLR-105";
/// Tensors and buffers that contradict each other.
pub(super) const BUFFER: &str = "KLR-106";
/// A setting whose effect cannot be honoured.
pub(super) const SETTING: &str = "KLR-107";
/// Tile lists that are neither empty nor of two entries.
pub(super) const TILE: &str = "KLR-108";
/// Branches between blocks.
pub(super) const CONTROL: &str = "KLR-109";
/// Sizes and offsets beyond what any device has.
pub(super) const RANGE: &str = "KLR-110";

impl Fault {
    pub(super) fn new(code: &'static str, text: String, remedy: &'static str) -> Self {
        Self { code, text, remedy }
    }

    /// A number that no device needs.
    pub(super) fn range(what: &str, value: impl std::fmt::Display) -> Self {
        Self::new(
            RANGE,
            format!("{what} {value} is beyond any device"),
            "check the tensor's shape and address",
        )
    }

    /// Attaches the place.
    pub(super) fn at(
        self,
        core: usize,
        subject: String,
        operand: Option<&'static str>,
        pos: Option<Pos>,
    ) -> Violation {
        Violation {
            code: self.code,
            core,
            instr: None,
            subject,
            operand,
            text: self.text,
            remedy: self.remedy.to_owned(),
            confidence: Confidence::Confirmed,
            pos,
        }
    }
}
