//! What a program needs from outside.

use std::collections::BTreeSet;

use hadal_ir::program::{Access, Ap, LocId, LocKind, MemLoc, Module, Op, Program, Role};
use hadal_num::Dtype;

use super::purpose::{self, Purpose};

/// Why a location is an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputRole {
    /// A DRAM tensor declared as a program argument.
    Argument,
    /// A location that some instruction reads and none writes.
    Implicit,
}

/// A location that a run must fill.
#[derive(Debug, Clone, PartialEq)]
pub struct InputSpec {
    /// The location.
    pub id: LocId,
    /// Its name.
    pub name: String,
    /// Element type: the declared one in DRAM, else that of the first access pattern that uses it.
    pub dtype: Dtype,
    /// Shape in containers: the declared one in DRAM, else `[partitions, bytes / container]`.
    pub shape: Vec<usize>,
    /// Why it is an input.
    pub role: InputRole,
    /// What it is for: how a seed fills it.
    pub purpose: Purpose,
}

/// Every access pattern of an operator with its role, the index lists of gathers included.
fn uses(op: &Op) -> impl Iterator<Item = (Access, &Ap)> {
    op.operands().into_iter().flat_map(|(_, access, ap)| {
        let index = ap.index.as_deref().map(|i| (Access::Read, i));
        std::iter::once((access, ap)).chain(index)
    })
}

/// Element type of a location: declared in DRAM, else that of the first access pattern that uses it, else
/// uint8.
pub fn element_type(program: &Program, id: LocId) -> Dtype {
    if let Some(MemLoc { kind: LocKind::Dram { dtype, .. }, .. }) = program.loc(id) {
        return *dtype;
    }
    let mut all = program.instrs.iter().flat_map(|i| uses(&i.op));
    all.find(|(_, ap)| ap.loc == id).map_or(Dtype::Uint8, |(_, ap)| ap.dtype)
}

/// The [`element_type`] of every location, in one pass.
fn element_types(program: &Program) -> Vec<Dtype> {
    let mut types: Vec<Option<Dtype>> = program
        .locs
        .iter()
        .map(|loc| match loc.kind {
            LocKind::Dram { dtype, .. } => Some(dtype),
            _ => None,
        })
        .collect();
    for (_, ap) in program.instrs.iter().flat_map(|i| uses(&i.op)) {
        if let Some(known) = types.get_mut(ap.loc.0 as usize) {
            known.get_or_insert(ap.dtype);
        }
    }
    types.into_iter().map(|t| t.unwrap_or(Dtype::Uint8)).collect()
}

/// Shape of a location in containers of `dtype`.
pub fn shape_of(loc: &MemLoc, dtype: Dtype) -> Vec<usize> {
    match &loc.kind {
        LocKind::Dram { shape, .. } => {
            shape.iter().map(|d| usize::try_from(*d).unwrap_or(usize::MAX)).collect()
        }
        _ => {
            let per_row = usize::try_from(loc.bytes()).unwrap_or(usize::MAX) / dtype.bytes();
            vec![loc.partitions() as usize, per_row]
        }
    }
}

/// The inputs of one program, in order of declaration.
pub fn inputs(program: &Program) -> Vec<InputSpec> {
    inputs_except(program, &BTreeSet::new())
}

/// Pairs of inputs in SBUF or PSUM that share bytes: the later one's values stand there.
pub fn overlapping(program: &Program, specs: &[InputSpec]) -> Vec<(String, String)> {
    struct Place<'a> {
        name: &'a str,
        psum: bool,
        rows: std::ops::Range<u64>,
        bytes: std::ops::Range<u64>,
    }
    let place = |spec: &InputSpec| {
        let loc = program.loc(spec.id).filter(|l| !is_dram(l))?;
        let (first, offset) = (u64::from(loc.partition()?), u64::from(loc.byte_offset()?));
        Some(Place {
            name: loc.name.as_str(),
            psum: matches!(loc.kind, LocKind::Psum { .. }),
            rows: first..first + u64::from(loc.partitions()),
            bytes: offset..offset.saturating_add(loc.bytes()),
        })
    };
    let mut places: Vec<Place<'_>> = specs.iter().filter_map(place).collect();
    places.sort_by_key(|p| (p.psum, p.bytes.start));
    let mut out = Vec::new();
    for (k, a) in places.iter().enumerate() {
        let near = places.iter().skip(k + 1).take_while(|b| b.psum == a.psum && b.bytes.start < a.bytes.end);
        let rows = |b: &&Place<'_>| b.rows.start < a.rows.end && a.rows.start < b.rows.end;
        out.extend(near.filter(rows).map(|b| (a.name.to_owned(), b.name.to_owned())));
    }
    out
}

/// The inputs of every core. A DRAM tensor that any core writes is no implicit input of another; one that
/// several cores need is listed for the first.
pub fn module_inputs(module: &Module) -> Vec<Vec<InputSpec>> {
    let mut known: BTreeSet<String> = module.cores.iter().flat_map(written_dram).collect();
    let mut out = Vec::with_capacity(module.cores.len());
    for program in &module.cores {
        let list = inputs_except(program, &known);
        known.extend(list.iter().filter(|i| program.loc(i.id).is_some_and(is_dram)).map(|i| i.name.clone()));
        out.push(list);
    }
    out
}

fn is_dram(loc: &MemLoc) -> bool {
    matches!(loc.kind, LocKind::Dram { .. })
}

/// Names of the DRAM tensors a program writes and that are not its declared inputs.
fn written_dram(program: &Program) -> Vec<String> {
    let argument = |l: &MemLoc| matches!(l.kind, LocKind::Dram { role: Role::Input, .. });
    let written = written(program);
    let locs = program.locs.iter().zip(0u32..);
    locs.filter(|(l, i)| is_dram(l) && !argument(l) && written.contains(&LocId(*i)))
        .map(|(l, _)| l.name.clone())
        .collect()
}

fn written(program: &Program) -> BTreeSet<LocId> {
    let all = program.instrs.iter().flat_map(|i| uses(&i.op));
    all.filter(|(access, _)| *access == Access::Write).map(|(_, ap)| ap.loc).collect()
}

fn inputs_except(program: &Program, dram_known: &BTreeSet<String>) -> Vec<InputSpec> {
    let written = written(program);
    let mut read: BTreeSet<LocId> = BTreeSet::new();
    for (access, ap) in program.instrs.iter().flat_map(|i| uses(&i.op)) {
        if access == Access::Read {
            read.insert(ap.loc);
        }
    }
    let mut special = purpose::special(program);
    let types = element_types(program);
    let mut out = Vec::new();
    for (loc, id) in program.locs.iter().zip((0u32..).map(LocId)) {
        let role = match loc.kind {
            LocKind::Dram { role: Role::Input, .. } => InputRole::Argument,
            _ if read.contains(&id) && !written.contains(&id) => InputRole::Implicit,
            _ => continue,
        };
        if is_dram(loc) && dram_known.contains(&loc.name) {
            continue;
        }
        let dtype = types.get(id.0 as usize).copied().unwrap_or(Dtype::Uint8);
        let values = || Purpose::Values(purpose::read_as(program, id, dtype));
        let purpose = special.remove(&id).unwrap_or_else(values);
        let shape = shape_of(loc, dtype);
        out.push(InputSpec { id, name: loc.name.clone(), dtype, shape, role, purpose });
    }
    out
}
