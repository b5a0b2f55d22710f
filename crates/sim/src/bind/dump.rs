//! Reading locations back as arrays.

use hadal_ir::program::{LocKind, MemLoc, Program};
use hadal_num::Dtype;

use super::{Array, ArrayDtype, BindError, element_type, known, shape_of};
use crate::memory::{Machine, Plane};

/// Where a location's bytes are.
struct Spot<'a> {
    plane: &'a Plane,
    partition: usize,
    offset: usize,
    rows: usize,
    /// Bytes of whole containers in a row.
    bytes: usize,
    dtype: Dtype,
    shape: Vec<usize>,
}

fn find<'a>(machine: &'a Machine, program: &Program, name: &str) -> Result<Spot<'a>, BindError> {
    let unknown = || BindError::UnknownName { name: name.to_owned(), known: known(program) };
    let id = program.find_loc(name).ok_or_else(unknown)?;
    let loc: &MemLoc = program.loc(id).ok_or_else(unknown)?;
    let unplaced = || BindError::Unplaced { name: name.to_owned() };
    let plane = match loc.kind {
        LocKind::Sb { .. } => &machine.sbuf,
        LocKind::Psum { .. } => &machine.psum,
        LocKind::Dram { .. } => machine.dram.tensor(name).ok_or_else(unplaced)?,
    };
    let dtype = element_type(program, id);
    Ok(Spot {
        plane,
        partition: loc.partition().ok_or_else(unplaced)? as usize,
        offset: loc.byte_offset().ok_or_else(unplaced)? as usize,
        rows: loc.partitions() as usize,
        bytes: usize::try_from(loc.bytes()).unwrap_or(usize::MAX) / dtype.bytes() * dtype.bytes(),
        dtype,
        shape: shape_of(loc, dtype),
    })
}

/// A location's containers as bit patterns, unsigned of the container's size; shape as
/// [`InputSpec::shape`](super::InputSpec::shape). Bytes that were never written are 0; see [`unwritten`].
///
/// # Errors
/// [`BindError`] for an unknown name, or a location without memory.
pub fn dump(machine: &Machine, program: &Program, name: &str) -> Result<Array, BindError> {
    let Spot { plane, partition, offset, rows, bytes, dtype, shape } = find(machine, program, name)?;
    let mut data = Vec::new();
    for r in 0..rows {
        match plane.get(partition + r, offset, bytes) {
            Some(row) => data.extend_from_slice(row),
            None => {
                return Err(BindError::from(crate::Fault::OutOfRange {
                    space: format!("the memory of location `{name}`"),
                    partition: (partition + r) as i64,
                    offset: offset as i64,
                    partitions: plane.rows(),
                    bytes: plane.width(),
                }));
            }
        }
    }
    let dtype = ArrayDtype::unsigned(dtype.bytes()).unwrap_or(ArrayDtype::U8);
    Ok(Array { dtype, shape, data })
}

/// How many bytes of a location were never written.
///
/// # Errors
/// As [`dump`].
pub fn unwritten(machine: &Machine, program: &Program, name: &str) -> Result<usize, BindError> {
    let Spot { plane, partition, offset, rows, bytes, .. } = find(machine, program, name)?;
    Ok((0..rows).map(|r| bytes.saturating_sub(plane.count_written(partition + r, offset, bytes))).sum())
}

/// Bit patterns as float32; the last dimension of an `x4` type grows by its four lanes.
///
/// # Errors
/// [`BindError::Type`] when the array is not the containers of `dtype`, [`BindError::Data`] when its data is
/// not its shape's.
pub fn widen(array: &Array, dtype: Dtype) -> Result<Array, BindError> {
    array.check()?;
    if array.dtype.bytes() != dtype.bytes() || array.dtype.is_float() {
        return Err(BindError::Type { name: "array".to_owned(), got: array.dtype, want: dtype });
    }
    let mut values = vec![0.0; array.len().saturating_mul(dtype.lanes())];
    hadal_num::widen(dtype, &array.data, &mut values).map_err(|e| BindError::from(crate::Fault::from(e)))?;
    let mut shape = array.shape.clone();
    if let Some(last) = shape.last_mut() {
        *last = last.saturating_mul(dtype.lanes());
    }
    Ok(Array::from_f32(shape, &values))
}
