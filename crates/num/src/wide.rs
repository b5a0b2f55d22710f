//! float64 into the element types, rounded once.

use crate::error::check_len;
use crate::{Dtype, NumError, Overflow, narrow};

/// float64 to float32 with the last bit set whenever something was cut off, so that rounding once more, to at
/// most 22 significant bits, gives what one rounding from float64 gives.
///
/// Not a step towards 32-bit integers, which keep more bits: see [`narrow_f64`].
#[must_use]
pub fn round_to_odd(x: f64) -> f32 {
    let near = x as f32;
    if near.is_nan() || f64::from(near) == x {
        return near;
    }
    // The neighbour toward zero of the two float32 around x (the largest finite one for overflow).
    let down =
        if f64::from(near).abs() > x.abs() { near.to_bits().saturating_sub(1) } else { near.to_bits() };
    f32::from_bits(down | 1)
}

/// Narrows float64 to little-endian containers of `dtype`, in one rounding to nearest with ties to even;
/// integers saturate and take NaN for 0 (D-32).
///
/// `dst` holds `src.len() / dtype.lanes()` containers.
///
/// # Errors
/// [`NumError::Length`] when `dst` has another length, and what [`narrow`] reports.
pub fn narrow_f64(dtype: Dtype, src: &[f64], overflow: Overflow, dst: &mut [u8]) -> Result<(), NumError> {
    let size = dtype.bytes();
    let odd = |src: &[f64]| -> Vec<f32> { src.iter().map(|x| round_to_odd(*x)).collect() };
    if dtype == Dtype::Float32 {
        let limit = if overflow == Overflow::Saturate { f32::MAX } else { f32::INFINITY };
        // NaN stays: it is on neither side of the limit.
        let near: Vec<f32> = src.iter().map(|x| (*x as f32).clamp(-limit, limit)).collect();
        return narrow(dtype, &near, overflow, dst);
    }
    if !dtype.is_integer() {
        return narrow(dtype, &odd(src), overflow, dst);
    }
    check_len("narrowed array", "bytes", dst.len(), src.len() * size)?;
    for (x, to) in src.iter().zip(dst.chunks_exact_mut(size)) {
        let x = x.round_ties_even();
        // Conversions with `as` saturate and take NaN for 0.
        let bytes = match dtype {
            Dtype::Uint8 => u64::from(x as u8),
            Dtype::Int8 => (x as i8).cast_unsigned().into(),
            Dtype::Uint16 => u64::from(x as u16),
            Dtype::Int16 => (x as i16).cast_unsigned().into(),
            Dtype::Uint32 => u64::from(x as u32),
            Dtype::Int32 => (x as i32).cast_unsigned().into(),
            Dtype::Int64 => (x as i64).cast_unsigned(),
            _ => x as u64,
        }
        .to_le_bytes();
        to.copy_from_slice(bytes.get(..size).unwrap_or(&bytes));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, encode};

    #[test]
    fn integers_keep_every_bit_and_saturate() {
        let src = [16_777_217.0, 2_147_483_645.0, 1_000_000_001.0, 0.5, 1.5, -0.5, 1e20, -1e20, f64::NAN];
        let mut dst = [0u8; 36];
        narrow_f64(Dtype::Int32, &src, Overflow::Ieee, &mut dst).unwrap();
        let got: Vec<i32> = dst.as_chunks().0.iter().map(|c| i32::from_le_bytes(*c)).collect();
        assert_eq!(got, [16_777_217, 2_147_483_645, 1_000_000_001, 0, 2, 0, i32::MAX, i32::MIN, 0]);
        let mut dst = [0u8; 2];
        narrow_f64(Dtype::Uint8, &[-3.0, 300.0], Overflow::Ieee, &mut dst).unwrap();
        assert_eq!(dst, [0, 255]);
        assert!(narrow_f64(Dtype::Int32, &[1.0], Overflow::Ieee, &mut dst).is_err());
    }

    #[test]
    fn narrow_floats_round_once() {
        // Halfway to the next float16, and a hair above or below it.
        let half = 1.0 + 2f64.powi(-11);
        for (x, want) in [(half + 2f64.powi(-40), 0x3C01), (half - 2f64.powi(-40), 0x3C00), (half, 0x3C00)] {
            assert_eq!(encode(Format::Float16, round_to_odd(x), Overflow::Ieee), want);
        }
        assert!(round_to_odd(f64::NAN).is_nan());
        assert_eq!(round_to_odd(f64::INFINITY), f32::INFINITY);
        let mut dst = [0u8; 4];
        narrow_f64(Dtype::Float32, &[1.0 + 2f64.powi(-24) + 2f64.powi(-50)], Overflow::Ieee, &mut dst)
            .unwrap();
        assert_eq!(f32::from_le_bytes(dst), 1.0 + f32::EPSILON);
        for (rule, want) in [(Overflow::Ieee, f32::NEG_INFINITY), (Overflow::Saturate, f32::MIN)] {
            narrow_f64(Dtype::Float32, &[-1e39], rule, &mut dst).unwrap();
            assert_eq!(f32::from_le_bytes(dst), want);
        }
    }
}
