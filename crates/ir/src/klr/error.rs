//! What can be wrong with a KLR file, each with a stable code, the byte offset and what was found there.

use std::fmt;

/// The dialects that the reader accepts, for messages that refuse another one.
pub const DIALECTS: &str = "read are KLR 0.0.12 files of contents 2 (one kernel) and 3 (a kernel per core) with operators under tag 218, \
     TensorName with 8 fields (proof fields without bytes, or one byte 80 each), Block with 2 or 3 fields and \
     NcDmaCopy with 7 or 8";

/// Where in a file something was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Byte offset from the start of the file.
    pub offset: usize,
    /// Type that was being read.
    pub within: &'static str,
    /// Its field, empty for the head of the value itself.
    pub field: &'static str,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {0} ({0:#x}), {1}", self.offset, self.within)?;
        if self.field.is_empty() { Ok(()) } else { write!(f, ".{}", self.field) }
    }
}

/// Why a file was refused. Every message is one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KlrError {
    /// The file does not begin with the KLR header.
    #[error("KLR-001: not a KLR file: {found}; expected the header bytes d9 d9 f7 83 at byte 0; {hint}")]
    NotKlr {
        /// What the file is instead.
        found: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// The file ends inside a value.
    #[error(
        "KLR-002: file ends {place}: {needed} more bytes needed, {left} left; the file is truncated, write it again"
    )]
    Truncated {
        /// Where the value that needs the bytes begins.
        place: Place,
        /// Bytes needed.
        needed: u64,
        /// Bytes left.
        left: usize,
    },
    /// The contents are not a kernel.
    #[error(
        "KLR-003: contents {number} ({kind}) at byte {offset} ({offset:#x}) hold no operators; {DIALECTS}; compile the kernel with the KLR compiler first"
    )]
    Contents {
        /// Where the contents begin.
        offset: usize,
        /// Number on disk.
        number: u8,
        /// What the number stands for.
        kind: &'static str,
    },
    /// A tagged value that no accepted dialect has at this place.
    #[error(
        "KLR-004: unknown dialect: found {found} {place}, expected {expected}; {DIALECTS}; recompile the kernel with a current KLR"
    )]
    Dialect {
        /// Where.
        place: Place,
        /// What was found.
        found: String,
        /// What the accepted dialects have here.
        expected: String,
    },
    /// An untagged value of the wrong kind.
    #[error(
        "KLR-005: found {found} {place}, expected {expected}; the file is damaged or of another dialect; {DIALECTS}"
    )]
    Item {
        /// Where.
        place: Place,
        /// What was found.
        found: String,
        /// What should be there.
        expected: &'static str,
    },
    /// An integer beyond the range that is kept.
    #[error(
        "KLR-006: integer {sign}{magnitude} {place} does not fit {expected}; no kernel needs it, the file is damaged"
    )]
    Range {
        /// Where.
        place: Place,
        /// `-1 - ` for a negative integer, empty otherwise.
        sign: &'static str,
        /// Magnitude as written.
        magnitude: u64,
        /// The range kept.
        expected: &'static str,
    },
    /// A string that is not UTF-8.
    #[error("KLR-007: string {place} is not UTF-8 from its byte {valid} on; the file is damaged")]
    Text {
        /// Where the string begins.
        place: Place,
        /// Number of bytes that are valid.
        valid: usize,
    },
    /// Values nested deeper than any kernel needs.
    #[error(
        "KLR-008: values nested deeper than {limit} {place}; simplify the access (a vector offset inside a vector offset)"
    )]
    Depth {
        /// Where.
        place: Place,
        /// The bound.
        limit: usize,
    },
    /// Bytes after the contents.
    #[error(
        "KLR-009: {count} bytes follow the contents, from byte {offset} ({offset:#x}) on; a KLR file ends with its contents, remove them"
    )]
    Trailing {
        /// Where the extra bytes begin.
        offset: usize,
        /// How many.
        count: usize,
    },
    /// A list longer than the rest of the file.
    #[error(
        "KLR-010: list of {count} values {place} cannot fit the {left} bytes left; the file is truncated or damaged"
    )]
    ListTooLong {
        /// Where.
        place: Place,
        /// Number of values announced.
        count: u64,
        /// Bytes left.
        left: usize,
    },
    /// The value tree does not have the shape of the table.
    #[error(
        "KLR-011: value at byte {offset} ({offset:#x}) is no {expected}; this is a defect of the reader, report it with the file"
    )]
    Shape {
        /// Where the value begins.
        offset: usize,
        /// What the typed view asked for.
        expected: &'static str,
    },
}

impl KlrError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotKlr { .. } => "KLR-001",
            Self::Truncated { .. } => "KLR-002",
            Self::Contents { .. } => "KLR-003",
            Self::Dialect { .. } => "KLR-004",
            Self::Item { .. } => "KLR-005",
            Self::Range { .. } => "KLR-006",
            Self::Text { .. } => "KLR-007",
            Self::Depth { .. } => "KLR-008",
            Self::Trailing { .. } => "KLR-009",
            Self::ListTooLong { .. } => "KLR-010",
            Self::Shape { .. } => "KLR-011",
        }
    }

    /// Byte offset in the file.
    pub fn offset(&self) -> usize {
        match self {
            Self::NotKlr { .. } => 0,
            Self::Contents { offset, .. } | Self::Trailing { offset, .. } | Self::Shape { offset, .. } => {
                *offset
            }
            Self::Truncated { place, .. }
            | Self::Dialect { place, .. }
            | Self::Item { place, .. }
            | Self::Range { place, .. }
            | Self::Text { place, .. }
            | Self::Depth { place, .. }
            | Self::ListTooLong { place, .. } => place.offset,
        }
    }
}
