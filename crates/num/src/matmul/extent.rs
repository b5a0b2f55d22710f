//! When a fused multiply-add gives the bits of a multiply followed by an add.
//!
//! The two differ only in whether the product is rounded, so they agree where float32 holds the product. Let all
//! finite nonzero values of one operand have at most `p` significant bits and lie in `2^low <= |v| < 2^(high + 1)`;
//! likewise `q`, `low'` and `high'` for the other. A product then
//!
//! - has at most `p + q` significant bits, which fit when `p + q <= 24`;
//! - is a multiple of `2^(low - p + 1) 2^(low' - q + 1)`, and float32 holds every multiple of `2^-149` of so few bits
//!   below its range: it does not underflow when `low + low' - (p + q) + 2 >= -149`;
//! - is below `2^(high + high' + 2)`, in range when `high + high' + 2 <= 128`. Beyond that the product must become
//!   infinity, though the unrounded product and the sum together may be finite again.
//!
//! Zeros satisfy all of it: their products are zeros of the same sign either way, and a sum of zeros takes its sign from
//! its terms. So do infinities and NaNs, which need no bound: a product with an infinity is an infinity or NaN exactly,
//! in both forms the sum is then the same infinity or NaN, and a NaN is stored as one NaN only (D-63).

use crate::Dtype;
use crate::lane::{Float4E2m1fn, Float8E3m4, Float8E4m3, Float8E4m3fn, Float8E5m2, Float16, Narrow};
use crate::simd::Simd;

/// Bounds of the finite nonzero values of a part of an operand. The order of the fields means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// Most significant bits of a value.
    bits: i32,
    /// Exponent of a value not above the smallest magnitude.
    low: i32,
    /// Exponent of the largest magnitude.
    high: i32,
}

impl Extent {
    /// Of no values but zeros.
    pub(super) const NONE: Extent = Extent { bits: 0, low: 1000, high: -1000 };

    /// Whether every product of values within the two bounds is a float32.
    pub(super) fn fuses(self, other: Extent) -> bool {
        let bits = self.bits + other.bits;
        bits <= 24 && self.low + other.low - bits + 2 >= -149 && self.high + other.high + 2 <= 128
    }

    /// Bounds of both.
    pub(super) fn join(self, other: Extent) -> Extent {
        Extent {
            bits: self.bits.max(other.bits),
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }

    /// Bounds of the values times 2^(scale - 127), rounded once, for scale codes from `least` to `most`.
    ///
    /// Rounding to a subnormal cuts bits off or carries into a power of two: the bits do not become more.
    pub(super) fn scaled(self, least: u8, most: u8) -> Extent {
        let (least, most) = (i32::from(least) - 127, i32::from(most) - 127);
        Extent { bits: self.bits, low: (self.low + least).max(-149), high: (self.high + most).max(-149) }
    }

    /// Bounds that hold for every value of a type, if those are of use.
    pub(super) fn of_type(dtype: Dtype) -> Option<Extent> {
        Some(match dtype {
            Dtype::Uint8 => Extent { bits: 8, low: 0, high: 7 },
            Dtype::Float8E3m4 => of_row::<Float8E3m4>(),
            Dtype::Float8E4m3 => of_row::<Float8E4m3>(),
            Dtype::Float8E4m3fn | Dtype::Float8E4m3fnX4 => of_row::<Float8E4m3fn>(),
            Dtype::Float8E5m2 | Dtype::Float8E5m2X4 => of_row::<Float8E5m2>(),
            Dtype::Float4E2m1fnX4 => of_row::<Float4E2m1fn>(),
            Dtype::Float16 => of_row::<Float16>(),
            _ => return None,
        })
    }
}

fn of_row<T: Narrow>() -> Extent {
    Extent {
        bits: T::ROW.man_bits as i32 + 1,
        low: exponent(T::ROW.decode(1).to_bits()),
        high: exponent(T::MAX_BITS),
    }
}

/// The exponent of a nonzero finite magnitude.
fn exponent(mag: u32) -> i32 {
    match mag >> 23 {
        0 => 31 - mag.leading_zeros() as i32 - 149,
        field => field as i32 - 127,
    }
}

/// What has been seen of an operand while it was packed, lane by lane.
#[derive(Clone, Copy)]
pub(super) struct Seen<S: Simd> {
    ones: S::V,
    top: S::V,
    bottom: S::V,
}

/// Added to a magnitude it makes zero the largest signed integer and keeps the others in order.
const ZERO_LAST: u32 = 0x7FFF_FFFF;

impl<S: Simd> Seen<S> {
    /// Nothing yet.
    #[inline(always)]
    pub(super) fn new(s: S) -> Self {
        Self { ones: s.splat(0), top: s.splat(0), bottom: s.splat(ZERO_LAST) }
    }

    /// Takes in float32 lanes.
    #[inline(always)]
    pub(super) fn take(&mut self, s: S, v: S::V) {
        let mag = s.and(v, s.splat(0x7FFF_FFFF));
        self.ones = s.or(self.ones, v);
        self.top = s.max(self.top, mag);
        self.bottom = s.min(self.bottom, s.add(mag, s.splat(ZERO_LAST)));
    }

    /// The bounds of all lanes.
    #[inline(always)]
    pub(super) fn extent(self, s: S) -> Extent {
        let mut lanes = [[0; crate::simd::RUN]; 3];
        let [ones, top, bottom] = &mut lanes;
        s.store_u32(
            ones,
            #[inline(always)]
            |_| self.ones,
        );
        s.store_u32(
            top,
            #[inline(always)]
            |_| self.top,
        );
        s.store_u32(
            bottom,
            #[inline(always)]
            |_| self.bottom,
        );
        Extent::of_lanes(ones, top, bottom)
    }
}

impl Extent {
    fn of_lanes(ones: &[u32], top: &[u32], bottom: &[u32]) -> Extent {
        let top = top.iter().copied().max().unwrap_or(0);
        let bottom = bottom.iter().map(|&b| b.cast_signed()).min().unwrap_or(i32::MAX);
        let bottom = bottom.cast_unsigned().wrapping_sub(ZERO_LAST);
        if top == 0 || bottom == 0 {
            return Extent::NONE;
        }
        // Subnormals have no leading one, but a value of `n` mantissa bits has at most `n + 1` significant ones.
        let mantissas = ones.iter().fold(0, |all, &one| all | one) & 0x007F_FFFF;
        let bits = 24 - mantissas.trailing_zeros().min(23) as i32;
        Extent { bits, low: exponent(bottom), high: exponent(top) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(values: &[f32]) -> Extent {
        let bits: Vec<u32> = values.iter().map(|v| v.to_bits()).collect();
        let mags: Vec<u32> = bits.iter().map(|b| b & 0x7FFF_FFFF).collect();
        let bottoms: Vec<u32> = mags.iter().map(|m| m.wrapping_add(ZERO_LAST)).collect();
        Extent::of_lanes(&bits, &mags, &bottoms)
    }

    #[test]
    fn bounds_hold_the_values_they_were_taken_from() {
        assert_eq!(extent(&[0.0, -0.0]), Extent::NONE);
        assert_eq!(extent(&[0.0, -1.5, 6.0]), Extent { bits: 2, low: 0, high: 2 });
        assert_eq!(extent(&[f32::from_bits(1)]), Extent { bits: 23 + 1, low: -149, high: -149 });
        assert_eq!(extent(&[f32::MIN_POSITIVE]), Extent { bits: 1, low: -126, high: -126 });
        assert_eq!(extent(&[1.0, f32::MAX]), Extent { bits: 24, low: 0, high: 127 });
    }

    #[test]
    fn types_have_the_bounds_of_their_extreme_codes() {
        assert_eq!(Extent::of_type(Dtype::Float8E4m3fn), Some(Extent { bits: 4, low: -9, high: 8 }));
        assert_eq!(Extent::of_type(Dtype::Float8E5m2), Some(Extent { bits: 3, low: -16, high: 15 }));
        assert_eq!(Extent::of_type(Dtype::Float4E2m1fnX4), Some(Extent { bits: 2, low: -1, high: 2 }));
        assert_eq!(Extent::of_type(Dtype::Float16), Some(Extent { bits: 11, low: -24, high: 15 }));
    }

    /// Whether the product of two floats is a float, computed where nothing is lost: in float64 the product of
    /// two float32 is exact unless it is far below what float32 holds.
    fn exact(a: f32, b: f32) -> bool {
        let product = f64::from(a) * f64::from(b);
        f64::from(product as f32) == product
    }

    #[test]
    fn what_fuses_has_exact_products() {
        arbtest::arbtest(|u| {
            let kept = u.int_in_range(0..=23)?;
            let mut draw = |kept: u32, near: u32| -> arbtest::arbitrary::Result<Vec<f32>> {
                (0..3)
                    .map(|_| {
                        let field = (near + u.int_in_range(0..=6)?).min(254);
                        let mantissa = u.arbitrary::<u32>()? & 0x007F_FFFF & !((1 << (23 - kept)) - 1);
                        Ok(f32::from_bits(field << 23 | mantissa))
                    })
                    .collect()
            };
            let a = draw(kept, 60)?;
            let b = draw(22_u32.saturating_sub(kept), 0)?;
            if extent(&a).fuses(extent(&b)) {
                assert!(a.iter().all(|&a| b.iter().all(|&b| exact(a, b))), "{a:?} {b:?}");
            }
            Ok(())
        });
    }

    #[test]
    fn both_ends_of_the_range_are_sharp() {
        // Odd significands of 8 bits: their product has 15 or 16, of which the last must not fall below 2^-149.
        let odd = 1.0 + 2f32.powi(-7);
        let at = |e: i32| odd * 2f32.powi(e);
        let fits = |a: f32, b: f32| extent(&[a]).fuses(extent(&[b]));
        assert!(fits(at(-60), at(-75)) && exact(at(-60), at(-75)));
        assert!(!fits(at(-60), at(-76)) && !exact(at(-60), at(-76)));
        // A product past the largest finite value becomes infinity, which a fused sum could bring back.
        let (big, sum) = (2f32.powi(64), -(2f32.powi(127)));
        assert!(!fits(big, big));
        assert_eq!((big * big + sum, big.mul_add(big, sum)), (f32::INFINITY, 2f32.powi(127)));
        assert!(fits(at(63), at(63)));
        assert!((at(63) * at(63)).is_finite());
    }
}
