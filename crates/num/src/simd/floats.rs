//! Registers of float32 for the products of matrices.

use super::Level;

/// The float32 arithmetic a product is written in. A value of an implementing type is the permission to use its
/// instructions. [`Floats::mul`] and [`Floats::add`] round once each and are never joined; only
/// [`Floats::mul_add`] leaves the product unrounded.
pub(crate) trait Floats: Copy + Send + Sync + 'static {
    /// The register.
    type F: Copy;
    /// float32 in a register.
    const LANES: usize;
    /// Whether [`Floats::mul_add`] is one instruction. Where it is not, nothing may call it.
    const FUSES: bool;
    /// +0 in every lane.
    fn zero(self) -> Self::F;
    /// The same value in every lane.
    fn splat(self, x: &f32) -> Self::F;
    /// Register `i` of a row.
    fn load<const N: usize>(self, row: &[f32; N], i: usize) -> Self::F;
    /// Writes register `i` of a row.
    fn store<const N: usize>(self, row: &mut [f32; N], i: usize, v: Self::F);
    /// The product, rounded.
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    /// The sum, rounded.
    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a b + c`, rounded once.
    fn mul_add(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// Every NaN as 7FC00000.
    fn canonical(self, v: Self::F) -> Self::F;
}

/// A computation on registers of float32, compiled once for each instruction set. `run` and all it calls must be
/// `#[inline(always)]`.
pub(crate) trait FloatKernel {
    /// What the computation returns.
    type Output;
    /// The computation.
    fn run<V: Floats>(self, v: V) -> Self::Output;
}

/// Four lanes in loops of constant length, which the compiler makes SSE2 or NEON.
#[derive(Clone, Copy)]
pub(crate) struct Four;

impl Floats for Four {
    type F = [f32; 4];
    const LANES: usize = 4;
    const FUSES: bool = false;

    #[inline(always)]
    fn zero(self) -> [f32; 4] {
        [0.0; 4]
    }
    #[inline(always)]
    fn splat(self, x: &f32) -> [f32; 4] {
        [*x; 4]
    }
    #[inline(always)]
    fn load<const N: usize>(self, row: &[f32; N], i: usize) -> [f32; 4] {
        row.as_chunks().0[i]
    }
    #[inline(always)]
    fn store<const N: usize>(self, row: &mut [f32; N], i: usize, v: [f32; 4]) {
        row.as_chunks_mut().0[i] = v;
    }
    #[inline(always)]
    fn mul(self, a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        [a[0] * b[0], a[1] * b[1], a[2] * b[2], a[3] * b[3]]
    }
    #[inline(always)]
    fn add(self, a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        [a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]]
    }
    #[inline(always)]
    fn mul_add(self, a: [f32; 4], b: [f32; 4], c: [f32; 4]) -> [f32; 4] {
        self.add(self.mul(a, b), c)
    }
    #[inline(always)]
    fn canonical(self, v: [f32; 4]) -> [f32; 4] {
        v.map(crate::matmul::canonical)
    }
}

/// How wide and high the tiles of a level are: the columns and most rows of outputs kept in registers.
pub(crate) const fn tile(level: Level) -> (usize, usize) {
    match level {
        Level::Avx512 => (32, 13),
        Level::Avx2 => (16, 6),
        Level::Scalar | Level::Portable => (8, 4),
    }
}
