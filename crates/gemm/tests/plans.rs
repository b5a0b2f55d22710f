//! What a plan promises before anything runs: one program for many segments, its cost, and the whole as one program.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use hadal_gemm::{Dense, Format, Plan, Problem, RunOptions, Side, Stationary, Weights};
use hadal_ir::encode::lower;
use hadal_ir::json;
use hadal_ir::verify::{LowerOptions, verify};
use hadal_isa::Target;
use hadal_sim::bind::{Array, ArrayDtype};
use hadal_sim::{Executor, Options, run_module};

fn problem(shape: [usize; 3], format: Format, target: Target) -> Problem {
    Problem::new(shape, format, LowerOptions::new(target))
}

#[test]
fn large_products_share_few_programs() {
    let plan = Plan::new(problem([4096; 3], Format::Bf16, Target::TRN2)).unwrap();
    assert_eq!(plan.programs(), 1);
    assert!(plan.segments().len() >= 8);
    // A tail in each direction: four shapes.
    let plan = Plan::new(problem([4100, 300, 4100], Format::Bf16, Target::TRN2)).unwrap();
    assert_eq!(plan.programs(), 4);
    // Segments cover the result once.
    let mut area = 0;
    for (i, s) in plan.segments().iter().enumerate() {
        area += s.rows * s.columns;
        for other in &plan.segments()[i + 1..] {
            let apart = s.row + s.rows <= other.row
                || other.row + other.rows <= s.row
                || s.column + s.columns <= other.column
                || other.column + other.columns <= s.column;
            assert!(apart, "{s:?} {other:?}");
        }
    }
    assert_eq!(area, 4100 * 4100);
}

#[test]
fn a_large_product_keeps_the_array_busy() {
    // 4096^3 multiply-adds over 128 x 128 cells, twice the rows in FP8 pairs, four times in MX.
    let ideal = 4096f64.powi(3) / (128.0 * 128.0);
    for (format, target, packing) in [
        (Format::Bf16, Target::TRN1, 1.0),
        (Format::Bf16, Target::TRN2, 1.0),
        (Format::Fp32r, Target::TRN2, 1.0),
        (Format::E4m3, Target::TRN2, 2.0),
        (Format::Mxfp8E4m3fn, Target::TRN3, 4.0),
        (Format::Mxfp4, Target::TRN3, 4.0),
    ] {
        let e = Plan::new(problem([4096; 3], format, target)).unwrap().estimate();
        assert!(e.pe_utilization > 0.95, "{format} on {target}: {e:?}");
        let busy = ideal / packing / e.cycles as f64;
        assert!((busy - e.pe_utilization).abs() < 1e-9, "{format} on {target}: {busy} {e:?}");
    }
    // float32 takes four cycles a column.
    let e = Plan::new(problem([4096; 3], Format::Fp32, Target::TRN2)).unwrap().estimate();
    assert!((0.2375..=0.25).contains(&e.pe_utilization), "{e:?}");
}

#[test]
fn what_is_filled_up_is_no_use() {
    for (shape, format, target, rows) in [
        // 8 of 512 indices of an MX pass: 2 rows of cells that hold four.
        ([128, 8, 512], Format::Mxfp4, Target::TRN3, 2.0),
        ([33, 33, 33], Format::Mxfp8E5m2, Target::TRN3, 33.0 / 4.0),
        // 129 indices in pairs: 65 rows, of which the last is half filled.
        ([128, 129, 512], Format::E5m2, Target::TRN2, 64.5),
        // 256 in pairs and 44 that are not.
        ([128, 300, 512], Format::E5m2, Target::TRN2, 172.0),
        ([128, 129, 512], Format::Bf16, Target::TRN2, 129.0),
    ] {
        let e = Plan::new(problem(shape, format, target)).unwrap().estimate();
        let want = rows * (shape[0] * shape[2]) as f64 / (e.cycles as f64 * 128.0 * 128.0);
        assert!((e.pe_utilization - want).abs() < 1e-12, "{shape:?} {format}: {want} {e:?}");
    }
}

#[test]
fn loads_are_reused() {
    // Four banks a load: three of four loads are not needed.
    let e = Plan::new(problem([1024, 1024, 2048], Format::Bf16, Target::TRN2)).unwrap().estimate();
    assert_eq!((e.matmuls, e.loads, e.loads_elided), (8 * 8 * 4, 8 * 8, 8 * 8 * 3));
    let mut without = problem([1024, 1024, 2048], Format::Bf16, Target::TRN2);
    without.lower.weight_cache = false;
    let all = Plan::new(without).unwrap().estimate();
    assert_eq!((all.loads, all.loads_elided, all.cycles), (8 * 8 * 4, 0, e.cycles));
}

#[test]
fn the_stationary_operand_is_the_cheaper_one() {
    // A row times a matrix: streaming the matrix takes 8 x 512 cycles a pass, holding it 32 x 64.
    let p = problem([1, 128, 4096], Format::Bf16, Target::TRN2);
    assert_eq!(p.stationary_side(), Side::B);
    let cycles = |stationary| Plan::new(Problem { stationary, ..p }).unwrap().estimate().cycles;
    assert_eq!(cycles(Stationary::Auto), cycles(Stationary::B));
    assert!(cycles(Stationary::B) < cycles(Stationary::A));
    assert_eq!(problem([4096, 128, 1], Format::Bf16, Target::TRN2).stationary_side(), Side::A);
    assert_eq!(problem([4096; 3], Format::Bf16, Target::TRN2).stationary_side(), Side::A);
}

/// The whole product as one program, through its JSON form and `run_module`.
fn as_one_program(plan: &Plan, given: &BTreeMap<String, Array>, executor: Executor) -> Vec<u8> {
    let text = json::write(&plan.module());
    let module = json::parse(&text, "gemm.bir.json").unwrap();
    let verified = verify(module, plan.problem().lower).unwrap();
    let lowered = lower(&verified).unwrap();
    let options = Options::default();
    let run = run_module(&verified, &lowered, executor, &options, 0, given, &mut ()).unwrap();
    run.dump(verified.module(), 0, "out").unwrap().data
}

#[test]
fn the_emitted_program_gives_the_same_bits() {
    let values = |count: usize, seed: u32| -> Vec<f32> {
        (0..count as u32)
            .map(|i| ((i ^ seed).wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 24) as f32 - 0.5)
            .collect()
    };
    for (shape, format, target, stationary, weights) in [
        ([600, 70, 2100], Format::Bf16, Target::TRN1, Stationary::A, Weights::Offline),
        ([3, 300, 1100], Format::Fp32, Target::TRN2, Stationary::Auto, Weights::Offline),
        ([130, 389, 520], Format::E5m2, Target::TRN2, Stationary::B, Weights::Offline),
        ([601, 70, 2100], Format::Mxfp8E4m3fn, Target::TRN3, Stationary::A, Weights::Offline),
        ([601, 700, 21], Format::Mxfp8E5m2, Target::TRN3, Stationary::A, Weights::Device),
        ([77, 1100, 601], Format::Mxfp4, Target::TRN3, Stationary::B, Weights::Offline),
    ] {
        let [m, k, n] = shape;
        let plan = Plan::new(Problem { stationary, weights, ..problem(shape, format, target) }).unwrap();
        let (a, b) = (values(m * k, 3), values(k * n, 4));
        let (left, right) = (Dense::new([m, k], &a).unwrap(), Dense::new([k, n], &b).unwrap());
        let options = RunOptions::default();
        let mut runner = plan.run(&left, &right, options).unwrap();
        let mut want = vec![0; m * n * 4];
        while let Some(block) = runner.next_block(&mut |_, _| ()).unwrap() {
            let s = block.segment;
            for (i, row) in block.bytes.chunks(s.columns * 4).enumerate() {
                let at = ((s.row + i) * n + s.column) * 4;
                want[at..at + row.len()].copy_from_slice(row);
            }
        }
        let module = plan.module();
        let mut given = BTreeMap::new();
        for (side, matrix) in [(Side::A, &left), (Side::B, &right)] {
            let tensors = plan.tensors(side, matrix, &options).unwrap();
            for (name, data) in [(side.tensor(), tensors.data), (side.scale_tensor(), tensors.scales)] {
                let program = &module.cores[0];
                let Some(id) = program.find_loc(name) else { continue };
                let dtype = hadal_sim::bind::element_type(program, id);
                let shape = hadal_sim::bind::shape_of(program.loc(id).unwrap(), dtype);
                let dtype = ArrayDtype::unsigned(dtype.bytes()).unwrap();
                given.insert(name.to_owned(), Array { dtype, shape, data });
            }
        }
        for executor in [Executor::Bundles, Executor::Ir] {
            assert!(as_one_program(&plan, &given, executor) == want, "{format} on {target}, {executor:?}");
        }
        // One element a container: the operands as they are, A transposed, are inputs too.
        if format.mx().is_none() {
            let t: Vec<f32> =
                (0..k).flat_map(|l| (0..m).map(move |i| (i, l))).map(|(i, l)| a[i * k + l]).collect();
            let given = BTreeMap::from([
                ("lhsT".to_owned(), Array::from_f32(vec![k, m], &t)),
                ("rhs".to_owned(), Array::from_f32(vec![k, n], &b)),
            ]);
            assert!(as_one_program(&plan, &given, Executor::Bundles) == want, "{format} on {target}, floats");
        }
        // Its programs cost what the whole costs, but for the first load of each segment.
        let verified = verify(plan.module(), plan.problem().lower).unwrap();
        let whole = hadal_sim::cost::estimate(&lower(&verified).unwrap(), 0, verified.core(0));
        let e = plan.estimate();
        assert!(whole.cycles <= e.cycles && e.cycles <= whole.cycles + 32 * plan.segments().len() as u64);
    }
}

#[test]
fn memory_rules_hold_without_what_a_machine_remembers() {
    // Reads of bytes that the program has not written are violations here: a machine that runs the program again
    // and again gives what a new one would.
    for target in Target::ALL {
        for format in Format::of(target.generation) {
            for shape in [[1, 1, 1], [3, 5, 7], [130, 513, 257], [129, 1301, 3]] {
                for stationary in [Stationary::A, Stationary::B] {
                    let mut p = Problem { stationary, ..problem(shape, format, target) };
                    p.lower.unwritten_reads = true;
                    Plan::new(p).unwrap_or_else(|e| panic!("{format} on {target}, {shape:?}: {e}"));
                }
            }
        }
    }
}
