//! The activation engine: functions against values from 200-bit arithmetic, and the accumulator's commands.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use hadal_ir::program::{Accumulate, ActFunc, AluOp, Op};
use hadal_isa::Target;
use hadal_num::Dtype;
use hadal_sim::Options;
use support::*;

const F: Dtype = Dtype::Float32;

fn apply(func: ActFunc, x: &[f32], scale: f32, bias: f32) -> Vec<f32> {
    let n = x.len();
    let row = |loc| ap(loc, F, &[(1, 1), (1, n as u64)]);
    let p = program(
        vec![sb("a", 0, 1, 0, n as u32 * 4), sb("o", 0, 1, 4096, n as u32 * 4)],
        vec![Op::Activation { dst: row(1), src: row(0), func, scale, bias, accumulate: None }],
    );
    let (p, m) = both(p, Target::TRN2, Options::default(), &[floats("a", &[1, n], x)]);
    values(&m, &p, "o")
}

/// Distance in representable values.
fn ulps(a: f32, b: f32) -> u64 {
    let place = |x: f32| {
        let magnitude = i64::from(x.to_bits() & 0x7FFF_FFFF);
        if x.is_sign_negative() { -magnitude } else { magnitude }
    };
    place(a).abs_diff(place(b))
}

#[test]
fn functions_against_200_bit_arithmetic() {
    let text = std::fs::read_to_string(data("sim/activations.txt")).unwrap();
    let mut cases: Vec<(&str, Vec<f32>, Vec<f32>)> = Vec::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, x, want] = words[..] else { panic!("{line}") };
        let value = |w| f32::from_bits(u32::from_str_radix(w, 16).unwrap());
        if cases.last().is_none_or(|c| c.0 != name) {
            cases.push((name, Vec::new(), Vec::new()));
        }
        let case = cases.last_mut().unwrap();
        case.1.push(value(x));
        case.2.push(value(want));
    }
    let names: Vec<&str> = cases.iter().map(|c| c.0).collect();
    assert_eq!(names, ["gelu", "exp", "sigmoid", "tanh", "square", "sqrt", "rsqrt", "reciprocal"]);
    for (name, x, want) in cases {
        let exact = matches!(name, "square" | "sqrt" | "reciprocal");
        assert!(x.len() >= 300);
        for ((x, got), want) in x.iter().zip(apply(ActFunc::from_name(name).unwrap(), &x, 1.0, 0.0)).zip(want)
        {
            let limit = if exact { 0 } else { 1 };
            assert!(ulps(got, want) <= limit, "{name}({x:e}) is {got:e}, should be {want:e}");
        }
    }
}

#[test]
fn functions_at_the_ends() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    // A bias of -0 leaves -0 as it is.
    let at = |f| apply(f, &[-inf, inf, -0.0, 0.0], 1.0, -0.0);
    let same = |f, want: [f32; 4]| {
        let got = at(f);
        assert!(got.iter().zip(want).all(|(a, b)| a.to_bits() == b.to_bits()), "{f:?}: {got:?}");
    };
    same(ActFunc::Copy, [-inf, inf, -0.0, 0.0]);
    same(ActFunc::Relu, [0.0, inf, 0.0, 0.0]);
    same(ActFunc::Gelu, [-0.0, inf, -0.0, 0.0]);
    same(ActFunc::Exp, [0.0, inf, 1.0, 1.0]);
    same(ActFunc::Sigmoid, [0.0, 1.0, 0.5, 0.5]);
    same(ActFunc::Tanh, [-1.0, 1.0, -0.0, 0.0]);
    same(ActFunc::Square, [inf, inf, 0.0, 0.0]);
    same(ActFunc::Reciprocal, [-0.0, 0.0, -inf, inf]);
    let sqrt = at(ActFunc::Sqrt);
    assert!(sqrt[0].is_nan() && sqrt[1] == inf && sqrt[2].to_bits() == 0x8000_0000 && sqrt[3] == 0.0);
    let rsqrt = at(ActFunc::Rsqrt);
    assert!(rsqrt[0].is_nan() && rsqrt[1] == 0.0 && rsqrt[3] == inf);
    for f in ActFunc::ALL {
        assert!(apply(*f, &[nan], 1.0, 0.0)[0].is_nan(), "{f:?} of NaN");
    }
}

/// The product is rounded before the bias is added: (1 + 2^-12)^2 - 1 = 2^-11 + 2^-24, of which 2^-24 is lost.
#[test]
fn scale_is_rounded_before_the_bias() {
    let x = 1.0 + 2f32.powi(-12);
    assert_eq!(apply(ActFunc::Copy, &[x], x, -1.0), [2f32.powi(-11)]);
    // relu(-2 * -3 + 1)
    assert_eq!(apply(ActFunc::Relu, &[-2.0], -3.0, 1.0), [7.0]);
}

/// Rows 1 2 and 10 20; the accumulator after each list of commands, drained by both executors.
#[test]
fn accumulator_commands() {
    let act = |command, op, load| Op::Activation {
        dst: ap(1, F, &[(1, 2), (1, 2)]),
        src: ap(0, F, &[(1, 2), (1, 2)]),
        func: ActFunc::Square,
        scale: 1.0,
        bias: 0.0,
        accumulate: Some(Accumulate { command, op, load }),
    };
    let drain = Op::ReadActivationAccumulator { dst: ap(2, F, &[(1, 2), (1, 1)]) };
    let end = |mut ops: Vec<Op>| {
        ops.push(drain.clone());
        let p = program(vec![sb("a", 0, 2, 0, 8), sb("o", 0, 2, 64, 8), sb("acc", 0, 2, 128, 4)], ops);
        let given = [floats("a", &[2, 2], &[1.0, 2.0, 10.0, 20.0])];
        let (p, m) = both(p, Target::TRN2, Options::default(), &given);
        values(&m, &p, "acc")
    };
    let add = |command, load| act(command, AluOp::Add, load);
    // The squares are 1 4 and 100 400: sums 5 and 500.
    assert_eq!(end(vec![add(4, None)]), [5.0, 500.0]);
    assert_eq!(end(vec![add(4, None), add(2, None)]), [10.0, 1000.0]);
    assert_eq!(end(vec![add(4, None), add(0, None)]), [5.0, 500.0]);
    assert_eq!(end(vec![add(4, None), add(1, None)]), [0.0, 0.0]);
    assert_eq!(end(vec![add(4, None), add(1, None), add(2, None)]), [5.0, 500.0]);
    assert_eq!(end(vec![add(4, None), add(4, None)]), [5.0, 500.0]);
    for load in [3, 5] {
        assert_eq!(end(vec![add(4, None), add(load, Some(0.5))]), [5.5, 500.5]);
    }
    assert_eq!(end(vec![act(3, AluOp::Max, Some(50.0))]), [50.0, 400.0]);
    assert_eq!(end(vec![act(5, AluOp::Min, Some(50.0))]), [1.0, 50.0]);
    assert_eq!(end(vec![act(3, AluOp::Mult, Some(2.0))]), [8.0, 80_000.0]);
    // Draining consumes: the next accumulation starts from zero, a second drain still reads the value.
    assert_eq!(end(vec![add(4, None), drain.clone(), add(2, None)]), [5.0, 500.0]);
    assert_eq!(end(vec![add(4, None), drain.clone()]), [5.0, 500.0]);
}
