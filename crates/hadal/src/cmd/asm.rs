//! `hadal asm`: assembly text to bundles.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hadal::files;
use hadal::input::{self, Form};
use hadal::isa::{Target, text};
use serde_json::json;

use super::load;
use crate::failure::Failure;
use crate::term::{Term, counted};

/// Assemble what `dis` prints.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hadal asm kernel.asm --target trn2 -o kernel.bin
  hadal dis kernel.bin --target trn2 | hadal asm - -o same.bin

A listing that begins with a .target line needs no --target.")]
pub(crate) struct AsmArgs {
    /// Assembly text (also hex text or bundles, which are converted); - for standard input.
    file: PathBuf,
    /// The target; the default is the listing's .target line.
    #[arg(short, long, value_name = "T")]
    target: Option<Target>,
    /// Where the bundles go; - for standard output.
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    output: PathBuf,
    /// What to write.
    #[arg(long, value_enum, value_name = "FORM", default_value = "bin")]
    emit: Emit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// Bundles, 64 bytes each.
    Bin,
    /// One bundle a line.
    Hex,
}

/// Runs the command.
pub(crate) fn run(args: &AsmArgs, term: Term) -> Result<(), Failure> {
    load::destinations(&[("-o".to_owned(), &args.output)], &[&args.file], term)?;
    let (source, form) = load::open(&args.file)?;
    let stated = match form {
        Form::Assembly => text::listing_target(input::text(&source.bytes).unwrap_or(""))
            .map_err(|error| Failure::Asm { name: source.name.clone(), error })?,
        _ => None,
    };
    let Some(target) = args.target.or(stated) else {
        return Err(Failure::usage(
            "no target: neither --target nor a .target line in the listing",
            "give --target trn1, trn2 or trn3",
        ));
    };
    let words = load::words(&source, form, target)?;
    let to_stdout = files::is_stdout(&args.output);
    if args.emit == Emit::Bin && to_stdout && std::io::stdout().is_terminal() {
        return Err(Failure::usage(
            "bundles are not written to a terminal",
            "give -o OUT.bin, or --emit hex",
        ));
    }
    match args.emit {
        Emit::Bin => load::put(&args.output, &load::to_bytes(words.iter()), term)?,
        Emit::Hex => load::put(&args.output, load::to_hex(words.iter()).as_bytes(), term)?,
    }
    if to_stdout {
        return Ok(());
    }
    if term.json {
        return term.out_json(&json!({
            "target": target.to_string(), "bundles": words.len(), "output": args.output.display().to_string(),
        }));
    }
    term.say(&format!("wrote {} ({} for {target})", args.output.display(), counted(words.len(), "bundle")));
    Ok(())
}
