//! `hadal probe`: values that tell models of the hardware apart.

use clap::Args;
use hadal::isa::Target;
use hadal::sim::probe::{self, Probe, Reading};
use serde_json::{Value, json};

use super::run::NumericsArgs;
use crate::failure::Failure;
use crate::term::Term;

/// Small computations whose results tell plausible models of the hardware apart, with what each predicts.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hadal probe                                   every probe
  hadal probe psum-add                          one
  hadal probe --target trn2                     those that exist on trn2
  hadal probe --mx-rule hardware --json         under other numerics, for a script

Run the inputs of a probe on a device and compare the bits: the model with the same bits is the device's. The
mark > stands at the model that this tool follows under the numerics in force.")]
pub(crate) struct ProbeArgs {
    /// Names of probes; all by default.
    names: Vec<String>,
    /// A target; by default every probe, each on the newest target that has it.
    #[arg(short, long, value_name = "T")]
    target: Option<Target>,
    #[command(flatten)]
    numerics: NumericsArgs,
}

/// Runs the command.
pub(crate) fn run(args: &ProbeArgs, term: Term) -> Result<(), Failure> {
    let mut probes = probe::all(args.target, &args.numerics.options())
        .map_err(|e| Failure::System { text: e.to_string() })?;
    if let Some(unknown) = args.names.iter().find(|n| !probes.iter().any(|p| p.id == n.as_str())) {
        let known: Vec<&str> = probes.iter().map(|p| p.id).collect();
        let here = args.target.map_or_else(String::new, |t| format!(" on {t}"));
        return Err(Failure::usage(
            format!("there is no probe {unknown:?}{here}"),
            format!("the probes are {}", known.join(", ")),
        ));
    }
    if !args.names.is_empty() {
        probes.retain(|p| args.names.iter().any(|n| p.id == n));
    }
    if term.json {
        return term.out_json(&json!({"probes": probes.iter().map(as_json).collect::<Vec<_>>()}));
    }
    term.out(&probes.iter().map(text).collect::<Vec<_>>().join("\n"))
}

fn targets(p: &Probe) -> Vec<String> {
    p.targets.iter().map(ToString::to_string).collect()
}

/// Values as numbers, elements apart by a space.
fn numbers(r: &Reading) -> String {
    r.values.iter().map(|v| number(*v)).collect::<Vec<_>>().join(" ")
}

/// The shortest decimal that reads back as the same float32.
fn number(v: f32) -> String {
    let a = v.abs();
    if v == 0.0 || !v.is_finite() || (1e-5..1e9).contains(&a) { format!("{v}") } else { format!("{v:e}") }
}

fn text(p: &Probe) -> String {
    let mut out = format!("{} ({})", p.id, targets(p).join(", "));
    if let Some(d) = p.decision {
        out.push_str(&format!(", {d}"));
    }
    out.push_str(&format!("\n  {}\n  {}\n", p.question, p.inputs));
    let hex = p.models.iter().map(|m| m.reading.hex().len()).max().unwrap_or(0).max(p.result.hex().len());
    let mut row = |mark: char, r: &Reading, name: &str| {
        out.push_str(&format!("  {mark} {:<hex$}  {} = {}\n", r.hex(), name, numbers(r)));
    };
    let mut found = false;
    for m in &p.models {
        let here = p.in_force(m);
        found |= here;
        row(if here { '>' } else { ' ' }, &m.reading, m.name);
    }
    if !found {
        row('>', &p.result, "the numerics in force");
    }
    out
}

fn reading(r: &Reading) -> Value {
    // JSON has no NaN and no infinities: those are given as text.
    let values: Vec<Value> =
        r.values.iter().map(|v| if v.is_finite() { json!(v) } else { Value::from(v.to_string()) }).collect();
    json!({"values": values, "bits": r.hex()})
}

fn as_json(p: &Probe) -> Value {
    let models: Vec<Value> = p
        .models
        .iter()
        .map(|m| json!({"model": m.name, "in_force": p.in_force(m), "reading": reading(&m.reading)}))
        .collect();
    json!({
        "id": p.id, "question": p.question, "inputs": p.inputs, "targets": targets(p), "decision": p.decision,
        "expected": reading(&p.result), "models": models,
    })
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_read_back() {
        for v in [0.999_996_2f32, 16_777_218.0, f32::from_bits(0x0040_0000), -0.0, 1e-30] {
            assert_eq!(number(v).parse::<f32>().map(f32::to_bits), Ok(v.to_bits()), "{}", number(v));
        }
        assert_eq!(number(f32::from_bits(0x3380_0000)), "5.9604645e-8");
    }
}
