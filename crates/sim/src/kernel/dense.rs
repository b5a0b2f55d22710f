//! The dense product: operands as float32 matrices and the sum over the contraction index (D-18).

use std::sync::OnceLock;

use hadal_isa::PerfMode;
use hadal_num::matmul::{Codes, Operand, Prepared};
use hadal_num::{Dtype, round_f32r};

use super::Core;
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
        let codes = Codes { zero_point, ..Codes::dense(self.dtype, &self.bytes, self.cols) };
        Ok(Operand::Codes(codes).values(self.rows, self.cols)?)
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

/// Which part of the weights a pass multiplies (D-19).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    /// Rounded to float32r.
    High,
    /// What that leaves.
    Low,
}

/// The stationary operand as the array holds it.
#[derive(Debug, Clone)]
pub(crate) struct Weights {
    pub(crate) tile: Tile,
    pub(crate) perf: PerfMode,
    /// Whether the load was a transpose.
    pub(crate) transpose: bool,
    /// Columns of the output.
    pub(crate) columns: usize,
    zero_point: u8,
    /// The weights and their two parts, each packed for the product when it is first used.
    packed: Box<[OnceLock<Prepared>; 3]>,
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
        Ok(Weights { tile, perf, transpose, columns, zero_point, packed: Default::default() })
    }

    /// Rows of the contraction: partitions times planes.
    pub(crate) fn depth(&self) -> usize {
        self.tile.rows * self.perf.scale() as usize
    }

    /// Values as `[rows * planes, columns]`, the planes of a row pair one after the other.
    pub(crate) fn values(&self, part: Part) -> Result<Vec<f32>, OperandFault> {
        let mut values = self.tile.values(self.zero_point)?;
        if self.perf == PerfMode::DoubleRowSwInterleave {
            values = deinterleave(&values, self.tile.cols);
        }
        for w in &mut values {
            let high = round_f32r(*w);
            *w = match part {
                Part::Whole => *w,
                Part::High => high,
                Part::Low if high.is_finite() => *w - high,
                Part::Low => 0.0,
            };
        }
        Ok(values)
    }

    fn packed(&self, part: Part) -> Result<&Prepared, OperandFault> {
        let [whole, high, low] = &*self.packed;
        let slot = match part {
            Part::Whole => whole,
            Part::High => high,
            Part::Low => low,
        };
        if let Some(packed) = slot.get() {
            return Ok(packed);
        }
        let packed = if part == Part::Whole && self.perf != PerfMode::DoubleRowSwInterleave {
            // [K, 2, M] row-major is [2K, M] with the plane counting fastest, which is the order of D-18.
            let codes = Codes::dense(self.tile.dtype, &self.tile.bytes, self.columns);
            let codes = Codes { zero_point: self.zero_point, ..codes };
            Prepared::new(Operand::Codes(codes), self.depth(), self.columns)?
        } else {
            Prepared::new(Operand::Values(&self.values(part)?), self.depth(), self.columns)?
        };
        Ok(slot.get_or_init(|| packed))
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

    /// `out[m, n] = sum over k of w[k, m] * x[k, n]`; `[columns, n]` row-major. `room` is for the moving operand's
    /// containers, where they cannot be read from where they lie.
    pub(crate) fn product(
        &self,
        core: &Core<'_>,
        part: Part,
        moving: &Moving,
        zero_point: u8,
        room: &mut Vec<u8>,
        out: &mut Vec<f32>,
    ) -> Result<(), OperandFault> {
        self.accepts(moving.operand(), moving.dtype(), moving.rows())?;
        let n = self.moving_columns(moving)?;
        let packed = self.packed(part)?;
        let mut codes = Codes::dense(moving.dtype(), &[], n);
        codes.zero_point = zero_point;
        match moving {
            Moving::InPlace(view) => match core.machine.rows(view, core.options.uninit) {
                Some((bytes, row_bytes)) if self.perf.scale() == 1 => {
                    (codes.bytes, codes.row_bytes) = (bytes, row_bytes)
                }
                _ => {
                    core.machine.gather_into(view, core.options.uninit, room)?;
                    codes.bytes = room;
                }
            },
            Moving::Gathered(tile) => codes.bytes = &tile.bytes,
        }
        // Every sum is written, whatever was here.
        out.resize(self.columns * n, 0.0);
        // [K, 2, N] row-major is [2K, N] with the plane counting fastest, which is the order of D-18.
        packed.product(Operand::Codes(codes), n, out)?;
        Ok(())
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
