//! Operands in the order the inner loop reads them: panels of a few columns, contraction index after contraction index.

use rayon::prelude::*;

use super::decode::{self, GROUP, Place, SQUARE};
use super::extent::Extent;
use super::operand::Operand;
use crate::simd::{Kernel, Level, Simd, launch};

/// Values from which on packing is shared between threads: waking one takes as long as packing some ten thousand.
const SHARED: usize = 1 << 18;

/// How columns are cut into panels: all of the same width but for the last, or of two widths that differ by one.
#[derive(Clone, Copy)]
pub(super) enum Cut {
    /// Panels this wide; the last one is filled up with zeros.
    Padded(usize),
    /// Panels at most this wide and as equal as possible, with nothing in between.
    Even(usize),
}

/// Columns packed together for a number of contraction indices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Panel {
    /// Where its values start.
    pub(super) at: usize,
    /// Columns, padding included.
    pub(super) width: usize,
    /// First column.
    pub(super) start: usize,
    /// Bounds of its values.
    pub(super) extent: Extent,
}

/// Contraction indices `row..row + depth`, columns `column..column + width` of an operand with rows of `columns`.
#[derive(Clone, Copy)]
pub(super) struct Region {
    pub(super) columns: usize,
    pub(super) row: usize,
    pub(super) depth: usize,
    pub(super) column: usize,
    pub(super) width: usize,
}

/// A region of an operand, packed.
#[derive(Clone, Debug, Default)]
pub(super) struct Packed {
    data: Vec<f32>,
    pub(super) panels: Vec<Panel>,
    pub(super) depth: usize,
}

/// Panels that are packed from the same squares.
struct Task<'a> {
    panels: &'a mut [Panel],
    data: &'a mut [f32],
}

impl Packed {
    /// The values of a panel.
    #[inline(always)]
    pub(super) fn values(&self, panel: &Panel) -> &[f32] {
        self.data.get(panel.at..panel.at + panel.width * self.depth).unwrap_or_default()
    }

    /// Packs a region of an operand, on the threads of the pool if `threads`.
    pub(super) fn fill(
        &mut self,
        level: Level,
        operand: &Operand<'_>,
        region: Region,
        cut: Cut,
        threads: bool,
    ) {
        let Region { depth, width, .. } = region;
        self.depth = depth;
        self.cut(width, cut);
        let total = self.panels.last().map_or(0, |last| last.at + last.width * depth);
        // What is there is overwritten.
        self.data.resize(total.max(self.data.len()), 0.0);
        let work = |task: Task<'_>| task.run(level, operand, region);
        let (mut panels, mut data) = (self.panels.as_mut_slice(), self.data.as_mut_slice());
        let mut tasks = Vec::new();
        while let Some(first) = panels.first() {
            // As many panels of one width as fit a group.
            let wide = first.width;
            let count = panels.iter().take((GROUP / wide).max(1)).take_while(|p| p.width == wide).count();
            let (task_panels, task_data);
            (task_panels, panels) = panels.split_at_mut(count);
            (task_data, data) = data.split_at_mut(count * wide * depth);
            let task = Task { panels: task_panels, data: task_data };
            if threads && total >= SHARED {
                tasks.push(task);
            } else {
                work(task);
            }
        }
        tasks.into_par_iter().for_each(work);
    }

    fn cut(&mut self, width: usize, cut: Cut) {
        self.panels.clear();
        let (count, least, wider, padded) = match cut {
            Cut::Padded(most) => (width.div_ceil(most), most, 0, true),
            Cut::Even(most) => {
                let count = width.div_ceil(most);
                (count, width / count.max(1), width % count.max(1), false)
            }
        };
        debug_assert!(padded || least * count + wider == width);
        let mut start = 0;
        for i in 0..count {
            let width = least + usize::from(i < wider);
            self.panels.push(Panel { at: start * self.depth, width, start, extent: Extent::NONE });
            start += width;
        }
    }
}

impl Task<'_> {
    fn run(self, level: Level, operand: &Operand<'_>, region: Region) {
        let Region { columns, row, depth, column, width } = region;
        let Some(&Panel { width: wide, start, .. }) = self.panels.first() else { return };
        let group = (self.panels.len() * wide).min(width - start);
        let mut square = [[0.0; GROUP]; SQUARE];
        let mut extent = Extent::NONE;
        for done in (0..depth).step_by(SQUARE) {
            let rows = SQUARE.min(depth - done);
            let place = Place { columns, row: row + done, rows, column: column + start, width: group };
            extent = extent.join(decode::read(level, operand, place, &mut square));
            let count = self.panels.len();
            launch(level, Spread { square: &square, rows, done, depth, wide, count, data: &mut *self.data });
        }
        for panel in self.panels {
            panel.extent = extent;
        }
    }
}

/// Copies a square to panels.
struct Spread<'a> {
    square: &'a decode::Square,
    rows: usize,
    /// Contraction indices that the panels hold already.
    done: usize,
    depth: usize,
    wide: usize,
    count: usize,
    data: &'a mut [f32],
}

impl Kernel for Spread<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        macro_rules! by_width {
            ($($wide:literal)*) => {
                match self.wide {
                    $($wide => self.panels::<$wide>(),)*
                    _ => {}
                }
            };
        }
        by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 16 32);
    }
}

impl Spread<'_> {
    #[inline(always)]
    fn panels<const WIDE: usize>(self) {
        let Self { square, rows, done, depth, count, data, .. } = self;
        let data = data.as_chunks_mut::<WIDE>().0;
        for (i, panel) in data.chunks_exact_mut(depth).take(count).enumerate() {
            for (to, from) in panel.iter_mut().skip(done).zip(square.iter().take(rows)) {
                if let Some(from) = from.get(i * WIDE..).and_then(<[f32]>::first_chunk::<WIDE>) {
                    *to = *from;
                }
            }
        }
    }
}
