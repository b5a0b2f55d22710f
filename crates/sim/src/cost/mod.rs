//! An estimate of the array's time, from public figures. Every number here is an estimate.
//!
//! The array takes one moving column a cycle, at 2.8 GHz (gen2) or 2.4 GHz (gen3, gen4), which gives the
//! published 92 and 79 dense bfloat16 TFLOPS. A matmul takes `max(min(64, stationary free), moving free)`
//! cycles; float32 four times that over its two passes, twice when the one-zero hint of an operand is set;
//! DoubleRow contracts two rows, and MX four, in the same time. A load takes a quarter of its columns,
//! hidden behind the matmul before it when that is longer. Operators without a bundle and the vector
//! engine's bundles cost the array nothing.

mod occupancy;

use hadal_ir::encode::{Item, Lowered};
use hadal_ir::program::{Op, Program};
use hadal_isa::{Gen, Inst, LoadStationary, Matmul, Pattern, PerfMode, PerfVariant, decode};

use crate::fp32_pass::{Fp32Pass, Pass};

pub use occupancy::{Occupancy, occupancy};

/// Cells of the array.
const CELLS: f64 = 128.0 * 128.0;

/// What kind of bundle a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A load of stationary weights or sparsity tags.
    Load,
    /// A matmul.
    Matmul,
    /// A transpose on the array.
    Transpose,
    /// A bundle of another engine, or an unknown word.
    Other,
}

/// Estimate of one bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Index of the bundle in its stream; operators without a bundle are not counted.
    pub bundle: usize,
    /// Index of the instruction it came from.
    pub instr: usize,
    /// Kind of bundle.
    pub kind: Kind,
    /// Cycles the array is busy with it.
    pub busy: u64,
    /// Cycles it adds to the program: `busy` less what the matmul before it hides.
    pub cycles: u64,
    /// Multiply-adds the program asked for; those of a float32 matmul are counted in its first pass.
    pub macs: u64,
    /// Contraction rows the mode packs into one cell: 1, 2 or 4.
    pub packing: u64,
}

/// Estimate of a core's program.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// One entry a bundle, in order.
    pub steps: Vec<Step>,
    /// Clock of the array in Hz.
    pub clock: f64,
    /// Cycles of all steps.
    pub cycles: u64,
    /// Cycles of matmuls and transposes alone.
    pub matmul_cycles: u64,
    /// Cycles of loads that no matmul hides.
    pub load_cycles: u64,
    /// Time in microseconds.
    pub microseconds: f64,
    /// Multiply-adds, each over its mode's packing, over cycles x 128 x 128; transposes count.
    pub pe_utilization: f64,
    /// Model FLOPs utilization: multiply-adds without transposes, over the peak of the widest packing used.
    pub mfu: f64,
    /// Hardware FLOPs utilization: as `mfu` with transposes.
    pub hfu: f64,
}

/// Estimate of one instruction: the sum over its bundles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InstrCost {
    /// Index of the instruction.
    pub instr: usize,
    /// Cycles.
    pub cycles: u64,
    /// Time in microseconds.
    pub microseconds: f64,
    /// Utilization of the array while the instruction runs.
    pub pe_utilization: f64,
}

/// Clock of the array in Hz.
pub fn clock(generation: Gen) -> f64 {
    match generation {
        Gen::Gen2 => 2.8e9,
        Gen::Gen3 | Gen::Gen4 => 2.4e9,
    }
}

/// Cycles of one pass: `stationary` output columns of the array, `moving` columns streamed.
pub fn matmul_cycles(stationary: u64, moving: u64) -> u64 {
    stationary.min(64).max(moving)
}

/// Cycles of a load of that many columns.
pub fn load_cycles(columns: u64) -> u64 {
    columns.div_ceil(4)
}

/// Estimates one core of a lowered module; zero for a core it does not have. The program, when given,
/// supplies the one-zero hints, which are not on the wire.
pub fn estimate(lowered: &Lowered, core: usize, program: Option<&Program>) -> Cost {
    let mut model = Model { program, fp32: Fp32Pass::default(), ..Model::default() };
    let items = lowered.cores.get(core).map_or(&[][..], |s| s.items.as_slice());
    let bundles = items.iter().filter_map(|i| match i {
        Item::Bundle(b) => Some(b),
        Item::Host(_) => None,
    });
    let steps: Vec<Step> = bundles
        .enumerate()
        .map(|(at, b)| model.step(at, b.instr, &decode(&b.word, lowered.target).inst, &b.word))
        .collect();
    summarize(steps, clock(lowered.target.generation))
}

fn summarize(steps: Vec<Step>, clock: f64) -> Cost {
    let sum = |f: &dyn Fn(&Step) -> u64| steps.iter().map(f).sum::<u64>();
    let cycles = sum(&|s| s.cycles);
    let load = sum(&|s| if s.kind == Kind::Load { s.cycles } else { 0 });
    let packed: f64 = steps.iter().map(|s| s.macs as f64 / s.packing.max(1) as f64).sum();
    let all = sum(&|s| s.macs) as f64;
    let model = sum(&|s| if s.kind == Kind::Matmul { s.macs } else { 0 }) as f64;
    let widest = steps.iter().map(|s| s.packing).max().unwrap_or(1) as f64;
    let over = |macs: f64, packing: f64| {
        if cycles == 0 { 0.0 } else { macs / (cycles as f64 * CELLS * packing) }
    };
    Cost {
        clock,
        cycles,
        matmul_cycles: sum(&|s| if s.kind == Kind::Load { 0 } else { s.cycles }),
        load_cycles: load,
        microseconds: cycles as f64 / clock * 1e6,
        pe_utilization: over(packed, 1.0),
        mfu: over(model, widest),
        hfu: over(all, widest),
        steps,
    }
}

impl Cost {
    /// The estimate by instruction, in order of the first bundle of each.
    pub fn by_instruction(&self) -> Vec<InstrCost> {
        let mut out: Vec<(InstrCost, f64)> = Vec::new();
        for s in &self.steps {
            let packed = s.macs as f64 / s.packing.max(1) as f64;
            match out.last_mut() {
                Some((c, macs)) if c.instr == s.instr => {
                    c.cycles += s.cycles;
                    *macs += packed;
                }
                _ => {
                    let c = InstrCost {
                        instr: s.instr,
                        cycles: s.cycles,
                        microseconds: 0.0,
                        pe_utilization: 0.0,
                    };
                    out.push((c, packed));
                }
            }
        }
        out.into_iter()
            .map(|(c, macs)| InstrCost {
                microseconds: c.cycles as f64 / self.clock * 1e6,
                pe_utilization: if c.cycles == 0 { 0.0 } else { macs / (c.cycles as f64 * CELLS) },
                ..c
            })
            .collect()
    }
}

/// What the estimate remembers from bundle to bundle.
struct Model<'a> {
    program: Option<&'a Program>,
    fp32: Fp32Pass,
    /// Pass that the last load began.
    pass: Option<Pass>,
    perf: PerfMode,
    transpose: bool,
    /// Cycles of the matmul before, which hide a load.
    before: u64,
}

impl Default for Model<'_> {
    fn default() -> Self {
        Model {
            program: None,
            fp32: Fp32Pass::default(),
            pass: None,
            perf: PerfMode::None,
            transpose: false,
            before: 0,
        }
    }
}

/// Elements of a destination in one partition, at most what keeps every sum over a stream inside 64 bits;
/// PSUM holds far fewer.
fn elements<const N: usize>(p: &Pattern<N>) -> u64 {
    p.elements().min(1 << 24)
}

impl Model<'_> {
    fn step(&mut self, bundle: usize, instr: usize, inst: &Inst, word: &hadal_isa::Word) -> Step {
        let (kind, busy, macs, packing) = match inst {
            Inst::LoadStationary(l) => self.load(l, word),
            Inst::Matmul(m) => self.matmul(m, instr),
            Inst::LoadTagsSparse(l) => (Kind::Load, load_cycles(u64::from(l.active_cols)), 0, 1),
            Inst::LdWeightMx(l) => (Kind::Load, load_cycles(u64::from(l.active_cols)), 0, 1),
            Inst::MatmultSparse(m) => {
                let (n, cols) = (elements(&m.dst), u64::from(m.active_cols));
                let passes = if m.pass == 0 { 1 } else { 2 };
                let macs = if m.pass == 2 { 0 } else { u64::from(m.rows) * cols * n };
                (Kind::Matmul, passes * matmul_cycles(cols, n), macs, 1)
            }
            Inst::MatmultMx(m) => {
                let (n, cols) = (elements(&m.dst), u64::from(m.active_cols));
                (Kind::Matmul, matmul_cycles(cols, n), 4 * u64::from(m.rows) * cols * n, 4)
            }
            Inst::QuantizeMx(_) | Inst::Raw(_) => (Kind::Other, 0, 0, 1),
        };
        if !matches!(inst, Inst::LoadStationary(_) | Inst::Matmul(_)) {
            self.fp32.other();
        }
        let cycles = match kind {
            Kind::Load => busy.saturating_sub(std::mem::take(&mut self.before)),
            Kind::Matmul | Kind::Transpose => {
                self.before = busy;
                busy
            }
            Kind::Other => 0,
        };
        Step { bundle, instr, kind, busy, cycles, macs, packing }
    }

    fn load(&mut self, l: &LoadStationary, word: &hadal_isa::Word) -> (Kind, u64, u64, u64) {
        let float32 = l.perf_variant == PerfVariant::FLOAT32;
        self.pass = float32.then(|| self.fp32.load(word, true));
        if !float32 {
            self.fp32.other();
        }
        self.perf = PerfMode::from_code(l.perf_mode).unwrap_or_default();
        self.transpose = l.transpose != 0;
        (Kind::Load, load_cycles(u64::from(l.active_cols)), 0, 1)
    }

    fn matmul(&mut self, m: &Matmul, instr: usize) -> (Kind, u64, u64, u64) {
        let (n, cols) = (elements(&m.dst), u64::from(m.active_cols));
        let planes = u64::from(self.perf.scale());
        let mut busy = matmul_cycles(cols, n);
        if m.perf_variant == PerfVariant::FLOAT32 && !self.has_hint(instr) {
            busy *= 2;
        }
        let mut macs = u64::from(m.rows) * cols * n * planes;
        if self.pass == Some(Pass::Second) {
            macs = 0;
        }
        self.fp32.matmul();
        let kind = if self.transpose { Kind::Transpose } else { Kind::Matmul };
        (kind, busy, macs, planes)
    }

    /// Whether the instruction says that an operand holds only zeros and ones.
    fn has_hint(&self, instr: usize) -> bool {
        match self.program.and_then(|p| p.instrs.get(instr)).map(|i| &i.op) {
            Some(Op::Matmult(m)) => m.is_fmap_onezero || m.is_weight_onezero,
            _ => false,
        }
    }
}
