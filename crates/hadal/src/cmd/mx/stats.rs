//! How far quantized values are from what they stand for.

use hadal::num::NumError;
use hadal::num::mx::{self, Counts, MxFormat, ScaleRule};

/// Errors of one tensor under one format and rule, summed in element order.
///
/// Elements that are infinite or NaN have no error; neither do those that a block's NaN scale makes NaN, which are
/// counted as lost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Stats {
    /// Largest |y - x| / |x| of the elements that are not zero.
    pub(super) max: f64,
    relative: f64,
    elements: u64,
    signal: f64,
    noise: f64,
    /// What the quantizer counted.
    pub(super) counts: Counts,
    /// Finite elements that came back infinite or NaN.
    pub(super) lost: u64,
}

impl Stats {
    /// Quantizes whole blocks, turns them back, and adds their errors.
    pub(super) fn add(
        &mut self,
        x: &[f32],
        rows: usize,
        cols: usize,
        format: MxFormat,
        rule: ScaleRule,
    ) -> Result<(), NumError> {
        let mut data = vec![0; x.len() / mx::BLOCK_COLS * format.container_bytes()];
        let mut scales = vec![0; x.len() / (mx::BLOCK_ROWS * mx::BLOCK_COLS)];
        let mut y = vec![0.0; x.len()];
        let counts = mx::quantize_counted(x, rows, cols, format, rule, &mut data, &mut scales)?;
        self.counts = self.counts + counts;
        mx::dequantize(format, rule, &data, &scales, rows, cols, &mut y)?;
        self.compare(x, &y);
        Ok(())
    }

    fn compare(&mut self, x: &[f32], y: &[f32]) {
        for (&x, &y) in x.iter().zip(y) {
            if !x.is_finite() {
                continue;
            }
            if !y.is_finite() {
                self.lost += 1;
                continue;
            }
            let (x, y) = (f64::from(x), f64::from(y));
            let error = (y - x).abs();
            self.signal += x * x;
            self.noise += error * error;
            if x != 0.0 {
                let relative = error / x.abs();
                self.max = self.max.max(relative);
                self.relative += relative;
                self.elements += 1;
            }
        }
    }

    /// Mean of the relative errors.
    pub(super) fn mean(&self) -> f64 {
        if self.elements == 0 { 0.0 } else { self.relative / self.elements as f64 }
    }

    /// Signal to noise in decibels: 10 log10 of sum x^2 over sum (y - x)^2. `None` when there is no noise.
    pub(super) fn snr(&self) -> Option<f64> {
        (self.noise > 0.0).then(|| 10.0 * (self.signal / self.noise).log10())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_known_values() {
        let mut s = Stats::default();
        // Errors 0.1, 0 and 2 of 1, 2 and 4; a zero, a lost element, and two that have no error.
        s.compare(
            &[1.0, 2.0, 4.0, 0.0, 3.0, f32::NAN, f32::INFINITY],
            &[1.1, 2.0, 2.0, 0.0, f32::NAN, 0.0, 448.0],
        );
        assert!((s.max - 0.5).abs() < 1e-12);
        assert!((s.mean() - 0.2).abs() < 1e-7, "{}", s.mean());
        // 10 log10(21 / 4.01)
        assert!((s.snr().unwrap() - 7.191).abs() < 1e-3, "{:?}", s.snr());
        assert_eq!((s.lost, s.elements), (1, 3));
        assert_eq!(Stats::default().snr(), None);
    }

    #[test]
    fn a_block_of_powers_of_two_is_exact_and_its_maximum_may_saturate() {
        let mut s = Stats::default();
        s.add(&[1.0; 32], 8, 4, MxFormat::Float8E4m3fn, ScaleRule::Reference).unwrap();
        assert_eq!((s.snr(), s.max, s.counts), (None, 0.0, Counts::default()));
        // 957 of amax 960 becomes 896 under rule reference, 960 under hardware.
        let mut block = [957.0; 32];
        block[31] = 960.0;
        for (rule, want, saturated) in
            [(ScaleRule::Reference, 64.0 / 960.0, 32), (ScaleRule::Hardware, 3.0 / 957.0, 0)]
        {
            let mut s = Stats::default();
            s.add(&block, 8, 4, MxFormat::Float8E4m3fn, rule).unwrap();
            assert!((s.max - want).abs() < 1e-9, "{rule}: {}", s.max);
            assert_eq!(s.counts.saturated, saturated, "{rule}");
        }
    }
}
