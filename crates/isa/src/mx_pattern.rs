//! MXMEM_PATTERN1D: an MX operand, data and block scales in one descriptor.

use crate::Addr4;

/// An MX operand as it is on the wire (16 bytes; the static form writes the first 12).
///
/// When [`Addr4::is_indirect`] holds for `data`, the same bytes are the gather form: see
/// [`MxPattern::as_indirect`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MxPattern {
    /// First data container (offset 0).
    pub data: Addr4,
    /// Block scales (offset 4): quadrant base and byte offset, see [`Addr4::mx_scale`].
    pub scale: Addr4,
    /// K extent (offset 8): logical elements per partition, four per container. Never 0.
    pub k: u16,
    /// Step direction (offset A): `01` or `FF`.
    pub step: u8,
    /// Scale partition within the quadrant (offset B): 0, 4, 8 or 12.
    pub scale_partition: u8,
    /// Offsets C..=F: 0 and never read in the static form.
    pub tail: [u8; 4],
}

/// The gather form of an MX operand: `indices @0 | data @4 | scale @8 | K @C | step @E | scale partition @F`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MxIndirect {
    /// Index list, without the marker bit.
    pub indices: Addr4,
    /// Base of the data.
    pub data: Addr4,
    /// Block scales.
    pub scale: Addr4,
    /// K extent: number of indices times four.
    pub k: u16,
    /// Step direction: `01` or `FF`.
    pub step: u8,
    /// Scale partition within the quadrant.
    pub scale_partition: u8,
}

impl MxPattern {
    /// A static MX operand stepping forward (`step` 1) or backward (`step` FF).
    #[must_use]
    pub const fn new(data: Addr4, scale: Addr4, k: u16, step: u8, scale_partition: u8) -> MxPattern {
        MxPattern { data, scale, k, step, scale_partition, tail: [0; 4] }
    }

    /// The 16 wire bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        let d = self.data.0.to_le_bytes();
        let s = self.scale.0.to_le_bytes();
        let k = self.k.to_le_bytes();
        let t = self.tail;
        [
            d[0],
            d[1],
            d[2],
            d[3],
            s[0],
            s[1],
            s[2],
            s[3],
            k[0],
            k[1],
            self.step,
            self.scale_partition,
            t[0],
            t[1],
            t[2],
            t[3],
        ]
    }

    /// The operand held by 16 wire bytes.
    #[must_use]
    pub const fn from_bytes(b: [u8; 16]) -> MxPattern {
        MxPattern {
            data: Addr4(u32::from_le_bytes([b[0], b[1], b[2], b[3]])),
            scale: Addr4(u32::from_le_bytes([b[4], b[5], b[6], b[7]])),
            k: u16::from_le_bytes([b[8], b[9]]),
            step: b[10],
            scale_partition: b[11],
            tail: [b[12], b[13], b[14], b[15]],
        }
    }

    /// The gather view of these bytes, when the marker is set.
    #[must_use]
    pub const fn as_indirect(&self) -> Option<MxIndirect> {
        if !self.data.is_indirect() {
            return None;
        }
        let b = self.to_bytes();
        Some(MxIndirect {
            indices: Addr4(self.data.address()),
            data: self.scale,
            scale: Addr4(u32::from_le_bytes([b[8], b[9], b[10], b[11]])),
            k: u16::from_le_bytes([b[12], b[13]]),
            step: b[14],
            scale_partition: b[15],
        })
    }
}

impl MxIndirect {
    /// The wire bytes of this form, as an operand.
    #[must_use]
    pub const fn to_pattern(&self) -> MxPattern {
        let s = self.scale.0.to_le_bytes();
        let k = self.k.to_le_bytes();
        MxPattern {
            data: self.indices.marked_indirect(),
            scale: self.data,
            k: u16::from_le_bytes([s[0], s[1]]),
            step: s[2],
            scale_partition: s[3],
            tail: [k[0], k[1], self.step, self.scale_partition],
        }
    }
}
