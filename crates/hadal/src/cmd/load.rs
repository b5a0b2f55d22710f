//! From a file to a program or to bundles; the options of every command that lowers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use hadal::files::{self, Source};
use hadal::input::{self, Form};
use hadal::ir::program::{Module, Note};
use hadal::ir::verify::{LowerOptions, Profile, Verified};
use hadal::ir::{json, klr, verify};
use hadal::isa::{self, Target, Word};

use crate::failure::Failure;
use crate::term::Term;

/// Options of every command that lowers.
#[derive(Debug, Clone, Args)]
pub(crate) struct LowerArgs {
    /// trn1, trn2 or trn3; also gen2..gen4, core-v2..core-v4, sunda, cayman, mariana, level:N.
    #[arg(short, long, value_name = "T")]
    pub(crate) target: Target,
    /// The rule book: what the hardware documentation allows, or what the compiler build accepts.
    #[arg(long, value_enum, value_name = "NAME", default_value = "hardware", help_heading = "Lowering")]
    profile: ProfileName,
    /// Emit every stationary load, also of weights that the array already holds.
    #[arg(long, help_heading = "Lowering")]
    no_weight_cache: bool,
    /// Allow encodings that the references only infer (DoubleColumn, DoublePixel).
    #[arg(long, help_heading = "Lowering")]
    allow_inferred: bool,
    /// What a KLR transpose with a stationary identity becomes (D-31).
    #[arg(long, value_enum, value_name = "HOW", default_value = "refuse", help_heading = "Lowering")]
    klr_transpose: KlrTranspose,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ProfileName {
    Hardware,
    #[value(name = "neuronx-cc-2.24")]
    NeuronxCc224,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum KlrTranspose {
    /// An error.
    Refuse,
    /// A transpose of the moving operand.
    Moving,
}

impl LowerArgs {
    /// The choices as the library takes them.
    pub(crate) fn options(&self) -> LowerOptions {
        LowerOptions {
            target: self.target,
            profile: match self.profile {
                ProfileName::Hardware => Profile::Hardware,
                ProfileName::NeuronxCc224 => Profile::NeuronxCc224,
            },
            weight_cache: !self.no_weight_cache,
            allow_inferred: self.allow_inferred,
            unwritten_reads: false,
        }
    }

    /// The rule book's name.
    pub(crate) fn profile_name(&self) -> &'static str {
        match self.profile {
            ProfileName::Hardware => "hardware",
            ProfileName::NeuronxCc224 => "neuronx-cc-2.24",
        }
    }
}

/// Reads an input and recognises it.
pub(crate) fn open(path: &Path) -> Result<(Source, Form), Failure> {
    let source = files::read(path)?;
    match input::recognise(&source) {
        Some(form) if path.extension().is_some_and(|e| e == "klr") && is_a_dump(&source, form) => {
            Ok((source, Form::Klr))
        }
        Some(form) => Ok((source, form)),
        None => Err(Failure::Unrecognised { name: source.name, bytes: source.bytes.len() }),
    }
}

/// Whether text is of no form of ours. In a file called .klr it is most often a dump of a kernel, and the KLR
/// reader says which.
fn is_a_dump(source: &Source, form: Form) -> bool {
    let text = input::text(&source.bytes).unwrap_or("");
    match form {
        Form::Json => !text.contains("\"hadal-bir\""),
        Form::Assembly => {
            let first = text.split_whitespace().next().unwrap_or("");
            !first.starts_with(['.', ';', '/']) && !isa::table::BUNDLES.iter().any(|b| b.name == first)
        }
        Form::Klr | Form::Bundles | Form::Hex => false,
    }
}

/// Reads a KLR file.
pub(crate) fn klr_file(source: &Source) -> Result<klr::File, Failure> {
    klr::File::parse(&source.bytes).map_err(|error| Failure::Klr { name: source.name.clone(), error })
}

/// The program of an input that holds one.
pub(crate) fn module(source: &Source, form: Form, args: &LowerArgs) -> Result<Module, Failure> {
    match form {
        Form::Json => Ok(json::parse(input::text(&source.bytes).unwrap_or(""), &source.name)?),
        Form::Klr => {
            let file = klr_file(source)?;
            let transpose = match args.klr_transpose {
                KlrTranspose::Refuse => klr::KlrTranspose::Refuse,
                KlrTranspose::Moving => klr::KlrTranspose::Moving,
            };
            klr::lower(&file, transpose).map_err(Failure::Rules)
        }
        form => Err(Failure::WrongForm {
            name: source.name.clone(),
            form,
            wanted: "a program",
            remedy: "give a .klr kernel or a .bir.json program; bundles go to run, dis and asm",
        }),
    }
}

/// Verifies a program; its notes are said.
pub(crate) fn verified(module: Module, args: &LowerArgs, term: Term) -> Result<Verified, Failure> {
    verified_under(module, args.options(), term)
}

/// Verifies a program under given options; its notes and the verifier's are said.
pub(crate) fn verified_under(module: Module, options: LowerOptions, term: Term) -> Result<Verified, Failure> {
    module.notes.iter().for_each(|n| term.say(&note(n)));
    let known = module.notes.len();
    let verified = verify::verify(module, options).map_err(Failure::Rules)?;
    verified.module().notes.iter().skip(known).for_each(|n| term.say(&note(n)));
    Ok(verified)
}

fn note(n: &Note) -> String {
    match &n.pos {
        Some(pos) => format!("note[{}]: {}\n  --> {pos}", n.code, n.text),
        None => format!("note[{}]: {}", n.code, n.text),
    }
}

/// The bundles of an input that holds some.
pub(crate) fn words(source: &Source, form: Form, target: Target) -> Result<Vec<Word>, Failure> {
    let name = || source.name.clone();
    let text = || input::text(&source.bytes).unwrap_or("");
    match form {
        Form::Bundles => {
            isa::words_from_bytes(&source.bytes).map_err(|error| Failure::Word { name: name(), error })
        }
        Form::Hex => isa::words_from_hex(text()).map_err(|error| Failure::Word { name: name(), error }),
        Form::Assembly => {
            isa::text::parse_listing(text(), target).map_err(|error| Failure::Asm { name: name(), error })
        }
        form => Err(Failure::WrongForm {
            name: name(),
            form,
            wanted: "bundles",
            remedy: "lower it first: hadal compile PROGRAM --target T -o OUT.bin",
        }),
    }
}

/// The bytes of bundles, back to back.
pub(crate) fn to_bytes<'a>(words: impl Iterator<Item = &'a Word>) -> Vec<u8> {
    words.flat_map(|w| w.0).collect()
}

/// Bundles in hexadecimal, one a line.
pub(crate) fn to_hex<'a>(words: impl Iterator<Item = &'a Word>) -> String {
    words.map(|w| format!("{w}\n")).collect()
}

/// `OUT` for core 0, `OUT` with `.coreN` before the extension for the others.
pub(crate) fn for_core(path: &Path, core: usize) -> PathBuf {
    if core == 0 {
        return path.to_path_buf();
    }
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push(format!(".core{core}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Refuses, before any work, results that would run into one another or over an input, or that could not be
/// written: `outputs` are the options given and where they go.
///
/// Standard output takes one of them, and none when it already carries the JSON.
pub(crate) fn destinations(outputs: &[(String, &Path)], inputs: &[&Path], term: Term) -> Result<(), Failure> {
    distinct(outputs, inputs, term)?;
    outputs.iter().try_for_each(|(_, path)| Ok(files::check_writable(path)?))
}

/// The part of [`destinations`] that is about names.
pub(crate) fn distinct(outputs: &[(String, &Path)], inputs: &[&Path], term: Term) -> Result<(), Failure> {
    let place = |p: &Path| if files::is_stdout(p) { PathBuf::from("-") } else { files::real(p) };
    let inputs: Vec<PathBuf> =
        inputs.iter().filter(|p| **p != Path::new("-")).map(|p| files::real(p)).collect();
    let mut taken: BTreeMap<PathBuf, &str> = BTreeMap::new();
    for (option, path) in outputs {
        if files::is_stdout(path) && term.json {
            return Err(Failure::usage(
                format!("{option} {} and --json both write to standard output", path.display()),
                format!("give {option} a file, or leave --json out"),
            ));
        }
        let place = place(path);
        // A device can be read and written.
        if inputs.contains(&place) && std::fs::metadata(&place).is_ok_and(|m| m.is_file()) {
            return Err(Failure::usage(
                format!("{option} would write over the input {}", path.display()),
                "name another file",
            ));
        }
        if let Some(other) = taken.insert(place, option) {
            let what = if files::is_stdout(path) {
                "standard output".to_owned()
            } else {
                path.display().to_string()
            };
            return Err(Failure::usage(
                format!("{other} and {option} both write to {what}"),
                "give each a file of its own",
            ));
        }
    }
    Ok(())
}

/// Writes an output file, or standard output for `-`.
pub(crate) fn put(path: &Path, bytes: &[u8], term: Term) -> Result<(), Failure> {
    if files::is_stdout(path) { term.out_bytes(bytes) } else { Ok(files::write(path, bytes)?) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_decides_nothing_about_our_own_forms() {
        let dump = |text: &str| {
            let source = Source { name: "x.klr".to_owned(), bytes: text.as_bytes().to_vec() };
            input::recognise(&source).map(|form| is_a_dump(&source, form))
        };
        assert_eq!(dump("{\"format\": \"hadal-bir\"}"), Some(false));
        assert_eq!(dump("Matmul rows=3"), Some(false));
        assert_eq!(dump("; a note"), Some(false));
        assert_eq!(dump("{\"name\": \"kernel\"}"), Some(true));
        assert_eq!(dump("Kernel(name=k)"), Some(true));
    }

    #[test]
    fn core_names() {
        assert_eq!(for_core(Path::new("d/a.trn2.hex"), 0), Path::new("d/a.trn2.hex"));
        assert_eq!(for_core(Path::new("d/a.trn2.hex"), 1), Path::new("d/a.trn2.core1.hex"));
        assert_eq!(for_core(Path::new("a"), 2), Path::new("a.core2"));
    }
}
