//! Small codes shared by the bundles: accumulate flags, performance modes, performance variants.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Accumulate bit 0: zero the destination, then write.
pub const START: u8 = 1;
/// Accumulate bit 1: last of the accumulation group.
pub const STOP: u8 = 2;
/// Accumulate bit 2: add into the destination.
pub const ACCUMULATE: u8 = 4;
/// The accumulate bytes that hardware accepts: START never goes with ACCUMULATE.
pub const ACCUMULATE_LEGAL: [u8; 6] = [0, 1, 2, 3, 4, 6];

/// How the array is packed two to one (D-01).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PerfMode {
    /// One element in each cell.
    #[default]
    None = 0,
    /// Two contraction rows in one pass.
    DoubleRow = 1,
    /// Named by the enumeration; no proven encoding.
    DoubleColumn = 2,
    /// Named by the enumeration; no proven encoding.
    DoublePixel = 3,
    /// DoubleRow with the row pairs of the weights interleaved in memory.
    DoubleRowSwInterleave = 4,
}

impl PerfMode {
    /// All modes, by code.
    pub const ALL: [PerfMode; 5] = [
        PerfMode::None,
        PerfMode::DoubleRow,
        PerfMode::DoubleColumn,
        PerfMode::DoublePixel,
        PerfMode::DoubleRowSwInterleave,
    ];

    /// The mode's code on the wire (D-11).
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The mode of a code.
    #[must_use]
    pub fn from_code(code: u8) -> Option<PerfMode> {
        PerfMode::ALL.get(usize::from(code)).copied()
    }

    /// The mode's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PerfMode::None => "None",
            PerfMode::DoubleRow => "DoubleRow",
            PerfMode::DoubleColumn => "DoubleColumn",
            PerfMode::DoublePixel => "DoublePixel",
            PerfMode::DoubleRowSwInterleave => "DoubleRowSwInterleave",
        }
    }

    /// True for the two modes that contract a pair of rows in one pass.
    #[must_use]
    pub const fn is_double_row(self) -> bool {
        matches!(self, PerfMode::DoubleRow | PerfMode::DoubleRowSwInterleave)
    }

    /// How many weight elements per partition make one active column: 2 in the DoubleRow modes.
    #[must_use]
    pub const fn scale(self) -> u16 {
        if self.is_double_row() { 2 } else { 1 }
    }
}

impl fmt::Display for PerfMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A performance mode's name that is not known.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "ISA111: Unknown MatmultPerfMode {name:?}; use None, DoubleRow, DoubleColumn, DoublePixel or DoubleRowSwInterleave"
)]
pub struct UnknownPerfMode {
    /// The name as given.
    pub name: String,
}

impl FromStr for PerfMode {
    type Err = UnknownPerfMode;

    fn from_str(text: &str) -> Result<Self, UnknownPerfMode> {
        PerfMode::ALL
            .into_iter()
            .find(|mode| mode.name() == text)
            .ok_or_else(|| UnknownPerfMode { name: text.to_owned() })
    }
}

/// The performance variant byte beside an operand's tag.
pub struct PerfVariant;

impl PerfVariant {
    /// No variant.
    pub const DEFAULT: u8 = 0x00;
    /// A performance mode, or float32r.
    pub const PERF: u8 = 0x02;
    /// float32, which takes two passes.
    pub const FLOAT32: u8 = 0x80;
}
