//! The element formats a product can be computed in.

use std::fmt;
use std::str::FromStr;

use hadal_isa::Gen;
use hadal_num::Dtype;
use hadal_num::mx::MxFormat;

use crate::GemmError;

/// Element format of both operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// bfloat16.
    Bf16,
    /// float16.
    Fp16,
    /// float32, in the two passes the encoder emits.
    Fp32,
    /// float32 rounded to 10 mantissa bits.
    Fp32r,
    /// float8_e4m3, the legacy format of trn1 and trn2: infinities, largest value 240.
    E4m3,
    /// float8_e4m3fn of trn3: no infinities, largest value 448.
    E4m3fn,
    /// float8_e5m2.
    E5m2,
    /// Block-scaled float8_e4m3fn.
    Mxfp8E4m3fn,
    /// Block-scaled float8_e5m2.
    Mxfp8E5m2,
    /// Block-scaled float4_e2m1fn.
    Mxfp4,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 10] = [
        Format::Bf16,
        Format::Fp16,
        Format::Fp32,
        Format::Fp32r,
        Format::E4m3,
        Format::E4m3fn,
        Format::E5m2,
        Format::Mxfp8E4m3fn,
        Format::Mxfp8E5m2,
        Format::Mxfp4,
    ];

    /// The name options use.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Bf16 => "bf16",
            Format::Fp16 => "fp16",
            Format::Fp32 => "fp32",
            Format::Fp32r => "fp32r",
            Format::E4m3 => "e4m3",
            Format::E4m3fn => "e4m3fn",
            Format::E5m2 => "e5m2",
            Format::Mxfp8E4m3fn => "mxfp8-e4m3fn",
            Format::Mxfp8E5m2 => "mxfp8-e5m2",
            Format::Mxfp4 => "mxfp4",
        }
    }

    /// Type of the containers the array reads.
    pub const fn dtype(self) -> Dtype {
        match self {
            Format::Bf16 => Dtype::Bfloat16,
            Format::Fp16 => Dtype::Float16,
            Format::Fp32 => Dtype::Float32,
            Format::Fp32r => Dtype::Float32r,
            Format::E4m3 => Dtype::Float8E4m3,
            Format::E4m3fn => Dtype::Float8E4m3fn,
            Format::E5m2 => Dtype::Float8E5m2,
            Format::Mxfp8E4m3fn => Dtype::Float8E4m3fnX4,
            Format::Mxfp8E5m2 => Dtype::Float8E5m2X4,
            Format::Mxfp4 => Dtype::Float4E2m1fnX4,
        }
    }

    /// The block format, for the MX formats.
    pub const fn mx(self) -> Option<MxFormat> {
        match self {
            Format::Mxfp8E4m3fn => Some(MxFormat::Float8E4m3fn),
            Format::Mxfp8E5m2 => Some(MxFormat::Float8E5m2),
            Format::Mxfp4 => Some(MxFormat::Float4E2m1fn),
            _ => None,
        }
    }

    /// Whether the array of a generation takes the format.
    pub const fn is_on(self, generation: Gen) -> bool {
        match self {
            Format::E4m3 => !matches!(generation, Gen::Gen4),
            Format::E4m3fn | Format::Mxfp8E4m3fn | Format::Mxfp8E5m2 | Format::Mxfp4 => {
                matches!(generation, Gen::Gen4)
            }
            _ => true,
        }
    }

    /// The formats of a generation, in the order of [`Format::ALL`].
    pub fn of(generation: Gen) -> impl Iterator<Item = Format> {
        Format::ALL.into_iter().filter(move |f| f.is_on(generation))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = GemmError;

    fn from_str(name: &str) -> Result<Self, GemmError> {
        Format::ALL
            .into_iter()
            .find(|f| f.name() == name)
            .ok_or_else(|| GemmError::UnknownFormat { name: name.to_owned() })
    }
}
