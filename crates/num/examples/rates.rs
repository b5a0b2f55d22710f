//! Times one operation a line of standard input, for scripts that interleave it with something else.
//!
//! The operations are casts; their amounts are the bytes read and written. The number of threads and the shape are
//! arguments: `rates [THREADS [ROWS COLS]]`.

mod serve;

use std::hint::black_box;

use hadal_num::mx::{MxFormat, ScaleRule, Source, dequantize, quantize};
use hadal_num::{Dtype, Overflow, convert, narrow, widen};
use serve::{Operation, on_pool};

/// Normally distributed enough: sums of uniform values, scaled by a power of two for each row.
fn values(rows: usize, cols: usize) -> Vec<f32> {
    let mut state = 1_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 24) as f32 - 0.5
    };
    (0..rows * cols)
        .map(|i| (uniform() + uniform() + uniform() + uniform()) * 2.0_f32.powi((i / cols % 8) as i32))
        .collect()
}

fn operations(rows: usize, cols: usize) -> Vec<Operation> {
    let count = rows * cols;
    let wide = values(rows, cols);
    let mut bf16 = vec![0_u8; count * 2];
    let _ = narrow(Dtype::Bfloat16, &wide, Overflow::Ieee, &mut bf16);
    let (wide, bf16): (&'static [f32], &'static [u8]) = (wide.leak(), bf16.leak());
    let mut all = Vec::new();
    let mut add = |name: String, bytes: usize, work: Box<dyn FnMut() + Send>| {
        all.push(Operation { name, amount: bytes, work });
    };
    let copy_from = bytes_of(wide.len() * 2);
    let mut copy_to = vec![1_u8; copy_from.len() + 64];
    add(
        "copy".into(),
        copy_from.len() * 2,
        Box::new(move || copy(copy_from, copy_to.get_mut(64..).unwrap_or_default())),
    );
    for dtype in
        [Dtype::Float8E4m3fn, Dtype::Float8E5m2, Dtype::Float8E4m3, Dtype::Float8E3m4, Dtype::Float4E2m1fnX4]
    {
        let size = count / dtype.lanes() * dtype.bytes();
        let mut codes = vec![0_u8; size];
        let _ = narrow(dtype, wide, Overflow::Saturate, &mut codes);
        let codes: &'static [u8] = codes.leak();
        let (mut a, mut b) = (vec![0_u8; size], vec![0_u8; size]);
        let (mut c, mut d) = (vec![0_f32; count], vec![0_u8; count * 2]);
        add(
            format!("float32>{dtype}"),
            count * 4 + size,
            Box::new(move || {
                let _ = narrow(dtype, wide, Overflow::Saturate, black_box(&mut a));
            }),
        );
        add(
            format!("bfloat16>{dtype}"),
            count * 2 + size,
            Box::new(move || {
                let _ = convert(Dtype::Bfloat16, bf16, dtype, Overflow::Saturate, black_box(&mut b));
            }),
        );
        add(
            format!("{dtype}>float32"),
            count * 4 + size,
            Box::new(move || {
                let _ = widen(dtype, codes, black_box(&mut c));
            }),
        );
        add(
            format!("{dtype}>bfloat16"),
            count * 2 + size,
            Box::new(move || {
                let _ = convert(dtype, codes, Dtype::Bfloat16, Overflow::Ieee, black_box(&mut d));
            }),
        );
    }
    for format in MxFormat::ALL {
        let size = count / 4 * format.container_bytes();
        let rule = ScaleRule::Ocp;
        let (mut data, mut scales) = (vec![0_u8; size], vec![0_u8; count / 32]);
        let _ = quantize(wide, rows, cols, format, rule, &mut data, &mut scales);
        let (data, scales): (&'static [u8], &'static [u8]) = (data.leak(), scales.leak());
        let ((mut a, mut b), (mut c, mut d)) =
            ((vec![0_u8; size], vec![0_u8; count / 32]), (vec![0_u8; size], vec![0_u8; count / 32]));
        let mut back = vec![0_f32; count];
        let moved = size + count / 32;
        add(
            format!("quantize-float32>{format}"),
            count * 4 + moved,
            Box::new(move || {
                let _ = quantize(wide, rows, cols, format, rule, black_box(&mut a), &mut b);
            }),
        );
        add(
            format!("quantize-bfloat16>{format}"),
            count * 2 + moved,
            Box::new(move || {
                let _ = quantize(Source::Bfloat16(bf16), rows, cols, format, rule, black_box(&mut c), &mut d);
            }),
        );
        add(
            format!("dequantize-{format}>float32"),
            count * 4 + moved,
            Box::new(move || {
                let _ = dequantize(format, rule, data, scales, rows, cols, black_box(&mut back));
            }),
        );
    }
    all
}

/// A buffer that has been written, so that its pages exist.
fn bytes_of(len: usize) -> &'static [u8] {
    vec![1_u8; len].leak()
}

/// A copy on as many threads as the pool has.
fn copy(from: &[u8], to: &mut [u8]) {
    use rayon::prelude::*;
    let part = to.len().div_ceil(rayon::current_num_threads()).max(1);
    if part >= to.len() {
        to.copy_from_slice(from);
    } else {
        to.par_chunks_mut(part).zip(from.par_chunks(part)).for_each(|(to, from)| to.copy_from_slice(from));
    }
    black_box(to);
}

fn main() -> std::io::Result<()> {
    let mut numbers = std::env::args().skip(1).map(|n| n.parse::<usize>().ok());
    let mut number = |default| numbers.next().flatten().unwrap_or(default);
    let (threads, rows, cols) = (number(1), number(4096), number(4096));
    on_pool(threads, || operations(rows, cols))
}
