//! Kernels' operations on 16-bit lanes as AVX2 and F16C instructions.

#![allow(unsafe_code)] // processor intrinsics and register loads and stores through pointers

use std::arch::x86_64::*;

use super::avx2::Avx2;
use super::halves::{Halves, Order};
use super::vector::RUN;

const LANES: usize = 16;

/// One intrinsic, allowed by the `Avx2` at hand.
macro_rules! by_proof {
    ($($body:tt)*) => {{
        // SAFETY: `self` exists only where the processor has AVX2 and F16C.
        unsafe { $($body)* }
    }};
}

impl Halves for Avx2 {
    type H = __m256i;
    type V = __m256;

    #[inline(always)]
    fn splat(self, bits: u16) -> __m256i {
        by_proof!(_mm256_set1_epi16(bits as i16))
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
        by_proof!(_mm256_add_epi16(a, b))
    }
    #[inline(always)]
    fn sub(self, a: __m256i, b: __m256i) -> __m256i {
        by_proof!(_mm256_sub_epi16(a, b))
    }
    #[inline(always)]
    fn sub_floor(self, a: __m256i, b: __m256i) -> __m256i {
        by_proof!(_mm256_subs_epu16(a, b))
    }
    #[inline(always)]
    fn min(self, a: __m256i, b: __m256i) -> __m256i {
        by_proof!(_mm256_min_epi16(a, b))
    }
    #[inline(always)]
    fn max(self, a: __m256i, b: __m256i) -> __m256i {
        by_proof!(_mm256_max_epi16(a, b))
    }
    #[inline(always)]
    fn gt(self, a: __m256i, b: __m256i) -> __m256i {
        by_proof!(_mm256_cmpgt_epi16(a, b))
    }
    #[inline(always)]
    fn eq(self, a: __m256i, b: __m256i) -> __m256i {
        by_proof!(_mm256_cmpeq_epi16(a, b))
    }
    #[inline(always)]
    fn select(self, mask: __m256i, a: __m256i, b: __m256i) -> __m256i {
        by_proof!(_mm256_blendv_epi8(b, a, mask))
    }
    #[inline(always)]
    fn shl<const N: i32>(self, v: __m256i) -> __m256i {
        by_proof!(_mm256_slli_epi16::<N>(v))
    }
    #[inline(always)]
    fn shr<const N: i32>(self, v: __m256i) -> __m256i {
        by_proof!(_mm256_srli_epi16::<N>(v))
    }
    #[inline(always)]
    fn round_shr(self, v: __m256i, power: __m256i) -> __m256i {
        by_proof!(_mm256_mulhrs_epi16(v, power))
    }
    #[inline(always)]
    fn lookup(self, [low, high]: &[[u8; 16]; 2], v: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2; the pointers are valid for the 16 bytes of each table, at any alignment.
        let (low, high) = unsafe {
            (
                _mm256_broadcastsi128_si256(_mm_loadu_si128(low.as_ptr().cast())),
                _mm256_broadcastsi128_si256(_mm_loadu_si128(high.as_ptr().cast())),
            )
        };
        by_proof!({
            // The upper byte of each lane is 0 and finds the 0 of entry 0.
            let high = _mm256_slli_epi16::<8>(_mm256_shuffle_epi8(high, v));
            _mm256_or_si256(_mm256_shuffle_epi8(low, v), high)
        })
    }
    #[inline(always)]
    fn max_of_four<O: Order>(self, v: __m256i) -> __m256i {
        by_proof!({
            let pairs = if O::DEALT {
                _mm256_max_epi16(v, _mm256_shuffle_epi32::<0b01_00_11_10>(v))
            } else {
                let swapped = _mm256_setr_epi8(
                    2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8,
                    9, 14, 15, 12, 13,
                );
                _mm256_max_epi16(v, _mm256_shuffle_epi8(v, swapped))
            };
            _mm256_max_epi16(pairs, _mm256_shuffle_epi32::<0b10_11_00_01>(pairs))
        })
    }
    #[inline(always)]
    fn largest(self, v: __m256i) -> i16 {
        let mut lanes = [[0; 2]; RUN];
        Halves::store(self, &mut lanes, false, [v, v]);
        lanes.into_iter().map(i16::from_le_bytes).max().unwrap_or(0)
    }

    #[inline(always)]
    fn widen(self, v: __m256i) -> [__m256; 2] {
        by_proof!({
            let odd = _mm256_and_si256(v, _mm256_set1_epi32(-1 << 16));
            [_mm256_castsi256_ps(_mm256_slli_epi32::<16>(v)), _mm256_castsi256_ps(odd)]
        })
    }
    #[inline(always)]
    fn float(self, x: f32) -> __m256 {
        by_proof!(_mm256_set1_ps(x))
    }
    #[inline(always)]
    fn mulf(self, a: __m256, b: __m256) -> __m256 {
        by_proof!(_mm256_mul_ps(a, b))
    }
    #[inline(always)]
    fn float16_up(self, [a, b]: [__m256; 2]) -> __m256i {
        by_proof!({
            let a = _mm256_cvtps_ph::<_MM_FROUND_TO_POS_INF>(a);
            let b = _mm256_cvtps_ph::<_MM_FROUND_TO_POS_INF>(b);
            _mm256_set_m128i(b, a)
        })
    }

    #[inline(always)]
    fn float16_down(self, v: __m256i) -> [__m256; 2] {
        by_proof!({
            [_mm256_cvtph_ps(_mm256_castsi256_si128(v)), _mm256_cvtph_ps(_mm256_extracti128_si256::<1>(v))]
        })
    }

    #[inline(always)]
    fn load(self, run: &[[u8; 2]; RUN], i: usize) -> __m256i {
        let part: &[[u8; 2]; LANES] = &run.as_chunks().0[i];
        // SAFETY: `self` proves AVX2; the pointer is valid for the 32 bytes of `part`, at any alignment.
        unsafe { _mm256_loadu_si256(part.as_ptr().cast()) }
    }
    #[inline(always)]
    fn load_u8(self, run: &[u8; RUN], i: usize) -> __m256i {
        let part: &[u8; LANES] = &run.as_chunks().0[i];
        // SAFETY: `self` proves AVX2; the pointer is valid for the 16 bytes of `part`, at any alignment.
        unsafe { _mm256_cvtepu8_epi16(_mm_loadu_si128(part.as_ptr().cast())) }
    }
    #[inline(always)]
    fn load_i8(self, run: &[u8; RUN], i: usize) -> __m256i {
        let part: &[u8; LANES] = &run.as_chunks().0[i];
        // SAFETY: `self` proves AVX2; the pointer is valid for the 16 bytes of `part`, at any alignment.
        unsafe { _mm256_cvtepi8_epi16(_mm_loadu_si128(part.as_ptr().cast())) }
    }
    #[inline(always)]
    fn load_floats(self, run: &[f32; RUN], i: usize) -> [__m256; 2] {
        let part: &[f32; LANES] = &run.as_chunks().0[i];
        // SAFETY: `self` proves AVX2; the pointers are valid for 32 bytes each of the 64 of `part`, at any alignment.
        unsafe { [_mm256_loadu_ps(part.as_ptr()), _mm256_loadu_ps(part.as_ptr().add(8))] }
    }
    #[inline(always)]
    fn store_floats(self, run: &mut [f32; RUN], stream: bool, halves: [[__m256; 2]; 2]) {
        for (part, reg) in run.as_chunks_mut::<{ LANES / 2 }>().0.iter_mut().zip(halves.as_flattened()) {
            self.store_reg(part, stream, by_proof!(_mm256_castps_si256(*reg)));
        }
    }
    #[inline(always)]
    fn load_odd(self, run: &[f32; RUN], i: usize) -> __m256i {
        let part: &[f32; LANES] = &run.as_chunks().0[i];
        by_proof!({
            // SAFETY: the pointer is valid for the 64 bytes of `part`, at any alignment.
            let (a, b) = {
                let from: *const __m256i = part.as_ptr().cast();
                (_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1)))
            };
            // The lower halves of both, and the upper ones.
            let low = _mm256_blend_epi16::<0b1010_1010>(a, _mm256_slli_epi32::<16>(b));
            let high = _mm256_blend_epi16::<0b1010_1010>(_mm256_srli_epi32::<16>(a), b);
            _mm256_or_si256(high, _mm256_min_epu16(low, _mm256_set1_epi16(1)))
        })
    }
    #[inline(always)]
    fn store(self, run: &mut [[u8; 2]; RUN], stream: bool, codes: [__m256i; 2]) {
        for (part, reg) in run.as_chunks_mut::<LANES>().0.iter_mut().zip(codes) {
            self.store_reg(part, stream, reg);
        }
    }
    #[inline(always)]
    fn store_u8<O: Order>(
        self,
        run: &mut [u8; RUN],
        stream: bool,
        codes: [__m256i; 2],
        limit: u8,
        signed: [__m256i; 2],
    ) {
        let [a, b] = codes;
        let bytes = by_proof!({
            let codes = _mm256_min_epu8(_mm256_packus_epi16(a, b), _mm256_set1_epi8(limit as i8));
            // A pack interleaves 64-bit quarters of its operands. Then codes of dealt lanes are in order, and so are
            // the signs of lanes in order; the other one is not.
            let codes = _mm256_permute4x64_epi64::<0b11_01_10_00>(codes);
            let signs = _mm256_permute4x64_epi64::<0b11_01_10_00>(self.packed_signs(signed));
            if O::DEALT {
                let even_first = _mm256_setr_epi8(
                    0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15, 0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5,
                    7, 9, 11, 13, 15,
                );
                _mm256_or_si256(codes, _mm256_shuffle_epi8(signs, even_first))
            } else {
                let in_turn = _mm256_setr_epi8(
                    0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5,
                    13, 6, 14, 7, 15,
                );
                _mm256_or_si256(_mm256_shuffle_epi8(codes, in_turn), signs)
            }
        });
        self.store_reg(run, stream, bytes);
    }
    #[inline(always)]
    fn store_u4<O: Order>(
        self,
        run: &mut [u8; RUN / 2],
        [a, b]: [__m256i; 2],
        table: &[u8; 16],
        signed: [__m256i; 2],
    ) {
        by_proof!({
            let steps = _mm256_packus_epi16(a, b);
            // SAFETY: the pointer is valid for the 16 bytes of `table`, at any alignment.
            let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
            let entry = _mm256_min_epu8(_mm256_subs_epu8(steps, _mm256_set1_epi8(3)), _mm256_set1_epi8(15));
            let one = _mm256_min_epu8(steps, _mm256_set1_epi8(1));
            let codes = _mm256_add_epi8(_mm256_shuffle_epi8(table, entry), one);
            let signs = _mm256_srli_epi16::<4>(self.packed_signs(signed));
            let mut codes = _mm256_or_si256(codes, signs);
            if O::DEALT {
                let even_first = _mm256_setr_epi8(
                    0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15, 0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12,
                    14, 9, 11, 13, 15,
                );
                codes = _mm256_shuffle_epi8(codes, even_first);
            }
            let pairs = _mm256_maddubs_epi16(codes, _mm256_set1_epi16(0x1001));
            let bytes = _mm_packus_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256::<1>(pairs));
            // What the pack of `a` and `b` left: four bytes of `a`, four of `b`, and again. Of dealt lanes, the first
            // two of four belong before the first two of the second four of `a`, and the others after.
            let order = if O::DEALT {
                _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15)
            } else {
                _mm_setr_epi8(0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15)
            };
            // SAFETY: the pointer is valid for the 16 bytes of `run`, at any alignment.
            _mm_storeu_si128(run.as_mut_ptr().cast(), _mm_shuffle_epi8(bytes, order));
        });
    }
}

impl Avx2 {
    /// The signs of two registers in bit 7 of bytes.
    #[inline(always)]
    fn packed_signs(self, [a, b]: [__m256i; 2]) -> __m256i {
        // Packing with signed saturation keeps the sign of every lane, so the signs need no shifts.
        by_proof!(_mm256_and_si256(_mm256_packs_epi16(a, b), _mm256_set1_epi8(i8::MIN)))
    }
}
