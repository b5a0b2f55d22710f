//! Quantizing and dequantizing one element at a time.

use super::{BLOCK_COLS, BLOCK_ROWS, Counts, MxFormat, ScaleRule, prescale_bits};
use crate::{Format, Overflow, decode, encode};

/// Quantizes one block given in partition order; codes come back in the same order.
pub(super) fn quantize_block(
    block: &[f32; BLOCK_ROWS * BLOCK_COLS],
    format: MxFormat,
    rule: ScaleRule,
) -> ([u8; BLOCK_ROWS * BLOCK_COLS], u8, Counts) {
    let mut counts = Counts::default();
    let exponent = block.iter().map(|x| x.to_bits() >> 23 & 0xFF).max().unwrap_or(0);
    if rule == ScaleRule::Ocp && exponent == 255 {
        counts.nan_blocks = 1;
        return ([0; 32], 255, counts);
    }
    let scale = exponent.saturating_sub(rule.shift(format)).max(rule.floor());
    let factor = f32::from_bits(prescale_bits(scale));
    let codes = block.map(|x| {
        let sign = if x.is_sign_negative() { encode(format.format(), -0.0, Overflow::Saturate) } else { 0 };
        let scaled = x.abs() * factor;
        if scaled.is_nan() {
            counts.nan += 1;
            let nan = if rule.suppresses_nan() { 0.0 } else { f32::NAN };
            return (sign | encode(format.format(), nan, Overflow::Saturate)) as u8;
        }
        let code = encode(format.format(), scaled, Overflow::Saturate);
        counts.saturated += u64::from(rounds_past_largest(format, scaled));
        counts.flushed += u64::from(code == 0 && x != 0.0);
        (sign | code) as u8
    });
    (codes, scale as u8, counts)
}

/// Whether rounding, and not only the clamp, leaves the format's range.
fn rounds_past_largest(format: MxFormat, magnitude: f32) -> bool {
    // float4_e2m1fn has no code past its largest value, 6: the next step would have been 8, and 7 lies between.
    match format {
        MxFormat::Float4E2m1fn => magnitude >= 7.0,
        _ => !decode(format.format(), encode(format.format(), magnitude, Overflow::Ieee)).is_finite(),
    }
}

/// The value of one element code under a scale.
pub(super) fn dequantize_one(format: Format, code: u8, scale: u8, rule: ScaleRule) -> f32 {
    let [first, second] = factors(scale, rule);
    decode(format, u32::from(code)) * first * second
}

/// The two float32 whose product, applied one after the other, is the factor of a scale code.
pub(crate) fn factors(scale: u8, rule: ScaleRule) -> [f32; 2] {
    match scale {
        255 if rule.scale_255_is_finite() => [f32::from_bits(254 << 23), 2.0],
        _ => [decode(Format::Float8E8m0fnu, u32::from(scale)), 1.0],
    }
}
