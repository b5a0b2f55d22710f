//! The dense product: operands as float32 matrices and the sum over the contraction index (D-18).

use hadal_isa::PerfMode;
use hadal_num::{Dtype, matmul, round_f32r};

use super::{Core, widen};
use crate::error::{Fault, OperandFault};
use crate::memory::View;

/// A gathered operand: whole containers, row by row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tile {
    pub(crate) operand: &'static str,
    pub(crate) dtype: Dtype,
    /// Partitions.
    pub(crate) rows: usize,
    /// Containers in a partition.
    pub(crate) cols: usize,
    pub(crate) bytes: Vec<u8>,
}

impl Tile {
    /// Gathers an operand.
    pub(crate) fn read(core: &Core<'_>, view: &View) -> Result<Tile, OperandFault> {
        let bytes = core.read(view)?;
        let rows = usize::try_from(view.rows).unwrap_or(usize::MAX);
        let cols = usize::try_from(view.per_row()).unwrap_or(usize::MAX);
        Ok(Tile { operand: view.operand, dtype: view.dtype, rows, cols, bytes })
    }

    /// Widens to float32, float32r rounded, and subtracts the zero point.
    pub(crate) fn values(&self, zero_point: u8) -> Result<Vec<f32>, OperandFault> {
        let mut v = widen(self.dtype, &self.bytes)?;
        adjust(self.dtype, zero_point, &mut v);
        Ok(v)
    }
}

/// The moving operand: where it lies, or its containers when they were gathered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Moving {
    InPlace(View),
    Gathered(Tile),
}

impl Moving {
    fn operand(&self) -> &'static str {
        match self {
            Moving::InPlace(view) => view.operand,
            Moving::Gathered(tile) => tile.operand,
        }
    }

    fn dtype(&self) -> Dtype {
        match self {
            Moving::InPlace(view) => view.dtype,
            Moving::Gathered(tile) => tile.dtype,
        }
    }

    fn rows(&self) -> u64 {
        match self {
            Moving::InPlace(view) => view.rows,
            Moving::Gathered(tile) => tile.rows as u64,
        }
    }

    /// Containers in a partition.
    fn per_row(&self) -> u64 {
        match self {
            Moving::InPlace(view) => view.per_row(),
            Moving::Gathered(tile) => tile.cols as u64,
        }
    }

    /// Its containers.
    pub(crate) fn tile(&self, core: &Core<'_>) -> Result<Tile, OperandFault> {
        match self {
            Moving::InPlace(view) => Tile::read(core, view),
            Moving::Gathered(tile) => Ok(tile.clone()),
        }
    }

    /// Fails unless the first free dimension is the row pair, which a gather has no room for.
    pub(crate) fn pair_first(&self) -> Result<(), OperandFault> {
        match self {
            Moving::InPlace(view) => crate::ir_exec::pair_first(view),
            Moving::Gathered(tile) => {
                let what = "a gathered operand in row pairs".to_owned();
                Err(Fault::Unsupported { what, why: "a gather has one dimension" }.on(tile.operand))
            }
        }
    }
}

/// The stationary operand as the array holds it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Weights {
    pub(crate) tile: Tile,
    pub(crate) perf: PerfMode,
    /// Whether the load was a transpose.
    pub(crate) transpose: bool,
    /// Columns of the output.
    pub(crate) columns: usize,
    /// Values as `[rows * planes, columns]`, the planes of a row pair one after the other.
    values: Vec<f32>,
}

impl Weights {
    /// Prepares a gathered stationary operand.
    pub(crate) fn new(
        tile: Tile,
        perf: PerfMode,
        transpose: bool,
        zero_point: u8,
    ) -> Result<Weights, OperandFault> {
        if !multiplies(tile.dtype) {
            let text = "Invalid weights data type for matmult";
            return Err(Fault::Type { text, dtype: tile.dtype }.on(tile.operand));
        }
        let planes = planes(perf)?;
        if !tile.cols.is_multiple_of(planes) {
            let got = format!("{} elements in a partition", tile.cols);
            return Err(Fault::Shape {
                what: "row pairs of the weights",
                got,
                want: "an even number".into(),
            }
            .on(tile.operand));
        }
        let columns = tile.cols / planes;
        let mut values = tile.values(zero_point)?;
        if perf == PerfMode::DoubleRowSwInterleave {
            values = deinterleave(&values, tile.cols);
        }
        Ok(Weights { tile, perf, transpose, columns, values })
    }

    /// Rows of the contraction: partitions times planes.
    pub(crate) fn depth(&self) -> usize {
        self.tile.rows * self.perf.scale() as usize
    }

    /// `hi` and `lo` of the two-pass float32 product (D-19).
    pub(crate) fn split(&self) -> (Vec<f32>, Vec<f32>) {
        let hi: Vec<f32> = self.values.iter().map(|&w| round_f32r(w)).collect();
        let lo = self.values.iter().zip(&hi).map(|(w, h)| if h.is_finite() { w - h } else { 0.0 }).collect();
        (hi, lo)
    }

    pub(crate) fn values(&self) -> &[f32] {
        &self.values
    }

    /// Checks the moving operand's type and partitions against the rules of a dense or sparse product.
    pub(crate) fn accepts(&self, operand: &'static str, dtype: Dtype, rows: u64) -> Result<(), OperandFault> {
        if !multiplies(dtype) {
            let text = "Invalid ifmap data type for matmult";
            return Err(Fault::Type { text, dtype }.on(operand));
        }
        if (dtype == Dtype::Float32r) != (self.tile.dtype == Dtype::Float32r) {
            let text = "float32r goes only with float32r";
            let other = if dtype == Dtype::Float32r { self.tile.dtype } else { dtype };
            return Err(Fault::Type { text, dtype: other }.on(operand));
        }
        if rows != self.tile.rows as u64 {
            return Err(Fault::Shape {
                what: "partitions of the moving operand",
                got: rows.to_string(),
                want: format!("{} as the weights have", self.tile.rows),
            }
            .on(operand));
        }
        Ok(())
    }

    /// Columns of the product with a moving operand.
    pub(crate) fn moving_columns(&self, moving: &Moving) -> Result<usize, OperandFault> {
        let planes = planes(self.perf)? as u64;
        let per_row = moving.per_row();
        if per_row.is_multiple_of(planes) {
            return Ok(usize::try_from(per_row / planes).unwrap_or(usize::MAX));
        }
        let got = format!("{per_row} elements in a partition");
        let what = "row pairs of the moving operand";
        Err(Fault::Shape { what, got, want: "an even number".into() }.on(moving.operand()))
    }

    /// `out[m, n] = sum over k of w[k, m] * x[k, n]`, with `w` one of [`Weights::values`] and
    /// [`Weights::split`]; `[columns, n]` row-major. `x` is room for the moving operand's values.
    pub(crate) fn product(
        &self,
        core: &Core<'_>,
        w: &[f32],
        moving: &Moving,
        zero_point: u8,
        x: &mut Vec<f32>,
        out: &mut Vec<f32>,
    ) -> Result<(), OperandFault> {
        self.accepts(moving.operand(), moving.dtype(), moving.rows())?;
        let n = self.moving_columns(moving)?;
        match moving {
            Moving::InPlace(view) => core.machine.gather_f32(view, core.options.uninit, x)?,
            Moving::Gathered(tile) => *x = widen(tile.dtype, &tile.bytes)?,
        }
        adjust(moving.dtype(), zero_point, x);
        out.resize(self.columns * n, 0.0);
        // [K, 2, N] row-major is [2K, N] with the plane counting fastest, which is the order of D-18.
        matmul::matmul_blocked(w, x, self.depth(), self.columns, n, out)?;
        Ok(())
    }
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

/// Whether the dense array multiplies this type: a float of one lane, or uint8.
fn multiplies(dtype: Dtype) -> bool {
    dtype.is_float() && !dtype.is_x4() || dtype == Dtype::Uint8
}

/// Contraction rows that share a partition.
fn planes(perf: PerfMode) -> Result<usize, OperandFault> {
    match perf {
        PerfMode::None => Ok(1),
        PerfMode::DoubleRow | PerfMode::DoubleRowSwInterleave => Ok(2),
        PerfMode::DoubleColumn | PerfMode::DoublePixel => {
            Err(Fault::PerfMode { mode: perf.name().to_owned() }.into())
        }
    }
}

/// Rows of pairs `2m + r` to rows of planes `r, m`.
fn deinterleave(values: &[f32], cols: usize) -> Vec<f32> {
    let mut out = Vec::with_capacity(values.len());
    for row in values.chunks(cols.max(1)) {
        out.extend(row.iter().step_by(2));
        out.extend(row.iter().skip(1).step_by(2));
    }
    out
}
