//! `hadal gemm`: a matrix product as a tiled program, its result, its error and its cost.

mod compare;
mod emit;
mod matrix;
mod progress;
mod report;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use hadal::files::Draft;
use hadal::gemm::{
    Accuracy, Check, Checker, Format, Matrix as _, Plan, Problem, RunOptions, Side, Stationary, Weights,
};
use hadal::ir::verify::LowerOptions;
use hadal::isa::Target;
use hadal::npy::{self, Kind, Npy};
use hadal::num::{Dtype, Overflow};
use hadal::sim::{Fp32Mode, Options, ScaleRule, Stats};

use self::matrix::Operand;
use self::progress::Progress;
use super::load;
use crate::failure::Failure;
use crate::term::Term;

/// Compute C = A @ B as a tiled program: its result to the bit, its error against float64, its cost.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hadal gemm a.npy b.npy --target trn2 --format bf16 -o c.npy
  hadal gemm a.npy b.npy --target trn3 --format mxfp8-e4m3fn --mx-rule hardware -o c.npy
  hadal gemm a.npy b.npy --target trn2 --compare                  every format of trn2, one table
  hadal gemm a.npy b.npy --compare --json                         every format of every target
  hadal gemm a.npy b.npy --target trn1 --format fp32 -o c.npy --emit p.bir.json --emit-inputs in
  hadal run p.bir.json --target trn1 --in lhsT=in/lhsT.npy --in rhs=in/rhs.npy   the same C

A is [M, K], B is [K, N], float16, float32 or float64 (--from for bit patterns); both are rounded to the format.
MX blocks are 32 consecutive contraction indices. Cycles are an estimate from public figures, not a measurement.")]
pub(crate) struct GemmArgs {
    /// A, [M, K]; - for standard input.
    a: PathBuf,
    /// B, [K, N].
    b: PathBuf,
    /// trn1, trn2 or trn3; also gen2..gen4, core-v2..core-v4, sunda, cayman, mariana, level:N.
    #[arg(short, long, value_name = "T", required_unless_present = "compare")]
    target: Option<Target>,
    /// bf16, fp16, fp32, fp32r, e5m2; e4m3 (trn1, trn2); e4m3fn, mxfp8-e4m3fn, mxfp8-e5m2, mxfp4 (trn3).
    #[arg(long, value_name = "FORMAT", value_parser = format, required_unless_present = "compare")]
    format: Option<Format>,
    /// Where C goes, float32; - for standard output.
    #[arg(short, long, value_name = "C.npy", required_unless_present = "compare")]
    output: Option<PathBuf>,
    /// What an unsigned array's bits are: bfloat16, float16, float32, float8_e4m3fn, ...
    #[arg(long, value_name = "FORMAT", value_parser = bits, help_heading = "Inputs and outputs")]
    from: Option<Dtype>,
    /// Write the whole product as one program: .bir.json, or .bin, .hex, .asm for its bundles.
    #[arg(long, value_name = "PROGRAM", help_heading = "Inputs and outputs")]
    emit: Option<PathBuf>,
    /// Write the arrays that the program takes: lhsT.npy, rhs.npy and their scales, as bit patterns.
    #[arg(long, value_name = "DIR", requires = "emit", help_heading = "Inputs and outputs")]
    emit_inputs: Option<PathBuf>,
    /// Compare every format of the target, or of every target, in one table.
    #[arg(long)]
    compare: bool,
    /// Which outputs are compared with float64: all, a sample of a large product, or none.
    #[arg(long, value_enum, value_name = "WHICH", default_value = "sample")]
    check: CheckName,
    /// Which operand the array holds; auto takes the one with fewer cycles.
    #[arg(long, value_enum, value_name = "WHICH", default_value = "auto", help_heading = "Planning")]
    stationary: StationaryName,
    /// Who quantizes the stationary operand of an MX product; the moving one is quantized on the device, except to
    /// mxfp4 [default: offline].
    #[arg(long, value_enum, value_name = "WHERE", help_heading = "Planning")]
    weights: Option<WeightsName>,
    /// Emit every stationary load, also of weights that the array already holds.
    #[arg(long, help_heading = "Planning")]
    no_weight_cache: bool,
    /// How a float32 matmul is computed (D-19).
    #[arg(long, value_enum, value_name = "HOW", default_value = "single", help_heading = "Numerics")]
    fp32: Fp32Name,
    /// Scale rule of MX blocks: reference, reference-alt, hardware or ocp (D-05).
    #[arg(long, value_name = "RULE", value_parser = rule, default_value = "reference", help_heading = "Numerics")]
    mx_rule: ScaleRule,
    /// What becomes of values beyond the largest of a format without block scales: infinity (NaN where there is
    /// none), or the largest.
    #[arg(long, value_enum, value_name = "RULE", default_value = "ieee", help_heading = "Numerics")]
    overflow: OverflowName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CheckName {
    All,
    Sample,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StationaryName {
    Auto,
    A,
    B,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WeightsName {
    Offline,
    Device,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Fp32Name {
    Single,
    TwoPass,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OverflowName {
    Ieee,
    Saturate,
}

fn format(name: &str) -> Result<Format, String> {
    let names = || Format::ALL.map(Format::name).join(", ");
    name.parse().map_err(|_| format!("use {}", names()))
}

fn rule(name: &str) -> Result<ScaleRule, String> {
    name.parse().map_err(|_| "use reference, reference-alt, hardware or ocp".to_owned())
}

fn bits(name: &str) -> Result<Dtype, String> {
    let long = match name {
        "bf16" => "bfloat16",
        "fp16" => "float16",
        "fp32" => "float32",
        "e3m4" => "float8_e3m4",
        "e4m3" => "float8_e4m3",
        "e4m3fn" => "float8_e4m3fn",
        "e5m2" => "float8_e5m2",
        other => other,
    };
    Dtype::from_name(long).filter(|d| d.is_float() && !d.is_x4()).ok_or_else(|| {
        "use bfloat16, float16, float32, float8_e3m4, float8_e4m3, float8_e4m3fn or float8_e5m2".to_owned()
    })
}

impl GemmArgs {
    fn problem(&self, shape: [usize; 3], format: Format, target: Target) -> Problem {
        let lower = LowerOptions { weight_cache: !self.no_weight_cache, ..LowerOptions::new(target) };
        Problem {
            weights: match self.weights {
                None | Some(WeightsName::Offline) => Weights::Offline,
                Some(WeightsName::Device) => Weights::Device,
            },
            stationary: match self.stationary {
                StationaryName::Auto => Stationary::Auto,
                StationaryName::A => Stationary::A,
                StationaryName::B => Stationary::B,
            },
            ..Problem::new(shape, format, lower)
        }
    }

    fn options(&self) -> RunOptions {
        RunOptions {
            sim: Options {
                fp32: match self.fp32 {
                    Fp32Name::Single => Fp32Mode::Single,
                    Fp32Name::TwoPass => Fp32Mode::TwoPass,
                },
                mx_rule: self.mx_rule,
                ..Options::default()
            },
            overflow: match self.overflow {
                OverflowName::Ieee => Overflow::Ieee,
                OverflowName::Saturate => Overflow::Saturate,
            },
        }
    }

    fn check(&self) -> Check {
        match self.check {
            CheckName::All => Check::All,
            CheckName::Sample => Check::Sample,
            CheckName::None => Check::None,
        }
    }
}

/// A finished product.
struct Done {
    plan: Plan,
    accuracy: Accuracy,
    stats: Stats,
}

/// Runs the command.
pub(crate) fn run(args: &GemmArgs, term: Term) -> Result<(), Failure> {
    if args.compare && (args.output.is_some() || args.emit.is_some()) {
        let both = args.target.is_some() && args.format.is_some();
        if !both {
            return Err(Failure::usage(
                "-o and --emit need one format and one target, and --compare covers several",
                "give --target and --format beside --compare, or leave -o and --emit out",
            ));
        }
    }
    let named = [("-o", &args.output), ("--emit", &args.emit)];
    let named = named.into_iter().filter_map(|(option, path)| Some((option.to_owned(), path.as_deref()?)));
    let named: Vec<_> = named.collect();
    let inputs = [args.a.as_path(), args.b.as_path()];
    load::destinations(&named, &inputs, term)?;
    if let Some(folder) = &args.emit_inputs {
        let tensors = [Side::A, Side::B].map(|s| [s.tensor(), s.scale_tensor()]);
        let paths: Vec<PathBuf> =
            tensors.iter().flatten().map(|name| folder.join(format!("{name}.npy"))).collect();
        let more = paths.iter().map(|path| ("--emit-inputs".to_owned(), path.as_path()));
        load::distinct(&named.iter().cloned().chain(more).collect::<Vec<_>>(), &inputs, term)?;
    }
    if [&args.a, &args.b].iter().all(|p| p.as_path() == Path::new("-")) {
        return Err(Failure::usage("both operands are to come from standard input", "name a file for one"));
    }
    if let (Some(format), Some(target)) = (args.format, args.target)
        && !format.is_on(target.generation)
    {
        let generation = target.generation;
        return Err(hadal::gemm::GemmError::FormatNotOnTarget { format, target, generation }.into());
    }
    let (a, b) = (Operand::open(&args.a, args.from)?, Operand::open(&args.b, args.from)?);
    let ([m, k], [rows, n]) = (a.shape(), b.shape());
    if k != rows {
        return Err(Failure::Cast {
            name: b.name.clone(),
            text: format!("B has {rows} rows and A ({}) has {k} columns: [{m}, {k}] @ [{rows}, {n}]", a.name),
            remedy: "the columns of A are the rows of B; transpose one of them",
        });
    }
    let shape = [m, k, n];
    let main = match (args.format, args.target, &args.output) {
        (Some(format), Some(target), output) if output.is_some() || args.emit.is_some() || !args.compare => {
            Some(product(args, (&a, &b), shape, format, target, output.as_deref(), term)?)
        }
        _ => None,
    };
    if args.compare {
        return compare::run(args, (&a, &b), shape, main, term);
    }
    match main {
        Some(done) => report::print(args, &done, term),
        None => Ok(()),
    }
}

/// Most matmuls of a program that is written as a whole.
const EMIT_LIMIT: u64 = 1 << 20;

/// Where C goes.
enum Sink<'a> {
    /// A file, written as blocks come.
    File(Draft, u64),
    /// What cannot be written in parts, held until the end.
    Whole(&'a Path, Vec<u8>),
    Nowhere,
}

impl<'a> Sink<'a> {
    fn begin(path: Option<&'a Path>, shape: [usize; 2]) -> Result<Sink<'a>, Failure> {
        let Some(path) = path else { return Ok(Sink::Nowhere) };
        if hadal::files::is_stdout(path) || hadal::files::is_special(path) {
            let bytes = shape.iter().fold(4usize, |n, d| n.saturating_mul(*d));
            if bytes as u64 > hadal::files::MAX_INPUT {
                return Err(Failure::usage(
                    format!("C has {bytes} bytes, too many to hold until the end"),
                    "give -o a file, which is written in parts",
                ));
            }
            return Ok(Sink::Whole(path, vec![0; bytes]));
        }
        let mut draft = Draft::begin(path)?;
        let header = npy::header(Kind::Float, 4, &shape);
        draft.write_at(0, &header)?;
        Ok(Sink::File(draft, header.len() as u64))
    }

    /// A row of a block.
    fn write(&mut self, at: usize, row: &[u8]) -> Result<(), Failure> {
        match self {
            Sink::File(draft, header) => draft.write_at(*header + at as u64, row)?,
            Sink::Whole(_, bytes) => {
                if let Some(to) = bytes.get_mut(at..at + row.len()) {
                    to.copy_from_slice(row);
                }
            }
            Sink::Nowhere => {}
        }
        Ok(())
    }

    fn finish(self, shape: [usize; 2], term: Term) -> Result<(), Failure> {
        match self {
            Sink::File(draft, _) => Ok(draft.finish()?),
            Sink::Whole(path, data) => {
                let array = Npy { kind: Kind::Float, size: 4, shape: shape.to_vec(), data };
                load::put(path, &npy::write(&array), term)
            }
            Sink::Nowhere => Ok(()),
        }
    }
}

/// Plans and runs one product; writes what is asked for.
fn product(
    args: &GemmArgs,
    (a, b): (&Operand, &Operand),
    shape: [usize; 3],
    format: Format,
    target: Target,
    output: Option<&Path>,
    term: Term,
) -> Result<Done, Failure> {
    let problem = args.problem(shape, format, target);
    // The others of a comparison write nothing.
    let is_main = (args.format, args.target) == (Some(format), Some(target));
    let plan = Plan::new(problem)?;
    let matmuls = plan.estimate().matmuls;
    if is_main && args.emit.is_some() && matmuls > EMIT_LIMIT {
        return Err(Failure::usage(
            format!(
                "the whole product is a program of {matmuls} matmuls, --emit writes at most {EMIT_LIMIT}"
            ),
            "emit a smaller product, or leave --emit out",
        ));
    }
    let whole = [problem.m, problem.n];
    let mut sink = Sink::begin(output, whole)?;
    let options = args.options();
    let mut checker = Checker::new(&problem, a, b, args.check());
    let mut runner = plan.run(a, b, options)?;
    let mut bar = Progress::new(format!("{format} on {target}"), term);
    while let Some(block) = runner.next_block(&mut |done, all| bar.at(done, all))? {
        let s = block.segment;
        for (i, row) in block.bytes.chunks((s.columns * 4).max(1)).enumerate() {
            sink.write(((s.row + i) * problem.n + s.column) * 4, row)?;
        }
        checker.add(&block)?;
    }
    let stats = runner.stats();
    drop(bar);
    if is_main {
        emit::write(args, &plan, (a, b), &options, term)?;
    }
    sink.finish(whole, term)?;
    Ok(Done { accuracy: checker.accuracy(), plan, stats })
}
