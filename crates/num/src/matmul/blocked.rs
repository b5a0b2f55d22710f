//! The fast form: a tile of outputs stays in registers while the contraction index runs.

use rayon::prelude::*;

use super::check_shapes;
use crate::NumError;
use crate::simd::{Kernel, Level, Simd, launch};

/// Contraction indices between two stores of a tile: a packed panel of the moving operand this deep stays in
/// the first cache. Storing and reloading a running sum changes none of its bits.
const DEPTH: usize = 256;
/// Multiplications from which on bands of output rows are shared between threads.
const SPLIT: usize = 1 << 21;

/// Same arguments, same bits and same errors as [`matmul_ref`](super::matmul_ref), many times faster.
///
/// Large products use the threads of the current rayon pool; each output belongs to one of them, so their
/// number changes nothing.
///
/// # Errors
/// As [`matmul_ref`](super::matmul_ref).
pub fn matmul_blocked(
    w: &[f32],
    x: &[f32],
    k: usize,
    m: usize,
    n: usize,
    out: &mut [f32],
) -> Result<(), NumError> {
    check_shapes(w, x, k, m, n, out)?;
    let level = Level::active();
    if level == Level::Scalar || m == 0 || n == 0 || k == 0 {
        return super::matmul_ref(w, x, k, m, n, out);
    }
    out.fill(0.0);
    let threads = rayon::current_num_threads();
    if threads == 1 || k.saturating_mul(m).saturating_mul(n) < SPLIT {
        launch(level, Bands { w, x, m, n, first_row: 0, out: &mut *out });
        super::settle(out);
    } else {
        let rows = m.div_ceil(threads);
        out.par_chunks_mut(rows * n).enumerate().for_each(|(task, out)| {
            launch(level, Bands { w, x, m, n, first_row: task * rows, out: &mut *out });
            super::settle(out);
        });
    }
    Ok(())
}

/// The output rows from `first_row` on that `out` holds.
struct Bands<'a> {
    w: &'a [f32],
    x: &'a [f32],
    m: usize,
    n: usize,
    first_row: usize,
    out: &'a mut [f32],
}

impl Kernel for Bands<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        // Tiles as large as the registers allow, with room for a row of the moving operand and a product.
        match S::LANES {
            16 => self.panels::<32, 12>(),
            8 => self.panels::<16, 6>(),
            _ => self.panels::<8, 4>(),
        }
    }
}

impl Bands<'_> {
    /// All outputs, in tiles of at most `ROWS` by `COLS`.
    #[inline(always)]
    fn panels<const COLS: usize, const ROWS: usize>(mut self) {
        let mut panel = vec![[0.0; COLS]; DEPTH];
        let (m, n) = (self.m, self.n);
        for (w, x) in self.w.chunks(DEPTH * m).zip(self.x.chunks(DEPTH * n)) {
            for col in (0..n).step_by(COLS) {
                let width = COLS.min(n - col);
                // Columns past the end are computed on zeros and never stored.
                for (to, row) in panel.iter_mut().zip(x.chunks_exact(n)) {
                    match row.get(col..).and_then(<[f32]>::first_chunk::<COLS>) {
                        Some(whole) => *to = *whole,
                        None => {
                            *to = [0.0; COLS];
                            crate::codec::copy_prefix(to, row.get(col..).unwrap_or_default());
                        }
                    }
                }
                self.tiles::<COLS, ROWS>(w, &panel, col, width);
            }
        }
    }

    /// Adds one panel of columns to every row.
    #[inline(always)]
    fn tiles<const COLS: usize, const ROWS: usize>(
        &mut self,
        w: &[f32],
        panel: &[[f32; COLS]],
        col: usize,
        width: usize,
    ) {
        let (m, n) = (self.m, self.n);
        let rows = self.out.len() / n;
        // Tiles of equal height waste no registers on a short last one.
        let tiles = rows.div_ceil(ROWS);
        let mut row = 0;
        for tile in 0..tiles {
            let height = rows / tiles + usize::from(tile < rows % tiles);
            let Some(out) = self.out.get_mut(row * n..(row + height) * n) else { return };
            let at = Tile { m, n, row: self.first_row + row, col, width };
            match height {
                12 if ROWS >= 12 => at.add::<COLS, 12>(w, panel, out),
                11 if ROWS >= 11 => at.add::<COLS, 11>(w, panel, out),
                10 if ROWS >= 10 => at.add::<COLS, 10>(w, panel, out),
                9 if ROWS >= 9 => at.add::<COLS, 9>(w, panel, out),
                8 if ROWS >= 8 => at.add::<COLS, 8>(w, panel, out),
                7 if ROWS >= 7 => at.add::<COLS, 7>(w, panel, out),
                6 if ROWS >= 6 => at.add::<COLS, 6>(w, panel, out),
                5 if ROWS >= 5 => at.add::<COLS, 5>(w, panel, out),
                4 => at.add::<COLS, 4>(w, panel, out),
                3 => at.add::<COLS, 3>(w, panel, out),
                2 => at.add::<COLS, 2>(w, panel, out),
                _ => at.add::<COLS, 1>(w, panel, out),
            }
            row += height;
        }
    }
}

/// Where a tile lies and how the operands are laid out.
#[derive(Clone, Copy)]
struct Tile {
    m: usize,
    n: usize,
    row: usize,
    col: usize,
    width: usize,
}

impl Tile {
    /// Continues the sums of the tile over the rows of `panel`. `out` holds the tile's rows in full length.
    #[inline(always)]
    fn add<const COLS: usize, const ROWS: usize>(self, w: &[f32], panel: &[[f32; COLS]], out: &mut [f32]) {
        let Self { m, n, row, col, width } = self;
        let mut acc = [[0.0_f32; COLS]; ROWS];
        for (sums, out) in acc.iter_mut().zip(out.chunks_exact(n)) {
            match out.get(col..).and_then(<[f32]>::first_chunk::<COLS>) {
                Some(whole) => *sums = *whole,
                None => crate::codec::copy_prefix(sums, out.get(col..).unwrap_or_default()),
            }
        }
        for (w_row, values) in w.chunks_exact(m).zip(panel) {
            let Some(weights) = w_row.get(row..).and_then(<[f32]>::first_chunk::<ROWS>) else { return };
            for (sums, &weight) in acc.iter_mut().zip(weights) {
                for (sum, &value) in sums.iter_mut().zip(values) {
                    // Two roundings, never one: this is the definition of the result.
                    *sum += weight * value;
                }
            }
        }
        for (sums, out) in acc.iter().zip(out.chunks_exact_mut(n)) {
            match out.get_mut(col..col + COLS) {
                Some(to) => to.copy_from_slice(sums),
                None => crate::codec::copy_prefix(out.get_mut(col..col + width).unwrap_or_default(), sums),
            }
        }
    }
}
