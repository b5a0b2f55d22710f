//! Operands resolved to memory: where each container of an access pattern lies.

use hadal_ir::program::{Ap, LocKind, Program, Space};
use hadal_num::Dtype;

use super::Machine;
use crate::error::{Fault, OperandFault};

/// Which memory an operand is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    Sbuf,
    Psum,
    /// Index of the tensor.
    Dram(usize),
}

/// One free dimension: containers between elements, and how many elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dim {
    pub(crate) step: i64,
    pub(crate) num: u64,
}

/// An operand in memory. Containers are visited partition by partition, the free dimensions outermost
/// first.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct View {
    /// Name of the operand in messages.
    pub(crate) operand: &'static str,
    pub(crate) store: Store,
    pub(crate) dtype: Dtype,
    /// First partition.
    pub(crate) partition: i64,
    /// Partitions from one row of the operand to the next.
    pub(crate) partition_step: i64,
    /// In DRAM, where rows are not partitions: containers from one row to the next.
    pub(crate) row_step: Option<i64>,
    /// Rows: the first pair's count.
    pub(crate) rows: u64,
    /// Byte of the first container in its partition (DRAM: in the tensor).
    pub(crate) offset: i64,
    /// Free dimensions.
    pub(crate) dims: Vec<Dim>,
}

impl View {
    /// The memory an access pattern names.
    pub(crate) fn of(
        machine: &Machine,
        program: &Program,
        operand: &'static str,
        ap: &Ap,
    ) -> Result<View, OperandFault> {
        let loc = program.loc(ap.loc).ok_or_else(|| Fault::NoLocation { id: ap.loc.0 }.on(operand))?;
        let unplaced = || Fault::Unplaced { name: loc.name.clone() }.on(operand);
        let store = match loc.space() {
            Space::Sb => Store::Sbuf,
            Space::Psum => Store::Psum,
            Space::Dram => Store::Dram(machine.dram.index(&loc.name).ok_or_else(unplaced)?),
        };
        let base = loc.byte_offset().ok_or_else(unplaced)?;
        let first = loc.partition().ok_or_else(unplaced)?;
        let step = ap.pattern.first().map_or(1, |p| p.step);
        if ap.elements() == 0 {
            let what = "a count of the operand";
            return Err(Fault::Shape { what, got: "0".into(), want: "at least 1".into() }.on(operand));
        }
        let dram = matches!(loc.kind, LocKind::Dram { .. });
        Ok(View {
            operand,
            store,
            dtype: ap.dtype,
            partition: i64::from(first) + i64::from(ap.partition),
            partition_step: if dram { 0 } else { step },
            row_step: dram.then_some(step),
            rows: ap.partitions(),
            offset: i64::from(base).saturating_add(i64::try_from(ap.offset).unwrap_or(i64::MAX)),
            dims: ap.free().iter().map(|p| Dim { step: p.step, num: p.num }).collect(),
        })
    }

    /// Containers in one row (saturating).
    pub(crate) fn per_row(&self) -> u64 {
        self.dims.iter().fold(1u64, |n, d| n.saturating_mul(d.num))
    }

    /// Containers in all (saturating).
    pub(crate) fn elements(&self) -> u64 {
        self.rows.saturating_mul(self.per_row())
    }
}
