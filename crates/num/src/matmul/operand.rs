//! What a product reads: values, or codes that are widened while they are packed.

use crate::error::{area, check_len};
use crate::mx::{self, BLOCK_COLS, BLOCK_ROWS, MxFormat, ScaleRule};
use crate::{Dtype, NumError, round_f32r, widen};

/// One operand of a product, `[k, columns]`: row `i` holds what contraction index `i` multiplies.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// float32 values, row after row.
    Values(&'a [f32]),
    /// Little-endian codes of a type with one element a container.
    Codes(Codes<'a>),
    /// MX blocks: the four lanes of a container are four consecutive contraction indices.
    Mx(Blocks<'a>),
}

/// Rows of codes in memory. float32r codes are rounded to float32r first.
#[derive(Clone, Copy, Debug)]
pub struct Codes<'a> {
    /// The type of an element, not an `x4` type.
    pub dtype: Dtype,
    /// The rows; nothing is read past the last element of the last one.
    pub bytes: &'a [u8],
    /// Bytes from the start of one row to the next.
    pub row_bytes: usize,
    /// What is subtracted from every value, in float32.
    pub zero_point: u8,
}

/// An MX operand of `[k / 4, columns]` containers, `k` a multiple of 32.
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a> {
    /// The format of the elements.
    pub format: MxFormat,
    /// What scale 255 means.
    pub rule: ScaleRule,
    /// Containers; index `4 p + q` of the contraction is lane `q` of row `p`. Nothing is read past the last container
    /// of the last row.
    pub data: &'a [u8],
    /// Bytes from the start of one row of containers to the next.
    pub row_bytes: usize,
    /// Scale codes, `[k / 32, columns]`.
    pub scales: &'a [u8],
}

impl<'a> Codes<'a> {
    /// Rows of `columns` codes, one directly after the other.
    pub fn dense(dtype: Dtype, bytes: &'a [u8], columns: usize) -> Self {
        Self { dtype, bytes, row_bytes: columns.saturating_mul(dtype.bytes()), zero_point: 0 }
    }
}

impl<'a> Blocks<'a> {
    /// Rows of `columns` containers, one directly after the other.
    pub fn dense(
        format: MxFormat,
        rule: ScaleRule,
        data: &'a [u8],
        scales: &'a [u8],
        columns: usize,
    ) -> Self {
        Self { format, rule, data, row_bytes: columns.saturating_mul(format.container_bytes()), scales }
    }
}

impl Operand<'_> {
    /// Fails unless the operand is `[k, columns]`.
    pub(super) fn check(&self, what: &'static str, k: usize, columns: usize) -> Result<(), NumError> {
        let count = area(k, columns)?;
        match self {
            Self::Values(values) => check_len(what, "elements", values.len(), count),
            Self::Codes(codes) => {
                let size = codes.dtype.bytes();
                if codes.dtype.is_x4() {
                    return Err(NumError::Lanes { dtype: codes.dtype });
                }
                let Some(last) = k.checked_sub(1) else { return Ok(()) };
                let row = area(columns, size)?;
                if columns == 0 {
                    return Ok(());
                }
                let shape = || NumError::Shape { rows: k, cols: codes.row_bytes };
                let want = area(last, codes.row_bytes)?.checked_add(row).ok_or_else(shape)?;
                if codes.bytes.len() < want {
                    check_len(what, "bytes", codes.bytes.len(), want)
                } else {
                    Ok(())
                }
            }
            Self::Mx(blocks) => {
                if !k.is_multiple_of(BLOCK_ROWS * BLOCK_COLS) {
                    return Err(NumError::Blocks { rows: k / BLOCK_COLS, cols: BLOCK_COLS });
                }
                let row = area(columns, blocks.format.container_bytes())?;
                check_rows(what, blocks.data, k / BLOCK_COLS, blocks.row_bytes, row)?;
                check_len("block scales", "bytes", blocks.scales.len(), count / (BLOCK_ROWS * BLOCK_COLS))
            }
        }
    }

    /// The float32 values, `[k, columns]`: the definition of what a product multiplies.
    ///
    /// # Errors
    /// [`NumError::Length`] and the like when the operand does not have that shape, [`NumError::Lanes`] for codes of
    /// an `x4` type.
    pub fn values(&self, k: usize, columns: usize) -> Result<Vec<f32>, NumError> {
        self.check("operand", k, columns)?;
        let mut values = vec![0.0; area(k, columns)?];
        match self {
            Self::Values(from) => values.copy_from_slice(from),
            Self::Codes(codes) => {
                let row_bytes = columns * codes.dtype.bytes();
                for (i, row) in values.chunks_mut(columns.max(1)).enumerate() {
                    let at = i * codes.row_bytes;
                    widen(codes.dtype, codes.bytes.get(at..at + row_bytes).unwrap_or_default(), row)?;
                }
                adjust(codes.dtype, codes.zero_point, &mut values);
            }
            Self::Mx(Blocks { format, rule, data, row_bytes, scales }) => {
                let (rows, row) = (k / BLOCK_COLS, columns * format.container_bytes());
                let at = |i: usize| data.get(i * row_bytes..i * row_bytes + row).unwrap_or_default();
                let data: Vec<u8> = (0..rows).flat_map(at).copied().collect();
                mx::expand(*format, *rule, &data, scales, rows, columns, &mut values)?;
            }
        }
        Ok(values)
    }
}

/// Fails unless `rows` rows of `row` bytes, `stride` bytes apart, lie in `bytes`.
fn check_rows(
    what: &'static str,
    bytes: &[u8],
    rows: usize,
    stride: usize,
    row: usize,
) -> Result<(), NumError> {
    let Some(last) = rows.checked_sub(1).filter(|_| row > 0) else { return Ok(()) };
    let want = area(last, stride)?.checked_add(row).ok_or(NumError::Shape { rows, cols: stride })?;
    if bytes.len() < want { check_len(what, "bytes", bytes.len(), want) } else { Ok(()) }
}

/// Rounds float32r and subtracts the zero point.
fn adjust(dtype: Dtype, zero_point: u8, values: &mut [f32]) {
    if dtype == Dtype::Float32r {
        values.iter_mut().for_each(|x| *x = round_f32r(*x));
    }
    if zero_point != 0 {
        let zero = f32::from(zero_point);
        values.iter_mut().for_each(|x| *x -= zero);
    }
}
