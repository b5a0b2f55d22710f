//! TENSORnD and MEM_PATTERNnD in a role.

use super::address::{Role, addr_aligned_dtype, register_form, start_valid};
use super::fault::{Fault, FaultKind};
use crate::{Addr4, tag_bytes};

/// The alignment tag of a PSUM word: four bytes, whatever the declared type.
const PSUM_WORD: u8 = 9;

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    match bytes.get(at..).and_then(|b| b.first_chunk::<2>()) {
        Some(word) => u16::from_le_bytes(*word),
        None => 0,
    }
}

pub(super) fn addr_at(bytes: &[u8], at: usize) -> Addr4 {
    match bytes.get(at..).and_then(|b| b.first_chunk::<4>()) {
        Some(word) => Addr4(u32::from_le_bytes(*word)),
        None => Addr4(0),
    }
}

fn size(bytes: &[u8], dims: usize) -> Result<(), Fault> {
    let want = 4 + 4 * dims;
    if bytes.len() == want { Ok(()) } else { Err(Fault::new(0, bytes.len() as u32, FaultKind::Size(want))) }
}

/// The gather form: bits 30 and 29 are 01.
fn is_gather(start: Addr4) -> bool {
    start.byte3() & 0x60 == 0x20
}

fn sub_region(start: Addr4) -> Result<(), Fault> {
    if start.byte3() & 0x70 == 0x40 { Err(Fault::new(0, start.0, FaultKind::SubRegion)) } else { Ok(()) }
}

fn counts(bytes: &[u8], dims: usize) -> Result<(), Fault> {
    for i in 0..dims {
        let at = 4 + 2 * dims + 2 * i;
        if u16_at(bytes, at) == 0 {
            return Err(Fault::new(at, 0, FaultKind::ZeroCount));
        }
    }
    Ok(())
}

fn index_bits(bytes: &[u8]) -> Result<(), Fault> {
    let index = addr_at(bytes, 4);
    if index.byte3() & 0xE0 == 0 { Ok(()) } else { Err(Fault::new(4, index.0, FaultKind::IndexBits)) }
}

fn mem_valid(bytes: &[u8], dims: usize, tag: u8, role: Role) -> Result<(), Fault> {
    size(bytes, dims)?;
    let start = addr_at(bytes, 0);
    if is_gather(start) {
        if dims < 2 {
            // Eight bytes hold no index address and count.
            return Err(Fault::new(0, start.0, FaultKind::IndirectField));
        }
        if u16_at(bytes, 8) == 0 {
            return Err(Fault::new(8, 0, FaultKind::MissingField));
        }
        if start_valid(start, PSUM_WORD, Role::DESTINATION, 0).is_err() {
            return Err(Fault::new(0, start.0, FaultKind::IndirectField));
        }
        index_bits(bytes)?;
        start_valid(addr_at(bytes, 4), tag, role, 4)
    } else {
        start_valid(start, tag, role, 0)?;
        sub_region(start)?;
        counts(bytes, dims)
    }
}

/// Checks 8 bytes of a pattern with one free dimension: static form only (INFERRED).
///
/// # Errors
/// The first [`Fault`].
pub fn mem1d_valid(bytes: &[u8], tag: u8, role: Role) -> Result<(), Fault> {
    mem_valid(bytes, 1, tag, role)
}

/// Checks 12 bytes of a pattern with two free dimensions (CONFIRMED).
///
/// # Errors
/// The first [`Fault`].
pub fn mem2d_valid(bytes: &[u8], tag: u8, role: Role) -> Result<(), Fault> {
    mem_valid(bytes, 2, tag, role)
}

/// Checks 16 bytes of a pattern with three free dimensions (CONFIRMED).
///
/// Static: the start is valid for the tag in the role, is not the rejected sub-region, and no count
/// is 0. Gather: its count word is not 0, its base is a 4-byte PSUM word, and its index address is
/// plain and valid in the role.
///
/// # Errors
/// The first [`Fault`].
pub fn mem3d_valid(bytes: &[u8], tag: u8, role: Role) -> Result<(), Fault> {
    mem_valid(bytes, 3, tag, role)
}

/// Checks 20 bytes of a pattern with four free dimensions (CONFIRMED).
///
/// # Errors
/// The first [`Fault`].
pub fn mem4d_valid(bytes: &[u8], tag: u8, role: Role) -> Result<(), Fault> {
    mem_valid(bytes, 4, tag, role)
}

/// Checks that a four-dimensional destination's word is not in PSUM: the index word of the gather
/// form, else the start (the latter ASSUMED).
///
/// # Errors
/// The first [`Fault`].
pub fn m4d_not_in_psum(bytes: &[u8]) -> Result<(), Fault> {
    size(bytes, 4)?;
    let at = if is_gather(addr_at(bytes, 0)) { 4 } else { 0 };
    let word = addr_at(bytes, at);
    if word.in_psum() { Err(Fault::new(at, word.0, FaultKind::InPsum)) } else { Ok(()) }
}

/// Checks 16 bytes of a matmul destination in its bf16-or-fp32 form, which is used when the
/// destination's tag is 6 (CONFIRMED).
///
/// # Errors
/// The first [`Fault`].
pub fn mm_dst_mem3d_valid(bytes: &[u8], tag: u8) -> Result<(), Fault> {
    size(bytes, 3)?;
    let start = addr_at(bytes, 0);
    let legal_tag = || match tag {
        4..=11 => Ok(()),
        _ => Err(Fault::new(0, u32::from(tag), FaultKind::DestinationTag)),
    };
    if is_gather(start) {
        if u16_at(bytes, 0xA) == 0 {
            return Err(Fault::new(0xA, 0, FaultKind::MissingField));
        }
        index_bits(bytes)?;
        in_psum(addr_at(bytes, 4), 4)?;
        return legal_tag();
    }
    if !register_form(start, 0)? {
        if !addr_aligned_dtype(start.address(), tag) {
            return Err(Fault::new(0, start.0, FaultKind::Unaligned(tag_bytes(tag))));
        }
        in_psum(start, 0)?;
        legal_tag()?;
    }
    sub_region(start)?;
    counts(bytes, 3)
}

fn in_psum(address: Addr4, offset: usize) -> Result<(), Fault> {
    let kind = if address.in_psum() {
        return Ok(());
    } else if address.in_sbuf() {
        FaultKind::NotInPsum
    } else {
        FaultKind::Nowhere
    };
    Err(Fault::new(offset, address.0, kind))
}
