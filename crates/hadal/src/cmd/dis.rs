//! `hadal dis`: bundles to text.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hadal::isa::{self, FieldRow, Target, Word, text};
use serde_json::{Value, json};

use super::load;
use crate::failure::Failure;
use crate::term::Term;

/// Disassemble bundles.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hadal dis kernel.bin --target trn2
  hadal dis kernel.hex --target trn2 --fields      every byte: name, value, meaning, confidence
  hadal dis kernel.bin --target trn2 --style profile
  hadal dis kernel.bin --target trn2 --check       the checks of the instruction set; exit code 4")]
pub(crate) struct DisArgs {
    /// Bundles: a .bin, hex text (one a line), or assembly text; - for standard input.
    file: PathBuf,
    /// trn1, trn2 or trn3; also gen2..gen4, core-v2..core-v4, sunda, cayman, mariana, level:N.
    #[arg(short, long, value_name = "T")]
    target: Target,
    /// Assembly text that `asm` reads back, or the profiler's syntax.
    #[arg(long, value_enum, value_name = "STYLE", default_value = "asm")]
    style: Style,
    /// Show every byte with name, value, meaning and confidence.
    #[arg(long)]
    fields: bool,
    /// Run the checks of the instruction set on every bundle.
    #[arg(long)]
    check: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Style {
    Asm,
    Profile,
}

/// Runs the command.
pub(crate) fn run(args: &DisArgs, term: Term) -> Result<(), Failure> {
    let (source, form) = load::open(&args.file)?;
    let words = load::words(&source, form, args.target)?;
    if term.json {
        let list: Vec<Value> = words.iter().enumerate().map(|(i, w)| as_json(i, w, args)).collect();
        term.out_json(&json!({"target": args.target.to_string(), "bundles": list}))?;
    } else {
        term.out(&listing(&words, args))?;
    }
    if args.check { check(&words, args.target) } else { Ok(()) }
}

fn line(out: &mut String, word: &Word, args: &DisArgs) {
    match args.style {
        Style::Asm => text::print_into(out, word, args.target),
        Style::Profile => text::print_profile_into(out, word, args.target),
    }
}

fn listing(words: &[Word], args: &DisArgs) -> String {
    let mut out = String::with_capacity(words.len().saturating_mul(160));
    if args.style == Style::Asm {
        out.push_str(&format!(".target {}\n", args.target));
    }
    for word in words {
        line(&mut out, word, args);
        out.push('\n');
        if args.fields {
            isa::fields(word, args.target).iter().for_each(|row| field(&mut out, row));
        }
    }
    out
}

/// One row of the field listing, as a comment, so that the listing still assembles.
fn field(out: &mut String, row: &FieldRow) {
    let place = match (row.bit, row.width) {
        (Some(bit), _) => format!("{:02x}.{bit}", row.offset),
        (None, 1) => format!("{:02x}", row.offset),
        (None, width) => format!("{:02x}..{:02x}", row.offset, row.offset + width - 1),
    };
    let digits = row.width.min(8) * 2;
    let confidence = match row.decision {
        Some(d) => format!("{} (D-{d:02})", row.confidence),
        None => row.confidence.to_string(),
    };
    out.push_str(&format!(
        ";   {place:<6}  {:<24} {:<32} {:>18}  {:<16} {}\n",
        row.key,
        row.name.unwrap_or("-"),
        format!("0x{:0digits$x}", row.value),
        confidence,
        row.meaning,
    ));
}

fn as_json(index: usize, word: &Word, args: &DisArgs) -> Value {
    let mut print = String::new();
    line(&mut print, word, args);
    let mut object = json!({"index": index, "hex": word.to_string(), "text": print});
    if args.fields {
        let rows: Vec<Value> = isa::fields(word, args.target).iter().map(field_json).collect();
        if let Some(map) = object.as_object_mut() {
            map.insert("fields".to_owned(), Value::from(rows));
        }
    }
    object
}

fn field_json(row: &FieldRow) -> Value {
    json!({
        "offset": row.offset, "width": row.width, "bit": row.bit, "key": row.key, "name": row.name,
        "value": row.value, "meaning": row.meaning, "confidence": row.confidence.name(),
        "decision": row.decision.map(|d| format!("D-{d:02}")),
    })
}

/// The checks of the instruction set on every bundle; all that fail, at once.
fn check(words: &[Word], target: Target) -> Result<(), Failure> {
    let mut broken = Vec::new();
    for (index, word) in words.iter().enumerate() {
        for v in isa::valid::check(word, target) {
            broken.push(format!(
                "error[{}]: bundle {index}, byte {:02x} ({}) is {:#04x}: {}",
                v.code, v.offset, v.field, v.value, v.message
            ));
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(Failure::Checks(broken)) }
}
