//! Quantizing and dequantizing MX blocks beside a plain copy of the same number of bytes.

#![allow(missing_docs, unreachable_pub, dead_code)] // the helpers are shared by benchmarks

mod support;

use std::hint::black_box;

use hadal_num::mx::{MxFormat, ScaleRule, Source, dequantize, quantize, quantize_counted};
use hadal_num::{Dtype, Overflow, narrow};
use support::{Job, compare, copy, on_pools, values};

fn bench(setting: &str, rows: usize, cols: usize) {
    let count = rows * cols;
    let repeat = ((8 << 20) / count).max(1);
    let rule = ScaleRule::Reference;
    let wide = values(count);
    let mut bf16 = vec![0; count * 2];
    let _ = narrow(Dtype::Bfloat16, &wide, Overflow::Ieee, &mut bf16);
    for format in MxFormat::ALL {
        let size = count / 4 * format.container_bytes();
        let (mut data, mut scales) = (vec![0; size], vec![0; count / 32]);
        let _ = quantize(&wide[..], rows, cols, format, rule, &mut data, &mut scales);
        let results = || (vec![0_u8; size], vec![0_u8; count / 32]);
        let [mut a, mut b, mut c] = [results(), results(), results()];
        let mut wide_out = vec![0.0; count];
        let title = format!("{rows} x {cols}, {format}, {setting}");
        let moved = count * 4 + size + count / 32;
        let mut jobs = [
            copy(moved),
            Job::new("quantize float32", moved, || {
                let _ = quantize(&wide[..], rows, cols, format, rule, black_box(&mut a.0), &mut a.1);
            }),
            Job::new("and count", moved, || {
                let _ = quantize_counted(&wide[..], rows, cols, format, rule, black_box(&mut b.0), &mut b.1);
            }),
            Job::new("dequantize", moved, || {
                let _ = dequantize(format, rule, &data, &scales, rows, cols, black_box(&mut wide_out));
            }),
        ];
        compare(&title, 9, repeat, &mut jobs);
        let moved = count * 2 + size + count / 32;
        let mut jobs = [
            copy(moved),
            Job::new("quantize bfloat16", moved, || {
                let src = Source::Bfloat16(&bf16);
                let _ = quantize(src, rows, cols, format, rule, black_box(&mut c.0), &mut c.1);
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
