//! An estimate of the array's time, from public figures. Every number here is an estimate: none was measured.
//!
//! [`FORMULAS`] lists each formula with its source and its confidence, `docs/cost.md` explains them, and
//! [`formula`] holds them as functions:
//!
//! - the clock is 2.8 GHz (gen2) or 2.4 GHz (gen3, gen4), which gives the published 92 and 79 dense bfloat16
//!   TFLOPS: STRONG;
//! - a matmul takes `max(min(64, stationary columns), moving columns)` cycles: STRONG;
//! - a float32 matmul takes four times that over its two passes: STRONG; twice that when the one-zero hint of
//!   an operand is set: INFERRED;
//! - DoubleRow contracts two rows, and MX four lanes, in the same time: STRONG;
//! - a load takes a quarter of its columns, hidden behind the matmul before it when that is longer: INFERRED;
//! - sparse matmuls, tags loads and transposes cost what their dense forms do: ASSUMED;
//! - operators without a bundle and the vector engine's bundles cost the array nothing: ASSUMED.
//!
//! # Time
//!
//! Bundles take turns. A matmul runs from the end of what came before. A load begins with the matmul before it,
//! or after the loads that already run beside that matmul, and what of it is longer than the matmul delays
//! everything after it. So no two loads overlap, nor do two matmuls, and the cycles of all steps add up to the
//! program's.

pub mod formula;
mod lanes;
mod model;
mod occupancy;
mod over_time;

use std::fmt;

use hadal_ir::encode::{Item, Lowered};
use hadal_ir::program::Program;

pub use formula::{FORMULAS, Formula, clock, load_cycles, matmul_cycles};
pub use lanes::{Lane, Span};
use model::Model;
pub use occupancy::{Occupancy, occupancy};
pub use over_time::Stretch;

/// What kind of bundle a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Kind {
    /// A load of stationary weights or sparsity tags.
    Load,
    /// A matmul.
    Matmul,
    /// A transpose on the array.
    Transpose,
    /// A bundle of another engine, or an unknown word.
    #[default]
    Other,
}

impl Kind {
    /// The kind in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Load => "load",
            Kind::Matmul => "matmul",
            Kind::Transpose => "transpose",
            Kind::Other => "other",
        }
    }
}

/// A tile of the array: the quadrants of each axis it uses, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tile {
    /// Quadrants of the rows.
    pub rows: u8,
    /// Quadrants of the columns.
    pub columns: u8,
}

/// `rows 0..64, columns 0..128`; a mask that is no range is shown as it is.
impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axis = |mask: u8| {
            let (low, high) = (mask.trailing_zeros(), 8 - mask.leading_zeros());
            let range = mask != 0 && mask < 0x10 && u32::from(mask) == (1 << high) - (1 << low);
            if range { format!("{}..{}", low * 32, high * 32) } else { format!("{mask:#04x}") }
        };
        write!(f, "rows {}, columns {}", axis(self.rows), axis(self.columns))
    }
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
    /// Tile of the array it uses; `None` for other engines' bundles, and where nothing says.
    pub tile: Option<Tile>,
    /// Cycle at which it begins.
    pub start: u64,
    /// Cycles the array is busy with it.
    pub busy: u64,
    /// Cycles it adds to the program: `busy` less what the matmul before it hides.
    pub cycles: u64,
    /// Multiply-adds the program asked for; the two passes of a float32 matmul share those of its product.
    pub macs: u64,
    /// Contraction rows the mode packs into one cell: 1, 2 or 4.
    pub packing: u64,
}

impl Step {
    /// Cycle after its last.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.busy)
    }

    /// Utilization of the array while the bundle runs.
    pub fn utilization(&self) -> f64 {
        if self.busy == 0 {
            return 0.0;
        }
        self.macs as f64 / (self.packing.max(1) as f64 * formula::CELLS as f64 * self.busy as f64)
    }
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

/// Estimates one core of a lowered module; zero for a core it does not have. The program, when given,
/// supplies the one-zero hints, which are not on the wire.
pub fn estimate(lowered: &Lowered, core: usize, program: Option<&Program>) -> Cost {
    let mut model = Model::new(lowered.target, program);
    for item in lowered.cores.get(core).map_or(&[][..], |s| s.items.as_slice()) {
        if let Item::Bundle(b) = item {
            model.bundle(b.instr, &b.word);
        }
    }
    summarize(model.finish(), clock(lowered.target.generation))
}

fn summarize(steps: Vec<Step>, clock: f64) -> Cost {
    let sum = |f: &dyn Fn(&Step) -> u64| steps.iter().map(f).fold(0, u64::saturating_add);
    let cycles = sum(&|s| s.cycles);
    let load = sum(&|s| if s.kind == Kind::Load { s.cycles } else { 0 });
    let packed: f64 = steps.iter().map(|s| s.macs as f64 / s.packing.max(1) as f64).sum();
    let all = sum(&|s| s.macs) as f64;
    let model = sum(&|s| if s.kind == Kind::Matmul { s.macs } else { 0 }) as f64;
    let widest = steps.iter().map(|s| s.packing).max().unwrap_or(1) as f64;
    let over = |macs: f64, packing: f64| {
        if cycles == 0 { 0.0 } else { macs / (cycles as f64 * formula::CELLS as f64 * packing) }
    };
    Cost {
        clock,
        cycles,
        matmul_cycles: cycles.saturating_sub(load),
        load_cycles: load,
        microseconds: cycles as f64 / clock * 1e6,
        pe_utilization: over(packed, 1.0),
        mfu: over(model, widest),
        hfu: over(all, widest),
        steps,
    }
}

impl Cost {
    /// Cycles as microseconds.
    pub fn microseconds_of(&self, cycles: u64) -> f64 {
        cycles as f64 / self.clock * 1e6
    }

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
        let cells = formula::CELLS as f64;
        out.into_iter()
            .map(|(c, macs)| InstrCost {
                microseconds: self.microseconds_of(c.cycles),
                pe_utilization: if c.cycles == 0 { 0.0 } else { macs / (c.cycles as f64 * cells) },
                ..c
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Tile;

    #[test]
    fn tiles_are_named_by_their_lanes() {
        let name = |rows, columns| Tile { rows, columns }.to_string();
        assert_eq!(name(0x0F, 0x0C), "rows 0..128, columns 64..128");
        assert_eq!(name(0x02, 0x03), "rows 32..64, columns 0..64");
        assert_eq!(name(0x00, 0x05), "rows 0x00, columns 0x05");
        assert_eq!(name(0xFF, 0x10), "rows 0xff, columns 0x10");
    }
}
