//! Products of operands of any type: blocks that stay in the caches, and threads.

use std::cell::RefCell;
use std::ops::Range;

use super::decode::{SQUARE, takes};
use super::operand::Operand;
use super::pack::{Cut, Packed, Region};
use super::tile::{Band, Sums};
use super::{matmul_ref, settle};
use crate::NumError;
use crate::error::{area, check_len};
use crate::simd::{Level, launch_floats, tile};

/// Contraction indices between two stores of a tile: a panel of the moving operand and one of the stationary one,
/// both this deep, stay in the first cache.
const DEPTH: usize = 256;
/// Depth up to which a tile of the contraction whose sums are added to others is one block.
const DEEPEST: usize = 512;
/// Columns of either operand that are packed at a time.
const COLUMNS: usize = 2048;
/// Stationary panels a thread works on at a time, which stay in the second cache.
const BAND: usize = 32;
/// Multiplications from which on work is shared between threads.
const SPLIT: usize = 1 << 21;

/// `out[i, j] = (..((+0 + w[0, i] x[0, j]) + w[1, i] x[1, j]) + ..)`, every step rounded: the bits of
/// [`matmul_ref`] on the [values](Operand::values) of the operands, many times faster.
///
/// `stationary` is `[k, m]`, `moving` is `[k, n]`; `out` is `[m, n]`, row-major. Narrow operands are widened while
/// they are packed, and where every product is a float32 it is added in the same instruction.
///
/// Large products use the threads of the current rayon pool; each output belongs to one of them, so their number
/// changes nothing.
///
/// # Errors
/// [`NumError::Length`], [`NumError::Shape`], [`NumError::Blocks`] when an operand or `out` does not have the shape,
/// [`NumError::Lanes`] for codes of an `x4` type.
pub fn product(
    stationary: Operand<'_>,
    moving: Operand<'_>,
    [k, m, n]: [usize; 3],
    out: &mut [f32],
) -> Result<(), NumError> {
    product_tiled(stationary, moving, [k, m, n], k.max(1), out)
}

/// A product as the array makes it when the contraction is longer than the array is: every `k_tile` indices are a
/// product of their own, whose sums are added to the result so far with one float32 addition each.
///
/// With `k_tile` of `k` or more this is [`product`]. A `k_tile` of 0 counts as 1.
///
/// # Errors
/// As [`product`].
pub fn product_tiled(
    stationary: Operand<'_>,
    moving: Operand<'_>,
    [k, m, n]: [usize; 3],
    k_tile: usize,
    out: &mut [f32],
) -> Result<(), NumError> {
    stationary.check("stationary operand", k, m)?;
    moving.check("moving operand", k, n)?;
    check_len("matmul output", "elements", out.len(), area(m, n)?)?;
    let level = Level::active();
    let k_tile = k_tile.max(1);
    if level == Level::Scalar || k == 0 || m == 0 || n == 0 {
        return by_definition(&stationary.values(k, m)?, &moving.values(k, n)?, [k, m, n], k_tile, out);
    }
    let (mut w_values, mut x_values) = (Vec::new(), Vec::new());
    let w = ready(&stationary, k, m, k_tile, &mut w_values)?;
    let x = ready(&moving, k, n, k_tile, &mut x_values)?;
    let shape = Shape { level, m, n, threads: threads(k, m, n) };
    if k_tile >= k {
        shape.chain(Stationary::Operand(&w), &x, 0..k, out);
    } else if k_tile <= DEEPEST {
        let blocks = (0..k).step_by(k_tile).map(|at| Block {
            row: at,
            depth: k_tile.min(k - at),
            sums: if at == 0 { Sums::Fresh } else { Sums::Added },
            last: at + k_tile >= k,
        });
        shape.blocks(Stationary::Operand(&w), &x, blocks, out);
    } else {
        let mut sums = vec![0.0; out.len()];
        for at in (0..k).step_by(k_tile) {
            let to = if at == 0 { &mut *out } else { &mut sums };
            shape.chain(Stationary::Operand(&w), &x, at..k.min(at + k_tile), to);
            if at > 0 {
                out.iter_mut().zip(&sums).for_each(|(to, sum)| *to += sum);
            }
        }
        settle(out);
    }
    Ok(())
}

/// A stationary operand packed once for many products.
#[derive(Clone, Debug)]
pub struct Prepared {
    level: Level,
    k: usize,
    m: usize,
    /// One for each block of the contraction.
    blocks: Vec<Packed>,
    /// The values, where they are used as they are.
    values: Vec<f32>,
}

impl Prepared {
    /// Packs a stationary operand of `[k, m]`.
    ///
    /// # Errors
    /// As [`product`].
    pub fn new(stationary: Operand<'_>, k: usize, m: usize) -> Result<Self, NumError> {
        stationary.check("stationary operand", k, m)?;
        let level = Level::active();
        let mut prepared = Self { level, k, m, blocks: Vec::new(), values: Vec::new() };
        if level == Level::Scalar || k == 0 || m == 0 {
            prepared.values = stationary.values(k, m)?;
            return Ok(prepared);
        }
        let mut values = Vec::new();
        let w = ready(&stationary, k, m, k, &mut values)?;
        let cut = Cut::Even(tile(level).1);
        let threads = threads(k, m, 1);
        for block in chain_blocks(0..k) {
            let mut packed = Packed::default();
            packed.fill(level, &w, block.region(m, 0, m), cut, threads);
            prepared.blocks.push(packed);
        }
        Ok(prepared)
    }

    /// Contraction indices.
    pub fn depth(&self) -> usize {
        self.k
    }

    /// Output rows.
    pub fn rows(&self) -> usize {
        self.m
    }

    /// [`product`] with this stationary operand and a moving one of `[k, n]`.
    ///
    /// # Errors
    /// As [`product`].
    pub fn product(&self, moving: Operand<'_>, n: usize, out: &mut [f32]) -> Result<(), NumError> {
        let Self { level, k, m, .. } = *self;
        moving.check("moving operand", k, n)?;
        check_len("matmul output", "elements", out.len(), area(m, n)?)?;
        if n == 0 {
            return Ok(());
        }
        if self.blocks.is_empty() {
            return matmul_ref(&self.values, &moving.values(k, n)?, k, m, n, out);
        }
        let mut values = Vec::new();
        let x = ready(&moving, k, n, k, &mut values)?;
        let shape = Shape { level, m, n, threads: threads(k, m, n) };
        shape.chain(Stationary::Prepared(&self.blocks), &x, 0..k, out);
        Ok(())
    }
}

/// The operand itself, or its values where it cannot be read in blocks of whole squares.
fn ready<'a>(
    operand: &Operand<'a>,
    k: usize,
    columns: usize,
    k_tile: usize,
    room: &'a mut Vec<f32>,
) -> Result<Operand<'a>, NumError> {
    let whole = k_tile >= k || k_tile.is_multiple_of(SQUARE);
    if takes(operand) && (whole || !matches!(operand, Operand::Mx(_))) {
        return Ok(*operand);
    }
    *room = operand.values(k, columns)?;
    Ok(Operand::Values(room))
}

fn threads(k: usize, m: usize, n: usize) -> bool {
    rayon::current_num_threads() > 1 && k.saturating_mul(m).saturating_mul(n) >= SPLIT
}

/// [`product_tiled`] as it is defined.
fn by_definition(
    w: &[f32],
    x: &[f32],
    [k, m, n]: [usize; 3],
    k_tile: usize,
    out: &mut [f32],
) -> Result<(), NumError> {
    if k_tile >= k {
        return matmul_ref(w, x, k, m, n, out);
    }
    out.fill(0.0);
    if m == 0 || n == 0 {
        return Ok(());
    }
    let mut sums = vec![0.0; out.len()];
    for (w, x) in w.chunks(k_tile * m).zip(x.chunks(k_tile * n)) {
        matmul_ref(w, x, w.len() / m, m, n, &mut sums)?;
        out.iter_mut().zip(&sums).for_each(|(to, sum)| *to += sum);
    }
    settle(out);
    Ok(())
}

/// Contraction indices that are packed and multiplied together.
#[derive(Clone, Copy)]
struct Block {
    row: usize,
    depth: usize,
    sums: Sums,
    last: bool,
}

impl Block {
    /// Some columns of an operand with rows of `columns`.
    fn region(self, columns: usize, column: usize, width: usize) -> Region {
        Region { columns, row: self.row, depth: self.depth, column, width }
    }
}

/// The blocks of one chain of additions.
fn chain_blocks(rows: Range<usize>) -> impl Iterator<Item = Block> + Clone {
    let Range { start, end } = rows;
    (start..end).step_by(DEPTH).map(move |row| Block {
        row,
        depth: DEPTH.min(end - row),
        sums: if row == start { Sums::Fresh } else { Sums::Continued },
        last: row + DEPTH >= end,
    })
}

/// Where the stationary operand comes from.
#[derive(Clone, Copy)]
enum Stationary<'a> {
    Operand(&'a Operand<'a>),
    Prepared(&'a [Packed]),
}

thread_local! {
    /// Packed blocks, kept so that their pages are not asked for again with every product.
    static ROOM: RefCell<[Packed; 2]> = RefCell::default();
}

struct Shape {
    level: Level,
    m: usize,
    n: usize,
    threads: bool,
}

impl Shape {
    /// One chain of additions over a range of the contraction.
    fn chain(&self, w: Stationary<'_>, x: &Operand<'_>, rows: Range<usize>, out: &mut [f32]) {
        self.blocks(w, x, chain_blocks(rows), out);
    }

    fn blocks(
        &self,
        w: Stationary<'_>,
        x: &Operand<'_>,
        blocks: impl Iterator<Item = Block> + Clone,
        out: &mut [f32],
    ) {
        let Self { level, m, n, threads } = *self;
        let (columns, rows) = tile(level);
        let [mut w_room, mut x_room] = ROOM.take();
        for column in (0..n).step_by(COLUMNS) {
            let width = COLUMNS.min(n - column);
            for (i, block) in blocks.clone().enumerate() {
                x_room.fill(level, x, block.region(n, column, width), Cut::Padded(columns), threads);
                match w {
                    Stationary::Prepared(packed) => {
                        if let Some(packed) = packed.get(i) {
                            self.multiply(packed, &x_room, block, (column, width), out);
                        }
                    }
                    Stationary::Operand(w) => {
                        for (part, out) in out.chunks_mut(COLUMNS * n).enumerate() {
                            let region = block.region(m, part * COLUMNS, out.len() / n);
                            w_room.fill(level, w, region, Cut::Even(rows), threads);
                            self.multiply(&w_room, &x_room, block, (column, width), out);
                        }
                    }
                }
            }
        }
        ROOM.set([w_room, x_room]);
    }

    /// Multiplies packed blocks; `out` holds the rows of `w`.
    fn multiply(
        &self,
        w: &Packed,
        x: &Packed,
        block: Block,
        (column, width): (usize, usize),
        out: &mut [f32],
    ) {
        let panels = w.panels.len();
        let threads = if self.threads { rayon::current_num_threads() } else { 1 };
        let most = BAND.min(panels.div_ceil(threads));
        Bands { shape: self, w, x, block, column, width, most }.split(0..panels, out);
    }
}

/// Packed blocks to be multiplied, a band of rows at a time.
struct Bands<'a> {
    shape: &'a Shape,
    w: &'a Packed,
    x: &'a Packed,
    block: Block,
    column: usize,
    width: usize,
    /// Panels of a band.
    most: usize,
}

impl Bands<'_> {
    /// Multiplies panels of rows; `out` holds the rows they have.
    fn split(&self, rows: Range<usize>, out: &mut [f32]) {
        let Self { w, x, most, column, width, .. } = *self;
        let Shape { level, n, threads, .. } = *self.shape;
        if rows.len() <= most {
            let Block { sums, last, .. } = self.block;
            return launch_floats(level, Band { w, rows, x, out, stride: n, column, width, sums, last });
        }
        let middle = rows.start + rows.len().div_ceil(most) / 2 * most;
        let start = |panel: usize| w.panels.get(panel).map_or(0, |panel| panel.start);
        let (top, bottom) = out.split_at_mut((start(middle) - start(rows.start)) * n);
        let mut top = || self.split(rows.start..middle, top);
        let mut bottom = || self.split(middle..rows.end, bottom);
        if threads {
            rayon::join(top, bottom);
        } else {
            top();
            bottom();
        }
    }
}
