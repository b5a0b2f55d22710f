//! `--map`: where every location lies and when it lives.

use std::ops::Range;

use hadal::ir::passes::alloc::live_ranges;
use hadal::ir::program::{MemLoc, Module, PARTITIONS, PSUM_BANK_BYTES, PSUM_BANKS, Program, Space};
use hadal::isa::Target;
use hadal::sim::cost;
use serde_json::{Value, json};

use crate::term::counted;

/// Columns of the chart over time.
const CHART: usize = 64;

/// A placed location.
pub(super) struct Tenant<'a> {
    pub(super) loc: &'a MemLoc,
    pub(super) parts: Range<u32>,
    /// Bytes in each partition; PSUM counts its banks through.
    pub(super) bytes: Range<u64>,
    /// Instructions; `None` when nothing uses it.
    pub(super) life: Option<Range<usize>>,
}

/// Neighbouring partitions that hold the same tenants.
struct Band<'a> {
    parts: Range<u32>,
    tenants: Vec<&'a Tenant<'a>>,
}

impl Band<'_> {
    /// Bytes of a partition that some tenant has.
    fn placed(&self) -> u64 {
        union(self.tenants.iter().map(|t| t.bytes.clone()).collect())
    }

    /// Most bytes in use at once, and the first instruction at which they are. Use grows only where a
    /// life begins.
    fn peak(&self) -> (u64, usize) {
        let mut starts: Vec<usize> =
            self.tenants.iter().filter_map(|t| Some(t.life.clone()?.start)).collect();
        starts.sort_unstable();
        starts.dedup();
        let mut best = (0, 0);
        for at in starts {
            let live = |t: &&&Tenant<'_>| t.life.as_ref().is_some_and(|l| l.contains(&at));
            let bytes = union(self.tenants.iter().filter(live).map(|t| t.bytes.clone()).collect());
            if bytes > best.0 {
                best = (bytes, at);
            }
        }
        best
    }
}

/// Bytes that any of the ranges covers.
fn union(mut ranges: Vec<Range<u64>>) -> u64 {
    ranges.sort_by_key(|r| r.start);
    let (mut total, mut end) = (0, 0);
    for r in ranges {
        total += r.end.saturating_sub(r.start.max(end));
        end = end.max(r.end);
    }
    total
}

pub(super) fn tenants(p: &Program, space: Space) -> Vec<Tenant<'_>> {
    let lives = live_ranges(p);
    let mut all: Vec<Tenant<'_>> = p
        .locs
        .iter()
        .zip(lives)
        .filter(|(l, _)| l.space() == space)
        .filter_map(|(loc, life)| {
            let (first, start) = (loc.partition()?, u64::from(loc.byte_offset()?));
            let parts = first..first.saturating_add(loc.partitions());
            Some(Tenant { loc, parts, bytes: start..start.saturating_add(loc.bytes()), life })
        })
        .collect();
    all.sort_by_key(|t| (t.bytes.start, t.parts.start, t.life.as_ref().map_or(0, |l| l.start)));
    all
}

fn bands<'a>(tenants: &'a [Tenant<'a>]) -> Vec<Band<'a>> {
    let mut cuts: Vec<u32> = tenants.iter().flat_map(|t| [t.parts.start, t.parts.end]).collect();
    cuts.extend([0, PARTITIONS]);
    cuts.sort_unstable();
    cuts.dedup();
    cuts.windows(2)
        .filter_map(|w| {
            let &[start, end] = w else { return None };
            let here = tenants.iter().filter(|t| t.parts.contains(&start)).collect();
            Some(Band { parts: start..end, tenants: here })
        })
        .collect()
}

/// The name of an instruction.
fn name(p: &Program, at: usize) -> &str {
    p.instrs.get(at).map_or("", |i| i.name.as_str())
}

fn life_text(p: &Program, life: Option<&Range<usize>>) -> String {
    match life {
        None => "never used".to_owned(),
        Some(l) if l.end <= l.start + 1 => format!("lives {} ({})", l.start, name(p, l.start)),
        Some(l) => {
            let last = l.end - 1;
            format!("lives {}..{last} ({} .. {})", l.start, name(p, l.start), name(p, last))
        }
    }
}

fn tenant_line(p: &Program, t: &Tenant<'_>, bytes: &Range<u64>, width: usize) -> String {
    format!(
        "    {:>6}..{:<6}  {:<width$}  partitions {}..{}, {}\n",
        bytes.start,
        bytes.end,
        t.loc.name,
        t.parts.start,
        t.parts.end,
        life_text(p, t.life.as_ref())
    )
}

/// The part of a PSUM tenant in one bank, in bytes of the bank.
fn in_bank(t: &Tenant<'_>, bank: u32) -> Option<Range<u64>> {
    let size = u64::from(PSUM_BANK_BYTES);
    let from = u64::from(bank) * size;
    let (start, end) = (t.bytes.start.max(from), t.bytes.end.min(from + size));
    (start < end).then(|| start - from..end - from)
}

/// The map of every core as text.
pub(super) fn text(module: &Module, target: Target) -> String {
    let mut out = String::new();
    for (core, p) in module.cores.iter().enumerate() {
        out.push_str(&core_text(core, p, target));
    }
    out
}

fn core_text(core: usize, p: &Program, target: Target) -> String {
    let size = u64::from(target.sbuf_bytes_per_partition());
    let mut out = format!("\nmemory of core {core} on {target}; lives are instruction numbers\n");
    let sbuf = tenants(p, Space::Sb);
    out.push_str(&format!("SBUF, {size} bytes a partition\n"));
    for band in bands(&sbuf) {
        let (peak, at) = band.peak();
        out.push_str(&format!("  partitions {}..{}: ", band.parts.start, band.parts.end));
        if band.tenants.is_empty() {
            out.push_str("nothing\n");
            continue;
        }
        let when = if peak > 0 { format!(" at {at} ({})", name(p, at)) } else { String::new() };
        out.push_str(&format!(
            "{} bytes placed, at most {peak} in use at once{when}: {:.1} %\n",
            band.placed(),
            100.0 * peak as f64 / size as f64
        ));
    }
    let width = p.locs.iter().map(|l| l.name.chars().count()).max().unwrap_or(0);
    for t in &sbuf {
        out.push_str(&tenant_line(p, t, &t.bytes, width));
    }
    out.push_str(&format!("PSUM, {PSUM_BANKS} banks of {PSUM_BANK_BYTES} bytes a partition\n"));
    let psum = tenants(p, Space::Psum);
    for bank in 0..PSUM_BANKS {
        let here: Vec<_> = psum.iter().filter_map(|t| Some((t, in_bank(t, bank)?))).collect();
        let what = if here.is_empty() { "free".to_owned() } else { counted(here.len(), "location") };
        out.push_str(&format!("  bank {bank}: {what}\n"));
        for (t, bytes) in here {
            out.push_str(&tenant_line(p, t, &bytes, width));
        }
    }
    out.push_str(&chart(p, size));
    out
}

/// Occupancy over the program: SBUF in tenths, and each bank.
fn chart(p: &Program, size: u64) -> String {
    let all = cost::occupancy(p);
    if all.is_empty() {
        return String::new();
    }
    let columns = all.len().min(CHART);
    let chunks: Vec<&[cost::Occupancy]> = (0..columns)
        .filter_map(|c| all.get(c * all.len() / columns..(c + 1) * all.len() / columns))
        .collect();
    let whole = size * u64::from(PARTITIONS);
    let mut out =
        format!("occupancy over {} (SBUF in tenths of its bytes)\n", counted(all.len(), "instruction"));
    let sbuf: String =
        chunks
            .iter()
            .map(|c| c.iter().map(|o| o.sbuf_bytes).max().unwrap_or(0))
            .map(|b| {
                if b == 0 { '.' } else { char::from_digit((10 * b / whole).min(9) as u32, 10).unwrap_or('9') }
            })
            .collect();
    out.push_str(&format!("  SBUF    {sbuf}\n"));
    for bank in 0..PSUM_BANKS {
        let line: String = chunks
            .iter()
            .map(|c| if c.iter().any(|o| o.psum_banks >> bank & 1 == 1) { '#' } else { '.' })
            .collect();
        if line.contains('#') {
            out.push_str(&format!("  bank {bank}  {line}\n"));
        }
    }
    out
}

/// The map of every core as JSON.
pub(super) fn as_json(module: &Module, target: Target) -> Value {
    Value::Array(module.cores.iter().enumerate().map(|(core, p)| core_json(core, p, target)).collect())
}

fn core_json(core: usize, p: &Program, target: Target) -> Value {
    let sbuf = tenants(p, Space::Sb);
    let partitions: Vec<Value> = bands(&sbuf)
        .iter()
        .map(|b| {
            let (peak, at) = b.peak();
            json!({
                "partition": b.parts.start, "partitions": b.parts.end - b.parts.start,
                "bytes_placed": b.placed(), "bytes_in_use": peak,
                "at": (peak > 0).then(|| json!({"index": at, "instruction": name(p, at)})),
            })
        })
        .collect();
    let psum = tenants(p, Space::Psum);
    let banks: Vec<Value> = (0..PSUM_BANKS)
        .map(|bank| {
            let here: Vec<Value> =
                psum.iter().filter_map(|t| Some(tenant_json(p, t, &in_bank(t, bank)?))).collect();
            json!({"bank": bank, "locations": here})
        })
        .collect();
    let occupancy: Vec<Value> = cost::occupancy(p)
        .iter()
        .zip(&p.instrs)
        .map(|(o, i)| json!({"instruction": i.name, "sbuf_bytes": o.sbuf_bytes, "psum_banks": (0..PSUM_BANKS).filter(|b| o.psum_banks >> b & 1 == 1).collect::<Vec<_>>()}))
        .collect();
    json!({
        "core": core,
        "sbuf": {
            "bytes_per_partition": target.sbuf_bytes_per_partition(),
            "partitions": partitions,
            "locations": sbuf.iter().map(|t| tenant_json(p, t, &t.bytes)).collect::<Vec<_>>(),
        },
        "psum": {"bytes_per_bank": PSUM_BANK_BYTES, "banks": banks},
        "occupancy": occupancy,
    })
}

fn tenant_json(p: &Program, t: &Tenant<'_>, bytes: &Range<u64>) -> Value {
    let life = t.life.as_ref().map(|l| {
        let last = l.end.saturating_sub(1);
        json!({"first": l.start, "last": last, "from": name(p, l.start), "to": name(p, last)})
    });
    json!({
        "name": t.loc.name, "partition": t.parts.start, "partitions": t.parts.end - t.parts.start,
        "offset": bytes.start, "bytes": bytes.end - bytes.start, "life": life,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_bytes_count_once() {
        assert_eq!(union(vec![0..10, 5..20, 30..31, 6..7]), 21);
        assert_eq!(union(vec![]), 0);
    }
}
