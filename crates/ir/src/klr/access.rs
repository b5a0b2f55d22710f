//! Accesses of a kernel as access patterns of the program.
//!
//! Every access to a named tensor is first brought to one form: a start and pairs of step and count over the
//! tensor as one row-major array `[parDim, freeElements]`, the partition pair first. In SBUF and PSUM that
//! form is then split into partitions and bytes of a partition; in device memory it stays linear.

use hadal_num::Dtype;

use super::fault::{self, Fault};
use super::tensor::{
    Access, AccessBasic, AccessPattern, ApPair, Dtype as KlrDtype, Index, ScalarOffset, TensorName,
};
use crate::program::{Ap, LocId, Pair};

/// An access over a tensor's row-major array, in elements.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Linear {
    pub(super) start: u64,
    pub(super) pairs: Vec<Pair>,
}

/// The element type of the program.
pub(super) fn dtype(dtype: KlrDtype) -> Dtype {
    match dtype {
        KlrDtype::Bfloat16 => Dtype::Bfloat16,
        KlrDtype::Float8e3 => Dtype::Float8E3m4,
        // The short name is the legacy format, as is the long one without `fn`.
        KlrDtype::Float8e4 | KlrDtype::Float8E4m3 => Dtype::Float8E4m3,
        KlrDtype::Float8e5 => Dtype::Float8E5m2,
        KlrDtype::Float16 => Dtype::Float16,
        KlrDtype::Float32 => Dtype::Float32,
        KlrDtype::Float32r => Dtype::Float32r,
        KlrDtype::Int8 => Dtype::Int8,
        KlrDtype::Int16 => Dtype::Int16,
        KlrDtype::Int64 => Dtype::Int64,
        KlrDtype::Int32 => Dtype::Int32,
        KlrDtype::Uint8 => Dtype::Uint8,
        KlrDtype::Uint16 => Dtype::Uint16,
        KlrDtype::Uint32 => Dtype::Uint32,
        KlrDtype::Uint64 => Dtype::Uint64,
        KlrDtype::Float8E4m3fn => Dtype::Float8E4m3fn,
        KlrDtype::Float8E5m2X4 => Dtype::Float8E5m2X4,
        KlrDtype::Float8E4m3fnX4 => Dtype::Float8E4m3fnX4,
        KlrDtype::Float4E2m1fnX4 => Dtype::Float4E2m1fnX4,
    }
}

/// Bytes of a container.
pub(super) fn bytes(dtype: Dtype) -> u64 {
    dtype.bytes() as u64
}

fn pair(pair: &ApPair) -> Pair {
    Pair::new(pair.step, pair.num)
}

/// Extents of the tensor with the distance of neighbours in each, partitions first.
fn layout(tensor: &TensorName) -> Result<Vec<(u64, i64)>, Fault> {
    let mut layout = Vec::with_capacity(tensor.shape.free_dims.len() + 1);
    let mut stride = 1u64;
    for extent in tensor.shape.free_dims.iter().rev() {
        layout.push((*extent, stride));
        stride = stride.saturating_mul(*extent);
    }
    layout.push((tensor.shape.par_dim, tensor.free_elements));
    layout.reverse();
    let signed = |(extent, stride): (u64, u64)| match i64::try_from(stride) {
        Ok(stride) => Ok((extent, stride)),
        Err(_) => Err(Fault::range("an extent of", stride)),
    };
    layout.into_iter().map(signed).collect()
}

fn offset(terms: impl Iterator<Item = (i64, u64)>) -> Result<u64, Fault> {
    let mut sum = 0i64;
    for (step, count) in terms {
        let term = i64::try_from(count).ok().and_then(|count| step.checked_mul(count));
        sum =
            term.and_then(|term| sum.checked_add(term)).ok_or_else(|| Fault::range("an offset of", count))?;
    }
    u64::try_from(sum).map_err(|_| Fault::range("an offset of", sum))
}

/// One index as start and pair. The bound of a range is exclusive in the direction of its step; the count
/// rounds up, as in Python.
fn index(index: &Index, extent: u64, stride: i64) -> Result<(u64, Pair), Fault> {
    let outside = |what: String| {
        let text = format!("{what} lies outside an extent of {extent}");
        Fault::new(fault::BOUNDS, text, "index within the tensor's shape")
    };
    let slice = match index {
        Index::Coord(coord) if *coord < extent => return Ok((*coord, Pair::new(stride, 1))),
        Index::Coord(coord) => return Err(outside(format!("index {coord}"))),
        Index::Slice(slice) => slice,
    };
    let (l, u, step) = (slice.l, slice.u, slice.step);
    let span = if step < 0 { l.saturating_sub(u) } else { u.saturating_sub(l) };
    if step == 0 || span == 0 {
        let text = format!("slice {l}:{u}:{step} is empty");
        return Err(Fault::new(fault::BOUNDS, text, "select at least one element"));
    }
    if l >= extent || u > extent {
        return Err(outside(format!("slice {l}:{u}:{step}")));
    }
    let step = stride.checked_mul(step).ok_or_else(|| Fault::range("a slice step of", step))?;
    Ok((l, Pair::new(step, span.div_ceil(slice.step.unsigned_abs()))))
}

fn basic(access: &AccessBasic) -> Result<Linear, Fault> {
    let layout = layout(&access.tensor)?;
    if layout.len() != access.indexes.len() {
        let text = format!("{} indexes on a tensor of {} dimensions", access.indexes.len(), layout.len());
        return Err(Fault::new(fault::PATTERN, text, "give one index a dimension"));
    }
    let mut starts = Vec::with_capacity(layout.len());
    let mut pairs = Vec::with_capacity(layout.len());
    for (of_index, (extent, stride)) in access.indexes.iter().zip(layout) {
        let (start, pair) = index(of_index, extent, stride)?;
        starts.push((stride, start));
        pairs.push(pair);
    }
    Ok(Linear { start: offset(starts.into_iter())?, pairs })
}

/// The pattern form keeps the start of each dimension in its pair, in steps of that pair; `freeOffset` repeats
/// their plain sum. Files that use `parOffset` and `freeOffset` alone mean partitions and elements. A mixture
/// has no certain meaning.
fn pattern(access: &AccessPattern) -> Result<Linear, Fault> {
    let pairs: Vec<Pair> = access.pattern.iter().map(pair).collect();
    let in_pairs = access.pattern.iter().fold(0u64, |sum, pair| sum.saturating_add(pair.offset));
    let start = if access.par_offset == 0 && access.free_offset == in_pairs {
        offset(access.pattern.iter().map(|pair| (pair.step, pair.offset)))?
    } else if in_pairs == 0 {
        let row = i64::try_from(access.tensor.free_elements)
            .map_err(|_| Fault::range("an extent of", access.tensor.free_elements))?;
        offset([(row, access.par_offset), (1, access.free_offset)].into_iter())?
    } else {
        let text = format!(
            "offsets {} and {} contradict those of the pattern's dimensions, whose sum is {in_pairs}",
            access.par_offset, access.free_offset
        );
        return Err(Fault::new(
            fault::PATTERN,
            text,
            "write the access as a birPattern, as the compiler does",
        ));
    };
    Ok(Linear { start, pairs })
}

/// An access as pairs over the tensor's array, with the element type it sees.
pub(super) fn linear(access: &Access) -> Result<(Linear, Dtype), Fault> {
    let stored = dtype(access.tensor().dtype);
    let linear = match access {
        Access::Simple(tensor) => {
            let pairs =
                layout(tensor)?.into_iter().map(|(extent, stride)| Pair::new(stride, extent)).collect();
            Linear { start: 0, pairs }
        }
        Access::Basic(access) => basic(access)?,
        Access::Pattern(access) => pattern(access)?,
        Access::BirPattern(access) => {
            dynamic(access.scalar_offset.as_ref(), access.vector_offset.as_deref(), access.indirect_dim)?;
            let seen = access.dtype_override.map_or(stored, dtype);
            if bytes(seen) != bytes(stored) {
                let text =
                    format!("{} seen as {}, whose containers have another size", stored.name(), seen.name());
                return Err(Fault::new(
                    fault::OVERRIDE,
                    text,
                    "view the tensor as a type of the same container size",
                ));
            }
            // The start of each pair is folded into the offset of the whole.
            return Ok((
                Linear { start: access.offset, pairs: access.pattern.iter().map(pair).collect() },
                seen,
            ));
        }
    };
    Ok((linear, stored))
}

fn dynamic(scalar: Option<&ScalarOffset>, vector: Option<&Access>, dim: i64) -> Result<(), Fault> {
    let what = match (scalar, vector) {
        (Some(ScalarOffset::Reg(register)), _) => format!("an offset from register {register}"),
        (Some(ScalarOffset::Acc(access)), _) => format!("an offset read from {}", access.tensor().name),
        (None, Some(access)) => format!("offsets read from {}", access.tensor().name),
        (None, None) => return Ok(()),
    };
    let text =
        format!("{what} (scalarOffset/vectorOffset, dimension {dim}) is known only when the kernel runs");
    Err(Fault::new(fault::DYNAMIC, text, "trace the kernel with constant offsets"))
}

/// Where an access pattern goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) loc: LocId,
    pub(super) dtype: Dtype,
    /// Keep free dimensions of one element: they carry meaning in DoubleRow operands.
    pub(super) keep_unit: bool,
}

impl Target {
    /// An access pattern with its free dimensions of one element left out, but at least one free pair.
    pub(super) fn ap(self, partition: u32, offset: u64, first: Pair, free: &[Pair]) -> Ap {
        let mut pattern = vec![first];
        pattern.extend(free.iter().filter(|pair| self.keep_unit || pair.num != 1));
        if pattern.len() == 1 {
            pattern.push(Pair::new(1, 1));
        }
        Ap { loc: self.loc, dtype: self.dtype, partition, offset, pattern, index: None }
    }
}

impl Linear {
    /// The partition pair and the free pairs, none of them empty.
    fn split(&self) -> Result<(Pair, &[Pair]), Fault> {
        let empty = self.pairs.iter().any(|pair| pair.num == 0);
        match self.pairs.split_first() {
            Some((first, free)) if !empty => Ok((*first, free)),
            _ => Err(Fault::new(
                fault::PATTERN,
                "an access without elements".to_owned(),
                "select at least one element",
            )),
        }
    }

    /// Whether `start` and everything the pairs reach from it lies in `0..extent`.
    fn within(start: u64, pairs: &[Pair], extent: u64) -> bool {
        let (low, high) = Ap::reach(pairs);
        start.checked_add_signed(low).is_some()
            && start.checked_add_signed(high).is_some_and(|high| high < extent)
    }

    /// As an access pattern on an SBUF or PSUM location that begins where the tensor does.
    pub(super) fn split_partitions(&self, tensor: &TensorName, target: Target) -> Result<Ap, Fault> {
        let (first, free) = self.split()?;
        let row = tensor.free_elements;
        let outside = || {
            let text = format!(
                "the access from element {} reaches outside tensor {} of [{}, {row}] elements",
                self.start, tensor.name, tensor.shape.par_dim
            );
            Fault::new(fault::BOUNDS, text, "keep each partition's elements within its row")
        };
        let (Some(partition), Some(element)) = (self.start.checked_div(row), self.start.checked_rem(row))
        else {
            return Err(outside());
        };
        let signed_row = i64::try_from(row).map_err(|_| outside())?;
        let first = match first {
            Pair { num: 1, .. } => Pair::new(1, 1),
            Pair { step, num } if step % signed_row == 0 => Pair::new(step / signed_row, num),
            Pair { step, .. } => {
                let text = format!(
                    "partition step {step} is no multiple of the {row} elements of a row of {}",
                    tensor.name
                );
                return Err(Fault::new(fault::PATTERN, text, "let the first pair count partitions"));
            }
        };
        if !Self::within(element, free, row) || !Self::within(partition, &[first], tensor.shape.par_dim) {
            return Err(outside());
        }
        let partition = u32::try_from(partition).map_err(|_| outside())?;
        Ok(target.ap(partition, element.saturating_mul(bytes(target.dtype)), first, free))
    }

    /// As an access pattern on a location in device memory.
    pub(super) fn in_dram(&self, tensor: &TensorName, target: Target) -> Result<Ap, Fault> {
        let (first, free) = self.split()?;
        let elements = tensor.shape.par_dim.saturating_mul(tensor.free_elements);
        if !Self::within(self.start, &self.pairs, elements) {
            let text = format!(
                "the access from element {} reaches outside tensor {} of {elements} elements",
                self.start, tensor.name
            );
            return Err(Fault::new(fault::BOUNDS, text, "keep the access within the tensor"));
        }
        Ok(target.ap(0, self.start.saturating_mul(bytes(target.dtype)), first, free))
    }
}
