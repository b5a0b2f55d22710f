//! Reads of bytes that the program has not written, in locations that it writes (D-43).
//!
//! A location that nothing writes is an input and always holds values. Followed by location, in program
//! order; the data of a gather is not followed, since its positions are values.

use std::collections::BTreeSet;

use crate::geom::{self, Area, RunSet};
use crate::program::{Access, Ap, Instr, LocId, LocKind, Op, Program, Role, Space};

use super::operand::is_scale;
use super::rules::{self, Sink};

/// Reports the first unwritten byte of each operand that reads one.
///
/// `sound[i]` says that instruction i broke no rule so far; what others write is not known, so their
/// locations are left alone. With `several` cores so are DRAM tensors, which another core may write.
pub(super) fn check(p: &Program, sound: &[bool], several: bool, sink: &mut Sink) {
    let mut followed: BTreeSet<LocId> = BTreeSet::new();
    let mut unknown: BTreeSet<LocId> = BTreeSet::new();
    for (i, instr) in p.instrs.iter().enumerate() {
        for (_, access, ap) in instr.op.operands() {
            if access == Access::Write {
                followed.insert(ap.loc);
                if !sound.get(i).copied().unwrap_or(false) {
                    unknown.insert(ap.loc);
                }
            }
        }
    }
    followed.retain(|id| {
        let kind = p.loc(*id).map(|l| &l.kind);
        let outside = match kind {
            Some(LocKind::Dram { role, .. }) => several || *role == Role::Input,
            _ => kind.is_none(),
        };
        !outside && !unknown.contains(id)
    });
    let mut written: Vec<Area> = vec![Area::default(); p.locs.len()];
    for (i, instr) in p.instrs.iter().enumerate() {
        if !sound.get(i).copied().unwrap_or(false) {
            continue;
        }
        let mut fresh = Vec::new();
        for (name, access, ap) in instr.op.uses() {
            if !followed.contains(&ap.loc) || ap.index.is_some() {
                continue;
            }
            let (Some(area), Some(loc)) = (touched(p, instr, name, ap), p.loc(ap.loc)) else { continue };
            let Some(have) = written.get(ap.loc.0 as usize) else { continue };
            if access == Access::Write {
                fresh.push((ap.loc, area));
            } else if let Some((partition, byte)) = area.subtract(have).first() {
                let place = match loc.space() {
                    Space::Dram => format!("byte {byte}"),
                    _ => format!("partition {partition}, byte {byte}"),
                };
                sink.instr(
                    &rules::UNWRITTEN,
                    (i, instr),
                    Some(name),
                    format!(
                        "reads {place} of {} location `{}`, which is not written before",
                        loc.space(),
                        loc.name
                    ),
                );
            }
        }
        for (id, area) in fresh {
            if let Some(have) = written.get_mut(id.0 as usize) {
                *have = have.union(&area);
            }
        }
    }
}

/// The cells an operand touches, relative to its location.
fn touched(p: &Program, instr: &Instr, name: &str, ap: &Ap) -> Option<Area> {
    let space = p.loc(ap.loc)?.space();
    if space == Space::Dram {
        return Some(Area::new(0..1, geom::operand_runs(ap, space)?));
    }
    if !is_scale(name) {
        return Area::of(ap, space);
    }
    let data = match (&instr.op, name) {
        (Op::MatmultMx(mm), "ifmap_scale") => &mm.ifmap,
        (Op::MatmultMx(mm), _) => &mm.weights,
        (Op::QuantizeMx { data, .. }, _) => data,
        _ => return None,
    };
    Some(scale_area(ap.partition, data.partitions(), &geom::operand_runs(ap, space)?))
}

/// The rows that hold the scales of `partitions` partitions of data: row i sits at
/// `first + i % 4 + 32 * (i / 4)`.
pub(super) fn scale_area(first: u32, partitions: u64, runs: &RunSet) -> Area {
    let rows = u32::try_from(partitions / 8).unwrap_or(0).min(16);
    (0..rows.div_ceil(4)).fold(Area::default(), |all, q| {
        let start = first.saturating_add(32 * q);
        let end = start.saturating_add((rows - 4 * q).min(4));
        all.union(&Area::new(start..end, runs.clone()))
    })
}
