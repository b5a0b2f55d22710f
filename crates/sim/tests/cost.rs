//! The cost model against its closed formulas, and the golden programs through both executors.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::fs;

use hadal_ir::encode::lower;
use hadal_ir::json;
use hadal_ir::program::{Module, Op, Program};
use hadal_ir::verify::{LowerOptions, verify};
use hadal_isa::{PerfMode, Target};
use hadal_num::Dtype;
use hadal_sim::bind::ArrayDtype::U16;
use hadal_sim::cost::{self, Cost};
use hadal_sim::{Executor, Options, run_module};
use support::*;

fn matmul(dtype: Dtype, [k, m, n]: [u64; 3], edit: impl Fn(&mut hadal_ir::program::Matmult)) -> Program {
    let size = dtype.bytes() as u32;
    let mut mm = matmult(
        ap(0, dtype, &[(1, k), (1, n)]),
        ap(1, dtype, &[(1, k), (1, m)]),
        ap(2, Dtype::Float32, &[(1, m), (1, n)]),
    );
    edit(&mut mm);
    let planes = if mm.perf_mode == PerfMode::None { 1 } else { 2 };
    program(
        vec![
            sb("x", 0, k as u32, 0, planes * n as u32 * size),
            sb("w", 0, k as u32, 8192, planes * m as u32 * size),
            psum("o", 0, m as u32, 0, 0, n as u32 * 4),
        ],
        vec![Op::Matmult(Box::new(mm))],
    )
}

fn estimate(p: Program, target: Target) -> Cost {
    let module = Module { name: "m".into(), cores: vec![p], notes: vec![] };
    let v = verify(module, LowerOptions::new(target)).unwrap();
    cost::estimate(&lower(&v).unwrap(), 0, v.core(0))
}

fn plain(_: &mut hadal_ir::program::Matmult) {}

#[test]
fn closed_formulas() {
    for target in Target::ALL {
        let bf16 = estimate(matmul(Dtype::Bfloat16, [128, 128, 512], plain), target);
        assert_eq!((bf16.matmul_cycles, bf16.load_cycles, bf16.cycles), (512, 32, 544));
        let fp32 = estimate(matmul(Dtype::Float32, [128, 128, 512], plain), target);
        assert_eq!(fp32.matmul_cycles, 2048);
        // The second load hides behind the first pass.
        assert_eq!(fp32.load_cycles, 32);
        let hint = estimate(matmul(Dtype::Float32, [128, 128, 512], |m| m.is_weight_onezero = true), target);
        assert_eq!(hint.matmul_cycles, 1024);
        let one = estimate(matmul(Dtype::Bfloat16, [128, 128, 1], plain), target);
        assert_eq!(one.matmul_cycles, 64);
        let narrow = estimate(matmul(Dtype::Bfloat16, [128, 32, 1], plain), target);
        assert_eq!((narrow.matmul_cycles, narrow.load_cycles), (32, 8));
    }
}

#[test]
fn utilization_and_time() {
    let c = estimate(matmul(Dtype::Bfloat16, [128, 128, 512], plain), Target::TRN2);
    assert!((c.pe_utilization - 512.0 / 544.0).abs() < 1e-12);
    assert_eq!((c.mfu, c.hfu), (c.pe_utilization, c.pe_utilization));
    assert!((c.microseconds - 544.0 / 2400.0).abs() < 1e-12);
    // Peak: all cells busy. 92 and 79 TFLOPS are the published figures.
    assert_eq!((2.0 * 16384.0 * cost::clock(hadal_isa::Gen::Gen2) / 1e12).round(), 92.0);
    assert_eq!((2.0 * 16384.0 * cost::clock(hadal_isa::Gen::Gen3) / 1e12).round(), 79.0);
    // Four passes' time for one product.
    let c = estimate(matmul(Dtype::Float32, [128, 128, 512], plain), Target::TRN2);
    assert!((c.pe_utilization - 512.0 / 2080.0).abs() < 1e-12);
    // DoubleRow does twice the work in the same time, over twice the peak.
    let e5 = Dtype::Float8E5m2;
    let double = matmul(e5, [128, 128, 512], |m| {
        m.perf_mode = PerfMode::DoubleRow;
        m.ifmap = ap(0, e5, &[(1, 128), (512, 2), (1, 512)]);
        m.weights = ap(1, e5, &[(1, 128), (128, 2), (1, 128)]);
    });
    let c = estimate(double, Target::TRN2);
    assert_eq!((c.matmul_cycles, c.steps[1].macs), (512, 2 * 128 * 128 * 512));
    assert!((c.mfu - 512.0 / 544.0).abs() < 1e-12);
    // A transpose does no model work.
    let t = matmul(Dtype::Float32, [128, 128, 128], |m| m.is_transpose = true);
    let c = estimate(t, Target::TRN2);
    assert_eq!(c.mfu, 0.0);
    assert!(c.hfu > 0.0);
    let by = c.by_instruction();
    assert_eq!((by.len(), by[0].cycles), (1, c.cycles));
}

/// Live bytes and banks: inputs from the start, results from their first write, until the last use.
#[test]
fn occupancy_follows_live_ranges() {
    let f = Dtype::Float32;
    let line = |loc| ap(loc, f, &[(1, 2), (1, 4)]);
    let mm = matmult(ap(0, f, &[(1, 2), (1, 4)]), ap(1, f, &[(1, 2), (1, 2)]), ap(2, f, &[(1, 2), (1, 4)]));
    let p = program(
        vec![
            sb("x", 0, 2, 0, 16),
            sb("w", 0, 2, 64, 8),
            psum("o", 0, 2, 1, 2044, 16),
            sb("t", 0, 2, 128, 16),
        ],
        vec![
            Op::Memset { dst: line(3), value: hadal_ir::program::Immediate::Int(0) },
            Op::Matmult(Box::new(mm)),
            Op::TensorCopy { dst: line(3), src: line(2) },
        ],
    );
    let got: Vec<_> = cost::occupancy(&p).iter().map(|o| (o.sbuf_bytes, o.psum_banks)).collect();
    assert_eq!(got, [(32 + 16 + 32, 0), (32 + 16 + 32, 0b110), (32, 0b110)]);
}

/// Every golden program: both executors leave the same memory, with and without the weight cache.
#[test]
fn golden_programs_agree_on_both_executors() {
    let mut ran = 0;
    for entry in fs::read_dir(data("programs")).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(stem) = file.strip_suffix(".bir.json") else { continue };
        let module = json::parse(&fs::read_to_string(&path).unwrap(), &file).unwrap();
        for (name, target) in [("trn1", Target::TRN1), ("trn2", Target::TRN2), ("trn3", Target::TRN3)] {
            if !data(&format!("programs/{stem}.{name}.hex")).exists() {
                continue;
            }
            let mut first = None;
            for weight_cache in [true, false] {
                let v = verify(module.clone(), LowerOptions { weight_cache, ..LowerOptions::new(target) })
                    .unwrap();
                let lowered = lower(&v).unwrap();
                // Random sparsity tags would leave their groups: zeros are always legal.
                let mut given = std::collections::BTreeMap::new();
                if stem == "transpose" {
                    // The moving operand of a transpose selects rows: an identity.
                    let one = |i: usize| if i / 128 == i % 128 { [0x80, 0x3F] } else { [0, 0] };
                    let id = (0..128 * 128).flat_map(one).collect();
                    given.insert("x".to_owned(), bits("x", U16, &[128, 128], id).1);
                }
                if stem.starts_with("sparse_") {
                    given.insert("t".to_owned(), bits("t", U16, &[128, 32], vec![0; 128 * 64]).1);
                }
                let executors =
                    if weight_cache { &[Executor::Bundles, Executor::Ir][..] } else { &[Executor::Bundles] };
                for &executor in executors {
                    let run = run_module(&v, &lowered, executor, &Options::default(), 3, &given, &mut ())
                        .unwrap_or_else(|e| panic!("{stem} {name}: {e}"));
                    assert_eq!(run.machines.len(), 1);
                    let run0: &hadal_sim::ModuleRun = first.get_or_insert(run.clone());
                    assert_eq!(run0.first_difference(&run), None, "{stem} {name} {executor:?}");
                }
                ran += 1;
            }
        }
    }
    assert!(ran >= 58, "{ran}");
}
