//! Quantizing whole tensors to MX blocks.

use std::marker::PhantomData;

use rayon::prelude::*;

use super::definition::quantize_block;
use super::quantize16::{Group16, OddHalf};
use super::{BLOCK_COLS, BLOCK_ROWS, Counts, MxFormat, ScaleRule, Source};
use crate::codec::{Codec, Native, Packed, copy_prefix};
use crate::error::{area, check_len};
use crate::lane::{self, Bfloat16, Float4E2m1fn, Float8E4m3fn, Float8E5m2, Float16, Narrow};
use crate::round::{F32_INF, F32_MAG, F32_MAN_BITS};
use crate::simd::{Kernel, Level, RUN, Simd, launch, prefetch};
use crate::{NumError, Overflow, decode};

/// Elements from which on row groups are shared between threads.
const SPLIT: usize = 1 << 18;
/// Blocks in a run of columns.
pub(super) const RUN_BLOCKS: usize = RUN / BLOCK_COLS;

/// Quantizes `[rows, cols]` elements to `x4` containers of `format` and their block scales.
///
/// `data` is `[rows, cols / 4]` containers, lane 0 the first of the four elements; `scales` is
/// `[rows / 8, cols / 4]` bytes. Each element is multiplied by 2^(127 - scale) in float32 and narrowed with
/// saturation. Large tensors are quantized on the threads of the current rayon pool; the result does not depend
/// on how many.
///
/// # Errors
/// [`NumError::Blocks`] when the shape does not divide into blocks, [`NumError::Length`] when a slice does not have
/// the length of its shape.
pub fn quantize<'a>(
    src: impl Into<Source<'a>>,
    rows: usize,
    cols: usize,
    format: MxFormat,
    rule: ScaleRule,
    data: &mut [u8],
    scales: &mut [u8],
) -> Result<(), NumError> {
    start::<false>(src.into(), rows, Job { cols, format, rule }, data, scales).map(drop)
}

/// [`quantize`], and what happened to elements that do not fit their block; a little slower.
///
/// # Errors
/// As [`quantize`].
pub fn quantize_counted<'a>(
    src: impl Into<Source<'a>>,
    rows: usize,
    cols: usize,
    format: MxFormat,
    rule: ScaleRule,
    data: &mut [u8],
    scales: &mut [u8],
) -> Result<Counts, NumError> {
    start::<true>(src.into(), rows, Job { cols, format, rule }, data, scales)
}

/// Checks the lengths and picks the source's kernel.
fn start<const COUNT: bool>(
    src: Source<'_>,
    rows: usize,
    job: Job,
    data: &mut [u8],
    scales: &mut [u8],
) -> Result<Counts, NumError> {
    let count = check_blocks(rows, job.cols)?;
    match src {
        Source::Float32(values) => check_len("source to quantize", "elements", values.len(), count)?,
        Source::Bfloat16(bytes) | Source::Float16(bytes) => {
            check_len("source to quantize", "bytes", bytes.len(), area(count, 2)?)?;
        }
    }
    check_len("quantized data", "bytes", data.len(), count / BLOCK_COLS * job.format.container_bytes())?;
    check_len("block scales", "bytes", scales.len(), count / (BLOCK_ROWS * BLOCK_COLS))?;
    if count == 0 {
        return Ok(Counts::default());
    }
    Ok(match src {
        Source::Float32(values) => job.run::<Native, COUNT>(values, data, scales),
        Source::Bfloat16(bytes) => job.run::<Bfloat16, COUNT>(bytes.as_chunks().0, data, scales),
        Source::Float16(bytes) => job.run::<Float16, COUNT>(bytes.as_chunks().0, data, scales),
    })
}

/// The number of elements, if the shape divides into blocks.
pub(super) fn check_blocks(rows: usize, cols: usize) -> Result<usize, NumError> {
    if rows.is_multiple_of(BLOCK_ROWS) && cols.is_multiple_of(BLOCK_COLS) {
        area(rows, cols)
    } else {
        Err(NumError::Blocks { rows, cols })
    }
}

/// A way to read a source element by element, for the definition.
trait Single: OddHalf {
    fn value(unit: Self::Unit) -> f32;
}

impl Single for Native {
    fn value(unit: f32) -> f32 {
        unit
    }
}

impl Single for Bfloat16 {
    fn value(unit: [u8; 2]) -> f32 {
        decode(crate::Format::Bfloat16, u32::from(u16::from_le_bytes(unit)))
    }
}

impl Single for Float16 {
    fn value(unit: [u8; 2]) -> f32 {
        decode(crate::Format::Float16, u32::from(u16::from_le_bytes(unit)))
    }
}

/// Data and scales of a row group.
type Results<'a> = (&'a mut [u8], &'a mut [u8]);

/// What is the same for every row group.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub(super) cols: usize,
    pub(super) format: MxFormat,
    pub(super) rule: ScaleRule,
}

impl Job {
    /// Quantizes every row group; the lengths agree and no shape is empty.
    fn run<A: Single, const COUNT: bool>(
        self,
        src: &[A::Unit],
        data: &mut [u8],
        scales: &mut [u8],
    ) -> Counts {
        let level = Level::active();
        let src_group = BLOCK_ROWS * self.cols;
        let data_group = src_group / BLOCK_COLS * self.format.container_bytes();
        let scale_group = self.cols / BLOCK_COLS;
        let group = |(src, (data, scales)): (&[A::Unit], Results<'_>)| match self.format {
            _ if level == Level::Scalar => self.group_by_definition::<A>(src, data, scales),
            MxFormat::Float4E2m1fn => self.group::<A, Float4E2m1fn, COUNT>(level, src, data, scales),
            MxFormat::Float8E4m3fn => self.group::<A, Float8E4m3fn, COUNT>(level, src, data, scales),
            MxFormat::Float8E5m2 => self.group::<A, Float8E5m2, COUNT>(level, src, data, scales),
        };
        if src.len() < SPLIT {
            let groups = data.chunks_mut(data_group).zip(scales.chunks_mut(scale_group));
            src.chunks(src_group).zip(groups).map(group).fold(Counts::default(), |a, b| a + b)
        } else {
            let groups = data.par_chunks_mut(data_group).zip(scales.par_chunks_mut(scale_group));
            src.par_chunks(src_group).zip(groups).map(group).reduce(Counts::default, |a, b| a + b)
        }
    }

    /// Quantizes a row group: on 16-bit lanes if they can, or else on 32-bit lanes.
    fn group<A: Single, T: Packed, const COUNT: bool>(
        self,
        level: Level,
        src: &[A::Unit],
        data: &mut [u8],
        scales: &mut [u8],
    ) -> Counts {
        if !COUNT && launch(level, Group16::<A, T>::new(self, src, data, scales)) {
            return Counts::default();
        }
        launch(level, Group::<A, T, COUNT>::new(self, src, data, scales))
    }

    fn group_by_definition<A: Single>(self, src: &[A::Unit], data: &mut [u8], scales: &mut [u8]) -> Counts {
        let mut counts = Counts::default();
        let row_bytes = self.cols / BLOCK_COLS * self.format.container_bytes();
        for (col, scale) in scales.iter_mut().enumerate() {
            let mut block = [0.0; BLOCK_ROWS * BLOCK_COLS];
            for (four, row) in block.as_chunks_mut::<BLOCK_COLS>().0.iter_mut().zip(src.chunks(self.cols)) {
                let units = row.as_chunks::<BLOCK_COLS>().0.get(col);
                *four = units.map_or([0.0; BLOCK_COLS], |units| units.map(A::value));
            }
            let (codes, code, block_counts) = quantize_block(&block, self.format, self.rule);
            *scale = code;
            counts = counts + block_counts;
            for (four, row) in codes.as_chunks::<BLOCK_COLS>().0.iter().zip(data.chunks_mut(row_bytes)) {
                let [a, b, c, d] = *four;
                let packed = match self.format {
                    MxFormat::Float4E2m1fn => &[a | b << 4, c | d << 4][..],
                    _ => &four[..],
                };
                if let Some(to) = row.chunks_mut(self.format.container_bytes()).nth(col) {
                    copy_prefix(to, packed);
                }
            }
        }
        counts
    }
}

/// The kernel for one group of eight rows; `data` holds codes of `T`.
struct Group<'a, A: Codec, T: Packed, const COUNT: bool> {
    job: Job,
    src: &'a [A::Unit],
    data: &'a mut [u8],
    scales: &'a mut [u8],
    packed: PhantomData<T>,
}

impl<'a, A: Codec, T: Packed, const COUNT: bool> Group<'a, A, T, COUNT> {
    fn new(job: Job, src: &'a [A::Unit], data: &'a mut [u8], scales: &'a mut [u8]) -> Self {
        Self { job, src, data, scales, packed: PhantomData }
    }
}

impl<A: Codec, T: Packed, const COUNT: bool> Kernel for Group<'_, A, T, COUNT> {
    type Output = Counts;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Counts {
        let Self { job, src, data, scales, .. } = self;
        let rows = split(src, job.cols).map(A::runs);
        let mut outs = split_mut(data, job.cols / (RUN / T::UNITS)).map(T::runs_mut);
        // The last columns are worked on in runs of their own, with zeros behind them.
        let mut last_in: [A::Run; BLOCK_ROWS] = std::array::from_fn(|_| A::Run::default());
        let mut last_out: [T::Run; BLOCK_ROWS] = std::array::from_fn(|_| T::Run::default());
        for (to, (_, tail)) in last_in.iter_mut().zip(&rows) {
            copy_prefix(to.as_mut(), tail);
        }
        let mut tally = Tally::<S>::new(s);
        let mut nan_blocks = 0;
        let mut rows_of_run = Rows { mags: [[0; RUN]; BLOCK_ROWS], signs: [[0; RUN]; BLOCK_ROWS] };
        for (c, scales) in scales.chunks_mut(RUN_BLOCKS).enumerate() {
            if !rows_of_run.load::<S, A>(s, &rows.map(|(runs, _)| runs), c) {
                let last = std::array::from_fn(|r| last_in.get(r..=r).unwrap_or_default());
                rows_of_run.load::<S, A>(s, &last, 0);
            }
            let mut shared = Shared::of(s, &rows_of_run.mags, job);
            for (to, four) in scales.iter_mut().zip(shared.scale.as_chunks::<BLOCK_COLS>().0) {
                *to = four[0] as u8;
            }
            if job.rule == ScaleRule::Ocp && scales.contains(&255) {
                nan_blocks += shared.clear_nan_blocks(&mut rows_of_run);
            }
            let Rows { mags, signs } = &rows_of_run;
            for (((mags, signs), out), last) in mags.iter().zip(signs).zip(&mut outs).zip(&mut last_out) {
                let run = out.0.get_mut(c).unwrap_or(last);
                prefetch(run, 256);
                if shared.all_finite {
                    shared.narrow::<S, T, COUNT, true>(s, mags, signs, job.rule, run, &mut tally);
                } else {
                    shared.narrow::<S, T, COUNT, false>(s, mags, signs, job.rule, run, &mut tally);
                }
            }
        }
        for ((_, tail), from) in outs.iter_mut().zip(&last_out) {
            copy_prefix(tail, from.as_ref());
        }
        if COUNT { Counts { nan_blocks, ..tally.total(s) } } else { Counts::default() }
    }
}

/// A run of columns of all eight rows, as float32 bits taken apart.
///
/// A copy: in the source the rows can lie a multiple of a page apart, where the first cache has room for few, and
/// bfloat16 would have to be widened twice.
struct Rows {
    mags: [[u32; RUN]; BLOCK_ROWS],
    signs: [[u8; RUN]; BLOCK_ROWS],
}

impl Rows {
    /// Reads run `c` of each row; `false`, with part of it read, when there is no such run.
    #[inline(always)]
    fn load<S: Simd, A: Codec>(&mut self, s: S, rows: &[&[A::Run]; BLOCK_ROWS], c: usize) -> bool {
        for ((mags, signs), row) in self.mags.iter_mut().zip(&mut self.signs).zip(rows) {
            let Some(run) = row.get(c) else { return false };
            prefetch(run, 512);
            let open = A::open(run);
            s.store_u32(
                mags,
                #[inline(always)]
                |i| s.and(A::load(s, &open, i), s.splat(F32_MAG)),
            );
            *signs = s.sign_bytes(
                #[inline(always)]
                |i| A::load(s, &open, i),
            );
        }
        true
    }
}

/// What a run's blocks share, each value in the four lanes of its block.
struct Shared {
    /// Scale codes.
    scale: [u32; RUN],
    /// What elements are multiplied by, as float32 bits.
    factor: [u32; RUN],
    /// Whether no element of the run is infinite or NaN.
    all_finite: bool,
}

impl Shared {
    /// Of the blocks of eight rows of float32 magnitudes.
    #[inline(always)]
    fn of<S: Simd>(s: S, mags: &[[u32; RUN]; BLOCK_ROWS], job: Job) -> Self {
        let mut tops = [0; RUN];
        s.store_u32(
            &mut tops,
            #[inline(always)]
            |i| {
                let mut top = s.splat(0);
                for row in mags {
                    // The exponent is the upper part of the magnitude: the largest magnitude has the largest.
                    top = s.max(top, s.load_u32(row, i));
                }
                top
            },
        );
        let tops = s.max_of_four(&tops);
        let shift = s.splat(job.rule.shift(job.format));
        let floor = s.splat(job.rule.floor());
        // Under `ocp` an exponent field of 255 makes a NaN block; under the others nothing exceeds 255.
        let ordinary = s.splat(if job.rule == ScaleRule::Ocp { 254 } else { 255 });
        let [mut scale, mut factor] = [[0; RUN]; 2];
        s.store_u32(
            &mut scale,
            #[inline(always)]
            |i| {
                let exponent = s.shr(s.load_u32(&tops, i), F32_MAN_BITS);
                let scale = s.max(s.sub(exponent, shift), floor);
                s.select(s.gt(exponent, ordinary), s.splat(255), scale)
            },
        );
        s.store_u32(
            &mut factor,
            #[inline(always)]
            |i| s.shl(s.sub(s.splat(254), s.load_u32(&scale, i)), F32_MAN_BITS),
        );
        Self { scale, factor, all_finite: tops.iter().all(|&top| top < F32_INF) }
    }

    /// Makes the elements of blocks with scale 255 zeros, which is what they store, and their factors finite.
    /// Returns how many blocks those are.
    #[cold]
    fn clear_nan_blocks(&mut self, rows: &mut Rows) -> u64 {
        let mut lanes = 0;
        for (lane, (&scale, factor)) in self.scale.iter().zip(&mut self.factor).enumerate() {
            if scale == 255 {
                lanes += 1;
                *factor = 0;
                rows.mags.iter_mut().for_each(|row| row[lane] = 0);
                rows.signs.iter_mut().for_each(|row| row[lane] = 0);
            }
        }
        lanes / BLOCK_COLS as u64
    }

    /// Scales and narrows a run of one row; `FINITE` promises that no element is infinite or NaN.
    #[inline(always)]
    fn narrow<S: Simd, T: Packed, const COUNT: bool, const FINITE: bool>(
        &self,
        s: S,
        mags: &[u32; RUN],
        signs: &[u8; RUN],
        rule: ScaleRule,
        run: &mut T::Run,
        tally: &mut Tally<S>,
    ) {
        let nan =
            if FINITE { None } else { Some(s.splat(if rule.suppresses_nan() { 0 } else { T::ROW.nan })) };
        T::store_codes(
            s,
            run,
            false,
            signs,
            #[inline(always)]
            |i| {
                let mag = s.load_u32(mags, i);
                let mut scaled = s.mulf(mag, s.load_u32(&self.factor, i));
                if !FINITE {
                    // Infinity times a factor of 0 gives a NaN of either sign.
                    scaled = s.and(scaled, s.splat(F32_MAG));
                }
                let code = lane::encode_mag::<S, T>(s, scaled, Overflow::Saturate, nan);
                if COUNT {
                    tally.add::<T>(s, mag, scaled, code);
                }
                code
            },
        );
    }
}

/// Counters kept in registers, one a lane.
struct Tally<S: Simd> {
    nan: S::V,
    past: S::V,
    zero: S::V,
}

impl<S: Simd> Tally<S> {
    #[inline(always)]
    fn new(s: S) -> Self {
        Self { nan: s.splat(0), past: s.splat(0), zero: s.splat(0) }
    }

    #[inline(always)]
    fn add<T: Narrow>(&mut self, s: S, mag: S::V, scaled: S::V, code: S::V) {
        // A mask is minus one. NaN magnitudes lie above infinity's, so they are past the limit too; the
        // total takes them out again. A zero code from a nonzero element is flushed unless it was a NaN.
        let nan = s.is_nan(scaled);
        self.nan = s.sub(self.nan, nan);
        self.past = s.sub(self.past, s.gt(scaled, s.splat(T::SATURATES_FROM - 1)));
        let zero = s.gt(s.splat(1), s.or(code, s.and(nan, s.splat(1))));
        self.zero = s.sub(self.zero, s.and(zero, s.gt(mag, s.splat(0))));
    }

    #[inline(always)]
    fn total(&self, s: S) -> Counts {
        let sum = |lanes: S::V| {
            let mut out = [0; RUN];
            s.store_u32(
                &mut out,
                #[inline(always)]
                |i| if i == 0 { lanes } else { s.splat(0) },
            );
            out.into_iter().map(u64::from).sum::<u64>()
        };
        let nan = sum(self.nan);
        Counts { nan, saturated: sum(self.past) - nan, flushed: sum(self.zero), nan_blocks: 0 }
    }
}

/// The first eight pieces of `len`; empty where there are fewer.
#[inline(always)]
pub(super) fn split<T>(mut all: &[T], len: usize) -> [&[T]; BLOCK_ROWS] {
    std::array::from_fn(|_| {
        let (piece, rest) = all.split_at(len.min(all.len()));
        all = rest;
        piece
    })
}

/// As [`split`], mutable.
#[inline(always)]
pub(super) fn split_mut<T>(mut all: &mut [T], len: usize) -> [&mut [T]; BLOCK_ROWS] {
    std::array::from_fn(|_| {
        let (piece, rest) = std::mem::take(&mut all).split_at_mut_checked(len).unwrap_or_default();
        all = rest;
        piece
    })
}
