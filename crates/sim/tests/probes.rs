//! The PSUM probes: values that tell plausible models of the array apart.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use hadal_ir::program::{Matmult, Op, Program};
use hadal_isa::{PerfMode, Target};
use hadal_num::Dtype;
use hadal_sim::bind::{self, ArrayDtype};
use hadal_sim::{Options, PsumRounding};
use support::*;

/// `[k, m]` by `[k, n]` of one type into `dst`.
fn small(dtype: Dtype, [k, m, n]: [u64; 3], dst: Dtype) -> Program {
    let size = dtype.bytes() as u32;
    program(
        vec![
            sb("x", 0, k as u32, 0, n as u32 * size),
            sb("w", 0, k as u32, 4096, m as u32 * size),
            psum("o", 0, m as u32, 0, 0, n as u32 * dst.bytes() as u32),
        ],
        vec![Op::Matmult(Box::new(matmult(
            ap(0, dtype, &[(1, k), (1, n)]),
            ap(1, dtype, &[(1, k), (1, m)]),
            ap(2, dst, &[(1, m), (1, n)]),
        )))],
    )
}

fn one(dtype: Dtype, w: f32, x: f32, target: Target) -> f32 {
    let given = [floats("w", &[1, 1], &[w]), floats("x", &[1, 1], &[x])];
    let (p, m) = both(small(dtype, [1, 1, 1], Dtype::Float32), target, Options::default(), &given);
    values(&m, &p, "o")[0]
}

#[test]
fn single_products() {
    let e = 2f32.powi(-9);
    for target in Target::ALL {
        // 1 - 2^-18, which float32 holds; a bfloat16 product would give 1.
        assert_eq!(one(Dtype::Float32, 1.0 + e, 1.0 - e, target), 1.0 - 2f32.powi(-18));
        assert_eq!(one(Dtype::Bfloat16, 1.0078125, 1.0078125, target), 16_641.0 / 16_384.0);
        // 1 + 2^-11 + 2^-12 rounds up to 1 + 2^-10 in ten bits.
        let x = 1.0 + 2f32.powi(-11) + 2f32.powi(-12);
        assert_eq!(one(Dtype::Float32r, 1.0, x, target), 1.0 + 2f32.powi(-10));
        assert_eq!(one(Dtype::Float32, 1.0, x, target), x);
    }
}

/// PSUM holds 2^24; a matmul adds 1*1 + 1*1. Summed in the array first, the 2 survives (D-29).
#[test]
fn psum_adds_the_sum_once() {
    for target in Target::ALL {
        let mut p = small(Dtype::Float32, [2, 1, 1], Dtype::Float32);
        p.locs.push(sb("big", 0, 2, 8192, 4));
        let first = matmult(
            ap(3, Dtype::Float32, &[(1, 2), (1, 1)]),
            ap(1, Dtype::Float32, &[(1, 2), (1, 1)]),
            ap(2, Dtype::Float32, &[(1, 1), (1, 1)]),
        );
        p.instrs.insert(0, instr("first", Op::Matmult(Box::new(first))));
        let given = [
            floats("w", &[2, 1], &[1.0, 1.0]),
            floats("x", &[2, 1], &[1.0, 1.0]),
            floats("big", &[2, 1], &[16_777_216.0, 0.0]),
        ];
        let (p, m) = both(p, target, Options::default(), &given);
        assert_eq!(values(&m, &p, "o")[0], 16_777_218.0);
    }
}

fn count_up(dst: Dtype, options: Options) -> f32 {
    let mut p = small(Dtype::Bfloat16, [1, 1, 1], dst);
    p.locs.push(sb("start", 0, 1, 8192, 2));
    let out = ap(2, dst, &[(1, 1), (1, 1)]);
    let w = ap(1, Dtype::Bfloat16, &[(1, 1), (1, 1)]);
    let plus = p.instrs.remove(0).op;
    let first = matmult(ap(3, Dtype::Bfloat16, &[(1, 1), (1, 1)]), w, out);
    let ops = std::iter::once(Op::Matmult(Box::new(first))).chain(std::iter::repeat_n(plus, 4));
    p.instrs = ops.enumerate().map(|(i, op)| instr(&format!("m{i}"), op)).collect();
    let given =
        [floats("w", &[1, 1], &[1.0]), floats("x", &[1, 1], &[1.0]), floats("start", &[1, 1], &[256.0])];
    let (p, m) = both(p, Target::TRN3, options, &given);
    values(&m, &p, "o")[0]
}

#[test]
fn bfloat16_psum_rounds_at_every_write() {
    assert_eq!(count_up(Dtype::Bfloat16, Options::default()), 256.0);
    assert_eq!(count_up(Dtype::Float32, Options::default()), 260.0);
    // Each step from 256 is half an ulp: stochastically it goes up to 258 half of the time.
    let draws: Vec<f32> = (0..32)
        .map(|seed| {
            let psum_rounding = PsumRounding::Stochastic(seed);
            count_up(Dtype::Bfloat16, Options { psum_rounding, ..Options::default() })
        })
        .collect();
    assert!(draws.iter().all(|v| [256.0, 258.0, 260.0, 262.0, 264.0].contains(v)), "{draws:?}");
    // The mean of 32 draws of 256 + 2 Binomial(4, 1/2) is 260 with standard error 0.35.
    let mean = draws.iter().sum::<f32>() / 32.0;
    assert!((mean - 260.0).abs() < 1.75, "{mean}");
}

#[test]
fn double_row_of_ones_is_256() {
    for target in [Target::TRN2, Target::TRN3] {
        let e5m2 = Dtype::Float8E5m2;
        let mut mm = matmult(
            ap(0, e5m2, &[(1, 128), (512, 2), (1, 512)]),
            ap(1, e5m2, &[(1, 128), (1, 2), (1, 1)]),
            ap(2, Dtype::Float32, &[(1, 1), (1, 512)]),
        );
        mm.perf_mode = PerfMode::DoubleRow;
        let p = program(
            vec![sb("x", 0, 128, 0, 1024), sb("w", 0, 128, 4096, 2), psum("o", 0, 1, 0, 0, 2048)],
            vec![Op::Matmult(Box::new(mm))],
        );
        let ones = |n: usize| vec![0x3Cu8; n];
        let given = [
            bits("x", ArrayDtype::U8, &[128, 1024], ones(128 * 1024)),
            bits("w", ArrayDtype::U8, &[128, 2], ones(256)),
        ];
        let (p, m) = both(p, target, Options::default(), &given);
        assert_eq!(values(&m, &p, "o"), vec![256.0; 512]);
    }
}

/// Both operands from one tile: out = x.T @ x.
#[test]
fn one_tile_as_both_operands() {
    let x = ap(0, Dtype::Float32, &[(1, 3), (1, 2)]);
    let p = program(
        vec![sb("x", 0, 3, 0, 8), psum("o", 0, 2, 0, 0, 8)],
        vec![Op::Matmult(Box::new(matmult(x.clone(), x, ap(1, Dtype::Float32, &[(1, 2), (1, 2)]))))],
    );
    let given = [floats("x", &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])];
    let (p, m) = both(p, Target::TRN2, Options::default(), &given);
    assert_eq!(values(&m, &p, "o"), [35.0, 44.0, 44.0, 56.0]);
}

/// A contraction of 96 equals the one of 128 whose last rows are zero, in every bit.
#[test]
fn short_contraction_equals_padded() {
    let (short, m) =
        both(small(Dtype::Bfloat16, [96, 32, 64], Dtype::Float32), Target::TRN2, Options::default(), &[]);
    let take = |name| bind::dump(&m, &short, name).unwrap().data;
    let pad = |data: Vec<u8>, row: usize| {
        let mut data = data;
        data.resize(128 * row, 0);
        data
    };
    let given = [
        bits("w", ArrayDtype::U16, &[128, 32], pad(take("w"), 64)),
        bits("x", ArrayDtype::U16, &[128, 64], pad(take("x"), 128)),
    ];
    let (long, n) =
        both(small(Dtype::Bfloat16, [128, 32, 64], Dtype::Float32), Target::TRN2, Options::default(), &given);
    assert_eq!(take("o"), bind::dump(&n, &long, "o").unwrap().data);
}

/// Writing ones to columns 0..4, then 2..6: first write overwrites, later writes add, per element (D-28).
#[test]
fn overlapping_destinations_add_per_element() {
    let f = Dtype::Float32;
    let part = |at: u64| -> Matmult {
        let mut out = ap(2, f, &[(1, 1), (1, 4)]);
        out.offset = at * 4;
        matmult(ap(0, f, &[(1, 1), (1, 4)]), ap(1, f, &[(1, 1), (1, 1)]), out)
    };
    let p = program(
        vec![sb("x", 0, 1, 0, 16), sb("w", 0, 1, 64, 4), psum("o", 0, 1, 0, 0, 24)],
        vec![Op::Matmult(Box::new(part(0))), Op::Matmult(Box::new(part(2)))],
    );
    let given = [floats("x", &[1, 4], &[1.0; 4]), floats("w", &[1, 1], &[1.0])];
    for target in Target::ALL {
        let (p, m) = both(p.clone(), target, Options::default(), &given);
        assert_eq!(values(&m, &p, "o"), [1.0, 1.0, 2.0, 2.0, 1.0, 1.0]);
    }
}

/// Above level 40 no accumulate byte is on the wire: a Memset stands in for START and everything adds.
#[test]
fn above_level_40_everything_adds() {
    let target = "level:41".parse::<Target>().unwrap();
    let mut p = small(Dtype::Float32, [1, 1, 1], Dtype::Float32);
    let again = p.instrs[0].op.clone();
    p.instrs.push(instr("again", again));
    let given = [floats("w", &[1, 1], &[3.0]), floats("x", &[1, 1], &[5.0])];
    let (p, m) = both(p, target, Options::default(), &given);
    assert_eq!(values(&m, &p, "o")[0], 30.0);
}

/// A negative sum below the smallest bfloat16 is written as -0; the second float32 pass adds nothing, not
/// even the +0 that would turn it into +0.
#[test]
fn second_pass_keeps_minus_zero() {
    let tiny = f32::from_bits(1);
    let given = [floats("w", &[1, 1], &[-1.0]), floats("x", &[1, 1], &[tiny])];
    let p = small(Dtype::Float32, [1, 1, 1], Dtype::Bfloat16);
    let (p, m) = both(p, Target::TRN3, Options::default(), &given);
    assert_eq!(bind::dump(&m, &p, "o").unwrap().data, [0x00, 0x80]);
}
