//! How runs of the floating-point types are read into registers and written from them.

use crate::Overflow;
use crate::lane::{
    self, Bfloat16, Float4E2m1fn, Float8E3m4, Float8E4m3, Float8E4m3fn, Float8E5m2, Float16, Narrow,
};
use crate::lane16;
use crate::simd::{Halves, InOrder, Kernel, Order, RUN, Simd, finish_stream, prefetch};

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

    /// Whether bfloat16 holds every value, and [`Codec::load_half`] gives it.
    const GIVES_HALVES: bool = false;
    /// Whether [`Codec::store_halves`] may take the place of [`Codec::store`].
    const TAKES_HALVES: bool = false;
    /// Whether [`Codec::load_floats`] gives the values, faster than [`Codec::load`].
    const GIVES_FLOATS: bool = false;
    /// Whether [`Codec::store_floats`] may take the place of [`Codec::store`].
    const TAKES_FLOATS: bool = false;
    /// Half `i` of the run, as float32.
    #[inline(always)]
    fn load_floats<H: Halves>(h: H, _run: &Self::Open<'_>, _i: usize) -> [H::V; 2] {
        [h.float(0.0); 2]
    }
    /// Writes the run from halves of float32.
    #[inline(always)]
    fn store_floats<H: Halves>(_h: H, _run: &mut Self::Run, _how: Store, _halves: [[H::V; 2]; 2]) {}
    /// Half `i` of the run, as bfloat16.
    #[inline(always)]
    fn load_half<H: Halves>(h: H, _run: &Self::Open<'_>, _i: usize) -> H::H {
        h.splat(0)
    }
    /// Writes the run from bfloat16 registers.
    #[inline(always)]
    fn store_halves<H: Halves>(_h: H, _run: &mut Self::Run, _how: Store, _halves: [H::H; 2]) {}
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
    const TAKES_FLOATS: bool = true;
    #[inline(always)]
    fn store_floats<H: Halves>(h: H, run: &mut [f32; RUN], how: Store, halves: [[H::V; 2]; 2]) {
        h.store_floats(run, how.stream, halves);
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
    const GIVES_HALVES: bool = true;
    #[inline(always)]
    fn load_half<H: Halves>(h: H, run: &&[[u8; 2]; RUN], i: usize) -> H::H {
        h.load(run, i)
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
    const TAKES_HALVES: bool = true;
    #[inline(always)]
    fn store_halves<H: Halves>(h: H, run: &mut [[u8; 2]; RUN], how: Store, halves: [H::H; 2]) {
        h.store(run, how.stream, halves);
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
    /// What stands for a block's scale when bfloat16 is narrowed in 16-bit lanes.
    type Scale<H: Halves>: Copy;
    /// Of scale codes from 20 to 200.
    fn scale_halves<H: Halves>(h: H, scale: H::H) -> Self::Scale<H>;
    /// Writes a run of bfloat16 registers, without NaNs, times 2^(127 - scale); saturates.
    fn store_scaled<H: Halves, O: Order>(
        h: H,
        run: &mut Self::Run,
        halves: [H::H; 2],
        scale: [Self::Scale<H>; 2],
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
            #[inline(always)]
            fn load_half<H: Halves>(h: H, run: &&[u8; RUN], i: usize) -> H::H {
                lane16::decode::<H, Self>(h, h.load_u8(run, i))
            }
            const GIVES_HALVES: bool = true;
            const GIVES_FLOATS: bool = true;
            #[inline(always)]
            fn load_floats<H: Halves>(h: H, run: &&[u8; RUN], i: usize) -> [H::V; 2] {
                lane16::decode_floats::<H, Self>(h, h.load_i8(run, i))
            }
            const TAKES_HALVES: bool = lane16::fits::<Self>();
            #[inline(always)]
            fn store_halves<H: Halves>(h: H, run: &mut [u8; RUN], how: Store, halves: [H::H; 2]) {
                let [a, b] = halves;
                let codes = [
                    lane16::encode::<H, Self>(h, a, how.overflow),
                    lane16::encode::<H, Self>(h, b, how.overflow),
                ];
                h.store_u8::<InOrder>(run, how.stream, codes, u8::MAX, halves);
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
            type Scale<H: Halves> = [H::V; 2];
            #[inline(always)]
            fn scale_halves<H: Halves>(h: H, scale: H::H) -> [H::V; 2] {
                lane16::factor::<H, Self>(h, scale)
            }
            #[inline(always)]
            fn store_scaled<H: Halves, O: Order>(
                h: H,
                run: &mut [u8; RUN],
                halves: [H::H; 2],
                scale: [[H::V; 2]; 2],
            ) {
                let codes = [
                    lane16::scaled::<H, Self>(h, halves[0], scale[0]),
                    lane16::scaled::<H, Self>(h, halves[1], scale[1]),
                ];
                h.store_u8::<O>(run, false, codes, const { Self::ROW.max_finite() as u8 }, halves);
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
    #[inline(always)]
    fn load_half<H: Halves>(h: H, run: &[u8; RUN], i: usize) -> H::H {
        lane16::decode::<H, Self>(h, h.load_u8(run, i))
    }
    const GIVES_FLOATS: bool = true;
    #[inline(always)]
    fn load_floats<H: Halves>(h: H, run: &[u8; RUN], i: usize) -> [H::V; 2] {
        lane16::decode_e2m1(h, h.load_u8(run, i))
    }
    const GIVES_HALVES: bool = true;
    const TAKES_HALVES: bool = true;
    #[inline(always)]
    fn store_halves<H: Halves>(h: H, run: &mut [u8; RUN / 2], _how: Store, halves: [H::H; 2]) {
        let steps = [lane16::encode_e2m1(h, halves[0]), lane16::encode_e2m1(h, halves[1])];
        h.store_u4::<InOrder>(run, steps, &lane16::E2M1_STEPS, halves);
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
    type Scale<H: Halves> = H::H;
    #[inline(always)]
    fn scale_halves<H: Halves>(h: H, scale: H::H) -> H::H {
        lane16::e2m1_base(h, scale)
    }
    #[inline(always)]
    fn store_scaled<H: Halves, O: Order>(h: H, run: &mut [u8; RUN / 2], halves: [H::H; 2], scale: [H::H; 2]) {
        let steps = [lane16::e2m1_steps(h, halves[0], scale[0]), lane16::e2m1_steps(h, halves[1], scale[1])];
        h.store_u4::<O>(run, steps, &lane16::E2M1_STEPS, halves);
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
            prefetch(from, 4096);
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
    if const { A::GIVES_HALVES && B::TAKES_HALVES }
        && let Some(h) = s.halves()
    {
        let halves = [A::load_half(h, &open, 0), A::load_half(h, &open, 1)];
        return B::store_halves(h, to, how, halves);
    }
    if const { A::GIVES_FLOATS && B::TAKES_FLOATS }
        && let Some(h) = s.halves()
    {
        let floats = [A::load_floats(h, &open, 0), A::load_floats(h, &open, 1)];
        return B::store_floats(h, to, how, floats);
    }
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
