//! Rules about addresses: capacity, alignment, partition starts, tiles, banks, zero regions.

use std::collections::BTreeSet;

use hadal_isa::{Gen, Target};
use hadal_num::Dtype;

use crate::geom;
use crate::passes::accumulate::Group;
use crate::program::{
    Access, Ap, Instr, LocId, LocKind, Matmult, MemLoc, Op, PARTITIONS, PSUM_BANK_BYTES, PSUM_BANKS,
    PSUM_BYTES, Program, Space,
};

use super::matmul;
use super::operand::is_scale;
use super::rules::{self, Sink};

/// Partition range and capacity of each location; the ids of those that broke a rule.
pub(super) fn locations(p: &Program, target: Target, sink: &mut Sink) -> BTreeSet<LocId> {
    let mut bad = BTreeSet::new();
    for (id, loc) in (0u32..).map(LocId).zip(&p.locs) {
        let before = sink.found.len();
        location(loc, target, sink);
        if sink.found.len() > before {
            bad.insert(id);
        }
    }
    bad
}

fn location(loc: &MemLoc, target: Target, sink: &mut Sink) {
    let size = match loc.space() {
        Space::Sb => target.sbuf_bytes_per_partition(),
        Space::Psum => PSUM_BYTES,
        Space::Dram => return,
    };
    let (first, n) = (loc.partition().unwrap_or(0), loc.partitions());
    if n == 0 || first.saturating_add(n) > PARTITIONS {
        sink.loc(
            &rules::LOCATION_PARTITIONS,
            loc,
            format!("partitions {first}..{} lie outside 0..{PARTITIONS}", first.saturating_add(n)),
        );
    }
    if let LocKind::Psum { bank: Some(b), .. } = loc.kind
        && b >= PSUM_BANKS
    {
        sink.loc(&rules::CAPACITY, loc, format!("bank {b}, PSUM has banks 0..{PSUM_BANKS}"));
        return;
    }
    let end = u64::from(loc.byte_offset().unwrap_or(0)) + loc.bytes();
    if end > u64::from(size) {
        sink.loc(
            &rules::CAPACITY,
            loc,
            format!(
                "ends at byte {end} of its partitions; {target} has {size} bytes in a {} partition: {} over",
                loc.space(),
                end - u64::from(size)
            ),
        );
    }
}

/// Address rules of one instruction whose operand rules held.
///
/// Operands in the locations of `bad` are left alone: their addresses mean nothing.
pub(super) fn check(
    p: &Program,
    at: (usize, &Instr),
    bad: &BTreeSet<LocId>,
    target: Target,
    sink: &mut Sink,
) {
    if at.1.op.uses().iter().any(|(_, _, ap)| bad.contains(&ap.loc)) {
        return;
    }
    let before = sink.found.len();
    for (name, access, ap) in at.1.op.uses() {
        let Some(loc) = p.loc(ap.loc).filter(|l| l.space() != Space::Dram) else { continue };
        alignment(at, name, access, ap, loc, sink);
        partition_start(at, name, ap, loc, sink);
    }
    let sound = sink.found.len() == before;
    match &at.1.op {
        Op::Matmult(mm) => {
            if sound {
                tile(p, at, mm, target, sink);
            }
            bank(p, at, &mm.out, target, sink);
        }
        Op::MatmultSparse(mm) => bank(p, at, &mm.out, target, sink),
        Op::MatmultMx(mm) => {
            super::mx::place_matmul(p, at, mm, sink);
            bank(p, at, &mm.out, target, sink);
        }
        Op::QuantizeMx { data, scale, .. } => {
            super::mx::place_scale(p, at, "scale", data, scale, sink);
            super::mx::outputs(p, at, data, scale, sink);
        }
        _ => {}
    }
}

fn alignment(
    at: (usize, &Instr),
    name: &'static str,
    access: Access,
    ap: &Ap,
    loc: &MemLoc,
    sink: &mut Sink,
) {
    if matches!(at.1.op, Op::DmaCopy { .. }) {
        return;
    }
    let Some(start) = geom::start_byte(ap, loc) else { return };
    // A PSUM destination of the array is checked as 4 bytes, but for the bfloat16 form.
    let matmul_dst = at.1.op.is_matmul() && access == Access::Write;
    let unit = if matmul_dst && ap.dtype != Dtype::Bfloat16 { 4 } else { (ap.dtype.bytes() as u64).min(4) };
    if start % unit != 0 {
        sink.instr(
            &rules::ALIGNMENT,
            at,
            Some(name),
            format!("starts at byte {start} of its partition, not a multiple of {unit}"),
        );
    }
}

fn partition_start(at: (usize, &Instr), name: &'static str, ap: &Ap, loc: &MemLoc, sink: &mut Sink) {
    // DMA queues address any partition; scales follow their own placement.
    if matches!(at.1.op, Op::DmaCopy { .. }) || is_scale(name) {
        return;
    }
    let Some(start) = geom::start_partition(ap, loc) else { return };
    let n = ap.partitions();
    let step = match n {
        0..=32 => 32,
        33..=64 => 64,
        _ => 128,
    };
    if start % step != 0 || u64::from(start) + n > u64::from(PARTITIONS) {
        sink.instr(
            &rules::PARTITION_START,
            at,
            Some(name),
            format!("{n} partitions start at partition {start}"),
        );
    }
}

fn tile(p: &Program, at: (usize, &Instr), mm: &Matmult, target: Target, sink: &mut Sink) {
    let start = |ap: &Ap| p.loc(ap.loc).and_then(|l| geom::start_partition(ap, l));
    let (Some(x), Some(w), Some(out)) = (start(&mm.ifmap), start(&mm.weights), start(&mm.out)) else {
        return;
    };
    if x != w {
        sink.instr(
            &rules::ROW_START,
            at,
            Some("ifmap"),
            format!("moving starts at partition {x}, stationary at {w}"),
        );
    }
    let Some([row, col]) = mm.tile_position else { return };
    if matmul::tile_fault(mm.tile_size, mm.tile_position, target.generation).is_some() {
        return;
    }
    for (name, what, has, want) in
        [("ifmap", "row", x, row), ("weights", "row", w, row), ("out", "column", out, col)]
    {
        if has != want {
            sink.instr(
                &rules::TILE_PLACEMENT,
                at,
                Some(name),
                format!(
                    "tile_position {:?} puts {name} at array {what} {want}, but it starts at partition {has}",
                    [row, col]
                ),
            );
        }
    }
    // Without a tile size the operands' own extents decide.
    let s = matmul::shape(mm);
    if mm.tile_size.is_none()
        && (u64::from(row) + s.k > u64::from(PARTITIONS) || u64::from(col) + s.m > u64::from(PARTITIONS))
    {
        sink.instr(
            &rules::TILE_POSITION,
            at,
            None,
            format!(
                "tile_position {:?} with {} rows and {} columns leaves the array of {}",
                [row, col],
                s.k,
                s.m,
                target
            ),
        );
    }
}

fn bank(p: &Program, at: (usize, &Instr), out: &Ap, target: Target, sink: &mut Sink) {
    let Some(loc) = p.loc(out.loc).filter(|l| l.space() == Space::Psum) else { return };
    let (Some(base), Some(runs)) = (loc.byte_offset(), geom::operand_runs(out, Space::Psum)) else { return };
    let (Some(first), Some(last)) = (runs.runs().first(), runs.runs().last()) else { return };
    let bank = u64::from(PSUM_BANK_BYTES);
    let (start, end) = (u64::from(base) + first.start, u64::from(base) + last.end);
    let banks = (end - 1) / bank - start / bank + 1;
    let limit = if target.generation == Gen::Gen4 { u64::from(PSUM_BANKS) } else { 1 };
    if banks > limit {
        sink.instr(
            &rules::BANK_CROSSING,
            at,
            Some("out"),
            format!(
                "bytes {start}..{end} of PSUM cross from bank {} into bank {}; {target} accumulates within {limit} bank{}",
                start / bank,
                (end - 1) / bank,
                if limit == 1 { "" } else { "s" }
            ),
        );
    }
}

/// One group's banks while it is open.
struct Zone<'a> {
    first: usize,
    last: usize,
    parts: std::ops::Range<u32>,
    /// What START clears, or without an explicit region what the group writes.
    banks: std::ops::Range<u64>,
    explicit: bool,
    instr: &'a Instr,
}

fn zone<'a>(p: &'a Program, g: &Group) -> Option<Zone<'a>> {
    let (&first, &last) = (g.members.first()?, g.members.last()?);
    let instr = p.instrs.get(first)?;
    let (out, region) = match &instr.op {
        Op::Matmult(m) => (&m.out, m.psum_zero_region),
        Op::MatmultMx(m) => (&m.out, m.psum_zero_region),
        Op::MatmultSparse(m) => (&m.out, None),
        _ => return None,
    };
    let loc = p.loc(out.loc)?;
    let (byte, part) = (geom::start_byte(out, loc)?, geom::start_partition(out, loc)?);
    let parts = part..part.saturating_add(u32::try_from(out.partitions()).unwrap_or(u32::MAX));
    let bank = u64::from(PSUM_BANK_BYTES);
    let explicit = region.filter(|n| *n > 0 && *n <= 3);
    let banks = match explicit {
        Some(n) => {
            let width = 1u64 << n;
            let start = byte / bank / width * width;
            start..start + width
        }
        None => {
            let runs = geom::operand_runs(out, Space::Psum)?;
            let base = u64::from(loc.byte_offset()?);
            let (lo, hi) = (runs.runs().first()?.start, runs.runs().last()?.end);
            (base + lo) / bank..(base + hi).div_ceil(bank)
        }
    };
    Some(Zone { first, last, parts, banks, explicit: explicit.is_some(), instr })
}

/// An explicit zero region clears whole banks: those of another open group must not be among them (D-37).
pub(super) fn zero_regions(p: &Program, groups: &[Group], sink: &mut Sink) {
    let mut zones: Vec<Zone<'_>> = groups.iter().filter_map(|g| zone(p, g)).collect();
    if !zones.iter().any(|z| z.explicit) {
        return;
    }
    zones.sort_by_key(|z| z.first);
    for (i, early) in zones.iter().enumerate() {
        for late in zones.iter().skip(i + 1).take_while(|l| l.first <= early.last) {
            let meet = early.banks.start < late.banks.end
                && late.banks.start < early.banks.end
                && early.parts.start < late.parts.end
                && late.parts.start < early.parts.end;
            // The earlier group has cleared its region already; what it clears is not the later one's loss.
            if !meet || !late.explicit {
                continue;
            }
            let does = |z: &Zone<'_>| if z.explicit { "zeroes" } else { "writes" };
            sink.instr(
                &rules::ZERO_REGIONS,
                (late.first, late.instr),
                Some("out"),
                format!(
                    "the group starting at `{}` {} banks {}..{}, the open group of `{}` {} banks {}..{}",
                    late.instr.name,
                    does(late),
                    late.banks.start,
                    late.banks.end,
                    early.instr.name,
                    does(early),
                    early.banks.start,
                    early.banks.end
                ),
            );
        }
    }
}
