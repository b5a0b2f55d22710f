//! `hadal compile`: verify, lower, encode.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hadal::files;
use hadal::input::Form;
use hadal::ir::encode::{self, Item, Lowered, Stream};
use hadal::ir::json;
use hadal::ir::program::{Module, Program};
use hadal::ir::verify::Verified;
use hadal::isa::{Target, decode, text, valid};
use serde_json::{Value, json};

use super::load::{self, LowerArgs};
use crate::failure::Failure;
use crate::term::{Term, counted};

/// Verify a program, lower it and encode it to bundles.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hadal compile kernel.klr --target trn2 -o kernel.bin
  hadal compile program.bir.json --target trn1 --emit hex            one bundle a line, to standard output
  hadal compile program.bir.json --target trn2 --emit asm -o kernel.asm
  hadal compile program.bir.json --target trn2 --mode census         how many of each bundle
  hadal compile program.bir.json --target trn2 --mode check          the instruction set's own checks
  hadal compile kernel.klr --target trn2 --emit klr-json             the kernel as read, as JSON")]
pub(crate) struct CompileArgs {
    /// A .klr kernel or a .bir.json program; - for standard input.
    program: PathBuf,
    /// Where the output goes; - for standard output. Core N of several goes to OUT with .coreN before the
    /// extension.
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    output: PathBuf,
    /// What to write.
    #[arg(long, value_enum, value_name = "FORM", default_value = "bin")]
    emit: Emit,
    /// Generate output, check the bundles, or count them.
    #[arg(long, value_enum, value_name = "MODE", default_value = "generate")]
    mode: Mode,
    /// Write this core only.
    #[arg(long, value_name = "N")]
    core: Option<usize>,
    #[command(flatten)]
    lower: LowerArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// Bundles, 64 bytes each.
    Bin,
    /// One bundle a line.
    Hex,
    /// Assembly text; operators without a bundle are comments.
    Asm,
    /// The program after the passes, as JSON.
    Ir,
    /// A KLR kernel as read, as JSON.
    KlrJson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Write the output.
    Generate,
    /// Run the instruction set's checks on the bundles; write nothing.
    Check,
    /// Count the bundles by kind; write nothing.
    Census,
}

/// Runs the command.
pub(crate) fn run(args: &CompileArgs, term: Term) -> Result<(), Failure> {
    let to_stdout = files::is_stdout(&args.output);
    if args.mode == Mode::Generate && args.emit == Emit::Bin && to_stdout && std::io::stdout().is_terminal() {
        return Err(Failure::usage(
            "bundles are not written to a terminal",
            "give -o OUT.bin, or --emit hex or asm",
        ));
    }
    if args.mode == Mode::Generate {
        load::destinations(&[("-o".to_owned(), &args.output)], &[&args.program], term)?;
    }
    let (source, form) = load::open(&args.program)?;
    if args.mode == Mode::Generate && args.emit == Emit::KlrJson {
        if form != Form::Klr {
            return Err(Failure::WrongForm {
                name: source.name,
                form,
                wanted: "a KLR kernel when it emits klr-json",
                remedy: "give a .klr kernel, or --emit ir",
            });
        }
        let dump = format!("{:#}\n", load::klr_file(&source)?.to_json());
        load::put(&args.output, dump.as_bytes(), term)?;
        return report(args, std::slice::from_ref(&args.output), 0, term);
    }
    let module = load::module(&source, form, &args.lower)?;
    let verified = load::verified(module, &args.lower, term)?;
    if args.mode == Mode::Generate && args.emit == Emit::Ir {
        let ir = one_core(verified.module(), args.core)?;
        load::put(&args.output, json::write(&ir).as_bytes(), term)?;
        return report(args, std::slice::from_ref(&args.output), 0, term);
    }
    let lowered = lower(&verified)?;
    let cores = chosen(&lowered, args.core)?;
    match args.mode {
        Mode::Generate => generate(args, &verified, &cores, term),
        Mode::Check => check(args, &verified, &cores, term),
        Mode::Census => census(args, &cores, term),
    }
}

/// Encodes a verified module.
pub(crate) fn lower(verified: &Verified) -> Result<Lowered, Failure> {
    encode::lower(verified).map_err(|e| Failure::System { text: e.to_string() })
}

type Cores<'a> = Vec<(usize, &'a Stream)>;

fn chosen(lowered: &Lowered, core: Option<usize>) -> Result<Cores<'_>, Failure> {
    match core {
        None => Ok(lowered.cores.iter().enumerate().collect()),
        Some(n) => match lowered.cores.get(n) {
            Some(stream) => Ok(vec![(n, stream)]),
            None => Err(no_core(n, lowered.cores.len())),
        },
    }
}

fn no_core(n: usize, cores: usize) -> Failure {
    Failure::usage(
        format!("the program has no core {n}"),
        format!("give --core 0 to {}", cores.saturating_sub(1)),
    )
}

fn one_core(module: &Module, core: Option<usize>) -> Result<Module, Failure> {
    let Some(n) = core else { return Ok(module.clone()) };
    let program = module.cores.get(n).ok_or_else(|| no_core(n, module.cores.len()))?;
    Ok(Module { name: module.name.clone(), cores: vec![program.clone()], notes: Vec::new() })
}

fn generate(args: &CompileArgs, verified: &Verified, cores: &Cores<'_>, term: Term) -> Result<(), Failure> {
    let to_stdout = files::is_stdout(&args.output);
    if to_stdout && cores.len() > 1 {
        return Err(Failure::usage(
            format!("{} cores cannot all go to standard output", cores.len()),
            "give -o OUT, or --core N",
        ));
    }
    let mut outputs = Vec::with_capacity(cores.len());
    for (core, stream) in cores {
        let words = stream.bundles().map(|b| &b.word);
        let bytes = match args.emit {
            Emit::Hex => load::to_hex(words).into_bytes(),
            Emit::Asm => listing(stream, verified.core(*core), args.lower.target).into_bytes(),
            Emit::Bin | Emit::Ir | Emit::KlrJson => load::to_bytes(words),
        };
        // A core asked for by number goes to the very file named.
        let path =
            if args.core.is_some() { args.output.clone() } else { load::for_core(&args.output, *core) };
        outputs.push((path, bytes));
    }
    for (path, bytes) in &outputs {
        load::put(path, bytes, term)?;
    }
    let bundles = cores.iter().map(|(_, s)| s.bundles().count()).sum();
    report(args, &outputs.into_iter().map(|o| o.0).collect::<Vec<_>>(), bundles, term)
}

/// Says what was written where; nothing when it went to standard output.
fn report(args: &CompileArgs, outputs: &[PathBuf], bundles: usize, term: Term) -> Result<(), Failure> {
    if files::is_stdout(&args.output) {
        return Ok(());
    }
    let names: Vec<String> = outputs.iter().map(|p| p.display().to_string()).collect();
    if term.json {
        return term.out_json(&json!({
            "target": args.lower.target.to_string(), "bundles": bundles, "outputs": names,
        }));
    }
    let what = if bundles == 0 {
        String::new()
    } else {
        format!(" ({} for {})", counted(bundles, "bundle"), args.lower.target)
    };
    term.say(&format!("wrote {}{what}", names.join(", ")));
    Ok(())
}

/// Assembly text of a stream; operators without a bundle are comments, so that the listing assembles.
pub(crate) fn listing(stream: &Stream, program: Option<&Program>, target: Target) -> String {
    let mut out = format!(".target {target}\n");
    for item in &stream.items {
        match item {
            Item::Bundle(b) => text::print_into(&mut out, &b.word, target),
            Item::Host(i) => match program.and_then(|p| p.instrs.get(*i)) {
                Some(instr) => out.push_str(&format!("; {} {} (no bundle)", instr.op.name(), instr.name)),
                None => out.push_str("; no bundle"),
            },
        }
        out.push('\n');
    }
    out
}

fn check(args: &CompileArgs, verified: &Verified, cores: &Cores<'_>, term: Term) -> Result<(), Failure> {
    let target = args.lower.target;
    let mut broken = Vec::new();
    let mut bundles = 0usize;
    for (core, stream) in cores {
        for (index, b) in stream.bundles().enumerate() {
            bundles += 1;
            let name = verified.core(*core).and_then(|p| p.instrs.get(b.instr)).map_or("", |i| &i.name);
            for v in valid::check(&b.word, target) {
                broken.push((*core, index, name.to_owned(), v));
            }
        }
    }
    if term.json {
        let list: Vec<Value> = broken
            .iter()
            .map(|(core, index, name, v)| {
                json!({
                    "core": core, "bundle": index, "instruction": name, "code": v.code, "byte": v.offset,
                    "field": v.field, "value": v.value, "text": v.message,
                })
            })
            .collect();
        term.out_json(&json!({"target": target.to_string(), "bundles": bundles, "violations": list}))?;
    } else if broken.is_empty() {
        term.out(&format!("{}: every check of {target} passes\n", counted(bundles, "bundle")))?;
    }
    if broken.is_empty() {
        return Ok(());
    }
    let lines = broken.iter().map(|(core, index, name, v)| {
        format!(
            "error[{}]: core {core}, bundle {index} ({name}), byte {:02x} ({}) is {:#04x}: {}",
            v.code, v.offset, v.field, v.value, v.message
        )
    });
    Err(Failure::Checks(lines.collect()))
}

/// How many bundles of each kind a stream holds, by opcode.
pub(crate) fn count(stream: &Stream, target: Target) -> BTreeMap<(u8, &'static str), usize> {
    let mut counts = BTreeMap::new();
    for b in stream.bundles() {
        let name = decode(&b.word, target).inst.info().map_or("unknown", |i| i.name);
        *counts.entry((b.word.opcode(), name)).or_insert(0) += 1;
    }
    counts
}

fn census(args: &CompileArgs, cores: &Cores<'_>, term: Term) -> Result<(), Failure> {
    let target = args.lower.target;
    let host = |s: &Stream| s.items.iter().filter(|i| matches!(i, Item::Host(_))).count();
    if term.json {
        let list: Vec<Value> = cores
            .iter()
            .map(|(core, s)| {
                let opcodes: Vec<Value> = count(s, target)
                    .into_iter()
                    .map(|((opcode, name), n)| json!({"opcode": opcode, "name": name, "count": n}))
                    .collect();
                json!({
                    "core": core, "bundles": s.bundles().count(), "opcodes": opcodes,
                    "without_bundle": host(s), "loads_elided": s.loads_elided,
                })
            })
            .collect();
        return term.out_json(&json!({"target": target.to_string(), "cores": list}));
    }
    let mut out = String::new();
    for (core, s) in cores {
        if cores.len() > 1 {
            out.push_str(&format!("core {core}\n"));
        }
        for ((opcode, name), n) in count(s, target) {
            out.push_str(&format!("{opcode:02x}  {name:<16} {n:>8}\n"));
        }
        out.push_str(&format!("    {:<16} {:>8}\n", "bundles", s.bundles().count()));
        out.push_str(&format!("    {:<16} {:>8}\n", "without bundle", host(s)));
        out.push_str(&format!("    {:<16} {:>8}\n", "loads elided", s.loads_elided));
    }
    term.out(&out)
}
