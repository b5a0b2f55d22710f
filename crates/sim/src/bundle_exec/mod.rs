//! The bundle executor: 64-byte bundles in order, and what the array's latches hold between them.
//!
//! Operators without a bundle are run from the program, by the same kernels as the IR executor's.

mod latch;
mod mx;
mod operand;
mod sparse;

use hadal_ir::encode::{Bundle, Item, Stream};
use hadal_ir::program::{Op, Program};
use hadal_isa::{Inst, LoadStationary, Matmul, PerfMode, Target, decode, operand_dtype, tag_dtype};
use hadal_num::Dtype;

use self::latch::{Held, Latch, Latches};
use crate::error::{ExecError, Fault, OperandFault, Unit};
use crate::fp32_pass::{Fp32Pass, Pass};
use crate::ir_exec::setup;
use crate::kernel::matmul;
use crate::kernel::sparse::Tags;
use crate::kernel::{Core, Weights, Writeback, host};
use crate::memory::Machine;
use crate::options::Options;
use crate::stats::{Observer, Stats};

/// Runs a lowered program on one core's memory.
///
/// `program` is the one the stream was lowered from: it supplies the operators without a bundle, their
/// names, and the program attributes. Bare bundles run without it.
///
/// # Errors
/// [`ExecError`] with the index of the bundle (or of the instruction, for an operator without one) that
/// could not be executed. No 64 bytes make it panic.
pub fn run(
    stream: &Stream,
    program: Option<&Program>,
    target: Target,
    machine: &mut Machine,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Stats, ExecError> {
    if let Some(p) = program {
        machine.declare(p).map_err(setup)?;
    }
    observer.core(0, stream.items.len());
    let attrs = program.map(|p| p.attrs).unwrap_or_default();
    let mut array = Array {
        core: Core::new(machine, options, target, attrs),
        latches: Latches::default(),
        tags: None,
        program,
        fp32: Fp32Pass::default(),
    };
    let mut bundles = 0;
    for item in &stream.items {
        let (unit, index, name, result) = match item {
            Item::Host(index) => {
                let instr = program.and_then(|p| p.instrs.get(*index));
                let name = instr.map_or_else(|| "operator".to_owned(), |i| i.name.clone());
                observer.step(*index, &name);
                (Unit::Instruction, *index, name, array.host(*index, instr.map(|i| &i.op)))
            }
            Item::Bundle(bundle) => {
                let inst = decode(&bundle.word, target).inst;
                let kind = kind(&inst);
                let instr = program.and_then(|p| p.instrs.get(bundle.instr));
                let name = instr.map_or_else(|| kind.to_owned(), |i| format!("{kind} of {}", i.name));
                let index = bundles;
                bundles += 1;
                observer.step(index, &name);
                (Unit::Bundle, index, name, array.bundle(&inst, bundle))
            }
        };
        result.map_err(|OperandFault { operand, fault }| ExecError {
            core: 0,
            unit,
            index,
            name,
            operand,
            fault: Box::new(fault),
        })?;
        array.core.stats.steps += 1;
    }
    Ok(array.core.stats)
}

/// Name of a bundle's kind.
fn kind(inst: &Inst) -> &'static str {
    match inst {
        Inst::LoadStationary(_) => "LoadStationary",
        Inst::Matmul(_) => "Matmul",
        Inst::LoadTagsSparse(_) => "LoadTagsSparse",
        Inst::MatmultSparse(_) => "MatmultSparse",
        Inst::LdWeightMx(_) => "LdWeightMx",
        Inst::MatmultMx(_) => "MatmultMx",
        Inst::QuantizeMx(_) => "QuantizeMx",
        Inst::Raw(_) => "unknown word",
    }
}

struct Array<'a> {
    core: Core<'a>,
    latches: Latches,
    tags: Option<Tags>,
    program: Option<&'a Program>,
    fp32: Fp32Pass,
}

impl Array<'_> {
    fn host(&mut self, index: usize, op: Option<&Op>) -> Result<(), OperandFault> {
        match (self.program, op) {
            (Some(program), Some(op)) => host::execute(&mut self.core, program, op),
            _ => {
                let len = self.program.map_or(0, |p| p.instrs.len());
                Err(Fault::NoInstruction { index, len }.into())
            }
        }
    }

    fn bundle(&mut self, inst: &Inst, bundle: &Bundle) -> Result<(), OperandFault> {
        match inst {
            Inst::LoadStationary(load) => self.load(load, bundle),
            Inst::Matmul(mm) => self.matmul(mm, bundle),
            Inst::LoadTagsSparse(load) => self.load_tags(load),
            Inst::MatmultSparse(mm) => self.matmul_sparse(mm, bundle),
            Inst::LdWeightMx(load) => self.load_mx(load),
            Inst::MatmultMx(mm) => self.matmul_mx(mm),
            Inst::QuantizeMx(q) => self.quantize_mx(q),
            Inst::Raw(word) => {
                Err(Fault::Opcode { opcode: word.0[0], target: self.core.target.to_string() }.into())
            }
        }
    }

    fn load(&mut self, load: &LoadStationary, bundle: &Bundle) -> Result<(), OperandFault> {
        let target = self.core.target;
        let perf = PerfMode::from_code(load.perf_mode)
            .ok_or_else(|| Fault::PerfMode { mode: format!("code {}", load.perf_mode) })?;
        let dtype = operand_dtype(load.weights_tag, load.perf_variant, target.generation)
            .ok_or_else(|| Fault::Tag { tag: load.weights_tag }.on("weights"))?;
        let dtype = operand::fp8(dtype, bundle.side);
        let index_type = operand::index_type(self.program, bundle.instr, "weights");
        let tile = operand::weights(&self.core, &load.weights, dtype, load.rows, perf, index_type)?;
        let weights = Weights::new(tile, perf, load.transpose != 0, bundle.side.zero_point_weights)?;
        if weights.columns != usize::from(load.active_cols) {
            return Err(Fault::Shape {
                what: "columns of the weights",
                got: weights.columns.to_string(),
                want: format!("{} active columns", load.active_cols),
            }
            .on("weights"));
        }
        let pass = self.fp32.load(&bundle.word, dtype == Dtype::Float32);
        self.core.stats.loads += 1;
        let (row_group, col_group) = (load.row_group, load.col_group);
        self.latches.load(Latch { row_group, col_group, held: Held::Dense(weights, pass) });
        Ok(())
    }

    fn matmul(&mut self, mm: &Matmul, bundle: &Bundle) -> Result<(), OperandFault> {
        let target = self.core.target;
        // Above level 40 a matmul names no group: it uses the load before it.
        let groups = (target.level <= 40).then_some((mm.row_group, mm.col_group));
        let (weights, pass) = self.latches.dense(groups)?;
        let differ = |what, got: String, want: String| Err(Fault::LoadMismatch { what, got, want }.into());
        if usize::from(mm.rows) != weights.tile.rows {
            return differ("row count", mm.rows.to_string(), weights.tile.rows.to_string());
        }
        if usize::from(mm.active_cols) != weights.columns {
            return differ("active column count", mm.active_cols.to_string(), weights.columns.to_string());
        }
        let dtype = operand_dtype(mm.moving_tag, mm.perf_variant, target.generation)
            .ok_or_else(|| Fault::Tag { tag: mm.moving_tag }.on("ifmap"))?;
        let dtype = operand::fp8(dtype, bundle.side);
        let dst_type = tag_dtype(mm.dst_tag, target.generation)
            .ok_or_else(|| Fault::Tag { tag: mm.dst_tag }.on("out"))?;
        let index_type = operand::index_type(self.program, bundle.instr, "ifmap");
        let moving = operand::moving(&self.core, &mm.moving, dtype, mm.rows, index_type)?;
        if weights.perf.scale() == 2 {
            moving.pair_first()?;
        }
        let dst = operand::pattern("out", &mm.dst, operand::fp8(dst_type, bundle.side), mm.active_cols)?;
        let how = match pass {
            Pass::First => Writeback::decide(&self.core, Some(mm.accumulate), mm.psum_zero_region)?,
            Pass::Second => Writeback::SECOND_PASS,
        };
        let zero = bundle.side.zero_point_ifmap;
        matmul::issue(&mut self.core, weights, &moving, zero, &dst, pass, how)?;
        self.fp32.matmul();
        Ok(())
    }
}
