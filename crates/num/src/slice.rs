//! Casts of whole buffers of little-endian containers.

use rayon::prelude::*;

use crate::codec::{Cast, Codec, ExactBfloat16, Native};
use crate::definition;
use crate::error::check_len;
use crate::lane::{Bfloat16, Float4E2m1fn, Float8E3m4, Float8E4m3, Float8E4m3fn, Float8E5m2, Float16};
use crate::simd::{Level, RUN, launch};
use crate::{Dtype, NumError, Overflow};

/// Runs a thread takes at a time; up to twice as many stay on the caller's thread.
const TASK_RUNS: usize = 1 << 12;
/// Bytes read and written from which on results are written past the caches, which they would only sweep.
const STREAM_BYTES: usize = 24 << 20;
/// Elements that pass through a buffer when two casts follow each other.
const BLOCK: usize = 1024;

/// Widens `src`, whole little-endian containers of `dtype`, into one float32 a logical element.
///
/// `dst` holds `src.len() / dtype.bytes() * dtype.lanes()` elements; the lanes of an `x4` container come out
/// lane 0 first (D-06). Values are those of [`decode`](crate::decode); 64-bit integers round to the nearest
/// float32, ties to even.
///
/// Large tensors are cast on the threads of the current rayon pool; the result does not depend on how many.
///
/// # Errors
/// [`NumError::PartialContainer`] when `src` ends inside a container, [`NumError::Length`] when `dst` does not fit it.
pub fn widen(dtype: Dtype, src: &[u8], dst: &mut [f32]) -> Result<(), NumError> {
    check_len("widened destination", "elements", dst.len(), elements(dtype, src.len())?)?;
    let level = Level::active();
    let overflow = Overflow::Ieee; // nothing overflows float32
    match dtype {
        _ if level == Level::Scalar => by_definition(dtype, src, dst, level),
        Dtype::Float4E2m1fnX4 => cast::<Float4E2m1fn, Native>(level, src, overflow, dst),
        Dtype::Float8E3m4 => cast::<Float8E3m4, Native>(level, src, overflow, dst),
        Dtype::Float8E4m3 => cast::<Float8E4m3, Native>(level, src, overflow, dst),
        Dtype::Float8E4m3fn | Dtype::Float8E4m3fnX4 => {
            cast::<Float8E4m3fn, Native>(level, src, overflow, dst)
        }
        Dtype::Float8E5m2 | Dtype::Float8E5m2X4 => cast::<Float8E5m2, Native>(level, src, overflow, dst),
        Dtype::Bfloat16 => cast::<Bfloat16, Native>(level, src.as_chunks().0, overflow, dst),
        Dtype::Float16 => cast::<Float16, Native>(level, src.as_chunks().0, overflow, dst),
        _ => by_definition(dtype, src, dst, level),
    }
    Ok(())
}

/// Narrows `src`, one float32 a logical element, into whole little-endian containers of `dtype`.
///
/// `dst` holds `src.len() / dtype.lanes() * dtype.bytes()` bytes. Codes are those of [`encode`](crate::encode);
/// 64-bit integers follow the rule of the other integers.
///
/// Large tensors are cast on the threads of the current rayon pool; the result does not depend on how many.
///
/// # Errors
/// [`NumError::PartialContainer`] when `dst` ends inside a container, [`NumError::Length`] when `src` does not fill it.
pub fn narrow(dtype: Dtype, src: &[f32], overflow: Overflow, dst: &mut [u8]) -> Result<(), NumError> {
    check_len("source to narrow", "elements", src.len(), elements(dtype, dst.len())?)?;
    let level = Level::active();
    match dtype {
        _ if level == Level::Scalar => to_definition(dtype, src, overflow, dst, level),
        Dtype::Float4E2m1fnX4 => cast::<Native, Float4E2m1fn>(level, src, overflow, dst),
        Dtype::Float8E3m4 => cast::<Native, Float8E3m4>(level, src, overflow, dst),
        Dtype::Float8E4m3 => cast::<Native, Float8E4m3>(level, src, overflow, dst),
        Dtype::Float8E4m3fn | Dtype::Float8E4m3fnX4 => {
            cast::<Native, Float8E4m3fn>(level, src, overflow, dst)
        }
        Dtype::Float8E5m2 | Dtype::Float8E5m2X4 => cast::<Native, Float8E5m2>(level, src, overflow, dst),
        Dtype::Bfloat16 => cast::<Native, Bfloat16>(level, src, overflow, dst.as_chunks_mut().0),
        Dtype::Float16 => cast::<Native, Float16>(level, src, overflow, dst.as_chunks_mut().0),
        _ => to_definition(dtype, src, overflow, dst, level),
    }
    Ok(())
}

/// Casts containers of one type to containers of another, without a float32 tensor between.
///
/// Equal to [`widen`] followed by [`narrow`], whose rules, lane orders and threads it shares.
///
/// # Errors
/// [`NumError::PartialContainer`] when a buffer ends inside a container, [`NumError::Length`] when the two hold
/// different numbers of logical elements.
pub fn convert(
    from: Dtype,
    src: &[u8],
    to: Dtype,
    overflow: Overflow,
    dst: &mut [u8],
) -> Result<(), NumError> {
    use Dtype as D;
    check_len("cast destination", "elements", elements(to, dst.len())?, elements(from, src.len())?)?;
    let level = Level::active();
    // bfloat16 holds every narrower value, but saturation would still have to look for infinities.
    let ieee = overflow == Overflow::Ieee;
    match (from, to) {
        _ if level == Level::Scalar => through_float32(from, src, to, overflow, dst)?,
        (D::Bfloat16, D::Float4E2m1fnX4) => {
            cast::<Bfloat16, Float4E2m1fn>(level, src.as_chunks().0, overflow, dst);
        }
        (D::Bfloat16, D::Float8E4m3) => cast::<Bfloat16, Float8E4m3>(level, src.as_chunks().0, overflow, dst),
        (D::Bfloat16, D::Float8E4m3fn | D::Float8E4m3fnX4) => {
            cast::<Bfloat16, Float8E4m3fn>(level, src.as_chunks().0, overflow, dst);
        }
        (D::Bfloat16, D::Float8E5m2 | D::Float8E5m2X4) => {
            cast::<Bfloat16, Float8E5m2>(level, src.as_chunks().0, overflow, dst);
        }
        (D::Bfloat16, D::Float8E3m4) => cast::<Bfloat16, Float8E3m4>(level, src.as_chunks().0, overflow, dst),
        (D::Float4E2m1fnX4, D::Bfloat16) => {
            cast::<Float4E2m1fn, ExactBfloat16>(level, src, overflow, dst.as_chunks_mut().0);
        }
        (D::Float8E3m4, D::Bfloat16) if ieee => {
            cast::<Float8E3m4, ExactBfloat16>(level, src, overflow, dst.as_chunks_mut().0)
        }
        (D::Float8E4m3, D::Bfloat16) if ieee => {
            cast::<Float8E4m3, ExactBfloat16>(level, src, overflow, dst.as_chunks_mut().0)
        }
        (D::Float8E4m3fn | D::Float8E4m3fnX4, D::Bfloat16) => {
            cast::<Float8E4m3fn, ExactBfloat16>(level, src, overflow, dst.as_chunks_mut().0);
        }
        (D::Float8E5m2 | D::Float8E5m2X4, D::Bfloat16) if ieee => {
            cast::<Float8E5m2, ExactBfloat16>(level, src, overflow, dst.as_chunks_mut().0);
        }
        _ => through_float32(from, src, to, overflow, dst)?,
    }
    Ok(())
}

/// Logical elements in `bytes` bytes of whole containers.
fn elements(dtype: Dtype, bytes: usize) -> Result<usize, NumError> {
    if !bytes.is_multiple_of(dtype.bytes()) {
        return Err(NumError::PartialContainer { dtype, bytes });
    }
    let containers = bytes / dtype.bytes();
    containers.checked_mul(dtype.lanes()).ok_or(NumError::Shape { rows: containers, cols: dtype.lanes() })
}

/// Casts slices that hold the same number of elements.
fn cast<A: Codec, B: Codec>(level: Level, src: &[A::Unit], overflow: Overflow, dst: &mut [B::Unit]) {
    let mut stream = size_of_val(src) + size_of_val(dst) >= STREAM_BYTES;
    let (mut src_head, mut dst_head) = (0, 0);
    if stream {
        // Streamed stores need aligned addresses: what lies before the first one is cast by itself, if that
        // is a whole number of units on both sides.
        dst_head = dst.as_ptr().align_offset(32).min(dst.len());
        let head = dst_head * (RUN / B::UNITS);
        src_head = head / (RUN / A::UNITS);
        if !head.is_multiple_of(RUN / A::UNITS) {
            (stream, src_head, dst_head) = (false, 0, 0);
        }
    }
    let (src_first, src) = src.split_at(src_head.min(src.len()));
    let (dst_first, dst) = dst.split_at_mut(dst_head);
    cast_part::<A, B>(level, src_first, overflow, dst_first, false);
    if dst.len() <= 2 * TASK_RUNS * B::UNITS {
        cast_part::<A, B>(level, src, overflow, dst, stream);
    } else {
        dst.par_chunks_mut(TASK_RUNS * B::UNITS)
            .zip(src.par_chunks(TASK_RUNS * A::UNITS))
            .for_each(|(dst, src)| cast_part::<A, B>(level, src, overflow, dst, stream));
    }
}

fn cast_part<A: Codec, B: Codec>(
    level: Level,
    src: &[A::Unit],
    overflow: Overflow,
    dst: &mut [B::Unit],
    stream: bool,
) {
    match overflow {
        Overflow::Saturate => launch(level, Cast::<A, B, true> { src, dst, stream }),
        Overflow::Ieee => launch(level, Cast::<A, B, false> { src, dst, stream }),
    }
}

fn by_definition(dtype: Dtype, src: &[u8], dst: &mut [f32], level: Level) {
    let task = TASK_RUNS * RUN;
    if dst.len() <= 2 * task {
        launch(level, definition::Widen { dtype, src, dst });
    } else {
        dst.par_chunks_mut(task)
            .zip(src.par_chunks(task / dtype.lanes() * dtype.bytes()))
            .for_each(|(dst, src)| launch(level, definition::Widen { dtype, src, dst }));
    }
}

fn to_definition(dtype: Dtype, src: &[f32], overflow: Overflow, dst: &mut [u8], level: Level) {
    let task = TASK_RUNS * RUN;
    if src.len() <= 2 * task {
        launch(level, definition::Narrow { dtype, src, overflow, dst });
    } else {
        dst.par_chunks_mut(task / dtype.lanes() * dtype.bytes())
            .zip(src.par_chunks(task))
            .for_each(|(dst, src)| launch(level, definition::Narrow { dtype, src, overflow, dst }));
    }
}

/// Both casts, a block at a time, so that the float32 between them stay in the first cache.
fn through_float32(
    from: Dtype,
    src: &[u8],
    to: Dtype,
    overflow: Overflow,
    dst: &mut [u8],
) -> Result<(), NumError> {
    let level = Level::active();
    let [src_block, dst_block] = [from, to].map(|dtype| BLOCK / dtype.lanes() * dtype.bytes());
    let blocks = TASK_RUNS * RUN / BLOCK;
    dst.par_chunks_mut(blocks * dst_block).zip(src.par_chunks(blocks * src_block)).try_for_each(
        |(dst, src)| {
            crate::simd::with_level(level, || {
                let mut wide = [0.0; BLOCK];
                for (dst, src) in dst.chunks_mut(dst_block).zip(src.chunks(src_block)) {
                    let count = src.len() / from.bytes() * from.lanes();
                    let wide = wide.get_mut(..count).unwrap_or_default();
                    widen(from, src, wide)?;
                    narrow(to, wide, overflow, dst)?;
                }
                Ok(())
            })
        },
    )
}
