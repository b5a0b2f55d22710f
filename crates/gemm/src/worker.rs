//! Segments at work: one machine each, several at a time.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use hadal_num::simd::{Level, with_level};
use hadal_sim::{Machine, Observer, Options, Stats, bundle_exec};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::GemmError;
use crate::operand::Tensors;
use crate::plan::{Segment, Unit};
use crate::problem::Side;
use crate::program::OUT;
use crate::run::Block;

/// Most segments at a time: each takes the memory of a core and its operand slices.
const MOST: usize = 8;
/// How often progress is reported while workers run.
const REPORT: Duration = Duration::from_millis(50);

/// What a segment needs.
pub(crate) struct Job<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) unit: &'a Unit,
    pub(crate) moving: Arc<Tensors>,
    pub(crate) moving_columns: Range<usize>,
    pub(crate) stationary: Tensors,
}

/// Places where segments run.
pub(crate) struct Workers {
    all: Vec<Worker>,
}

struct Worker {
    /// Threads of its own; without, those of the caller's pool.
    pool: Option<ThreadPool>,
    bench: Bench,
}

/// A machine, and what is in it.
#[derive(Default)]
struct Bench {
    machine: Option<Machine>,
    unit: usize,
    moving: Range<usize>,
}

impl Workers {
    /// Workers for that many segments, which share the threads of the current pool between them.
    pub(crate) fn new(segments: usize) -> Result<Workers, GemmError> {
        let threads = rayon::current_num_threads();
        let count = threads.min(segments).clamp(1, MOST);
        let worker = |i: usize| {
            let share = threads / count + usize::from(i < threads % count);
            let pool = ThreadPoolBuilder::new().num_threads(share);
            let pool = if count == 1 { None } else { Some(pool.build()?) };
            Ok(Worker { pool, bench: Bench::default() })
        };
        let all: Result<Vec<Worker>, rayon::ThreadPoolBuildError> = (0..count).map(worker).collect();
        let all = all.map_err(|e| GemmError::Threads { count: threads, why: e.to_string() })?;
        Ok(Workers { all })
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }
}

/// Counts steps where all workers see them.
struct Steps<'a> {
    done: &'a AtomicU64,
    /// Called with the count; only by a worker that is the caller.
    report: Option<&'a mut dyn FnMut(u64)>,
}

impl Observer for Steps<'_> {
    fn step(&mut self, _: usize, _: &str) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(report) = &mut self.report {
            report(done);
        }
    }
}

type Result1 = Result<(Block, Stats), GemmError>;

/// Runs a segment for each job, at most as many as there are workers; results in the jobs' order.
pub(crate) fn run(
    workers: &mut Workers,
    jobs: &[Job<'_>],
    options: &Options,
    done: &AtomicU64,
    report: &mut dyn FnMut(u64),
) -> Result<Vec<(Block, Stats)>, GemmError> {
    // A segment by itself takes all threads.
    if let ([job], Some(worker)) = (jobs, workers.all.first_mut()) {
        let mut steps = Steps { done, report: Some(report) };
        return Ok(vec![worker.bench.segment(job, options, &mut steps)?]);
    }
    let level = Level::active();
    std::thread::scope(|scope| {
        let (send, results) = mpsc::channel::<(usize, Result1)>();
        for (i, (job, worker)) in jobs.iter().zip(&mut workers.all).enumerate() {
            let send = send.clone();
            scope.spawn(move || {
                let Worker { pool, bench } = worker;
                let mut work =
                    || with_level(level, || bench.segment(job, options, &mut Steps { done, report: None }));
                let result = match pool {
                    Some(pool) => pool.install(work),
                    None => work(),
                };
                // The receiver outlives every worker.
                let _ = send.send((i, result));
            });
        }
        drop(send);
        let mut blocks: Vec<Option<Result1>> = jobs.iter().map(|_| None).collect();
        loop {
            match results.recv_timeout(REPORT) {
                Ok((i, result)) => {
                    if let Some(slot) = blocks.get_mut(i) {
                        *slot = Some(result);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            report(done.load(Ordering::Relaxed));
        }
        // The first failure in the plan's order, however fast the others were.
        blocks.into_iter().flatten().collect()
    })
}

impl Bench {
    /// Runs one segment.
    fn segment(&mut self, job: &Job<'_>, options: &Options, steps: &mut Steps<'_>) -> Result1 {
        let unit = job.unit;
        let stationary = unit.problem.stationary_side();
        // One machine serves all segments of a shape: the program writes whatever it reads.
        let kept = self.machine.take().filter(|_| self.unit == job.segment.unit);
        let fresh = kept.is_none();
        let mut machine = kept.unwrap_or_else(|| Machine::new(unit.problem.lower.target));
        if fresh && let Some(program) = unit.verified.core(0) {
            machine.declare(program)?;
        }
        if fresh || self.moving != job.moving_columns {
            put(&mut machine, unit.problem.moving_side(), &job.moving)?;
        }
        put(&mut machine, stationary, &job.stationary)?;
        let stats = match unit.lowered.cores.first() {
            Some(stream) => {
                let target = unit.problem.lower.target;
                bundle_exec::run(stream, unit.verified.core(0), target, &mut machine, options, steps)?
            }
            None => Stats::default(),
        };
        let bytes = job.segment.rows * job.segment.columns * 4;
        let out = machine.dram.tensor(OUT).and_then(|t| t.get(0, 0, bytes));
        let out = out.ok_or(GemmError::Tensor { name: OUT, bytes })?.to_vec();
        (self.unit, self.moving) = (job.segment.unit, job.moving_columns.clone());
        self.machine = Some(machine);
        Ok((Block { segment: *job.segment, bytes: out }, stats))
    }
}

fn put(machine: &mut Machine, side: Side, tensors: &Tensors) -> Result<(), GemmError> {
    let mut one = |name: &'static str, bytes: &[u8]| {
        let fits = machine.dram.tensor_mut(name).is_some_and(|t| t.put(0, 0, bytes));
        if fits { Ok(()) } else { Err(GemmError::Tensor { name, bytes: bytes.len() }) }
    };
    one(side.tensor(), &tensors.data)?;
    if tensors.scales.is_empty() { Ok(()) } else { one(side.scale_tensor(), &tensors.scales) }
}
