//! Which instruction set the kernels run on.
//!
//! A kernel is written once, without branches, in the operations of one small trait. AVX2 implements them as
//! instructions, and a second trait of 16-bit lanes for the kernels whose values fit those; everywhere else they are
//! loops of constant length over single lanes, which the compiler vectorizes for SSE2, NEON or AVX-512. Products of
//! matrices have a trait of their own, float32 registers, whose AVX-512 form is instructions too. A multiply and an add
//! are fused only by its one operation that says so. [`Level::Scalar`] runs the plain definitions instead. Every level
//! returns the same bits.
//!
//! But for products the AVX-512 level is the portable algorithm compiled for AVX-512. Only a machine that has it can
//! run it: on others it is compiled, but the tests skip it.
//!
//! The best level of the machine is used. The environment variable `HADAL_SIMD`, read once, asks for another:
//! `scalar`, `portable`, `avx2` or `avx512`. A level the machine lacks, or a name that is none of these,
//! leaves the choice as it was.

use std::cell::Cell;
use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx2_halves;
mod floats;
mod halves;
mod launch;
mod prefetch;
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86_floats;

pub(crate) use floats::{FloatKernel, Floats, tile};
pub(crate) use halves::{Dealt, Halves, InOrder, Order};
pub(crate) use launch::{Kernel, launch, launch_floats};
pub(crate) use prefetch::{finish_stream, prefetch};
pub(crate) use vector::{RUN, Simd};

/// An instruction set to run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The definitions, one element at a time.
    Scalar,
    /// The kernels with what the target always has: SSE2 on x86-64, NEON on AArch64.
    Portable,
    /// The kernels with AVX2 and F16C, and products with FMA where the processor has it.
    Avx2,
    /// The portable kernels compiled for AVX-512 F, BW, DQ and VL, and products in 512-bit registers.
    Avx512,
}

impl Level {
    /// Every level, the slowest first.
    pub const ALL: [Level; 4] = [Level::Scalar, Level::Portable, Level::Avx2, Level::Avx512];

    /// The name `HADAL_SIMD` takes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// Whether this machine can run the level.
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar | Self::Portable => true,
            Self::Avx2 => launch::has_avx2(),
            Self::Avx512 => launch::has_avx512(),
        }
    }

    /// The level calls on this thread run at.
    pub fn active() -> Self {
        static DEFAULT: OnceLock<Level> = OnceLock::new();
        FORCED.get().unwrap_or_else(|| {
            *DEFAULT.get_or_init(|| {
                let best = Self::ALL.into_iter().rfind(|level| level.is_available());
                let asked = std::env::var("HADAL_SIMD").ok();
                let asked = Self::ALL.into_iter().find(|level| Some(level.name()) == asked.as_deref());
                asked.filter(|level| level.is_available()).or(best).unwrap_or(Level::Portable)
            })
        })
    }
}

thread_local! {
    static FORCED: Cell<Option<Level>> = const { Cell::new(None) };
}

/// Runs `f` with every call it makes on this thread at the given level; meant for tests and benchmarks.
///
/// A level the machine lacks is ignored, see [`Level::is_available`].
pub fn with_level<R>(level: Level, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<Level>);
    impl Drop for Restore {
        fn drop(&mut self) {
            FORCED.set(self.0);
        }
    }
    let _restore = Restore(FORCED.get());
    if level.is_available() {
        FORCED.set(Some(level));
    }
    f()
}
