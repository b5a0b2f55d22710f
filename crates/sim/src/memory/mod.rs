//! The memory of one core: SBUF, PSUM, and the DRAM it shares with the other cores.

mod compare;
mod plane;
mod transfer;
mod view;

use std::collections::BTreeMap;

use hadal_ir::program::{LocKind, Program};
use hadal_isa::Target;

pub use compare::{Difference, compare};
pub use plane::Plane;
pub(crate) use view::{Dim, Store, View};

use crate::error::Fault;

/// Most bytes that all DRAM tensors of a program may have together.
pub const DRAM_LIMIT: u64 = 4 << 30;

/// Partitions of SBUF and PSUM.
pub const PARTITIONS: usize = 128;

/// Memory of one core.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// State buffer: 128 partitions of the target's size.
    pub sbuf: Plane,
    /// Partial sums: 128 partitions of 16 KiB, bank after bank.
    pub psum: Plane,
    /// Device memory.
    pub dram: Dram,
}

impl Machine {
    /// Memory of the target's size with nothing written and no DRAM tensor.
    pub fn new(target: Target) -> Self {
        Machine {
            sbuf: Plane::new(PARTITIONS, target.sbuf_bytes_per_partition() as usize),
            psum: Plane::new(PARTITIONS, target.psum_bytes_per_partition() as usize),
            dram: Dram::default(),
        }
    }

    /// Makes room for every DRAM location of a program; tensors that exist keep their bytes.
    ///
    /// # Errors
    /// [`Fault::TooLarge`] past [`DRAM_LIMIT`], [`Fault::DramSize`] when a tensor of the name has another size.
    pub fn declare(&mut self, program: &Program) -> Result<(), Fault> {
        for loc in &program.locs {
            if matches!(loc.kind, LocKind::Dram { .. }) {
                self.dram.declare(&loc.name, loc.bytes())?;
            }
        }
        Ok(())
    }

    pub(crate) fn plane(&self, store: Store) -> Option<&Plane> {
        match store {
            Store::Sbuf => Some(&self.sbuf),
            Store::Psum => Some(&self.psum),
            Store::Dram(i) => self.dram.tensors.get(i).map(|t| &t.1),
        }
    }

    pub(crate) fn plane_mut(&mut self, store: Store) -> Option<&mut Plane> {
        match store {
            Store::Sbuf => Some(&mut self.sbuf),
            Store::Psum => Some(&mut self.psum),
            Store::Dram(i) => self.dram.tensors.get_mut(i).map(|t| &mut t.1),
        }
    }

    /// Name of a memory in messages.
    pub(crate) fn store_name(&self, store: Store) -> String {
        match store {
            Store::Sbuf => "SBUF".to_owned(),
            Store::Psum => "PSUM".to_owned(),
            Store::Dram(i) => self
                .dram
                .tensors
                .get(i)
                .map_or_else(|| "DRAM".to_owned(), |t| format!("DRAM tensor `{}`", t.0)),
        }
    }
}

/// Named tensors in device memory. Each is one partition of a [`Plane`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dram {
    tensors: Vec<(String, Plane)>,
    names: BTreeMap<String, usize>,
    total: u64,
}

impl Dram {
    /// Makes room for a tensor of `bytes` bytes, or checks the size of the one there is.
    ///
    /// # Errors
    /// As [`Machine::declare`].
    pub fn declare(&mut self, name: &str, bytes: u64) -> Result<(), Fault> {
        if let Some(have) = self.tensor(name) {
            return if have.width() as u64 == bytes {
                Ok(())
            } else {
                let want = usize::try_from(bytes).unwrap_or(usize::MAX);
                Err(Fault::DramSize { name: name.to_owned(), have: have.width(), want })
            };
        }
        let total = self.total.saturating_add(bytes);
        let width = usize::try_from(bytes).unwrap_or(usize::MAX);
        if total > DRAM_LIMIT {
            return Err(Fault::TooLarge {
                what: format!("DRAM with tensor `{name}`"),
                bytes: total,
                limit: DRAM_LIMIT,
            });
        }
        self.total = total;
        self.names.insert(name.to_owned(), self.tensors.len());
        self.tensors.push((name.to_owned(), Plane::new(1, width)));
        Ok(())
    }

    /// The tensor of that name.
    pub fn tensor(&self, name: &str) -> Option<&Plane> {
        self.tensors.get(self.index(name)?).map(|t| &t.1)
    }

    /// Names of all tensors, in order of declaration.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.iter().map(|t| t.0.as_str())
    }

    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// The tensor of that name, to be written.
    pub fn tensor_mut(&mut self, name: &str) -> Option<&mut Plane> {
        let i = self.index(name)?;
        self.tensors.get_mut(i).map(|t| &mut t.1)
    }
}
