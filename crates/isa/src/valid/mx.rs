//! MX descriptors in a role.

use super::address::{Role, start_valid};
use super::fault::{Fault, FaultKind};
use super::pattern::addr_at;
use crate::{Addr4, MxPattern};

/// The alignment tag of a 4-byte container.
const CONTAINER4: u8 = 9;
/// The alignment tag of a 2-byte container.
const CONTAINER2: u8 = 5;
/// The alignment tag of a scale byte.
const SCALE: u8 = 3;
/// The MX tag of packed FP4, whose container has two bytes.
const FP4_X4: u8 = 0x10;

/// Checks the 16 bytes of an MX operand of type `tag` (CONFIRMED for the static form; the gather
/// form is the same fields four bytes on, its index address taken as bytes in SBUF, ASSUMED).
///
/// # Errors
/// The first [`Fault`].
pub fn mxmem1d_valid(bytes: &[u8], tag: u8, role: Role) -> Result<(), Fault> {
    let Some(chunk) = bytes.first_chunk::<16>().filter(|_| bytes.len() == 16) else {
        return Err(Fault::new(0, bytes.len() as u32, FaultKind::Size(16)));
    };
    let operand = MxPattern::from_bytes(*chunk);
    let shift = if operand.data.is_indirect() { 4 } else { 0 };
    if shift != 0 {
        // The index list is read like any source; its marker bit is not part of the address.
        start_valid(Addr4(operand.data.address()), SCALE, Role::SOURCE, 0)?;
    }
    let container = if tag == FP4_X4 { CONTAINER2 } else { CONTAINER4 };
    start_valid(addr_at(bytes, shift), container, role, shift)?;
    let scale = addr_at(bytes, shift + 4);
    start_valid(scale, SCALE, Role::SOURCE, shift + 4).map_err(|fault| match fault.kind {
        FaultKind::NotInSbuf => Fault { kind: FaultKind::ScaleNotInSbuf, ..fault },
        _ => fault,
    })?;
    let byte = |at: usize| u32::from(bytes.get(shift + at).copied().unwrap_or_default());
    if byte(8) | byte(9) == 0 {
        return Err(Fault::new(shift + 8, 0, FaultKind::ZeroExtent));
    }
    if !matches!(byte(10), 0x01 | 0xFF) {
        return Err(Fault::new(shift + 10, byte(10), FaultKind::Step));
    }
    if !matches!(byte(11), 0 | 4 | 8 | 12) {
        return Err(Fault::new(shift + 11, byte(11), FaultKind::ScalePartition));
    }
    Ok(())
}
