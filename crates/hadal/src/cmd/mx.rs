//! `hadal mx`: tensors in blocks that share a power-of-two scale.

mod audit;
mod dequantize;
mod input;
mod plot;
mod progress;
mod quantize;
mod report;
mod stats;

use clap::{Args, Subcommand};
use glob::Pattern;
use hadal::num::mx::{MxFormat, ScaleOffset, ScaleRule};

use crate::failure::Failure;
use crate::term::Term;

/// Quantize tensors to MX blocks, turn them back, measure the error, and find FP8 codes that change meaning.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hadal mx quantize w.npy -o w                                  e4m3fn, rule reference
  hadal mx quantize model.safetensors --tensor '*proj.weight' -o model-mx
  hadal mx dequantize w.data.npy w.scale.npy --format e4m3fn -o back.npy
  hadal mx report w.npy --plot error.svg
  hadal mx audit model.safetensors --target trn2

A block is 8 rows by 4 consecutive elements; its scale is one byte s for 2^(s - 127).")]
pub(crate) struct MxArgs {
    #[command(subcommand)]
    command: MxCommand,
}

#[derive(Debug, Subcommand)]
enum MxCommand {
    Quantize(quantize::QuantizeArgs),
    Dequantize(dequantize::DequantizeArgs),
    Report(report::ReportArgs),
    Audit(audit::AuditArgs),
}

/// Runs the command.
pub(crate) fn run(args: &MxArgs, term: Term) -> Result<(), Failure> {
    match &args.command {
        MxCommand::Quantize(args) => quantize::run(args, term),
        MxCommand::Dequantize(args) => dequantize::run(args, term),
        MxCommand::Report(args) => report::run(args, term),
        MxCommand::Audit(args) => audit::run(args, term),
    }
}

/// Metadata key under which a quantized file says how it was made.
const NOTE: &str = "hadal.mx";

/// Rows of a tensor that are worked on at a time: whole blocks of about `elements` elements, 8 at least.
fn rows_at_once(cols: usize, elements: usize) -> usize {
    (elements / cols.max(1)).max(8) / 8 * 8
}

fn format(name: &str) -> Result<MxFormat, String> {
    let name = name.strip_suffix("_x4").unwrap_or(name);
    MxFormat::ALL
        .into_iter()
        .find(|f| f.format().name() == name || short(*f) == name)
        .ok_or_else(|| "use e4m3fn, e5m2 or e2m1".to_owned())
}

/// The format's name as options spell it.
fn short(format: MxFormat) -> &'static str {
    match format {
        MxFormat::Float4E2m1fn => "e2m1",
        MxFormat::Float8E4m3fn => "e4m3fn",
        MxFormat::Float8E5m2 => "e5m2",
    }
}

fn rule(name: &str) -> Result<ScaleRule, String> {
    name.parse().map_err(|_| "use reference, reference-alt, hardware or ocp".to_owned())
}

fn scale_partition(text: &str) -> Result<ScaleOffset, String> {
    let offset = text.parse().ok().and_then(|n| ScaleOffset::new(n).ok());
    offset.ok_or_else(|| "use 0, 4, 8 or 12".to_owned())
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::new(text).map_err(|e| format!("{} at character {}", e.msg, e.pos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(format("float4_e2m1fn_x4"), Ok(MxFormat::Float4E2m1fn));
        for f in MxFormat::ALL {
            assert_eq!(format(short(f)), Ok(f));
        }
        assert!(format("e4m3").is_err(), "legacy e4m3 forms no MX blocks");
    }

    #[test]
    fn pieces_are_whole_blocks() {
        assert_eq!(rows_at_once(64, 1024), 16);
        assert_eq!(rows_at_once(100, 1024), 8);
        assert_eq!(rows_at_once(1 << 40, 1024), 8);
        assert_eq!(rows_at_once(0, 1024), 1024);
    }
}
