//! A product as a list of segments, each a verified program that many of them share.

use std::collections::BTreeMap;

use hadal_ir::encode::{Lowered, lower};
use hadal_ir::program::Module;
use hadal_ir::verify::{Verified, verify};
use hadal_isa::{Inst, decode};
use hadal_sim::cost;

use crate::problem::{Problem, Side};
use crate::tile::{Blocking, SLICE_LIMIT};
use crate::{GemmError, program, tile};

/// A planned product.
#[derive(Debug)]
pub struct Plan {
    problem: Problem,
    blocking: Blocking,
    units: Vec<Unit>,
    segments: Vec<Segment>,
}

/// A segment's program, verified and lowered once for all segments of its shape.
#[derive(Debug)]
pub(crate) struct Unit {
    /// The segment as a problem of its own.
    pub(crate) problem: Problem,
    pub(crate) verified: Verified,
    pub(crate) lowered: Lowered,
    estimate: Estimate,
    /// Segments of this shape.
    count: u64,
}

/// One piece of the result: a whole contraction for a rectangle of C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// First row of C.
    pub row: usize,
    /// Rows.
    pub rows: usize,
    /// First column of C.
    pub column: usize,
    /// Columns.
    pub columns: usize,
    /// Which of the plan's programs computes it.
    pub(crate) unit: usize,
}

/// What the cost model says about a product. Every figure is an estimate from public figures.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Estimate {
    /// Cycles of the array.
    pub cycles: u64,
    /// Of these, loads that no matmul hides.
    pub load_cycles: u64,
    /// Time in microseconds.
    pub microseconds: f64,
    /// Multiply-adds of the product, without what is filled up, over cycles x 128 x 128 x packing.
    pub pe_utilization: f64,
    /// Bundles.
    pub bundles: u64,
    /// Loads of stationary tiles among them.
    pub loads: u64,
    /// Matmuls among them; float32 takes two for each.
    pub matmuls: u64,
    /// Loads that the weight cache made unnecessary.
    pub loads_elided: u64,
}

impl Estimate {
    fn of(lowered: &Lowered, verified: &Verified) -> Estimate {
        let c = cost::estimate(lowered, 0, verified.core(0));
        let mut out = Estimate { cycles: c.cycles, load_cycles: c.load_cycles, ..Estimate::default() };
        for stream in &lowered.cores {
            out.loads_elided += stream.loads_elided as u64;
            for b in stream.bundles() {
                out.bundles += 1;
                match decode(&b.word, lowered.target).inst {
                    Inst::LoadStationary(_) | Inst::LdWeightMx(_) => out.loads += 1,
                    Inst::Matmul(_) | Inst::MatmultMx(_) => out.matmuls += 1,
                    _ => {}
                }
            }
        }
        out
    }

    /// `count` more of another estimate.
    fn add(&mut self, other: &Estimate, count: u64) {
        self.cycles += count * other.cycles;
        self.load_cycles += count * other.load_cycles;
        self.bundles += count * other.bundles;
        self.loads += count * other.loads;
        self.matmuls += count * other.matmuls;
        self.loads_elided += count * other.loads_elided;
    }
}

/// Cells of the array.
const CELLS: f64 = 128.0 * 128.0;

impl Plan {
    /// Plans a product: chooses the segments, and verifies and lowers their programs.
    ///
    /// # Errors
    /// [`GemmError`] for an empty or enormous extent, a format that the target lacks, or a program that breaks a
    /// rule, which would be a defect of the planner.
    pub fn new(problem: Problem) -> Result<Plan, GemmError> {
        problem.check()?;
        let blocking = Blocking::choose(&problem);
        if blocking.slice_bytes(&problem) > SLICE_LIMIT {
            let Problem { m, n, k, .. } = problem;
            return Err(GemmError::Extent { m, n, k, why: "too long for the memory of one segment" });
        }
        let stationary = problem.stationary_side();
        let (s_end, v_end) = (problem.columns(stationary), problem.columns(problem.moving_side()));
        let mut known: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let (mut units, mut segments): (Vec<Unit>, Vec<Segment>) = (Vec::new(), Vec::new());
        for v in (0..v_end).step_by(blocking.moving) {
            for s in (0..s_end).step_by(blocking.stationary) {
                let (s_len, v_len) = (blocking.stationary.min(s_end - s), blocking.moving.min(v_end - v));
                let unit = match known.get(&(s_len, v_len)) {
                    Some(unit) => *unit,
                    None => {
                        units.push(Unit::new(&problem, &blocking, s_len, v_len)?);
                        known.insert((s_len, v_len), units.len() - 1);
                        units.len() - 1
                    }
                };
                if let Some(u) = units.get_mut(unit) {
                    u.count += 1;
                }
                segments.push(match stationary {
                    Side::A => Segment { row: s, rows: s_len, column: v, columns: v_len, unit },
                    Side::B => Segment { row: v, rows: v_len, column: s, columns: s_len, unit },
                });
            }
        }
        Ok(Plan { problem, blocking, units, segments })
    }

    /// What was planned.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Extents of the pieces.
    pub fn blocking(&self) -> &Blocking {
        &self.blocking
    }

    /// The segments, in the order they run: those that share moving columns follow each other.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Distinct programs: one for each shape a segment has.
    pub fn programs(&self) -> usize {
        self.units.len()
    }

    pub(crate) fn unit(&self, segment: &Segment) -> Option<&Unit> {
        self.units.get(segment.unit)
    }

    /// Steps of all segments.
    pub(crate) fn steps(&self) -> u64 {
        self.units.iter().map(|u| u.count * u.steps()).sum()
    }

    /// The cost of the product: the sum over its segments, each beginning with a load that nothing hides.
    pub fn estimate(&self) -> Estimate {
        let mut all = Estimate::default();
        self.units.iter().for_each(|u| all.add(&u.estimate, u.count));
        all.microseconds = all.cycles as f64 / cost::clock(self.problem.lower.target.generation) * 1e6;
        let p = &self.problem;
        let depth: f64 = tile::k_tiles(p).iter().map(|t| t.useful_rows(p)).sum();
        let useful = depth * p.m as f64 * p.n as f64;
        all.pe_utilization = if all.cycles == 0 { 0.0 } else { useful / (all.cycles as f64 * CELLS) };
        all
    }

    /// The whole product as one program, segment after segment.
    pub fn module(&self) -> Module {
        let name = format!(
            "gemm_{}_{}x{}x{}",
            self.problem.format.name().replace('-', "_"),
            self.problem.m,
            self.problem.k,
            self.problem.n
        );
        Module { name, cores: vec![program::build(&self.problem, &self.blocking)], notes: Vec::new() }
    }
}

impl Unit {
    fn new(whole: &Problem, blocking: &Blocking, s_len: usize, v_len: usize) -> Result<Unit, GemmError> {
        let (stationary, (m, n)) = match whole.stationary_side() {
            Side::A => (crate::Stationary::A, (s_len, v_len)),
            Side::B => (crate::Stationary::B, (v_len, s_len)),
        };
        let problem = Problem { m, n, stationary, ..*whole };
        let program = program::build(&problem, blocking);
        let module = Module { name: "gemm".to_owned(), cores: vec![program], notes: Vec::new() };
        let target = whole.lower.target;
        let verified = verify(module, whole.lower).map_err(|found| GemmError::Rules { target, found })?;
        let lowered = lower(&verified)?;
        let estimate = Estimate::of(&lowered, &verified);
        Ok(Unit { problem, verified, lowered, estimate, count: 0 })
    }

    pub(crate) fn steps(&self) -> u64 {
        self.lowered.cores.iter().map(|s| s.items.len() as u64).sum()
    }
}
