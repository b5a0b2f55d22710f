//! How runs of the floating-point types are read into registers and written from them.

use crate::Overflow;
use crate::lane::{
    self, Bfloat16, Float4E2m1fn, Float8E3m4, Float8E4m3, Float8E4m3fn, Float8E5m2, Float16, Narrow,
};
use crate::simd::{Kernel, RUN, Simd, finish_stream, prefetch};

/// A storage form of floating-point elements.
pub(crate) trait Codec: Copy + Send + Sync + 'static {
    /// What a slice of it is made of: a container, or the byte for packed nibbles.
    type Unit: Copy + Send + Sync;
    /// The units of [`RUN`] elements.
    type Run: Default + AsRef<[Self::Unit]> + AsMut<[Self::Unit]>;
    /// A run ready to be loaded.
    type Open<'a>;
    /// Units in a run.
    const UNITS: usize;

    /// Whole runs and the rest.
    fn runs(units: &[Self::Unit]) -> (&[Self::Run], &[Self::Unit]);
    /// Whole runs and the rest.
    fn runs_mut(units: &mut [Self::Unit]) -> (&mut [Self::Run], &mut [Self::Unit]);
    /// Prepares a run for [`Codec::load`].
    fn open(run: &Self::Run) -> Self::Open<'_>;
    /// Register `i` of the run, as float32.
    fn load<S: Simd>(s: S, run: &Self::Open<'_>, i: usize) -> S::V;
    /// Writes the run from float32 registers.
    fn store<S: Simd>(s: S, run: &mut Self::Run, how: Store, f: impl FnMut(usize) -> S::V);
}

/// How results are rounded and written.
#[derive(Clone, Copy)]
pub(crate) struct Store {
    /// What becomes of values past the largest finite one.
    pub(crate) overflow: Overflow,
    /// Whether to write past the caches.
    pub(crate) stream: bool,
}

macro_rules! run_of {
    ($unit:ty, $len:expr) => {
        type Unit = $unit;
        type Run = [$unit; $len];
        const UNITS: usize = $len;
        #[inline(always)]
        fn runs(units: &[$unit]) -> (&[Self::Run], &[$unit]) {
            units.as_chunks()
        }
        #[inline(always)]
        fn runs_mut(units: &mut [$unit]) -> (&mut [Self::Run], &mut [$unit]) {
            units.as_chunks_mut()
        }
    };
}

macro_rules! open_as_is {
    () => {
        type Open<'a> = &'a Self::Run;
        #[inline(always)]
        fn open(run: &Self::Run) -> &Self::Run {
            run
        }
    };
}

/// float32 in memory order, not as bytes.
#[derive(Clone, Copy)]
pub(crate) struct Native;

impl Codec for Native {
    run_of!(f32, RUN);
    open_as_is!();
    #[inline(always)]
    fn load<S: Simd>(s: S, run: &&[f32; RUN], i: usize) -> S::V {
        s.load_f32(run, i)
    }
    #[inline(always)]
    fn store<S: Simd>(s: S, run: &mut [f32; RUN], how: Store, f: impl FnMut(usize) -> S::V) {
        s.store_f32(run, how.stream, f);
    }
}

impl Codec for Bfloat16 {
    run_of!([u8; 2], RUN);
    open_as_is!();
    #[inline(always)]
    fn load<S: Simd>(s: S, run: &&[[u8; 2]; RUN], i: usize) -> S::V {
        s.shl(s.load_u16(run, i), 16)
    }
    #[inline(always)]
    fn store<S: Simd>(s: S, run: &mut [[u8; 2]; RUN], how: Store, f: impl FnMut(usize) -> S::V) {
        store_16::<S, Self>(s, run, how, f);
    }
}

impl Codec for Float16 {
    run_of!([u8; 2], RUN);
    open_as_is!();
    #[inline(always)]
    fn load<S: Simd>(s: S, run: &&[[u8; 2]; RUN], i: usize) -> S::V {
        lane::decode::<S, Self>(s, s.load_u16(run, i))
    }
    #[inline(always)]
    fn store<S: Simd>(s: S, run: &mut [[u8; 2]; RUN], how: Store, f: impl FnMut(usize) -> S::V) {
        store_16::<S, Self>(s, run, how, f);
    }
}

/// bfloat16 written from values it holds exactly, such as every 8-bit float: nothing is left to round, and no
/// infinity is clamped.
#[derive(Clone, Copy)]
pub(crate) struct ExactBfloat16;

impl Codec for ExactBfloat16 {
    run_of!([u8; 2], RUN);
    open_as_is!();
    #[inline(always)]
    fn load<S: Simd>(s: S, run: &&[[u8; 2]; RUN], i: usize) -> S::V {
        s.shl(s.load_u16(run, i), 16)
    }
    #[inline(always)]
    fn store<S: Simd>(s: S, run: &mut [[u8; 2]; RUN], how: Store, mut f: impl FnMut(usize) -> S::V) {
        s.store_u16(
            run,
            how.stream,
            #[inline(always)]
            |i| s.shr(f(i), 16),
        );
    }
}

#[inline(always)]
fn store_16<S: Simd, T: Narrow>(
    s: S,
    run: &mut [[u8; 2]; RUN],
    how: Store,
    mut f: impl FnMut(usize) -> S::V,
) {
    s.store_u16(
        run,
        how.stream,
        #[inline(always)]
        |i| {
            let x = f(i);
            let sign = s.and(s.shr(x, 16), s.splat(0x8000));
            s.or(sign, lane::encode::<S, T>(s, x, how.overflow))
        },
    );
}

/// A format of at most 8 bits, whose codes a kernel may make by itself.
pub(crate) trait Packed: Codec<Unit = u8> + Narrow {
    /// Writes a run from registers of magnitude codes and the signs that [`Simd::sign_bytes`] gives.
    fn store_codes<S: Simd>(
        s: S,
        run: &mut Self::Run,
        stream: bool,
        signs: &[u8; RUN],
        f: impl FnMut(usize) -> S::V,
    );
}

macro_rules! packed_store {
    () => {
        #[inline(always)]
        fn store<S: Simd>(s: S, run: &mut Self::Run, how: Store, mut f: impl FnMut(usize) -> S::V) {
            let signs = s.sign_bytes(&mut f);
            Self::store_codes(
                s,
                run,
                how.stream,
                &signs,
                #[inline(always)]
                |i| lane::encode::<S, Self>(s, f(i), how.overflow),
            );
        }
    };
}

macro_rules! byte_codecs {
    ($($name:ident),*) => {$(
        impl Codec for $name {
            run_of!(u8, RUN);
            open_as_is!();
            #[inline(always)]
            fn load<S: Simd>(s: S, run: &&[u8; RUN], i: usize) -> S::V {
                lane::decode::<S, Self>(s, s.load_u8(run, i))
            }
            packed_store!();
        }
        impl Packed for $name {
            #[inline(always)]
            fn store_codes<S: Simd>(
                s: S,
                run: &mut [u8; RUN],
                stream: bool,
                signs: &[u8; RUN],
                f: impl FnMut(usize) -> S::V,
            ) {
                s.store_u8(run, stream, signs, f);
            }
        }
    )*};
}

byte_codecs!(Float8E3m4, Float8E4m3, Float8E4m3fn, Float8E5m2);

/// Two codes a byte, the even element in the low nibble.
impl Codec for Float4E2m1fn {
    run_of!(u8, RUN / 2);
    type Open<'a> = [u8; RUN];
    #[inline(always)]
    fn open(run: &[u8; RUN / 2]) -> [u8; RUN] {
        spread_nibbles(run)
    }
    #[inline(always)]
    fn load<S: Simd>(s: S, run: &[u8; RUN], i: usize) -> S::V {
        lane::decode::<S, Self>(s, s.load_u8(run, i))
    }
    packed_store!();
}

impl Packed for Float4E2m1fn {
    #[inline(always)]
    fn store_codes<S: Simd>(
        s: S,
        run: &mut [u8; RUN / 2],
        _stream: bool,
        signs: &[u8; RUN],
        f: impl FnMut(usize) -> S::V,
    ) {
        let mut codes = [0; RUN];
        s.store_u8(&mut codes, false, signs, f);
        *run = join_nibbles(&codes);
    }
}

/// One code a byte from two.
#[inline(always)]
pub(crate) fn spread_nibbles(packed: &[u8; RUN / 2]) -> [u8; RUN] {
    let mut codes = [0; RUN];
    for (pair, &byte) in codes.as_chunks_mut::<2>().0.iter_mut().zip(packed) {
        let byte = u16::from(byte);
        *pair = ((byte | byte << 4) & 0x0F0F).to_le_bytes();
    }
    codes
}

/// Two codes a byte from one magnitude a byte with its sign in bit 7.
#[inline(always)]
pub(crate) fn join_nibbles(codes: &[u8; RUN]) -> [u8; RUN / 2] {
    let mut packed = [0; RUN / 2];
    for (byte, &pair) in packed.iter_mut().zip(codes.as_chunks::<2>().0) {
        let pair = u16::from_le_bytes(pair);
        let nibbles = pair & 0x0707 | pair >> 4 & 0x0808;
        *byte = (nibbles | nibbles >> 4) as u8;
    }
    packed
}

/// The kernel that casts every element of `src` to `dst`, which holds as many.
pub(crate) struct Cast<'a, A: Codec, B: Codec, const SATURATE: bool> {
    pub(crate) src: &'a [A::Unit],
    pub(crate) dst: &'a mut [B::Unit],
    pub(crate) stream: bool,
}

impl<A: Codec, B: Codec, const SATURATE: bool> Kernel for Cast<'_, A, B, SATURATE> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { src, dst, stream } = self;
        let how = Store { overflow: if SATURATE { Overflow::Saturate } else { Overflow::Ieee }, stream };
        let (from_runs, from_tail) = A::runs(src);
        let (to_runs, to_tail) = B::runs_mut(dst);
        for (to, from) in to_runs.iter_mut().zip(from_runs) {
            prefetch::<_, 4096>(from);
            cast_run::<S, A, B>(s, from, to, how);
        }
        if !from_tail.is_empty() {
            let (mut from, mut to) = (A::Run::default(), B::Run::default());
            copy_prefix(from.as_mut(), from_tail);
            cast_run::<S, A, B>(s, &from, &mut to, Store { stream: false, ..how });
            copy_prefix(to_tail, to.as_ref());
        }
        if stream {
            finish_stream();
        }
    }
}

#[inline(always)]
fn cast_run<S: Simd, A: Codec, B: Codec>(s: S, from: &A::Run, to: &mut B::Run, how: Store) {
    let open = A::open(from);
    B::store(
        s,
        to,
        how,
        #[inline(always)]
        |i| A::load(s, &open, i),
    );
}

/// Copies as many elements as the shorter slice has.
#[inline(always)]
pub(crate) fn copy_prefix<T: Copy>(dst: &mut [T], src: &[T]) {
    for (to, &from) in dst.iter_mut().zip(src) {
        *to = from;
    }
}
