//! The inner loop: a tile of sums stays in registers while the contraction index runs.

use std::ops::Range;

use super::pack::Packed;
use crate::simd::{FloatKernel, Floats, prefetch};

/// What becomes of the sums of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sums {
    /// They start from +0 and are written.
    Fresh,
    /// They go on from what is written: storing and reloading a running sum changes none of its bits.
    Continued,
    /// They start from +0 and are added to what is written, each with one addition.
    Added,
}

/// Panels of stationary rows times all panels of moving columns.
pub(super) struct Band<'a> {
    pub(super) w: &'a Packed,
    pub(super) rows: Range<usize>,
    pub(super) x: &'a Packed,
    /// Output rows from the first panel's first on, in their full length.
    pub(super) out: &'a mut [f32],
    /// Length of an output row.
    pub(super) stride: usize,
    /// Output columns from `column` on belong to `x`.
    pub(super) column: usize,
    pub(super) width: usize,
    pub(super) sums: Sums,
    /// Whether these are the last products: a NaN is then stored as the one there is (D-63).
    pub(super) last: bool,
}

impl FloatKernel for Band<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Floats>(mut self, v: V) {
        // The same shapes as `simd::tile`: two registers of columns, and as many rows as leave room for them, a
        // broadcast value and a product.
        match V::LANES {
            16 => self.tiles::<V, 32>(v),
            8 => self.tiles::<V, 16>(v),
            _ => self.tiles::<V, 8>(v),
        }
    }
}

impl Band<'_> {
    #[inline(always)]
    fn tiles<V: Floats, const COLS: usize>(&mut self, v: V) {
        let (w, x) = (self.w, self.x);
        let Some(rows) = w.panels.get(self.rows.clone()) else { return };
        let first = rows.first().map_or(0, |panel| panel.start);
        for moving in &x.panels {
            let values = x.values(moving).as_chunks::<COLS>().0;
            let width = COLS.min(self.width - moving.start);
            for (i, stationary) in rows.iter().enumerate() {
                self.ask_for::<COLS>(
                    rows.get(i + 1).map(|next| (next.start - first, next.width)),
                    moving.start,
                );
                let at = (stationary.start - first) * self.stride + self.column + moving.start;
                let weights = w.values(stationary);
                let fused = V::FUSES && stationary.extent.fuses(moving.extent);
                macro_rules! by_height {
                    ($($rows:literal)*) => {
                        match stationary.width {
                            $($rows if $rows <= const { most::<V>() } => {
                                self.tile::<V, COLS, $rows>(v, weights, values, at, width, fused);
                            })*
                            _ => {}
                        }
                    };
                }
                by_height!(1 2 3 4 5 6 7 8 9 10 11 12 13);
            }
        }
    }

    /// Fetches the outputs of the next tile: in large matrices each row of it lies in a page of its own.
    #[inline(always)]
    fn ask_for<const COLS: usize>(&self, rows: Option<(usize, usize)>, start: usize) {
        let Some((first, count)) = rows else { return };
        for i in first..first + count {
            let row = self.out.get(i * self.stride + self.column + start..);
            if let Some(row) = row.and_then(<[f32]>::first_chunk::<COLS>) {
                prefetch(row, 0);
            }
        }
    }

    #[inline(always)]
    fn tile<V: Floats, const COLS: usize, const ROWS: usize>(
        &mut self,
        v: V,
        w: &[f32],
        x: &[[f32; COLS]],
        at: usize,
        width: usize,
        fused: bool,
    ) {
        let w = w.as_chunks::<ROWS>().0;
        let (stride, sums, last) = (self.stride, self.sums, self.last);
        let Some(out) = self.out.get_mut(at..) else { return };
        let mut acc = [[v.zero(); 2]; ROWS];
        if sums == Sums::Continued {
            for (i, acc) in acc.iter_mut().enumerate() {
                let row = out.get(i * stride..).unwrap_or_default();
                *acc = load(v, row_of::<COLS>(row, width, &mut [0.0; COLS]));
            }
        }
        let acc = if fused {
            run::<V, COLS, ROWS, true>(v, w, x, acc)
        } else {
            run::<V, COLS, ROWS, false>(v, w, x, acc)
        };
        for (i, &acc) in acc.iter().enumerate() {
            let mut acc = acc;
            let row = out.get_mut(i * stride..).unwrap_or_default();
            if sums == Sums::Added {
                let old = load(v, row_of::<COLS>(row, width, &mut [0.0; COLS]));
                acc = [v.add(old[0], acc[0]), v.add(old[1], acc[1])];
            }
            if last {
                acc = [v.canonical(acc[0]), v.canonical(acc[1])];
            }
            match row.first_chunk_mut::<COLS>() {
                Some(row) if width == COLS => store(v, row, acc),
                _ => {
                    let mut whole = [0.0; COLS];
                    store(v, &mut whole, acc);
                    crate::codec::copy_prefix(row.get_mut(..width).unwrap_or_default(), &whole);
                }
            }
        }
    }
}

/// Adds the products to the sums, which come and go by value so that they have no address and stay in registers.
#[inline(always)]
fn run<V: Floats, const COLS: usize, const ROWS: usize, const FUSED: bool>(
    v: V,
    w: &[[f32; ROWS]],
    x: &[[f32; COLS]],
    mut acc: [[V::F; 2]; ROWS],
) -> [[V::F; 2]; ROWS] {
    for (w, x) in w.iter().zip(x) {
        let x = load(v, x);
        for i in 0..ROWS {
            let w = v.splat(&w[i]);
            acc[i] = if FUSED {
                [v.mul_add(w, x[0], acc[i][0]), v.mul_add(w, x[1], acc[i][1])]
            } else {
                // Two roundings, never one: this is the definition of the result.
                [v.add(acc[i][0], v.mul(w, x[0])), v.add(acc[i][1], v.mul(w, x[1]))]
            };
        }
    }
    acc
}

/// The first columns of a row, filled up with zeros.
#[inline(always)]
fn row_of<'a, const COLS: usize>(row: &'a [f32], width: usize, room: &'a mut [f32; COLS]) -> &'a [f32; COLS] {
    match row.first_chunk::<COLS>() {
        Some(row) if width == COLS => row,
        _ => {
            crate::codec::copy_prefix(room, row.get(..width).unwrap_or_default());
            room
        }
    }
}

#[inline(always)]
fn load<V: Floats, const COLS: usize>(v: V, row: &[f32; COLS]) -> [V::F; 2] {
    [v.load(row, 0), v.load(row, 1)]
}

#[inline(always)]
fn store<V: Floats, const COLS: usize>(v: V, row: &mut [f32; COLS], sums: [V::F; 2]) {
    v.store(row, 0, sums[0]);
    v.store(row, 1, sums[1]);
}

/// Most rows of a tile.
const fn most<V: Floats>() -> usize {
    match V::LANES {
        16 => 13,
        8 => 6,
        _ => 4,
    }
}
