//! Gathered stationary operands: an index list picks positions along the free dimension.

use super::{Core, Tile, integers, is_signed};
use crate::error::{Fault, OperandFault};
use crate::memory::{Dim, View};

/// Reads the operand whose element `i` of a partition lies at position `index[i]`, counted in steps of
/// `step` containers from the start of `base`.
///
/// `base.dims` is ignored. The index list is shared by all partitions when it has one row; otherwise each
/// partition has its own.
pub(crate) fn read(core: &Core<'_>, base: &View, step: i64, index: &View) -> Result<Tile, OperandFault> {
    if !index.dtype.is_integer() {
        let text = "the index of a gather is an integer type";
        return Err(Fault::Type { text, dtype: index.dtype }.on(index.operand));
    }
    if index.rows != 1 && index.rows != base.rows {
        let got = format!("{} partitions", index.rows);
        let want = format!("1 or {}", base.rows);
        return Err(Fault::Shape { what: "index of a gather", got, want }.on(index.operand));
    }
    let positions = integers(index.dtype, is_signed(index.dtype), &core.read(index)?);
    let per_row = positions.len() / usize::try_from(index.rows).unwrap_or(usize::MAX).max(1);
    let rows = usize::try_from(base.rows).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    for r in 0..rows {
        let from = if index.rows == 1 { 0 } else { r * per_row };
        let list = positions.get(from..from + per_row).unwrap_or(&[]);
        for (i, &p) in list.iter().enumerate() {
            let row = i64::try_from(r).unwrap_or(i64::MAX);
            let at = p.saturating_mul(step).saturating_mul(base.dtype.bytes() as i64);
            let one = View {
                partition: base.partition.saturating_add(base.partition_step.saturating_mul(row)),
                rows: 1,
                offset: base.offset.saturating_add(at),
                dims: vec![Dim { step: 1, num: 1 }],
                ..base.clone()
            };
            match core.read(&one) {
                Ok(b) => bytes.extend(b),
                Err(OperandFault { fault: Fault::OutOfRange { .. }, .. }) => {
                    return Err(Fault::Index { position: from + i, value: p }.on(base.operand));
                }
                Err(e) => return Err(e),
            }
        }
    }
    Ok(Tile { operand: base.operand, dtype: base.dtype, rows, cols: per_row, bytes })
}
