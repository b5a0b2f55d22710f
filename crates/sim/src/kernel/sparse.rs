//! The structured-sparse product (D-20).
//!
//! Compressed weights `[128, M]` and, for each, a 4-bit tag that says which element of its group of four
//! partitions times `ratio` planes of the moving operand it multiplies.

use hadal_num::Dtype;
use hadal_num::matmul::canonical;

use super::{Core, Part, Tile, Weights, Writeback};
use crate::error::{Fault, OperandFault};
use crate::fp32_pass::Pass;
use crate::memory::View;
use crate::options::Fp32Mode;

/// Rows of the array, all of which take part.
const ROWS: usize = 128;

/// The tags of all compressed weights, one a byte, `[128, columns]`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tags {
    pub(crate) columns: usize,
    values: Vec<u8>,
}

impl Tags {
    /// Unpacks int16 or uint16 words: four tags each, the lowest nibble first.
    pub(crate) fn new(tile: &Tile) -> Result<Tags, OperandFault> {
        if !matches!(tile.dtype, Dtype::Int16 | Dtype::Uint16) {
            let text = "sparsity tags are int16 or uint16";
            return Err(Fault::Type { text, dtype: tile.dtype }.on(tile.operand));
        }
        check_rows(tile)?;
        let nibbles = |b: &u8| [b & 15, b >> 4];
        Ok(Tags { columns: tile.cols * 4, values: tile.bytes.iter().flat_map(nibbles).collect() })
    }
}

fn check_rows(tile: &Tile) -> Result<(), OperandFault> {
    if tile.rows == ROWS {
        return Ok(());
    }
    let what = "active rows (only the 128-active-rows case is supported)";
    Err(Fault::Shape { what, got: tile.rows.to_string(), want: "128".into() }.on(tile.operand))
}

/// One pass of a sparse matmul into PSUM. A float32 matmul runs the low pass first (in `single`
/// numerics that pass writes the whole product), all other types have the first pass alone.
pub(crate) fn issue(
    core: &mut Core<'_>,
    weights: &Weights,
    tags: &Tags,
    moving: &Tile,
    ratio: usize,
    dst: &View,
    pass: Pass,
) -> Result<(), OperandFault> {
    check_rows(&weights.tile)?;
    check_rows(moving)?;
    if tags.columns != weights.columns {
        let got = format!("{} columns", tags.columns);
        let want = format!("{} as the weights have", weights.columns);
        return Err(Fault::Shape { what: "sparsity tags", got, want }.into());
    }
    if !matches!(ratio, 1 | 2 | 4) || !moving.cols.is_multiple_of(ratio) {
        let got = format!("ratio {ratio} of {} elements", moving.cols);
        return Err(Fault::Shape { what: "compression ratio", got, want: "1, 2 or 4 planes".into() }
            .on(moving.operand));
    }
    weights.accepts(moving.operand, moving.dtype, moving.rows as u64)?;
    let n = moving.cols / ratio;
    core.check_destination(dst, weights.columns, n)?;
    // START is implied: fresh accumulation, unless the program attribute overrides.
    let how = Writeback::decide(core, Some(hadal_isa::START), 0)?;
    let two_pass = weights.tile.dtype == Dtype::Float32 && core.options.fp32 == Fp32Mode::TwoPass;
    let part = match (pass, two_pass) {
        (Pass::Second, false) => return Ok(()),
        (Pass::First, false) => Part::Whole,
        (Pass::First, true) => Part::Low,
        (Pass::Second, true) => Part::High,
    };
    let sums = product(&weights.values(part)?, tags, moving, ratio, n)?;
    core.write_psum(dst, &sums, if pass == Pass::Second { Writeback::SECOND_PASS } else { how })
}

/// `out[m, n] = sum over p ascending of w[p, m] * x[4 (p / 4) + t / ratio, t % ratio, n]`, `t` the tag of
/// `(p, m)`; products rounded before the add, from +0 (D-18).
fn product(w: &[f32], tags: &Tags, moving: &Tile, ratio: usize, n: usize) -> Result<Vec<f32>, OperandFault> {
    let x = moving.values(0)?;
    let columns = tags.columns;
    let mut out = vec![0.0f32; columns * n];
    let rows = w.chunks(columns.max(1)).zip(tags.values.chunks(columns.max(1))).enumerate();
    for (p, (w_row, tag_row)) in rows {
        let outputs = out.chunks_mut(n.max(1));
        for (m, ((&weight, &tag), sums)) in w_row.iter().zip(tag_row).zip(outputs).enumerate() {
            let tag = usize::from(tag);
            if tag >= 4 * ratio {
                return Err(Fault::SparseTag { tag: tag as u8, row: p, column: m, ratio }.into());
            }
            let at = ((p / 4 * 4 + tag / ratio) * ratio + tag % ratio) * n;
            for (sum, value) in sums.iter_mut().zip(x.get(at..at + n).unwrap_or(&[])) {
                *sum += weight * value;
            }
        }
    }
    out.iter_mut().for_each(|sum| *sum = canonical(*sum));
    Ok(out)
}
