//! What a planned product costs beyond the multiplications: its time over that of the bare kernel.
//!
//! `cargo bench -p hadal-gemm [-- EXTENT]`; the kernel is run over the same passes of the contraction, on operands
//! that are float32 already. Both take turns, and the ratio of the best of each is what counts: of wall time, and,
//! where the system tells it, of processor time, which other work on the machine disturbs less.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Instant;

use hadal_gemm::{Dense, Format, Plan, Problem, RunOptions};
use hadal_ir::verify::LowerOptions;
use hadal_isa::Target;
use hadal_num::matmul::matmul_blocked;

const PASSES: usize = 3;

fn values(count: usize) -> Vec<f32> {
    (0..count as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 24) as f32 - 0.5).collect()
}

/// The bare kernel, a pass of the contraction and a tile of the result at a time.
fn kernel(a: &[f32], b: &[f32], n: usize, depth: usize, sums: &mut [f32]) {
    // The operands are square: the tiles need not be cut out to take the same time.
    for (w, x) in a.chunks(depth * 128).zip(b.chunks(depth * 512).cycle()).cycle().take(tiles(n, depth)) {
        matmul_blocked(w, x, depth, 128, 512, sums).unwrap();
        black_box(&sums);
    }
}

fn tiles(n: usize, depth: usize) -> usize {
    (n / depth) * (n / 128) * (n / 512)
}

/// Seconds of processor time of this process so far, in steps of 10 ms; 0 where the system does not tell.
fn processor() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    fields.filter_map(|f| f.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Shorter of the wall times, and of the processor times, so far and of this work.
fn time(best: &mut [f64; 2], work: impl FnOnce()) {
    let (begin, used) = (Instant::now(), processor());
    work();
    best[0] = best[0].min(begin.elapsed().as_secs_f64());
    best[1] = best[1].min(processor() - used);
}

fn main() {
    let n = std::env::args().filter_map(|a| a.parse().ok()).next().unwrap_or(1024usize).next_multiple_of(512);
    let (a, b) = (values(n * n), values(n * n));
    let (left, right) = (Dense::new([n, n], &a).unwrap(), Dense::new([n, n], &b).unwrap());
    println!("{n} x {n} x {n}, {} threads", rayon::current_num_threads());
    for (format, target, depth) in [
        (Format::Bf16, Target::TRN2, 128),
        (Format::Fp32, Target::TRN2, 128),
        (Format::E5m2, Target::TRN2, 256),
        (Format::Mxfp8E4m3fn, Target::TRN3, 512),
        (Format::Mxfp4, Target::TRN3, 512),
    ] {
        let plan = Plan::new(Problem::new([n, n, n], format, LowerOptions::new(target))).unwrap();
        let mut sums = vec![0.0; 128 * 512];
        let (mut bare, mut whole) = ([f64::INFINITY; 2], [f64::INFINITY; 2]);
        for _ in 0..PASSES {
            time(&mut bare, || kernel(&a, &b, n, depth, &mut sums));
            time(&mut whole, || {
                let mut runner = plan.run(&left, &right, RunOptions::default()).unwrap();
                while let Some(block) = runner.next_block(&mut |_, _| ()).unwrap() {
                    black_box(block);
                }
            });
        }
        let rate = 2.0 * (n as f64).powi(3) / bare[0] / 1e9;
        println!(
            "{:<13} {target}  kernel {:7.0} ms ({rate:5.1} GFLOP/s)  product {:7.0} ms  ratio {:.2}, of processor time {:.2}",
            format.name(),
            bare[0] * 1e3,
            whole[0] * 1e3,
            whole[0] / bare[0],
            whole[1] / bare[1]
        );
    }
}
