//! The array's transpose mode: stationary rows copied bit for bit (D-21).

use hadal_num::Dtype;

use super::{Tile, Weights, widen};
use crate::error::{Fault, OperandFault};

/// Result bits of a transpose.
pub(crate) struct Bits {
    /// Containers of the weights' type, `[columns, N]` row-major.
    pub(crate) bytes: Vec<u8>,
    /// Their type.
    pub(crate) dtype: Dtype,
}

/// `out[m, n] = weights[k, m]` where `k` is the row with a nonzero in moving column `n`; 0 when there is
/// none.
pub(crate) fn transpose(weights: &Weights, moving: &Tile) -> Result<Bits, OperandFault> {
    if weights.perf.scale() != 1 {
        return Err(Fault::PerfMode { mode: format!("{} on a transpose", weights.perf.name()) }.into());
    }
    let w = &weights.tile;
    if moving.rows != w.rows {
        return Err(Fault::Shape {
            what: "partitions of the moving operand",
            got: moving.rows.to_string(),
            want: format!("{} as the weights have", w.rows),
        }
        .on(moving.operand));
    }
    let x = widen(moving.dtype, &moving.bytes)?;
    let n = moving.cols;
    let mut chosen: Vec<Option<usize>> = vec![None; n];
    for (k, row) in x.chunks(n.max(1)).enumerate() {
        for (column, (value, slot)) in row.iter().zip(chosen.iter_mut()).enumerate() {
            // NaN is not zero.
            if *value != 0.0
                && let Some(first) = slot.replace(k)
            {
                return Err(Fault::TransposeColumn { column, first, second: k }.on(moving.operand));
            }
        }
    }
    let size = w.dtype.bytes();
    let zero = vec![0u8; size];
    let mut bytes = Vec::with_capacity(w.cols * n * size);
    for m in 0..w.cols {
        for k in &chosen {
            let at = k.map(|k| (k * w.cols + m) * size);
            bytes.extend_from_slice(at.and_then(|at| w.bytes.get(at..at + size)).unwrap_or(&zero));
        }
    }
    Ok(Bits { bytes, dtype: w.dtype })
}
