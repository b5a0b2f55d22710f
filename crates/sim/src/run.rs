//! Running a whole module, core after core.

use std::collections::BTreeMap;

use hadal_ir::encode::Lowered;
use hadal_ir::program::Module;
use hadal_ir::verify::Verified;
use thiserror::Error;

use crate::bind::{self, Array, BindError};
use crate::error::{ExecError, Fault};
use crate::memory::{Dram, Machine, compare};
use crate::options::Options;
use crate::stats::{Observer, Stats};
use crate::{Difference, bundle_exec, ir_exec};

/// Which executor runs a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Executor {
    /// The encoded bundles.
    #[default]
    Bundles,
    /// The instructions.
    Ir,
}

/// A module that could not be run.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RunError {
    /// An input does not fit.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// An instruction could not be executed.
    #[error(transparent)]
    Exec(#[from] ExecError),
}

/// A module after its run.
#[derive(Debug, Clone, PartialEq)]
pub struct ModuleRun {
    /// Memory of each core. The last core's holds the DRAM that all shared; use [`ModuleRun::dump`].
    pub machines: Vec<Machine>,
    /// Counts over all cores.
    pub stats: Stats,
}

/// Runs a verified module: each core in index order with its own SBUF and PSUM, and one DRAM. Inputs are
/// those of [`bind::module_inputs`], filled before their core begins.
///
/// # Errors
/// [`RunError::Bind`] for arrays that fit no location, [`RunError::Exec`] with the core and place of the
/// step that failed.
pub fn run_module(
    verified: &Verified,
    lowered: &Lowered,
    executor: Executor,
    options: &Options,
    seed: u64,
    given: &BTreeMap<String, Array>,
    observer: &mut dyn Observer,
) -> Result<ModuleRun, RunError> {
    let module = verified.module();
    check_names(module, given)?;
    let target = verified.options().target;
    let specs = bind::module_inputs(module);
    let mut run = ModuleRun { machines: Vec::with_capacity(module.cores.len()), stats: Stats::default() };
    let mut dram = Dram::default();
    // A given DRAM array is stored once: a later core must not overwrite what an earlier one computed.
    let mut given = given.clone();
    for (index, program) in module.cores.iter().enumerate() {
        let mut machine = Machine::new(target);
        machine.dram = std::mem::take(&mut dram);
        let inputs = specs.get(index).map_or(&[][..], Vec::as_slice);
        bind::fill_where(&mut machine, program, inputs, seed, &given)?;
        given.retain(|name, _| machine.dram.index(name).is_none());
        let mut watch = OneCore { core: index, inner: observer };
        let result = match executor {
            Executor::Ir => ir_exec::run(program, target, &mut machine, options, &mut watch),
            Executor::Bundles => match lowered.cores.get(index) {
                Some(stream) => {
                    bundle_exec::run(stream, Some(program), target, &mut machine, options, &mut watch)
                }
                None => Err(ir_exec::setup(Fault::NoInstruction { index, len: lowered.cores.len() })),
            },
        };
        let stats = result.map_err(|e| ExecError { core: index, ..e })?;
        run.stats.add(&stats);
        dram = std::mem::take(&mut machine.dram);
        run.machines.push(machine);
    }
    if let Some(last) = run.machines.last_mut() {
        last.dram = dram;
    }
    Ok(run)
}

fn check_names(module: &Module, given: &BTreeMap<String, Array>) -> Result<(), BindError> {
    for name in given.keys() {
        if !module.cores.iter().any(|p| p.find_loc(name).is_some()) {
            let known: Vec<String> = module.cores.iter().map(bind::known).collect();
            return Err(BindError::UnknownName { name: name.clone(), known: known.join("; ") });
        }
    }
    Ok(())
}

impl ModuleRun {
    /// A location of one core after the run; see [`bind::dump`].
    ///
    /// # Errors
    /// As [`bind::dump`].
    pub fn dump(&self, module: &Module, core: usize, name: &str) -> Result<Array, BindError> {
        self.with(module, core, name, bind::dump)
    }

    /// Bytes of a location of one core that were never written; see [`bind::unwritten`].
    ///
    /// # Errors
    /// As [`bind::dump`].
    pub fn unwritten(&self, module: &Module, core: usize, name: &str) -> Result<usize, BindError> {
        self.with(module, core, name, bind::unwritten)
    }

    fn with<T>(
        &self,
        module: &Module,
        core: usize,
        name: &str,
        f: impl Fn(&Machine, &hadal_ir::program::Program, &str) -> Result<T, BindError>,
    ) -> Result<T, BindError> {
        let unknown = || BindError::UnknownName { name: name.to_owned(), known: format!("no core {core}") };
        let program = module.cores.get(core).ok_or_else(unknown)?;
        let shared = self.machines.last().filter(|m| m.dram.tensor(name).is_some());
        let own = program.find_loc(name).and_then(|id| program.loc(id));
        let dram = own.is_some_and(|l| l.space() == hadal_ir::program::Space::Dram);
        let machine = if dram { shared } else { self.machines.get(core) };
        f(machine.ok_or_else(unknown)?, program, name)
    }

    /// The first place where two runs of one module differ: the core, and where in its memory (DRAM counts
    /// to the last core).
    pub fn first_difference(&self, other: &ModuleRun) -> Option<(usize, Difference)> {
        let pairs = self.machines.iter().zip(&other.machines).enumerate();
        pairs.into_iter().find_map(|(core, (a, b))| Some((core, compare(a, b)?)))
    }
}

/// Passes steps on under the right core's number.
struct OneCore<'a> {
    core: usize,
    inner: &'a mut dyn Observer,
}

impl Observer for OneCore<'_> {
    fn step(&mut self, index: usize, name: &str) {
        self.inner.step(index, name);
    }

    fn core(&mut self, _core: usize, steps: usize) {
        self.inner.core(self.core, steps);
    }
}
