//! What can be wrong with a request to this crate.

use thiserror::Error;

use crate::Dtype;

/// A request that has no numeric answer. Every variant says what was given and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NumError {
    /// A type name that is in no table.
    #[error("unknown element type `{name}`; known types are those of `Dtype::ALL`, such as `bfloat16`")]
    UnknownDtype {
        /// The name as given.
        name: String,
    },
    /// A slice whose length does not follow from the other arguments.
    #[error("{what} has {got} {unit}, expected {want}; pass a slice of exactly that length")]
    Length {
        /// Which argument.
        what: &'static str,
        /// What is counted: `bytes` or `elements`.
        unit: &'static str,
        /// The length given.
        got: usize,
        /// The length that fits.
        want: usize,
    },
    /// A buffer of containers that ends inside one.
    #[error("{bytes} bytes are not a whole number of {dtype} containers of {} bytes; drop or complete the last one", dtype.bytes())]
    PartialContainer {
        /// The container's type.
        dtype: Dtype,
        /// The length of the buffer.
        bytes: usize,
    },
    /// A shape whose element count does not fit in memory.
    #[error("shape {rows} x {cols} has too many elements; split the tensor")]
    Shape {
        /// Rows given.
        rows: usize,
        /// Columns given.
        cols: usize,
    },
    /// A tensor that does not divide into MX blocks of 8 partitions by 4 elements.
    #[error(
        "{rows} x {cols} does not divide into MX blocks of 8 x 4; pad rows to a multiple of 8 and columns to one of 4"
    )]
    Blocks {
        /// Partitions given.
        rows: usize,
        /// Elements a partition given.
        cols: usize,
    },
    /// A type that forms no MX blocks.
    #[error("{dtype} forms no MX blocks; use float4_e2m1fn_x4, float8_e4m3fn_x4 or float8_e5m2_x4")]
    NotMx {
        /// The type given.
        dtype: Dtype,
    },
    /// An `x4` type where codes of one element a container are expected.
    #[error("{dtype} holds four elements a container; pass it as MX blocks, or widen it first")]
    Lanes {
        /// The type given.
        dtype: Dtype,
    },
    /// A place for block scales that no quadrant has.
    #[error("scale offset {offset} is not one of 0, 4, 8 and 12")]
    ScaleOffset {
        /// The offset given.
        offset: u8,
    },
    /// A name that is no scale rule.
    #[error("unknown scale rule `{name}`; use reference, reference-alt, hardware or ocp")]
    UnknownRule {
        /// The name as given.
        name: String,
    },
}

impl NumError {
    /// A short code that stays the same between versions, for tools that match on errors.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownDtype { .. } => "num-unknown-dtype",
            Self::Length { .. } => "num-length",
            Self::PartialContainer { .. } => "num-partial-container",
            Self::Shape { .. } => "num-shape",
            Self::Blocks { .. } => "num-blocks",
            Self::NotMx { .. } => "num-not-mx",
            Self::Lanes { .. } => "num-lanes",
            Self::ScaleOffset { .. } => "num-scale-offset",
            Self::UnknownRule { .. } => "num-unknown-rule",
        }
    }
}

/// Fails unless `got` is `want`; `what` and `unit` name the argument in the message.
pub(crate) fn check_len(
    what: &'static str,
    unit: &'static str,
    got: usize,
    want: usize,
) -> Result<(), NumError> {
    if got == want { Ok(()) } else { Err(NumError::Length { what, unit, got, want }) }
}

/// `rows * cols`, or the error that names both.
pub(crate) fn area(rows: usize, cols: usize) -> Result<usize, NumError> {
    rows.checked_mul(cols).ok_or(NumError::Shape { rows, cols })
}
