//! First writes and accumulation groups.
//!
//! With calc auto, the first matmul write of a PSUM element overwrites (START) and later ones add, per
//! element (D-28); a destination that mixes both is split along the moving free dimension. Matmuls that
//! share elements form a group until another engine touches one of them; the group's last member gets
//! STOP (D-24). Writes are followed by location, not by address: a new location is a new tensor.

use std::collections::BTreeMap;

use hadal_isa::{ACCUMULATE, START, STOP, Target};

use crate::geom::{self, Area, RunSet};
use crate::program::{Access, Ap, Calc, Immediate, Instr, LocId, Matmult, Op, Program, Space};
use crate::verify::rules::{self, Sink};
use crate::verify::{takes_pairs, transposes_exactly};

use super::slice;

/// An accumulation group: matmuls that add into shared PSUM elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Location the group writes.
    pub loc: LocId,
    /// Member instructions, in order; the parts of one split matmul are consecutive.
    pub members: Vec<usize>,
    /// Index of the instruction that closed the group; `usize::MAX` at the end of the program.
    pub closed_by: usize,
}

/// What the pass found out.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Groups in the order they closed.
    pub groups: Vec<Group>,
    /// For each instruction of the rewritten program, the index of the one it came from.
    pub origin: Vec<usize>,
}

#[derive(Default)]
struct OpenGroup {
    area: Area,
    /// Each unit is one matmul of the source: its parts.
    units: Vec<Vec<usize>>,
    has_auto: bool,
}

impl OpenGroup {
    fn merge(mut self, other: OpenGroup) -> OpenGroup {
        self.area = self.area.union(&other.area);
        self.units.extend(other.units);
        self.units.sort();
        self.has_auto |= other.has_auto;
        self
    }
}

#[derive(Default)]
struct LocState {
    /// Cells a matmul wrote since another engine last did.
    started: Area,
    /// Cells another engine wrote last.
    foreign: Area,
    open: Vec<OpenGroup>,
}

struct Pass<'a> {
    out: Vec<Instr>,
    outcome: Outcome,
    state: BTreeMap<LocId, LocState>,
    sink: &'a mut Sink,
    target: Target,
}

/// Fills accumulate bytes, splits mixed destinations, and reports broken accumulation rules.
///
/// `sound[i]` says that instruction i passed the operand rules; others are carried along untouched.
pub(crate) fn run(p: &mut Program, sound: &[bool], target: Target, sink: &mut Sink) -> Outcome {
    let instrs = std::mem::take(&mut p.instrs);
    let mut pass = Pass {
        out: Vec::with_capacity(instrs.len()),
        outcome: Outcome::default(),
        state: BTreeMap::new(),
        sink,
        target,
    };
    for (i, instr) in instrs.into_iter().enumerate() {
        if sound.get(i).copied().unwrap_or(false) {
            pass.step(p, i, instr);
        } else {
            pass.assume(&instr);
            pass.push(i, instr);
        }
    }
    pass.close_all();
    let Pass { out, outcome, .. } = pass;
    p.instrs = out;
    if target.level > 40 {
        return explicit_zeroes(p, outcome);
    }
    outcome
}

impl Pass<'_> {
    fn push(&mut self, origin: usize, instr: Instr) -> usize {
        self.out.push(instr);
        self.outcome.origin.push(origin);
        self.out.len() - 1
    }

    /// A matmul that broke another rule counts as a START, so that those after it are not blamed too.
    fn assume(&mut self, instr: &Instr) {
        if !instr.op.is_matmul() {
            return;
        }
        let Some(&(_, _, out)) = instr.op.operands().last() else { return };
        let Some(area) = Area::of(out, Space::Psum) else { return };
        let s = self.state.entry(out.loc).or_default();
        s.started = s.started.union(&area);
        s.foreign = s.foreign.subtract(&area);
    }

    fn step(&mut self, p: &Program, i: usize, instr: Instr) {
        if !instr.op.is_matmul() {
            let here = self.out.len();
            for (_, access, ap) in instr.op.uses() {
                let psum = p.loc(ap.loc).is_some_and(|l| l.space() == Space::Psum);
                if let Some(area) = psum.then(|| Area::of(ap, Space::Psum)).flatten() {
                    self.touched(ap.loc, &area, access, here);
                }
            }
            self.push(i, instr);
            return;
        }
        let mut instr = instr;
        match &mut instr.op {
            Op::Matmult(mm) => {
                let exact = transposes_exactly(mm, self.target.generation);
                let calc = match mm.calc {
                    Calc::Auto => None,
                    Calc::Explicit(f) => Some(f.byte()),
                };
                if exact && calc.is_some_and(|b| b & START == 0) {
                    self.sink.instr(
                        &rules::TRANSPOSE_MODE,
                        (i, &instr),
                        None,
                        "a transpose does not accumulate".to_owned(),
                    );
                    self.push(i, instr);
                    return;
                }
                self.matmul(i, instr, calc, exact);
            }
            Op::MatmultMx(mm) => {
                let calc = mm.accumulate_flags;
                self.matmul(i, instr, calc, false);
            }
            // A sparse matmul carries no accumulate byte: START is implied.
            _ => self.matmul(i, instr, Some(START | STOP), false),
        }
    }

    /// Another engine read or wrote `area`.
    fn touched(&mut self, loc: LocId, area: &Area, access: Access, here: usize) {
        self.close(loc, area, here);
        if access == Access::Write {
            let s = self.state.entry(loc).or_default();
            s.started = s.started.subtract(area);
            s.foreign = s.foreign.union(area);
        }
    }

    /// One matmul; `calc` is its explicit accumulate byte, if any; `fresh` forces START.
    fn matmul(&mut self, i: usize, instr: Instr, calc: Option<u8>, fresh: bool) {
        let Some(out) = instr.op.operands().last().map(|o| o.2.clone()) else { return };
        let Some(area) = Area::of(&out, Space::Psum) else {
            self.push(i, instr);
            return;
        };
        let loc = out.loc;
        let state = self.state.entry(loc).or_default();
        let here = self.out.len();
        if let Some(byte) = calc {
            if byte & START != 0 {
                self.close(loc, &area, here);
            } else {
                let missing = area.subtract(&state.started);
                let foreign = missing.intersect(&state.foreign);
                let gen4 = self.target.generation == hadal_isa::Gen::Gen4;
                if let Some((p, b)) = foreign.first().filter(|_| !gen4) {
                    self.sink.instr(
                        &rules::OTHER_ENGINE,
                        (i, &instr),
                        Some("out"),
                        format!("accumulates at partition {p}, byte {b} over what another engine wrote, undefined on {}", self.target),
                    );
                } else if let Some((p, b)) = missing.subtract(&foreign).first() {
                    self.sink.instr(
                        &rules::NEVER_STARTED,
                        (i, &instr),
                        Some("out"),
                        format!("accumulates at partition {p}, byte {b}, which no START has covered"),
                    );
                }
            }
            let k = self.push(i, instr);
            self.set(k, byte);
            self.join(loc, area, vec![k], false);
            return;
        }
        let covered = area.intersect(&state.started);
        let byte = if fresh || covered.is_empty() {
            START
        } else if covered == area {
            ACCUMULATE
        } else {
            self.split(i, instr, &out, area);
            return;
        };
        if fresh {
            self.close(loc, &area, here);
        }
        let k = self.push(i, instr);
        self.set(k, byte);
        self.join(loc, area, vec![k], true);
    }

    /// A destination with both first and later writes becomes one matmul for each run of moving columns.
    fn split(&mut self, i: usize, instr: Instr, out: &Ap, area: Area) {
        let loc = out.loc;
        let size = out.dtype.bytes() as u64;
        let parts = geom::operand_partitions(out);
        let started = self.state.entry(loc).or_default().started.clone();
        // Which moving columns were written before, in the destination's linear order.
        let mut later: Vec<bool> = Vec::new();
        for byte in column_bytes(out) {
            let cell = Area::new(parts.clone(), RunSet::single(byte..byte.saturating_add(size)));
            let all = started.contains(&cell);
            if !all && started.intersects(&cell) {
                self.sink.instr(
                    &rules::MIXED_COLUMNS,
                    (i, &instr),
                    Some("out"),
                    format!("destination byte {byte} is a first write on some partitions and a later one on others"),
                );
                self.push(i, instr);
                return;
            }
            later.push(all);
        }
        let mut unit = Vec::new();
        let mut at = 0usize;
        while let Some(&class) = later.get(at) {
            let end = later.iter().skip(at).position(|c| *c != class).map_or(later.len(), |n| at + n);
            let mut from = at as u64;
            while from < end as u64 {
                let Some((part, len)) = cut(&instr, from, end as u64 - from) else {
                    self.push(i, instr);
                    return;
                };
                let mut part = part;
                if !unit.is_empty() {
                    part.name = format!("{}.{}", instr.name, unit.len());
                }
                let k = self.push(i, part);
                self.set(k, if class { ACCUMULATE } else { START });
                unit.push(k);
                from += len;
            }
            at = end;
        }
        self.join(loc, area, unit, true);
    }

    fn set(&mut self, k: usize, byte: u8) {
        match self.out.get_mut(k).map(|i| &mut i.op) {
            Some(Op::Matmult(mm)) => mm.flags = Some(byte),
            Some(Op::MatmultMx(mm)) => mm.accumulate_flags = Some(byte),
            _ => {}
        }
    }

    fn byte(&self, k: usize) -> u8 {
        match self.out.get(k).map(|i| &i.op) {
            Some(Op::Matmult(mm)) => mm.flags.unwrap_or(0),
            Some(Op::MatmultMx(mm)) => mm.accumulate_flags.unwrap_or(0),
            _ => 0,
        }
    }

    /// Adds a matmul to the groups it shares elements with, merging them.
    fn join(&mut self, loc: LocId, area: Area, unit: Vec<usize>, auto: bool) {
        let s = self.state.entry(loc).or_default();
        s.started = s.started.union(&area);
        s.foreign = s.foreign.subtract(&area);
        let mut merged: Option<OpenGroup> = None;
        for k in (0..s.open.len()).rev() {
            if !s.open.get(k).is_some_and(|g| g.area.intersects(&area)) {
                continue;
            }
            let g = s.open.remove(k);
            merged = Some(match merged {
                None => g,
                Some(m) => m.merge(g),
            });
        }
        let mut group = merged.unwrap_or_default();
        group.area = group.area.union(&area);
        group.has_auto |= auto;
        // Units come in program order, so only a merge has to sort.
        group.units.push(unit);
        s.open.push(group);
    }

    /// Closes the groups of a location that touch `area`.
    fn close(&mut self, loc: LocId, area: &Area, here: usize) {
        let Some(s) = self.state.get_mut(&loc) else { return };
        let (hit, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut s.open).into_iter().partition(|g| g.area.intersects(area));
        s.open = rest;
        for g in hit {
            self.finish(loc, g, here);
        }
    }

    fn close_all(&mut self) {
        let open: Vec<(LocId, Vec<OpenGroup>)> =
            self.state.iter_mut().map(|(l, s)| (*l, std::mem::take(&mut s.open))).collect();
        for (loc, groups) in open {
            for g in groups {
                self.finish(loc, g, usize::MAX);
            }
        }
    }

    fn finish(&mut self, loc: LocId, g: OpenGroup, here: usize) {
        if g.has_auto {
            let last = g.units.len().saturating_sub(1);
            for (u, unit) in g.units.iter().enumerate() {
                for &k in unit {
                    let byte = self.byte(k);
                    // In a mixed group the author's STOP bits are derived anew like the rest.
                    let byte = if u == last { byte | STOP } else { byte & !STOP };
                    self.set(k, byte);
                }
            }
        }
        self.outcome.groups.push(Group {
            loc,
            members: g.units.into_iter().flatten().collect(),
            closed_by: here,
        });
    }
}

/// Byte offsets of the destination's elements in one partition, in linear order.
fn column_bytes(out: &Ap) -> Vec<u64> {
    let size = out.dtype.bytes() as i64;
    let base = i64::try_from(out.offset).unwrap_or(i64::MAX);
    let mut v = vec![base];
    for p in out.free() {
        let step = p.step.saturating_mul(size);
        v = v
            .iter()
            .flat_map(|o| (0..p.num).map(move |k| o.saturating_add(step.saturating_mul(k as i64))))
            .collect();
    }
    v.into_iter().filter_map(|b| u64::try_from(b).ok()).collect()
}

/// The matmul restricted to moving columns `at ..` of at most `want`, and how many it took.
fn cut(instr: &Instr, at: u64, want: u64) -> Option<(Instr, u64)> {
    let mut part = instr.clone();
    let (x, out, planes, extra) = match &mut part.op {
        Op::Matmult(mm) => {
            let planes = usize::from(takes_pairs(mm.perf_mode));
            let Matmult { ifmap, out, .. } = mm.as_mut();
            (ifmap, out, planes, None)
        }
        Op::MatmultMx(mm) => {
            let mm = mm.as_mut();
            (&mut mm.ifmap, &mut mm.out, 0, Some(&mut mm.ifmap_scale))
        }
        _ => return None,
    };
    let len = slice::common_piece(x.pattern.get(1 + planes..)?, out.free(), at, want);
    narrow(x, 1 + planes, at, len)?;
    narrow(out, 1, at, len)?;
    if let Some(scale) = extra {
        narrow(scale, 1, at, len)?;
    }
    Some((part, len))
}

fn narrow(ap: &mut Ap, from: usize, at: u64, len: u64) -> Option<()> {
    if let Some(index) = &mut ap.index {
        // The positions move on; the base they count from stays.
        narrow(index, from, at, len)?;
        ap.pattern.get_mut(from)?.num = len;
        return Some(());
    }
    let (distance, sub) = slice::slice(ap.pattern.get(from..)?, at, len)?;
    let bytes = distance.checked_mul(i64::try_from(ap.dtype.bytes()).ok()?)?;
    ap.offset = ap.offset.checked_add_signed(bytes)?;
    ap.pattern.truncate(from);
    ap.pattern.extend(sub);
    Some(())
}

/// Above level 40 a Matmul carries no accumulate byte: START becomes a Memset before it (D-42).
fn explicit_zeroes(p: &mut Program, outcome: Outcome) -> Outcome {
    let instrs = std::mem::take(&mut p.instrs);
    let mut moved = Vec::with_capacity(instrs.len());
    let mut origin = Vec::new();
    for (i, mut instr) in instrs.into_iter().enumerate() {
        let from = outcome.origin.get(i).copied().unwrap_or(i);
        if let Op::Matmult(mm) = &mut instr.op
            && !transposes_exactly(mm, hadal_isa::Gen::Gen4)
            && let Some(byte) = mm.flags.filter(|b| b & START != 0)
        {
            mm.flags = Some(byte & !START | ACCUMULATE);
            let op = Op::Memset { dst: mm.out.clone(), value: Immediate::Float(0.0) };
            let engine = op.default_engine();
            p.instrs.push(Instr { name: format!("{}.zero", instr.name), op, engine, pos: instr.pos.clone() });
            origin.push(from);
        }
        moved.push(p.instrs.len());
        p.instrs.push(instr);
        origin.push(from);
    }
    let groups = outcome
        .groups
        .into_iter()
        .map(|g| Group {
            loc: g.loc,
            members: g.members.iter().filter_map(|m| moved.get(*m).copied()).collect(),
            closed_by: moved.get(g.closed_by).copied().unwrap_or(usize::MAX),
        })
        .collect();
    Outcome { groups, origin }
}
