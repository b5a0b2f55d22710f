//! Products of matrices, in operations a second: the definition, every kind of operand, the `gemm` crate, and what the
//! arithmetic of the machine reaches at most.
//!
//! `cargo bench -p hadal-num --bench matmul [-- SHAPE]`, a shape being `tile`, `mx`, `1024` or `2048`.

#![allow(missing_docs, unreachable_pub, dead_code)] // the helpers are shared by benchmarks

#[path = "support/peak.rs"]
mod peak;
mod support;

use std::hint::black_box;

use hadal_num::matmul::{Blocks, Codes, Operand, Prepared, matmul_ref, product};
use hadal_num::mx::{MxFormat, ScaleRule, Source, quantize};
use hadal_num::{Dtype, Overflow, narrow};
use rayon::prelude::*;
use support::{Job, compare, on_pools, values};

/// Codes of `[k, columns]` values.
fn codes(dtype: Dtype, values: &[f32]) -> Vec<u8> {
    let mut codes = vec![0; values.len() / dtype.lanes() * dtype.bytes()];
    let _ = narrow(dtype, values, Overflow::Saturate, &mut codes);
    codes
}

/// MX containers and scales of `[k, columns]` elements.
fn blocks(format: MxFormat, k: usize, columns: usize) -> (Vec<u8>, Vec<u8>) {
    let (rows, cols) = (k / 4, 4 * columns);
    let mut data = vec![0; rows * columns * format.container_bytes()];
    let mut scales = vec![0; rows / 8 * columns];
    let source = values(rows * cols);
    let _ =
        quantize(Source::Float32(&source), rows, cols, format, ScaleRule::Reference, &mut data, &mut scales);
    (data, scales)
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let shapes = [
        ("tile", [128, 128, 512]),
        ("mx", [512, 128, 512]),
        ("1024", [1024, 1024, 1024]),
        ("2048", [2048, 2048, 2048]),
    ];
    on_pools(|setting| {
        for (name, [k, m, n]) in shapes {
            if asked.is_empty() || asked.iter().any(|asked| asked == name) {
                shape([k, m, n], setting);
            }
        }
    });
}

fn shape([k, m, n]: [usize; 3], setting: &str) {
    let operations = 2 * k * m * n;
    let (w, x) = (values(k * m), values(k * n));
    let types = [Dtype::Bfloat16, Dtype::Float16, Dtype::Float8E4m3fn, Dtype::Float8E5m2, Dtype::Uint8];
    let coded = types.map(|dtype| (dtype, codes(dtype, &w), codes(dtype, &x)));
    let quantized = MxFormat::ALL.map(|format| (format, blocks(format, k, m), blocks(format, k, n)));
    let mut jobs = Vec::new();
    if let Some(peak::Loops { fused, separate, round }) = peak::loops() {
        for (name, work) in [("peak, fused", fused), ("peak, multiply and add", separate)] {
            let threads = rayon::current_num_threads();
            let rounds = operations / round / threads;
            let work = move || {
                (0..threads).into_par_iter().for_each(|_| {
                    black_box(work(rounds));
                });
            };
            jobs.push(Job::new(name, rounds * round * threads, work));
        }
    }
    if operations < 1 << 26 {
        let (w, x) = (&w, &x);
        let mut out = vec![0.0; m * n];
        jobs.push(Job::new("definition", operations, move || {
            let _ = matmul_ref(w, x, k, m, n, black_box(&mut out));
        }));
    }
    add(&mut jobs, "float32", operations, [k, m, n], Operand::Values(&w), Operand::Values(&x));
    for (dtype, w, x) in &coded {
        let [w, x] = [(w, m), (x, n)].map(|(c, columns)| Operand::Codes(Codes::dense(*dtype, c, columns)));
        add(&mut jobs, dtype.name(), operations, [k, m, n], w, x);
    }
    for (format, w, x) in &quantized {
        let [w, x] = [(w, m), (x, n)].map(|((data, scales), columns)| {
            Operand::Mx(Blocks::dense(*format, ScaleRule::Reference, data, scales, columns))
        });
        add(&mut jobs, &format!("mx {format}"), operations, [k, m, n], w, x);
    }
    {
        let (w, x) = (&w, &x);
        let mut out = vec![0.0_f32; m * n];
        let parallel = match rayon::current_num_threads() {
            1 => gemm::Parallelism::None,
            threads => gemm::Parallelism::Rayon(threads),
        };
        jobs.push(Job::new("gemm crate", operations, move || {
            crate_gemm([k, m, n], w, x, black_box(&mut out), parallel);
        }));
    }
    compare(&format!("{k} x {m} x {n}, {setting}"), 7, ((1 << 26) / operations).max(1), &mut jobs);
}

fn add<'a>(
    jobs: &mut Vec<Job<'a>>,
    name: &str,
    operations: usize,
    [k, m, n]: [usize; 3],
    w: Operand<'a>,
    x: Operand<'a>,
) {
    let mut out = vec![0.0; m * n];
    jobs.push(Job::new(name, operations, move || {
        let _ = product(w, x, [k, m, n], black_box(&mut out));
    }));
    // What a simulator does: the stationary operand is packed when it is loaded.
    if k <= 512
        && let Ok(prepared) = Prepared::new(w, k, m)
    {
        let mut out = vec![0.0; m * n];
        jobs.push(Job::new(format!("{name}, prepared"), operations, move || {
            let _ = prepared.product(x, n, black_box(&mut out));
        }));
    }
}

/// `out = transpose(w) x` with the other crate.
#[allow(unsafe_code)]
fn crate_gemm([k, m, n]: [usize; 3], w: &[f32], x: &[f32], out: &mut [f32], parallel: gemm::Parallelism) {
    assert!(w.len() == k * m && x.len() == k * n && out.len() == m * n);
    // SAFETY: the strides and sizes describe the three slices, whose lengths have just been checked.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            false,
            w.as_ptr(),
            m as isize,
            1,
            x.as_ptr(),
            1,
            n as isize,
            0.0,
            1.0,
            false,
            false,
            false,
            parallel,
        );
    }
}
