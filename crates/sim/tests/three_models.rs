//! Programs from seeds through three models: the instruction executor, the bundle executor with and without the
//! weight cache, and the naive model of `support/naive.rs`. Every byte of SBUF, PSUM and DRAM agrees, and so
//! does which bytes were written.
//!
//! `HADAL_PROGRAMS=20000` runs that many programs; about a second's worth otherwise.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;

use hadal_ir::encode::lower;
use hadal_ir::program::{Module, Op, Program, Space};
use hadal_ir::verify::{LowerOptions, Verified, verify};
use hadal_isa::Target;
use hadal_sim::{Machine, bind, bundle_exec, ir_exec};
use support::generate::{Case, case};
use support::naive::Naive;

/// What the programs of a run contained.
#[derive(Debug, Default)]
struct Tally {
    programs: usize,
    ended: usize,
    stopped: usize,
    elided: usize,
    ops: BTreeMap<&'static str, usize>,
    features: BTreeMap<&'static str, usize>,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.programs += other.programs;
        self.ended += other.ended;
        self.stopped += other.stopped;
        self.elided += other.elided;
        other.ops.into_iter().for_each(|(k, n)| *self.ops.entry(k).or_insert(0) += n);
        other.features.into_iter().for_each(|(k, n)| *self.features.entry(k).or_insert(0) += n);
    }
}

/// The case with the instructions left out that a rule refuses.
fn accepted(mut case: Case) -> Option<(Case, Verified)> {
    for _ in 0..8 {
        let module = Module { name: "generated".into(), cores: vec![case.program.clone()], notes: vec![] };
        let broken = match verify(module, LowerOptions::new(case.target)) {
            Ok(v) => return Some((case, v)),
            Err(broken) => broken,
        };
        // The parts of a split matmul are named after it.
        let names: Vec<&str> = broken.iter().map(|v| v.subject.split('.').next().unwrap()).collect();
        let before = case.program.instrs.len();
        case.program.instrs.retain(|i| !names.contains(&i.name.as_str()));
        assert!(case.program.instrs.len() < before, "{broken:?}");
    }
    None
}

fn features(p: &Program, tally: &mut Tally) {
    let mut count = |name, yes: bool| *tally.features.entry(name).or_insert(0) += usize::from(yes);
    let locs = |op: &Op| op.operands().iter().map(|o| o.2.clone()).collect::<Vec<_>>();
    for i in &p.instrs {
        let aps = locs(&i.op);
        if i.op.is_matmul() {
            count("negative step", aps.iter().any(|a| a.pattern.iter().any(|p| p.step < 0 && p.num > 1)));
            count(
                "several dimensions",
                aps.iter().any(|a| a.free().iter().filter(|p| p.num > 1).count() > 1),
            );
            count("zero step", aps.iter().any(|a| a.pattern.iter().any(|p| p.step == 0 && p.num > 1)));
            count("bfloat16 PSUM", aps.last().is_some_and(|a| a.dtype.bytes() == 2));
        }
        if let Op::Matmult(m) = &i.op {
            count("transpose", m.is_transpose);
            count("row pair", m.perf_mode.scale() == 2);
            count("interleaved", m.perf_mode == hadal_isa::PerfMode::DoubleRowSwInterleave);
            count("zero point", m.zero_point_weights.is_some() || m.zero_point_ifmap.is_some());
            count("explicit", matches!(m.calc, hadal_ir::program::Calc::Explicit(_)));
            count("gathered weights", m.weights.index.is_some());
            count("gathered ifmap", m.ifmap.index.is_some());
            count("tile given", m.tile_size.is_some());
            count("banks cleared", m.psum_zero_region.is_some_and(|r| r > 0));
        }
    }
}

fn agree(seed: u64, tally: &mut Tally) {
    let Some((case, verified)) = accepted(case(seed)) else { return };
    let Case { program, target, options } = &case;
    let uncached = LowerOptions { weight_cache: false, ..LowerOptions::new(*target) };
    let module = Module { name: "generated".into(), cores: vec![program.clone()], notes: vec![] };
    let slow = verify(module, uncached).unwrap();
    let after = verified.core(0).unwrap();
    let mut start = Machine::new(*target);
    bind::fill(&mut start, after, seed, &BTreeMap::new()).unwrap();

    let mut naive = Naive::new(&start, after, *target, *options);
    let expected = naive.run(program);
    let check =
        |what: &str, result: Result<_, hadal_sim::ExecError>, machine: &Machine| match (&expected, result) {
            (Ok(()), Ok(_)) => {
                let d = naive.difference(machine);
                assert!(d.is_none(), "seed {seed}, {target}, {what}: {}\n{program:#?}", d.unwrap());
            }
            (Err(_), Err(_)) => {}
            (model, result) => {
                panic!("seed {seed}, {target}, {what}: {result:?}, the model {model:?}\n{program:#?}")
            }
        };
    let mut m = replica(&start, after, *target);
    let result = ir_exec::run(after, *target, &mut m, options, &mut ());
    check("instructions", result, &m);
    let lowered = lower(&verified).unwrap();
    let mut m = replica(&start, after, *target);
    let result = bundle_exec::run(&lowered.cores[0], Some(after), *target, &mut m, options, &mut ());
    check("bundles", result, &m);
    let mut m = start;
    let stream = &lower(&slow).unwrap().cores[0];
    let result = bundle_exec::run(stream, slow.core(0), *target, &mut m, options, &mut ());
    check("bundles without the weight cache", result, &m);

    tally.programs += 1;
    *(if expected.is_ok() { &mut tally.ended } else { &mut tally.stopped }) += 1;
    tally.elided += lowered.cores[0].loads_elided;
    if expected.is_ok() {
        program.instrs.iter().for_each(|i| *tally.ops.entry(i.op.name()).or_insert(0) += 1);
        features(program, tally);
    }
}

/// The same memory again; much faster than a clone, as little of it is used.
fn replica(start: &Machine, program: &Program, target: Target) -> Machine {
    let mut m = Machine::new(target);
    m.dram = start.dram.clone();
    for loc in program.locs.iter().filter(|l| l.space() != Space::Dram) {
        let (first, at) = (loc.partition().unwrap() as usize, loc.byte_offset().unwrap() as usize);
        let sb = loc.space() == Space::Sb;
        let (from, to) = if sb { (&start.sbuf, &mut m.sbuf) } else { (&start.psum, &mut m.psum) };
        // An input is filled whole, anything else not at all.
        for p in (first..first + loc.partitions() as usize).filter(|p| from.is_written(*p, at)) {
            to.put(p, at, from.get(p, at, loc.bytes() as usize).unwrap());
        }
    }
    m
}

#[test]
fn three_models_agree() {
    let wanted = std::env::var("HADAL_PROGRAMS").ok().and_then(|n| n.parse::<u64>().ok());
    let count = wanted.unwrap_or(40);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let share = |first| {
            let mut part = Tally::default();
            (first..count).step_by(threads as usize).for_each(|seed| agree(seed, &mut part));
            part
        };
        let running: Vec<_> = (0..threads).map(|first| scope.spawn(move || share(first))).collect();
        running.into_iter().for_each(|t| tally.add(t.join().unwrap_or_else(|_| panic!("see above"))));
    });
    println!("{tally:#?}");
    if count < 40 {
        return;
    }
    // The programs hold what they are meant to hold.
    assert!(tally.programs as u64 * 10 >= count * 9, "{tally:?}");
    assert!(tally.ended * 10 >= tally.programs * 7 && tally.stopped > 0, "{tally:?}");
    assert!(tally.elided as u64 * 4 > count, "{tally:?}");
    for op in ["Matmult", "MatmultSparse", "MatmultMx", "QuantizeMx", "DmaCopy", "TensorCopy", "Memset"] {
        assert!(tally.ops.get(op).is_some_and(|n| *n > 0), "{op}: {tally:?}");
    }
    // The rare kinds show in longer runs.
    assert!(count < 200 || tally.features.values().all(|n| *n >= 3), "{tally:?}");
}
