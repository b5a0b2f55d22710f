//! How far a result is from the product in float64 of the operands as given.

use rayon::prelude::*;

use crate::GemmError;
use crate::operand::Matrix;
use crate::problem::{Problem, Side};
use crate::run::Block;

/// Multiply-adds up to which every output is compared.
const SMALL: u128 = 1 << 28;
/// What part of a larger product's multiply-adds the comparison spends.
const SHARE: u128 = 256;
/// Contraction indices held in float64 at a time.
const DEPTH: usize = 128;

/// Which outputs are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Check {
    /// All.
    All,
    /// All of a small product, else a grid of rows and columns spread over the result.
    #[default]
    Sample,
    /// None.
    None,
}

/// Error figures of a result. Relative errors leave out outputs that are exactly zero in float64.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Accuracy {
    /// Outputs compared.
    pub compared: u64,
    /// Of these, finite on both sides; the error figures are theirs, and NaN without any.
    pub finite: u64,
    /// Outputs of the product.
    pub outputs: u64,
    /// Largest error, in units of the last float32 place of the float64 value.
    pub max_ulp: f64,
    /// Largest relative error.
    pub max_relative: f64,
    /// Root of the mean square relative error.
    pub rms_relative: f64,
    /// Root of the sum of squares of the errors over that of the float64 values.
    pub norm_relative: f64,
    /// Signal to noise: squares of the float64 values over squares of the errors, in decibels; infinite without
    /// an error.
    pub snr_db: f64,
    /// Outputs that are infinite or NaN on either side; the other figures leave them out.
    pub non_finite: u64,
    /// Of these, those that differ.
    pub non_finite_differing: u64,
}

impl Accuracy {
    /// Whether every output compared is the float64 value.
    pub fn is_exact(&self) -> bool {
        self.finite > 0 && self.max_ulp == 0.0 && self.non_finite_differing == 0
    }
}

/// The root of a sum of squares, whatever the size of its terms: none of them underflows or overflows.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Norm {
    largest: f64,
    /// The sum of squares of the terms over the largest.
    sum: f64,
}

impl Norm {
    fn add(&mut self, x: f64) {
        if x > self.largest {
            let ratio = self.largest / x;
            self.sum = self.sum * ratio * ratio + 1.0;
            self.largest = x;
        } else if x > 0.0 {
            let ratio = x / self.largest;
            self.sum += ratio * ratio;
        }
    }

    /// This over another.
    fn over(self, other: Norm) -> f64 {
        self.largest / other.largest * (self.sum / other.sum).sqrt()
    }
}

/// Compares blocks of a result as they come.
pub struct Checker<'a> {
    a: &'a dyn Matrix,
    b: &'a dyn Matrix,
    k: usize,
    outputs: u64,
    rows: Vec<usize>,
    columns: Vec<usize>,
    sums: Sums,
}

#[derive(Default)]
struct Sums {
    compared: u64,
    finite: u64,
    nonzero: u64,
    non_finite: u64,
    non_finite_differing: u64,
    max_ulp: f64,
    max_relative: f64,
    relative: f64,
    signal: Norm,
    noise: Norm,
}

impl<'a> Checker<'a> {
    /// Chooses the outputs of a product of these operands.
    pub fn new(problem: &Problem, a: &'a dyn Matrix, b: &'a dyn Matrix, check: Check) -> Self {
        let Problem { m, n, k, .. } = *problem;
        let (rows, columns) = match (check, (m as u128).saturating_mul(n as u128).saturating_mul(k as u128)) {
            (Check::None, _) => (0, 0),
            (Check::Sample, macs) if macs > SMALL => {
                let outputs = ((macs / SHARE).max(SMALL / 4) / k as u128) as f64;
                let rows = ((outputs * m as f64 / n as f64).sqrt() as usize).clamp(1, m);
                (rows, ((outputs / rows as f64) as usize).clamp(1, n))
            }
            _ => (m, n),
        };
        let outputs = m as u64 * n as u64;
        let (rows, columns) = (spread(rows, m), spread(columns, n));
        Checker { a, b, k, outputs, rows, columns, sums: Sums::default() }
    }

    /// Compares a block.
    ///
    /// # Errors
    /// [`GemmError::Read`] when an operand cannot be read again.
    pub fn add(&mut self, block: &Block) -> Result<(), GemmError> {
        let s = block.segment;
        let rows = within(&self.rows, s.row, s.rows);
        let columns = within(&self.columns, s.column, s.columns);
        if rows.is_empty() || columns.is_empty() {
            return Ok(());
        }
        let want = product(self.a, self.b, self.k, rows, columns)?;
        let (values, sums) = (block.bytes.as_chunks::<4>().0, &mut self.sums);
        for (row, want) in rows.iter().zip(want.chunks(columns.len())) {
            let from = (row - s.row) * s.columns;
            for (column, want) in columns.iter().zip(want) {
                if let Some(got) = values.get(from + column - s.column) {
                    sums.add(f32::from_le_bytes(*got), *want);
                }
            }
        }
        Ok(())
    }

    /// The figures over all blocks.
    pub fn accuracy(&self) -> Accuracy {
        self.sums.accuracy(self.outputs)
    }
}

impl Sums {
    fn accuracy(&self, outputs: u64) -> Accuracy {
        let none = self.finite == 0;
        let figure = |x: f64| if none { f64::NAN } else { x };
        let exact = self.noise.largest == 0.0;
        // Zeros beside errors have no norm to compare with.
        let norm = if exact { 0.0 } else { self.noise.over(self.signal) };
        Accuracy {
            compared: self.compared,
            finite: self.finite,
            outputs,
            max_ulp: figure(self.max_ulp),
            max_relative: figure(self.max_relative),
            rms_relative: figure(if self.nonzero == 0 {
                0.0
            } else {
                (self.relative / self.nonzero as f64).sqrt()
            }),
            norm_relative: figure(norm),
            snr_db: figure(-20.0 * norm.log10()),
            non_finite: self.non_finite,
            non_finite_differing: self.non_finite_differing,
        }
    }

    fn add(&mut self, got: f32, want: f64) {
        self.compared += 1;
        if !got.is_finite() || !want.is_finite() {
            self.non_finite += 1;
            let near = want as f32;
            let same = got == near || got.is_nan() && near.is_nan();
            self.non_finite_differing += u64::from(!same);
            return;
        }
        self.finite += 1;
        let error = (f64::from(got) - want).abs();
        self.max_ulp = self.max_ulp.max(error / ulp(want));
        self.signal.add(want.abs());
        self.noise.add(error);
        if want != 0.0 {
            let relative = error / want.abs();
            self.nonzero += 1;
            self.max_relative = self.max_relative.max(relative);
            self.relative += relative * relative;
        }
    }
}

/// The distance of neighbouring float32 at a value.
fn ulp(x: f64) -> f64 {
    let exponent = (x.to_bits() >> 52 & 0x7FF).cast_signed() - 1023;
    // Below 2^-126 float32 is evenly spaced.
    f64::from_bits(((exponent.max(-126) - 23 + 1023).cast_unsigned()) << 52)
}

/// `count` of `extent` indices in ascending order, one in each of `count` equal stretches, at a place in it that
/// follows no pattern of the tiling.
fn spread(count: usize, extent: usize) -> Vec<usize> {
    let bound = |i: usize| (i as u128 * extent as u128 / count as u128) as usize;
    (0..count)
        .map(|i| {
            let (from, to) = (bound(i), bound(i + 1));
            let mut mixed = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed ^= mixed >> 31;
            from + (mixed % (to - from).max(1) as u64) as usize
        })
        .collect()
}

/// The indices of a sorted list that lie in a stretch.
fn within(sorted: &[usize], from: usize, len: usize) -> &[usize] {
    let start = sorted.partition_point(|i| *i < from);
    let end = sorted.partition_point(|i| *i < from + len);
    sorted.get(start..end).unwrap_or(&[])
}

/// Rows and columns of A @ B in float64, the contraction ascending.
fn product(
    a: &dyn Matrix,
    b: &dyn Matrix,
    k: usize,
    rows: &[usize],
    columns: &[usize],
) -> Result<Vec<f64>, GemmError> {
    let read = |side: Side, matrix: &dyn Matrix, row: usize, column: usize, out: &mut [f64]| {
        matrix.read(row, column, out).map_err(|error| GemmError::Read { what: side.name(), error })
    };
    let width = columns.len();
    let first = columns.first().copied().unwrap_or(0);
    let span = columns.last().map_or(0, |c| c + 1 - first);
    let mut out = vec![0.0; rows.len() * width];
    let mut panel = vec![0.0; DEPTH.min(k) * width];
    for from in (0..k).step_by(DEPTH) {
        let depth = DEPTH.min(k - from);
        let panel = panel.get_mut(..depth * width).unwrap_or_default();
        panel.par_chunks_mut(width).enumerate().try_for_each_init(
            || vec![0.0; span],
            |all, (i, row)| {
                read(Side::B, b, from + i, first, all)?;
                for (to, column) in row.iter_mut().zip(columns) {
                    *to = all.get(column - first).copied().unwrap_or_default();
                }
                Ok::<(), GemmError>(())
            },
        )?;
        let panel = &*panel;
        out.par_chunks_mut(width).zip(rows.par_iter()).try_for_each(|(sums, row)| {
            let mut values = [0.0; DEPTH];
            let values = values.get_mut(..depth).unwrap_or_default();
            read(Side::A, a, *row, from, values)?;
            for (value, row) in values.iter().zip(panel.chunks(width)) {
                for (sum, x) in sums.iter_mut().zip(row) {
                    *sum += value * x;
                }
            }
            Ok::<(), GemmError>(())
        })?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_in_the_last_place() {
        for x in [1.0f32, 1.5, 2.0f32.powi(-126), 3.4e38, 1e-40, 7.0] {
            let next = f32::from_bits(x.to_bits() + 1);
            let step = if next.is_finite() { f64::from(next) - f64::from(x) } else { 2f64.powi(104) };
            assert_eq!(ulp(f64::from(x)), step, "{x}");
            assert_eq!(ulp(-f64::from(x)), step, "{x}");
        }
        assert_eq!(ulp(0.0), 2f64.powi(-149));
    }

    #[test]
    fn a_spread_is_ascending_and_inside() {
        arbtest::arbtest(|u| {
            let extent = u.int_in_range(1..=5000usize)?;
            let count = u.int_in_range(0..=extent)?;
            let all = spread(count, extent);
            assert_eq!(all.len(), count);
            assert!(all.windows(2).all(|w| w[0] < w[1]));
            assert!(all.last().is_none_or(|l| *l < extent));
            if count == extent {
                assert_eq!(all, (0..extent).collect::<Vec<_>>());
            }
            let (from, len) = (u.int_in_range(0..=extent)?, u.int_in_range(0..=extent)?);
            let want: Vec<usize> = all.iter().copied().filter(|i| (from..from + len).contains(i)).collect();
            assert_eq!(within(&all, from, len), want);
            Ok(())
        });
    }

    #[test]
    fn figures_of_known_errors() {
        let mut s = Sums::default();
        s.add(1.0 + f32::EPSILON, 1.0);
        s.add(-2.0, -4.0);
        s.add(0.0, 0.0);
        assert_eq!((s.max_ulp, s.max_relative), (2.0 / 2f64.powi(-21), 0.5));
        let (signal, noise) = (17f64.sqrt(), (4.0 + 2f64.powi(-46)).sqrt());
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-15;
        assert!(near(s.accuracy(3).norm_relative, noise / signal), "{:?}", s.accuracy(3));
        assert!(near(s.accuracy(3).snr_db, 20.0 * (signal / noise).log10()));
        s.add(f32::INFINITY, 1e39);
        s.add(f32::NAN, f64::NAN);
        s.add(f32::INFINITY, 1.0);
        assert_eq!((s.non_finite, s.non_finite_differing, s.compared), (3, 1, 6));
    }

    #[test]
    fn figures_of_extreme_sizes() {
        for (got, want) in [(0.0, 1e-200), (0.0, -3e170), (0.0, f64::MIN_POSITIVE)] {
            let mut s = Sums::default();
            s.add(got, want);
            let a = s.accuracy(1);
            // All of the value is error.
            assert_eq!((a.norm_relative, a.snr_db, a.max_relative, a.is_exact()), (1.0, 0.0, 1.0, false));
        }
        let mut s = Sums::default();
        s.add(f32::INFINITY, 1e10);
        let a = s.accuracy(1);
        assert!(a.snr_db.is_nan() && a.norm_relative.is_nan() && a.max_ulp.is_nan() && !a.is_exact());
        let mut s = Sums::default();
        s.add(3.0, 3.0);
        assert!(s.accuracy(1).is_exact());
        assert_eq!(s.accuracy(1).snr_db, f64::INFINITY);
        s.add(f32::INFINITY, 1.0);
        assert!(!s.accuracy(1).is_exact());
    }
}
