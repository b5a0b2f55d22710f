//! Times jobs against each other: interleaved, several passes, medians.
//!
//! Whole passes differ by a factor of two on a shared machine, so a figure only means something beside another
//! from the same pass. Every job is run once a pass, in turn, and what is reported is the median of its rates
//! and the median of its ratios to the first job of the same pass.

use std::time::Instant;

use cpu_time::ProcessTime;

/// Something to time: a name, how much it moves or computes, and the work.
pub struct Job<'a> {
    name: String,
    amount: usize,
    work: Box<dyn FnMut() + Send + 'a>,
}

impl<'a> Job<'a> {
    /// A job of `amount` units: bytes, read and written together, or operations.
    pub fn new(name: impl Into<String>, amount: usize, work: impl FnMut() + Send + 'a) -> Self {
        Self { name: name.into(), amount, work: Box::new(work) }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Times `jobs`, the first being what the others are compared with, and prints one line each.
///
/// `repeat` runs of a job make one measurement; use it to lift small jobs above the clock's grain.
pub fn compare(title: &str, passes: usize, repeat: usize, jobs: &mut [Job<'_>]) {
    for job in jobs.iter_mut() {
        (job.work)();
    }
    // With one thread other work on the machine is left out of the time.
    let alone = rayon::current_num_threads() == 1;
    let mut rates = vec![Vec::with_capacity(passes); jobs.len()];
    for _ in 0..passes {
        for (job, rates) in jobs.iter_mut().zip(&mut rates) {
            let (start, busy_from) = (Instant::now(), ProcessTime::now());
            for _ in 0..repeat {
                (job.work)();
            }
            let time = if alone { busy_from.elapsed() } else { start.elapsed() };
            rates.push((job.amount * repeat) as f64 / time.as_secs_f64() / 1e9);
        }
    }
    println!("{title}");
    let base = rates.first().cloned().unwrap_or_default();
    for (job, rates) in jobs.iter().zip(rates) {
        let ratio = median(rates.iter().zip(&base).map(|(rate, base)| rate / base).collect());
        let best = rates.iter().copied().fold(0.0, f64::max);
        let (name, rate) = (&job.name, median(rates));
        println!("  {name:26} {rate:8.2} G/s  {:6.1} % of the first  (best {best:.2})", 100.0 * ratio);
    }
}

/// Ordinary values of both signs over a few octaves, like those of a trained tensor.
pub fn values(len: usize) -> Vec<f32> {
    let mut state = 1_u64;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bits = (state >> 32) as u32;
            f32::from_bits(bits & 0x807F_FFFF | (118 + (bits >> 23 & 15)) << 23)
        })
        .collect()
}

/// A copy that reads and writes `bytes` bytes together, on as many threads as the pool has.
///
/// The two buffers do not start at the same place of a page, which would slow the copy down.
pub fn copy<'a>(bytes: usize) -> Job<'a> {
    use rayon::prelude::*;
    let from = vec![1_u8; bytes / 2];
    let mut to = vec![2_u8; bytes / 2 + 64];
    Job::new("copy", bytes, move || {
        let to = to.get_mut(64..).unwrap_or_default();
        let part = to.len().div_ceil(rayon::current_num_threads()).max(1 << 20);
        if part >= to.len() {
            to.copy_from_slice(&from);
        } else {
            to.par_chunks_mut(part)
                .zip(from.par_chunks(part))
                .for_each(|(to, from)| to.copy_from_slice(from));
        }
        std::hint::black_box(to);
    })
}

/// Runs `bench` on one long-lived pool of one thread and one of two.
pub fn on_pools(bench: impl Fn(&str) + Sync) {
    for threads in [1, 2] {
        let Ok(pool) = rayon::ThreadPoolBuilder::new().num_threads(threads).build() else { return };
        let level = hadal_num::simd::Level::active().name();
        pool.install(|| bench(&format!("{threads} thread(s), {level}")));
    }
}
