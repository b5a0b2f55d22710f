//! The random numbers of generated programs, and the walks they take through memory.

use hadal_ir::program::{Ap, Pair};

/// splitmix64.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ x >> 31
    }

    /// Below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 16) % n
    }

    pub fn range(&mut self, lo: u64, hi: u64) -> u64 {
        lo + self.below(hi - lo + 1)
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// True in `a` of `b` cases.
    pub fn chance(&mut self, a: u64, b: u64) -> bool {
        self.below(b) < a
    }
}

/// Free dimensions of `n` elements inside `room` containers: strided, reversed, in one to three dimensions;
/// with `repeat`, elements may be read more than once. Gives the pairs and the first container.
pub fn walk(r: &mut Rng, n: u64, room: u64, dims: usize, repeat: bool) -> (Vec<Pair>, u64) {
    // Split n into factors, innermost last.
    let mut counts = vec![n];
    while counts.len() < dims && r.chance(1, 2) {
        let first = counts[0];
        let divisors: Vec<u64> = (1..=first).filter(|d| first.is_multiple_of(*d)).collect();
        let d = r.pick(&divisors);
        counts[0] = first / d;
        counts.insert(1, d);
    }
    let mut pairs = Vec::new();
    let mut extent = 1i64;
    for num in counts.iter().rev() {
        let step = if repeat && r.chance(1, 8) {
            0
        } else {
            extent * if r.chance(1, 3) { 2 } else { 1 } + i64::from(r.chance(1, 4))
        };
        extent = extent.max(step * (*num as i64 - 1) + extent);
        pairs.insert(0, Pair::new(if r.chance(1, 4) { -step } else { step }, *num));
    }
    let (lo, hi) = Ap::reach(&pairs);
    let need = (hi - lo + 1) as u64;
    if need > room {
        return (vec![Pair::new(1, n)], 0);
    }
    let slack = if r.chance(1, 2) { 0 } else { r.below(room - need + 1) };
    (pairs, (-lo) as u64 + slack)
}
