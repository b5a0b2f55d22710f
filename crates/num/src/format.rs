//! Casts of single codes: what each format's bits mean and how a float32 becomes them.

use std::fmt;

use crate::Dtype;
use crate::round::{self, F32_BIAS, F32_MAN_BITS};

/// What a value beyond the largest finite one becomes when it is narrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// The largest finite value of the same sign, for finite overflow and for infinities alike; NaN stays NaN.
    Saturate,
    /// Infinity, or NaN in a format that has no infinity (float8_e4m3fn).
    Ieee,
}

/// How one code is read: every element type of at most 32 bits, and the 4-bit float that only exists
/// packed in containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// Lane of [`Dtype::Float4E2m1fnX4`]: one code a byte, in the low nibble. 0, 0.5, 1, 1.5, 2, 3, 4, 6.
    Float4E2m1fn,
    /// See [`Dtype::Float8E3m4`].
    Float8E3m4,
    /// See [`Dtype::Float8E4m3`].
    Float8E4m3,
    /// See [`Dtype::Float8E4m3fn`].
    Float8E4m3fn,
    /// See [`Dtype::Float8E5m2`].
    Float8E5m2,
    /// See [`Dtype::Float8E8m0fnu`].
    Float8E8m0fnu,
    /// See [`Dtype::Bfloat16`].
    Bfloat16,
    /// See [`Dtype::Float16`].
    Float16,
    /// See [`Dtype::Float32`].
    Float32,
    /// See [`Dtype::Float32r`].
    Float32r,
    /// See [`Dtype::Uint8`].
    Uint8,
    /// See [`Dtype::Int8`].
    Int8,
    /// See [`Dtype::Uint16`].
    Uint16,
    /// See [`Dtype::Int16`].
    Int16,
    /// See [`Dtype::Uint32`].
    Uint32,
    /// See [`Dtype::Int32`].
    Int32,
}

impl Format {
    /// Every format, the floats first.
    pub const ALL: [Format; 16] = [
        Format::Float4E2m1fn,
        Format::Float8E3m4,
        Format::Float8E4m3,
        Format::Float8E4m3fn,
        Format::Float8E5m2,
        Format::Float8E8m0fnu,
        Format::Bfloat16,
        Format::Float16,
        Format::Float32,
        Format::Float32r,
        Format::Uint8,
        Format::Int8,
        Format::Uint16,
        Format::Int16,
        Format::Uint32,
        Format::Int32,
    ];

    /// The format's name, such as `float8_e4m3fn`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Float4E2m1fn => "float4_e2m1fn",
            Self::Float8E3m4 => Dtype::Float8E3m4.name(),
            Self::Float8E4m3 => Dtype::Float8E4m3.name(),
            Self::Float8E4m3fn => Dtype::Float8E4m3fn.name(),
            Self::Float8E5m2 => Dtype::Float8E5m2.name(),
            Self::Float8E8m0fnu => Dtype::Float8E8m0fnu.name(),
            Self::Bfloat16 => Dtype::Bfloat16.name(),
            Self::Float16 => Dtype::Float16.name(),
            Self::Float32 => Dtype::Float32.name(),
            Self::Float32r => Dtype::Float32r.name(),
            Self::Uint8 => Dtype::Uint8.name(),
            Self::Int8 => Dtype::Int8.name(),
            Self::Uint16 => Dtype::Uint16.name(),
            Self::Int16 => Dtype::Int16.name(),
            Self::Uint32 => Dtype::Uint32.name(),
            Self::Int32 => Dtype::Int32.name(),
        }
    }

    /// The format with this exact name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Dtype {
    /// How one lane of this type is read; `None` for the 64-bit integers, whose codes exceed 32 bits.
    ///
    /// An `x4` type answers with the format of its lanes.
    pub const fn format(self) -> Option<Format> {
        Some(match self {
            Self::Uint8 => Format::Uint8,
            Self::Int8 => Format::Int8,
            Self::Float4E2m1fnX4 => Format::Float4E2m1fn,
            Self::Float8E3m4 => Format::Float8E3m4,
            Self::Float8E4m3 => Format::Float8E4m3,
            Self::Float8E4m3fn | Self::Float8E4m3fnX4 => Format::Float8E4m3fn,
            Self::Float8E8m0fnu => Format::Float8E8m0fnu,
            Self::Float8E5m2 | Self::Float8E5m2X4 => Format::Float8E5m2,
            Self::Uint16 => Format::Uint16,
            Self::Int16 => Format::Int16,
            Self::Bfloat16 => Format::Bfloat16,
            Self::Float16 => Format::Float16,
            Self::Uint32 => Format::Uint32,
            Self::Int32 => Format::Int32,
            Self::Float32 => Format::Float32,
            Self::Float32r => Format::Float32r,
            Self::Uint64 | Self::Int64 => return None,
        })
    }
}

/// The float32 value of one code. Bits above the format's width are ignored.
///
/// Exact, except that 32-bit integers beyond 2^24 round to the nearest float32, ties to even. A NaN comes
/// back as `7FC00000 | sign`, except from bfloat16, float32 and float32r, whose bits are kept. A float32r
/// container is read as it stands: what stores or multiplies it rounds, see [`round_f32r`].
#[inline]
pub const fn decode(format: Format, code: u32) -> f32 {
    decode_inline(format, code)
}

/// [`decode`] for callers whose format is a constant.
#[inline(always)]
pub(crate) const fn decode_inline(format: Format, code: u32) -> f32 {
    match format {
        Format::Float4E2m1fn => round::FLOAT4_E2M1FN.decode(code),
        Format::Float8E3m4 => round::FLOAT8_E3M4.decode(code),
        Format::Float8E4m3 => round::FLOAT8_E4M3.decode(code),
        Format::Float8E4m3fn => round::FLOAT8_E4M3FN.decode(code),
        Format::Float8E5m2 => round::FLOAT8_E5M2.decode(code),
        Format::Float8E8m0fnu => decode_e8m0(code as u8),
        // A shift, so that payloads and subnormals carry over untouched.
        Format::Bfloat16 => f32::from_bits(code << 16),
        Format::Float16 => round::FLOAT16.decode(code),
        Format::Float32 | Format::Float32r => f32::from_bits(code),
        Format::Uint8 => code as u8 as f32,
        Format::Int8 => code as u8 as i8 as f32,
        Format::Uint16 => code as u16 as f32,
        Format::Int16 => code as u16 as i16 as f32,
        Format::Uint32 => code as f32,
        Format::Int32 => code as i32 as f32,
    }
}

/// The code of a float32 in the given format, in the low bits of the result.
///
/// Rounds once, to nearest with ties to even. `overflow` governs the float formats narrower than float32;
/// float4_e2m1fn and the integers saturate under both rules, and float8_e8m0fnu sends what it cannot hold
/// to its NaN. NaN becomes the canonical NaN of the format with the sign kept; the signed zero in
/// float4_e2m1fn, 0 in the integers (D-32), and itself in float32 and float32r.
#[inline]
pub fn encode(format: Format, x: f32, overflow: Overflow) -> u32 {
    encode_inline(format, x, overflow)
}

/// [`encode`] for callers whose format is a constant.
#[inline(always)]
pub(crate) fn encode_inline(format: Format, x: f32, overflow: Overflow) -> u32 {
    match format {
        Format::Float4E2m1fn => round::FLOAT4_E2M1FN.encode(x, overflow),
        Format::Float8E3m4 => round::FLOAT8_E3M4.encode(x, overflow),
        Format::Float8E4m3 => round::FLOAT8_E4M3.encode(x, overflow),
        Format::Float8E4m3fn => round::FLOAT8_E4M3FN.encode(x, overflow),
        Format::Float8E5m2 => round::FLOAT8_E5M2.encode(x, overflow),
        Format::Float8E8m0fnu => u32::from(encode_e8m0(x)),
        Format::Bfloat16 => round::BFLOAT16.encode(x, overflow),
        Format::Float16 => round::FLOAT16.encode(x, overflow),
        Format::Float32 => x.to_bits(),
        Format::Float32r => {
            let rounded = round_f32r(x);
            match overflow {
                Overflow::Saturate if rounded.is_infinite() => F32R_MAX.copysign(x).to_bits(),
                _ => rounded.to_bits(),
            }
        }
        // `as` saturates and sends NaN to 0, which is the rule wanted here.
        Format::Uint8 => u32::from(x.round_ties_even() as u8),
        Format::Int8 => u32::from(x.round_ties_even() as i8 as u8),
        Format::Uint16 => u32::from(x.round_ties_even() as u16),
        Format::Int16 => u32::from(x.round_ties_even() as i16 as u16),
        Format::Uint32 => x.round_ties_even() as u32,
        Format::Int32 => x.round_ties_even() as i32 as u32,
    }
}

/// The largest finite float32r.
const F32R_MAX: f32 = f32::from_bits(0x7F7F_E000);

/// Rounds to the 10 mantissa bits of float32r: nearest, ties to even (D-04). NaNs and infinities pass unchanged.
#[inline(always)]
pub const fn round_f32r(x: f32) -> f32 {
    let bits = x.to_bits();
    if bits & round::F32_MAG >= round::F32_INF {
        return x;
    }
    let odd = bits >> 13 & 1;
    // A carry out of the mantissa steps the exponent, up to infinity: exactly the rounding wanted.
    f32::from_bits((bits + 0xFFF + odd) & !0x1FFF)
}

/// 2^(code - 127); code 255 is NaN, code 0 is the subnormal 2^-127.
#[inline(always)]
pub(crate) const fn decode_e8m0(code: u8) -> f32 {
    match code {
        0 => f32::from_bits(0x0040_0000),
        255 => f32::NAN,
        _ => f32::from_bits((code as u32) << F32_MAN_BITS),
    }
}

/// The nearest power of two, halfway cases upward; zero, negatives, NaN and what rounds past 2^127 give 255.
///
/// Above 2^-127 the subnormals all go to code 1: the format is entered through the exponent field (D-45).
#[inline(always)]
pub(crate) const fn encode_e8m0(x: f32) -> u8 {
    const MIN: u32 = 1 << (F32_MAN_BITS - 1);
    const _: () = assert!(F32_BIAS == 127, "both formats share the bias, so exponent fields are codes");
    let bits = x.to_bits();
    match bits {
        0 => 255,
        1..=MIN => 0,
        // The carry of half an octave rounds; 0xFF from infinity and above stays 0xFF.
        0x0040_0001..=0x007F_FFFF => 1,
        0x0080_0000..=round::F32_INF => ((bits + MIN) >> F32_MAN_BITS) as u8,
        _ => 255,
    }
}
