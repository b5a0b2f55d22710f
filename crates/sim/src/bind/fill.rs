//! Giving a program's inputs their values.

use std::collections::BTreeMap;

use hadal_ir::program::{LocKind, MemLoc, Program};
use hadal_num::{Dtype, Overflow};

use super::random::Stream;
use super::{Array, BindError, InputSpec, element_type, inputs, purpose, shape_of};
use crate::memory::Machine;

/// Writes every input of a program: the arrays of `given` by name, the others from `seed` in the form their
/// use needs ([`super::Purpose`]).
///
/// A float array is rounded to the location's type (nearest even, overflow as IEEE: to infinity, or NaN for
/// a format without one), each lane by itself for `x4` types; an unsigned array of the container's size is
/// taken as bit patterns. Shapes must match, `x4` float arrays counting lanes in the last dimension. Any
/// location may be given, also one that the program writes.
///
/// # Errors
/// [`BindError`] for a name the program does not have, or an array that does not fit.
pub fn fill(
    machine: &mut Machine,
    program: &Program,
    seed: u64,
    given: &BTreeMap<String, Array>,
) -> Result<(), BindError> {
    if let Some(name) = given.keys().find(|n| program.find_loc(n).is_none()) {
        return Err(BindError::UnknownName { name: name.clone(), known: known(program) });
    }
    fill_where(machine, program, &inputs(program), seed, given)
}

/// As [`fill`] with the inputs listed; names of `given` that the program does not have are ignored.
///
/// # Errors
/// As [`fill`].
pub fn fill_where(
    machine: &mut Machine,
    program: &Program,
    specs: &[InputSpec],
    seed: u64,
    given: &BTreeMap<String, Array>,
) -> Result<(), BindError> {
    machine.declare(program)?;
    for spec in specs.iter().filter(|s| !given.contains_key(&s.name)) {
        let Some(loc) = program.loc(spec.id) else { continue };
        fits(machine, loc)?;
        let count = spec.shape.iter().fold(1usize, |n, d| n.saturating_mul(*d));
        let mut stream = Stream::new(seed, &spec.name);
        let bytes = purpose::bytes(&spec.purpose, &mut stream, loc, spec.dtype, count);
        store(machine, loc, spec.dtype, &bytes)?;
    }
    for (name, array) in given {
        let Some(id) = program.find_loc(name) else { continue };
        let Some(loc) = program.loc(id) else { continue };
        let dtype = element_type(program, id);
        fits(machine, loc)?;
        store(machine, loc, dtype, &containers(name, array, dtype, &shape_of(loc, dtype))?)?;
    }
    Ok(())
}

pub(crate) fn known(program: &Program) -> String {
    let names: Vec<&str> = program.locs.iter().map(|l| l.name.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// An array as containers of a location's type.
fn containers(name: &str, array: &Array, dtype: Dtype, shape: &[usize]) -> Result<Vec<u8>, BindError> {
    array.check()?;
    let bits = array.dtype.is_bits_of(dtype);
    let mut want = shape.to_vec();
    if !bits && let Some(last) = want.last_mut() {
        *last = last.saturating_mul(dtype.lanes());
    }
    let fail_type = || BindError::Type { name: name.to_owned(), got: array.dtype, want: dtype };
    if !bits && !array.dtype.is_float() {
        return Err(fail_type());
    }
    if array.shape != want {
        return Err(BindError::Shape { name: name.to_owned(), got: array.shape.clone(), want });
    }
    if bits {
        return Ok(array.data.clone());
    }
    let out = array.narrow(dtype, Overflow::Ieee).ok_or_else(fail_type)?;
    out.map_err(|e| BindError::from(crate::Fault::from(e)))
}

/// Checks that a location lies inside its memory.
fn fits(machine: &Machine, loc: &MemLoc) -> Result<(), BindError> {
    let unplaced = || BindError::Unplaced { name: loc.name.clone() };
    let plane = match loc.kind {
        LocKind::Sb { .. } => &machine.sbuf,
        LocKind::Psum { .. } => &machine.psum,
        LocKind::Dram { .. } => return Ok(()),
    };
    let (first, offset) = (loc.partition().ok_or_else(unplaced)?, loc.byte_offset().ok_or_else(unplaced)?);
    let last = u64::from(first) + u64::from(loc.partitions().max(1)) - 1;
    let end = u64::from(offset) + loc.bytes();
    if last < plane.rows() as u64 && end <= plane.width() as u64 {
        return Ok(());
    }
    Err(BindError::from(crate::Fault::OutOfRange {
        space: format!("the memory of location `{}`", loc.name),
        partition: last as i64,
        offset: end as i64 - 1,
        partitions: plane.rows(),
        bytes: plane.width(),
    }))
}

/// Writes the rows of a location that [`fits`]; bytes after the last whole container are written as 0.
fn store(machine: &mut Machine, loc: &MemLoc, dtype: Dtype, data: &[u8]) -> Result<(), BindError> {
    let unplaced = || BindError::Unplaced { name: loc.name.clone() };
    let width = usize::try_from(loc.bytes()).unwrap_or(usize::MAX);
    let dram = matches!(loc.kind, LocKind::Dram { .. });
    let per_row = if dram { data.len() } else { width / dtype.bytes() * dtype.bytes() };
    let partition = loc.partition().ok_or_else(unplaced)? as usize;
    let offset = loc.byte_offset().ok_or_else(unplaced)? as usize;
    let tail = vec![0u8; width.saturating_sub(per_row)];
    let plane = match loc.kind {
        LocKind::Sb { .. } => &mut machine.sbuf,
        LocKind::Psum { .. } => &mut machine.psum,
        LocKind::Dram { .. } => machine.dram.tensor_mut(&loc.name).ok_or_else(unplaced)?,
    };
    if data.is_empty() {
        return Ok(());
    }
    for (r, row) in data.chunks(per_row.max(1)).enumerate() {
        plane.put(partition + r, offset, row);
        plane.put(partition + r, offset + per_row, &tail);
    }
    Ok(())
}
