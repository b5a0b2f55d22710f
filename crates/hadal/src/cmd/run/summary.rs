//! What a run prints.

use std::collections::BTreeMap;

use hadal::ir::encode::{Item, Lowered};
use hadal::ir::program::Module;
use hadal::isa::Target;
use hadal::sim::bind::{self, InputSpec};
use hadal::sim::cost::{self, Cost};
use hadal::sim::{Options, Stats};
use serde_json::{Value, json};

use super::map;
use super::outputs::{Output, Results};
use super::{Done, RunArgs, Which, views};
use crate::cmd::compile;
use crate::failure::Failure;
use crate::term::{Term, counted};

/// A line of the summary: a label in its own column.
fn row(out: &mut String, label: &str, text: &str) {
    out.push_str(&format!("{label:<13}{text}\n"));
}

/// Prints the summary of a program's run.
pub(super) fn print(done: &Done<'_>, results: &Results, term: Term) -> Result<(), Failure> {
    let costs = costs(done.lowered, Some(done.verified.module()));
    if term.json {
        return term.out_json(&as_json(done, results, &costs));
    }
    if term.quiet || views::to_stdout(done.args) {
        return Ok(());
    }
    let module = done.verified.module();
    let target = done.args.lower.target;
    let mut out = String::new();
    row(&mut out, "kernel", &format!("{} ({})", module.name, done.file));
    row(
        &mut out,
        "target",
        &format!(
            "{target}, {}, rules of profile {}",
            counted(module.cores.len(), "core"),
            done.args.lower.profile_name()
        ),
    );
    let executed = match done.args.executor {
        Which::Bundles => "bundles",
        Which::Ir => "instructions",
        Which::Both => "bundles and instructions; all memory agrees",
    };
    row(&mut out, "executed", executed);
    row(&mut out, "instructions", &tally(instructions(module)));
    let elided = done.lowered.cores.iter().map(|s| s.loads_elided).sum();
    let encoded = format!("{}; {} elided", tally(bundles(done.lowered)), counted(elided, "load"));
    row(&mut out, "bundles", &encoded);
    let host = without_bundle(done.lowered);
    if host > 0 {
        row(
            &mut out,
            "",
            &format!("{} without a bundle (data movement and helpers)", counted(host, "instruction")),
        );
    }
    estimate(&mut out, &costs);
    if done.run.stats.nan_suppressed > 0 {
        row(
            &mut out,
            "note",
            &format!(
                "QuantizeMx turned {} NaN elements into zero codes (D-33)",
                done.run.stats.nan_suppressed
            ),
        );
    }
    inputs(&mut out, done);
    output_rows(&mut out, results);
    for (name, path) in &done.args.dump {
        row(&mut out, "dump", &format!("{name} -> {}", path.display()));
    }
    view_rows(&mut out, done.args);
    if done.args.rules {
        rules(&mut out, &done.options, target);
    }
    if done.args.map {
        out.push_str(&map::text(module, target));
    }
    term.out(&out)
}

/// Prints the summary of a run of bare bundles.
pub(super) fn print_bundles(
    args: &RunArgs,
    file: &str,
    lowered: &Lowered,
    stats: &Stats,
    options: &Options,
    term: Term,
) -> Result<(), Failure> {
    let target = args.lower.target;
    let costs = costs(lowered, None);
    if term.json {
        let mut value = json!({
            "file": file, "target": target.to_string(), "bundles": bundles(lowered),
            "steps": stats.steps, "loads": stats.loads, "matmuls": stats.matmuls,
            "estimate": costs.iter().map(cost_json).collect::<Vec<_>>(),
        });
        if args.rules {
            add(&mut value, "rules", Value::from(options.rules(target)));
        }
        add_views(&mut value, args);
        return term.out_json(&value);
    }
    if term.quiet || views::to_stdout(args) {
        return Ok(());
    }
    let mut out = String::new();
    row(&mut out, "bundles", &format!("{} ({file})", tally(bundles(lowered))));
    row(&mut out, "target", &target.to_string());
    row(
        &mut out,
        "executed",
        &format!("{}, {}", counted(stats.loads, "load"), counted(stats.matmuls, "matmul writeback")),
    );
    estimate(&mut out, &costs);
    view_rows(&mut out, args);
    if args.rules {
        rules(&mut out, options, target);
    }
    term.out(&out)
}

/// `5: Matmult 4, Memset 1`.
pub(super) fn tally(counts: BTreeMap<&'static str, usize>) -> String {
    let total: usize = counts.values().sum();
    let kinds: Vec<String> = counts.iter().map(|(name, n)| format!("{name} {n}")).collect();
    if kinds.is_empty() { total.to_string() } else { format!("{total}: {}", kinds.join(", ")) }
}

pub(super) fn instructions(module: &Module) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for instr in module.cores.iter().flat_map(|c| &c.instrs) {
        *counts.entry(instr.op.name()).or_insert(0) += 1;
    }
    counts
}

pub(super) fn bundles(lowered: &Lowered) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for stream in &lowered.cores {
        for ((_, name), n) in compile::count(stream, lowered.target) {
            *counts.entry(name).or_insert(0) += n;
        }
    }
    counts
}

pub(super) fn without_bundle(lowered: &Lowered) -> usize {
    lowered.cores.iter().flat_map(|s| &s.items).filter(|i| matches!(i, Item::Host(_))).count()
}

pub(super) fn costs(lowered: &Lowered, module: Option<&Module>) -> Vec<Cost> {
    let program = |core: usize| module.and_then(|m| m.cores.get(core));
    (0..lowered.cores.len()).map(|core| cost::estimate(lowered, core, program(core))).collect()
}

fn estimate(out: &mut String, costs: &[Cost]) {
    for (core, c) in costs.iter().enumerate() {
        let which = if costs.len() > 1 { format!("core {core}: ") } else { String::new() };
        row(
            out,
            if core == 0 { "estimate" } else { "" },
            &format!(
                "{which}{} cycles, {:.3} us at {:.1} GHz; array utilization {:.1} %, MFU {:.1} %, HFU {:.1} %",
                c.cycles,
                c.microseconds,
                c.clock / 1e9,
                c.pe_utilization * 100.0,
                c.mfu * 100.0,
                c.hfu * 100.0
            ),
        );
    }
}

fn specs(done: &Done<'_>) -> Vec<InputSpec> {
    bind::module_inputs(done.verified.module()).into_iter().flatten().collect()
}

fn input_source(done: &Done<'_>, spec: &InputSpec) -> String {
    match done.args.inputs.iter().find(|(n, _)| *n == spec.name) {
        Some((_, path)) => path.display().to_string(),
        None => match spec.purpose.note() {
            Some(note) => format!("seed {} ({note})", done.args.seed),
            None => format!("seed {}", done.args.seed),
        },
    }
}

/// One line an input: name, type, shape, where its values come from.
pub(super) fn input_lines(done: &Done<'_>) -> Vec<String> {
    let specs = specs(done);
    let width = specs.iter().map(|s| s.name.chars().count()).max().unwrap_or(0);
    let line =
        |s: &InputSpec| format!("{:<width$}  {} {:?}, {}", s.name, s.dtype, s.shape, input_source(done, s));
    specs.iter().map(line).collect()
}

fn inputs(out: &mut String, done: &Done<'_>) {
    for (i, line) in input_lines(done).iter().enumerate() {
        row(out, if i == 0 { "inputs" } else { "" }, line);
    }
}

/// The files that show the run.
fn view_rows(out: &mut String, args: &RunArgs) {
    for (label, path) in [("timeline", &args.timeline), ("report", &args.report)] {
        if let Some(path) = path {
            row(out, label, &format!("-> {}", path.display()));
        }
    }
}

fn add_views(value: &mut Value, args: &RunArgs) {
    for (key, path) in [("timeline", &args.timeline), ("report", &args.report)] {
        if let Some(path) = path {
            add(value, key, path.display().to_string().into());
        }
    }
}

fn output_rows(out: &mut String, results: &Results) {
    let width = results.outputs.iter().map(|o| o.name.chars().count()).max().unwrap_or(0);
    for (i, o) in results.outputs.iter().enumerate() {
        let label = match (i, results.declared) {
            (0, true) => "outputs",
            // Without declared outputs, every location that the program writes is shown.
            (0, false) => "written",
            _ => "",
        };
        row(out, label, &output_text(o, width));
        if let Some(file) = &o.file {
            row(out, "", &format!("{:<width$}  -> {}", "", file.display()));
        }
    }
}

fn output_text(o: &Output, width: usize) -> String {
    let mut text = format!("{:<width$}  {} {:?} in {}", o.name, o.dtype, o.bits.shape, o.space);
    if o.core > 0 {
        text.push_str(&format!(" of core {}", o.core));
    }
    match o.range.span {
        Some((lo, hi)) => text.push_str(&format!(", from {} to {}", short(lo), short(hi))),
        None => text.push_str(", no number in it"),
    }
    if o.range.nans > 0 {
        text.push_str(&format!(", {} NaN", o.range.nans));
    }
    if o.unwritten > 0 {
        text.push_str(&format!(", {} never written", counted(o.unwritten, "byte")));
    }
    text
}

/// A value at a glance: six significant digits.
pub(super) fn short(v: f32) -> String {
    let a = v.abs();
    if v == 0.0 || v.is_infinite() {
        format!("{v}")
    } else if !(1e-4..1e7).contains(&a) {
        format!("{v:.5e}")
    } else {
        let whole = format!("{:.0}", a.trunc());
        let decimals = if a < 1.0 { 6 } else { 6usize.saturating_sub(whole.len()) };
        let text = format!("{v:.decimals$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    }
}

fn rules(out: &mut String, options: &Options, target: Target) {
    for (i, rule) in options.rules(target).iter().enumerate() {
        row(out, if i == 0 { "rules" } else { "" }, rule);
    }
}

fn cost_json(c: &Cost) -> Value {
    json!({
        "estimate": true, "cycles": c.cycles, "microseconds": c.microseconds, "clock_hz": c.clock,
        "pe_utilization": c.pe_utilization, "mfu": c.mfu, "hfu": c.hfu,
    })
}

fn add(object: &mut Value, key: &str, value: Value) {
    if let Some(map) = object.as_object_mut() {
        map.insert(key.to_owned(), value);
    }
}

fn as_json(done: &Done<'_>, results: &Results, costs: &[Cost]) -> Value {
    let module = done.verified.module();
    let target = done.args.lower.target;
    let inputs: Vec<Value> = specs(done)
        .iter()
        .map(|s| {
            json!({
                "name": s.name, "dtype": s.dtype.name(), "shape": s.shape, "from": input_source(done, s),
            })
        })
        .collect();
    let outputs: Vec<Value> = results
        .outputs
        .iter()
        .map(|o| {
            json!({
                "name": o.name, "core": o.core, "space": o.space.name(), "dtype": o.dtype.name(),
                "shape": o.bits.shape,
                // JSON has no infinities: those are given as text.
                "min": o.range.span.map(|s| number(s.0)), "max": o.range.span.map(|s| number(s.1)),
                "nan": o.range.nans, "bytes_never_written": o.unwritten,
                "file": o.file.as_ref().map(|f| f.display().to_string()),
            })
        })
        .collect();
    let mut value = json!({
        "kernel": module.name,
        "file": done.file,
        "target": target.to_string(),
        "profile": done.args.lower.profile_name(),
        "executor": match done.args.executor { Which::Bundles => "bundles", Which::Ir => "ir", Which::Both => "both" },
        "cores": module.cores.len(),
        "instructions": instructions(module),
        "bundles": bundles(done.lowered),
        "without_bundle": without_bundle(done.lowered),
        "loads_elided": done.lowered.cores.iter().map(|s| s.loads_elided).sum::<usize>(),
        "estimate": costs.iter().map(cost_json).collect::<Vec<_>>(),
        "nan_suppressed": done.run.stats.nan_suppressed,
        "inputs": inputs,
        "outputs_declared": results.declared,
        "outputs": outputs,
    });
    if done.args.rules {
        add(&mut value, "rules", Value::from(done.options.rules(target)));
    }
    if done.args.map {
        add(&mut value, "map", map::as_json(module, target));
    }
    add_views(&mut value, done.args);
    value
}

fn number(v: f32) -> Value {
    if v.is_finite() { json!(v) } else { Value::from(v.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn values_at_a_glance() {
        assert_eq!(short(0.0), "0");
        assert_eq!(short(-44.25), "-44.25");
        assert_eq!(short(0.015625), "0.015625");
        assert_eq!(short(123456.78), "123457");
        assert_eq!(short(1000.0), "1000");
        assert_eq!(short(16777218.0), "1.67772e7");
        assert_eq!(short(1e-30), "1.00000e-30");
        assert_eq!(short(f32::INFINITY), "inf");
    }
}
