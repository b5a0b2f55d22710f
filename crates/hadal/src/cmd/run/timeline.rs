//! `--timeline`: the estimate in the Chrome trace event format, which Perfetto opens.

use hadal::ir::encode::{Bundle, Lowered};
use hadal::ir::program::{Instr, Module, Program};
use hadal::isa::decode;
use hadal::sim::cost::{self, Cost, Kind, Lane, Span};
use serde_json::{Value, json};

/// Most spans of a timeline; a longer program has every few of a lane drawn as one.
const MAX_SPANS: usize = 200_000;
/// Points of the utilization counter.
const POINTS: usize = 1000;

/// What the views of a run show.
pub(super) struct View<'a> {
    pub(super) name: &'a str,
    pub(super) file: &'a str,
    pub(super) lowered: &'a Lowered,
    /// Absent for bare bundles.
    pub(super) module: Option<&'a Module>,
    pub(super) costs: &'a [Cost],
}

/// One core of a view.
#[derive(Clone, Copy)]
pub(super) struct CoreView<'a> {
    pub(super) lowered: &'a Lowered,
    pub(super) core: usize,
    pub(super) program: Option<&'a Program>,
    pub(super) cost: &'a Cost,
}

impl<'a> View<'a> {
    pub(super) fn cores(&self) -> impl Iterator<Item = CoreView<'a>> {
        let (lowered, module) = (self.lowered, self.module);
        self.costs.iter().enumerate().map(move |(core, cost)| CoreView {
            lowered,
            core,
            program: module.and_then(|m| m.cores.get(core)),
            cost,
        })
    }
}

impl<'a> CoreView<'a> {
    /// The bundles of the core; a step's index is its bundle's.
    pub(super) fn bundles(&self) -> Vec<&'a Bundle> {
        self.lowered.cores.get(self.core).map_or_else(Vec::new, |s| s.bundles().collect())
    }

    /// The instruction a bundle came from.
    pub(super) fn instr(&self, bundle: &Bundle) -> Option<&'a Instr> {
        self.program?.instrs.get(bundle.instr)
    }

    /// The mnemonic of a bundle.
    pub(super) fn mnemonic(&self, bundle: &Bundle) -> &'static str {
        decode(&bundle.word, self.lowered.target).inst.info().map_or("unknown", |i| i.name)
    }
}

/// The name of a lane: `matmul rows 0..128, columns 0..128`.
pub(super) fn lane_name(lane: &Lane) -> String {
    let what = if lane.loads { "load" } else { "matmul" };
    match lane.tile {
        Some(tile) => format!("{what} {tile}"),
        None => format!("{what}, tile unknown"),
    }
}

/// What is said where several steps are drawn as one.
pub(super) fn gathered_note(lanes: &[Lane]) -> Option<String> {
    let spans = || lanes.iter().flat_map(|l| &l.spans);
    let most = spans().map(|s| s.steps).max().unwrap_or(0);
    (most > 1).then(|| {
        format!(
            "{} loads and matmuls are drawn as {}: up to {most} that follow each other in a lane are one",
            spans().map(|s| s.steps).sum::<usize>(),
            spans().count()
        )
    })
}

/// The trace. One event a line, so that it can be read and compared as text.
pub(super) fn text(view: &View<'_>) -> String {
    let mut events = Vec::new();
    let mut notes = Vec::new();
    for core in view.cores() {
        let lanes = core.cost.lanes(MAX_SPANS / view.costs.len().max(1));
        notes.extend(gathered_note(&lanes).map(|n| format!("core {}: {n}", core.core)));
        core_events(&mut events, core, &lanes);
    }
    let about = json!({
        "program": view.name,
        "file": view.file,
        "target": view.lowered.target.to_string(),
        "clock_hz": view.costs.first().map_or(0.0, |c| c.clock),
        "cycles": view.costs.iter().map(|c| c.cycles).collect::<Vec<_>>(),
        "estimate": "cycles and times are estimates from public figures, not measurements",
        "notes": notes,
    });
    format!(
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\"traceEvents\":[\n{}\n]}}\n",
        events.join(",\n")
    )
}

fn core_events(events: &mut Vec<String>, core: CoreView<'_>, lanes: &[Lane]) {
    let pid = core.core;
    let process = format!("core {pid}, {} (estimate)", core.lowered.target);
    events
        .push(json!({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": process}}).to_string());
    events.push(
        json!({"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": pid}}).to_string(),
    );
    let bundles = core.bundles();
    for (i, lane) in lanes.iter().enumerate() {
        let tid = i + 1;
        for (name, args) in [
            ("thread_name", json!({"name": lane_name(lane)})),
            ("thread_sort_index", json!({"sort_index": tid})),
        ] {
            events.push(json!({"ph": "M", "pid": pid, "tid": tid, "name": name, "args": args}).to_string());
        }
        for span in &lane.spans {
            events.push(complete(core, &bundles, lane, tid, span));
        }
    }
    counters(events, core);
}

/// A complete event. Times are written in whole picoseconds, so that what touches in cycles touches here.
fn complete(core: CoreView<'_>, bundles: &[&Bundle], lane: &Lane, tid: usize, span: &Span) -> String {
    let first = bundles.get(span.first).copied();
    let kind = core.cost.steps.get(span.first).map_or(Kind::Other, |s| s.kind);
    let instr = first.and_then(|b| core.instr(b));
    let name = match (span.steps, instr, first) {
        (1, Some(instr), _) => instr.name.clone(),
        (1, None, Some(b)) => format!("{} {}", core.mnemonic(b), span.first),
        (n, ..) => format!("{n} {}", if lane.loads { "loads" } else { "matmuls" }),
    };
    let mut args = json!({
        "kind": kind.name(), "bundle": span.first, "cycles": span.cycles, "busy_cycles": span.busy,
        "macs": span.macs, "utilization": span.utilization,
    });
    if let Some(map) = args.as_object_mut() {
        let mut add = |key: &str, value: Value| map.insert(key.to_owned(), value);
        if let Some(b) = first {
            add("mnemonic", core.mnemonic(b).into());
        }
        if let Some(instr) = instr {
            add("instruction", instr.name.as_str().into());
            add("operator", instr.op.name().into());
            if let Some(pos) = &instr.pos {
                add("source", pos.to_string().into());
            }
        }
        if span.steps > 1 {
            add("last_bundle", span.last.into());
            add("bundles", span.steps.into());
        }
    }
    let (ts, dur) = (picoseconds(core.cost, span.start), picoseconds(core.cost, span.end));
    // The times are put in by hand: a float would not keep their digits.
    format!(
        "{{\"ph\":\"X\",\"pid\":{},\"tid\":{tid},\"ts\":{},\"dur\":{},\"cat\":\"{}\",\"name\":{},\"args\":{args}}}",
        core.core,
        microseconds(ts),
        microseconds(dur - ts),
        if lane.loads { "load" } else { "matmul" },
        Value::from(name),
    )
}

fn picoseconds(cost: &Cost, cycles: u64) -> u128 {
    let clock = (cost.clock as u128).max(1);
    (u128::from(cycles) * 1_000_000_000_000 + clock / 2) / clock
}

fn microseconds(picoseconds: u128) -> String {
    format!("{}.{:06}", picoseconds / 1_000_000, picoseconds % 1_000_000)
}

fn counters(events: &mut Vec<String>, core: CoreView<'_>) {
    let mut counter = |cycle: u64, name: &str, key: &str, value: Value| {
        let at = microseconds(picoseconds(core.cost, cycle));
        let args = json!({key: value});
        events.push(format!(
            "{{\"ph\":\"C\",\"pid\":{},\"ts\":{at},\"name\":\"{name}\",\"args\":{args}}}",
            core.core
        ));
    };
    let mut last = None;
    for s in core.cost.over_time(POINTS) {
        // A tenth of a percent is more than the estimate knows.
        let percent = (s.utilization * 1000.0).round() / 10.0;
        if last != Some(percent) {
            counter(s.start, "PE utilization", "percent", percent.into());
            last = Some(percent);
        }
    }
    if last.is_some() {
        counter(core.cost.cycles, "PE utilization", "percent", 0.into());
    }
    for (cycle, banks) in core.program.map(|p| banks(p, core.cost)).unwrap_or_default() {
        counter(cycle, "PSUM banks in use", "banks", banks.into());
    }
}

/// Where the number of PSUM banks in use changes; the most of the instructions that share a time.
fn banks(program: &Program, cost: &Cost) -> Vec<(u64, u32)> {
    let mut out: Vec<(u64, u32)> = Vec::new();
    let times = cost.beginnings(program.instrs.len());
    for (at, o) in times.into_iter().zip(cost::occupancy(program)) {
        let banks = o.psum_banks.count_ones();
        match out.last_mut() {
            Some((time, most)) if *time == at => *most = banks.max(*most),
            _ => out.push((at, banks)),
        }
    }
    out.dedup_by_key(|(_, banks)| *banks);
    out
}
