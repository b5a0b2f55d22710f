//! What the page says in words: the program, what ran, the results, the rules in force.

use hadal::ir::encode::Lowered;
use hadal::sim::{Options, Stats};
use serde_json::{Value, json};

use crate::cmd::run::outputs::{Output, Results};
use crate::cmd::run::summary;
use crate::cmd::run::{Done, Which};
use crate::term::counted;

/// The words of a page.
pub(in crate::cmd::run) struct Facts {
    /// Label and text.
    pub(super) rows: Vec<(String, String)>,
    pub(super) outputs: Vec<Value>,
    pub(super) rules: Vec<String>,
    pub(super) notes: Vec<Value>,
}

/// Most inputs listed.
const MAX_INPUTS: usize = 12;
/// Most results listed.
const MAX_OUTPUTS: usize = 40;

/// The words for a program's run.
pub(in crate::cmd::run) fn of_program(done: &Done<'_>, results: &Results) -> Facts {
    let module = done.verified.module();
    let target = done.args.lower.target;
    let elided: usize = done.lowered.cores.iter().map(|s| s.loads_elided).sum();
    let mut rows = Vec::new();
    let mut row = |label: &str, text: String| rows.push((label.to_owned(), text));
    row("Program", module.name.clone());
    row("File", done.file.to_owned());
    row("Target", format!("{target}, {}", counted(module.cores.len(), "core")));
    row("Rule book", done.args.lower.profile_name().to_owned());
    row(
        "Executed",
        match done.args.executor {
            Which::Bundles => "bundles",
            Which::Ir => "instructions",
            Which::Both => "bundles and instructions; all memory agrees",
        }
        .to_owned(),
    );
    row("Instructions", summary::tally(summary::instructions(module)));
    let host = summary::without_bundle(done.lowered);
    if host > 0 {
        row("Without a bundle", format!("{} (data movement and helpers)", counted(host, "instruction")));
    }
    row("Bundles", summary::tally(summary::bundles(done.lowered)));
    let why = if elided > 0 { " (the array still held their tiles)" } else { "" };
    row("Loads elided", format!("{elided}{why}"));
    let inputs = summary::input_lines(done);
    let more = inputs.len().saturating_sub(MAX_INPUTS);
    for (i, input) in inputs.into_iter().enumerate().take(MAX_INPUTS) {
        row(if i == 0 { "Inputs" } else { "" }, input);
    }
    if more > 0 {
        row("", format!("and {more} more"));
    }
    let mut notes: Vec<Value> = module
        .notes
        .iter()
        .map(|n| {
            let place = n.pos.as_ref().map(|p| format!(" ({p})")).unwrap_or_default();
            json!({"kind": n.code, "text": format!("{}{place}", n.text)})
        })
        .collect();
    if done.run.stats.nan_suppressed > 0 {
        let text =
            format!("QuantizeMx turned {} NaN elements into zero codes", done.run.stats.nan_suppressed);
        notes.push(json!({"kind": "D-33", "text": text}));
    }
    if results.outputs.len() > MAX_OUTPUTS {
        let text = format!("the first {MAX_OUTPUTS} of {} results are listed", results.outputs.len());
        notes.push(json!({"kind": "view", "text": text}));
    }
    Facts {
        rows,
        outputs: results.outputs.iter().take(MAX_OUTPUTS).map(|o| output(o, results.declared)).collect(),
        rules: done.options.rules(target),
        notes,
    }
}

fn output(o: &Output, declared: bool) -> Value {
    json!({
        "name": o.name, "core": o.core, "space": o.space.name(), "dtype": o.dtype.name(),
        "shape": o.bits.shape, "declared": declared,
        "min": o.range.span.map(|s| summary::short(s.0)), "max": o.range.span.map(|s| summary::short(s.1)),
        "nan": o.range.nans, "unwritten": o.unwritten,
    })
}

/// The words for a run of bare bundles.
pub(in crate::cmd::run) fn of_bundles(lowered: &Lowered, stats: &Stats, options: &Options) -> Facts {
    let rows = [
        ("Target", lowered.target.to_string()),
        ("Bundles", summary::tally(summary::bundles(lowered))),
        (
            "Executed",
            format!("{}, {}", counted(stats.loads, "load"), counted(stats.matmuls, "matmul writeback")),
        ),
    ];
    Facts {
        rows: rows.into_iter().map(|(l, t)| (l.to_owned(), t)).collect(),
        outputs: Vec::new(),
        rules: options.rules(lowered.target),
        notes: vec![json!({
            "kind": "view",
            "text": "bare bundles have no named locations and no instructions: there are no memory maps and no \
                     results, and the one-zero hint of float32 matmuls is unknown",
        })],
    }
}
