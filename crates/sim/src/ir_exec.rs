//! The IR executor: a program's instructions in order.

use hadal_ir::program::{Ap, Calc, Instr, Matmult, MatmultMx, MatmultSparse, Op, Program};
use hadal_isa::{PerfMode, Target};
use hadal_num::Dtype;

use crate::error::{ExecError, Fault, OperandFault, Unit};
use crate::fp32_pass::Pass;
use crate::kernel::{Core, Moving, Tile, Weights, Writeback, host, matmul, mx, read_gathered, sparse};
use crate::memory::{Machine, Store, View};
use crate::options::Options;
use crate::stats::{Observer, Stats};

/// Runs a program on one core's memory. Locations must be placed; accumulate bytes that the passes have
/// not filled are taken from explicit calc flags, and otherwise the first write of an element overwrites.
///
/// # Errors
/// [`ExecError`] with the place of the instruction that could not be executed; memory then holds what the
/// instructions before it wrote.
pub fn run(
    program: &Program,
    target: Target,
    machine: &mut Machine,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Stats, ExecError> {
    machine.declare(program).map_err(setup)?;
    observer.core(0, program.instrs.len());
    let mut core = Core::new(machine, options, target, program.attrs);
    for (index, instr) in program.instrs.iter().enumerate() {
        observer.step(index, &instr.name);
        step(&mut core, program, instr).map_err(|OperandFault { operand, fault }| ExecError {
            core: 0,
            unit: Unit::Instruction,
            index,
            name: instr.name.clone(),
            operand,
            fault: Box::new(fault),
        })?;
        core.stats.steps += 1;
    }
    Ok(core.stats)
}

/// An error before the first instruction.
pub(crate) fn setup(fault: Fault) -> ExecError {
    ExecError {
        core: 0,
        unit: Unit::Setup,
        index: 0,
        name: String::new(),
        operand: None,
        fault: Box::new(fault),
    }
}

fn step(core: &mut Core<'_>, program: &Program, instr: &Instr) -> Result<(), OperandFault> {
    match &instr.op {
        Op::Matmult(m) => matmult(core, program, m),
        Op::MatmultSparse(m) => matmult_sparse(core, program, m),
        Op::MatmultMx(m) => matmult_mx(core, program, m),
        Op::QuantizeMx { src, data, scale } => {
            let src = plain(core, program, "src", src)?;
            let out = mx_operand(core, program, ("data", data), ("scale", scale))?;
            mx::quantize(core, &src, &out)
        }
        op => host::execute(core, program, op),
    }
}

fn matmult(core: &mut Core<'_>, program: &Program, m: &Matmult) -> Result<(), OperandFault> {
    let moving = match m.ifmap.index {
        None => Moving::InPlace(plain(core, program, "ifmap", &m.ifmap)?),
        Some(_) => Moving::Gathered(tile(core, program, ("ifmap", "ifmap index"), &m.ifmap)?),
    };
    let dst = plain(core, program, "out", &m.out)?;
    let weights = tile(core, program, ("weights", "weights index"), &m.weights)?;
    if m.perf_mode.scale() == 2 {
        moving.pair_first()?;
        if m.perf_mode == PerfMode::DoubleRow {
            pair_first(&View::of(core.machine, program, "weights", &m.weights)?)?;
        }
    }
    let zero = m.zero_point_weights.unwrap_or(0);
    let weights = Weights::new(weights, m.perf_mode, m.is_transpose, zero)?;
    let flags = m.flags.or(match m.calc {
        Calc::Auto => None,
        Calc::Explicit(f) => Some(f.byte()),
    });
    let how = Writeback::decide(core, flags, m.psum_zero_region.unwrap_or(0))?;
    let zero = m.zero_point_ifmap.unwrap_or(0);
    matmul::issue(core, &weights, &moving, zero, &dst, Pass::First, how)?;
    if weights.tile.dtype == Dtype::Float32 {
        matmul::issue(core, &weights, &moving, zero, &dst, Pass::Second, how)?;
    }
    Ok(())
}

fn matmult_sparse(core: &mut Core<'_>, program: &Program, m: &MatmultSparse) -> Result<(), OperandFault> {
    let tags = sparse::Tags::new(&Tile::read(core, &plain(core, program, "tags", &m.tags)?)?)?;
    let weights = Tile::read(core, &plain(core, program, "weights", &m.weights)?)?;
    let weights = Weights::new(weights, PerfMode::None, false, 0)?;
    let moving = Tile::read(core, &plain(core, program, "ifmap", &m.ifmap)?)?;
    let dst = plain(core, program, "out", &m.out)?;
    let ratio = m.compress_ratio as usize;
    sparse::issue(core, &weights, &tags, &moving, ratio, &dst, Pass::First)?;
    if moving.dtype == Dtype::Float32 {
        sparse::issue(core, &weights, &tags, &moving, ratio, &dst, Pass::Second)?;
    }
    Ok(())
}

fn matmult_mx(core: &mut Core<'_>, program: &Program, m: &MatmultMx) -> Result<(), OperandFault> {
    let weights = mx_operand(core, program, ("weights", &m.weights), ("weights_scale", &m.weights_scale))?;
    let moving = mx_operand(core, program, ("ifmap", &m.ifmap), ("ifmap_scale", &m.ifmap_scale))?;
    let dst = plain(core, program, "out", &m.out)?;
    let weights = mx::Weights::read(core, &weights)?;
    let moving = mx::Moving::read(core, &moving)?;
    let how = Writeback::decide_mx(core, m.accumulate_flags, m.psum_zero_region.unwrap_or(0))?;
    mx::issue(core, &weights, &moving, &dst, how)
}

/// Data and scales of an MX operand. Only the start of the scales' pattern counts: rows and direction
/// follow from the data.
fn mx_operand(
    core: &Core<'_>,
    program: &Program,
    (name, data): (&'static str, &Ap),
    (scale_name, scale): (&'static str, &Ap),
) -> Result<mx::Operand, OperandFault> {
    let data = plain(core, program, name, data)?;
    let scale = plain(core, program, scale_name, scale)?;
    if scale.store != Store::Sbuf {
        let got = core.machine.store_name(scale.store);
        return Err(Fault::WrongSpace { got, want: "SBUF" }.on(scale_name));
    }
    Ok(mx::Operand {
        data,
        scale_name,
        scale_store: scale.store,
        scale_partition: scale.partition,
        scale_offset: scale.offset,
    })
}

/// An operand that is not a gather.
fn plain(core: &Core<'_>, program: &Program, name: &'static str, ap: &Ap) -> Result<View, OperandFault> {
    if ap.index.is_some() {
        let what = "a gathered operand".to_owned();
        let why =
            "only those of a dense matmul are gathered; which scale an MX gather reads is not known (D-69)";
        return Err(Fault::Unsupported { what, why }.on(name));
    }
    View::of(core.machine, program, name, ap)
}

/// An operand of the dense array, gathered or not; the names are the operand's and its positions'.
fn tile(
    core: &Core<'_>,
    program: &Program,
    (name, index_name): (&'static str, &'static str),
    ap: &Ap,
) -> Result<Tile, OperandFault> {
    let view = View::of(core.machine, program, name, ap)?;
    match &ap.index {
        None => Tile::read(core, &view),
        Some(index) => {
            let step = ap.free().last().map_or(1, |p| p.step);
            let index = View::of(core.machine, program, index_name, index)?;
            read_gathered(core, &view, step, &index)
        }
    }
}

/// Fails unless the first free dimension is the row pair.
pub(crate) fn pair_first(view: &View) -> Result<(), OperandFault> {
    match view.dims.first() {
        Some(d) if d.num == 2 => Ok(()),
        d => {
            let got = d.map_or_else(|| "none".to_owned(), |d| d.num.to_string());
            let what = "first free dimension of a DoubleRow operand";
            Err(Fault::Shape { what, got, want: "2, the row pair".into() }.on(view.operand))
        }
    }
}
