//! The cost model against its closed formulas, and the golden programs through both executors.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::fs;

use hadal_ir::encode::lower;
use hadal_ir::json;
use hadal_ir::program::{Engine, Instr, Module, Op, Program};
use hadal_ir::verify::{LowerOptions, verify};
use hadal_isa::{PerfMode, Target};
use hadal_num::Dtype;
use hadal_sim::bind::ArrayDtype::U16;
use hadal_sim::cost::{self, Cost, Kind};
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

/// What each bundle waits for, by hand: `(kind, start, busy, cycles)`.
fn spans(c: &Cost) -> Vec<(Kind, u64, u64, u64)> {
    c.steps.iter().map(|s| (s.kind, s.start, s.busy, s.cycles)).collect()
}

#[test]
fn a_load_runs_beside_the_matmul_before_it() {
    let (x, w) = ((0, Dtype::Bfloat16), (1, Dtype::Bfloat16));
    // Two tiles of 128 columns, moving columns of the first as given.
    let two = |n: u64| {
        let mm = |at: u64, n| {
            let mut weights = ap(w.0, w.1, &[(1, 128), (1, 128)]);
            weights.offset = at * 256;
            Op::Matmult(Box::new(matmult(
                ap(x.0, x.1, &[(1, 128), (1, n)]),
                weights,
                ap(2 + at as u32, Dtype::Float32, &[(1, 128), (1, n)]),
            )))
        };
        let locs = vec![
            sb("x", 0, 128, 0, 1024),
            sb("w", 0, 128, 8192, 512),
            psum("a", 0, 128, 0, 0, 2048),
            psum("b", 0, 128, 1, 0, 2048),
        ];
        estimate(program(locs, vec![mm(0, n), mm(1, 512)]), Target::TRN2)
    };
    use Kind::{Load, Matmul};
    // Hidden: the second load of 32 runs while the first matmul of 512 does.
    let c = two(512);
    let want = [(Load, 0, 32, 32), (Matmul, 32, 512, 512), (Load, 32, 32, 0), (Matmul, 544, 512, 512)];
    assert_eq!((spans(&c), c.cycles), (want.to_vec(), 32 + 512 + 512));
    assert_eq!((c.load_cycles, c.matmul_cycles), (32, 1024));
    // The shortest matmul of 128 columns takes 64, and still hides it.
    assert_eq!(two(1).cycles, 32 + 64 + 512);
    // Of 16 columns it takes 16, and half of a load of 32 shows.
    let m = |at: u64, columns: u64| {
        let mut weights = ap(w.0, w.1, &[(1, 128), (1, columns)]);
        weights.offset = at * 256;
        let mut out = ap(2 + at as u32, Dtype::Float32, &[(1, columns), (1, 4)]);
        out.offset = 0;
        Op::Matmult(Box::new(matmult(ap(x.0, x.1, &[(1, 128), (1, 4)]), weights, out)))
    };
    let locs = vec![
        sb("x", 0, 128, 0, 8),
        sb("w", 0, 128, 8192, 512),
        psum("a", 0, 16, 0, 0, 16),
        psum("b", 0, 128, 1, 0, 16),
    ];
    let c = estimate(program(locs, vec![m(0, 16), m(1, 128)]), Target::TRN2);
    let want = [(Load, 0, 4, 4), (Matmul, 4, 16, 16), (Load, 4, 32, 16), (Matmul, 36, 64, 64)];
    assert_eq!((spans(&c), c.cycles), (want.to_vec(), 4 + 16 + 16 + 64));
}

/// Loads in a row share the matmul before them: a sparse product loads tags and weights.
#[test]
fn loads_in_a_row_share_what_hides_them() {
    let path = data("programs/sparse_4.bir.json");
    let mut module = json::parse(&fs::read_to_string(path).unwrap(), "sparse_4").unwrap();
    let once = module.cores[0].instrs.clone();
    module.cores[0].instrs.extend(once.into_iter().map(|i| Instr { name: format!("{}_again", i.name), ..i }));
    let v = verify(module, LowerOptions { weight_cache: false, ..LowerOptions::new(Target::TRN2) }).unwrap();
    let c = cost::estimate(&lower(&v).unwrap(), 0, v.core(0));
    let kinds: Vec<Kind> = c.steps.iter().map(|s| s.kind).collect();
    use Kind::{Load, Matmul};
    assert_eq!(kinds, [Load, Load, Matmul, Load, Load, Matmul]);
    let [tags, weights, _, tags2, weights2, _] = c.steps[..] else { panic!("six steps") };
    assert_eq!((tags.cycles, weights.cycles, tags2.cycles, weights2.cycles), (32, 32, 0, 0));
    assert_eq!((tags2.start, weights2.start), (64, 96));
}

#[test]
fn the_passes_of_a_float32_matmul_share_its_work() {
    let c = estimate(matmul(Dtype::Float32, [128, 128, 512], plain), Target::TRN2);
    let macs: Vec<u64> = c.steps.iter().map(|s| s.macs).collect();
    let half = 128 * 128 * 512 / 2;
    assert_eq!(macs, [0, half, 0, half]);
    // A quarter of the array's rate at any time.
    assert_eq!(c.steps[1].utilization(), 0.25);
    assert_eq!(c.steps[3].utilization(), 0.25);
}

#[test]
fn utilization_over_time() {
    let c = estimate(matmul(Dtype::Bfloat16, [128, 128, 512], plain), Target::TRN2);
    // 544 cycles in 17 stretches of 32: the load, then a full array.
    let s = c.over_time(17);
    assert_eq!(s.len(), 17);
    assert_eq!((s[0].start, s[0].end, s[0].utilization, s[0].multiplying), (0, 32, 0.0, 0.0));
    for x in &s[1..] {
        assert!((x.utilization - 1.0).abs() < 1e-12 && (x.multiplying - 1.0).abs() < 1e-12, "{x:?}");
    }
    // Half the rows and a quarter of the columns: an eighth, while multiplying all the time.
    let c = estimate(matmul(Dtype::Bfloat16, [64, 32, 512], plain), Target::TRN2);
    let last = c.over_time(4)[3];
    assert!((last.utilization - 0.125).abs() < 1e-12 && (last.multiplying - 1.0).abs() < 1e-12);
    assert_eq!(c.steps[1].tile.unwrap().to_string(), "rows 0..64, columns 0..32");
    // Never more stretches than cycles, and none of no time.
    assert_eq!(c.over_time(100_000).len() as u64, c.cycles);
    assert!(c.over_time(0).is_empty());
}

#[test]
fn lanes_are_tile_groups() {
    let c = estimate(matmul(Dtype::Float32, [64, 32, 512], plain), Target::TRN2);
    // Two passes: 8 + 1024, and the second load hidden.
    let lanes = c.lanes(100);
    let shape: Vec<_> = lanes.iter().map(|l| (l.loads, l.tile.unwrap().to_string(), l.spans.len())).collect();
    let tile = "rows 0..64, columns 0..32".to_owned();
    assert_eq!(shape, [(true, tile.clone(), 2), (false, tile, 2)]);
    let times: Vec<_> = lanes.iter().flat_map(|l| &l.spans).map(|s| (s.start, s.end, s.cycles)).collect();
    assert_eq!(times, [(0, 8, 8), (8, 16, 0), (8, 1032, 1024), (1032, 2056, 1024)]);
    // Half the rows, a quarter of the columns, a quarter of the rate.
    assert!((lanes[1].spans[0].utilization - 1.0 / 32.0).abs() < 1e-12);
    // Four steps in at most two spans: each lane's are drawn together.
    let few: Vec<_> = c.lanes(2).iter().map(|l| (l.spans.len(), l.spans[0].steps, l.spans[0].busy)).collect();
    assert_eq!(few, [(1, 2, 16), (1, 2, 2048)]);
    assert_eq!(c.beginnings(1), [8]);
}

/// Above level 40 a matmul does not say which tile it uses: it is the last load's.
#[test]
fn a_matmul_without_groups_takes_the_last_load() {
    let target = Target { generation: hadal_isa::Gen::Gen4, level: 45 };
    let c = estimate(matmul(Dtype::Bfloat16, [64, 32, 512], plain), target);
    let tiles: Vec<_> = c.steps.iter().map(|s| s.tile.unwrap().to_string()).collect();
    assert_eq!(tiles, ["rows 0..64, columns 0..32", "rows 0..64, columns 0..32"]);
}

/// What has no bundle takes no time, and begins where the array has come to.
#[test]
fn instructions_have_a_beginning() {
    let f = Dtype::Bfloat16;
    let mut p = matmul(f, [128, 128, 512], plain);
    let matmul = p.instrs.remove(0);
    let memset =
        Op::Memset { dst: ap(0, f, &[(1, 128), (1, 512)]), value: hadal_ir::program::Immediate::Int(0) };
    let out = ap(2, Dtype::Float32, &[(1, 128), (1, 512)]);
    let copy = Op::TensorCopy { dst: ap(3, Dtype::Float32, &[(1, 128), (1, 512)]), src: out };
    let named = |name: &str, op: Op| {
        let engine = if matches!(op, Op::Matmult(_)) { matmul.engine } else { Engine::Dve };
        Instr { name: name.into(), op, engine, ..matmul.clone() }
    };
    p.locs.push(sb("t", 0, 128, 16384, 2048));
    let again = named("again", matmul.op.clone());
    p.instrs = vec![
        named("memset", memset),
        matmul.clone(),
        named("copy", copy.clone()),
        again,
        named("copy2", copy),
    ];
    let c = estimate(p, Target::TRN2);
    // The second matmul finds its tile in the array.
    assert_eq!((c.steps.len(), c.cycles), (3, 32 + 512 + 512));
    assert_eq!(c.beginnings(5), [0, 32, 544, 544, 1056]);
}

/// For every golden program: nothing of a kind overlaps, all ends with the program, and the stretches hold
/// what the whole does.
#[test]
fn placement_fills_the_program() {
    let mut seen = 0;
    for entry in fs::read_dir(data("programs")).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !file.ends_with(".bir.json") {
            continue;
        }
        let module = json::parse(&fs::read_to_string(&path).unwrap(), &file).unwrap();
        for target in Target::ALL {
            let Ok(v) = verify(module.clone(), LowerOptions::new(target)) else { continue };
            let c = cost::estimate(&lower(&v).unwrap(), 0, v.core(0));
            for load in [true, false] {
                let lane = c.steps.iter().filter(|s| s.busy > 0 && (s.kind == Kind::Load) == load);
                lane.fold(0, |end, s| {
                    assert!(s.start >= end, "{file} {target}: {s:?}");
                    s.end()
                });
            }
            assert_eq!(c.steps.iter().map(|s| s.end()).max().unwrap_or(0), c.cycles, "{file} {target}");
            assert_eq!(c.load_cycles + c.matmul_cycles, c.cycles);
            for count in [1, 7, 64] {
                let whole: f64 =
                    c.over_time(count).iter().map(|s| s.utilization * (s.end - s.start) as f64).sum();
                assert!((whole - c.pe_utilization * c.cycles as f64).abs() < 1e-6, "{file} {target}");
            }
            seen += 1;
        }
    }
    assert!(seen >= 30, "{seen}");
}

/// The guide lists every formula with its source and confidence.
#[test]
fn the_guide_lists_every_formula() {
    let guide = fs::read_to_string(data("../../docs/cost.md")).unwrap();
    for f in cost::FORMULAS {
        let row = format!("| {} | {} | {} | {} |", f.name, f.formula, f.confidence, f.source);
        assert!(guide.contains(&row), "docs/cost.md lacks:\n{row}");
    }
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
