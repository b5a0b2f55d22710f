//! ADDR4: the 4-byte start address that begins every operand.

use std::fmt;

/// Bytes in one PSUM bank of one partition.
pub const PSUM_BANK_BYTES: u32 = 2048;
/// PSUM banks in one partition.
pub const PSUM_BANKS: u32 = 8;

const ADDRESS: u32 = 0x1FFF_FFFF;
const PSUM_BASE: u32 = 0x0200_0000;
const PSUM_LAST: u32 = 0x003F_FFFF;
const INDIRECT: u32 = 1 << 29;
const REGION: u32 = 1 << 30;
const REGISTER: u32 = 1 << 31;

/// A start address as it is on the wire.
///
/// Bits 0..=28 are a byte address; bit 29 marks a gather/scatter descriptor; bit 31 with bit 29
/// clear is register mode, with the register id in byte 0; bit 30 with 28 and 29 clear is an SBUF
/// sub-region that the validators reject.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Addr4(pub u32);

/// Where an [`Addr4`] points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// SBUF: window `0x0000000..=0x1FFFFFF`. The offset can exceed a generation's capacity.
    Sbuf {
        /// Partition, 0..=127.
        partition: u32,
        /// Byte offset in the partition, below 2^18.
        offset: u32,
    },
    /// PSUM: window `0x2000000..=0x23FFFFF`. Banks 8..=15 are inside the window but hold no memory.
    Psum {
        /// Partition, 0..=127.
        partition: u32,
        /// Bank, 0..=15.
        bank: u32,
        /// Byte offset in the bank, below 2048.
        offset: u32,
    },
    /// Register mode; ids from `0x40` are invalid.
    Register(u8),
    /// A gather/scatter descriptor's data base: the 29-bit address without the marker.
    Indirect(Addr4),
    /// Neither window, or a bit pattern with no meaning.
    Outside,
}

impl Addr4 {
    /// The SBUF address of a byte: `partition << 18 | offset`.
    ///
    /// `partition` is taken modulo 128 and `offset` modulo 2^18; callers check ranges first.
    #[must_use]
    pub const fn sbuf(partition: u32, offset: u32) -> Addr4 {
        Addr4((partition & 127) << 18 | offset & 0x3_FFFF)
    }

    /// The PSUM address of a byte: `0x2000000 + (partition << 15 | bank << 11 | offset)`.
    ///
    /// `partition` is taken modulo 128, `bank` modulo 16 and `offset` modulo 2048.
    #[must_use]
    pub const fn psum(partition: u32, bank: u32, offset: u32) -> Addr4 {
        Addr4(PSUM_BASE + ((partition & 127) << 15 | (bank & 15) << 11 | offset & 0x7FF))
    }

    /// The address of an MX scale tensor: the quadrant's first partition, and the byte offset.
    /// The row inside the quadrant is the descriptor's scale partition.
    #[must_use]
    pub const fn mx_scale(partition: u32, offset: u32) -> Addr4 {
        Addr4(((partition & 127) << 18 & 0xFF80_0000) + (offset & 0x3_FFFF))
    }

    /// Register mode: the address is in register `id`.
    #[must_use]
    pub const fn register(id: u8) -> Addr4 {
        Addr4(REGISTER | id as u32)
    }

    /// This address with the gather/scatter marker set.
    #[must_use]
    pub const fn marked_indirect(self) -> Addr4 {
        Addr4(self.0 | INDIRECT)
    }

    /// True when the gather/scatter marker (bit 29) is set.
    #[must_use]
    pub const fn is_indirect(self) -> bool {
        self.0 & INDIRECT != 0
    }

    /// The 29-bit byte address.
    #[must_use]
    pub const fn address(self) -> u32 {
        self.0 & ADDRESS
    }

    /// Byte 3: the flag bits and the top of the address.
    #[must_use]
    pub const fn byte3(self) -> u8 {
        (self.0 >> 24) as u8
    }

    /// The address with bit 31 cleared; on gen2 that bit of a load is the transpose flag.
    #[must_use]
    pub const fn without_top_bit(self) -> Addr4 {
        Addr4(self.0 & !REGISTER)
    }

    /// True when the 29-bit address is in the PSUM window.
    #[must_use]
    pub const fn in_psum(self) -> bool {
        self.address().wrapping_sub(PSUM_BASE) <= PSUM_LAST && self.0 & 0x1E00_0000 != 0
    }

    /// True when the 29-bit address is in the SBUF window.
    #[must_use]
    pub const fn in_sbuf(self) -> bool {
        self.address() < PSUM_BASE
    }

    /// Reads the address's form and window.
    #[must_use]
    pub const fn place(self) -> Place {
        if self.is_indirect() {
            return if self.0 & (REGION | REGISTER) == 0 {
                Place::Indirect(Addr4(self.address()))
            } else {
                Place::Outside
            };
        }
        if self.0 & REGISTER != 0 {
            return Place::Register(self.0 as u8);
        }
        if self.0 & REGION != 0 {
            return Place::Outside;
        }
        if self.in_sbuf() {
            Place::Sbuf { partition: self.0 >> 18, offset: self.0 & 0x3_FFFF }
        } else if self.in_psum() {
            let rel = self.0 - PSUM_BASE;
            Place::Psum { partition: rel >> 15, bank: rel >> 11 & 15, offset: rel & 0x7FF }
        } else {
            Place::Outside
        }
    }
}

impl fmt::Debug for Addr4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Addr4({:#010x})", self.0)
    }
}
