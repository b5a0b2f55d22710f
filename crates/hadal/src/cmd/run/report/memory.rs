//! What lies where in SBUF and PSUM, and when.

use hadal::ir::program::{PSUM_BANK_BYTES, PSUM_BANKS, PSUM_BYTES, Program, Space};
use hadal::sim::cost::{self, Occupancy};
use serde_json::{Value, json};

use super::core_note;
use crate::cmd::run::map::{Tenant, tenants};
use crate::cmd::run::timeline::CoreView;

/// Most locations drawn in one memory.
const MAX_LOCATIONS: usize = 1000;
/// Columns of the occupancy over time.
const COLUMNS: usize = 400;

/// The maps of a core.
pub(super) fn of(core: CoreView<'_>, p: &Program, cores: usize, notes: &mut Vec<Value>) -> Value {
    let sbuf_bytes = core.lowered.target.sbuf_bytes_per_partition();
    let mut space = |space: Space, bytes: u32| {
        let all = tenants(p, space);
        if all.len() > MAX_LOCATIONS {
            let text = format!("the first {MAX_LOCATIONS} of {} {space} locations are drawn", all.len());
            notes.push(core_note(core.core, cores, &text));
        }
        let drawn: Vec<Value> = all.iter().take(MAX_LOCATIONS).map(|t| location(p, t)).collect();
        json!({"bytes": bytes, "locations": drawn, "count": all.len()})
    };
    let sbuf = space(Space::Sb, sbuf_bytes);
    let psum = space(Space::Psum, PSUM_BYTES);
    let all = cost::occupancy(p);
    let columns = all.len().min(COLUMNS);
    let chunk = |c: usize| c * all.len() / columns.max(1);
    let occupancy: Vec<Value> = (0..columns)
        .map(|c| {
            let part: &[Occupancy] = all.get(chunk(c)..chunk(c + 1)).unwrap_or(&[]);
            let bytes = part.iter().map(|o| o.sbuf_bytes).max().unwrap_or(0);
            json!([chunk(c), bytes, part.iter().fold(0, |m, o| m | o.psum_banks)])
        })
        .collect();
    json!({
        "instructions": all.len(),
        "names": (0..columns).map(|c| name(p, chunk(c))).collect::<Vec<_>>(),
        "occupancy": occupancy,
        "bank_bytes": PSUM_BANK_BYTES, "banks": PSUM_BANKS,
        "sbuf": sbuf, "psum": psum,
    })
}

fn name(p: &Program, at: usize) -> &str {
    p.instrs.get(at).map_or("", |i| i.name.as_str())
}

fn location(p: &Program, t: &Tenant<'_>) -> Value {
    let life = t.life.as_ref().map(|l| {
        let last = l.end.saturating_sub(1);
        json!([l.start, last, name(p, l.start), name(p, last)])
    });
    json!({
        "name": t.loc.name, "partitions": [t.parts.start, t.parts.end], "bytes": [t.bytes.start, t.bytes.end],
        "life": life,
    })
}
