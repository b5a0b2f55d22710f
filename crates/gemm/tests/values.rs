//! Products against an independent computation of the definition.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use hadal_gemm::{Dense, Format, GemmError, Plan, Problem, RunOptions, Stationary, Weights};
use hadal_ir::verify::LowerOptions;
use hadal_isa::{Gen, Target};
use hadal_num::matmul::matmul_ref;
use hadal_num::mx::{ScaleRule, expand, quantize};
use hadal_num::simd::{Level, with_level};
use hadal_num::{Dtype, Overflow, decode, encode};
use hadal_num::{Format as Element, round_f32r};
use hadal_sim::Fp32Mode;

/// Standard values with a wide spread, from a linear congruence.
fn values(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let unit = (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5;
            let scale = ((state >> 20) % 9) as i32 - 4;
            unit * 2f32.powi(scale)
        })
        .collect()
}

/// One operand of the definition: `[k, columns]` float32 as the array multiplies them.
fn elements(p: &Problem, x: &[f32], moving: bool, columns: usize, rule: ScaleRule) -> Vec<f32> {
    let element = match p.format.dtype() {
        Dtype::Float32 => return x.to_vec(),
        Dtype::Float32r => return x.iter().map(|v| round_f32r(*v)).collect(),
        Dtype::Bfloat16 => Element::Bfloat16,
        Dtype::Float16 => Element::Float16,
        Dtype::Float8E4m3 => Element::Float8E4m3,
        Dtype::Float8E4m3fn => Element::Float8E4m3fn,
        Dtype::Float8E5m2 => Element::Float8E5m2,
        _ => return blocks(p, x, moving, columns, rule),
    };
    x.iter().map(|v| decode(element, encode(element, *v, Overflow::Ieee))).collect()
}

/// MX operands: blocks of 32 consecutive contraction indices of one column.
fn blocks(p: &Problem, x: &[f32], moving: bool, columns: usize, rule: ScaleRule) -> Vec<f32> {
    let format = p.format.mx().unwrap();
    let on_device = (moving || p.weights == Weights::Device) && p.format != Format::Mxfp4;
    let mut out = vec![0.0; x.len()];
    for column in 0..columns {
        for start in (0..p.k).step_by(32) {
            let mut block = [0.0f32; 32];
            for (i, v) in block.iter_mut().enumerate().take(p.k - start) {
                *v = x[(start + i) * columns + column];
                if on_device {
                    *v = decode(Element::Bfloat16, encode(Element::Bfloat16, *v, Overflow::Ieee));
                }
            }
            let (mut data, mut scale) = (vec![0; 8 * format.container_bytes()], [0]);
            let mut wide = [0.0; 32];
            with_level(Level::Scalar, || {
                quantize(&block[..], 8, 4, format, rule, &mut data, &mut scale).unwrap();
                expand(format, rule, &data, &scale, 8, 1, &mut wide).unwrap();
            });
            for (i, v) in wide.iter().enumerate().take(p.k - start) {
                out[(start + i) * columns + column] = *v;
            }
        }
    }
    out
}

/// Contraction indices of each array pass, in the order it adds them.
fn passes(p: &Problem) -> Vec<Vec<usize>> {
    let fp8 = matches!(p.format, Format::E4m3 | Format::E4m3fn | Format::E5m2);
    let depth = if p.format.mx().is_some() { 512 } else { 128 };
    let mut out = Vec::new();
    let mut at = 0;
    while at < p.k {
        let left = p.k - at;
        if fp8 && p.lower.target.generation != Gen::Gen2 && left > 128 {
            // Row pairs: index p of the first half, then of the second.
            let len = left.min(256);
            let half = len.div_ceil(2);
            out.push((0..half).flat_map(|i| [i, half + i]).filter(|i| *i < len).map(|i| at + i).collect());
            at += len;
        } else {
            let len = left.min(depth);
            out.push((at..at + len).collect());
            at += len;
        }
    }
    out
}

/// The definition: each pass is one sum from +0 in its order, the passes add up in PSUM.
fn definition(p: &Problem, a: &[f32], b: &[f32], options: &RunOptions) -> Vec<u32> {
    let (m, n) = (p.m, p.n);
    let transposed: Vec<f32> = (0..p.k).flat_map(|k| (0..m).map(move |i| a[i * p.k + k])).collect();
    let a_moves = p.stationary_side() == hadal_gemm::Side::B;
    let rule = options.sim.mx_rule;
    let w = elements(p, &transposed, a_moves, m, rule);
    let x = elements(p, b, !a_moves, n, rule);
    let rows = |of: &[f32], width: usize, pass: &[usize]| -> Vec<f32> {
        pass.iter().flat_map(|k| of[k * width..(k + 1) * width].to_vec()).collect()
    };
    let mut out: Vec<f32> = Vec::new();
    let mut sum = |w: &[f32], x: &[f32], pass: &[usize]| {
        let mut one = vec![0.0; m * n];
        matmul_ref(&rows(w, m, pass), &rows(x, n, pass), pass.len(), m, n, &mut one).unwrap();
        if out.is_empty() {
            out = one;
        } else {
            out.iter_mut().zip(one).for_each(|(o, v)| *o += v);
        }
    };
    for pass in passes(p) {
        if p.format == Format::Fp32 && options.sim.fp32 == Fp32Mode::TwoPass {
            let held = if a_moves { &x } else { &w };
            let hi: Vec<f32> = held.iter().map(|v| round_f32r(*v)).collect();
            let lo: Vec<f32> = held.iter().zip(&hi).map(|(v, h)| v - h).collect();
            for part in [&hi, &lo] {
                if a_moves { sum(&w, part, &pass) } else { sum(part, &x, &pass) }
            }
        } else {
            sum(&w, &x, &pass);
        }
    }
    out.iter().map(|v| v.to_bits()).collect()
}

fn run(p: &Problem, a: &[f32], b: &[f32], options: RunOptions) -> Vec<u32> {
    let plan = Plan::new(*p).unwrap();
    let (a, b) = (Dense::new([p.m, p.k], a).unwrap(), Dense::new([p.k, p.n], b).unwrap());
    let mut runner = plan.run(&a, &b, options).unwrap();
    let mut out = vec![None; p.m * p.n];
    let mut last = 0;
    while let Some(block) = runner
        .next_block(&mut |done, all| {
            assert!(done <= all);
            last = done.max(last);
        })
        .unwrap()
    {
        let s = block.segment;
        for (i, c) in block.bytes.chunks(4).enumerate() {
            let at = (s.row + i / s.columns) * p.n + s.column + i % s.columns;
            assert_eq!(out[at], None, "every output comes once");
            out[at] = Some(u32::from_le_bytes(c.try_into().unwrap()));
        }
    }
    out.into_iter().map(|v| v.expect("every output comes")).collect()
}

fn check(p: &Problem, options: RunOptions) {
    let (a, b) = (values(p.m * p.k, 1), values(p.k * p.n, 2));
    let (got, want) = (run(p, &a, &b, options), definition(p, &a, &b, &options));
    let wrong = got.iter().zip(&want).position(|(g, w)| g != w);
    assert_eq!(wrong, None, "{p:?}");
}

/// Every format of every target.
fn every() -> impl Iterator<Item = (Format, Target)> {
    Target::ALL.into_iter().flat_map(|t| Format::of(t.generation).map(move |f| (f, t)))
}

const SHAPES: [[usize; 3]; 7] =
    [[1, 1, 1], [3, 5, 7], [130, 513, 257], [1, 700, 2], [129, 129, 520], [2, 33, 1025], [64, 1300, 3]];

fn problem(shape: [usize; 3], format: Format, target: Target) -> Problem {
    Problem::new(shape, format, LowerOptions::new(target))
}

#[test]
fn odd_shapes_in_every_format() {
    for (format, target) in every() {
        for shape in SHAPES {
            check(&problem(shape, format, target), RunOptions::default());
        }
    }
}

#[test]
fn several_segments_and_tails() {
    // More than one block of either operand, whichever is stationary, and a last one of another size.
    for (format, target) in [
        (Format::Bf16, Target::TRN1),
        (Format::E4m3, Target::TRN2),
        (Format::Mxfp8E4m3fn, Target::TRN3),
        (Format::Mxfp4, Target::TRN3),
    ] {
        for (shape, stationary) in [
            ([519, 40, 2055], Stationary::A),
            ([2055, 40, 523], Stationary::B),
            ([70, 600, 530], Stationary::B),
        ] {
            let p = Problem { stationary, ..problem(shape, format, target) };
            assert!(Plan::new(p).unwrap().segments().len() > 1);
            check(&p, RunOptions::default());
        }
    }
}

#[test]
fn a_long_contraction_streams_through_sbuf() {
    // Few outputs whose operands do not fit SBUF whole.
    for (format, target, k) in [
        (Format::Fp32, Target::TRN1, 12_001),
        (Format::Bf16, Target::TRN2, 26_001),
        (Format::E5m2, Target::TRN2, 51_001),
        (Format::Mxfp8E5m2, Target::TRN3, 70_001),
    ] {
        let p = Problem { stationary: Stationary::A, ..problem([1, k, 513], format, target) };
        assert!(!Plan::new(p).unwrap().blocking().resident, "{format} on {target}");
        assert!(Plan::new(Problem { k: 100, ..p }).unwrap().blocking().resident);
        check(&p, RunOptions::default());
    }
}

#[test]
fn choices_of_arithmetic() {
    let two_pass = hadal_sim::Options { fp32: Fp32Mode::TwoPass, ..Default::default() };
    for target in Target::ALL {
        for stationary in [Stationary::A, Stationary::B] {
            let p = Problem { stationary, ..problem([37, 300, 70], Format::Fp32, target) };
            check(&p, RunOptions { sim: two_pass, ..RunOptions::default() });
        }
    }
    for rule in ScaleRule::ALL {
        let sim = hadal_sim::Options { mx_rule: rule, ..Default::default() };
        for format in [Format::Mxfp8E4m3fn, Format::Mxfp8E5m2, Format::Mxfp4] {
            for weights in [Weights::Offline, Weights::Device] {
                let p = Problem { weights, ..problem([33, 90, 45], format, Target::TRN3) };
                check(&p, RunOptions { sim, ..RunOptions::default() });
            }
        }
    }
}

#[test]
fn any_small_shape() {
    let all: Vec<(Format, Target)> = every().collect();
    arbtest::arbtest(|u| {
        let (format, target) = *u.choose(&all)?;
        let mut extent = || u.int_in_range(1..=300usize);
        let shape = [extent()?, extent()?, extent()?];
        let stationary = *u.choose(&[Stationary::Auto, Stationary::A, Stationary::B])?;
        let weights = *u.choose(&[Weights::Offline, Weights::Device])?;
        check(&Problem { stationary, weights, ..problem(shape, format, target) }, RunOptions::default());
        Ok(())
    })
    .budget_ms(1_500);
}

#[test]
fn small_integers_are_exact() {
    // Every product and sum is a small integer: the result is the one of whole-number arithmetic, in any order.
    for (format, target) in every() {
        let (m, k, n) = (70, 200, 90);
        // MX blocks hold the same few exponents everywhere: scales stay powers of two of whole numbers.
        let value = |i: usize| ((i * 7 + i / 5) % 3) as f32 - 1.0;
        let a: Vec<f32> = (0..m * k).map(value).collect();
        let b: Vec<f32> = (0..k * n).map(|i| value(i + 1)).collect();
        let got = run(&problem([m, k, n], format, target), &a, &b, RunOptions::default());
        for (at, bits) in got.iter().enumerate() {
            let (i, j) = (at / n, at % n);
            let want: i64 = (0..k).map(|l| a[i * k + l] as i64 * b[l * n + j] as i64).sum();
            assert_eq!(f64::from(f32::from_bits(*bits)), want as f64, "{format} on {target}, [{i}, {j}]");
        }
    }
}

#[test]
fn threads_and_vector_levels_change_nothing() {
    let (m, k, n) = (600, 70, 2100);
    let (a, b) = (values(m * k, 5), values(k * n, 6));
    for (format, target) in [(Format::Bf16, Target::TRN2), (Format::Mxfp8E4m3fn, Target::TRN3)] {
        let p = problem([m, k, n], format, target);
        assert!(Plan::new(p).unwrap().segments().len() > 2);
        let want = run(&p, &a, &b, RunOptions::default());
        for threads in [1, 2, 3, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| run(&p, &a, &b, RunOptions::default())), want, "{threads} threads");
        }
        for level in Level::ALL {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
            let got = pool.install(|| with_level(level, || run(&p, &a, &b, RunOptions::default())));
            assert_eq!(got, want, "{level:?}");
        }
    }
}

#[test]
fn infinities_and_nan_go_through() {
    let p = problem([3, 40, 2], Format::Bf16, Target::TRN2);
    let (mut a, b) = (vec![1.0; 120], vec![1.0; 80]);
    a[0] = f32::INFINITY;
    a[40] = f32::NAN;
    let got = run(&p, &a, &b, RunOptions::default());
    assert_eq!(got, [0x7F80_0000, 0x7F80_0000, 0x7FC0_0000, 0x7FC0_0000, 40f32.to_bits(), 40f32.to_bits()]);
}

#[test]
fn what_cannot_be_planned_is_said() {
    let text = |p: Problem| Plan::new(p).map(drop).unwrap_err().to_string();
    assert_eq!(
        text(problem([1, 1, 1], Format::E4m3fn, Target::TRN2)),
        "G-002: trn2 does not multiply e4m3fn; it takes bf16, fp16, fp32, fp32r, e4m3, e5m2"
    );
    assert!(matches!(
        Plan::new(problem([1, 1, 1], Format::E4m3, Target::TRN3)),
        Err(GemmError::FormatNotOnTarget { .. })
    ));
    assert!(text(problem([0, 1, 1], Format::Bf16, Target::TRN2)).starts_with("G-003: "));
    assert!(text(problem([1, 1 << 31, 1], Format::Bf16, Target::TRN2)).starts_with("G-003: "));
    let plan = Plan::new(problem([2, 3, 4], Format::Bf16, Target::TRN2)).unwrap();
    let values = [0.0f32; 12];
    let (a, b) = (Dense::new([2, 3], &values[..6]).unwrap(), Dense::new([4, 3], &values).unwrap());
    let e = plan.run(&a, &b, RunOptions::default()).map(drop).unwrap_err();
    assert_eq!((e.code(), Dense::new([4, 4], &values).is_none()), ("G-004", true));
}
