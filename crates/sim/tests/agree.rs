//! Random programs: whatever the verifier accepts leaves the same bytes on both executors, with and without
//! the weight cache.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;

use arbtest::arbitrary::{Result, Unstructured};
use hadal_ir::encode::lower;
use hadal_ir::program::{AluOp, Ap, Immediate, Module, Op, Program};
use hadal_ir::verify::{LowerOptions, verify};
use hadal_isa::{PerfMode, Target};
use hadal_num::Dtype;
use hadal_sim::{Executor, Fp32Mode, Options, PsumRounding, run_module};
use support::*;

const F: Dtype = Dtype::Float32;

/// A dense matmul from one of two weight and two moving tiles into part of one of two PSUM tiles.
fn matmul(u: &mut Unstructured<'_>, types: [Dtype; 2]) -> Result<Op> {
    let (w_loc, x_loc) = (u.int_in_range(0..=1u32)?, 2 + u.int_in_range(0..=1u32)?);
    let o_loc = 4 + u.int_in_range(0..=1u32)?;
    let k = *u.choose(&[32u64, 64, 128])?;
    let m = *u.choose(&[1u64, 8, 32])?;
    let n = u.int_in_range(1..=16u64)?;
    let row = u32::try_from(k).unwrap() * u.int_in_range(0..=3u32)?;
    let (row, k) = if u64::from(row) + k > 128 { (0, k) } else { (row, k) };
    let col = 32 * u.int_in_range(0..=2u32)?;
    let mut mm = matmult(
        ap(x_loc, types[1], &[(1, k), (1, n)]),
        ap(w_loc, types[0], &[(1, k), (1, m)]),
        ap(o_loc, F, &[(1, m), (1, n)]),
    );
    mm.ifmap.partition = row;
    mm.weights.partition = row;
    mm.weights.offset = 4 * u.int_in_range(0..=3u64)?;
    mm.out.partition = col;
    mm.out.offset = 4 * u.int_in_range(0..=16u64)?;
    if types[0].is_fp8() && types[1].is_fp8() && u.ratio(1, 2)? {
        mm.perf_mode = PerfMode::DoubleRow;
        let pair = |a: &mut Ap, n: u64| a.pattern = ap(0, F, &[(1, k), (n as i64, 2), (1, n)]).pattern;
        pair(&mut mm.ifmap, n);
        pair(&mut mm.weights, m);
    }
    Ok(Op::Matmult(Box::new(mm)))
}

fn random(u: &mut Unstructured<'_>) -> Result<Program> {
    let types = *u.choose(&[
        [Dtype::Bfloat16, Dtype::Float16],
        [F, F],
        [Dtype::Float32r, Dtype::Float32r],
        [Dtype::Float8E5m2, Dtype::Float8E4m3],
        [Dtype::Uint8, Dtype::Bfloat16],
    ])?;
    let tile = |name, at| sb(name, 0, 128, at, 256);
    let locs = vec![
        tile("w0", 0),
        tile("w1", 256),
        tile("x0", 512),
        tile("x1", 768),
        psum("o0", 0, 128, 0, 0, 192),
        psum("o1", 0, 128, 3, 64, 192),
        sb("s", 0, 128, 1024, 256),
    ];
    let mut ops = Vec::new();
    for _ in 0..u.int_in_range(1..=8)? {
        ops.push(match u.int_in_range(0..=9)? {
            // New weights in a tile that a cached load may have come from.
            0 => Op::Memset {
                dst: ap(u.int_in_range(0..=1)?, types[0], &[(1, 128), (1, 8)]),
                value: Immediate::Int(u.int_in_range(0..=3)?),
            },
            // Reads and writes of PSUM between the matmuls.
            1 => Op::TensorScalar {
                dst: ap(6, F, &[(1, 8), (1, 8)]),
                src: ap(4, F, &[(1, 8), (1, 8)]),
                op0: AluOp::Mult,
                operand0: Immediate::Float(0.5),
                second: None,
            },
            2 => Op::Memset { dst: ap(5, F, &[(1, 128), (1, 48)]), value: Immediate::Float(-0.0) },
            _ => matmul(u, types)?,
        });
    }
    let mut p = program(locs, ops);
    p.attrs.auto_psum_accumulate = *u.choose(&[None, None, None, Some(true), Some(false)])?;
    Ok(p)
}

#[test]
fn executors_agree_on_every_verified_program() {
    let (mut accepted, mut seen, mut ran) = (0, 0, 0);
    arbtest::arbtest(|u| {
        let p = random(u)?;
        let target = *u.choose(&[Target::TRN1, Target::TRN2, Target::TRN3, "level:45".parse().unwrap()])?;
        let options = Options {
            fp32: *u.choose(&[Fp32Mode::Single, Fp32Mode::TwoPass])?,
            psum_rounding: *u.choose(&[PsumRounding::Rne, PsumRounding::Stochastic(5)])?,
            uninit: *u.choose(&[hadal_sim::Uninit::Nan, hadal_sim::Uninit::Zero])?,
            ..Options::default()
        };
        seen += 1;
        let module = Module { name: "random".into(), cores: vec![p], notes: vec![] };
        let Ok(v) = verify(module.clone(), LowerOptions::new(target)) else { return Ok(()) };
        accepted += 1;
        let uncached = LowerOptions { weight_cache: false, ..LowerOptions::new(target) };
        let slow = verify(module, uncached).unwrap();
        let run = |v, executor| {
            let lowered = lower(v).unwrap();
            run_module(v, &lowered, executor, &options, 1, &BTreeMap::new(), &mut ())
        };
        let ir = run(&v, Executor::Ir);
        for (what, other) in
            [("cached", run(&v, Executor::Bundles)), ("uncached", run(&slow, Executor::Bundles))]
        {
            match (&ir, &other) {
                (Ok(a), Ok(b)) => {
                    assert_eq!(a.first_difference(b), None, "{what}, {target}: {v:#?}");
                    ran += 1;
                }
                (Err(_), Err(_)) => {}
                (a, b) => {
                    panic!("{what}, {target}: {:?} against {:?}", a.as_ref().err(), b.as_ref().err())
                }
            }
        }
        Ok(())
    })
    .budget_ms(3_000);
    assert!(ran * 2 >= accepted * 3, "{ran} runs of {accepted} programs came to their end");
    assert!(accepted * 8 >= seen, "only {accepted} of {seen} programs passed the verifier");
}
