//! Kernels' operations as AVX2 instructions.

#![allow(unsafe_code)] // processor intrinsics and register loads and stores through pointers

use std::arch::x86_64::*;

use super::vector::{RUN, Simd};

/// Proof that the processor has AVX2 and F16C.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// The proof, for a caller that has it.
    ///
    /// # Safety
    /// The processor must support AVX2 and F16C.
    pub(super) unsafe fn new() -> Self {
        Self(())
    }
}

const LANES: usize = 8;

/// One intrinsic, allowed by the `Avx2` at hand.
macro_rules! by_proof {
    ($($body:tt)*) => {{
        // SAFETY: `self` exists only where the processor has AVX2.
        unsafe { $($body)* }
    }};
}

impl Simd for Avx2 {
    type V = __m256i;
    type Halves = Self;
    const LOOKS_UP: bool = true;

    #[inline(always)]
    fn halves(self) -> Option<Self> {
        Some(self)
    }
    #[inline(always)]
    fn splat(self, bits: u32) -> __m256i {
        by_proof!(_mm256_set1_epi32(bits as i32))
    }
    #[inline(always)]
    fn and(self, a: __m256i, b: __m256i) -> __m256i {
        by_proof!(_mm256_and_si256(a, b))
    }
    #[inline(always)]
    fn or(self, a: __m256i, b: __m256i) -> __m256i {
        by_proof!(_mm256_or_si256(a, b))
    }
    #[inline(always)]
    fn xor(self, a: __m256i, b: __m256i) -> __m256i {
        by_proof!(_mm256_xor_si256(a, b))
    }
    #[inline(always)]
    fn add(self, a: __m256i, b: __m256i) -> __m256i {
        by_proof!(_mm256_add_epi32(a, b))
    }
    #[inline(always)]
    fn sub(self, a: __m256i, b: __m256i) -> __m256i {
        by_proof!(_mm256_sub_epi32(a, b))
    }
    #[inline(always)]
    fn sub_floor(self, a: __m256i, b: __m256i) -> __m256i {
        // With zero low halves the upper halves are the whole number, and 16 bits have a saturating form.
        by_proof!(_mm256_subs_epu16(a, b))
    }
    #[inline(always)]
    fn min(self, a: __m256i, b: __m256i) -> __m256i {
        by_proof!(_mm256_min_epi32(a, b))
    }
    #[inline(always)]
    fn max(self, a: __m256i, b: __m256i) -> __m256i {
        by_proof!(_mm256_max_epi32(a, b))
    }
    #[inline(always)]
    fn gt(self, a: __m256i, b: __m256i) -> __m256i {
        by_proof!(_mm256_cmpgt_epi32(a, b))
    }
    #[inline(always)]
    fn is_nan(self, v: __m256i) -> __m256i {
        by_proof!({
            let v = _mm256_castsi256_ps(v);
            _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(v, v))
        })
    }
    #[inline(always)]
    fn select(self, mask: __m256i, a: __m256i, b: __m256i) -> __m256i {
        by_proof!(_mm256_blendv_epi8(b, a, mask))
    }
    #[inline(always)]
    fn shl(self, v: __m256i, n: u32) -> __m256i {
        by_proof!(_mm256_sll_epi32(v, _mm_cvtsi32_si128(n as i32)))
    }
    #[inline(always)]
    fn shr(self, v: __m256i, n: u32) -> __m256i {
        by_proof!(_mm256_srl_epi32(v, _mm_cvtsi32_si128(n as i32)))
    }
    #[inline(always)]
    fn lookup(self, table: &[u32; 8], v: __m256i) -> __m256i {
        by_proof!(_mm256_permutevar8x32_epi32(self.load_table(table), v))
    }
    #[inline(always)]
    fn addf(self, a: __m256i, b: __m256i) -> __m256i {
        by_proof!(_mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b))))
    }
    #[inline(always)]
    fn subf(self, a: __m256i, b: __m256i) -> __m256i {
        by_proof!(_mm256_castps_si256(_mm256_sub_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b))))
    }
    #[inline(always)]
    fn mulf(self, a: __m256i, b: __m256i) -> __m256i {
        by_proof!(_mm256_castps_si256(_mm256_mul_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b))))
    }

    #[inline(always)]
    fn load_f32(self, run: &[f32; RUN], i: usize) -> __m256i {
        let part: &[f32; LANES] = &run.as_chunks().0[i];
        // SAFETY: `self` proves AVX2; the pointer is valid for the 32 bytes of `part`, at any alignment.
        unsafe { _mm256_loadu_si256(part.as_ptr().cast()) }
    }
    #[inline(always)]
    fn load_u16(self, run: &[[u8; 2]; RUN], i: usize) -> __m256i {
        let part: &[[u8; 2]; LANES] = &run.as_chunks().0[i];
        // SAFETY: `self` proves AVX2; the pointer is valid for the 16 bytes of `part`, at any alignment.
        unsafe { _mm256_cvtepu16_epi32(_mm_loadu_si128(part.as_ptr().cast())) }
    }
    #[inline(always)]
    fn load_u8(self, run: &[u8; RUN], i: usize) -> __m256i {
        let part: &[u8; LANES] = &run.as_chunks().0[i];
        // SAFETY: `self` proves AVX2; the pointer is valid for the 8 bytes of `part`, at any alignment.
        unsafe { _mm256_cvtepu8_epi32(_mm_loadl_epi64(part.as_ptr().cast())) }
    }
    #[inline(always)]
    fn load_u32(self, run: &[u32; RUN], i: usize) -> __m256i {
        let part: &[u32; LANES] = &run.as_chunks().0[i];
        // SAFETY: `self` proves AVX2; the pointer is valid for the 32 bytes of `part`, at any alignment.
        unsafe { _mm256_loadu_si256(part.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store_f32(self, run: &mut [f32; RUN], stream: bool, mut f: impl FnMut(usize) -> __m256i) {
        let regs = [f(0), f(1), f(2), f(3)];
        for (part, reg) in run.as_chunks_mut::<LANES>().0.iter_mut().zip(regs) {
            self.store_reg(part, stream, reg);
        }
    }
    #[inline(always)]
    fn store_u32(self, run: &mut [u32; RUN], mut f: impl FnMut(usize) -> __m256i) {
        let regs = [f(0), f(1), f(2), f(3)];
        for (part, reg) in run.as_chunks_mut::<LANES>().0.iter_mut().zip(regs) {
            self.store_reg(part, false, reg);
        }
    }
    #[inline(always)]
    fn store_u16(self, run: &mut [[u8; 2]; RUN], stream: bool, mut f: impl FnMut(usize) -> __m256i) {
        for (i, part) in run.as_chunks_mut::<{ 2 * LANES }>().0.iter_mut().enumerate() {
            let (a, b) = (f(2 * i), f(2 * i + 1));
            // The pack interleaves 64-bit quarters of its operands; the permutation puts them in order.
            let packed = by_proof!(_mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(a, b)));
            self.store_reg(part, stream, packed);
        }
    }
    #[inline(always)]
    fn sign_bytes(self, mut f: impl FnMut(usize) -> __m256i) -> [u8; RUN] {
        let [a, b, c, d] = [f(0), f(1), f(2), f(3)];
        // Packing with signed saturation keeps the sign of every lane, so the signs need no shifts.
        let signs = by_proof!({
            let signs = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
            _mm256_and_si256(in_order(signs), _mm256_set1_epi8(i8::MIN))
        });
        let mut bytes = [0; RUN];
        self.store_reg(&mut bytes, false, signs);
        bytes
    }
    #[inline(always)]
    fn store_u8(
        self,
        run: &mut [u8; RUN],
        stream: bool,
        signs: &[u8; RUN],
        mut f: impl FnMut(usize) -> __m256i,
    ) {
        let [a, b, c, d] = [f(0), f(1), f(2), f(3)];
        // SAFETY: `self` proves AVX2; the pointer is valid for the 32 bytes of `signs`, at any alignment.
        let bytes = unsafe {
            let codes = _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d));
            _mm256_or_si256(in_order(codes), _mm256_loadu_si256(signs.as_ptr().cast()))
        };
        self.store_reg(run, stream, bytes);
    }

    #[inline(always)]
    fn max_of_four(self, run: &[u32; RUN]) -> [u32; RUN] {
        let mut out = [0; RUN];
        self.store_u32(&mut out, |i| {
            let v = self.load_u32(run, i);
            by_proof!({
                let pairs = _mm256_max_epi32(v, _mm256_shuffle_epi32::<0b10_11_00_01>(v));
                _mm256_max_epi32(pairs, _mm256_shuffle_epi32::<0b01_00_11_10>(pairs))
            })
        });
        out
    }
}

impl Avx2 {
    #[inline(always)]
    fn load_table(self, table: &[u32; LANES]) -> __m256i {
        // SAFETY: `self` proves AVX2; the pointer is valid for the 32 bytes of `table`, at any alignment.
        unsafe { _mm256_loadu_si256(table.as_ptr().cast()) }
    }

    /// Writes a register over 32 bytes of plain numbers.
    #[inline(always)]
    pub(super) fn store_reg<T: Number, const N: usize>(self, part: &mut [T; N], stream: bool, reg: __m256i) {
        const { assert!(size_of::<[T; N]>() == 32) };
        let to: *mut __m256i = part.as_mut_ptr().cast();
        if stream && to.is_aligned() {
            // SAFETY: `self` proves AVX2; the pointer is valid for the 32 bytes of `part` and was just found to
            // be aligned. Any bits are a value of `T`.
            unsafe { _mm256_stream_si256(to, reg) }
        } else if stream && to.cast::<__m128i>().is_aligned() {
            // What allocators guarantee is 16 bytes, so halves go out the same way.
            // SAFETY: as above, for two halves of the 32 bytes.
            unsafe {
                _mm_stream_si128(to.cast(), _mm256_castsi256_si128(reg));
                _mm_stream_si128(to.cast::<__m128i>().add(1), _mm256_extracti128_si256::<1>(reg));
            }
        } else {
            // SAFETY: as above, at any alignment.
            unsafe { _mm256_storeu_si256(to, reg) }
        }
    }
}

/// Undoes the order two packs leave: each works within 128-bit halves, which mixes groups of four bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn in_order(packed: __m256i) -> __m256i {
    _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
}

/// Types of which any bits are a value.
pub(super) trait Number {}
impl Number for u8 {}
impl Number for [u8; 2] {}
impl Number for u32 {}
impl Number for f32 {}
