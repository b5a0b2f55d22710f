//! Addresses for the locations that have none.
//!
//! First fit in order of first use, deterministic. Space is reused by live range only when giving every
//! location its own space does not fit, so that a location can still be inspected after the run.
//! First partitions follow the tile a matmul asks for (D-27).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use hadal_isa::Target;

use crate::program::{
    Ap, LocId, LocKind, MemLoc, Op, PARTITIONS, PSUM_BANK_BYTES, PSUM_BYTES, Program, Space,
};
use crate::verify::rules::{self, Sink};

/// Byte alignment of placed locations: the widest a pattern start may need, and a DMA-friendly unit.
const ALIGN: u64 = 32;

/// Instruction indices during which a location holds a value.
pub type Life = Range<usize>;

/// An occupied box: partitions x bytes x life.
#[derive(Debug, Clone)]
struct Taken {
    parts: Range<u32>,
    bytes: Range<u64>,
    life: Life,
}

/// Places every location of the program that is not placed yet.
pub(crate) fn run(p: &mut Program, target: Target, sink: &mut Sink) {
    let lives = lives(p);
    let wanted = first_partitions(p);
    for space in [Space::Sb, Space::Psum] {
        let size = match space {
            Space::Sb => u64::from(target.sbuf_bytes_per_partition()),
            _ => u64::from(PSUM_BYTES),
        };
        let whole = 0..p.instrs.len().max(1) + 1;
        let alone = place_all(p, space, size, &wanted, |_| whole.clone());
        let placed = match alone {
            Ok(v) => v,
            Err(_) => match place_all(p, space, size, &wanted, |i| lives.get(i).cloned().unwrap_or(0..1)) {
                Ok(v) => v,
                Err((v, failed)) => {
                    for f in failed {
                        report(p, space, size, &f, target, sink);
                    }
                    v
                }
            },
        };
        for (i, part, byte) in placed {
            if let Some(loc) = p.locs.get_mut(i) {
                assign(&mut loc.kind, part, byte);
            }
        }
    }
}

fn assign(kind: &mut LocKind, part: u32, byte: u64) {
    let byte = u32::try_from(byte).unwrap_or(u32::MAX);
    match kind {
        LocKind::Sb { partition, offset, .. } => {
            *partition = Some(part);
            *offset = Some(byte);
        }
        LocKind::Psum { partition, bank, offset, .. } => {
            *partition = Some(part);
            *bank = Some(byte / PSUM_BANK_BYTES);
            *offset = Some(byte % PSUM_BANK_BYTES);
        }
        LocKind::Dram { .. } => {}
    }
}

/// Instructions during which each location holds a value; `None` for one that nothing uses.
///
/// From the program's start if it is an implicit input, else from its first use, to its last use.
pub fn live_ranges(p: &Program) -> Vec<Option<Life>> {
    let mut span: Vec<Option<Life>> = vec![None; p.locs.len()];
    let mut written = vec![false; p.locs.len()];
    for (i, instr) in p.instrs.iter().enumerate() {
        for (_, access, ap) in instr.op.uses() {
            let k = ap.loc.0 as usize;
            if let Some(w) = written.get_mut(k) {
                *w |= access == crate::program::Access::Write;
            }
            if let Some(s) = span.get_mut(k) {
                let start = s.as_ref().map_or(i, |r| r.start);
                *s = Some(start..i + 1);
            }
        }
    }
    span.into_iter().zip(written).map(|(s, w)| s.map(|s| if w { s } else { 0..s.end })).collect()
}

/// [`live_ranges`], an unused location taking room for a moment.
fn lives(p: &Program) -> Vec<Life> {
    live_ranges(p).into_iter().map(|s| s.unwrap_or(0..1)).collect()
}

/// First partitions that matmuls ask of their operands' locations.
fn first_partitions(p: &Program) -> BTreeMap<LocId, u32> {
    let mut want = BTreeMap::new();
    let mut ask = |ap: &Ap, at: Option<u32>| {
        let free = p.loc(ap.loc).is_some_and(|l| l.partition().is_none());
        if let (true, Some(base)) = (free, at.and_then(|a| a.checked_sub(ap.partition))) {
            want.entry(ap.loc).or_insert(base);
        }
    };
    let start = |ap: &Ap| Some(p.loc(ap.loc)?.partition()? + ap.partition);
    for instr in &p.instrs {
        let (x, w, out, position, scales) = match &instr.op {
            Op::Matmult(m) => (&m.ifmap, &m.weights, &m.out, m.tile_position, None),
            Op::MatmultMx(m) => {
                (&m.ifmap, &m.weights, &m.out, m.tile_position, Some([&m.ifmap_scale, &m.weights_scale]))
            }
            _ => continue,
        };
        let row = position.map(|t| t[0]).or_else(|| start(w)).or_else(|| start(x));
        ask(w, row);
        ask(x, row);
        for index in [&w.index, &x.index].into_iter().flatten() {
            ask(index, row);
        }
        ask(out, position.map(|t| t[1]));
        for s in scales.into_iter().flatten() {
            // A scale's own partition offset selects the rows inside its quadrant.
            ask(s, row.and_then(|r| r.checked_add(s.partition)));
        }
    }
    want
}

/// First partitions that belong together, by location: `base(a) + offset == base(b) + its offset`. Both
/// data operands of a matmul start at one array row, positions lie beside their data, and scales begin in
/// its quadrant.
type Links = BTreeMap<LocId, BTreeSet<(u32, LocId, u32)>>;

fn links(p: &Program) -> Links {
    let mut all = Links::new();
    let mut link = |a: (LocId, u32), b: (LocId, u32)| {
        if a.0 != b.0 {
            all.entry(a.0).or_default().insert((a.1, b.0, b.1));
            all.entry(b.0).or_default().insert((b.1, a.0, a.1));
        }
    };
    let at = |ap: &Ap| (ap.loc, ap.partition);
    for instr in &p.instrs {
        match &instr.op {
            Op::Matmult(m) => {
                link(at(&m.weights), at(&m.ifmap));
                for data in [&m.weights, &m.ifmap] {
                    data.index.iter().for_each(|i| link(at(i), at(data)));
                }
            }
            Op::MatmultSparse(m) => {
                link(at(&m.weights), at(&m.ifmap));
                link(at(&m.tags), at(&m.weights));
            }
            Op::MatmultMx(m) => {
                link(at(&m.weights), at(&m.ifmap));
                for (scale, data) in [(&m.weights_scale, &m.weights), (&m.ifmap_scale, &m.ifmap)] {
                    link((scale.loc, 0), at(data));
                    data.index.iter().for_each(|i| link(at(i), at(data)));
                }
            }
            Op::QuantizeMx { data, scale, .. } => link((scale.loc, 0), at(data)),
            _ => {}
        }
    }
    all
}

/// A location that found no room: its index and the longest range of bytes that was free for it.
#[derive(Debug, Clone)]
struct Unplaced {
    loc: usize,
    best: u64,
    life: Life,
}

type Placement = Vec<(usize, u32, u64)>;

fn place_all(
    p: &Program,
    space: Space,
    size: u64,
    wanted: &BTreeMap<LocId, u32>,
    life: impl Fn(usize) -> Life,
) -> Result<Placement, (Placement, Vec<Unplaced>)> {
    let mut taken = Vec::new();
    let mut todo = Vec::new();
    let uses = first_uses(p);
    for (i, loc) in p.locs.iter().enumerate().filter(|(_, l)| l.space() == space) {
        if let (Some(part), Some(byte)) = (loc.partition(), loc.byte_offset()) {
            let byte = u64::from(byte);
            taken.push(Taken {
                parts: part..part.saturating_add(loc.partitions()),
                bytes: byte..byte + loc.bytes(),
                life: life(i),
            });
        } else {
            todo.push(i);
        }
    }
    todo.sort_by_key(|i| (uses.get(*i).copied().unwrap_or(usize::MAX), *i));
    let mut done: Placement = Vec::new();
    let mut failed = Vec::new();
    let links = links(p);
    let mut bases: Vec<Option<u32>> = p.locs.iter().map(MemLoc::partition).collect();
    for i in todo {
        let Some(loc) = p.locs.get(i) else { continue };
        let id = u32::try_from(i).ok().map(LocId);
        let asked = id.and_then(|id| wanted.get(&id).copied());
        // What is placed already pulls its partners after it.
        let pulled = || {
            let partners = links.get(&id?)?;
            partners.iter().find_map(|(own, other, offset)| {
                let base = bases.get(other.0 as usize).copied().flatten()?;
                let first = base.checked_add(*offset)?.checked_sub(*own)?;
                (first.saturating_add(loc.partitions()) <= PARTITIONS).then_some(first)
            })
        };
        let want = asked.or_else(pulled);
        match find(loc, space, size, want, &life(i), &taken) {
            Ok((part, byte)) => {
                taken.push(Taken {
                    parts: part..part + loc.partitions(),
                    bytes: byte..byte + loc.bytes(),
                    life: life(i),
                });
                done.push((i, part, byte));
                if let Some(base) = bases.get_mut(i) {
                    *base = Some(part);
                }
            }
            Err(best) => failed.push(Unplaced { loc: i, best, life: life(i) }),
        }
    }
    if failed.is_empty() { Ok(done) } else { Err((done, failed)) }
}

fn first_uses(p: &Program) -> Vec<usize> {
    let mut first = vec![usize::MAX; p.locs.len()];
    for (i, instr) in p.instrs.iter().enumerate() {
        for (_, _, ap) in instr.op.uses() {
            if let Some(f) = first.get_mut(ap.loc.0 as usize) {
                *f = (*f).min(i);
            }
        }
    }
    first
}

/// First partitions a location may take.
fn candidates(loc: &MemLoc, want: Option<u32>) -> Vec<u32> {
    if let Some(p) = loc.partition().or(want) {
        return vec![p];
    }
    let n = loc.partitions();
    let all: &[u32] = match n {
        0..=32 => &[0, 32, 64, 96],
        33..=64 => &[0, 64],
        _ => &[0],
    };
    all.to_vec()
}

/// First fit. On failure: the longest free range seen.
fn find(
    loc: &MemLoc,
    space: Space,
    size: u64,
    want: Option<u32>,
    life: &Life,
    taken: &[Taken],
) -> Result<(u32, u64), u64> {
    let need = loc.bytes();
    let mut best = 0;
    let mut choices: Vec<(u32, Vec<Range<u64>>)> = Vec::new();
    for part in candidates(loc, want) {
        let parts = part..part.saturating_add(loc.partitions());
        if parts.end > PARTITIONS {
            continue;
        }
        let gaps = gaps(&parts, size, life, taken);
        best = best.max(gaps.iter().map(|g| g.end - g.start).max().unwrap_or(0));
        choices.push((part, gaps));
    }
    // PSUM first looks for banks of its own, so that unrelated groups do not share one.
    let passes: &[bool] = if space == Space::Psum { &[true, false] } else { &[false] };
    for &own_banks in passes {
        for (part, gaps) in &choices {
            for gap in gaps {
                if let Some(at) = fit(loc, space, gap, need, own_banks) {
                    return Ok((*part, at));
                }
            }
        }
    }
    Err(best)
}

fn fit(loc: &MemLoc, space: Space, gap: &Range<u64>, need: u64, own_banks: bool) -> Option<u64> {
    let bank = u64::from(PSUM_BANK_BYTES);
    let up = |x: u64, a: u64| x.div_ceil(a) * a;
    let at = match (&loc.kind, space) {
        (LocKind::Sb { offset: Some(o), .. }, _) => u64::from(*o),
        (LocKind::Psum { bank: Some(b), offset: Some(o), .. }, _) => u64::from(*b) * bank + u64::from(*o),
        (LocKind::Psum { bank: Some(b), .. }, _) => up(gap.start, ALIGN).max(u64::from(*b) * bank),
        (LocKind::Psum { offset: Some(o), .. }, _) => {
            let first = gap.start.saturating_sub(u64::from(*o));
            up(first, bank) + u64::from(*o)
        }
        (_, Space::Psum) if own_banks || need > bank => up(gap.start, bank),
        (_, Space::Psum) => {
            let at = up(gap.start, ALIGN);
            // A location that fits a bank never straddles two.
            if at % bank + need > bank { up(at, bank) } else { at }
        }
        _ => up(gap.start, ALIGN),
    };
    if let LocKind::Psum { bank: Some(b), .. } = loc.kind
        && need <= bank
        && at + need > (u64::from(b) + 1) * bank
    {
        return None;
    }
    let end = if own_banks { up(at + need, bank) } else { at + need };
    (at >= gap.start && end <= gap.end).then_some(at)
}

/// Free byte ranges on all of `parts` for all of `life`, ascending.
fn gaps(parts: &Range<u32>, size: u64, life: &Life, taken: &[Taken]) -> Vec<Range<u64>> {
    let mut busy: Vec<Range<u64>> = taken
        .iter()
        .filter(|t| {
            t.parts.start < parts.end
                && parts.start < t.parts.end
                && t.life.start < life.end
                && life.start < t.life.end
        })
        .map(|t| t.bytes.clone())
        .collect();
    busy.sort_by_key(|b| b.start);
    let mut out = Vec::new();
    let mut at = 0;
    for b in busy {
        if b.start > at {
            out.push(at..b.start.min(size));
        }
        at = at.max(b.end);
    }
    if at < size {
        out.push(at..size);
    }
    out.retain(|g| !g.is_empty());
    out
}

fn report(p: &Program, space: Space, size: u64, f: &Unplaced, target: Target, sink: &mut Sink) {
    let Some(loc) = p.locs.get(f.loc) else { return };
    let need = loc.bytes();
    let at = p.instrs.get(f.life.start).map_or_else(String::new, |i| format!(" when `{}` needs it", i.name));
    let short = need.saturating_sub(f.best);
    let how =
        if short > 0 { format!("{short} bytes short") } else { "no bank-aligned range is left".to_owned() };
    let (rule, memory) = match space {
        Space::Psum => (&rules::PSUM_FULL, "PSUM"),
        _ => (&rules::SB_FULL, "SB"),
    };
    sink.loc(
        rule,
        loc,
        format!(
            "does not fit{at}: {need} bytes on {} partitions, the longest free range of {size} {memory} bytes on {target} is {}: {how}",
            loc.partitions(),
            f.best
        ),
    );
}
