//! Type tags: the byte that an encoder writes for an element type.
//!
//! The dense tables are the two 20-entry look-up tables of the encoders; float32r, uint64 and int64
//! are completed from the public runtime header (D-03).

use crate::Gen;
use hadal_num::Dtype;
use thiserror::Error;

/// Dense tags by type ordinal. Generation 2 maps every type; later ones refuse the x4 types.
const DENSE: [u8; 20] = [
    0x03, 0x02, 0x05, 0x0D, 0x0E, 0x0E, 0x03, 0x0F, 0x0E, 0x0F, 0x05, 0x04, 0x06, 0x07, 0x09, 0x08, 0x0A,
    0x0B, 0x01, 0x0C,
];

/// The MX table's tag for packed FP4, the only entry that differs from the dense table.
const FP4_X4: u8 = 0x10;

/// A type that a generation's dense encoders refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("ISA112: {} is packed four to a container and {generation} dense bundles refuse it; use the unpacked type, or the MX bundles on gen4", dtype.name())]
pub struct TagError {
    /// The refused type.
    pub dtype: Dtype,
    /// The generation that refuses it.
    pub generation: Gen,
}

const fn is_x4(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::Float4E2m1fnX4 | Dtype::Float8E4m3fnX4 | Dtype::Float8E5m2X4)
}

/// The dense tag of a type.
///
/// # Errors
/// [`TagError`] for the x4 types from gen3 on. Gen2's flat table takes them, with the tags of
/// uint16, e4m3 and e5m2.
pub fn tag(dtype: Dtype, generation: Gen) -> Result<u8, TagError> {
    if is_x4(dtype) && generation != Gen::Gen2 {
        return Err(TagError { dtype, generation });
    }
    Ok(flat(dtype))
}

fn flat(dtype: Dtype) -> u8 {
    DENSE.get(usize::from(dtype.ordinal())).copied().unwrap_or_default()
}

/// The tag of a dense PE operand: as [`tag`], with float32r written as float32 (the perf variant
/// byte beside it tells them apart).
///
/// # Errors
/// As [`tag`].
pub fn operand_tag(dtype: Dtype, generation: Gen) -> Result<u8, TagError> {
    if dtype == Dtype::Float32r { Ok(flat(Dtype::Float32)) } else { tag(dtype, generation) }
}

/// The gen4 MX tag of a type.
#[must_use]
pub fn mx_tag(dtype: Dtype) -> u8 {
    if dtype == Dtype::Float4E2m1fnX4 { FP4_X4 } else { flat(dtype) }
}

/// The type a dense tag stands for. Tags shared by several types give the one a PE operand can
/// have: 03 uint8, 05 uint16, 0E the generation's e4m3 (legacy up to gen3, e4m3fn on gen4).
#[must_use]
pub const fn tag_dtype(tag: u8, generation: Gen) -> Option<Dtype> {
    Some(match tag {
        0x01 => Dtype::Uint64,
        0x02 => Dtype::Int8,
        0x03 => Dtype::Uint8,
        0x04 => Dtype::Int16,
        0x05 => Dtype::Uint16,
        0x06 => Dtype::Bfloat16,
        0x07 => Dtype::Float16,
        0x08 => Dtype::Int32,
        0x09 => Dtype::Uint32,
        0x0A => Dtype::Float32,
        0x0B => Dtype::Float32r,
        0x0C => Dtype::Int64,
        0x0D => Dtype::Float8E3m4,
        0x0E => match generation {
            Gen::Gen4 => Dtype::Float8E4m3fn,
            _ => Dtype::Float8E4m3,
        },
        0x0F => Dtype::Float8E5m2,
        _ => return None,
    })
}

/// The type of a dense PE operand from its tag and perf variant: float32 with variant 02 is
/// float32r.
#[must_use]
pub const fn operand_dtype(tag: u8, perf_variant: u8, generation: Gen) -> Option<Dtype> {
    match (tag, perf_variant) {
        (0x0A, 0x02) => Some(Dtype::Float32r),
        _ => tag_dtype(tag, generation),
    }
}

/// The type that the tag of an MX data operand stands for: 0E, 0F and 10 are the packed types.
#[must_use]
pub const fn mx_tag_dtype(tag: u8) -> Option<Dtype> {
    match tag {
        0x0E => Some(Dtype::Float8E4m3fnX4),
        0x0F => Some(Dtype::Float8E5m2X4),
        FP4_X4 => Some(Dtype::Float4E2m1fnX4),
        _ => tag_dtype(tag, Gen::Gen4),
    }
}

/// The name of a dense tag's type; see [`tag_dtype`].
#[must_use]
pub fn tag_name(tag: u8, generation: Gen) -> Option<&'static str> {
    tag_dtype(tag, generation).map(Dtype::name)
}

/// The name of an MX tag's type; see [`mx_tag_dtype`].
#[must_use]
pub fn mx_tag_name(tag: u8) -> Option<&'static str> {
    mx_tag_dtype(tag).map(Dtype::name)
}

/// Bytes that an address of this tag must be a multiple of: 4 for tags 8..=11, 2 for 4..=7, else 1.
/// The 64-bit tags, which no PE operand has, take 4 (ASSUMED, D-07).
#[must_use]
pub const fn tag_bytes(tag: u8) -> u32 {
    match tag {
        0x08..=0x0B | 0x01 | 0x0C => 4,
        0x04..=0x07 | FP4_X4 => 2,
        _ => 1,
    }
}
