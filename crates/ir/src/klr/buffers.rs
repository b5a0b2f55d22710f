//! Memory locations of one core: every buffer that its statements touch, and the kernel's arguments.
//!
//! Tensors that share an address name and a memory are one buffer; it gets the largest extents any of them
//! has. Views by plain address either lie in a buffer of their name or make one.

use std::collections::{HashMap, HashSet};

use super::access::{self, Target};
use super::fault::{self, Fault};
use super::tensor::{Access, Memory, TensorHbm, TensorName, TensorRef, TensorSram};
use crate::program::{Ap, LocId, LocKind, MemLoc, PSUM_BANK_BYTES, Pair, Pos, Role, Space};

type Key = (Space, String);

#[derive(Debug)]
enum Extent {
    /// Partitions and bytes of each; `start` is first partition and byte, where given.
    Sram { partitions: u64, bytes: u64, partition: Option<u64>, offset: Option<u64> },
    /// A row-major array.
    Dram { dtype: hadal_num::Dtype, shape: Vec<u64>, role: Role },
}

#[derive(Debug)]
struct Buffer {
    key: Key,
    extent: Extent,
    /// Made by views: it may grow. Device memory: the address of the views.
    view: bool,
    address: u64,
    pos: Option<Pos>,
}

/// The buffers of one core.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    list: Vec<Buffer>,
    index: HashMap<Key, usize>,
    refused: HashSet<Key>,
    constants: HashSet<String>,
    /// Added to the names of tensors that each core has for itself, when there are several.
    private: Option<usize>,
}

fn dram_bytes(dtype: hadal_num::Dtype, shape: &[u64]) -> u64 {
    shape.iter().fold(access::bytes(dtype), |bytes, extent| bytes.saturating_mul(*extent))
}

fn conflict(text: String) -> Fault {
    Fault::new(
        fault::BUFFER,
        text,
        "give tensors of one address name the same memory, place and a buffer that holds them",
    )
}

impl Buffers {
    /// No buffers yet. `constants` are tensors bound like arguments; `private` is the core's number if the
    /// kernel has more than one.
    pub(super) fn new(constants: HashSet<String>, private: Option<usize>) -> Self {
        Self { constants, private, ..Self::default() }
    }

    fn key(&self, tensor: &TensorName) -> Result<Key, Fault> {
        let address = &tensor.address;
        let space = match address.memory {
            Memory::Hbm | Memory::SharedHbm | Memory::PrivateHbm => Space::Dram,
            Memory::Sbuf => Space::Sb,
            Memory::Psum => Space::Psum,
            Memory::Reg => {
                let text = format!("tensor {} lives in registers", tensor.name);
                return Err(Fault::new(fault::DYNAMIC, text, "keep the tensor in memory"));
            }
        };
        let name = match (address.memory, self.private) {
            (Memory::PrivateHbm, Some(core)) => format!("{}.core{core}", address.name),
            _ => address.name.clone(),
        };
        Ok((space, name))
    }

    fn insert(&mut self, key: Key, extent: Extent, view: bool, address: u64, pos: Option<Pos>) {
        self.index.insert(key.clone(), self.list.len());
        self.list.push(Buffer { key, extent, view, address, pos });
    }

    /// Adds a tensor of the kernel's own lists.
    pub(super) fn argument(&mut self, tensor: &TensorName, role: Role) -> Result<(), Fault> {
        self.tensor(tensor, None)?;
        let key = self.key(tensor)?;
        let buffer = self.index.get(&key).and_then(|index| self.list.get_mut(*index));
        match buffer.map(|buffer| &mut buffer.extent) {
            Some(Extent::Dram { role: old @ Role::Internal, .. }) => *old = role,
            Some(Extent::Dram { role: old, .. }) if *old == role => {}
            Some(Extent::Dram { .. }) => {
                return Err(conflict(format!("tensor {} is both input and output", tensor.name)));
            }
            _ => return Err(conflict(format!("argument {} is not in device memory", tensor.name))),
        }
        Ok(())
    }

    /// Adds what an operand touches. A buffer is refused once, not at each use.
    pub(super) fn add(&mut self, operand: &TensorRef, pos: &Pos) -> Result<(), Fault> {
        match operand {
            TensorRef::Abstract(access) => {
                let key = self.key(access.tensor())?;
                if self.refused.contains(&key) {
                    return Ok(());
                }
                self.tensor(access.tensor(), Some(pos)).inspect_err(|_| {
                    self.refused.insert(key);
                })
            }
            TensorRef::Sbuf(view) => self.view(view, Space::Sb, pos),
            TensorRef::Psum(view) => self.view(view, Space::Psum, pos),
            TensorRef::Hbm(view) => self.hbm(view, pos),
            TensorRef::Reg(register) => {
                let text = format!("operand in register {register} is known only when the kernel runs");
                Err(Fault::new(fault::DYNAMIC, text, "keep the operand in memory"))
            }
        }
    }

    fn tensor(&mut self, tensor: &TensorName, pos: Option<&Pos>) -> Result<(), Fault> {
        let key = self.key(tensor)?;
        let address = &tensor.address;
        let dtype = access::dtype(tensor.dtype);
        let row = tensor.free_elements.saturating_mul(access::bytes(dtype));
        if tensor.shape.par_dim > address.par_size || row > address.free_size {
            return Err(conflict(format!(
                "tensor {} of {} partitions x {row} bytes does not fit its address of {} x {}",
                tensor.name, tensor.shape.par_dim, address.par_size, address.free_size
            )));
        }
        let known = self.index.get(&key).and_then(|index| self.list.get_mut(*index));
        if key.0 == Space::Dram {
            let mut shape = vec![tensor.shape.par_dim];
            let elements = tensor.shape.free_dims.iter().fold(1u64, |n, extent| n.saturating_mul(*extent));
            match elements == tensor.free_elements {
                true => shape.extend(&tensor.shape.free_dims),
                false => shape.push(tensor.free_elements),
            }
            match known.map(|buffer| &mut buffer.extent) {
                Some(Extent::Dram { dtype: old_dtype, shape: old_shape, role }) => {
                    if dram_bytes(dtype, &shape) > dram_bytes(*old_dtype, old_shape) {
                        if *role != Role::Internal {
                            return Err(conflict(format!(
                                "tensor {} is larger than the argument of its name",
                                tensor.name
                            )));
                        }
                        (*old_dtype, *old_shape) = (dtype, shape);
                    }
                }
                _ => {
                    let role = if self.constants.contains(&key.1) { Role::Input } else { Role::Internal };
                    self.insert(key, Extent::Dram { dtype, shape, role }, false, 0, pos.cloned());
                }
            }
            return Ok(());
        }
        match known.map(|buffer| &mut buffer.extent) {
            Some(Extent::Sram { partitions, bytes, partition, offset }) => {
                *partitions = address.par_size.max(*partitions);
                *bytes = address.free_size.max(*bytes);
                for (old, new) in [(partition, address.par_offset), (offset, address.free_offset)] {
                    match (&old, new) {
                        (Some(old), Some(new)) if *old != new => {
                            return Err(conflict(format!(
                                "buffer {} is placed at both {old} and {new}",
                                address.name
                            )));
                        }
                        _ => *old = old.or(new),
                    }
                }
            }
            _ => {
                let extent = Extent::Sram {
                    partitions: address.par_size,
                    bytes: address.free_size,
                    partition: address.par_offset,
                    offset: address.free_offset,
                };
                self.insert(key, extent, false, 0, pos.cloned());
            }
        }
        Ok(())
    }

    /// A view that no tensor of its name makes a buffer for makes its own, as large as all views of the name.
    fn view(&mut self, view: &TensorSram, space: Space, pos: &Pos) -> Result<(), Fault> {
        let (start, end) = view_bytes(view)?;
        let partition_end = view.par_offset.saturating_add(view.par_num);
        let key = (space, view.name.clone());
        let known = self.index.get(&key).and_then(|index| self.list.get_mut(*index));
        match known {
            Some(Buffer {
                view: true,
                extent: Extent::Sram { partitions, bytes, partition: Some(partition), offset: Some(offset) },
                ..
            }) => {
                let (low, high) = (start.min(*offset), end.max(offset.saturating_add(*bytes)));
                (*offset, *bytes) = (low, high - low);
                let (low, high) = (
                    view.par_offset.min(*partition),
                    partition_end.max(partition.saturating_add(*partitions)),
                );
                (*partition, *partitions) = (low, high - low);
            }
            // Whether a tensor's buffer holds the view shows when all its tensors are known.
            Some(_) => {}
            None => {
                let extent = Extent::Sram {
                    partitions: view.par_num,
                    bytes: end - start,
                    partition: Some(view.par_offset),
                    offset: Some(start),
                };
                self.insert(key, extent, true, 0, Some(pos.clone()));
            }
        }
        Ok(())
    }

    fn hbm(&mut self, view: &TensorHbm, pos: &Pos) -> Result<(), Fault> {
        let dtype = access::dtype(view.dtype);
        let pairs = pairs(&view.dims)?;
        let (low, high) = Ap::reach(&pairs);
        let (0, Ok(high)) = (low, u64::try_from(high)) else {
            let text = format!("view {} reaches below its address", view.name);
            return Err(Fault::new(fault::PATTERN, text, "let a view of device memory begin at its address"));
        };
        let shape = vec![high.saturating_add(1)];
        let key = (Space::Dram, view.name.clone());
        match self.index.get(&key).and_then(|index| self.list.get_mut(*index)) {
            Some(Buffer {
                view: true,
                address,
                extent: Extent::Dram { dtype: old, shape: old_shape, .. },
                ..
            }) if *address == view.address => {
                if dram_bytes(dtype, &shape) > dram_bytes(*old, old_shape) {
                    (*old, *old_shape) = (dtype, shape);
                }
            }
            Some(_) => {
                let text = format!(
                    "view {} at address {} has no known place in the tensor of its name",
                    view.name, view.address
                );
                return Err(Fault::new(fault::BUFFER, text, "access the tensor by name"));
            }
            None => {
                let extent = Extent::Dram { dtype, shape, role: Role::Internal };
                self.insert(key, extent, true, view.address, Some(pos.clone()));
            }
        }
        Ok(())
    }

    fn find(&self, key: &Key) -> Option<(LocId, &Buffer)> {
        let index = *self.index.get(key)?;
        Some((LocId(u32::try_from(index).ok()?), self.list.get(index)?))
    }

    /// The access pattern of an operand; `None` when its buffer was refused before.
    pub(super) fn ap(&self, operand: &TensorRef, keep_unit: bool) -> Result<Option<Ap>, Fault> {
        match operand {
            TensorRef::Abstract(of_tensor) => {
                let tensor = of_tensor.tensor();
                let key = self.key(tensor)?;
                let (linear, dtype) = access::linear(of_tensor)?;
                let Some((loc, _)) = self.find(&key).filter(|_| !self.refused.contains(&key)) else {
                    return Ok(None);
                };
                let target = Target { loc, dtype, keep_unit };
                match key.0 {
                    Space::Dram => linear.in_dram(tensor, target).map(Some),
                    Space::Sb | Space::Psum => linear.split_partitions(tensor, target).map(Some),
                }
            }
            TensorRef::Sbuf(view) => self.view_ap(view, Space::Sb, keep_unit).map(Some),
            TensorRef::Psum(view) => self.view_ap(view, Space::Psum, keep_unit).map(Some),
            TensorRef::Hbm(view) => {
                let key = (Space::Dram, view.name.clone());
                let Some((loc, _)) = self.find(&key).filter(|(_, buffer)| buffer.view) else {
                    return Ok(None);
                };
                let target = Target { loc, dtype: access::dtype(view.dtype), keep_unit };
                let pairs = pairs(&view.dims)?;
                let (first, free) =
                    pairs.split_first().map_or((Pair::new(1, 1), [].as_slice()), |(a, b)| (*a, b));
                Ok(Some(target.ap(0, 0, first, free)))
            }
            // Reported when the buffers were gathered.
            TensorRef::Reg(_) => Ok(None),
        }
    }

    fn view_ap(&self, view: &TensorSram, space: Space, keep_unit: bool) -> Result<Ap, Fault> {
        let outside = |why: &str| {
            let text = format!(
                "view {} at partition {} byte {} {why}",
                view.name, view.par_offset, view.free_offset
            );
            Fault::new(fault::BUFFER, text, "access the tensor by name, or give its address")
        };
        let (start, end) = view_bytes(view)?;
        let found = self.find(&(space, view.name.clone())).map(|(loc, buffer)| (loc, &buffer.extent));
        let Some((loc, Extent::Sram { partitions, bytes, partition: Some(partition), offset: Some(offset) })) =
            found
        else {
            return Err(outside("refers to a buffer that has no address"));
        };
        let (Some(below), Some(_)) = (view.par_offset.checked_sub(*partition), start.checked_sub(*offset))
        else {
            return Err(outside("begins before the buffer of its name"));
        };
        if below.saturating_add(view.par_num) > *partitions || end > offset.saturating_add(*bytes) {
            return Err(outside("reaches outside the buffer of its name"));
        }
        let below = u32::try_from(below).map_err(|_| Fault::range("a partition of", below))?;
        let target = Target { loc, dtype: access::dtype(view.dtype), keep_unit };
        let first = Pair::new(1, view.par_num);
        Ok(target.ap(below, view.free_offset - offset, first, &pairs(&view.pattern)?))
    }

    /// The locations, in the order of [`LocId`], under unique names.
    pub(super) fn finish(&self) -> Result<Vec<MemLoc>, Fault> {
        let mut names = HashSet::new();
        let locate = |buffer: &Buffer| {
            let (space, mut name) = buffer.key.clone();
            // One name may stand for buffers in different memories.
            while !names.insert(name.clone()) {
                name = format!("{name}.{}", space.name().to_lowercase());
            }
            Ok(MemLoc { kind: kind(space, &name, &buffer.extent)?, name, pos: buffer.pos.clone() })
        };
        self.list.iter().map(locate).collect()
    }
}

fn kind(space: Space, name: &str, extent: &Extent) -> Result<LocKind, Fault> {
    let small = |what: &str, value: u64| {
        u32::try_from(value).map_err(|_| Fault::range(&format!("buffer {name}: {what} of"), value))
    };
    Ok(match extent {
        Extent::Dram { dtype, shape, role } => {
            LocKind::Dram { role: *role, dtype: *dtype, shape: shape.clone() }
        }
        Extent::Sram { partitions, bytes, partition, offset } => {
            let partition = partition.map(|value| small("a first partition", value)).transpose()?;
            let offset = offset.map(|value| small("an offset", value)).transpose()?;
            let (partitions, bytes) = (small("a partition count", *partitions)?, small("a size", *bytes)?);
            match space {
                Space::Psum => LocKind::Psum {
                    partition,
                    partitions,
                    bank: offset.map(|offset| offset / PSUM_BANK_BYTES),
                    offset: offset.map(|offset| offset % PSUM_BANK_BYTES),
                    bytes,
                },
                Space::Sb | Space::Dram => LocKind::Sb { partition, partitions, offset, bytes },
            }
        }
    })
}

fn pairs(pairs: &[super::tensor::ApPair]) -> Result<Vec<Pair>, Fault> {
    if pairs.iter().any(|pair| pair.num == 0) {
        return Err(Fault::new(
            fault::PATTERN,
            "a view without elements".to_owned(),
            "select at least one element",
        ));
    }
    Ok(pairs.iter().map(|pair| Pair::new(pair.step, pair.num)).collect())
}

/// First byte of a view in a partition, and the one after its last.
fn view_bytes(view: &TensorSram) -> Result<(u64, u64), Fault> {
    let size = access::bytes(access::dtype(view.dtype));
    let (low, high) = Ap::reach(&pairs(&view.pattern)?);
    let byte = |element: i64| i64::try_from(size).ok().and_then(|size| element.checked_mul(size));
    let start = byte(low).and_then(|low| view.free_offset.checked_add_signed(low));
    let end = byte(high)
        .and_then(|high| view.free_offset.checked_add_signed(high))
        .and_then(|end| end.checked_add(size));
    match (start, end) {
        (Some(start), Some(end)) if view.par_num > 0 => Ok((start, end)),
        _ => Err(Fault::range("a view at byte", view.free_offset)),
    }
}

/// Whether an operand's access is by a view of device memory, whose address has no meaning here.
pub(super) fn is_hbm_view(operand: &TensorRef) -> Option<&TensorHbm> {
    match operand {
        TensorRef::Hbm(view) => Some(view),
        _ => None,
    }
}

/// Element type an operand sees, if it is known without its buffer.
pub(super) fn operand_dtype(operand: &TensorRef) -> Option<hadal_num::Dtype> {
    Some(access::dtype(match operand {
        TensorRef::Abstract(Access::BirPattern(access)) => {
            access.dtype_override.unwrap_or(access.tensor.dtype)
        }
        TensorRef::Abstract(access) => access.tensor().dtype,
        TensorRef::Sbuf(view) | TensorRef::Psum(view) => view.dtype,
        TensorRef::Hbm(view) => view.dtype,
        TensorRef::Reg(_) => return None,
    }))
}
