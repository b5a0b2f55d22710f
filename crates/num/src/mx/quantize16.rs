//! The quantizer's kernel on 16-bit lanes, for groups of rows without infinities, NaNs or values of extreme size.
//!
//! Elements are taken as bfloat16, float32 rounded to odd: a normal value has the exponent of the original then, and
//! rounds to a format of at most 3 mantissa bits as the original does, under any power of two.

use std::marker::PhantomData;

use super::quantize::{Job, RUN_BLOCKS, split, split_mut};
use super::{BLOCK_COLS, BLOCK_ROWS};
use crate::codec::{Codec, Native, Packed, copy_prefix};
use crate::lane::{Bfloat16, Float16};
use crate::lane16::{self, BF16_MAN_BITS, MAG};
use crate::simd::{Dealt, Halves, InOrder, Kernel, Order, RUN, Simd, prefetch};

/// The largest scale taken: its factor is an ordinary float32 wherever a format's values are moved to. Infinities
/// and NaNs have larger ones under every rule.
const MAX_SCALE: u16 = 200;
/// The smallest scale taken, except for blocks of zeros. From it on float32 subnormals, which have too few bits to be
/// rounded to odd, are less than half the smallest value of any format and come out as zero.
const MIN_SCALE: u16 = 20;

/// A source whose elements can be taken as bfloat16 rounded to odd.
pub(super) trait OddHalf: Codec {
    /// Whether they can.
    const FITS: bool;
    /// How [`OddHalf::odd_half`] gives them.
    type Order: Order;
    /// Half `i` of the run.
    fn odd_half<H: Halves>(h: H, run: &Self::Run, i: usize) -> H::H;
}

impl OddHalf for Native {
    const FITS: bool = true;
    type Order = Dealt;
    #[inline(always)]
    fn odd_half<H: Halves>(h: H, run: &[f32; RUN], i: usize) -> H::H {
        h.load_odd(run, i)
    }
}

impl OddHalf for Bfloat16 {
    const FITS: bool = true;
    type Order = InOrder;
    #[inline(always)]
    fn odd_half<H: Halves>(h: H, run: &[[u8; 2]; RUN], i: usize) -> H::H {
        h.load(run, i)
    }
}

impl OddHalf for Float16 {
    const FITS: bool = false;
    type Order = InOrder;
    #[inline(always)]
    fn odd_half<H: Halves>(h: H, _run: &[[u8; 2]; RUN], _i: usize) -> H::H {
        h.splat(0)
    }
}

/// The kernel for eight rows; `false`, with nothing promised about the results, for groups it does not take.
pub(super) struct Group16<'a, A: OddHalf, T> {
    job: Job,
    src: &'a [A::Unit],
    data: &'a mut [u8],
    scales: &'a mut [u8],
    packed: PhantomData<T>,
}

impl<'a, A: OddHalf, T> Group16<'a, A, T> {
    pub(super) fn new(job: Job, src: &'a [A::Unit], data: &'a mut [u8], scales: &'a mut [u8]) -> Self {
        Self { job, src, data, scales, packed: PhantomData }
    }
}

impl<A: OddHalf, T: Packed> Kernel for Group16<'_, A, T> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> bool {
        let Some(h) = s.halves() else { return false };
        if const { !A::FITS || !lane16::fits::<T>() } {
            return false;
        }
        let Self { job, src, data, scales, .. } = self;
        let ins = split(src, job.cols).map(A::runs);
        let mut outs = split_mut(data, job.cols / (RUN / T::UNITS)).map(T::runs_mut);
        let (scale_runs, last_scales) = scales.as_chunks_mut::<RUN_BLOCKS>();
        // Rows that are seen to be as long as the scales need no check at every run.
        let mut from: [&[A::Run]; BLOCK_ROWS] = [&[]; BLOCK_ROWS];
        for (from, (runs, _)) in from.iter_mut().zip(&ins) {
            *from = &runs[..scale_runs.len()];
        }
        let mut largest = h.splat(0);
        for (c, to) in scale_runs.iter_mut().enumerate() {
            let mut halves = [[h.splat(0); 2]; BLOCK_ROWS];
            let mut tops = [h.splat(0); 2];
            for (row, runs) in halves.iter_mut().zip(&from) {
                let run = &runs[c];
                prefetch(run, 256);
                *row = [A::odd_half(h, run, 0), A::odd_half(h, run, 1)];
                tops = raised(h, tops, *row);
            }
            let shared = Shared::<H<S>, A::Order, T>::of(h, tops, job, &mut largest);
            shared.store_scales(h, to);
            for (row, (out, _)) in halves.iter().zip(&mut outs) {
                let run = &mut out[c];
                prefetch(run, 256);
                T::store_scaled::<_, A::Order>(h, run, *row, shared.narrow);
            }
        }
        // The rows of the next group, whose first runs nothing asks for otherwise.
        let group = BLOCK_ROWS * job.cols * size_of::<A::Unit>();
        for runs in &from {
            for run in runs.iter().take(NEXT) {
                prefetch(run, group);
            }
        }
        if !last_scales.is_empty() {
            // The last columns, with zeros behind them.
            let mut halves = [[h.splat(0); 2]; BLOCK_ROWS];
            let mut tops = [h.splat(0); 2];
            for (row, (_, tail)) in halves.iter_mut().zip(&ins) {
                let mut run = A::Run::default();
                copy_prefix(run.as_mut(), tail);
                *row = [A::odd_half(h, &run, 0), A::odd_half(h, &run, 1)];
                tops = raised(h, tops, *row);
            }
            let shared = Shared::<H<S>, A::Order, T>::of(h, tops, job, &mut largest);
            let mut to = [0; RUN_BLOCKS];
            shared.store_scales(h, &mut to);
            copy_prefix(last_scales, &to);
            for (row, (_, tail)) in halves.iter().zip(&mut outs) {
                let mut run = T::Run::default();
                T::store_scaled::<_, A::Order>(h, &mut run, *row, shared.narrow);
                copy_prefix(tail, run.as_ref());
            }
        }
        h.largest(largest) <= MAX_SCALE as i16
    }
}

/// The largest magnitudes so far and of one more row. The exponent is the upper part of the magnitude: the largest
/// magnitude has the largest.
#[inline(always)]
fn raised<H: Halves>(h: H, [a, b]: [H::H; 2], row: [H::H; 2]) -> [H::H; 2] {
    let mask = h.splat(MAG);
    [h.max(a, h.and(row[0], mask)), h.max(b, h.and(row[1], mask))]
}

/// Runs of the next group that are asked for.
const NEXT: usize = 4;

type H<S> = <S as Simd>::Halves;

/// What a run's blocks share, each value in the four lanes of its block.
struct Shared<H: Halves, O, T: Packed> {
    /// Scale codes.
    scale: [H::H; 2],
    /// What narrows elements under them.
    narrow: [T::Scale<H>; 2],
    order: PhantomData<O>,
}

impl<H: Halves, O: Order, T: Packed> Shared<H, O, T> {
    /// Of blocks whose columns have the largest magnitudes `tops`; `largest` rises to their largest scale, or past any
    /// for blocks not taken.
    #[inline(always)]
    fn of(h: H, tops: [H::H; 2], job: Job, largest: &mut H::H) -> Self {
        let scale = [Self::scale_of(h, tops[0], job), Self::scale_of(h, tops[1], job)];
        let taken = [Self::taken(h, tops[0], scale[0]), Self::taken(h, tops[1], scale[1])];
        *largest = h.max(*largest, h.max(taken[0], taken[1]));
        let least = h.splat(MIN_SCALE);
        let narrow = [T::scale_halves(h, h.max(scale[0], least)), T::scale_halves(h, h.max(scale[1], least))];
        Self { scale, narrow, order: PhantomData }
    }

    /// The scale, or more than any for blocks with too small a scale that are not all zeros.
    #[inline(always)]
    fn taken(h: H, tops: H::H, scale: H::H) -> H::H {
        let small = h.and(h.gt(h.splat(MIN_SCALE), scale), h.gt(tops, h.splat(0)));
        h.select(small, h.splat(MAG), scale)
    }

    /// Scales of blocks whose columns have these largest magnitudes.
    #[inline(always)]
    fn scale_of(h: H, tops: H::H, job: Job) -> H::H {
        let exponent = h.shr::<BF16_MAN_BITS>(h.max_of_four::<O>(tops));
        let scale = h.sub(exponent, h.splat(job.rule.shift(job.format) as u16));
        h.max(scale, h.splat(job.rule.floor() as u16))
    }

    /// Writes one scale a block.
    #[inline(always)]
    fn store_scales(&self, h: H, to: &mut [u8; RUN_BLOCKS]) {
        let mut lanes = [[0; 2]; RUN];
        h.store(&mut lanes, false, self.scale);
        let (halves, _) = lanes.as_chunks::<{ RUN / 2 }>();
        for (to, half) in to.as_chunks_mut::<BLOCK_COLS>().0.iter_mut().zip(halves) {
            *to = if O::DEALT { [0, 8, 1, 9] } else { [0, 4, 8, 12] }.map(|lane: usize| half[lane][0]);
        }
    }
}
