//! The operations a kernel is written in, and the form of them any compiler can vectorize.

use super::halves::{Halves, Never};

/// Elements a kernel handles between two looks at its loop counter.
pub(crate) const RUN: usize = 32;

/// A register of 32-bit lanes, read as integers or as float32 as the operation says.
///
/// A value of an implementing type is the permission to use its instructions, so it exists only where the
/// processor has them. Floating-point operations round once each; none is fused.
pub(crate) trait Simd: Copy + Send + Sync + 'static {
    /// The register.
    type V: Copy;
    /// The operations on 16-bit lanes.
    type Halves: Halves;
    /// Whether [`Simd::lookup`] is one instruction, and not slower than computing what it looks up.
    const LOOKS_UP: bool;
    /// The operations on 16-bit lanes, if kernels should use them.
    fn halves(self) -> Option<Self::Halves>;
    /// The same bits in every lane.
    fn splat(self, bits: u32) -> Self::V;
    /// Bitwise and.
    fn and(self, a: Self::V, b: Self::V) -> Self::V;
    /// Bitwise or.
    fn or(self, a: Self::V, b: Self::V) -> Self::V;
    /// Bitwise exclusive or.
    fn xor(self, a: Self::V, b: Self::V) -> Self::V;
    /// Wrapping integer sum.
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    /// Wrapping integer difference.
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    /// `max(a - b, 0)` of lanes below 2^31 whose low 16 bits are zero.
    fn sub_floor(self, a: Self::V, b: Self::V) -> Self::V;
    /// The smaller of signed lanes.
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// The larger of signed lanes.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// All ones where `a > b`, as signed lanes.
    fn gt(self, a: Self::V, b: Self::V) -> Self::V;
    /// All ones where `v` is a NaN.
    fn is_nan(self, v: Self::V) -> Self::V;
    /// `a` where the mask, a result of [`Simd::gt`] or [`Simd::is_nan`], is set, `b` elsewhere.
    fn select(self, mask: Self::V, a: Self::V, b: Self::V) -> Self::V;
    /// Shift left by `n` below 32, a constant wherever this is inlined; zeros in.
    fn shl(self, v: Self::V, n: u32) -> Self::V;
    /// Shift right by `n` below 32, a constant wherever this is inlined; zeros in.
    fn shr(self, v: Self::V, n: u32) -> Self::V;
    /// The entry each lane's low three bits select.
    fn lookup(self, table: &[u32; 8], v: Self::V) -> Self::V;
    /// float32 sum.
    fn addf(self, a: Self::V, b: Self::V) -> Self::V;
    /// float32 difference.
    fn subf(self, a: Self::V, b: Self::V) -> Self::V;
    /// float32 product.
    fn mulf(self, a: Self::V, b: Self::V) -> Self::V;

    /// Register `i` of a run of float32.
    fn load_f32(self, run: &[f32; RUN], i: usize) -> Self::V;
    /// Register `i` of a run of 16-bit codes, zero-extended.
    fn load_u16(self, run: &[[u8; 2]; RUN], i: usize) -> Self::V;
    /// Register `i` of a run of bytes, zero-extended.
    fn load_u8(self, run: &[u8; RUN], i: usize) -> Self::V;
    /// Writes a run of float32 given as registers, past the caches if `stream` and the address allow.
    fn store_f32(self, run: &mut [f32; RUN], stream: bool, f: impl FnMut(usize) -> Self::V);
    /// Writes a run of 16-bit codes given as registers of codes below 2^16.
    fn store_u16(self, run: &mut [[u8; 2]; RUN], stream: bool, f: impl FnMut(usize) -> Self::V);
    /// The sign bits of a run given as registers, each in bit 7 of a byte of its own.
    fn sign_bytes(self, f: impl FnMut(usize) -> Self::V) -> [u8; RUN];
    /// Writes a run of bytes given as registers of codes below 256, with the bits of `signs` set too.
    fn store_u8(self, run: &mut [u8; RUN], stream: bool, signs: &[u8; RUN], f: impl FnMut(usize) -> Self::V);
    /// In each group of four lanes, four times the largest, as signed lanes.
    fn max_of_four(self, run: &[u32; RUN]) -> [u32; RUN];
    /// Register `i` of a run of 32-bit integers.
    fn load_u32(self, run: &[u32; RUN], i: usize) -> Self::V;
    /// Writes a run of 32-bit integers.
    fn store_u32(self, run: &mut [u32; RUN], f: impl FnMut(usize) -> Self::V);
}

/// One lane at a time, in loops of constant length that the vectorizer widens to whatever it is compiled for.
#[derive(Clone, Copy)]
pub(crate) struct Auto;

impl Simd for Auto {
    type V = u32;
    type Halves = Never;
    const LOOKS_UP: bool = false;

    #[inline(always)]
    fn halves(self) -> Option<Never> {
        None
    }
    #[inline(always)]
    fn splat(self, bits: u32) -> u32 {
        bits
    }
    #[inline(always)]
    fn and(self, a: u32, b: u32) -> u32 {
        a & b
    }
    #[inline(always)]
    fn or(self, a: u32, b: u32) -> u32 {
        a | b
    }
    #[inline(always)]
    fn xor(self, a: u32, b: u32) -> u32 {
        a ^ b
    }
    #[inline(always)]
    fn add(self, a: u32, b: u32) -> u32 {
        a.wrapping_add(b)
    }
    #[inline(always)]
    fn sub(self, a: u32, b: u32) -> u32 {
        a.wrapping_sub(b)
    }
    #[inline(always)]
    fn sub_floor(self, a: u32, b: u32) -> u32 {
        (a as i32).max(b as i32).wrapping_sub(b as i32) as u32
    }
    #[inline(always)]
    fn min(self, a: u32, b: u32) -> u32 {
        (a as i32).min(b as i32) as u32
    }
    #[inline(always)]
    fn max(self, a: u32, b: u32) -> u32 {
        (a as i32).max(b as i32) as u32
    }
    #[inline(always)]
    fn gt(self, a: u32, b: u32) -> u32 {
        if a as i32 > b as i32 { u32::MAX } else { 0 }
    }
    #[inline(always)]
    fn is_nan(self, v: u32) -> u32 {
        if f32::from_bits(v).is_nan() { u32::MAX } else { 0 }
    }
    #[inline(always)]
    fn select(self, mask: u32, a: u32, b: u32) -> u32 {
        if mask != 0 { a } else { b }
    }
    #[inline(always)]
    fn shl(self, v: u32, n: u32) -> u32 {
        v << n
    }
    #[inline(always)]
    fn shr(self, v: u32, n: u32) -> u32 {
        v >> n
    }
    #[inline(always)]
    fn lookup(self, table: &[u32; 8], v: u32) -> u32 {
        table[v as usize % 8]
    }
    #[inline(always)]
    fn addf(self, a: u32, b: u32) -> u32 {
        (f32::from_bits(a) + f32::from_bits(b)).to_bits()
    }
    #[inline(always)]
    fn subf(self, a: u32, b: u32) -> u32 {
        (f32::from_bits(a) - f32::from_bits(b)).to_bits()
    }
    #[inline(always)]
    fn mulf(self, a: u32, b: u32) -> u32 {
        (f32::from_bits(a) * f32::from_bits(b)).to_bits()
    }
    #[inline(always)]
    fn load_f32(self, run: &[f32; RUN], i: usize) -> u32 {
        run[i].to_bits()
    }
    #[inline(always)]
    fn load_u16(self, run: &[[u8; 2]; RUN], i: usize) -> u32 {
        u32::from(u16::from_le_bytes(run[i]))
    }
    #[inline(always)]
    fn load_u8(self, run: &[u8; RUN], i: usize) -> u32 {
        u32::from(run[i])
    }
    #[inline(always)]
    fn store_f32(self, run: &mut [f32; RUN], _stream: bool, mut f: impl FnMut(usize) -> u32) {
        for (i, to) in run.iter_mut().enumerate() {
            *to = f32::from_bits(f(i));
        }
    }
    #[inline(always)]
    fn store_u16(self, run: &mut [[u8; 2]; RUN], _stream: bool, mut f: impl FnMut(usize) -> u32) {
        for (i, to) in run.iter_mut().enumerate() {
            *to = (f(i) as u16).to_le_bytes();
        }
    }
    #[inline(always)]
    fn sign_bytes(self, mut f: impl FnMut(usize) -> u32) -> [u8; RUN] {
        let mut signs = [0; RUN];
        for (i, to) in signs.iter_mut().enumerate() {
            *to = (f(i) >> 24 & 0x80) as u8;
        }
        signs
    }
    #[inline(always)]
    fn store_u8(
        self,
        run: &mut [u8; RUN],
        _stream: bool,
        signs: &[u8; RUN],
        mut f: impl FnMut(usize) -> u32,
    ) {
        for (i, (to, sign)) in run.iter_mut().zip(signs).enumerate() {
            *to = f(i) as u8 | sign;
        }
    }
    #[inline(always)]
    fn max_of_four(self, run: &[u32; RUN]) -> [u32; RUN] {
        let mut out = [0; RUN];
        for (to, from) in out.as_chunks_mut::<4>().0.iter_mut().zip(run.as_chunks::<4>().0) {
            let [a, b, c, d] = *from;
            *to = [self.max(self.max(a, b), self.max(c, d)); 4];
        }
        out
    }
    #[inline(always)]
    fn load_u32(self, run: &[u32; RUN], i: usize) -> u32 {
        run[i]
    }
    #[inline(always)]
    fn store_u32(self, run: &mut [u32; RUN], mut f: impl FnMut(usize) -> u32) {
        for (i, to) in run.iter_mut().enumerate() {
            *to = f(i);
        }
    }
}
