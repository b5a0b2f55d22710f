//! Running a plan, segment after segment.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use hadal_num::Overflow;
use hadal_sim::{Options, Stats};

use crate::GemmError;
use crate::operand::{self, Matrix, Rounding, Tensors};
use crate::plan::{Plan, Segment};
use crate::problem::{Problem, Side};
use crate::worker::{self, Job, Workers};

/// How a plan is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunOptions {
    /// Numerics of the device: float32 passes, block scale rule.
    pub sim: Options,
    /// What becomes of values beyond the largest of a format without block scales.
    pub overflow: Overflow,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions { sim: Options::default(), overflow: Overflow::Ieee }
    }
}

impl RunOptions {
    fn rounding(&self) -> Rounding {
        Rounding { overflow: self.overflow, rule: self.sim.mx_rule }
    }
}

/// A piece of the result.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Where it lies.
    pub segment: Segment,
    /// Its float32, little-endian, row-major.
    pub bytes: Vec<u8>,
}

/// A plan while it runs.
///
/// A few segments run at a time, each on a machine of its own; their blocks come in the plan's order. What a block
/// holds does not depend on how many run.
pub struct Runner<'a> {
    plan: &'a Plan,
    a: &'a dyn Matrix,
    b: &'a dyn Matrix,
    options: RunOptions,
    next: usize,
    workers: Workers,
    ready: VecDeque<Block>,
    /// Columns of the moving operand, and what they are in the program's tensors.
    moving: Option<(Range<usize>, Arc<Tensors>)>,
    stats: Stats,
    done: AtomicU64,
}

impl Plan {
    /// Begins a run.
    ///
    /// # Errors
    /// [`GemmError::Shape`] for operands of another shape than the plan's, [`GemmError::Threads`] when the system
    /// gives no threads.
    pub fn run<'a>(
        &'a self,
        a: &'a dyn Matrix,
        b: &'a dyn Matrix,
        options: RunOptions,
    ) -> Result<Runner<'a>, GemmError> {
        check_shapes(self.problem(), a, b)?;
        Ok(Runner {
            plan: self,
            a,
            b,
            options,
            next: 0,
            workers: Workers::new(self.segments().len())?,
            ready: VecDeque::new(),
            moving: None,
            stats: Stats::default(),
            done: AtomicU64::new(0),
        })
    }

    /// An operand's tensors for the program of the whole product ([`Plan::module`]).
    ///
    /// # Errors
    /// [`GemmError::Shape`] for a matrix of another shape, [`GemmError::Read`] when it cannot be read.
    pub fn tensors(
        &self,
        side: Side,
        matrix: &dyn Matrix,
        options: &RunOptions,
    ) -> Result<Tensors, GemmError> {
        let p = self.problem();
        let (want, columns) = match side {
            Side::A => ([p.m, p.k], p.m),
            Side::B => ([p.k, p.n], p.n),
        };
        check_shape(side, matrix.shape(), want)?;
        operand::tensors(p, side, matrix, 0..columns, options.rounding())
    }
}

fn check_shape(side: Side, got: [usize; 2], want: [usize; 2]) -> Result<(), GemmError> {
    if got == want { Ok(()) } else { Err(GemmError::Shape { what: side.name(), got, want }) }
}

fn check_shapes(p: &Problem, a: &dyn Matrix, b: &dyn Matrix) -> Result<(), GemmError> {
    check_shape(Side::A, a.shape(), [p.m, p.k])?;
    check_shape(Side::B, b.shape(), [p.k, p.n])
}

/// The columns of an operand's tensors that a segment uses.
fn columns(segment: &Segment, side: Side) -> Range<usize> {
    match side {
        Side::A => segment.row..segment.row + segment.rows,
        Side::B => segment.column..segment.column + segment.columns,
    }
}

impl Runner<'_> {
    /// The next block of the result; `None` when there is none left. `progress` is called now and then with the
    /// steps done and the steps in all.
    ///
    /// # Errors
    /// [`GemmError`] when an operand cannot be read or the program stops.
    pub fn next_block(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<Option<Block>, GemmError> {
        if self.ready.is_empty() {
            self.batch(progress)?;
        }
        Ok(self.ready.pop_front())
    }

    /// Runs as many segments as there are workers.
    fn batch(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<(), GemmError> {
        let (plan, rounding) = (self.plan, self.options.rounding());
        let problem = plan.problem();
        let (stationary, moving) = (problem.stationary_side(), problem.moving_side());
        let matrix = |side: Side| match side {
            Side::A => self.a,
            Side::B => self.b,
        };
        let mut jobs = Vec::new();
        for segment in plan.segments().iter().skip(self.next).take(self.workers.count()) {
            let Some(unit) = plan.unit(segment) else { break };
            let place = columns(segment, moving);
            let shared = match &self.moving {
                Some((range, tensors)) if *range == place => Arc::clone(tensors),
                _ => {
                    let tensors = operand::tensors(problem, moving, matrix(moving), place.clone(), rounding)?;
                    Arc::clone(&self.moving.insert((place.clone(), Arc::new(tensors))).1)
                }
            };
            let own = columns(segment, stationary);
            let own = operand::tensors(problem, stationary, matrix(stationary), own, rounding)?;
            jobs.push(Job { segment, unit, moving: shared, moving_columns: place, stationary: own });
        }
        self.next += jobs.len();
        let all = plan.steps();
        let mut report = |done: u64| progress(done, all);
        let blocks = worker::run(&mut self.workers, &jobs, &self.options.sim, &self.done, &mut report)?;
        for (block, stats) in blocks {
            self.stats.add(&stats);
            self.ready.push_back(block);
        }
        Ok(())
    }

    /// Counts of the run so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }
}
