//! Types and shapes of the dense matmul, independent of where its operands are placed.

use hadal_isa::{Gen, PerfMode};
use hadal_num::Dtype;

use crate::program::{Ap, Calc, Instr, Matmult, PARTITIONS, PSUM_BANKS};

use super::rules::{self, Rule, Sink};
use super::{LowerOptions, Profile};

/// log2 of the 8 banks of PSUM.
const MAX_ZERO_REGION: u8 = 3;
/// Above this level a Matmul carries no accumulate byte, and a Memset of its destination stands for START (D-42).
const NO_ACCUMULATE_BYTE: u16 = 40;

/// Free sizes of a matmul's operands, per plane of the pair in DoubleRow modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Contraction rows (partitions).
    pub k: u64,
    /// Stationary columns.
    pub m: u64,
    /// Moving columns.
    pub n: u64,
}

/// Whether operands of the mode hold a pair of planes: every mode but None. DoubleColumn and DoublePixel
/// take the form of DoubleRow, which is inferred.
pub(crate) fn takes_pairs(mode: PerfMode) -> bool {
    mode != PerfMode::None
}

/// The shape of a matmul.
pub(crate) fn shape(mm: &Matmult) -> Shape {
    let planes = if takes_pairs(mm.perf_mode) { 2 } else { 1 };
    Shape {
        k: mm.weights.partitions(),
        m: mm.weights.free_elements() / planes,
        n: mm.ifmap.free_elements() / planes,
    }
}

pub(super) fn check(at: (usize, &Instr), mm: &Matmult, o: &LowerOptions, sink: &mut Sink) {
    types(at, mm, o, sink);
    perf_mode(at, mm, o, sink);
    destination(at, mm, o, sink);
    shapes(at, mm, o, sink);
    tiles(at, mm, o, sink);
    calc(at, mm, o, sink);
    if mm.moving_transpose {
        sink.instr(
            &rules::MOVING_TRANSPOSE,
            at,
            Some("weights"),
            "the identity is stationary and the data moving, which is not stationary.T @ moving".to_owned(),
        );
    }
}

/// Types a matmul of any kind may read.
pub(super) fn is_operand_type(d: Dtype) -> bool {
    d == Dtype::Uint8 || (d.is_float() && d != Dtype::Float8E8m0fnu)
}

fn types(at: (usize, &Instr), mm: &Matmult, o: &LowerOptions, sink: &mut Sink) {
    let (x, w) = (mm.ifmap.dtype, mm.weights.dtype);
    let mut ok = true;
    for (rule, name, what, d) in
        [(&rules::IFMAP_TYPE, "ifmap", "ifmap", x), (&rules::WEIGHTS_TYPE, "weights", "weights", w)]
    {
        if !is_operand_type(d) {
            ok = false;
            sink.instr(rule, at, Some(name), format!("Invalid {what} data type for matmult: {d}"));
        } else if d.is_x4() {
            ok = false;
            sink.instr(&rules::X4_DENSE, at, Some(name), format!("{d} in a dense matmul"));
        } else if d == Dtype::Float8E4m3fn
            && o.target.generation != Gen::Gen4
            && o.profile == Profile::Hardware
        {
            sink.instr(
                &rules::E4M3FN_GEN,
                at,
                Some(name),
                format!("{d} on {}, which reads its tag as legacy float8_e4m3", o.target),
            );
        }
    }
    if !ok {
        return;
    }
    pairing(at, x, w, sink);
    for (name, d, zero) in [("ifmap", x, mm.zero_point_ifmap), ("weights", w, mm.zero_point_weights)] {
        if let Some(z) = zero
            && d != Dtype::Uint8
        {
            sink.instr(&rules::ZERO_POINT_TYPE, at, Some(name), format!("zero point {z} on a {d} operand"));
        }
    }
}

fn perf_mode(at: (usize, &Instr), mm: &Matmult, o: &LowerOptions, sink: &mut Sink) {
    let mode = mm.perf_mode;
    if mode == PerfMode::None {
        return;
    }
    if matches!(mode, PerfMode::DoubleColumn | PerfMode::DoublePixel) && !o.allow_inferred {
        sink.instr(&rules::PERF_MODE, at, None, format!("perf_mode {mode} has no proven encoding"));
    }
    if o.target.generation == Gen::Gen2 && o.profile == Profile::Hardware {
        sink.instr(
            &rules::DOUBLE_ROW_GEN,
            at,
            None,
            format!("perf_mode {mode} on {}, which has no performance mode", o.target),
        );
    }
    for (name, ap) in [("ifmap", &mm.ifmap), ("weights", &mm.weights)] {
        if !ap.dtype.is_fp8() {
            sink.instr(
                &rules::DOUBLE_ROW_TYPE,
                at,
                Some(name),
                format!("perf_mode {mode} with {} operands", ap.dtype),
            );
        }
        if ap.index.is_none() && !has_pair(ap, name, mode, o.target.generation) {
            sink.instr(
                &rules::DOUBLE_ROW_SHAPE,
                at,
                Some(name),
                format!("perf_mode {mode} with free counts {:?}", counts(ap)),
            );
        }
    }
    let (size, position) = (mm.tile_size.map_or(PARTITIONS, |s| s[1]), mm.tile_position.map_or(0, |p| p[1]));
    if size < PARTITIONS || position != 0 {
        sink.instr(
            &rules::DOUBLE_ROW_COLUMNS,
            at,
            None,
            format!("perf_mode {mode} with a column tile of {size} at {position}"),
        );
    }
    if mm.is_transpose {
        sink.instr(&rules::TRANSPOSE_MODE, at, None, format!("transpose with perf_mode {mode}"));
    }
}

fn counts(ap: &Ap) -> Vec<u64> {
    ap.free().iter().map(|p| p.num).collect()
}

/// Whether an operand is in a form that reaches the wire pair-first (D-50): pair first; pair last
/// (gen3 swaps it); or, on gen2 and for interleaved weights, one dimension of even size.
pub(crate) fn has_pair(ap: &Ap, name: &str, mode: PerfMode, generation: Gen) -> bool {
    let interleaved = mode == PerfMode::DoubleRowSwInterleave && name == "weights";
    match ap.free() {
        [one] => one.num % 2 == 0 && one.num > 0 && (interleaved || generation == Gen::Gen2),
        [first, _, ..] if first.num == 2 => true,
        // Only two dimensions swap into pair-first.
        [_, last] => last.num == 2 && !interleaved && generation != Gen::Gen2,
        _ => false,
    }
}

fn destination(at: (usize, &Instr), mm: &Matmult, o: &LowerOptions, sink: &mut Sink) {
    let (d, w) = (mm.out.dtype, mm.weights.dtype);
    let exact_transpose = mm.is_transpose && o.target.generation != Gen::Gen2;
    let legal = if exact_transpose {
        d == transpose_type(w)
    } else {
        d == Dtype::Float32 || (d == Dtype::Bfloat16 && o.target.generation == Gen::Gen4)
    };
    if !legal {
        let want = if exact_transpose {
            format!("{} for a transpose of {w}", transpose_type(w))
        } else if o.target.generation == Gen::Gen4 {
            "float32 or bfloat16".to_owned()
        } else {
            "float32".to_owned()
        };
        sink.instr(
            &rules::DST_TYPE,
            at,
            Some("out"),
            format!("destination is {d}; {} takes {want}", o.target),
        );
    }
}

/// Destination type of a bit-exact transpose: the operand's; FP8 drains as 16 bits, upper byte zero.
pub(crate) fn transpose_type(w: Dtype) -> Dtype {
    if w.is_fp8() || w == Dtype::Uint8 { Dtype::Uint16 } else { w }
}

/// Largest moving free size of a target.
pub(super) fn moving_limit(generation: Gen, dst: Dtype) -> u64 {
    match generation {
        Gen::Gen2 | Gen::Gen3 => 512,
        Gen::Gen4 if dst.bytes() == 2 => 8192,
        Gen::Gen4 => 4096,
    }
}

fn shapes(at: (usize, &Instr), mm: &Matmult, o: &LowerOptions, sink: &mut Sink) {
    let s = shape(mm);
    if mm.ifmap.partitions() != s.k {
        sink.instr(
            &rules::K_MISMATCH,
            at,
            Some("ifmap"),
            format!("{} moving partitions, {} stationary", mm.ifmap.partitions(), s.k),
        );
    }
    let [rows, cols] = mm.tile_size.unwrap_or([PARTITIONS, PARTITIONS]);
    if s.k > u64::from(rows.min(PARTITIONS)) {
        let limit = rows.min(PARTITIONS);
        sink.instr(&rules::ROWS, at, Some("weights"), format!("{} partitions, at most {limit}", s.k));
    }
    if s.m > u64::from(cols.min(PARTITIONS)) {
        let limit = cols.min(PARTITIONS);
        sink.instr(
            &rules::COLUMNS,
            at,
            Some("weights"),
            format!("stationary free size {}, at most {limit}", s.m),
        );
    }
    // gen2 halves a destination of two planes (D-65).
    let halved = o.target.generation == Gen::Gen2
        && takes_pairs(mm.perf_mode)
        && matches!(mm.out.free(), [one] if one.num == s.n.saturating_mul(2));
    drained(at, &mm.out, s.m, s.n, halved, o, sink);
}

/// What a matmul of any kind with `m` stationary and `n` moving columns writes: `m` partitions of `n` elements,
/// as many as the target takes in one instruction. `double` lets a destination hold twice as many.
pub(super) fn drained(
    at: (usize, &Instr),
    out: &Ap,
    m: u64,
    n: u64,
    double: bool,
    o: &LowerOptions,
    sink: &mut Sink,
) {
    let limit = moving_limit(o.target.generation, out.dtype);
    if n > limit {
        sink.instr(
            &rules::MOVING_FREE,
            at,
            Some("ifmap"),
            format!("moving free size {n}, {} takes at most {limit}", o.target),
        );
    }
    if out.partitions() != m {
        sink.instr(
            &rules::OUT_ROWS,
            at,
            Some("out"),
            format!("{} destination partitions, stationary free size {m}", out.partitions()),
        );
    }
    if out.free_elements() != n && !double {
        sink.instr(
            &rules::OUT_COLUMNS,
            at,
            Some("out"),
            format!("destination free size {}, moving free size {n}", out.free_elements()),
        );
    }
}

/// float32 and float32r go with themselves, and the two e4m3 formats never together, in a matmul of any kind.
pub(super) fn pairing(at: (usize, &Instr), x: Dtype, w: Dtype, sink: &mut Sink) {
    let wide = |d: Dtype| matches!(d, Dtype::Float32 | Dtype::Float32r);
    if x != w && (wide(x) || wide(w)) {
        sink.instr(
            &rules::FP32_PAIR,
            at,
            Some("ifmap"),
            format!("{x} moving with {w} stationary: float32 and float32r pair only with themselves"),
        );
    }
    let pair = [x, w];
    if pair.contains(&Dtype::Float8E4m3) && pair.contains(&Dtype::Float8E4m3fn) {
        sink.instr(
            &rules::E4M3_MIX,
            at,
            Some("ifmap"),
            format!("{x} moving with {w} stationary: the two formats do not mix"),
        );
    }
}

/// Tile size and position rules, for any matmul.
pub(super) fn tile_rules(
    at: (usize, &Instr),
    size: Option<[u32; 2]>,
    position: Option<[u32; 2]>,
    generation: Gen,
    sink: &mut Sink,
) {
    if let Some((rule, text)) = tile_fault(size, position, generation) {
        sink.instr(rule, at, None, text);
    }
}

/// What is wrong with a tile, wherever its operands are.
pub(super) fn tile_fault(
    size: Option<[u32; 2]>,
    position: Option<[u32; 2]>,
    generation: Gen,
) -> Option<(&'static Rule, String)> {
    let legal: &[u32] = if generation == Gen::Gen2 { &[64, 128] } else { &[32, 64, 128] };
    if let Some(s) = size
        && s.iter().any(|v| !legal.contains(v))
    {
        return Some((&rules::TILE_SIZE, format!("tile_size {s:?}, each one of {legal:?}")));
    }
    let p = position?;
    let s = size.unwrap_or([PARTITIONS, PARTITIONS]);
    let bad = match size {
        Some(s) => p.iter().zip(s).any(|(p, s)| p % s != 0 || p.saturating_add(s) > PARTITIONS),
        // A position without a size is judged by the operands' extents when they are placed.
        None => p.iter().any(|p| *p >= PARTITIONS || p % 32 != 0),
    };
    bad.then(|| {
        let text = format!(
            "tile_position {p:?} with tile_size {s:?}: not a multiple of the size inside the {PARTITIONS} x {PARTITIONS} array"
        );
        (&rules::TILE_POSITION, text)
    })
}

fn tiles(at: (usize, &Instr), mm: &Matmult, o: &LowerOptions, sink: &mut Sink) {
    tile_rules(at, mm.tile_size, mm.tile_position, o.target.generation, sink);
}

fn calc(at: (usize, &Instr), mm: &Matmult, o: &LowerOptions, sink: &mut Sink) {
    if let Calc::Explicit(f) = mm.calc
        && f.start
        && (f.accumulate || f.cont)
    {
        sink.instr(
            &rules::START_AND_ACCUMULATE,
            at,
            None,
            format!("accumulate byte {} sets START and ACCUMULATE", f.byte()),
        );
    }
    zero_region(at, mm.psum_zero_region, o, sink);
    if mm.replication != 0 && o.target.generation != Gen::Gen2 {
        sink.instr(
            &rules::REPLICATION,
            at,
            None,
            format!("replication {} on {}, whose bundles have no byte for it", mm.replication, o.target),
        );
    }
}

/// The zero region of any matmul: one bank before gen4 and above level 40, at most all 8 on gen4.
pub(super) fn zero_region(at: (usize, &Instr), region: Option<u8>, o: &LowerOptions, sink: &mut Sink) {
    let Some(z) = region.filter(|z| *z > 0) else { return };
    if o.target.generation != Gen::Gen4 {
        sink.instr(
            &rules::MULTIBANK,
            at,
            None,
            format!("do not support psum multibank: psum_zero_region {z} on {}", o.target),
        );
    } else if z > MAX_ZERO_REGION {
        sink.instr(
            &rules::ZERO_REGION_SIZE,
            at,
            None,
            format!("psum_zero_region {z} is 2^{z} banks, PSUM has {PSUM_BANKS}"),
        );
    } else if o.target.level > NO_ACCUMULATE_BYTE {
        sink.instr(
            &rules::ZERO_REGION_LEVEL,
            at,
            None,
            format!("psum_zero_region {z} on {}, whose matmuls carry no START", o.target),
        );
    }
}
