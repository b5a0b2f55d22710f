//! Casts beside a plain copy of the same number of bytes, read and written counted together.

#![allow(missing_docs, unreachable_pub, dead_code)] // the helpers are shared by benchmarks

mod support;

use std::hint::black_box;

use hadal_num::{Dtype, Overflow, convert, narrow, widen};
use support::{Job, compare, copy, on_pools, values};

const TARGETS: [Dtype; 5] =
    [Dtype::Float8E4m3fn, Dtype::Float8E5m2, Dtype::Float8E4m3, Dtype::Float8E3m4, Dtype::Float4E2m1fnX4];

fn bench(setting: &str, rows: usize, cols: usize) {
    let count = rows * cols;
    let repeat = ((8 << 20) / count).max(1);
    let wide = values(count);
    let mut bf16 = vec![0; count * 2];
    let _ = narrow(Dtype::Bfloat16, &wide, Overflow::Ieee, &mut bf16);
    for dtype in TARGETS {
        let size = count / dtype.lanes() * dtype.bytes();
        let mut codes = vec![0; size];
        let _ = narrow(dtype, &wide, Overflow::Saturate, &mut codes);
        let (mut codes_out, mut codes_out_2) = (vec![0; size], vec![0; size]);
        let (mut wide_out, mut bf16_out) = (vec![0.0; count], vec![0; count * 2]);
        let title = format!("{rows} x {cols}, {dtype}, {setting}");
        let mut jobs = [
            copy(count * 4 + size),
            Job::new("from float32, saturate", count * 4 + size, || {
                let _ = narrow(dtype, &wide, Overflow::Saturate, black_box(&mut codes_out));
            }),
            Job::new("to float32", count * 4 + size, || {
                let _ = widen(dtype, &codes, black_box(&mut wide_out));
            }),
        ];
        compare(&title, 9, repeat, &mut jobs);
        let mut jobs = [
            copy(count * 2 + size),
            Job::new("from bfloat16, saturate", count * 2 + size, || {
                let out = black_box(&mut codes_out_2);
                let _ = convert(Dtype::Bfloat16, &bf16, dtype, Overflow::Saturate, out);
            }),
            Job::new("to bfloat16", count * 2 + size, || {
                let _ = convert(dtype, &codes, Dtype::Bfloat16, Overflow::Ieee, black_box(&mut bf16_out));
            }),
        ];
        compare(&title, 9, repeat, &mut jobs);
    }
}

fn main() {
    on_pools(|setting| {
        bench(setting, 128, 512);
        bench(setting, 4096, 4096);
    });
}
