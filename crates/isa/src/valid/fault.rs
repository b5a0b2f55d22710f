//! Why a descriptor is not valid.

use thiserror::Error;

/// A descriptor's first fault: where in the descriptor, the value found, and the rule broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{kind} (byte {offset} of the descriptor, value {value:#x})")]
pub struct Fault {
    /// Byte in the descriptor.
    pub offset: usize,
    /// The offending value.
    pub value: u32,
    /// The rule.
    pub kind: FaultKind,
}

impl Fault {
    pub(super) const fn new(offset: usize, value: u32, kind: FaultKind) -> Fault {
        Fault { offset, value, kind }
    }
}

/// A rule that a descriptor can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FaultKind {
    /// Register mode with an id from 0x40 up.
    #[error("register ids are below 0x40; use one that is")]
    RegisterId,
    /// Bit 31 together with the gather marker.
    #[error("bit 31 means register mode, which a gather cannot use; clear one of the two bits")]
    TopBit,
    /// The address is not a multiple of the element's alignment.
    #[error("the address is not a multiple of {0}, which its type needs; move the operand")]
    Unaligned(u32),
    /// Neither window.
    #[error("the address must be SB or PSUM, and is in neither window")]
    Nowhere,
    /// PSUM where only SBUF will do.
    #[error("the address is in PSUM, and this operand reads SBUF only; copy the operand to SBUF first")]
    NotInSbuf,
    /// SBUF where only PSUM will do.
    #[error("the address is in SBUF, and this operand lives in PSUM only; give a PSUM address")]
    NotInPsum,
    /// PSUM where only something else will do.
    #[error("a destination with four dimensions must not be in PSUM; use at most three, or write SBUF")]
    InPsum,
    /// Bits 30..28 are 100.
    #[error("bit 30 with bits 29 and 28 clear is an SBUF sub-region that no operand may use; clear bit 30")]
    SubRegion,
    /// A count is 0.
    #[error("a count of 0 is invalid; an unused dimension has count 1")]
    ZeroCount,
    /// A gather form without its counts.
    #[error("ISA mem pattern is union but is missing field: the gather form needs its count")]
    MissingField,
    /// A static operand with the gather marker.
    #[error(
        "static tensor pattern but has indirect field: a gather base must be a 4-byte aligned PSUM address; clear bit 29 or move the base"
    )]
    IndirectField,
    /// Top bits of the index address.
    #[error("bits 29 to 31 of an index address must be clear; give a plain address")]
    IndexBits,
    /// The destination's type in the bf16-or-fp32 form.
    #[error("the destination's tag must be a 2-byte or 4-byte type, 4 to 11")]
    DestinationTag,
    /// An MX scale outside SBUF.
    #[error("MX Scale Tensor can only be in SB; move the scales to SBUF")]
    ScaleNotInSbuf,
    /// An MX extent of 0.
    #[error("the K extent is 0; give elements per partition times four")]
    ZeroExtent,
    /// An MX step that is neither direction.
    #[error("the step direction must be 01 or FF")]
    Step,
    /// An MX scale partition that is not a row of the quadrant.
    #[error("the scale partition must be 0, 4, 8 or 12")]
    ScalePartition,
    /// A byte string of the wrong length.
    #[error("mem pattern must have {0} bytes to encode")]
    Size(usize),
}

impl FaultKind {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            FaultKind::RegisterId => "ISA309",
            FaultKind::TopBit => "ISA310",
            FaultKind::Unaligned(_) => "ISA311",
            FaultKind::Nowhere => "ISA312",
            FaultKind::NotInSbuf | FaultKind::NotInPsum | FaultKind::InPsum => "ISA313",
            FaultKind::SubRegion => "ISA314",
            FaultKind::ZeroCount => "ISA315",
            FaultKind::MissingField | FaultKind::IndirectField => "ISA316",
            FaultKind::IndexBits => "ISA317",
            FaultKind::DestinationTag => "ISA318",
            FaultKind::ScaleNotInSbuf => "ISA319",
            FaultKind::ZeroExtent => "ISA320",
            FaultKind::Step => "ISA321",
            FaultKind::ScalePartition => "ISA322",
            FaultKind::Size(_) => "ISA323",
        }
    }
}
