//! `hadal mx report`: what quantizing would cost, by tensor, format and rule.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use glob::Pattern;
use hadal::files;
use hadal::num::mx::{MxFormat, ScaleRule};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::input::{Bits, Input, Left, Picked};
use super::plot::{self, Image};
use super::progress::Progress;
use super::stats::Stats;
use super::{format, pattern, rows_at_once, rule};
use crate::failure::Failure;
use crate::term::Term;

/// Elements measured at a time; every format and rule works on the same piece.
const AT_ONCE: usize = 1 << 17;

/// Measure what quantizing does to tensors, by format and rule, without writing them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hadal mx report w.npy
  hadal mx report w.npy --from bfloat16 --format e4m3fn --rule ocp --rule hardware
  hadal mx report model.safetensors --tensor '*proj.weight' --json
  hadal mx report model.safetensors --plot error.svg        also .png

The relative error of an element x that becomes y is |y - x| / |x|, over finite x that are not 0; an element flushed
to zero counts 1. SNR is 10 log10(sum x^2 / sum (y - x)^2). Finite elements of blocks whose scale is NaN (rule ocp)
have no error and are counted as lost.")]
pub(super) struct ReportArgs {
    /// A .npy or .safetensors file; - for standard input.
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// What an unsigned array's bits are.
    #[arg(long, value_enum, value_name = "bfloat16|float16|float32", hide_possible_values = true)]
    from: Option<Bits>,
    /// Element format; may be repeated [default: all].
    #[arg(long, value_name = "e4m3fn|e5m2|e2m1", value_parser = format)]
    format: Vec<MxFormat>,
    /// Scale rule; may be repeated [default: all].
    #[arg(long, value_name = "reference|reference-alt|hardware|ocp", value_parser = rule)]
    rule: Vec<ScaleRule>,
    /// Tensors of a .safetensors to measure: * any characters, ? one, [ab] either [default: all that divide into blocks].
    #[arg(long, value_name = "GLOB", value_parser = pattern)]
    tensor: Option<Pattern>,
    /// Draw the SNR of every tensor, format and rule.
    #[arg(long, value_name = "FILE.svg|png", value_parser = plot::image)]
    plot: Option<Image>,
}

/// What one tensor came out as.
pub(super) struct Measured {
    pub(super) name: String,
    dtype: String,
    shape: [usize; 2],
    /// Elements that are infinite or NaN.
    not_finite: u64,
    pub(super) results: Vec<Measure>,
}

/// One format and rule.
pub(super) struct Measure {
    pub(super) format: MxFormat,
    pub(super) rule: ScaleRule,
    pub(super) stats: Stats,
}

/// Runs the command.
pub(super) fn run(args: &ReportArgs, term: Term) -> Result<(), Failure> {
    let mut input = Input::open(&args.input, args.from)?;
    let (picked, left) = input.pick(args.tensor.as_ref())?;
    let bytes = picked.iter().map(|p| (p.rows * p.cols * p.dtype.bytes()) as u64).sum();
    let mut progress = Progress::new(bytes, term);
    let mut measured = Vec::with_capacity(picked.len());
    for p in picked {
        measured.push(measure(&mut input, p, args, &mut progress)?);
    }
    drop(progress);
    if let Some(image) = &args.plot {
        let drawn = plot::draw(image, &measured).map_err(|text| Failure::System {
            text: format!("cannot draw {}: {text}", image.path.display()),
        })?;
        files::write(&image.path, &drawn)?;
    }
    if term.json {
        term.out_json(&as_json(&input, args, &measured, &left))
    } else {
        term.out(&table(&input, args, &measured, &left))?;
        if let Some(image) = &args.plot {
            term.say(&format!("wrote {}", image.path.display()));
        }
        Ok(())
    }
}

fn measure(
    input: &mut Input,
    picked: Picked,
    args: &ReportArgs,
    progress: &mut Progress,
) -> Result<Measured, Failure> {
    let Picked { index, rows, cols, dtype } = picked;
    let formats = MxFormat::ALL.into_iter().filter(|f| args.format.is_empty() || args.format.contains(f));
    let mut results: Vec<Measure> = formats
        .flat_map(|format| {
            let rules = ScaleRule::ALL.into_iter().filter(|r| args.rule.is_empty() || args.rule.contains(r));
            rules.map(move |rule| Measure { format, rule, stats: Stats::default() })
        })
        .collect();
    let mut not_finite = 0;
    let at_once = rows_at_once(cols, AT_ONCE).min(rows.max(8));
    let mut x = Vec::new();
    // Rows without elements may be more than anyone can count.
    for first in (0..if cols == 0 { 0 } else { rows }).step_by(at_once) {
        let count = at_once.min(rows - first);
        x.resize(count * cols, 0.0f32);
        input.floats(picked, first * cols, &mut x)?;
        not_finite += x.iter().filter(|v| !v.is_finite()).count() as u64;
        // Each sum stays on one thread and in element order.
        results
            .par_iter_mut()
            .try_for_each(|r| r.stats.add(&x, count, cols, r.format, r.rule))
            .map_err(|e| input.fail(index, e.to_string(), "check the file"))?;
        progress.advance((count * cols * dtype.bytes()) as u64);
    }
    let tensor = input.tensor(index);
    Ok(Measured {
        name: tensor.map_or_else(String::new, |t| t.name.clone()),
        dtype: tensor.map_or_else(String::new, |t| t.spelled.clone()),
        shape: [rows, cols],
        not_finite,
        results,
    })
}

fn as_json(input: &Input, args: &ReportArgs, measured: &[Measured], left: &[Left]) -> Value {
    let tensors: Vec<Value> = measured
        .iter()
        .map(|m| {
            let results: Vec<Value> = m
                .results
                .iter()
                .map(|r| {
                    let s = &r.stats;
                    json!({
                        "format": r.format.format().name(), "rule": r.rule.name(),
                        "max_relative_error": s.max, "mean_relative_error": s.mean(),
                        "snr_db": s.snr(), "exact": s.snr().is_none(),
                        "saturated": s.counts.saturated, "flushed": s.counts.flushed,
                        "nan": s.counts.nan, "nan_blocks": s.counts.nan_blocks, "lost": s.lost,
                    })
                })
                .collect();
            json!({
                "name": m.name, "dtype": m.dtype, "shape": m.shape, "elements": m.shape[0] * m.shape[1],
                "not_finite": m.not_finite, "results": results,
            })
        })
        .collect();
    let skipped: Vec<Value> = left
        .iter()
        .map(|l| json!({"name": input.tensor(l.index).map(|t| t.name.as_str()), "why": l.why}))
        .collect();
    json!({
        "input": input.name, "tensors": tensors, "skipped": skipped,
        "plot": args.plot.as_ref().map(|i| i.path.display().to_string()),
    })
}

fn table(input: &Input, args: &ReportArgs, measured: &[Measured], left: &[Left]) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    for m in measured {
        let name = if m.name.is_empty() { &input.name } else { &m.name };
        let not_finite =
            if m.not_finite > 0 { format!(", {} infinite or NaN", m.not_finite) } else { String::new() };
        let _ = writeln!(out, "{name}: {} {:?}{not_finite}", m.dtype, m.shape);
        let _ = writeln!(
            out,
            "  {:<13} {:<13} {:>10} {:>10} {:>8} {:>10} {:>10} {:>8} {:>8}",
            "format", "rule", "max rel", "mean rel", "SNR dB", "saturated", "flushed", "NaN", "lost"
        );
        for r in &m.results {
            let s = &r.stats;
            let snr = s.snr().map_or_else(|| "exact".to_owned(), |v| format!("{v:.2}"));
            let _ = writeln!(
                out,
                "  {:<13} {:<13} {:>10.3e} {:>10.3e} {snr:>8} {:>10} {:>10} {:>8} {:>8}",
                r.format,
                r.rule,
                s.max,
                s.mean(),
                s.counts.saturated,
                s.counts.flushed,
                s.counts.nan,
                s.lost
            );
        }
    }
    for l in left.iter().filter(|_| args.tensor.is_none()) {
        let name = input.tensor(l.index).map_or("", |t| t.name.as_str());
        let _ = writeln!(out, "{name}: left out: {}", l.why);
    }
    out
}
