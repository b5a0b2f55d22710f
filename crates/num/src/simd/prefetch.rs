//! Hints to the memory system.

#![allow(unsafe_code)] // prefetch and fence intrinsics

/// Asks for the lines that hold what lies `ahead` bytes after this run.
///
/// The processor's own prefetcher stops at page borders: for a single stream a page ahead measured best. Several
/// streams a multiple of a page apart share their places in the first cache and have to stay closer.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn prefetch<T>(run: &T, ahead: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    let ahead = std::ptr::from_ref(run).cast::<i8>().wrapping_add(ahead);
    for line in (0..size_of::<T>()).step_by(64) {
        // SAFETY: a prefetch reads nothing and cannot fault, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(line)) };
    }
}

/// Nothing to ask for on this target.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn prefetch<T>(_run: &T, _ahead: usize) {}

/// Orders streamed stores before whatever makes their memory known to another thread.
#[inline(always)]
pub(crate) fn finish_stream() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}
