//! Start addresses in a role.

use super::fault::{Fault, FaultKind};
use crate::{Addr4, tag_bytes};

/// What an operand may do and where it may be: the flags that the hardware's validators take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Role {
    /// The operand is written.
    pub write: bool,
    /// PSUM is allowed.
    pub psum: bool,
    /// SBUF is allowed.
    pub sbuf: bool,
}

impl Role {
    /// A source: read, SBUF only.
    pub const SOURCE: Role = Role { write: false, psum: false, sbuf: true };
    /// A matmul destination: written, PSUM only.
    pub const DESTINATION: Role = Role { write: true, psum: true, sbuf: false };
    /// What a quantize writes: SBUF only.
    pub const SBUF_DESTINATION: Role = Role { write: true, psum: false, sbuf: true };
}

/// True when a 29-bit address is a multiple of the tag's size: 1, 2 or 4 bytes.
#[must_use]
pub const fn addr_aligned_dtype(address: u32, tag: u8) -> bool {
    address.is_multiple_of(tag_bytes(tag))
}

/// Register mode is bit 31 with the gather marker clear.
pub(super) const fn is_register(address: Addr4) -> bool {
    address.byte3() & 0xA0 == 0x80
}

/// Checks the two forms that bit 31 can make. `Ok(true)` is a register.
pub(super) const fn register_form(address: Addr4, offset: usize) -> Result<bool, Fault> {
    if is_register(address) {
        let id = address.0 & 0xFF;
        if id < 0x40 { Ok(true) } else { Err(Fault::new(offset, id, FaultKind::RegisterId)) }
    } else if address.byte3() & 0x80 != 0 {
        Err(Fault::new(offset, address.0, FaultKind::TopBit))
    } else {
        Ok(false)
    }
}

/// Checks a start address at byte `offset` of its descriptor (D-07): a register id below 0x40, or
/// an address aligned to its tag in a window that the role allows.
///
/// # Errors
/// The first [`Fault`].
pub(super) const fn start_valid(address: Addr4, tag: u8, role: Role, offset: usize) -> Result<(), Fault> {
    match register_form(address, offset) {
        Ok(true) => return Ok(()),
        Err(fault) => return Err(fault),
        Ok(false) => {}
    }
    let kind = if !addr_aligned_dtype(address.address(), tag) {
        FaultKind::Unaligned(tag_bytes(tag))
    } else if address.in_sbuf() && !role.sbuf {
        FaultKind::NotInPsum
    } else if address.in_psum() && !role.psum {
        FaultKind::NotInSbuf
    } else if !address.in_sbuf() && !address.in_psum() {
        FaultKind::Nowhere
    } else {
        return Ok(());
    };
    Err(Fault::new(offset, address.0, kind))
}

/// True when an address is valid for a tag in a role; see D-07 and [`Role`].
#[must_use]
pub const fn tensor_start_addr_valid(address: Addr4, tag: u8, role: Role) -> bool {
    start_valid(address, tag, role, 0).is_ok()
}
