//! The one rounding core: a binary floating-point format is a row of parameters over it.

use crate::Overflow;

/// What the codes above the largest finite magnitude mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NonFinite {
    /// The top exponent holds infinity (mantissa 0) and NaNs.
    Ieee,
    /// No infinity; the all-ones magnitude is the only NaN.
    NanOnly,
    /// Every code is a finite number.
    None,
}

/// A sign-magnitude binary format of at most 16 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FloatRow {
    pub(crate) exp_bits: u32,
    pub(crate) man_bits: u32,
    pub(crate) bias: i32,
    pub(crate) non_finite: NonFinite,
    /// Magnitude bits of the NaN that narrowing produces; unused when the format has none.
    pub(crate) nan: u32,
}

pub(crate) const FLOAT4_E2M1FN: FloatRow =
    FloatRow { exp_bits: 2, man_bits: 1, bias: 1, non_finite: NonFinite::None, nan: 0 };
pub(crate) const FLOAT8_E3M4: FloatRow =
    FloatRow { exp_bits: 3, man_bits: 4, bias: 3, non_finite: NonFinite::Ieee, nan: 0x78 };
pub(crate) const FLOAT8_E4M3: FloatRow =
    FloatRow { exp_bits: 4, man_bits: 3, bias: 7, non_finite: NonFinite::Ieee, nan: 0x7C };
pub(crate) const FLOAT8_E4M3FN: FloatRow =
    FloatRow { exp_bits: 4, man_bits: 3, bias: 7, non_finite: NonFinite::NanOnly, nan: 0x7F };
pub(crate) const FLOAT8_E5M2: FloatRow =
    FloatRow { exp_bits: 5, man_bits: 2, bias: 15, non_finite: NonFinite::Ieee, nan: 0x7E };
pub(crate) const BFLOAT16: FloatRow =
    FloatRow { exp_bits: 8, man_bits: 7, bias: 127, non_finite: NonFinite::Ieee, nan: 0x7FC0 };
pub(crate) const FLOAT16: FloatRow =
    FloatRow { exp_bits: 5, man_bits: 10, bias: 15, non_finite: NonFinite::Ieee, nan: 0x7E00 };
/// Mantissa bits, exponent bias and magnitude mask of a float32.
pub(crate) const F32_MAN_BITS: u32 = 23;
pub(crate) const F32_BIAS: i32 = 127;
pub(crate) const F32_MAG: u32 = 0x7FFF_FFFF;
pub(crate) const F32_INF: u32 = 0x7F80_0000;

impl FloatRow {
    /// Position of the sign bit.
    pub(crate) const fn sign_shift(self) -> u32 {
        self.exp_bits + self.man_bits
    }

    /// The largest magnitude code that is a finite number.
    pub(crate) const fn max_finite(self) -> u32 {
        let all = (1 << self.sign_shift()) - 1;
        match self.non_finite {
            NonFinite::Ieee => all - (1 << self.man_bits),
            NonFinite::NanOnly => all - 1,
            NonFinite::None => all,
        }
    }

    /// What a magnitude past the largest finite one becomes.
    pub(crate) const fn overflow(self, rule: Overflow) -> u32 {
        match (rule, self.non_finite) {
            (Overflow::Saturate, _) | (_, NonFinite::None) => self.max_finite(),
            (Overflow::Ieee, NonFinite::Ieee) => self.max_finite() + 1,
            (Overflow::Ieee, NonFinite::NanOnly) => self.nan,
        }
    }

    /// The code of `x`: one rounding, to nearest, ties to even.
    pub(crate) const fn encode(self, x: f32, rule: Overflow) -> u32 {
        let bits = x.to_bits();
        let sign = (bits >> 31) << self.sign_shift();
        let mag = bits & F32_MAG;
        if mag > F32_INF {
            // A format without NaN stores the zero of the same sign.
            return sign | self.nan;
        }
        let field = mag >> F32_MAN_BITS;
        let (exp, sig) = match field {
            0 => (1, mag),
            _ => (field as i32, mag & 0x7F_FFFF | 0x80_0000),
        };
        // x = sig * 2^(exp - 150). The result counts units of 2^(scale - bias - man_bits), where `scale`
        // is the exponent field the result will carry, at least 1 so that subnormals share the unit of
        // the smallest normals.
        let scale = exp - F32_BIAS + self.bias;
        let scale = if scale < 1 { 1 } else { scale };
        let drop = (scale - self.bias - self.man_bits as i32) - (exp - F32_BIAS - F32_MAN_BITS as i32);
        let units = round_half_even(sig, drop as u32);
        // A normal result has its leading one in `units`, which lifts the exponent field by one.
        let code = ((scale - 1) as u32) * (1 << self.man_bits) + units;
        if mag == F32_INF || code > self.max_finite() { sign | self.overflow(rule) } else { sign | code }
    }

    /// The value of a code; exact. Bits above the sign are ignored, NaNs come back canonical.
    pub(crate) const fn decode(self, code: u32) -> f32 {
        let sign = (code >> self.sign_shift() & 1) << 31;
        let mag = code & ((1 << self.sign_shift()) - 1);
        if mag > self.max_finite() {
            let inf = matches!(self.non_finite, NonFinite::Ieee) && mag == self.max_finite() + 1;
            return f32::from_bits(sign | if inf { F32_INF } else { 0x7FC0_0000 });
        }
        let field = (mag >> self.man_bits) as i32;
        let man = mag & ((1 << self.man_bits) - 1);
        let bits = if field > 0 {
            ((field - self.bias + F32_BIAS) as u32) << F32_MAN_BITS | man << (F32_MAN_BITS - self.man_bits)
        } else if man == 0 {
            0
        } else {
            // Renormalise: shift the leading one out of the mantissa, lowering the exponent to match.
            let lead = 31 - man.leading_zeros();
            let exp = lead as i32 + 1 - self.bias - self.man_bits as i32 + F32_BIAS;
            (exp as u32) << F32_MAN_BITS | (man ^ 1 << lead) << (F32_MAN_BITS - lead)
        };
        f32::from_bits(sign | bits)
    }
}

/// `value / 2^drop`, rounded to nearest with ties to even. `value` is below 2^24.
const fn round_half_even(value: u32, drop: u32) -> u32 {
    match drop {
        0 => value,
        // Past 24 bits even the largest significand is below half a unit.
        25.. => 0,
        _ => {
            let half = 1 << (drop - 1);
            let odd = value >> drop & 1;
            (value + half - 1 + odd) >> drop
        }
    }
}
