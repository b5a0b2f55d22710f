//! From MX blocks back to float32.

use rayon::prelude::*;

use super::definition::dequantize_one;
use super::quantize::check_blocks;
use super::{BLOCK_COLS, BLOCK_ROWS, MxFormat, ScaleRule};
use crate::codec::{Packed, copy_prefix};
use crate::error::{area, check_len};
use crate::lane::{Float4E2m1fn, Float8E4m3fn, Float8E5m2};
use crate::simd::{Halves, Kernel, Level, RUN, Simd, finish_stream, launch, prefetch};
use crate::{Format, NumError, decode};

/// Elements from which on row groups are shared between threads.
const SPLIT: usize = 1 << 18;
/// Bytes read and written from which on results are written past the caches.
const STREAM_BYTES: usize = 24 << 20;

/// The values of a quantized tensor of `[rows, cols]` elements: element times 2^(scale - 127), rounded once.
///
/// `data` is `[rows, cols / 4]` containers, `scales` `[rows / 8, cols / 4]`, `out` `[rows, cols]`. Subnormal results
/// are honoured and overflow gives infinity. `rule` decides what scale 255 means (D-46). Large tensors use the
/// threads of the current rayon pool; the result does not depend on how many.
///
/// # Errors
/// [`NumError::Blocks`] when the shape does not divide into blocks, [`NumError::Length`] when a slice does not have
/// the length of its shape.
pub fn dequantize(
    format: MxFormat,
    rule: ScaleRule,
    data: &[u8],
    scales: &[u8],
    rows: usize,
    cols: usize,
    out: &mut [f32],
) -> Result<(), NumError> {
    let count = check_blocks(rows, cols)?;
    check_len("quantized data", "bytes", data.len(), count / BLOCK_COLS * format.container_bytes())?;
    check_len("block scales", "bytes", scales.len(), count / (BLOCK_ROWS * BLOCK_COLS))?;
    check_len("dequantized destination", "elements", out.len(), count)?;
    if count == 0 {
        return Ok(());
    }
    let level = Level::active();
    let stream = data.len() + size_of_val(out) >= STREAM_BYTES;
    let row_bytes = cols / BLOCK_COLS * format.container_bytes();
    let group = |data: &[u8], scales: &[u8], out: &mut [f32]| match format {
        // A block with scale 255 has no float32 factor; the definition takes such groups.
        _ if level == Level::Scalar || scales.contains(&255) => {
            for (row, out) in data.chunks(row_bytes).zip(out.chunks_mut(cols)) {
                for ((four, &scale), to) in
                    row.chunks(format.container_bytes()).zip(scales).zip(out.as_chunks_mut::<BLOCK_COLS>().0)
                {
                    *to = lanes(format, four).map(|code| dequantize_one(format.format(), code, scale, rule));
                }
            }
        }
        MxFormat::Float4E2m1fn => launch_group::<Float4E2m1fn>(level, data, scales, out, cols, stream),
        MxFormat::Float8E4m3fn => launch_group::<Float8E4m3fn>(level, data, scales, out, cols, stream),
        MxFormat::Float8E5m2 => launch_group::<Float8E5m2>(level, data, scales, out, cols, stream),
    };
    let (data_group, scale_group, out_group) = (BLOCK_ROWS * row_bytes, cols / BLOCK_COLS, BLOCK_ROWS * cols);
    if count < SPLIT {
        for ((data, scales), out) in
            data.chunks(data_group).zip(scales.chunks(scale_group)).zip(out.chunks_mut(out_group))
        {
            group(data, scales, out);
        }
    } else {
        out.par_chunks_mut(out_group)
            .zip(data.par_chunks(data_group).zip(scales.par_chunks(scale_group)))
            .for_each(|(out, (data, scales))| group(data, scales, out));
    }
    Ok(())
}

/// The values of a matmul operand, one row for each contraction index.
///
/// `data` is `[partitions, columns]` containers, whose lanes lie along the contraction, and `scales`
/// `[partitions / 8, columns]`; `out` is `[4 * partitions, columns]`, row `4 p + q` from lane `q` of partition `p`.
/// That is the order in which an MX product adds (D-18), so `out` can go to [`crate::matmul`] as it is.
///
/// # Errors
/// [`NumError::Blocks`] when `partitions` is no multiple of 8, [`NumError::Length`] when a slice does not have the
/// length of its shape.
pub fn expand(
    format: MxFormat,
    rule: ScaleRule,
    data: &[u8],
    scales: &[u8],
    partitions: usize,
    columns: usize,
    out: &mut [f32],
) -> Result<(), NumError> {
    let count = check_blocks(partitions, area(columns, BLOCK_COLS)?)?;
    check_len("quantized data", "bytes", data.len(), count / BLOCK_COLS * format.container_bytes())?;
    check_len("block scales", "bytes", scales.len(), count / (BLOCK_ROWS * BLOCK_COLS))?;
    check_len("expanded operand", "elements", out.len(), count)?;
    if count == 0 {
        return Ok(());
    }
    // Eight partitions are a group of rows that share their scales; their lanes are then dealt out to rows.
    let width = BLOCK_COLS * columns;
    let mut values = vec![0.0; BLOCK_ROWS * width];
    let group_bytes = BLOCK_ROWS * columns * format.container_bytes();
    for ((data, scales), out) in
        data.chunks(group_bytes).zip(scales.chunks(columns)).zip(out.chunks_mut(BLOCK_ROWS * width))
    {
        dequantize(format, rule, data, scales, BLOCK_ROWS, width, &mut values)?;
        for (row, out) in values.chunks(width).zip(out.chunks_mut(width)) {
            for (lane, out) in out.chunks_mut(columns).enumerate() {
                for (to, from) in out.iter_mut().zip(row.iter().skip(lane).step_by(BLOCK_COLS)) {
                    *to = *from;
                }
            }
        }
    }
    Ok(())
}

/// The four codes of a container.
fn lanes(format: MxFormat, container: &[u8]) -> [u8; BLOCK_COLS] {
    match (format, container) {
        (MxFormat::Float4E2m1fn, &[a, b]) => [a & 15, a >> 4, b & 15, b >> 4],
        (_, &[a, b, c, d]) => [a, b, c, d],
        _ => [0; BLOCK_COLS],
    }
}

fn launch_group<T: Packed>(
    level: Level,
    data: &[u8],
    scales: &[u8],
    out: &mut [f32],
    cols: usize,
    stream: bool,
) {
    let mut factors = vec![0.0; cols.next_multiple_of(RUN)];
    for (four, &scale) in factors.as_chunks_mut::<BLOCK_COLS>().0.iter_mut().zip(scales) {
        *four = [decode(Format::Float8E8m0fnu, u32::from(scale)); BLOCK_COLS];
    }
    launch(
        level,
        Group::<T> { data, factors: &factors, out, cols, stream, packed: std::marker::PhantomData },
    );
}

/// The kernel for rows that share their scales.
struct Group<'a, T> {
    data: &'a [u8],
    factors: &'a [f32],
    out: &'a mut [f32],
    cols: usize,
    stream: bool,
    packed: std::marker::PhantomData<T>,
}

impl<T: Packed> Kernel for Group<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { data, factors, out, cols, stream, .. } = self;
        let factors = factors.as_chunks::<RUN>().0;
        for (row, out) in data.chunks(cols / (RUN / T::UNITS)).zip(out.chunks_mut(cols)) {
            let (from_runs, from_tail) = T::runs(row);
            let (to_runs, to_tail) = out.as_chunks_mut::<RUN>();
            for ((to, from), factor) in to_runs.iter_mut().zip(from_runs).zip(factors) {
                prefetch(from, 4096);
                scale_run::<S, T>(s, from, factor, to, stream);
            }
            if let (false, Some(factor)) = (from_tail.is_empty(), factors.last()) {
                let (mut from, mut to) = (T::Run::default(), [0.0; RUN]);
                copy_prefix(from.as_mut(), from_tail);
                scale_run::<S, T>(s, &from, factor, &mut to, false);
                copy_prefix(to_tail, &to);
            }
        }
        if stream {
            finish_stream();
        }
    }
}

#[inline(always)]
fn scale_run<S: Simd, T: Packed>(
    s: S,
    from: &T::Run,
    factor: &[f32; RUN],
    to: &mut [f32; RUN],
    stream: bool,
) {
    let open = T::open(from);
    if T::GIVES_FLOATS
        && let Some(h) = s.halves()
    {
        let mut floats = [T::load_floats(h, &open, 0), T::load_floats(h, &open, 1)];
        for (i, [a, b]) in floats.iter_mut().enumerate() {
            let [fa, fb] = h.load_floats(factor, i);
            (*a, *b) = (h.mulf(*a, fa), h.mulf(*b, fb));
        }
        return h.store_floats(to, stream, floats);
    }
    s.store_f32(
        to,
        stream,
        #[inline(always)]
        |i| s.mulf(T::load(s, &open, i), s.load_f32(factor, i)),
    );
}
