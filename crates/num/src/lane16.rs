//! Rounding and widening in registers of 16-bit lanes, for narrow formats of at most 3 mantissa bits.
//!
//! A value of 8 significant bits, such as a bfloat16 or a float32 rounded to odd at that length, is moved by a power
//! of two to where the format's exponent bias is that of float16, and converted to float16. That is exact from 2^-17
//! up; below, it rounds up. A narrow code is the upper part of a float16 code, subnormals included, so rounding is
//! integer addition. The conversion cannot create a tie that matters: the smallest subnormal of the format is there
//! at least 2^-17, so what was inexact lies below it, where the only tie, half of it, goes to zero like all below.

use crate::Overflow;
use crate::lane::{Float4E2m1fn, Float8E4m3, Narrow};
use crate::round::{self, F32_BIAS, F32_INF, F32_MAN_BITS, FloatRow, NonFinite};
use crate::simd::Halves;

/// Magnitude bits of a 16-bit code.
pub(crate) const MAG: u16 = 0x7FFF;
/// Mantissa bits of bfloat16.
pub(crate) const BF16_MAN_BITS: i32 = 7;

/// float16 infinity, and the NaN that narrowing gives.
const FLOAT16_INF: u16 = round::FLOAT16.overflow(Overflow::Ieee) as u16;
const FLOAT16_NAN: u16 = round::FLOAT16.nan as u16;

/// Whether [`rounded`] rounds to the format.
pub(crate) const fn fits<T: Narrow>() -> bool {
    T::ROW.man_bits <= Float8E4m3::ROW.man_bits
}

/// Exponent field of the float32 power of two that moves values of `T` to float16's exponents.
pub(crate) const fn move_field<T: Narrow>() -> i32 {
    F32_BIAS + T::ROW.bias - round::FLOAT16.bias
}

/// Codes of bfloat16 lanes times `factor`, as [`factor`] makes it; no NaN. Those of the even lanes come first. What lies
/// past the format's largest finite value comes out larger than its code.
#[inline(always)]
pub(crate) fn scaled<H: Halves, T: Narrow>(h: H, x: H::H, factor: [H::V; 2]) -> H::H {
    rounded::<H, T>(h, moved(h, x, factor))
}

/// The factor 2^(127 - scale) of scale lanes of at most 200, and the move to float16's exponents.
#[inline(always)]
pub(crate) fn factor<H: Halves, T: Narrow>(h: H, scale: H::H) -> [H::V; 2] {
    // 2^(127 - scale) has the exponent field 254 - scale.
    let field = h.splat(const { (127 + move_field::<T>()) as u16 });
    h.widen(h.shl::<BF16_MAN_BITS>(h.sub(field, scale)))
}

/// Magnitude codes of bfloat16 lanes, those of the even lanes first.
#[inline(always)]
pub(crate) fn encode<H: Halves, T: Narrow>(h: H, x: H::H, overflow: Overflow) -> H::H {
    let moved = moved(h, x, factor::<H, T>(h, h.splat(127)));
    // What overflow gives is the largest finite code or, in each of these formats, the one after it.
    let code = h.min(rounded::<H, T>(h, moved), h.splat(T::ROW.overflow(overflow) as u16));
    h.select(h.gt(moved, h.splat(FLOAT16_INF)), h.splat(T::ROW.nan as u16), code)
}

#[inline(always)]
fn moved<H: Halves>(h: H, x: H::H, [fa, fb]: [H::V; 2]) -> H::H {
    let [a, b] = h.widen(h.and(x, h.splat(MAG)));
    h.float16_up([h.mulf(a, fa), h.mulf(b, fb)])
}

/// Codes of float16 lanes that hold moved magnitudes.
#[inline(always)]
fn rounded<H: Halves, T: Narrow>(h: H, moved: H::H) -> H::H {
    let drop = const { round::FLOAT16.man_bits - T::ROW.man_bits };
    // Half a step is added, less one unit if the code is even.
    let even = h.eq(h.and(moved, h.splat(1 << drop)), h.splat(0));
    h.round_shr(h.add(moved, even), h.splat(1 << (15 - drop)))
}

/// What [`e2m1_steps`] subtracts for scale lanes from 3 to 254.
#[inline(always)]
pub(crate) fn e2m1_base<H: Halves>(h: H, scale: H::H) -> H::H {
    h.sub(h.shl::<BF16_MAN_BITS>(scale), h.splat(E2M1_BELOW))
}

/// From the bfloat16 bits of 2^(scale - 127) down to those just past the last step that counts nothing.
const E2M1_BELOW: u16 = 0x3F80 - (0x3E60 + 1);

/// How many quarters of a bfloat16 octave lanes of a block lie above the least that are not zero in float4_e2m1fn.
///
/// The ties between its values, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5 and 5, are quarters of octaves. A tie goes to the
/// even code, that is up where bit 6 of the bfloat16 is set and else down; counting one unit less where it is clear
/// leaves nothing to tell ties from what is above them.
#[inline(always)]
pub(crate) fn e2m1_steps<H: Halves>(h: H, x: H::H, base: H::H) -> H::H {
    let mag = h.and(x, h.splat(MAG));
    let bit = h.splat(0x40);
    let up = h.eq(h.and(mag, bit), bit);
    h.shr::<5>(h.sub_floor(h.sub(mag, up), base))
}

/// Codes, less one, of the steps from the fourth on: the ties lie at steps 1, 7, 10, 12, 14, 16 and 18.
pub(crate) const E2M1_STEPS: [u8; 16] = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6];

/// [`e2m1_steps`] of bfloat16 lanes as they are; NaNs become zero.
#[inline(always)]
pub(crate) fn encode_e2m1<H: Halves>(h: H, x: H::H) -> H::H {
    let number = h.gt(h.splat(0x7F81), h.and(x, h.splat(MAG)));
    h.and(number, e2m1_steps(h, x, e2m1_base(h, h.splat(127))))
}

/// The low and high bytes of the bits that a format's first 16 values have in another.
const fn table_of<T: Narrow>(to: FloatRow) -> [[u8; 16]; 2] {
    let mut table = [[0; 16]; 2];
    let mut code = 0;
    while code < 16 {
        let bits = to.encode(T::ROW.decode(code as u32), Overflow::Ieee);
        [table[0][code], table[1][code]] = (bits as u16).to_le_bytes();
        code += 1;
    }
    table
}

/// bfloat16 lanes of codes whose bits above the format's width are zero.
#[inline(always)]
pub(crate) fn decode<H: Halves, T: Narrow>(h: H, code: H::H) -> H::H {
    let row = T::ROW;
    let table = const { &table_of::<T>(round::BFLOAT16) };
    if row.sign_shift() == 3 {
        return h.lookup(table, code);
    }
    let mag = h.and(code, h.splat(0x7F));
    let sign = h.shl::<8>(h.xor(code, mag));
    let shifted = match row.man_bits {
        2 => h.shl::<5>(mag),
        3 => h.shl::<4>(mag),
        _ => h.shl::<3>(mag),
    };
    let normal = h.add(shifted, h.splat(((F32_BIAS - row.bias) as u16) << BF16_MAN_BITS));
    let small = h.gt(h.splat(1 << row.man_bits), mag);
    let bits = h.select(small, h.lookup(table, mag), normal);
    let past = h.gt(mag, h.splat(row.max_finite() as u16));
    let bits = match row.non_finite {
        NonFinite::None => bits,
        NonFinite::NanOnly => h.select(past, h.splat(0x7FC0), bits),
        NonFinite::Ieee => {
            let nan = h.gt(mag, h.splat(row.max_finite() as u16 + 1));
            let infinity = h.splat((F32_INF >> 16) as u16);
            h.select(past, h.select(nan, h.splat(0x7FC0), infinity), bits)
        }
    };
    h.or(sign, bits)
}

/// float32 of the sign-extended codes of an 8-bit format.
///
/// Its bits are those of a float16 with another bias, subnormals included, so the conversion of float16 gives the value
/// but for a power of two.
#[inline(always)]
pub(crate) fn decode_floats<H: Halves, T: Narrow>(h: H, code: H::H) -> [H::V; 2] {
    let row = T::ROW;
    let shift = const { round::FLOAT16.man_bits - T::ROW.man_bits };
    let placed = match row.man_bits {
        2 => h.shl::<8>(code),
        3 => h.shl::<7>(code),
        _ => h.shl::<6>(code),
    };
    let half = h.and(placed, h.splat(!MAG | 0x7F << shift));
    let mag = h.and(half, h.splat(MAG));
    let first = (row.max_finite() as u16 + 1) << shift;
    let half = match row.non_finite {
        NonFinite::None => half,
        NonFinite::NanOnly => h.add(half, h.and(h.eq(mag, h.splat(first)), h.splat(FLOAT16_NAN - first))),
        NonFinite::Ieee => {
            let nan = h.or(h.and(half, h.splat(!MAG)), h.splat(FLOAT16_NAN));
            let past = h.gt(mag, h.splat(first - 1));
            let infinity = h.or(half, h.and(past, h.splat(FLOAT16_INF)));
            h.select(h.gt(mag, h.splat(first)), nan, infinity)
        }
    };
    let floats = h.float16_down(half);
    if row.bias == round::FLOAT16.bias {
        return floats;
    }
    let factor =
        h.float(f32::from_bits(((F32_BIAS + round::FLOAT16.bias - row.bias) as u32) << F32_MAN_BITS));
    [h.mulf(floats[0], factor), h.mulf(floats[1], factor)]
}

/// float32 of the codes of float4_e2m1fn.
#[inline(always)]
pub(crate) fn decode_e2m1<H: Halves>(h: H, code: H::H) -> [H::V; 2] {
    h.float16_down(h.lookup(const { &table_of::<Float4E2m1fn>(round::FLOAT16) }, code))
}
