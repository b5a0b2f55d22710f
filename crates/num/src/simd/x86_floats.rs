//! Registers of float32 as AVX2 and AVX-512 have them.

#![allow(unsafe_code)] // processor intrinsics and register loads and stores through pointers

use std::arch::x86_64::*;

use super::floats::Floats;

/// Proof that the processor has AVX2, and FMA if `FMA`.
#[derive(Clone, Copy)]
pub(crate) struct Eight<const FMA: bool>(());

/// Proof that the processor has AVX-512 F.
#[derive(Clone, Copy)]
pub(crate) struct Sixteen(());

impl<const FMA: bool> Eight<FMA> {
    /// The proof, for a caller that has it.
    ///
    /// # Safety
    /// The processor must support AVX2, and FMA if `FMA`.
    pub(super) unsafe fn new() -> Self {
        Self(())
    }
}

impl Sixteen {
    /// The proof, for a caller that has it.
    ///
    /// # Safety
    /// The processor must support AVX-512 F.
    pub(super) unsafe fn new() -> Self {
        Self(())
    }
}

macro_rules! floats {
    (
        $name:ty, $reg:ty, $lanes:literal, $fuses:expr,
        $zero:ident $splat:ident $load:ident $store:ident $mul:ident $add:ident $fma:ident $canonical:ident
    ) => {
        impl Floats for $name {
            type F = $reg;
            const LANES: usize = $lanes;
            const FUSES: bool = $fuses;

            #[inline(always)]
            fn zero(self) -> $reg {
                // SAFETY: `self` exists only where the processor has the instruction.
                unsafe { $zero() }
            }
            #[inline(always)]
            fn splat(self, x: &f32) -> $reg {
                // SAFETY: as above.
                unsafe { $splat(*x) }
            }
            #[inline(always)]
            fn load<const N: usize>(self, row: &[f32; N], i: usize) -> $reg {
                let part: &[f32; $lanes] = &row.as_chunks().0[i];
                // SAFETY: as above; the pointer is valid for the register's bytes, at any alignment.
                unsafe { $load(part.as_ptr()) }
            }
            #[inline(always)]
            fn store<const N: usize>(self, row: &mut [f32; N], i: usize, v: $reg) {
                let part: &mut [f32; $lanes] = &mut row.as_chunks_mut().0[i];
                // SAFETY: as for `load`.
                unsafe { $store(part.as_mut_ptr(), v) }
            }
            #[inline(always)]
            fn mul(self, a: $reg, b: $reg) -> $reg {
                // SAFETY: `self` exists only where the processor has the instruction.
                unsafe { $mul(a, b) }
            }
            #[inline(always)]
            fn add(self, a: $reg, b: $reg) -> $reg {
                // SAFETY: as above.
                unsafe { $add(a, b) }
            }
            #[inline(always)]
            fn mul_add(self, a: $reg, b: $reg, c: $reg) -> $reg {
                // SAFETY: as above.
                unsafe { $fma(a, b, c) }
            }
            #[inline(always)]
            fn canonical(self, v: $reg) -> $reg {
                // SAFETY: as above.
                unsafe { $canonical(v) }
            }
        }
    };
}

/// Every NaN as 7FC00000.
///
/// # Safety
/// The processor must support AVX.
#[inline(always)]
unsafe fn canonical_8(v: __m256) -> __m256 {
    // SAFETY: by contract.
    unsafe {
        _mm256_blendv_ps(v, _mm256_set1_ps(f32::from_bits(0x7FC0_0000)), _mm256_cmp_ps::<_CMP_UNORD_Q>(v, v))
    }
}

/// Every NaN as 7FC00000.
///
/// # Safety
/// The processor must support AVX-512 F.
#[inline(always)]
unsafe fn canonical_16(v: __m512) -> __m512 {
    // SAFETY: by contract.
    unsafe {
        _mm512_mask_mov_ps(
            v,
            _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(v, v),
            _mm512_set1_ps(f32::from_bits(0x7FC0_0000)),
        )
    }
}

/// What stands in for the fused operation where there is none.
///
/// # Safety
/// The processor must support AVX.
#[inline(always)]
unsafe fn mul_then_add(a: __m256, b: __m256, c: __m256) -> __m256 {
    // SAFETY: by contract.
    unsafe { _mm256_add_ps(_mm256_mul_ps(a, b), c) }
}

floats! {
    Eight<true>, __m256, 8, true,
    _mm256_setzero_ps _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_mul_ps _mm256_add_ps _mm256_fmadd_ps
    canonical_8
}
floats! {
    Eight<false>, __m256, 8, false,
    _mm256_setzero_ps _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_mul_ps _mm256_add_ps mul_then_add
    canonical_8
}
floats! {
    Sixteen, __m512, 16, true,
    _mm512_setzero_ps _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_mul_ps _mm512_add_ps _mm512_fmadd_ps
    canonical_16
}
