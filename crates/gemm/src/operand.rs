//! Operands as the caller holds them, and as the program's tensors hold them.

use std::io;
use std::ops::Range;

use hadal_num::mx::{self, ScaleRule};
use hadal_num::{Dtype, Overflow, narrow, round_to_odd};
use rayon::prelude::*;

use crate::GemmError;
use crate::problem::{Problem, Side};
use crate::tile::{self, BLOCK, LANES};

/// A matrix of numbers, wherever it is.
pub trait Matrix: Sync {
    /// Rows and columns.
    fn shape(&self) -> [usize; 2];

    /// Elements of row `row` from column `column` on, as float64.
    ///
    /// # Errors
    /// What reading them gives.
    fn read(&self, row: usize, column: usize, out: &mut [f64]) -> io::Result<()>;

    /// The same elements as float32. Those of a wider type are rounded to odd when `odd`, so that one more rounding
    /// to a narrow format gives what one from their own type would, else to nearest.
    ///
    /// # Errors
    /// What reading them gives.
    fn read_f32(&self, row: usize, column: usize, odd: bool, out: &mut [f32]) -> io::Result<()> {
        let mut wide = vec![0.0; out.len()];
        self.read(row, column, &mut wide)?;
        for (to, from) in out.iter_mut().zip(wide) {
            *to = if odd { round_to_odd(from) } else { from as f32 };
        }
        Ok(())
    }
}

/// A matrix in memory, row-major.
#[derive(Debug, Clone, Copy)]
pub struct Dense<'a, T> {
    shape: [usize; 2],
    values: &'a [T],
}

impl<'a, T> Dense<'a, T> {
    /// A matrix of these values; `None` unless there are as many as the shape says.
    pub fn new(shape: [usize; 2], values: &'a [T]) -> Option<Self> {
        (shape[0].checked_mul(shape[1]) == Some(values.len())).then_some(Dense { shape, values })
    }

    fn part(&self, row: usize, column: usize, len: usize) -> io::Result<&'a [T]> {
        let at = row * self.shape[1] + column;
        self.values.get(at..at + len).ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
    }
}

impl Matrix for Dense<'_, f32> {
    fn shape(&self) -> [usize; 2] {
        self.shape
    }

    fn read(&self, row: usize, column: usize, out: &mut [f64]) -> io::Result<()> {
        let part = self.part(row, column, out.len())?;
        out.iter_mut().zip(part).for_each(|(to, from)| *to = f64::from(*from));
        Ok(())
    }

    fn read_f32(&self, row: usize, column: usize, _: bool, out: &mut [f32]) -> io::Result<()> {
        out.copy_from_slice(self.part(row, column, out.len())?);
        Ok(())
    }
}

impl Matrix for Dense<'_, f64> {
    fn shape(&self) -> [usize; 2] {
        self.shape
    }

    fn read(&self, row: usize, column: usize, out: &mut [f64]) -> io::Result<()> {
        out.copy_from_slice(self.part(row, column, out.len())?);
        Ok(())
    }
}

/// The bytes of an operand's tensors for some of its columns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tensors {
    /// Containers, or bfloat16 where the program quantizes.
    pub data: Vec<u8>,
    /// Block scales; empty where there are none.
    pub scales: Vec<u8>,
}

/// How values become elements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounding {
    pub(crate) overflow: Overflow,
    pub(crate) rule: ScaleRule,
}

/// Contraction indices that one task makes rows of, at most: runs of A long enough to be read in one go.
const TASK: usize = 1024;

/// Reads `columns` of an operand and makes the tensors that the program takes.
pub(crate) fn tensors(
    problem: &Problem,
    side: Side,
    matrix: &dyn Matrix,
    columns: Range<usize>,
    rounding: Rounding,
) -> Result<Tensors, GemmError> {
    let slice = Slice { side, matrix, k: problem.k, columns };
    let (rows, width) = (tile::tensor_rows(problem), slice.columns.len());
    let quantizes = problem.quantizes(side);
    // A few tasks a thread, of whole blocks; their number changes nothing but the time.
    let share = problem.k.div_ceil(4 * rayon::current_num_threads());
    let task = share.clamp(64, TASK).next_multiple_of(BLOCK * LANES);
    let task_rows = if problem.format.mx().is_some() { task / LANES } else { task };
    match problem.format.mx() {
        None => {
            let dtype = problem.format.dtype();
            let mut data = vec![0; rows * width * dtype.bytes()];
            let chunk = task_rows * width * dtype.bytes();
            data.par_chunks_mut(chunk)
                .enumerate()
                .try_for_each(|(i, out)| slice.dense(dtype, i * task_rows, rounding.overflow, out))?;
            Ok(Tensors { data, scales: Vec::new() })
        }
        Some(_) if quantizes => {
            let row = LANES * width * 2;
            let mut data = vec![0; rows * row];
            data.par_chunks_mut(task_rows * row).enumerate().try_for_each(|(i, out)| {
                let values = slice.lanes(i * task_rows, out.len() / row, true)?;
                Ok::<(), GemmError>(narrow(Dtype::Bfloat16, &values, rounding.overflow, out)?)
            })?;
            Ok(Tensors { data, scales: Vec::new() })
        }
        Some(format) => {
            let row = width * format.container_bytes();
            let (mut data, mut scales) = (vec![0; rows * row], vec![0; rows / BLOCK * width]);
            let groups = scales.par_chunks_mut(task_rows / BLOCK * width);
            data.par_chunks_mut(task_rows * row).zip(groups).enumerate().try_for_each(
                |(i, (data, scales))| {
                    let rows = data.len() / row;
                    let values = slice.lanes(i * task_rows, rows, false)?;
                    let (source, columns) = (values.as_slice(), LANES * width);
                    Ok::<(), GemmError>(mx::quantize(
                        source,
                        rows,
                        columns,
                        format,
                        rounding.rule,
                        data,
                        scales,
                    )?)
                },
            )?;
            Ok(Tensors { data, scales })
        }
    }
}

/// Some columns of an operand: rows of A, columns of B.
struct Slice<'a> {
    side: Side,
    matrix: &'a dyn Matrix,
    k: usize,
    columns: Range<usize>,
}

impl Slice<'_> {
    fn read(&self, row: usize, column: usize, odd: bool, out: &mut [f32]) -> Result<(), GemmError> {
        let what = self.side.name();
        self.matrix.read_f32(row, column, odd, out).map_err(|error| GemmError::Read { what, error })
    }

    /// Rows of the tensor from `first` on, as containers; as many as `out` has room for.
    fn dense(&self, dtype: Dtype, first: usize, overflow: Overflow, out: &mut [u8]) -> Result<(), GemmError> {
        let (width, size) = (self.columns.len(), dtype.bytes());
        // Wider formats than 22 significant bits must not see a value rounded to odd.
        let odd = dtype != Dtype::Float32;
        match self.side {
            Side::B => {
                let mut values = vec![0.0; width];
                for (k, row) in (first..).zip(out.chunks_mut(width * size)) {
                    self.read(k, self.columns.start, odd, &mut values)?;
                    fit(dtype, overflow, &mut values);
                    narrow(dtype, &values, overflow, row)?;
                }
            }
            Side::A => {
                let rows = out.len() / (width * size);
                // A few rows of A at a time: their elements of one k lie next to each other in the tensor.
                const BAND: usize = 16;
                let mut values = vec![0.0; BAND * rows];
                let mut bytes = vec![0; BAND * rows * size];
                for start in (0..width).step_by(BAND) {
                    let band = BAND.min(width - start);
                    let values = values.get_mut(..band * rows).unwrap_or_default();
                    let bytes = bytes.get_mut(..band * rows * size).unwrap_or_default();
                    for (m, row) in (self.columns.start + start..).zip(values.chunks_mut(rows)) {
                        self.read(m, first, odd, row)?;
                    }
                    fit(dtype, overflow, values);
                    narrow(dtype, values, overflow, bytes)?;
                    match size {
                        1 => transpose::<1>(bytes, rows, start, width, out),
                        2 => transpose::<2>(bytes, rows, start, width, out),
                        _ => transpose::<4>(bytes, rows, start, width, out),
                    }
                }
            }
        }
        Ok(())
    }

    /// Rows `first..first + rows` of an MX tensor as values: in row r, the contraction indices 4r to 4r + 3 of a
    /// column stand together. Indices past the end are zeros.
    fn lanes(&self, first: usize, rows: usize, odd: bool) -> Result<Vec<f32>, GemmError> {
        let width = self.columns.len();
        let mut out = vec![0.0; rows * LANES * width];
        let from = first * LANES;
        let count = (rows * LANES).min(self.k.saturating_sub(from));
        match self.side {
            Side::A => {
                // A few rows of A at a time, so that what lies together in the tensor is written together.
                const BAND: usize = 4;
                let mut values = vec![0.0; BAND * rows * LANES];
                for start in (0..width).step_by(BAND) {
                    let band = BAND.min(width - start);
                    let m = self.columns.start + start;
                    for (m, run) in (m..m + band).zip(values.chunks_mut(rows * LANES)) {
                        self.read(m, from, odd, run.get_mut(..count).unwrap_or_default())?;
                    }
                    for (r, row) in out.chunks_mut(LANES * width).enumerate() {
                        let to = row.get_mut(LANES * start..LANES * (start + band)).unwrap_or_default();
                        for (to, run) in to.chunks_mut(LANES).zip(values.chunks(rows * LANES)) {
                            to.copy_from_slice(run.get(LANES * r..LANES * (r + 1)).unwrap_or(&[0.0; LANES]));
                        }
                    }
                }
            }
            Side::B => {
                let mut values = vec![0.0; width];
                for k in 0..count {
                    self.read(from + k, self.columns.start, odd, &mut values)?;
                    let row = out.get_mut(k / LANES * LANES * width..).unwrap_or_default();
                    row.iter_mut().skip(k % LANES).step_by(LANES).zip(&values).for_each(|(to, v)| *to = *v);
                }
            }
        }
        Ok(out)
    }
}

/// Saturates values that stay float32, as narrowing does for the other formats.
fn fit(dtype: Dtype, overflow: Overflow, values: &mut [f32]) {
    if dtype == Dtype::Float32 && overflow == Overflow::Saturate {
        // A NaN stays one.
        values.iter_mut().for_each(|x| *x = x.clamp(f32::MIN, f32::MAX));
    }
}

/// Puts rows of `rows` containers into columns `start..` of `out`, which is `[rows, width]`.
fn transpose<const SIZE: usize>(bytes: &[u8], rows: usize, start: usize, width: usize, out: &mut [u8]) {
    let (from, to) = (bytes.as_chunks::<SIZE>().0, out.as_chunks_mut::<SIZE>().0);
    for (r, row) in to.chunks_mut(width).enumerate() {
        let row = row.get_mut(start..).unwrap_or_default();
        for (to, column) in row.iter_mut().zip(from.chunks(rows)) {
            if let Some(value) = column.get(r) {
                *to = *value;
            }
        }
    }
}
