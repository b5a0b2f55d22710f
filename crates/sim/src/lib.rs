//! Bit-exact execution of tensor-engine programs, at the IR and at the bundle level.
//!
//! Two executors share one set of kernels and one memory model. [`ir_exec`] runs a program's
//! instructions; [`bundle_exec`] runs the bundles they lower to and keeps what the array's latches hold.
//! Both leave the same bytes, which [`compare`] checks.
//!
//! What a result is, is decided here in terms of the arithmetic of [`hadal_num`]: every operand is
//! widened to float32, a matmul is one float32 sum per output over the contraction index ascending with
//! each product rounded before its add (D-18), and that sum meets PSUM in one write or one add (D-29).
//! [`Options::rules`] lists the rules in force.
//!
//! Memory is bytes. Every byte knows whether it was written; [`bind`] fills what a program only reads.

pub mod bind;
pub mod bundle_exec;
pub mod cost;
mod error;
mod fp32_pass;
pub mod ir_exec;
mod kernel;
pub mod memory;
mod options;
pub mod probe;
mod run;
mod stats;

pub use error::{ExecError, Fault, Unit};
pub use hadal_num::mx::ScaleRule;
pub use memory::{Difference, Machine, compare};
pub use options::{Fp32Mode, Options, PsumRounding, Uninit};
pub use run::{Executor, ModuleRun, RunError, run_module};
pub use stats::{Observer, Stats};
