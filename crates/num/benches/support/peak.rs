//! What the arithmetic of this machine reaches at most: loops of nothing but fused multiply-adds, and of nothing but
//! a multiply and an add.

#![allow(unsafe_code)] // calling functions compiled for features the build does not assume

use std::hint::black_box;

/// float32 in independent chains, enough for every register and to hide the latency.
const CHAINS: usize = 14;

#[cfg(target_arch = "x86_64")]
macro_rules! loops {
    ($fused:ident, $separate:ident, $lanes:literal, $features:literal) => {
        #[target_feature(enable = $features)]
        fn $fused(rounds: usize) -> f32 {
            chains::<$lanes>(
                rounds,
                #[inline(always)]
                |a, x, y| a.mul_add(x, y),
            )
        }
        #[target_feature(enable = $features)]
        fn $separate(rounds: usize) -> f32 {
            chains::<$lanes>(
                rounds,
                #[inline(always)]
                |a, x, y| a * x + y,
            )
        }
    };
}

#[inline(always)]
fn chains<const LANES: usize>(rounds: usize, step: impl Fn(f32, f32, f32) -> f32) -> f32 {
    // Chains that start from different values cannot be merged into one.
    let mut sums: [[f32; LANES]; CHAINS] = black_box([[0.5; LANES]; CHAINS]);
    let (x, y) = (black_box(0.999), black_box(0.001));
    for _ in 0..rounds {
        for sums in &mut sums {
            for sum in sums {
                *sum = step(*sum, x, y);
            }
        }
    }
    sums.iter().flatten().sum()
}

#[cfg(target_arch = "x86_64")]
loops!(fused_8, separate_8, 8, "avx2,fma");
#[cfg(target_arch = "x86_64")]
loops!(fused_16, separate_16, 16, "avx512f,avx512vl,fma");

/// The two loops, each for a number of rounds.
pub struct Loops {
    pub fused: fn(usize) -> f32,
    pub separate: fn(usize) -> f32,
    /// Operations of one round.
    pub round: usize,
}

/// The loops of this machine, `None` where there is no FMA.
pub fn loops() -> Option<Loops> {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
            // SAFETY: the processor has just been asked for the features.
            let (fused, separate) = (|n| unsafe { fused_16(n) }, |n| unsafe { separate_16(n) });
            return Some(Loops { fused, separate, round: 2 * 16 * CHAINS });
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: as above.
            let (fused, separate) = (|n| unsafe { fused_8(n) }, |n| unsafe { separate_8(n) });
            return Some(Loops { fused, separate, round: 2 * 8 * CHAINS });
        }
    }
    None
}
