//! Row pairs, zero points, tiles, and several cores.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;

use hadal_ir::encode::lower;
use hadal_ir::program::{Calc, CalcFlags, Module, Op, Program, Role};
use hadal_ir::verify::{LowerOptions, verify};
use hadal_isa::{PerfMode, Target};
use hadal_num::Dtype;
use hadal_sim::bind::{self, ArrayDtype};
use hadal_sim::{Executor, Options, RunError, run_module};
use support::*;

const E5: Dtype = Dtype::Float8E5m2;

fn double_row(mode: PerfMode, weights: &[(i64, u64)]) -> Program {
    let mut mm = matmult(
        ap(0, E5, &[(1, 16), (6, 2), (1, 6)]),
        ap(1, E5, weights),
        ap(2, Dtype::Float32, &[(1, 4), (1, 6)]),
    );
    mm.perf_mode = mode;
    program(
        vec![sb("x", 0, 16, 0, 12), sb("w", 0, 16, 64, 8), psum("o", 0, 4, 0, 0, 24)],
        vec![Op::Matmult(Box::new(mm))],
    )
}

/// The sum runs over the partition, then the pair; checked against a loop in that order.
#[test]
fn double_row_contracts_partition_then_pair() {
    for target in [Target::TRN2, Target::TRN3] {
        let p = double_row(PerfMode::DoubleRow, &[(1, 16), (4, 2), (1, 4)]);
        let (p, m) = both(p, target, Options::default(), &[]);
        let (w, x) = (values(&m, &p, "w"), values(&m, &p, "x"));
        let mut want = Vec::new();
        for i in 0..4 {
            for j in 0..6 {
                let mut sum = 0f32;
                for k in 0..16 {
                    for r in 0..2 {
                        sum += w[k * 8 + r * 4 + i] * x[k * 12 + r * 6 + j];
                    }
                }
                want.push(sum);
            }
        }
        assert_eq!(bind::dump(&m, &p, "o").unwrap().data, bytes_of(&want));
    }
}

/// Interleaved weights hold the pair of a column side by side: the same product from shuffled bytes.
#[test]
fn interleaved_weights_are_de_interleaved() {
    let p = double_row(PerfMode::DoubleRow, &[(1, 16), (4, 2), (1, 4)]);
    let (p, m) = both(p, Target::TRN2, Options::default(), &[]);
    let take = |name: &str| bind::dump(&m, &p, name).unwrap();
    let (w, x) = (take("w"), take("x"));
    let mut shuffled = w.clone();
    for (to, from) in shuffled.data.chunks_mut(8).zip(w.data.chunks(8)) {
        for c in 0..4 {
            for r in 0..2 {
                to[2 * c + r] = from[4 * r + c];
            }
        }
    }
    let q = double_row(PerfMode::DoubleRowSwInterleave, &[(1, 16), (1, 8)]);
    let given = [("w".to_owned(), shuffled), ("x".to_owned(), x)];
    let (q, n) = both(q, Target::TRN2, Options::default(), &given);
    assert_eq!(take("o").data, bind::dump(&n, &q, "o").unwrap().data);
}

#[test]
fn modes_without_meaning_are_refused_by_name() {
    for mode in [PerfMode::DoubleColumn, PerfMode::DoublePixel] {
        let p = double_row(mode, &[(1, 16), (4, 2), (1, 4)]);
        let mut m = hadal_sim::Machine::new(Target::TRN2);
        bind::fill(&mut m, &p, 0, &BTreeMap::new()).unwrap();
        let e = hadal_sim::ir_exec::run(&p, Target::TRN2, &mut m, &Options::default(), &mut ()).unwrap_err();
        assert!(e.to_string().contains(mode.name()), "{e}");
    }
}

/// uint8 operands with zero points: (3 - 1)(10 - 4) + (5 - 1)(2 - 4) = 4.
#[test]
fn zero_points_are_subtracted_in_float32() {
    let u = Dtype::Uint8;
    let mut mm = matmult(
        ap(0, u, &[(1, 2), (1, 1)]),
        ap(1, u, &[(1, 2), (1, 1)]),
        ap(2, Dtype::Float32, &[(1, 1), (1, 1)]),
    );
    mm.zero_point_weights = Some(1);
    mm.zero_point_ifmap = Some(4);
    let p = program(
        vec![sb("x", 0, 2, 0, 1), sb("w", 0, 2, 64, 1), psum("o", 0, 1, 0, 0, 4)],
        vec![Op::Matmult(Box::new(mm))],
    );
    let given =
        [bits("w", ArrayDtype::U8, &[2, 1], vec![3, 5]), bits("x", ArrayDtype::U8, &[2, 1], vec![10, 2])];
    let (p, m) = both(p, Target::TRN2, Options::default(), &given);
    assert_eq!(values(&m, &p, "o"), [4.0]);
}

/// Four 32-row tiles of one contraction, accumulated: the sums of the tiles added one after the other.
#[test]
fn row_tiles_accumulate() {
    let b = Dtype::Bfloat16;
    let tile = |t: u32| {
        let mut mm = matmult(
            ap(0, b, &[(1, 32), (1, 8)]),
            ap(1, b, &[(1, 32), (1, 16)]),
            ap(2, Dtype::Float32, &[(1, 16), (1, 8)]),
        );
        mm.ifmap.partition = 32 * t;
        mm.weights.partition = 32 * t;
        Op::Matmult(Box::new(mm))
    };
    let p = program(
        vec![sb("x", 0, 128, 0, 16), sb("w", 0, 128, 64, 32), psum("o", 0, 16, 0, 0, 32)],
        (0..4).map(tile).collect(),
    );
    let (p, m) = both(p, Target::TRN2, Options::default(), &[]);
    let (w, x) = (values(&m, &p, "w"), values(&m, &p, "x"));
    let mut want = Vec::new();
    for i in 0..16 {
        for j in 0..8 {
            let sums =
                (0..4).map(|t| (32 * t..32 * t + 32).fold(0f32, |s, k| s + w[k * 16 + i] * x[k * 8 + j]));
            want.push(sums.reduce(|a, b| a + b).unwrap());
        }
    }
    assert_eq!(bind::dump(&m, &p, "o").unwrap().data, bytes_of(&want));
}

/// Both cores read one input and write a half each of one output; SBUF is each core's own.
#[test]
fn cores_share_dram() {
    let f = Dtype::Float32;
    let core = |half: u64, factor: f32| {
        let mut out = ap(1, f, &[(1, 1), (1, 2)]);
        out.offset = 8 * half;
        let t = ap(2, f, &[(1, 1), (1, 2)]);
        program(
            vec![
                dram("in", Role::Input, f, &[1, 2]),
                dram("out", Role::Output, f, &[2, 2]),
                sb("t", 0, 1, 0, 8),
            ],
            vec![
                Op::DmaCopy { dst: t.clone(), src: ap(0, f, &[(1, 1), (1, 2)]) },
                Op::TensorScalar {
                    dst: t.clone(),
                    src: t.clone(),
                    op0: hadal_ir::program::AluOp::Mult,
                    operand0: hadal_ir::program::Immediate::Float(factor),
                    second: None,
                },
                Op::DmaCopy { dst: out, src: t },
            ],
        )
    };
    let (first, second) = (core(0, 10.0), core(1, 100.0));
    let module = Module { name: "two".into(), cores: vec![first, second], notes: vec![] };
    let v = verify(module, LowerOptions::new(Target::TRN2)).unwrap_or_else(|e| panic!("{e:?}"));
    let lowered = lower(&v).unwrap();
    let given: BTreeMap<_, _> = [floats("in", &[1, 2], &[1.5, -2.0])].into_iter().collect();
    let mut runs = Vec::new();
    for executor in [Executor::Bundles, Executor::Ir] {
        let run = run_module(&v, &lowered, executor, &Options::default(), 0, &given, &mut ()).unwrap();
        for core in [0, 1] {
            let out = run.dump(v.module(), core, "out").unwrap();
            let got = bind::widen(&out, f).unwrap().to_f32().unwrap();
            assert_eq!(got, [15.0, -20.0, 150.0, -200.0]);
            let t = run.dump(v.module(), core, "t").unwrap();
            assert_eq!(t.data, out.data[core * 8..core * 8 + 8]);
        }
        assert_eq!((run.machines.len(), run.stats.host), (2, 6));
        runs.push(run);
    }
    assert_eq!(runs[0].first_difference(&runs[1]), None);
    let wrong: BTreeMap<_, _> = [floats("nope", &[1], &[0.0])].into_iter().collect();
    let e = run_module(&v, &lowered, Executor::Ir, &Options::default(), 0, &wrong, &mut ()).unwrap_err();
    assert!(matches!(e, RunError::Bind(_)));
}

/// A trace sees every step with its name.
#[test]
fn observers_see_every_step() {
    #[derive(Default)]
    struct Trace(Vec<String>);
    impl hadal_sim::Observer for Trace {
        fn step(&mut self, index: usize, name: &str) {
            self.0.push(format!("{index} {name}"));
        }
        fn core(&mut self, core: usize, steps: usize) {
            self.0.push(format!("core {core}: {steps}"));
        }
    }
    let f = Dtype::Float32;
    let mut mm =
        matmult(ap(0, f, &[(1, 1), (1, 1)]), ap(1, f, &[(1, 1), (1, 1)]), ap(2, f, &[(1, 1), (1, 1)]));
    mm.calc = Calc::Explicit(CalcFlags { start: true, stop: true, ..CalcFlags::default() });
    let p = program(
        vec![sb("x", 0, 1, 0, 4), sb("w", 0, 1, 64, 4), psum("o", 0, 1, 0, 0, 4), sb("s", 0, 1, 128, 4)],
        vec![
            Op::Matmult(Box::new(mm)),
            Op::TensorCopy { dst: ap(3, f, &[(1, 1), (1, 1)]), src: ap(2, f, &[(1, 1), (1, 1)]) },
        ],
    );
    let module = Module { name: "m".into(), cores: vec![p], notes: vec![] };
    let v = verify(module, LowerOptions::new(Target::TRN2)).unwrap();
    let lowered = lower(&v).unwrap();
    let trace = |executor| {
        let mut t = Trace::default();
        run_module(&v, &lowered, executor, &Options::default(), 0, &BTreeMap::new(), &mut t).unwrap();
        t.0
    };
    assert_eq!(trace(Executor::Ir), ["core 0: 2", "0 i0", "1 i1"]);
    assert_eq!(
        trace(Executor::Bundles),
        [
            "core 0: 5",
            "0 LoadStationary of i0",
            "1 Matmul of i0",
            "2 LoadStationary of i0",
            "3 Matmul of i0",
            "1 i1"
        ]
    );
}
