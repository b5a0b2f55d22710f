//! Values from a seed, the same on every machine.
//!
//! Each location has its own ChaCha8 stream, keyed by (seed, name), so that a value depends on neither the
//! order of the locations nor their number. Arithmetic is float64 in software (`libm`), rounded once.

use hadal_num::{Dtype, Overflow};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A location's stream.
pub(crate) struct Stream {
    rng: ChaCha8Rng,
    /// Second value of the last pair of normals.
    spare: Option<f64>,
}

/// FNV-1a from a given basis.
fn fnv(basis: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(basis, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01B3))
}

impl Stream {
    pub(crate) fn new(seed: u64, name: &str) -> Self {
        let words = [
            seed,
            fnv(0xCBF2_9CE4_8422_2325, name.as_bytes()),
            fnv(0x9E37_79B9_7F4A_7C15, name.as_bytes()),
            name.len() as u64,
        ];
        let mut key = [0u8; 32];
        for (to, word) in key.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *to = word.to_le_bytes();
        }
        Stream { rng: ChaCha8Rng::from_seed(key), spare: None }
    }

    /// A uniform value in (0, 1].
    fn unit(&mut self) -> f64 {
        ((self.rng.next_u64() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A standard normal value (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(v) = self.spare.take() {
            return v;
        }
        let radius = libm::sqrt(-2.0 * libm::log(self.unit()));
        let angle = std::f64::consts::TAU * self.unit();
        self.spare = Some(radius * libm::sin(angle));
        radius * libm::cos(angle)
    }

    /// `count` bytes of two sparsity tags each, uniform below `4 * ratio` (at most 16).
    pub(crate) fn tags(&mut self, ratio: u64, count: usize) -> Vec<u8> {
        let limit = (ratio.clamp(1, 4) * 4) as u32;
        // The limit divides 2^24 for the ratios there are, so the remainder is uniform.
        let mut tag = || (self.rng.next_u32() >> 8) % limit;
        (0..count).map(|_| (tag() | tag() << 4) as u8).collect()
    }

    /// `count` containers of `dtype`.
    ///
    /// Floats (each lane of an `x4` type) are standard normal; integers are uniform in 0..=7; scales
    /// (float8_e8m0fnu) are codes uniform in 124..=131, around 2^0.
    pub(crate) fn containers(&mut self, dtype: Dtype, count: usize) -> Vec<u8> {
        let mut out = vec![0u8; count.saturating_mul(dtype.bytes())];
        if dtype.is_integer() || dtype == Dtype::Float8E8m0fnu {
            let base = if dtype.is_integer() { 0 } else { 124 };
            for container in out.chunks_mut(dtype.bytes()) {
                if let Some(low) = container.first_mut() {
                    *low = base + (self.rng.next_u32() >> 29) as u8;
                }
            }
            return out;
        }
        // In pieces, so that the float32 copy of a large tensor stays small.
        for piece in out.chunks_mut(4096 * dtype.bytes()) {
            let n = piece.len() / dtype.bytes() * dtype.lanes();
            let values: Vec<f32> = (0..n).map(|_| self.normal() as f32).collect();
            // Lengths agree by construction, the only thing narrowing can refuse.
            let _ = hadal_num::narrow(dtype, &values, Overflow::Ieee, piece);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_the_normal_stream() {
        let mut s = Stream::new(0, "x");
        let n = 20_000;
        let v: Vec<f64> = (0..n).map(|_| s.normal()).collect();
        let mean = v.iter().sum::<f64>() / n as f64;
        let var = v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        // Five standard errors.
        assert!(mean.abs() < 5.0 / (n as f64).sqrt(), "{mean}");
        assert!((var - 1.0).abs() < 5.0 * (2.0 / n as f64).sqrt(), "{var}");
    }

    #[test]
    fn streams_depend_on_seed_and_name() {
        let first = |seed, name| Stream::new(seed, name).rng.next_u64();
        assert_eq!(first(1, "x"), first(1, "x"));
        assert_ne!(first(1, "x"), first(2, "x"));
        assert_ne!(first(1, "x"), first(1, "y"));
    }

    #[test]
    fn integers_are_small_and_scales_near_one() {
        let ints = Stream::new(3, "i").containers(Dtype::Int16, 200);
        assert!(ints.chunks(2).all(|c| c[0] <= 7 && c[1] == 0));
        let scales = Stream::new(3, "s").containers(Dtype::Float8E8m0fnu, 200);
        assert!(scales.iter().all(|c| (124..=131).contains(c)));
        assert_eq!(Stream::new(3, "w").containers(Dtype::Float8E4m3fnX4, 5).len(), 20);
    }
}
