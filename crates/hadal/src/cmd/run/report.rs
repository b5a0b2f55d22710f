//! `--report`: one self-contained page that shows a run.
//!
//! The page is a fixed document; what it shows is JSON inside it, which its script draws. Nothing of a program
//! becomes markup: names go through JSON and are set as text.

mod bundles;
mod facts;
mod memory;

use hadal::sim::cost::{self, Kind};
use serde_json::{Value, json};

use super::timeline::{CoreView, View, gathered_note, lane_name};
pub(super) use facts::{Facts, of_bundles, of_program};

const PAGE: &str = include_str!("../../../assets/report.html");
const STYLE: &str = include_str!("../../../assets/report.css");
const SCRIPT: [&str; 5] = [
    include_str!("../../../assets/report-base.js"),
    include_str!("../../../assets/report-timeline.js"),
    include_str!("../../../assets/report-charts.js"),
    include_str!("../../../assets/report-bundles.js"),
    include_str!("../../../assets/report-main.js"),
];

/// Most spans of the page's timeline.
const MAX_SPANS: usize = 20_000;
/// Points of the utilization chart.
const POINTS: usize = 400;

/// The page.
pub(super) fn page(view: &View<'_>, facts: &Facts) -> String {
    let data = data(view, facts).to_string();
    let title = format!("{} on {}", view.name, view.lowered.target);
    // Each mark stands in the page once; what is put in is not looked at again.
    let parts = [
        ("<!-- title -->", escape_text(&title)),
        ("/* style */", STYLE.to_owned()),
        ("<!-- data -->", escape_json(&data)),
        ("/* script */", SCRIPT.concat()),
    ];
    let mut out = String::with_capacity(PAGE.len() + STYLE.len() + data.len() * 2);
    let mut rest = PAGE;
    for (mark, text) in parts {
        let (before, after) = rest.split_once(mark).unwrap_or((rest, ""));
        out.push_str(before);
        out.push_str(&text);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Text as HTML.
fn escape_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
    out
}

/// JSON that no HTML parser takes for markup: these characters stand in strings only, where JSON can spell them.
fn escape_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 8);
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

fn data(view: &View<'_>, facts: &Facts) -> Value {
    let mut notes = facts.notes.clone();
    let mut cores = Vec::new();
    for core in view.cores() {
        cores.push(core_data(core, view.costs.len(), &mut notes));
    }
    let formulas: Vec<Value> =
        cost::FORMULAS.iter().map(|f| json!([f.name, f.formula, f.confidence.name(), f.source])).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "program": view.name,
        "file": view.file,
        "target": view.lowered.target.to_string(),
        "facts": facts.rows,
        "outputs": facts.outputs,
        "rules": facts.rules,
        "notes": notes,
        "formulas": formulas,
        "cores": cores,
    })
}

/// A note of a core.
pub(super) fn core_note(core: usize, cores: usize, text: &str) -> Value {
    let which = if cores > 1 { format!("core {core}: ") } else { String::new() };
    json!({"kind": "view", "text": format!("{which}{text}")})
}

fn core_data(core: CoreView<'_>, cores: usize, notes: &mut Vec<Value>) -> Value {
    let cost = core.cost;
    let lanes = cost.lanes(MAX_SPANS / cores.max(1));
    notes.extend(gathered_note(&lanes).map(|n| core_note(core.core, cores, &n)));
    let bundles = core.bundles();
    let mut names = Names::default();
    let spans: Vec<Value> = lanes
        .iter()
        .enumerate()
        .flat_map(|(lane, l)| l.spans.iter().map(move |s| (lane, s)))
        .map(|(lane, s)| {
            let bundle = bundles.get(s.first).copied();
            let instr = bundle.and_then(|b| core.instr(b));
            let name = match (instr, bundle) {
                (Some(i), _) => i.name.clone(),
                (None, Some(b)) => core.mnemonic(b).to_owned(),
                (None, None) => String::new(),
            };
            let place = instr.and_then(|i| i.pos.as_ref()).map(ToString::to_string).unwrap_or_default();
            let kind = cost.steps.get(s.first).map_or(Kind::Other, |s| s.kind);
            json!([
                lane,
                s.start,
                s.end,
                s.cycles,
                s.first,
                s.last,
                s.steps,
                s.macs,
                round(s.utilization),
                names.number(&name),
                names.number(&place),
                kind.name(),
            ])
        })
        .collect();
    let lane_list: Vec<Value> =
        lanes.iter().map(|l| json!({"name": lane_name(l), "loads": l.loads})).collect();
    let over_time: Vec<Value> = cost
        .over_time(POINTS)
        .iter()
        .map(|s| json!([s.start, s.end, round(s.utilization), round(s.multiplying)]))
        .collect();
    json!({
        "cycles": cost.cycles, "microseconds": cost.microseconds, "clock_hz": cost.clock,
        "utilization": cost.pe_utilization, "mfu": cost.mfu, "hfu": cost.hfu,
        "load_cycles": cost.load_cycles, "matmul_cycles": cost.matmul_cycles,
        "lanes": lane_list, "spans": spans, "names": names.list, "over_time": over_time,
        "memory": core.program.map(|p| memory::of(core, p, cores, notes)),
        "bundles": bundles::first(core, &bundles),
        "bundle_count": bundles.len(),
    })
}

/// A ratio as the page shows it.
fn round(ratio: f64) -> f64 {
    (ratio * 1e6).round() / 1e6
}

/// Texts by number.
#[derive(Default)]
struct Names {
    list: Vec<String>,
    known: std::collections::HashMap<String, usize>,
}

impl Names {
    fn number(&mut self, name: &str) -> usize {
        if let Some(n) = self.known.get(name) {
            return *n;
        }
        let n = self.list.len();
        self.list.push(name.to_owned());
        self.known.insert(name.to_owned(), n);
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_each_mark_once_and_in_order() {
        let mut at = 0;
        for mark in ["<!-- title -->", "/* style */", "<!-- data -->", "/* script */"] {
            assert_eq!(PAGE.matches(mark).count(), 1, "{mark}");
            let here = PAGE.find(mark).unwrap();
            assert!(here >= at, "{mark}");
            at = here;
        }
    }

    #[test]
    fn nothing_ends_the_script_it_stands_in() {
        let hostile = "</script><!--<script>\u{2028}&lt;";
        let text = escape_json(&json!([hostile]).to_string());
        assert!(!text.contains(['<', '>', '&', '\u{2028}']));
        let back: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back, json!([hostile]));
        assert_eq!(escape_text("<b>&"), "&lt;b&gt;&amp;");
        // What is ours must not end it either.
        assert!(SCRIPT.iter().all(|s| !s.contains("</script") && !s.contains("<!--")));
        assert!(!STYLE.contains("</style"));
    }
}
