//! `hadal run`: verify, lower, execute.

mod map;
mod outputs;
mod report;
mod summary;
mod timeline;
mod views;
mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hadal::files::{self, Source};
use hadal::input::Form;
use hadal::ir::encode::{Bundle, Item, Lowered, Side, Stream};
use hadal::ir::program::Module;
use hadal::ir::verify::Verified;
use hadal::npy;
use hadal::sim::bind::Array;
use hadal::sim::{
    self, ExecError, Executor, Fp32Mode, Machine, ModuleRun, Options, PsumRounding, RunError, ScaleRule,
    Uninit,
};

use super::arrays;
use super::load::{self, LowerArgs};
use crate::failure::Failure;
use crate::term::Term;
use watch::Watch;

/// Verify, lower and execute a program; print a summary and write its outputs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hadal run kernel.klr --target trn2                                inputs from seed 0
  hadal run kernel.klr --target trn2 --in a=a.npy --in b=b.npy --out-dir out
  hadal run program.bir.json --target trn3 --dump acc=acc.npy --widen
  hadal run program.bir.json --target trn2 --map                    where everything lies, and when
  hadal run kernel.klr --target trn2 --report run.html              the run as a page for a browser
  hadal run kernel.klr --target trn2 --timeline run.json            the run for Perfetto (ui.perfetto.dev)
  hadal run program.bir.json --target trn2 --executor both          exit code 6 if the executors differ
  hadal run kernel.bin --target trn2 --uninit zero                  bare bundles

A float array is rounded to the location's type; an unsigned array of the container's size is taken as bit
patterns. Inputs that are not given are filled from the seed in the form their use needs: floats standard normal,
integers 0 to 7, MX scales near 1, sparsity tags that their ratio allows, an identity for the moving operand of a
transpose. Cycles are an estimate from public figures, not a measurement.")]
pub(crate) struct RunArgs {
    /// A .klr kernel, a .bir.json program, or bundles; - for standard input.
    program: PathBuf,
    #[command(flatten)]
    lower: LowerArgs,
    /// Value of a program input or of any location; repeatable.
    #[arg(long = "in", value_name = "NAME=FILE.npy", value_parser = name_and_file, help_heading = "Inputs and outputs")]
    inputs: Vec<(String, PathBuf)>,
    /// Seed of the inputs that are not given, filled in the form their use needs, the same on every machine.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Inputs and outputs")]
    seed: u64,
    /// Folder for the outputs, NAME.npy each; created if absent.
    #[arg(long, value_name = "DIR", help_heading = "Inputs and outputs")]
    out_dir: Option<PathBuf>,
    /// A location after the run, as bit patterns; repeatable.
    #[arg(long, value_name = "NAME=FILE.npy", value_parser = name_and_file, help_heading = "Inputs and outputs")]
    dump: Vec<(String, PathBuf)>,
    /// Write arrays as float32 instead of bit patterns.
    #[arg(long, help_heading = "Inputs and outputs")]
    widen: bool,
    /// What executes: the bundles, the instructions, or both with all memory compared.
    #[arg(long, value_enum, value_name = "WHICH", default_value = "bundles", help_heading = "Execution")]
    executor: Which,
    /// One line for each step executed.
    #[arg(long, value_name = "FILE", help_heading = "Execution")]
    trace: Option<PathBuf>,
    /// Show where every location lies and when it lives: SBUF by partitions, PSUM by banks.
    #[arg(long, help_heading = "Views")]
    map: bool,
    /// The estimated run as a Chrome trace, which Perfetto opens: lanes of loads and matmuls for each tile group.
    #[arg(long, value_name = "FILE.json", help_heading = "Views")]
    timeline: Option<PathBuf>,
    /// One self-contained page: summary, timeline, utilization, memory maps, the first bundles by their bytes.
    #[arg(long, value_name = "FILE.html", help_heading = "Views")]
    report: Option<PathBuf>,
    /// Show the numeric rules in force.
    #[arg(long, help_heading = "Execution")]
    rules: bool,
    #[command(flatten)]
    numerics: NumericsArgs,
}

/// Choices of arithmetic; the defaults are the reference's.
#[derive(Debug, Args)]
pub(super) struct NumericsArgs {
    /// How a float32 matmul is computed (D-19).
    #[arg(long, value_enum, value_name = "HOW", default_value = "single", help_heading = "Numerics")]
    fp32: Fp32,
    /// Scale rule of MX blocks (D-05).
    #[arg(long, value_enum, value_name = "RULE", default_value = "reference", help_heading = "Numerics")]
    mx_rule: Rule,
    /// Rounding into bfloat16 PSUM on trn3: rne or stochastic:SEED (D-23).
    #[arg(long, value_name = "HOW", value_parser = rounding, default_value = "rne", help_heading = "Numerics")]
    psum_rounding: PsumRounding,
    /// What a read of never-written memory gives (D-43).
    #[arg(long, value_enum, value_name = "WHAT", default_value = "error", help_heading = "Numerics")]
    uninit: UninitName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    Bundles,
    Ir,
    Both,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Fp32 {
    Single,
    TwoPass,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Rule {
    Reference,
    ReferenceAlt,
    Hardware,
    Ocp,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum UninitName {
    Error,
    Nan,
    Zero,
}

fn name_and_file(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => {
            Ok((name.to_owned(), PathBuf::from(file)))
        }
        _ => Err("write NAME=FILE.npy".to_owned()),
    }
}

fn rounding(text: &str) -> Result<PsumRounding, String> {
    match text.split_once(':') {
        None if text == "rne" => Ok(PsumRounding::Rne),
        Some(("stochastic", seed)) => seed
            .parse()
            .map(PsumRounding::Stochastic)
            .map_err(|_| format!("{seed:?} is no seed; write stochastic:SEED with a whole number")),
        _ => Err("write rne or stochastic:SEED".to_owned()),
    }
}

impl NumericsArgs {
    /// The choices as the library takes them.
    pub(super) fn options(&self) -> Options {
        Options {
            fp32: match self.fp32 {
                Fp32::Single => Fp32Mode::Single,
                Fp32::TwoPass => Fp32Mode::TwoPass,
            },
            mx_rule: match self.mx_rule {
                Rule::Reference => ScaleRule::Reference,
                Rule::ReferenceAlt => ScaleRule::ReferenceAlt,
                Rule::Hardware => ScaleRule::Hardware,
                Rule::Ocp => ScaleRule::Ocp,
            },
            psum_rounding: self.psum_rounding,
            uninit: match self.uninit {
                UninitName::Error => Uninit::Error,
                UninitName::Nan => Uninit::Nan,
                UninitName::Zero => Uninit::Zero,
            },
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &RunArgs, term: Term) -> Result<(), Failure> {
    views::check(args, term)?;
    let (source, form) = load::open(&args.program)?;
    if form.is_program() { program(args, &source, form, term) } else { bundles(args, &source, form, term) }
}

/// A program and its run.
struct Done<'a> {
    args: &'a RunArgs,
    file: &'a str,
    verified: &'a Verified,
    lowered: &'a Lowered,
    run: &'a ModuleRun,
    options: Options,
}

fn program(args: &RunArgs, source: &Source, form: Form, term: Term) -> Result<(), Failure> {
    let module = load::module(source, form, &args.lower)?;
    let given = given(args)?;
    let verified = load::verified(module, &args.lower, term)?;
    let lowered = super::compile::lower(&verified)?;
    for (name, _) in &args.dump {
        outputs::core_of(verified.module(), name)?;
    }
    if let Some(dir) = &args.out_dir {
        outputs::check_names(verified.module(), args, dir, term)?;
    }
    say_overlaps(verified.module(), term);
    let options = args.numerics.options();
    let mut watch = Watch::new(args.trace.is_some(), &lowered, args.executor != Which::Ir, term);
    let mut execute = |which| {
        let ran = sim::run_module(&verified, &lowered, which, &options, args.seed, &given, &mut watch);
        ran.map_err(|e| match e {
            RunError::Bind(e) => Failure::from(e),
            RunError::Exec(e) => Failure::from(e),
        })
    };
    let result = match args.executor {
        Which::Bundles => execute(Executor::Bundles),
        Which::Ir => execute(Executor::Ir),
        Which::Both => execute(Executor::Bundles),
    };
    // The trace of a run that stopped is the most useful one.
    let trace = watch.finish();
    if let (Some(path), Some(trace)) = (&args.trace, trace) {
        load::put(path, trace.as_bytes(), term)?;
    }
    let run = result?;
    if args.executor == Which::Both {
        let mut watch = Watch::new(false, &lowered, false, term);
        let other =
            sim::run_module(&verified, &lowered, Executor::Ir, &options, args.seed, &given, &mut watch);
        watch.finish();
        let other = other.map_err(|e| match e {
            RunError::Bind(e) => Failure::from(e),
            RunError::Exec(e) => Failure::from(e),
        })?;
        if let Some((core, difference)) = run.first_difference(&other) {
            return Err(Failure::Differ {
                text: format!("the bundle and the instruction executor differ: {difference}"),
                place: format!("core {core}"),
                remedy: "this is a defect of the lowering or of an executor; report it with the program"
                    .to_owned(),
            });
        }
    }
    let done = Done { args, file: &source.name, verified: &verified, lowered: &lowered, run: &run, options };
    let results = outputs::collect(&done)?;
    outputs::write(&done, &results, term)?;
    views::write(&done, &results, term)?;
    summary::print(&done, &results, term)
}

/// Notes inputs that share bytes, of which only one keeps its values.
fn say_overlaps(module: &Module, term: Term) {
    const SHOWN: usize = 8;
    let specs = sim::bind::module_inputs(module);
    let pairs = module.cores.iter().zip(&specs).flat_map(|(p, specs)| sim::bind::overlapping(p, specs));
    let pairs: Vec<(String, String)> = pairs.collect();
    for (a, b) in pairs.iter().take(SHOWN) {
        term.say(&format!("note: inputs `{a}` and `{b}` share bytes; one overwrites the other"));
    }
    if pairs.len() > SHOWN {
        term.say(&format!("note: and {} more pairs of inputs share bytes", pairs.len() - SHOWN));
    }
}

/// The arrays given on the command line.
fn given(args: &RunArgs) -> Result<BTreeMap<String, Array>, Failure> {
    let mut given = BTreeMap::new();
    for (name, path) in &args.inputs {
        let source = files::read(path)?;
        let array = npy::read(&source.bytes).map_err(|error| Failure::Npy { name: source.name, error })?;
        if given.insert(name.clone(), arrays::from_npy(array)).is_some() {
            return Err(Failure::usage(
                format!("--in {name} is given twice"),
                "give each location one array",
            ));
        }
    }
    Ok(given)
}

fn bundles(args: &RunArgs, source: &Source, form: Form, term: Term) -> Result<(), Failure> {
    if !args.inputs.is_empty()
        || !args.dump.is_empty()
        || args.out_dir.is_some()
        || args.executor != Which::Bundles
        || args.map
    {
        return Err(Failure::usage(
            format!("{} holds {form}: it has no named locations and no instructions", source.name),
            "leave out --in, --dump, --out-dir, --executor and --map, or run the program it was lowered from",
        ));
    }
    let target = args.lower.target;
    let words = load::words(source, form, target)?;
    let side = Side::default_for(target);
    let items = words.into_iter().enumerate().map(|(instr, word)| Item::Bundle(Bundle { word, instr, side }));
    let stream = Stream { items: items.collect(), loads_elided: 0 };
    let lowered = Lowered { target, cores: vec![stream] };
    let options = args.numerics.options();
    let mut machine = Machine::new(target);
    let mut watch = Watch::new(args.trace.is_some(), &lowered, true, term);
    let result = match lowered.cores.first() {
        Some(stream) => sim::bundle_exec::run(stream, None, target, &mut machine, &options, &mut watch),
        None => Ok(sim::Stats::default()),
    };
    let trace = watch.finish();
    if let (Some(path), Some(trace)) = (&args.trace, trace) {
        load::put(path, trace.as_bytes(), term)?;
    }
    let stats = result.map_err(|e: ExecError| Failure::from(e))?;
    views::write_bundles(args, &source.name, &lowered, &stats, &options, term)?;
    summary::print_bundles(args, &source.name, &lowered, &stats, &options, term)
}
