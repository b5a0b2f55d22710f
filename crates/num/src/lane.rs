//! Rounding and widening in whole registers, without branches.
//!
//! These restate `round` for speed, and the tests hold them to it for every input that matters.

use crate::Overflow;
use crate::round::{self, F32_BIAS, F32_INF, F32_MAG, F32_MAN_BITS, FloatRow, NonFinite};
use crate::simd::Simd;

/// The canonical NaN that widening gives.
pub(crate) const NAN_BITS: u32 = 0x7FC0_0000;

/// A narrow float format as a type, so that its parameters are constants in a kernel.
pub(crate) trait Narrow: Copy + Send + Sync + 'static {
    /// The format's parameters.
    const ROW: FloatRow;
    /// Bits of the float32 that equals the largest finite value.
    const MAX_BITS: u32 = Self::ROW.decode(Self::ROW.max_finite()).to_bits();
    /// Bits of the smallest float32 magnitude that rounds past the largest finite value.
    const SATURATES_FROM: u32 = {
        let half = 1 << (F32_MAN_BITS - Self::ROW.man_bits - 1);
        // A tie goes to the even code: away from an odd largest code, back to an even one.
        Self::MAX_BITS + half + (Self::ROW.max_finite() & 1 ^ 1)
    };
}

macro_rules! narrow_formats {
    ($($name:ident = $row:ident),*) => {$(
        /// The format of the same name.
        #[derive(Clone, Copy)]
        pub(crate) struct $name;
        impl Narrow for $name {
            const ROW: FloatRow = round::$row;
        }
    )*};
}

narrow_formats! {
    Float4E2m1fn = FLOAT4_E2M1FN, Float8E3m4 = FLOAT8_E3M4, Float8E4m3 = FLOAT8_E4M3,
    Float8E4m3fn = FLOAT8_E4M3FN, Float8E5m2 = FLOAT8_E5M2, Bfloat16 = BFLOAT16, Float16 = FLOAT16
}

/// Magnitude codes of float32 lanes; their signs are ignored.
#[inline(always)]
pub(crate) fn encode<S: Simd, T: Narrow>(s: S, x: S::V, overflow: Overflow) -> S::V {
    let mag = s.and(x, s.splat(F32_MAG));
    encode_mag::<S, T>(s, mag, overflow, Some(s.splat(T::ROW.nan)))
}

/// Magnitude codes of float32 magnitudes. NaN becomes `nan`; without one there must be none.
#[inline(always)]
pub(crate) fn encode_mag<S: Simd, T: Narrow>(s: S, mag: S::V, overflow: Overflow, nan: Option<S::V>) -> S::V {
    let code = match overflow {
        // Integer order is magnitude order, so clamping first leaves nothing to overflow.
        Overflow::Saturate => round_mag::<S, T>(s, s.min(mag, s.splat(T::MAX_BITS))),
        Overflow::Ieee => {
            let past = s.gt(mag, s.splat(T::SATURATES_FROM - 1));
            let over = const { T::ROW.overflow(Overflow::Ieee) };
            s.select(past, s.splat(over), round_mag::<S, T>(s, mag))
        }
    };
    match nan {
        Some(nan) => s.select(s.is_nan(mag), nan, code),
        None => code,
    }
}

/// Rounds magnitudes to the format's precision; meaningless from `SATURATES_FROM` on.
#[inline(always)]
fn round_mag<S: Simd, T: Narrow>(s: S, mag: S::V) -> S::V {
    let row = T::ROW;
    let drop = F32_MAN_BITS - row.man_bits;
    if row.bias == F32_BIAS {
        // The exponents agree, so rounding is integer addition.
        let odd = s.and(s.shr(mag, drop), s.splat(1));
        let rounded = s.add(s.add(mag, s.splat((1 << (drop - 1)) - 1)), odd);
        return s.shr(rounded, drop);
    }
    // A float32 whose last place is worth one step of the result rounds what is added to it to that step, and
    // holds the number of steps in its low bits. The step follows the exponent down to the format's smallest.
    let min_normal = ((1 - row.bias + F32_BIAS) as u32) << F32_MAN_BITS;
    let octave = s.sub_floor(s.and(mag, s.splat(F32_INF)), s.splat(min_normal));
    let magic = s.add(octave, s.splat(min_normal + (drop << F32_MAN_BITS)));
    let steps = s.sub(s.addf(mag, magic), magic);
    s.add(steps, s.shr(octave, drop))
}

/// The float32 bits of a format's first eight codes.
const fn small_table<T: Narrow>() -> [u32; 8] {
    let mut table = [0; 8];
    let mut code = 0;
    while code < 8 {
        table[code] = T::ROW.decode(code as u32).to_bits();
        code += 1;
    }
    table
}

/// float32 lanes of codes whose bits above the format's width are zero.
#[inline(always)]
pub(crate) fn decode<S: Simd, T: Narrow>(s: S, code: S::V) -> S::V {
    let row = T::ROW;
    if S::LOOKS_UP && row.sign_shift() == 3 {
        // Eight magnitudes are one table. The sign is bit 3 and goes to bit 31.
        let sign = s.and(s.shl(code, 28), s.splat(!F32_MAG));
        return s.or(sign, s.lookup(const { &small_table::<T>() }, code));
    }
    let mag = s.and(code, s.splat((1 << row.sign_shift()) - 1));
    let sign = s.shl(s.xor(code, mag), 31 - row.sign_shift());
    let shifted = s.shl(mag, F32_MAN_BITS - row.man_bits);
    let normal = s.add(shifted, s.splat(((F32_BIAS - row.bias) as u32) << F32_MAN_BITS));
    // With the exponent field at 1 instead of 0 the mantissa gains a leading one; subtracting that again
    // leaves the subnormal, exactly.
    let lead = s.splat(((F32_BIAS - row.bias + 1) as u32) << F32_MAN_BITS);
    let small = s.subf(s.add(shifted, lead), lead);
    let bits = s.select(s.gt(s.splat(1 << row.man_bits), mag), small, normal);
    let past = s.gt(mag, s.splat(row.max_finite()));
    let bits = match row.non_finite {
        NonFinite::None => bits,
        NonFinite::NanOnly => s.select(past, s.splat(NAN_BITS), bits),
        NonFinite::Ieee => {
            let nan = s.gt(mag, s.splat(row.max_finite() + 1));
            s.select(past, s.select(nan, s.splat(NAN_BITS), s.splat(F32_INF)), bits)
        }
    };
    s.or(sign, bits)
}
