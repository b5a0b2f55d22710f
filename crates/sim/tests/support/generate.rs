//! Programs from a seed: all that the array does, and enough of the other engines to get in its way.
#![allow(dead_code, unreachable_pub, missing_docs)]

mod walk;

use hadal_ir::program::{
    AluOp, Ap, Calc, CalcFlags, Immediate, Matmult, MatmultMx, MatmultSparse, Op, Pair, Program, Role,
};
use hadal_isa::{Gen, PerfMode, Target};
use hadal_num::Dtype;
use hadal_sim::{Fp32Mode, Options, ScaleRule, Uninit};

use self::walk::{Rng, walk};
use super::{ap, dram, matmult, program, psum, sb};

const F: Dtype = Dtype::Float32;
const B: Dtype = Dtype::Bfloat16;
const U8: Dtype = Dtype::Uint8;

/// A program with the choices it is to run under.
pub struct Case {
    pub program: Program,
    pub target: Target,
    pub options: Options,
}

// Locations, by index.
const W: [u32; 2] = [0, 1];
const X: [u32; 2] = [2, 3];
const O: [u32; 3] = [4, 5, 6];
const S: u32 = 7;
const INDEX: u32 = 8;
const IDENTITY: u32 = 9;
const TRANSPOSED: u32 = 10;
const SPARSE: [u32; 3] = [11, 12, 13];
const MX_W: [u32; 2] = [14, 15];
const MX_X: [u32; 2] = [16, 17];
const QUANT: [u32; 3] = [18, 19, 20];
const DRAM_IN: u32 = 21;
const DRAM_OUT: u32 = 22;

/// Bytes of a tile in a partition.
const TILE: u32 = 256;

struct Maker {
    r: Rng,
    target: Target,
    /// Of the stationary and the moving operand.
    types: [Dtype; 2],
    psum: [Dtype; 3],
    transposed: Dtype,
    identity: Option<Ap>,
    mx: [Dtype; 2],
    quantized: bool,
    last: Option<(Ap, u64, u64, PerfMode, Option<u8>)>,
}

impl Maker {
    fn operand(&mut self, loc: u32, dtype: Dtype, k: u64, n: u64, bytes: u64, repeat: bool) -> Ap {
        let size = dtype.bytes() as u64;
        let (pairs, first) = walk(&mut self.r, n, bytes / size, 3, repeat);
        let mut a = ap(loc, dtype, &[(1, k)]);
        a.pattern.extend(pairs);
        a.offset = first * size;
        a
    }

    fn gen2(&self) -> bool {
        self.target.generation == Gen::Gen2
    }

    /// Rows of a contraction and their first partition.
    fn rows(&mut self) -> (u64, u32) {
        let r = &mut self.r;
        let (k, unit) = match r.below(8) {
            0 => (r.range(1, 32), 32),
            1 => (r.range(65, 128), 128),
            2 | 3 => (32, 32),
            4 | 5 => (64, 64),
            _ => (128, 128),
        };
        let unit = if self.gen2() { unit.max(64) } else { unit };
        (k, (unit * self.r.below(128 / unit)) as u32)
    }

    fn calc(&mut self) -> Calc {
        let flags =
            |start, stop, accumulate| Calc::Explicit(CalcFlags { start, stop, accumulate, cont: false });
        match self.r.below(16) {
            0 | 1 => flags(true, true, false),
            2 => flags(true, false, false),
            3 => flags(false, false, true),
            4 => flags(false, true, true),
            _ => Calc::Auto,
        }
    }

    /// A destination of `[m, n]` in one of the PSUM tiles of the sum's type.
    fn destination(&mut self, m: u64, n: u64, column: u32) -> Ap {
        let which = self.r.below(3) as usize;
        let dtype = self.psum[which];
        let mut out = self.operand(O[which], dtype, m, n, 192, false);
        if self.r.chance(1, 2) {
            // The same place again and again.
            out.pattern.truncate(1);
            out.pattern.push(Pair::new(1, n));
            out.offset = 0;
        }
        out.partition = column;
        out
    }

    fn dense(&mut self) -> Op {
        let (k, row) = self.rows();
        let m = self.r.pick(&[1, 4, 8, 32]);
        let column = if self.r.chance(1, 2) { 0 } else { (32 * self.r.below(4)) as u32 };
        let column = if self.gen2() { column / 64 * 64 } else { column };
        let [wt, xt] = self.types;
        let (w_loc, x_loc) = (self.r.pick(&W), self.r.pick(&X));
        let mut mode = PerfMode::None;
        if wt.is_fp8() && xt.is_fp8() && !self.gen2() {
            mode = self.r.pick(&[PerfMode::None, PerfMode::DoubleRow, PerfMode::DoubleRowSwInterleave]);
        }
        let mut weights = self.operand(w_loc, wt, k, m, u64::from(TILE), false);
        let mut zero = (wt == U8 && self.r.chance(1, 2)).then_some(3);
        let (mut k, mut m) = (k, m);
        let mut row = row;
        if mode == PerfMode::DoubleRow {
            weights.pattern = ap(0, wt, &[(1, k), (m as i64, 2), (1, m)]).pattern;
            weights.offset = 0;
        } else if mode == PerfMode::DoubleRowSwInterleave {
            weights.pattern = ap(0, wt, &[(1, k), (1, 2 * m)]).pattern;
            weights.offset = 0;
        } else if self.r.chance(1, 8) {
            gather(&mut weights, k, m, row);
        }
        weights.partition = row;
        // The weights of the matmul before, so that the array still holds them.
        if self.r.chance(1, 2)
            && let Some((held, rows, columns, was, z)) = self.last.clone()
        {
            (row, k, m, mode, zero) = (held.partition, rows, columns, was, z);
            weights = held;
        }
        self.last = Some((weights.clone(), k, m, mode, zero));
        let n = self.r.range(1, 16);
        let mut moving = self.operand(x_loc, xt, k, n, u64::from(TILE), true);
        if mode != PerfMode::None {
            moving.pattern = ap(0, xt, &[(1, k), (n as i64, 2), (1, n)]).pattern;
            moving.offset = 0;
        }
        moving.partition = row;
        if mode == PerfMode::None && self.r.chance(1, 8) {
            gather(&mut moving, k, n, row);
        }
        let out = self.destination(m, n, if mode == PerfMode::None { column } else { 0 });
        let mut mm: Matmult = matmult(moving, weights, out);
        mm.perf_mode = mode;
        mm.zero_point_weights = zero;
        mm.zero_point_ifmap = (xt == U8 && self.r.chance(1, 2)).then_some(2);
        mm.calc = self.calc();
        // Above level 40 there is no START to clear banks.
        if self.target.generation == Gen::Gen4
            && self.target.level <= 40
            && mm.out.loc.0 == O[2]
            && matches!(mm.calc, Calc::Explicit(CalcFlags { start: true, stop: true, .. }))
        {
            mm.psum_zero_region = Some(self.r.pick(&[0, 1, 2]));
        }
        if self.r.chance(1, 8) {
            let tile = |n: u64| [32, 64, 128].into_iter().find(|t| u64::from(*t) >= n).unwrap_or(128);
            mm.tile_size = Some([tile(k), tile(m)]);
            mm.tile_position = Some([row, column]);
        }
        Op::Matmult(Box::new(mm))
    }

    /// A transpose: of rows `k` when the array copies bits, by an identity on gen2.
    fn transpose(&mut self) -> Op {
        let dtype = if self.gen2() { B } else { self.transposed };
        let identity = match &self.identity {
            Some(ap) => ap.clone(),
            None => {
                let (k, row) = self.rows();
                let n = self.r.range(1, k.min(32));
                let mut identity = self.operand(IDENTITY, dtype, k, n, u64::from(TILE), false);
                identity.partition = row;
                self.identity.insert(identity).clone()
            }
        };
        let (k, n) = (identity.partitions(), identity.free_elements());
        let m = self.r.pick(&[1, 4, 8, 32]);
        let loc = if dtype == self.types[0] { self.r.pick(&W) } else { IDENTITY };
        let mut weights = self.operand(loc, dtype, k, m, u64::from(TILE), false);
        weights.partition = identity.partition;
        let out_type = match dtype {
            _ if self.gen2() => F,
            d if d.is_fp8() => Dtype::Uint16,
            d => d,
        };
        let mut out = self.operand(TRANSPOSED, out_type, m, n, 256, false);
        out.partition = 0;
        let mut mm: Matmult = matmult(identity, weights, out);
        mm.is_transpose = true;
        Op::Matmult(Box::new(mm))
    }

    fn sparse(&mut self) -> Op {
        let [wt, _] = self.types;
        let dtype = if wt == U8 { B } else { wt };
        let (m, n) = (self.r.pick(&[4, 8, 32]), self.r.range(1, 12));
        let ratio = self.r.pick(&[1u64, 2, 4]);
        let weights = self.operand(SPARSE[0], dtype, 128, m, u64::from(TILE), false);
        let moving: &[(i64, u64)] = if ratio == 1 && self.r.chance(1, 2) {
            &[(1, 128), (1, n)]
        } else {
            &[(1, 128), (n as i64, ratio), (1, n)]
        };
        let out = self.destination(m, n, 0);
        Op::MatmultSparse(Box::new(MatmultSparse {
            ifmap: ap(SPARSE[1], dtype, moving),
            weights,
            tags: ap(SPARSE[2], Dtype::Uint16, &[(1, 128), (1, m / 4)]),
            out,
            compress_ratio: ratio as u32,
        }))
    }

    /// Data along a line of either direction, with its scales from one of four rows of the quadrant.
    fn mx_pair(&mut self, loc: [u32; 2], dtype: Dtype, p: u64, n: u64, at: u32) -> [Ap; 2] {
        let scale_type = if loc[1] == QUANT[2] { U8 } else { Dtype::Float8E8m0fnu };
        let mut data = ap(loc[0], dtype, &[(1, p), (1, n)]);
        let mut scale = ap(loc[1], scale_type, &[(1, p), (1, n)]);
        if self.r.chance(1, 4) {
            for (a, size) in [(&mut data, dtype.bytes() as u64), (&mut scale, 1)] {
                a.pattern[1].step = -1;
                a.offset = (n - 1) * size;
            }
        }
        let rows = 4.min(p / 8);
        scale.pattern[0].num = if p > 32 { p - 12 } else { rows };
        (data.partition, scale.partition) = (at, at);
        [data, scale]
    }

    fn mx_rows(&mut self) -> (u64, u32) {
        match self.r.below(4) {
            0 => (32, (32 * self.r.below(4)) as u32),
            1 => (64, (64 * self.r.below(2)) as u32),
            _ => (128, 0),
        }
    }

    fn mx(&mut self) -> Op {
        let (p, row) = self.mx_rows();
        let (m, n) = (self.r.pick(&[2, 4, 16, 32]), self.r.range(1, 16));
        let [weights, mut weights_scale] = self.mx_pair(MX_W, self.mx[0], p, m, row);
        weights_scale.partition += self.r.pick(&[0, 4, 8, 12]);
        let quantized = self.quantized && self.r.chance(1, 2);
        let [ifmap, mut ifmap_scale] = if quantized {
            self.mx_pair([QUANT[1], QUANT[2]], Dtype::Float8E4m3fnX4, p, n, row)
        } else {
            self.mx_pair(MX_X, self.mx[1], p, n, row)
        };
        if !quantized {
            ifmap_scale.partition += self.r.pick(&[0, 4, 8, 12]);
        }
        let out = self.destination(m, n, 0);
        let accumulate_flags = match self.calc() {
            Calc::Auto => None,
            Calc::Explicit(f) => Some(f.byte()),
        };
        Op::MatmultMx(Box::new(MatmultMx {
            ifmap,
            weights,
            ifmap_scale,
            weights_scale,
            out,
            accumulate_flags,
            psum_zero_region: None,
            tile_position: None,
            tile_size: None,
        }))
    }

    fn quantize(&mut self) -> Op {
        self.quantized = true;
        let (p, row) = if self.r.chance(1, 2) { (128, 0) } else { self.mx_rows() };
        let [data, scale] = self.mx_pair([QUANT[1], QUANT[2]], Dtype::Float8E4m3fnX4, p, 16, row);
        let mut src = ap(QUANT[0], B, &[(1, p), (1, 64)]);
        src.partition = row;
        Op::QuantizeMx { src, data, scale }
    }

    /// Another engine on a tile the array uses.
    fn other(&mut self) -> Op {
        let [wt, xt] = self.types;
        let whole =
            |loc, dtype: Dtype| ap(loc, dtype, &[(1, 128), (1, u64::from(TILE) / dtype.bytes() as u64)]);
        let which = self.r.below(3) as usize;
        let (o_type, n) = (self.psum[which], self.r.range(1, 16));
        match self.r.below(8) {
            0 => {
                let loc = self.r.pick(&W);
                let dst = self.operand(loc, wt, 128, n, u64::from(TILE), false);
                Op::Memset { dst, value: Immediate::Int(self.r.below(4) as i64) }
            }
            1 => Op::DmaCopy { dst: whole(self.r.pick(&W), wt), src: dram_rows(wt) },
            2 => {
                let loc = self.r.pick(&X);
                let src = self.operand(S, F, 128, n, u64::from(TILE), true);
                let dst = self.operand(loc, xt, 128, n, u64::from(TILE), false);
                Op::TensorCopy { dst, src: Ap { pattern: dst_shape(&src), ..src } }
            }
            3 => Op::Memset {
                dst: self.operand(O[which], o_type, 128, n, 192, false),
                value: Immediate::Float(self.r.pick(&[-0.0, 1.5])),
            },
            4 | 5 => {
                let src = self.operand(O[which], o_type, 32, n, 192, false);
                let dst = self.operand(S, F, 32, n, u64::from(TILE), false);
                let src = same_shape(src, &dst);
                let operand0 = Immediate::Float(0.5);
                Op::TensorScalar { dst, src, op0: AluOp::Mult, operand0, second: None }
            }
            6 => {
                let a = ap(O[which], o_type, &[(1, 32), (1, n)]);
                let b = ap(S, F, &[(1, 32), (2, n)]);
                let op = self.r.pick(&[AluOp::Add, AluOp::Mult]);
                Op::TensorTensor { dst: ap(S, F, &[(1, 32), (1, n)]), src0: a, src1: b, op }
            }
            _ => Op::DmaCopy {
                dst: ap(DRAM_OUT, F, &[(128, 128), (1, 128)]),
                src: ap(S, F, &[(1, 128), (1, 128)]),
            },
        }
    }
}

fn dst_shape(a: &Ap) -> Vec<Pair> {
    vec![a.pattern[0], Pair::new(1, a.free_elements())]
}

/// Makes an operand a gather of `n` positions, each 0 to 7, a list for each of its partitions.
fn gather(a: &mut Ap, k: u64, n: u64, row: u32) {
    a.pattern = ap(0, a.dtype, &[(1, k), (1, n)]).pattern;
    a.offset = 0;
    let mut index = ap(INDEX, Dtype::Uint16, &[(1, k), (1, n)]);
    index.partition = row;
    a.index = Some(Box::new(index));
}

/// `a` along a line when its dimensions are not `like`'s.
fn same_shape(a: Ap, like: &Ap) -> Ap {
    let counts = |a: &Ap| a.pattern.iter().map(|p| p.num).collect::<Vec<_>>();
    if counts(&a) == counts(like) {
        return a;
    }
    let mut step = 1;
    let mut pattern: Vec<Pair> = Vec::new();
    for p in like.free().iter().rev() {
        pattern.insert(0, Pair::new(step, p.num));
        step *= p.num as i64;
    }
    pattern.insert(0, a.pattern[0]);
    Ap { pattern, offset: 0, ..a }
}

fn dram_rows(dtype: Dtype) -> Ap {
    let n = u64::from(TILE) / dtype.bytes() as u64;
    ap(DRAM_IN, dtype, &[(n as i64, 128), (1, n)])
}

/// The program of a seed.
pub fn case(seed: u64) -> Case {
    let mut r = Rng(seed);
    let target = r.pick(&[Target::TRN1, Target::TRN2, Target::TRN2, Target::TRN3, Target::TRN3]);
    let target = if r.chance(1, 16) { "level:45".parse().unwrap_or(target) } else { target };
    let gen4 = target.generation == Gen::Gen4;
    let e4m3 = if gen4 { Dtype::Float8E4m3fn } else { Dtype::Float8E4m3 };
    let types = r.pick(&[
        [B, Dtype::Float16],
        [B, B],
        [F, F],
        [Dtype::Float32r, Dtype::Float32r],
        [Dtype::Float8E5m2, e4m3],
        [e4m3, Dtype::Float8E5m2],
        [U8, B],
        [U8, U8],
        [Dtype::Float8E3m4, Dtype::Float16],
    ]);
    let psum_type = |r: &mut Rng| if gen4 && r.chance(1, 3) { B } else { F };
    let x4 = [Dtype::Float8E4m3fnX4, Dtype::Float8E5m2X4, Dtype::Float4E2m1fnX4];
    let mut m = Maker {
        target,
        types,
        psum: [psum_type(&mut r), psum_type(&mut r), psum_type(&mut r)],
        transposed: r.pick(&[types[0], B, F, Dtype::Float8E5m2]),
        identity: None,
        mx: [r.pick(&x4), r.pick(&x4)],
        quantized: false,
        last: None,
        r,
    };
    let tile = |name, at| sb(name, 0, 128, at * TILE, TILE);
    let locs = vec![
        tile("w0", 0),
        tile("w1", 1),
        tile("x0", 2),
        tile("x1", 3),
        psum("o0", 0, 128, 0, 0, 192),
        psum("o1", 0, 128, 3, 64, 192),
        psum("o2", 0, 128, 4, 0, 192),
        tile("s", 4),
        sb("index", 0, 128, 5 * TILE, 64),
        tile("identity", 6),
        psum("transposed", 0, 128, 1, 0, 256),
        tile("sw", 7),
        tile("sx", 8),
        sb("tags", 0, 128, 9 * TILE, 16),
        sb("mw", 0, 128, 10 * TILE, 128),
        sb("mws", 0, 128, 11 * TILE, 32),
        sb("mx", 0, 128, 12 * TILE, 64),
        sb("mxs", 0, 128, 13 * TILE, 16),
        sb("qs", 0, 128, 14 * TILE, 128),
        sb("qd", 0, 128, 15 * TILE, 64),
        sb("qc", 0, 128, 16 * TILE, 16),
        dram("in", Role::Input, types[0], &[128, u64::from(TILE) / types[0].bytes() as u64]),
        dram("out", Role::Output, F, &[128, 64]),
    ];
    let whole = |loc, dtype: Dtype| ap(loc, dtype, &[(1, 128), (1, u64::from(TILE) / dtype.bytes() as u64)]);
    let mut ops = Vec::new();
    // What the program writes is no input; fill it first, now and then not.
    for loc in W {
        if m.r.chance(7, 8) {
            ops.push(Op::DmaCopy { dst: whole(loc, types[0]), src: dram_rows(types[0]) });
        }
    }
    for loc in X {
        if m.r.chance(7, 8) {
            let value = Immediate::Int(m.r.range(1, 3) as i64);
            ops.push(Op::Memset { dst: whole(loc, types[1]), value });
        }
    }
    ops.push(Op::Memset { dst: whole(S, F), value: Immediate::Float(0.75) });
    // Memset alone would make every product the same.
    if types[0].bytes() == types[1].bytes() {
        ops.push(Op::DmaCopy { dst: whole(X[0], types[1]), src: dram_rows(types[1]) });
    }
    for _ in 0..m.r.range(2, 10) {
        let op = match m.r.below(12) {
            0 | 1 => m.other(),
            2 => m.transpose(),
            3 if target.generation == Gen::Gen3 => m.sparse(),
            3 | 4 if gen4 => m.mx(),
            5 if gen4 => m.quantize(),
            _ => m.dense(),
        };
        ops.push(op);
    }
    let mut program = program(locs, ops);
    if target.level <= 40 {
        program.attrs.auto_psum_accumulate = m.r.pick(&[None, None, None, None, Some(true), Some(false)]);
    }
    let options = Options {
        fp32: m.r.pick(&[Fp32Mode::Single, Fp32Mode::TwoPass]),
        mx_rule: m.r.pick(&ScaleRule::ALL),
        uninit: m.r.pick(&[Uninit::Error, Uninit::Zero, Uninit::Zero]),
        ..Options::default()
    };
    Case { program, target, options }
}
