//! The verifier: every hardware rule, all violations at once.
//!
//! [`verify`] runs the passes and the rules together, because some rules speak of the program as given
//! (types, shapes) and others of where things end up (addresses, accumulation). It alone makes a
//! [`Verified`].

mod gather;
mod helpers;
mod matmul;
mod mx;
mod notes;
mod operand;
mod place;
pub mod rules;
mod sparse;
mod written;

use hadal_isa::{Gen, Target};

use crate::diag::Violation;
use crate::passes::{accumulate, alloc, double_row, legalize};
use crate::program::{Instr, Matmult, Module, Op, Program};

pub(crate) use matmul::{shape, takes_pairs};
use rules::Sink;

/// Which rule book applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// What the public hardware documentation allows.
    #[default]
    Hardware,
    /// What the reference compiler build 2.24 accepts.
    NeuronxCc224,
}

/// Choices a user makes about lowering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LowerOptions {
    /// The target.
    pub target: Target,
    /// The rule book.
    pub profile: Profile,
    /// Skip stationary loads whose tile the array already holds.
    pub weight_cache: bool,
    /// Allow encodings that the references only infer (DoubleColumn, DoublePixel).
    pub allow_inferred: bool,
    /// Report reads of bytes that the program has not written (V-315). Off by default: a run finds them
    /// itself, and may be asked to read NaN or zero there.
    pub unwritten_reads: bool,
}

impl LowerOptions {
    /// Defaults for a target.
    pub fn new(target: Target) -> Self {
        LowerOptions {
            target,
            profile: Profile::Hardware,
            weight_cache: true,
            allow_inferred: false,
            unwritten_reads: false,
        }
    }
}

/// A module that broke no rule on its target: every location is placed and every accumulate byte set.
///
/// Only the verifier makes one.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    module: Module,
    options: LowerOptions,
    groups: Vec<Vec<accumulate::Group>>,
}

impl Verified {
    /// The module after the passes.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The target and the other choices it was verified under.
    pub fn options(&self) -> LowerOptions {
        self.options
    }

    /// One core's program.
    pub fn core(&self, core: usize) -> Option<&Program> {
        self.module.cores.get(core)
    }

    /// One core's accumulation groups, in the order they closed.
    pub fn groups(&self, core: usize) -> &[accumulate::Group] {
        self.groups.get(core).map_or(&[], Vec::as_slice)
    }
}

/// Whether the matmul is a bit-exact transpose on this generation (on gen2 a transpose is an ordinary
/// matmul, D-21).
pub fn transposes_exactly(mm: &Matmult, generation: Gen) -> bool {
    mm.is_transpose && generation != Gen::Gen2
}

/// Runs the passes and every rule.
///
/// # Errors
/// All violations, in program order: those of locations first, then by instruction.
pub fn verify(mut module: Module, options: LowerOptions) -> Result<Verified, Vec<Violation>> {
    let mut sinks: Vec<Sink> = (0..module.cores.len()).map(Sink::new).collect();
    helpers::core_races(&module.cores, &mut sinks);
    let mut groups = Vec::new();
    let several = module.cores.len() > 1;
    for (p, sink) in module.cores.iter_mut().zip(&mut sinks) {
        groups.push(core(p, &options, several, sink));
    }
    let mut found: Vec<Violation> = Vec::new();
    for mut sink in sinks {
        sink.found.sort_by_key(|v| v.instr.map_or(0, |i| i + 1));
        found.extend(sink.found);
    }
    if !found.is_empty() {
        return Err(found);
    }
    notes::add(&mut module, options.target);
    Ok(Verified { module, options, groups })
}

/// One core. Rules look only at what the rules before them found sound.
fn core(p: &mut Program, o: &LowerOptions, several: bool, sink: &mut Sink) -> Vec<accumulate::Group> {
    let bad = place::locations(p, o.target, sink);
    if o.profile == Profile::NeuronxCc224 {
        legalize::run(p, sink);
    }
    // Accumulation needs types and shapes that hold; addresses need only operands inside their locations.
    let mut sound = Vec::with_capacity(p.instrs.len());
    let mut addressable = Vec::with_capacity(p.instrs.len());
    for (i, instr) in p.instrs.iter().enumerate() {
        let at = (i, instr);
        let before = sink.found.len();
        operand::engine(at, sink);
        let operands = operand::check(p, at, sink);
        arch_level(at, o, sink);
        match &instr.op {
            Op::Matmult(mm) => matmul::check(at, mm, o, sink),
            Op::MatmultMx(mm) => mx::matmul(at, mm, o, sink),
            Op::QuantizeMx { src, data, scale } => mx::quantize(at, (src, data, scale), sink),
            Op::MatmultSparse(mm) => sparse::check(at, mm, o, sink),
            _ => helpers::check(at, sink),
        }
        sound.push(operands && sink.found.len() == before);
        addressable.push(operands);
    }
    if o.unwritten_reads {
        written::check(p, &sound, several, sink);
    }
    double_row::run(p, o.target.generation);
    let outcome = accumulate::run(p, &sound, o.target, sink);
    if bad.is_empty() {
        alloc::run(p, o.target, sink);
    }
    let from = sink.found.len();
    for (i, instr) in p.instrs.iter().enumerate() {
        let origin = outcome.origin.get(i).copied().unwrap_or(i);
        if addressable.get(origin).copied().unwrap_or(false) {
            place::check(p, (i, instr), &bad, o.target, sink);
        }
    }
    place::zero_regions(p, &outcome.groups, sink);
    // Later rules saw the rewritten program: report the instruction of the source.
    for v in sink.found.iter_mut().skip(from) {
        v.instr = v.instr.map(|i| outcome.origin.get(i).copied().unwrap_or(i));
    }
    outcome.groups
}

/// Operators that only some generations have.
fn arch_level(at: (usize, &Instr), o: &LowerOptions, sink: &mut Sink) {
    let (need, name) = match &at.1.op {
        Op::MatmultMx(_) | Op::QuantizeMx { .. } => (Gen::Gen4, "gen4 (trn3)"),
        Op::MatmultSparse(_) => (Gen::Gen3, "gen3 (trn2)"),
        _ => return,
    };
    if o.target.generation != need {
        sink.instr(
            &rules::ARCH_LEVEL,
            at,
            None,
            format!("{} is an operator of {name}, not of {}", at.1.op.name(), o.target),
        );
    }
}
