//! MX blocks: 32 narrow floats that share one power-of-two scale.
//!
//! A block is 8 consecutive partitions by 4 consecutive elements of a partition, the four lanes of one `x4`
//! container. A quantized tensor of `[P, F]` elements is `[P, F / 4]` containers and `[P / 8, F / 4]` scales, one
//! byte each: scale code `s` stands for 2^(s - 127).

mod definition;
mod dequantize;
mod layout;
mod quantize;
mod quantize16;

use std::fmt;
use std::str::FromStr;

pub(crate) use definition::factors;
pub use dequantize::{dequantize, expand};
pub use layout::{
    CHECKPOINT_BLOCK, ScaleOffset, TILE_K, checkpoint_to_tile, gather_scales, pack, scatter_scales,
    tile_to_checkpoint, unpack,
};
pub use quantize::{quantize, quantize_counted};

use crate::{Dtype, Format, NumError};

/// Partitions of a block.
pub const BLOCK_ROWS: usize = 8;
/// Elements of a block in one partition: the lanes of a container.
pub const BLOCK_COLS: usize = 4;

/// The element formats MX blocks are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MxFormat {
    /// 4-bit floats; the engine multiplies them but does not quantize to them (D-22).
    Float4E2m1fn,
    /// 8-bit floats with 3 mantissa bits.
    Float8E4m3fn,
    /// 8-bit floats with 2 mantissa bits.
    Float8E5m2,
}

impl MxFormat {
    /// Every format.
    pub const ALL: [MxFormat; 3] = [MxFormat::Float4E2m1fn, MxFormat::Float8E4m3fn, MxFormat::Float8E5m2];

    /// The type of the containers.
    pub const fn dtype(self) -> Dtype {
        match self {
            Self::Float4E2m1fn => Dtype::Float4E2m1fnX4,
            Self::Float8E4m3fn => Dtype::Float8E4m3fnX4,
            Self::Float8E5m2 => Dtype::Float8E5m2X4,
        }
    }

    /// The format of one element.
    pub const fn format(self) -> Format {
        match self {
            Self::Float4E2m1fn => Format::Float4E2m1fn,
            Self::Float8E4m3fn => Format::Float8E4m3fn,
            Self::Float8E5m2 => Format::Float8E5m2,
        }
    }

    /// Bytes of one container.
    pub const fn container_bytes(self) -> usize {
        self.dtype().bytes()
    }

    /// Exponent of the largest element value.
    pub const fn emax(self) -> u8 {
        match self {
            Self::Float4E2m1fn => 2,
            Self::Float8E4m3fn => 8,
            Self::Float8E5m2 => 15,
        }
    }
}

impl TryFrom<Dtype> for MxFormat {
    type Error = NumError;

    /// The format of an `x4` container type.
    fn try_from(dtype: Dtype) -> Result<Self, NumError> {
        Self::ALL.into_iter().find(|format| format.dtype() == dtype).ok_or(NumError::NotMx { dtype })
    }
}

impl fmt::Display for MxFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.format().name())
    }
}

/// How a block's scale follows from its elements, and what happens to values it cannot scale (D-05).
///
/// `e` is the largest float32 exponent field in the block, subnormals counting as 0, and `E` the largest
/// exponent of the element format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ScaleRule {
    /// `max(e - E, 1)`. NaN elements become zero with their sign (D-33). The default of the original simulator.
    #[default]
    Reference,
    /// As `Reference` with `E` one lower, so that no block maximum saturates.
    ReferenceAlt,
    /// `max(e - (E - 1), 0)`, as documented for the fourth core generation; NaN elements stay NaN where the
    /// format has one.
    Hardware,
    /// The sample algorithm of OCP MX 1.0: `max(e - E, 0)`, and a block with a NaN or an infinity gets scale
    /// 255 and zero elements (D-47).
    Ocp,
}

impl ScaleRule {
    /// Every rule.
    pub const ALL: [ScaleRule; 4] =
        [ScaleRule::Reference, ScaleRule::ReferenceAlt, ScaleRule::Hardware, ScaleRule::Ocp];

    /// The name options and reports use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::ReferenceAlt => "reference-alt",
            Self::Hardware => "hardware",
            Self::Ocp => "ocp",
        }
    }

    /// What is subtracted from a block's exponent field.
    pub(crate) const fn shift(self, format: MxFormat) -> u32 {
        match self {
            Self::Reference | Self::Ocp => format.emax() as u32,
            Self::ReferenceAlt | Self::Hardware => format.emax() as u32 - 1,
        }
    }

    /// The smallest scale the rule gives.
    pub(crate) const fn floor(self) -> u32 {
        match self {
            Self::Reference | Self::ReferenceAlt => 1,
            Self::Hardware | Self::Ocp => 0,
        }
    }

    /// Whether scale 255 means 2^128 instead of NaN (D-46).
    pub(crate) const fn scale_255_is_finite(self) -> bool {
        matches!(self, Self::Reference | Self::ReferenceAlt)
    }

    /// Whether NaN elements become zeros.
    pub(crate) const fn suppresses_nan(self) -> bool {
        matches!(self, Self::Reference | Self::ReferenceAlt)
    }
}

impl fmt::Display for ScaleRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ScaleRule {
    type Err = NumError;

    fn from_str(name: &str) -> Result<Self, NumError> {
        Self::ALL
            .into_iter()
            .find(|rule| rule.name() == name)
            .ok_or_else(|| NumError::UnknownRule { name: name.to_owned() })
    }
}

/// The elements to quantize, `[P, F]` row-major.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// float32 values.
    Float32(&'a [f32]),
    /// Little-endian bfloat16 containers.
    Bfloat16(&'a [u8]),
    /// Little-endian float16 containers.
    Float16(&'a [u8]),
}

impl<'a> From<&'a [f32]> for Source<'a> {
    fn from(values: &'a [f32]) -> Self {
        Self::Float32(values)
    }
}

/// What quantizing did to elements beyond rounding them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Elements that were NaN after scaling: those given as NaN, and an infinity whose block's scale factor
    /// underflows to 0. Zeros in the output under the reference rules and in float4_e2m1fn.
    pub nan: u64,
    /// Elements clamped to the largest finite value, infinities included.
    pub saturated: u64,
    /// Nonzero elements that became zero.
    pub flushed: u64,
    /// Blocks with scale 255, whose elements the other counts leave out; only under `ocp`.
    pub nan_blocks: u64,
}

impl std::ops::Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            nan: self.nan + other.nan,
            saturated: self.saturated + other.saturated,
            flushed: self.flushed + other.flushed,
            nan_blocks: self.nan_blocks + other.nan_blocks,
        }
    }
}

/// Scale factor 2^(127 - scale) of the quantizer: the float32 with exponent field `254 - scale`.
///
/// Scale 254 gives 0 and not the subnormal 2^-127, as the original's bit construction does; only float4_e2m1fn
/// blocks with infinities or NaNs reach it.
pub(crate) const fn prescale_bits(scale: u32) -> u32 {
    254_u32.wrapping_sub(scale) << 23
}
