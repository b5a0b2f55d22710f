//! Bundles per second for encode, decode and print, beside a copy of the same 64-byte words.
//!
//! What is compared is interleaved in every pass, and the medians of the passes are reported with
//! their ratio to the copy. Without `--bench` (as under `cargo test`) one short pass runs.
#![allow(missing_docs, clippy::print_stdout, reason = "a benchmark reports on standard output")]

use hadal_isa::text::{parse, print, print_into};
use hadal_isa::{
    Addr4, Inst, LoadStationary, Matmul, MatmultSparse, Pattern, START, STOP, Target, Word, decode,
};
use std::hint::black_box;
use std::time::Instant;

const BUNDLES: usize = 4096;

fn program() -> Vec<Inst> {
    let dims = |start, count| Pattern::<3> { start, strides: [1, 1, 1], counts: [count, 1, 1] };
    (0..BUNDLES)
        .map(|i| {
            let at = u32::try_from(i).unwrap_or(0) * 64;
            match i % 4 {
                0 | 2 => LoadStationary {
                    weights: dims(Addr4::sbuf(0, at), 128),
                    weights_tag: 6,
                    rows: 128,
                    active_cols: 128,
                    row_group: 15,
                    col_group: 15,
                    ..Default::default()
                }
                .into(),
                1 => Matmul {
                    moving: dims(Addr4::sbuf(0, at), 512),
                    moving_tag: 6,
                    dst_tag: 10,
                    rows: 128,
                    active_cols: 128,
                    accumulate: START | STOP,
                    row_group: 15,
                    col_group: 15,
                    dst: dims(Addr4::psum(0, at & 7, 0), 512),
                    ..Default::default()
                }
                .into(),
                _ => MatmultSparse {
                    moving: Pattern {
                        start: Addr4::sbuf(0, at),
                        strides: [256, 1, 1, 1],
                        counts: [2, 256, 1, 1],
                    },
                    moving_tag: 6,
                    dst_tag: 10,
                    rows: 128,
                    active_cols: 128,
                    row_group: 3,
                    col_group: 15,
                    ..Default::default()
                }
                .into(),
            }
        })
        .collect()
}

/// Nanoseconds per bundle of one pass.
fn time(repeats: usize, mut pass: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..repeats {
        pass();
    }
    start.elapsed().as_secs_f64() * 1e9 / (repeats * BUNDLES) as f64
}

fn main() {
    let full = std::env::args().any(|arg| arg == "--bench");
    // Text is slower by far, so it repeats less: a pass should fit in a scheduler's slice.
    let (passes, repeats, text_repeats) = if full { (200, 8, 1) } else { (1, 1, 1) };
    let target = Target::TRN2;
    let program = program();
    let words: Vec<Word> = program.iter().map(|inst| inst.encode(target)).collect();
    let lines: Vec<String> = words.iter().map(|word| print(word, target)).collect();
    let mut copied = vec![Word::ZERO; BUNDLES];
    let mut decoded = vec![decode(&Word::ZERO, target); BUNDLES];
    let mut text = String::with_capacity(1 << 20);
    let names = ["copy", "encode", "decode", "print", "parse"];
    let mut times: [Vec<f64>; 5] = Default::default();
    for _ in 0..passes {
        let results = [
            time(repeats, || {
                // One word at a time, as a codec would see them.
                for (to, from) in copied.iter_mut().zip(&words) {
                    *to = *black_box(from);
                }
                black_box(&mut copied);
            }),
            time(repeats, || {
                for (to, inst) in copied.iter_mut().zip(&program) {
                    *to = black_box(inst).encode(target);
                }
                black_box(&mut copied);
            }),
            time(repeats, || {
                for (to, word) in decoded.iter_mut().zip(&words) {
                    *to = decode(black_box(word), target);
                }
                black_box(&mut decoded);
            }),
            time(text_repeats, || {
                text.clear();
                for word in &words {
                    print_into(&mut text, black_box(word), target);
                    text.push('\n');
                }
                black_box(&mut text);
            }),
            time(text_repeats, || {
                for (to, line) in copied.iter_mut().zip(&lines) {
                    *to = parse(black_box(line), target).unwrap_or_default();
                }
                black_box(&mut copied);
            }),
        ];
        for (list, ns) in times.iter_mut().zip(results) {
            list.push(ns);
        }
    }
    times.iter_mut().for_each(|list| list.sort_by(f64::total_cmp));
    let at = |list: &[f64], n: usize| list.get(n).copied().unwrap_or(f64::NAN);
    println!("{passes} passes: median, and the best as a hint of what an idle machine does");
    println!(
        "{:8} {:>10} {:>14} {:>8} {:>10} {:>8}",
        "", "ns/bundle", "bundles/s", "x copy", "best ns", "x copy"
    );
    for (name, list) in names.iter().zip(&times) {
        let (median, best) = (at(list, passes / 2), at(list, 0));
        let (copy_median, copy_best) = (at(&times[0], passes / 2), at(&times[0], 0));
        println!(
            "{name:8} {median:>10.2} {:>14.0} {:>8.2} {best:>10.2} {:>8.2}",
            1e9 / median,
            median / copy_median,
            best / copy_best
        );
    }
}
