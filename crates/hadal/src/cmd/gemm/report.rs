//! What a product came to.

use hadal::gemm::{Accuracy, Side};
use serde_json::{Value, json};

use super::{Done, GemmArgs};
use crate::failure::Failure;
use crate::term::{Term, counted};

/// Prints one product.
pub(super) fn print(args: &GemmArgs, done: &Done, term: Term) -> Result<(), Failure> {
    if term.json {
        return term.out_json(&as_json(args, done));
    }
    // The array itself may be on standard output.
    let to_stdout = args.output.as_deref().is_some_and(hadal::files::is_stdout);
    if term.quiet || to_stdout {
        return Ok(());
    }
    term.out(&text(args, done))
}

fn row(out: &mut String, label: &str, text: &str) {
    out.push_str(&format!("{label:<12} {text}\n"));
}

fn text(args: &GemmArgs, done: &Done) -> String {
    let mut out = String::new();
    let (p, e) = (done.plan.problem(), done.plan.estimate());
    row(
        &mut out,
        "product",
        &format!("[{}, {}] @ [{}, {}] in {} on {}", p.m, p.k, p.k, p.n, p.format, p.lower.target),
    );
    let (s, v) = (p.stationary_side(), p.moving_side());
    let mut plan = format!(
        "{} of {} distinct, {} stationary",
        counted(done.plan.segments().len(), "segment"),
        done.plan.programs(),
        s.name()
    );
    for side in [s, v].into_iter().filter(|side| p.quantizes(*side)) {
        plan.push_str(&format!(", {} quantized on the device", side.name()));
    }
    row(&mut out, "plan", &plan);
    row(
        &mut out,
        "bundles",
        &format!(
            "{}: {} loads, {} matmuls; {} loads elided by the weight cache",
            e.bundles, e.loads, e.matmuls, e.loads_elided
        ),
    );
    row(
        &mut out,
        "estimate",
        &format!(
            "{} cycles, {:.3} us; array utilization {:.1} %, {:.2} TFLOPS",
            e.cycles,
            e.microseconds,
            100.0 * e.pe_utilization,
            tflops(done)
        ),
    );
    accuracy(&mut out, &done.accuracy);
    if done.stats.nan_suppressed > 0 {
        let text = format!("{} became zero in QuantizeMx (D-33)", done.stats.nan_suppressed);
        row(&mut out, "NaN", &text);
    }
    if let Some(path) = &args.output {
        row(&mut out, "result", &format!("float32 [{}, {}] -> {}", p.m, p.n, path.display()));
    }
    if let Some(path) = &args.emit {
        row(&mut out, "program", &format!("-> {}", path.display()));
    }
    if let Some(path) = &args.emit_inputs {
        row(&mut out, "inputs", &format!("-> {}", path.display()));
    }
    out
}

fn accuracy(out: &mut String, a: &Accuracy) {
    if a.compared == 0 {
        return row(out, "error", "not compared (--check none)");
    }
    row(out, "error", &format!("against float64, {} of {} outputs compared", a.compared, a.outputs));
    row(
        out,
        "",
        &format!(
            "SNR {}; relative: max {}, rms {}, of the norm {}; max {} ulp",
            decibels(a),
            figure(a.max_relative),
            figure(a.rms_relative),
            figure(a.norm_relative),
            figure(a.max_ulp)
        ),
    );
    if a.non_finite > 0 {
        let text = format!(
            "{} infinite or NaN, {} of them not so in float64 or otherwise",
            counted(usize::try_from(a.non_finite).unwrap_or(usize::MAX), "output"),
            a.non_finite_differing
        );
        row(out, "", &text);
    }
}

/// `61.2 dB`, or that there is no error, or a dash where nothing can be said.
pub(super) fn decibels(a: &Accuracy) -> String {
    if a.is_exact() {
        "exact".to_owned()
    } else if a.snr_db.is_finite() {
        format!("{:.1} dB", a.snr_db)
    } else {
        "-".to_owned()
    }
}

/// Three significant digits.
pub(super) fn figure(x: f64) -> String {
    if x.is_nan() {
        "-".to_owned()
    } else if x == 0.0 {
        "0".to_owned()
    } else if (0.01..1000.0).contains(&x) {
        let whole = x.log10().floor().max(0.0) as usize;
        format!("{x:.*}", 2usize.saturating_sub(whole))
    } else {
        format!("{x:.2e}")
    }
}

/// Floating-point operations a second by the estimate, in 10^12.
pub(super) fn tflops(done: &Done) -> f64 {
    let (p, e) = (done.plan.problem(), done.plan.estimate());
    let operations = 2.0 * p.m as f64 * p.n as f64 * p.k as f64;
    if e.microseconds > 0.0 { operations / e.microseconds / 1e6 } else { 0.0 }
}

/// A number as JSON has them.
fn number(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}

/// One product as JSON.
pub(super) fn as_json(args: &GemmArgs, done: &Done) -> Value {
    let (p, e, a) = (done.plan.problem(), done.plan.estimate(), &done.accuracy);
    let name = |path: &Option<std::path::PathBuf>| path.as_ref().map(|p| p.display().to_string());
    let quantized: Vec<&str> =
        [Side::A, Side::B].into_iter().filter(|s| p.quantizes(*s)).map(Side::name).collect();
    json!({
        "m": p.m, "k": p.k, "n": p.n,
        "format": p.format.name(),
        "target": p.lower.target.to_string(),
        "stationary": p.stationary_side().name(),
        "quantized_on_device": quantized,
        "mx_rule": p.format.mx().map(|_| args.mx_rule.name()),
        "segments": done.plan.segments().len(),
        "programs": done.plan.programs(),
        "bundles": e.bundles, "loads": e.loads, "matmuls": e.matmuls, "loads_elided": e.loads_elided,
        "estimate": {
            "estimate": true, "cycles": e.cycles, "load_cycles": e.load_cycles, "microseconds": e.microseconds,
            "pe_utilization": e.pe_utilization, "tflops": tflops(done),
        },
        "error": (a.compared > 0).then(|| json!({
            "compared": a.compared, "outputs": a.outputs,
            // JSON has no infinities; without an error there is no ratio.
            "snr_db": number(a.snr_db),
            "exact": a.is_exact(),
            "max_relative": number(a.max_relative), "rms_relative": number(a.rms_relative),
            "norm_relative": number(a.norm_relative), "max_ulp": number(a.max_ulp),
            "non_finite": a.non_finite, "non_finite_differing": a.non_finite_differing,
        })),
        "nan_suppressed": done.stats.nan_suppressed,
        "output": name(&args.output), "program": name(&args.emit), "inputs": name(&args.emit_inputs),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_at_a_glance() {
        assert_eq!(figure(0.0), "0");
        assert_eq!(figure(0.0123), "0.01");
        assert_eq!(figure(1.0), "1.00");
        assert_eq!(figure(12.34), "12.3");
        assert_eq!(figure(123.4), "123");
        assert_eq!(figure(1234.0), "1.23e3");
        assert_eq!(figure(0.00123), "1.23e-3");
        assert_eq!(figure(f64::NAN), "-");
        let of = |snr_db, finite, max_ulp| Accuracy { snr_db, finite, max_ulp, ..Accuracy::default() };
        assert_eq!(decibels(&of(48.26, 4, 2.0)), "48.3 dB");
        assert_eq!(decibels(&of(f64::INFINITY, 4, 0.0)), "exact");
        assert_eq!(decibels(&of(f64::NAN, 0, f64::NAN)), "-");
        assert_eq!(decibels(&Accuracy { non_finite_differing: 1, ..of(f64::INFINITY, 4, 0.0) }), "-");
    }
}
