//! How the contraction is cut into array passes, and which piece of the result one segment computes.

use crate::problem::{Problem, Side};

/// Rows and columns of the array.
pub(crate) const ROWS: usize = 128;
/// float32 elements of a PSUM bank: moving columns of one matmul.
pub(crate) const BANK: usize = 512;
/// Banks of PSUM.
pub(crate) const BANKS: usize = 8;
/// Logical elements of an MX container.
pub(crate) const LANES: usize = 4;
/// Rows of an MX block.
pub(crate) const BLOCK: usize = 8;
/// K tiles whose scale rows share the same columns: offsets 0, 4, 8 and 12 of every quadrant.
pub(crate) const SCALE_TILES: usize = 4;
/// Bytes of its operand slices in device memory that a segment should not exceed.
const SLICE_BYTES: usize = 64 << 20;
/// Bytes of its operand slices that no segment may exceed.
pub(crate) const SLICE_LIMIT: usize = 2 << 30;

/// One pass of the contraction: rows of the operand tensors that one matmul sums over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KTile {
    /// First row of the operand tensors.
    pub(crate) row: usize,
    /// Rows of the tensors.
    pub(crate) rows: usize,
    /// Partitions of the matmul; more than the rows fill where zeros are appended.
    pub(crate) partitions: usize,
    /// Whether each partition holds two rows: `row + p` and `row + partitions + p`.
    pub(crate) pair: bool,
}

impl KTile {
    /// Rows of cells that its contraction indices would fill: a cell of a pair holds two, of an MX pass four.
    pub(crate) fn useful_rows(self, problem: &Problem) -> f64 {
        if problem.format.mx().is_some() {
            // The last block may be filled up with zeros.
            (self.rows * LANES).min(problem.k.saturating_sub(self.row * LANES)) as f64 / LANES as f64
        } else if self.pair {
            self.rows as f64 / 2.0
        } else {
            self.rows as f64
        }
    }

    /// Whether some of its partitions hold no row of the tensors.
    pub(crate) fn is_padded(self) -> bool {
        self.rows < self.partitions * if self.pair { 2 } else { 1 }
    }
}

/// Rows of the operand tensors: contraction indices, for MX in whole blocks of 8 x 4.
pub(crate) fn tensor_rows(problem: &Problem) -> usize {
    match problem.format.mx() {
        None => problem.k,
        Some(_) => problem.k.div_ceil(BLOCK * LANES) * BLOCK,
    }
}

/// The passes of a problem, in order.
pub(crate) fn k_tiles(problem: &Problem) -> Vec<KTile> {
    let (end, mx, pairs) = (tensor_rows(problem), problem.format.mx().is_some(), problem.pairs_rows());
    let mut out = Vec::new();
    let mut row = 0;
    while row < end {
        let left = end - row;
        let tile = if mx {
            let rows = left.min(ROWS);
            let partitions = [32, 64].into_iter().find(|p| rows <= *p).unwrap_or(ROWS);
            KTile { row, rows, partitions, pair: false }
        } else if pairs && left > ROWS {
            let rows = left.min(2 * ROWS);
            KTile { row, rows, partitions: rows.div_ceil(2), pair: true }
        } else {
            let rows = left.min(ROWS);
            KTile { row, rows, partitions: rows, pair: false }
        };
        row += tile.rows;
        out.push(tile);
    }
    out
}

/// Where one operand's tiles lie in SBUF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Columns that matmuls read, an even number for stationary MX tiles.
    pub(crate) columns: usize,
    /// Containers from one tile, or one plane of a pair, to the next.
    pub(crate) pitch: usize,
    /// Bytes of a tile in a partition.
    pub(crate) tile_bytes: usize,
    /// Bytes of all tiles of a buffer in a partition.
    pub(crate) data_bytes: usize,
    /// Bytes of the scale rows of one group of [`SCALE_TILES`] tiles.
    pub(crate) scale_pitch: usize,
    /// Bytes of all scales of a buffer in a partition.
    pub(crate) scale_bytes: usize,
    /// Bytes of a bfloat16 tile to be quantized, 0 when the tensor holds containers.
    pub(crate) source_bytes: usize,
}

impl Layout {
    fn new(problem: &Problem, side: Side, columns: usize, tiles: usize) -> Layout {
        let dtype = problem.format.dtype();
        let mx = problem.format.mx().is_some();
        let even = mx && side == problem.stationary_side();
        let columns = if even { columns.next_multiple_of(2) } else { columns };
        // Every tile starts on a multiple of 64 bytes.
        let pitch = (columns * dtype.bytes()).next_multiple_of(64) / dtype.bytes();
        let planes = if problem.pairs_rows() { 2 } else { 1 };
        let tile_bytes = planes * pitch * dtype.bytes();
        let scale_pitch = if mx { columns.next_multiple_of(64) } else { 0 };
        Layout {
            columns,
            pitch,
            tile_bytes,
            data_bytes: tiles * tile_bytes,
            scale_pitch,
            scale_bytes: tiles.div_ceil(SCALE_TILES) * scale_pitch,
            source_bytes: if problem.quantizes(side) { LANES * 2 * pitch } else { 0 },
        }
    }

    fn bytes(&self) -> usize {
        self.data_bytes + self.scale_bytes
    }
}

/// Extents of the pieces a product is computed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocking {
    /// Columns of the stationary operand in a segment.
    pub stationary: usize,
    /// Columns of the moving operand in a segment.
    pub moving: usize,
    /// Passes of the contraction whose tiles are in SBUF at a time.
    pub k_tiles: usize,
    /// Whether that is all of them.
    pub resident: bool,
}

impl Blocking {
    /// PSUM banks of one row of output tiles.
    pub(crate) fn banks(&self) -> usize {
        self.moving.div_ceil(BANK)
    }

    /// Rows of output tiles that PSUM holds at a time.
    pub(crate) fn slots(&self) -> usize {
        (BANKS / self.banks()).max(1)
    }

    pub(crate) fn layout(&self, problem: &Problem, side: Side) -> Layout {
        let stationary = side == problem.stationary_side();
        let columns = if stationary { self.stationary } else { self.moving };
        Layout::new(problem, side, columns, self.k_tiles)
    }

    /// Buffers of the moving operand: two while the contraction streams. The stationary operand has two always, so
    /// that the next segment's loads need not wait.
    pub(crate) fn moving_buffers(&self) -> usize {
        if self.resident { 1 } else { 2 }
    }

    /// Bytes of SBUF in a partition.
    fn sbuf_bytes(&self, problem: &Problem) -> usize {
        let stationary = self.layout(problem, problem.stationary_side());
        let moving = self.layout(problem, problem.moving_side());
        2 * stationary.bytes()
            + self.moving_buffers() * moving.bytes()
            + 2 * (stationary.source_bytes + moving.source_bytes)
            + 2 * self.moving.next_multiple_of(16) * 4
    }

    /// Bytes of a segment's operand slices in device memory.
    pub(crate) fn slice_bytes(&self, problem: &Problem) -> usize {
        let rows = tensor_rows(problem);
        let per_row = |side: Side, columns: usize| {
            let size = if problem.quantizes(side) { 2 * LANES } else { problem.format.dtype().bytes() };
            columns * size
        };
        rows.saturating_mul(
            per_row(problem.stationary_side(), self.stationary) + per_row(problem.moving_side(), self.moving),
        )
    }

    /// Chooses the pieces: whole contractions in SBUF if they fit, else as many passes as do; within the bound on
    /// device memory, if anything is; of those, the pieces that copy operands least often.
    pub(crate) fn choose(problem: &Problem) -> Blocking {
        let (s, v) = (problem.columns(problem.stationary_side()), problem.columns(problem.moving_side()));
        let tiles = k_tiles(problem).len();
        let capacity = problem.lower.target.sbuf_bytes_per_partition() as usize;
        let mut best: Option<(Rank, Blocking)> = None;
        for moving in [2048, 1024, 512] {
            for stationary in [512, 256, 128] {
                for resident in [true, false] {
                    let mut b = Blocking {
                        stationary: s.min(stationary),
                        moving: v.min(moving),
                        k_tiles: tiles,
                        resident,
                    };
                    if !resident {
                        if b.stationary.div_ceil(ROWS) * b.banks() > BANKS {
                            continue;
                        }
                        // The largest even number of tiles' groups that fits, at least one tile.
                        while b.k_tiles > 1 && b.sbuf_bytes(problem) > capacity {
                            b.k_tiles = b.k_tiles.div_ceil(2);
                        }
                    }
                    if b.sbuf_bytes(problem) > capacity {
                        continue;
                    }
                    // An element of the moving operand is copied to SBUF once for every block of stationary columns;
                    // one of the stationary operand once for every block of moving columns, and as often from there
                    // to the array.
                    let copies = 1.0 / b.stationary as f64 + 2.0 / b.moving as f64;
                    let rank =
                        Rank { over: b.slice_bytes(problem).max(SLICE_BYTES), streams: !resident, copies };
                    if best.is_none_or(|(r, _)| rank.is_before(&r)) {
                        best = Some((rank, b));
                    }
                }
            }
        }
        // A single tile of every format fits the smallest SBUF many times over.
        let smallest =
            Blocking { stationary: s.min(ROWS), moving: v.min(BANK), k_tiles: 1, resident: tiles == 1 };
        best.map_or(smallest, |b| b.1)
    }
}

/// How good a choice is.
#[derive(Debug, Clone, Copy)]
struct Rank {
    /// Bytes in device memory, no less than the bound.
    over: usize,
    streams: bool,
    copies: f64,
}

impl Rank {
    fn is_before(&self, other: &Rank) -> bool {
        let key = |r: &Rank| (r.over, r.streams);
        key(self) < key(other) || key(self) == key(other) && self.copies < other.copies
    }
}
