//! Starts a kernel with the instructions asked for.

#![allow(unsafe_code)] // calling a function compiled for a feature the build does not assume

use super::Level;
use super::vector::{Auto, Simd};

/// A computation compiled once for each instruction set. `run` and all it calls must be `#[inline(always)]`, or it
/// keeps the instruction set of the build.
pub(crate) trait Kernel {
    /// What the computation returns.
    type Output;
    /// The computation.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Runs the kernel with the instructions of `level`.
#[cfg(target_arch = "x86_64")]
pub(crate) fn launch<K: Kernel>(level: Level, kernel: K) -> K::Output {
    match level {
        // SAFETY: the guard has just asked the processor for the features the callee is compiled with.
        Level::Avx512 if has_avx512() => unsafe { on_avx512(kernel) },
        // SAFETY: as above.
        Level::Avx2 if has_avx2() => unsafe { on_avx2(kernel) },
        _ => kernel.run(Auto::<4>),
    }
}

/// Runs the kernel with the instructions of `level`, here always those of the build.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn launch<K: Kernel>(_level: Level, kernel: K) -> K::Output {
    kernel.run(Auto::<4>)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn on_avx2<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: this function only runs where AVX2 and F16C are.
    kernel.run(unsafe { super::avx2::Avx2::new() })
}

/// The portable form under AVX-512: no intrinsic here that a machine without it could not have tested.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
fn on_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Auto::<16>)
}

/// Whether the processor has everything `on_avx2` is compiled with.
#[cfg(target_arch = "x86_64")]
pub(super) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

/// Whether the processor has everything `on_avx512` is compiled with.
#[cfg(target_arch = "x86_64")]
pub(super) fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn has_avx2() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn has_avx512() -> bool {
    false
}
