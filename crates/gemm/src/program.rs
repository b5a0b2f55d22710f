//! The tiled program of a product.
//!
//! Device memory holds `lhsT`, `rhs` and `out`. A's columns are the contraction, so its tensor is A transposed.
//!
//! | format | `lhsT`, `rhs` | scales |
//! |---|---|---|
//! | one element a container | `[K, M]`, `[K, N]` | none |
//! | MX, quantized before the run | `[R, M]`, `[R, N]` containers | `[R / 8, M]`, `[R / 8, N]` |
//! | MX, quantized by the program | `[R, 4 M]`, `[R, 4 N]` bfloat16, the four values of a container together | none |
//!
//! R is K / 4, rounded up to whole blocks of 8; the container in row r holds the contraction indices 4r to 4r + 3,
//! so a block is 32 consecutive indices. `out` is C, `[M, N]` float32.

use hadal_ir::program::{
    Ap, Attrs, Calc, CalcFlags, Immediate, Instr, LocId, LocKind, Matmult, MatmultMx, MemLoc, Op, Pair,
    Program, Role,
};
use hadal_isa::PerfMode;
use hadal_num::Dtype;

use crate::problem::{Problem, Side};
use crate::tile::{self, BANK, BLOCK, Blocking, KTile, LANES, Layout, ROWS, SCALE_TILES};

/// The result's tensor.
pub(crate) const OUT: &str = "out";

/// Builds the program of a whole problem, segment after segment.
pub(crate) fn build(problem: &Problem, blocking: &Blocking) -> Program {
    let mut b = Builder::new(problem, blocking);
    let (s_end, v_end) = (problem.columns(problem.stationary_side()), problem.columns(problem.moving_side()));
    let mut count = 0;
    for v in (0..v_end).step_by(blocking.moving) {
        for s in (0..s_end).step_by(blocking.stationary) {
            let cut = Cut {
                s,
                s_len: blocking.stationary.min(s_end - s),
                v,
                v_len: blocking.moving.min(v_end - v),
                first: s == 0,
                count,
            };
            b.segment(&cut);
            count += 1;
        }
    }
    b.program
}

/// One segment: columns of both operands, and where it stands in the program.
struct Cut {
    s: usize,
    s_len: usize,
    v: usize,
    v_len: usize,
    /// Whether it is the first with these moving columns.
    first: bool,
    count: usize,
}

/// An operand's tensors and buffers.
struct Operand {
    side: Side,
    /// Type of the containers the array reads.
    dtype: Dtype,
    /// Whether the array holds an even number of its columns.
    even: bool,
    layout: Layout,
    /// Columns of the tensors.
    columns: usize,
    tensor: LocId,
    scale_tensor: Option<LocId>,
    data: Vec<LocId>,
    scales: Vec<LocId>,
    /// bfloat16 tiles on their way through QuantizeMx.
    sources: Vec<LocId>,
    /// Tiles loaded so far.
    loaded: usize,
}

struct Builder<'a> {
    problem: &'a Problem,
    blocking: &'a Blocking,
    tiles: Vec<KTile>,
    program: Program,
    stationary: Operand,
    moving: Operand,
    acc: Vec<LocId>,
    stage: [LocId; 2],
    out: LocId,
    /// Rows of output tiles drained so far.
    drained: usize,
}

fn loc(program: &mut Program, name: String, kind: LocKind) -> LocId {
    program.locs.push(MemLoc { name, kind, pos: None });
    LocId(u32::try_from(program.locs.len() - 1).unwrap_or(u32::MAX))
}

fn dram(program: &mut Program, name: &str, role: Role, dtype: Dtype, [rows, columns]: [usize; 2]) -> LocId {
    let kind = LocKind::Dram { role, dtype, shape: vec![rows as u64, columns as u64] };
    loc(program, name.to_owned(), kind)
}

/// A state buffer location; the next one starts behind it.
fn sbuf(program: &mut Program, next: &mut u32, name: String, bytes: usize) -> LocId {
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    let kind = LocKind::Sb { partition: Some(0), partitions: ROWS as u32, offset: Some(*next), bytes };
    *next = next.saturating_add(bytes.next_multiple_of(64));
    loc(program, name, kind)
}

fn pair(step: usize, num: usize) -> Pair {
    Pair::new(i64::try_from(step).unwrap_or(i64::MAX), num as u64)
}

fn ap(loc: LocId, dtype: Dtype, partition: usize, offset: usize, pattern: Vec<Pair>) -> Ap {
    let partition = u32::try_from(partition).unwrap_or(u32::MAX);
    Ap { loc, dtype, partition, offset: offset as u64, pattern, index: None }
}

impl Operand {
    fn new(p: &mut Program, next: &mut u32, problem: &Problem, blocking: &Blocking, side: Side) -> Operand {
        let layout = blocking.layout(problem, side);
        let columns = problem.columns(side);
        let rows = tile::tensor_rows(problem);
        let (name, format) = (side.tensor(), problem.format);
        let quantizes = problem.quantizes(side);
        let tensor = if quantizes {
            dram(p, name, Role::Input, Dtype::Bfloat16, [rows, columns * LANES])
        } else {
            dram(p, name, Role::Input, format.dtype(), [rows, columns])
        };
        let mx = format.mx().is_some();
        let scale_tensor = (mx && !quantizes).then(|| {
            dram(p, side.scale_tensor(), Role::Input, Dtype::Float8E8m0fnu, [rows / BLOCK, columns])
        });
        let buffers = if side == problem.moving_side() { blocking.moving_buffers() } else { 2 };
        let mut room = |what: &str, count: usize, bytes: usize| -> Vec<LocId> {
            (0..count).map(|i| sbuf(p, next, format!("{name}_{what}{i}"), bytes)).collect()
        };
        Operand {
            side,
            dtype: format.dtype(),
            even: mx && side == problem.stationary_side(),
            layout,
            columns,
            tensor,
            scale_tensor,
            data: room("sb", buffers, layout.data_bytes),
            scales: if mx { room("scale_sb", buffers, layout.scale_bytes) } else { Vec::new() },
            sources: if quantizes { room("bf16_sb", 2, layout.source_bytes) } else { Vec::new() },
            loaded: 0,
        }
    }

    fn data(&self, buffer: usize) -> LocId {
        pick(&self.data, buffer)
    }

    fn scale(&self, buffer: usize) -> LocId {
        pick(&self.scales, buffer)
    }

    /// The tile at place `at` of a buffer, columns `from..from + len`.
    fn tile(&self, t: KTile, at: usize, buffer: usize, from: usize, len: usize) -> Ap {
        let mut pattern = vec![pair(1, t.partitions)];
        if t.pair {
            pattern.push(pair(self.layout.pitch, 2));
        }
        pattern.push(pair(1, len));
        let offset = at * self.layout.tile_bytes + from * self.dtype.bytes();
        ap(self.data(buffer), self.dtype, 0, offset, pattern)
    }

    /// The scales of that tile.
    fn tile_scales(&self, t: KTile, at: usize, buffer: usize, from: usize, len: usize) -> Ap {
        let first = at % SCALE_TILES * 4;
        // A nominal count: what the tile's partitions leave after the offset.
        let count = if t.partitions <= 32 { t.partitions / BLOCK } else { t.partitions - first };
        let offset = at / SCALE_TILES * self.layout.scale_pitch + from;
        let pattern = vec![pair(1, count), pair(1, len)];
        ap(self.scale(buffer), Dtype::Float8E8m0fnu, first, offset, pattern)
    }
}

/// Buffers are used in turn.
fn pick(locs: &[LocId], turn: usize) -> LocId {
    let found = turn.checked_rem(locs.len()).and_then(|i| locs.get(i));
    found.copied().unwrap_or(LocId(u32::MAX))
}

impl<'a> Builder<'a> {
    fn new(problem: &'a Problem, blocking: &'a Blocking) -> Self {
        let mut p = Program { attrs: Attrs::default(), ..Program::default() };
        let mut next = 0;
        // A before B, whichever is stationary.
        let mut operand = |side| Operand::new(&mut p, &mut next, problem, blocking, side);
        let (a, b) = (operand(Side::A), operand(Side::B));
        let out = dram(&mut p, OUT, Role::Output, Dtype::Float32, [problem.m, problem.n]);
        let stage_bytes = blocking.moving.next_multiple_of(16) * 4;
        let stage = [0, 1].map(|i| sbuf(&mut p, &mut next, format!("out_sb{i}"), stage_bytes));
        let banks = blocking.banks();
        let acc = (0..blocking.slots())
            .map(|i| {
                let kind = LocKind::Psum {
                    partition: Some(0),
                    partitions: ROWS as u32,
                    bank: Some((i * banks) as u32),
                    offset: Some(0),
                    bytes: (banks * BANK * 4) as u32,
                };
                loc(&mut p, format!("acc{i}"), kind)
            })
            .collect();
        let (stationary, moving) = match problem.stationary_side() {
            Side::A => (a, b),
            Side::B => (b, a),
        };
        Builder {
            problem,
            blocking,
            tiles: tile::k_tiles(problem),
            program: p,
            stationary,
            moving,
            acc,
            stage,
            out,
            drained: 0,
        }
    }

    fn segment(&mut self, cut: &Cut) {
        let chunks: Vec<Vec<KTile>> =
            self.tiles.chunks(self.blocking.k_tiles.max(1)).map(<[KTile]>::to_vec).collect();
        let last = chunks.len().saturating_sub(1);
        for (c, chunk) in chunks.iter().enumerate() {
            let turn = cut.count * chunks.len() + c;
            let moving_turn = if self.blocking.resident { 0 } else { turn };
            if cut.first || !self.blocking.resident {
                self.moving.load(&mut self.program, chunk, moving_turn, cut.v, cut.v_len);
            }
            self.stationary.load(&mut self.program, chunk, turn, cut.s, cut.s_len);
            for (row, from) in (0..cut.s_len).step_by(ROWS).enumerate() {
                let columns = ROWS.min(cut.s_len - from);
                for (i, t) in chunk.iter().enumerate() {
                    for bank in 0..cut.v_len.div_ceil(BANK) {
                        let place = Place { row, from, columns, bank, at: i, turn, moving_turn };
                        let start = c == 0 && i == 0;
                        let stop = c == last && i + 1 == chunk.len();
                        self.matmul(cut, *t, &place, start, stop);
                    }
                }
                if c == last {
                    self.drain(cut, row, from, columns);
                }
            }
        }
    }

    fn matmul(&mut self, cut: &Cut, t: KTile, at: &Place, start: bool, stop: bool) {
        let mx = self.problem.format.mx().is_some();
        // An MX array takes an even number of stationary columns; the last one of an odd number is zeros.
        let columns = if mx { at.columns.next_multiple_of(2) } else { at.columns };
        let v_from = at.bank * BANK;
        let v_len = BANK.min(cut.v_len - v_from);
        let weights = self.stationary.tile(t, at.at, at.turn, at.from, columns);
        let ifmap = self.moving.tile(t, at.at, at.moving_turn, v_from, v_len);
        let acc = pick(&self.acc, at.row);
        let out = ap(acc, Dtype::Float32, 0, v_from * 4, vec![pair(1, columns), pair(1, v_len)]);
        let flags = CalcFlags { start, stop, accumulate: !start, cont: false };
        let op = if mx {
            Op::MatmultMx(Box::new(MatmultMx {
                ifmap_scale: self.moving.tile_scales(t, at.at, at.moving_turn, v_from, v_len),
                weights_scale: self.stationary.tile_scales(t, at.at, at.turn, at.from, columns),
                ifmap,
                weights,
                out,
                accumulate_flags: Some(flags.byte()),
                psum_zero_region: None,
                tile_position: None,
                tile_size: None,
            }))
        } else {
            let mut mm = Matmult::new(ifmap, weights, out);
            mm.calc = Calc::Explicit(flags);
            if t.pair {
                mm.perf_mode = PerfMode::DoubleRow;
            }
            Op::Matmult(Box::new(mm))
        };
        push(&mut self.program, "mm", op);
    }

    /// Finished sums leave PSUM through SBUF.
    fn drain(&mut self, cut: &Cut, row: usize, from: usize, columns: usize) {
        let stage = pick(&self.stage, self.drained);
        self.drained += 1;
        let tile = vec![pair(1, columns), pair(1, cut.v_len)];
        let sums = ap(pick(&self.acc, row), Dtype::Float32, 0, 0, tile.clone());
        let staged = ap(stage, Dtype::Float32, 0, 0, tile);
        push(&mut self.program, "drain", Op::TensorCopy { dst: staged.clone(), src: sums });
        let (s, n) = (cut.s + from, self.problem.n);
        let dst = match self.stationary.side {
            Side::A => ap(
                self.out,
                Dtype::Float32,
                0,
                (s * n + cut.v) * 4,
                vec![pair(n, columns), pair(1, cut.v_len)],
            ),
            Side::B => ap(
                self.out,
                Dtype::Float32,
                0,
                (cut.v * n + s) * 4,
                vec![pair(1, columns), pair(n, cut.v_len)],
            ),
        };
        push(&mut self.program, "store", Op::DmaCopy { dst, src: staged });
    }
}

/// Where a matmul stands in its segment.
struct Place {
    /// Row of output tiles, and its first stationary column.
    row: usize,
    from: usize,
    columns: usize,
    bank: usize,
    /// Place of the tile in its buffers.
    at: usize,
    turn: usize,
    moving_turn: usize,
}

fn push(program: &mut Program, what: &str, op: Op) {
    let name = format!("{what}_{}", program.instrs.len());
    program.instrs.push(Instr { name, engine: op.default_engine(), op, pos: None });
}

/// One tile of an operand on its way into a buffer.
#[derive(Clone, Copy)]
struct Piece {
    tile: KTile,
    /// Its place in the buffer.
    at: usize,
    buffer: usize,
    /// First column of the tensor.
    from: usize,
    columns: usize,
    /// Whether a column of zeros makes their number even.
    odd: bool,
}

impl Piece {
    /// Whether the tile has room that the tensor does not fill.
    fn is_padded(&self) -> bool {
        self.odd || self.tile.is_padded()
    }
}

fn fill(p: &mut Program, loc: LocId, offset: usize, bytes: usize, value: i64) {
    let dst = ap(loc, Dtype::Uint8, 0, offset, vec![pair(1, ROWS), pair(1, bytes)]);
    push(p, "pad", Op::Memset { dst, value: Immediate::Int(value) });
}

impl Operand {
    /// Brings tiles into a buffer: zeros where a tile has room that the tensor does not fill, then the rows,
    /// quantized on the way if the tensor holds bfloat16.
    fn load(&mut self, p: &mut Program, chunk: &[KTile], buffer: usize, from: usize, columns: usize) {
        let odd = self.even && !columns.is_multiple_of(2);
        let pieces =
            chunk.iter().enumerate().map(|(at, t)| Piece { tile: *t, at, buffer, from, columns, odd });
        let pieces: Vec<Piece> = pieces.collect();
        if self.scale_tensor.is_some() && pieces.iter().any(Piece::is_padded) {
            // Any scale will do for zeros: 1.
            fill(p, self.scale(buffer), 0, self.layout.scale_bytes, 127);
        }
        for piece in &pieces {
            if !self.sources.is_empty() {
                self.quantize(p, piece);
                continue;
            }
            if piece.is_padded() {
                let tile = self.layout.tile_bytes;
                fill(p, self.data(buffer), piece.at * tile, tile, 0);
            }
            self.load_rows(p, piece);
            if let Some(tensor) = self.scale_tensor {
                self.load_scales(p, tensor, piece);
            }
        }
    }

    /// A tile of containers.
    fn load_rows(&self, p: &mut Program, piece: &Piece) {
        let Piece { tile: t, at, buffer, from, columns, .. } = *piece;
        let row = |row: usize| (row * self.columns + from) * self.dtype.bytes();
        if t.pair && !t.is_padded() {
            // Whole pairs come in one transfer.
            let dst = self.tile(t, at, buffer, 0, columns);
            let planes = pair(self.columns * t.partitions, 2);
            let pattern = vec![pair(self.columns, t.partitions), planes, pair(1, columns)];
            let src = ap(self.tensor, self.dtype, 0, row(t.row), pattern);
            push(p, "load", Op::DmaCopy { dst, src });
            return;
        }
        let planes = if t.pair { [t.partitions, t.rows - t.partitions] } else { [t.rows, 0] };
        for (plane, &rows) in planes.iter().enumerate().filter(|plane| *plane.1 > 0) {
            let offset = at * self.layout.tile_bytes + plane * self.layout.pitch * self.dtype.bytes();
            let pattern = vec![pair(1, rows), pair(1, columns)];
            let dst = ap(self.data(buffer), self.dtype, 0, offset, pattern);
            let pattern = vec![pair(self.columns, rows), pair(1, columns)];
            let src = ap(self.tensor, self.dtype, 0, row(t.row + plane * t.partitions), pattern);
            push(p, "load", Op::DmaCopy { dst, src });
        }
    }

    /// Scale rows go to the quadrants of their data, four a quadrant.
    fn load_scales(&self, p: &mut Program, tensor: LocId, piece: &Piece) {
        let Piece { tile: t, at, buffer, from, columns, .. } = *piece;
        let (first, rows) = (t.row / BLOCK, t.rows / BLOCK);
        for row in (0..rows).step_by(4) {
            let count = 4.min(rows - row);
            let partition = 8 * row + at % SCALE_TILES * 4;
            let offset = at / SCALE_TILES * self.layout.scale_pitch;
            let pattern = vec![pair(1, count), pair(1, columns)];
            let dst = ap(self.scale(buffer), Dtype::Float8E8m0fnu, partition, offset, pattern);
            let pattern = vec![pair(self.columns, count), pair(1, columns)];
            let src = ap(tensor, Dtype::Float8E8m0fnu, 0, (first + row) * self.columns + from, pattern);
            push(p, "load", Op::DmaCopy { dst, src });
        }
    }

    /// A bfloat16 tile becomes containers and scales.
    fn quantize(&mut self, p: &mut Program, piece: &Piece) {
        let Piece { tile: t, at, buffer, from, columns, odd } = *piece;
        let source = pick(&self.sources, self.loaded);
        self.loaded += 1;
        let even = columns + usize::from(odd);
        let src = ap(source, Dtype::Bfloat16, 0, 0, vec![pair(1, t.partitions), pair(1, LANES * even)]);
        if piece.is_padded() {
            push(p, "pad", Op::Memset { dst: src.clone(), value: Immediate::Int(0) });
        }
        let row = LANES * self.columns;
        let dst = ap(source, Dtype::Bfloat16, 0, 0, vec![pair(1, t.rows), pair(1, LANES * columns)]);
        let pattern = vec![pair(row, t.rows), pair(1, LANES * columns)];
        let tensor = ap(self.tensor, Dtype::Bfloat16, 0, (t.row * row + LANES * from) * 2, pattern);
        push(p, "load", Op::DmaCopy { dst, src: tensor });
        let data = self.tile(t, at, buffer, 0, even);
        let scale = self.tile_scales(t, at, buffer, 0, even);
        push(p, "quantize", Op::QuantizeMx { src, data, scale });
    }
}
