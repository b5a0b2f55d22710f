//! Starts a kernel with the instructions asked for.

#![allow(unsafe_code)] // calling a function compiled for a feature the build does not assume

use super::Level;
use super::floats::{FloatKernel, Four};
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
        _ => kernel.run(Auto),
    }
}

/// Runs the kernel with the instructions of `level`, here always those of the build.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn launch<K: Kernel>(_level: Level, kernel: K) -> K::Output {
    kernel.run(Auto)
}

/// Runs the kernel on the registers of `level`. AVX2 goes with FMA where the processor has that too.
#[cfg(target_arch = "x86_64")]
pub(crate) fn launch_floats<K: FloatKernel>(level: Level, kernel: K) -> K::Output {
    match level {
        // SAFETY: the guard has just asked the processor for the features the callee is compiled with.
        Level::Avx512 if has_avx512() => unsafe { floats_avx512(kernel) },
        // SAFETY: as above.
        Level::Avx2 if has_avx2() && is_x86_feature_detected!("fma") => unsafe { floats_fma(kernel) },
        // SAFETY: as above.
        Level::Avx2 if has_avx2() => unsafe { floats_avx2(kernel) },
        _ => kernel.run(Four),
    }
}

/// Runs the kernel on the registers of `level`, here always those of the build.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn launch_floats<K: FloatKernel>(_level: Level, kernel: K) -> K::Output {
    kernel.run(Four)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn floats_avx512<K: FloatKernel>(kernel: K) -> K::Output {
    // SAFETY: this function only runs where AVX-512 F is.
    kernel.run(unsafe { super::x86_floats::Sixteen::new() })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn floats_fma<K: FloatKernel>(kernel: K) -> K::Output {
    // SAFETY: this function only runs where AVX2 and FMA are.
    kernel.run(unsafe { super::x86_floats::Eight::<true>::new() })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn floats_avx2<K: FloatKernel>(kernel: K) -> K::Output {
    // SAFETY: this function only runs where AVX2 is.
    kernel.run(unsafe { super::x86_floats::Eight::<false>::new() })
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
    kernel.run(Auto)
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
        && is_x86_feature_detected!("fma")
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
