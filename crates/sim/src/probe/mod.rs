//! Small computations whose result tells plausible models of the hardware apart.
//!
//! Each [`Probe`] gives what the kernels here compute, under the options in force, and what every other
//! plausible model would give, computed by explicit arithmetic of its own. Whoever has a device can run the
//! same inputs and see which model it follows.

mod array;
mod formats;
mod program;

use hadal_ir::diag::Violation;
use hadal_isa::Target;
use hadal_num::NumError;
use thiserror::Error;

use crate::options::Options;
use crate::run::RunError;

/// Values and the bits they are stored as.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The values, one an element.
    pub values: Vec<f32>,
    /// Bits of each element.
    pub bits: Vec<u32>,
    /// Bits of an element's container: 8, 16 or 32.
    pub width: u32,
}

impl Reading {
    /// float32 values.
    pub(crate) fn f32(values: &[f32]) -> Reading {
        Reading { values: values.to_vec(), bits: values.iter().map(|v| v.to_bits()).collect(), width: 32 }
    }

    /// The bits in hexadecimal, elements apart by a space.
    pub fn hex(&self) -> String {
        let digits = self.width as usize / 4;
        self.bits.iter().map(|b| format!("{b:0digits$X}")).collect::<Vec<_>>().join(" ")
    }
}

/// What one model predicts.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The model in a few words.
    pub name: &'static str,
    /// Its prediction.
    pub reading: Reading,
}

/// One probe.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// Stable name.
    pub id: &'static str,
    /// What it finds out.
    pub question: &'static str,
    /// The program and its inputs.
    pub inputs: &'static str,
    /// Targets it exists on.
    pub targets: &'static [Target],
    /// The decision it bears on, if it has a number.
    pub decision: Option<&'static str>,
    /// What the kernels compute under the options in force.
    pub result: Reading,
    /// What each model predicts. One of them is what was computed, unless the options leave it open
    /// (stochastic rounding).
    pub models: Vec<Model>,
}

impl Probe {
    /// Whether a model predicts what the kernels compute, bit for bit.
    pub fn in_force(&self, model: &Model) -> bool {
        self.result.bits == model.reading.bits
    }
}

/// A probe that could not be computed: a defect of this library.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// Its program breaks a rule.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Rules(Vec<Violation>),
    /// Its program could not be lowered.
    #[error(transparent)]
    Lower(#[from] hadal_ir::encode::EncodeError),
    /// Its program could not be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A cast was refused.
    #[error(transparent)]
    Num(#[from] NumError),
}

/// Every probe that exists on `target`, or every probe there is, each on the newest target that has it.
///
/// # Errors
/// [`ProbeError`], which no target and no options should give.
pub fn all(target: Option<Target>, options: &Options) -> Result<Vec<Probe>, ProbeError> {
    let mut out = array::probes(target, options)?;
    out.extend(formats::probes(target, options)?);
    Ok(out)
}

/// Where a probe runs: the target asked for if it has the probe, else nowhere; the newest when none is asked
/// for. Levels of a generation count as the generation.
fn place(target: Option<Target>, targets: &[Target]) -> Option<Target> {
    match target {
        None => targets.last().copied(),
        Some(t) => targets.iter().any(|s| s.generation == t.generation).then_some(t),
    }
}
