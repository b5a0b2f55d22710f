//! One product in several formats, on several targets.

use hadal::gemm::Format;
use hadal::isa::Target;
use serde_json::{Value, json};

use super::matrix::Operand;
use super::report::{as_json, decibels, figure, tflops};
use super::{Done, GemmArgs, product};
use crate::failure::Failure;
use crate::term::Term;

/// Computes the product in every format and prints the table; `main` was computed already.
pub(super) fn run(
    args: &GemmArgs,
    operands: (&Operand, &Operand),
    shape: [usize; 3],
    mut main: Option<Done>,
    term: Term,
) -> Result<(), Failure> {
    let targets = args.target.map_or_else(|| Target::ALL.to_vec(), |t| vec![t]);
    let mut all = Vec::new();
    for target in targets {
        for format in Format::of(target.generation) {
            let is_main = main.as_ref().is_some_and(|d| {
                let p = d.plan.problem();
                (p.format, p.lower.target) == (format, target)
            });
            let done = match main.take_if(|_| is_main) {
                Some(done) => done,
                None => product(args, operands, shape, format, target, None, term)?,
            };
            all.push(done);
        }
    }
    if term.json {
        let rows: Vec<Value> = all.iter().map(|d| as_json(args, d)).collect();
        return term.out_json(&json!({ "products": rows }));
    }
    if args.output.as_deref().is_some_and(hadal::files::is_stdout) {
        return Ok(());
    }
    term.out(&table(shape, &all))
}

fn table([m, k, n]: [usize; 3], all: &[Done]) -> String {
    let head = [
        "format",
        "target",
        "SNR",
        "max rel",
        "rms rel",
        "cycles",
        "us",
        "TFLOPS",
        "utilization",
        "loads elided",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for d in all {
        let (p, e, a) = (d.plan.problem(), d.plan.estimate(), &d.accuracy);
        let error = |text: String| if a.compared == 0 { "-".to_owned() } else { text };
        rows.push(vec![
            p.format.name().to_owned(),
            p.lower.target.to_string(),
            error(decibels(a)),
            error(figure(a.max_relative)),
            error(figure(a.rms_relative)),
            e.cycles.to_string(),
            format!("{:.2}", e.microseconds),
            format!("{:.2}", tflops(d)),
            format!("{:.1} %", 100.0 * e.pe_utilization),
            e.loads_elided.to_string(),
        ]);
    }
    let widths: Vec<usize> = (0..head.len())
        .map(|c| rows.iter().filter_map(|r| r.get(c)).map(|t| t.chars().count()).max().unwrap_or(0))
        .collect();
    let mut out = format!("[{m}, {k}] @ [{k}, {n}]");
    if let Some(d) = all.iter().find(|d| d.accuracy.compared > 0) {
        out.push_str(&format!(
            "; errors against float64 over {} of {} outputs",
            d.accuracy.compared, d.accuracy.outputs
        ));
    }
    out.push_str("; cycles and what follows from them are estimates\n\n");
    for row in &rows {
        // Names to the left, figures to the right.
        let cells = row.iter().zip(&widths).enumerate().map(|(i, (text, width))| {
            if i < 2 { format!("{text:<width$}") } else { format!("{text:>width$}") }
        });
        out.push_str(cells.collect::<Vec<String>>().join("  ").trim_end());
        out.push('\n');
    }
    for d in all.iter().filter(|d| d.accuracy.non_finite > 0) {
        let p = d.plan.problem();
        out.push_str(&format!(
            "{} on {}: {} outputs infinite or NaN, left out of the errors\n",
            p.format, p.lower.target, d.accuracy.non_finite
        ));
    }
    out
}
