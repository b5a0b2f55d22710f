//! Damaged streams: whatever the bits, a run ends, either well or with an error that names its place.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use hadal_ir::encode::{Item, Stream, lower};
use hadal_ir::program::{MatmultMx, MatmultSparse, Module, Op, Program};
use hadal_ir::verify::{LowerOptions, Verified, verify};
use hadal_isa::{Addr4, Inst, PerfMode, Target, decode};
use hadal_num::Dtype;
use hadal_sim::{ExecError, Fault, Machine, Options, Uninit, Unit, bind, bundle_exec};
use support::*;

const F: Dtype = Dtype::Float32;
const B: Dtype = Dtype::Bfloat16;

fn lowered(p: Program, target: Target) -> (Verified, Stream) {
    let module = Module { name: "faults".into(), cores: vec![p], notes: vec![] };
    let v = verify(module, LowerOptions::new(target)).unwrap_or_else(|e| panic!("{e:?}"));
    let stream = lower(&v).unwrap().cores[0].clone();
    (v, stream)
}

/// One dense matmul `[8, 4].T @ [8, 6]`.
fn dense(dtype: Dtype) -> Program {
    let size = dtype.bytes() as u32;
    program(
        vec![sb("x", 0, 8, 0, 6 * size), sb("w", 0, 8, 64, 4 * size), psum("o", 0, 4, 0, 0, 24)],
        vec![Op::Matmult(Box::new(matmult(
            ap(0, dtype, &[(1, 8), (1, 6)]),
            ap(1, dtype, &[(1, 8), (1, 4)]),
            ap(2, F, &[(1, 4), (1, 6)]),
        )))],
    )
}

fn with(mut p: Program, change: impl Fn(&mut hadal_ir::program::Matmult)) -> Program {
    if let Op::Matmult(m) = &mut p.instrs[0].op {
        change(m);
    }
    p
}

fn double_row() -> Program {
    let e5 = Dtype::Float8E5m2;
    let mut p = dense(e5);
    p.locs[0] = sb("x", 0, 8, 0, 12);
    p.locs[1] = sb("w", 0, 8, 64, 8);
    with(p, |m| {
        m.perf_mode = PerfMode::DoubleRow;
        m.ifmap.pattern = ap(0, e5, &[(1, 8), (6, 2), (1, 6)]).pattern;
        m.weights.pattern = ap(0, e5, &[(1, 8), (4, 2), (1, 4)]).pattern;
    })
}

fn transpose() -> Program {
    let p = program(
        vec![sb("x", 0, 8, 0, 16), sb("w", 0, 8, 64, 8), psum("o", 0, 4, 0, 0, 16)],
        vec![Op::Matmult(Box::new(matmult(
            ap(0, B, &[(1, 8), (1, 8)]),
            ap(1, B, &[(1, 8), (1, 4)]),
            ap(2, B, &[(1, 4), (1, 8)]),
        )))],
    );
    with(p, |m| m.is_transpose = true)
}

fn gathered() -> Program {
    let mut p = dense(B);
    p.locs.push(sb("i", 0, 8, 128, 8));
    p.locs[1] = sb("w", 0, 8, 64, 16);
    with(p, |m| m.weights.index = Some(Box::new(ap(3, Dtype::Uint16, &[(1, 8), (1, 4)]))))
}

fn sparse() -> Program {
    program(
        vec![
            sb("w", 0, 128, 0, 8),
            sb("x", 0, 128, 64, 24),
            sb("t", 0, 128, 128, 2),
            psum("o", 0, 4, 0, 0, 24),
        ],
        vec![Op::MatmultSparse(Box::new(MatmultSparse {
            ifmap: ap(1, B, &[(1, 128), (6, 2), (1, 6)]),
            weights: ap(0, B, &[(1, 128), (1, 4)]),
            tags: ap(2, Dtype::Uint16, &[(1, 128), (1, 1)]),
            out: ap(3, F, &[(1, 4), (1, 6)]),
            compress_ratio: 2,
        }))],
    )
}

fn mx() -> Program {
    let x4 = Dtype::Float8E4m3fnX4;
    let scale = |loc, n| ap(loc, Dtype::Uint8, &[(1, 4), (1, n)]);
    program(
        vec![
            sb("src", 0, 32, 0, 48),
            sb("x", 0, 32, 64, 24),
            sb("xs", 0, 32, 128, 6),
            sb("w", 0, 32, 192, 16),
            sb("ws", 0, 32, 256, 4),
            psum("o", 0, 4, 0, 0, 24),
        ],
        vec![
            Op::QuantizeMx {
                src: ap(0, B, &[(1, 32), (1, 24)]),
                data: ap(1, x4, &[(1, 32), (1, 6)]),
                scale: scale(2, 6),
            },
            Op::MatmultMx(Box::new(MatmultMx {
                ifmap: ap(1, x4, &[(1, 32), (1, 6)]),
                weights: ap(3, x4, &[(1, 32), (1, 4)]),
                ifmap_scale: scale(2, 6),
                weights_scale: scale(4, 4),
                out: ap(5, F, &[(1, 4), (1, 6)]),
                accumulate_flags: None,
                psum_zero_region: None,
                tile_position: None,
                tile_size: None,
            })),
        ],
    )
}

fn machine(v: &Verified) -> Machine {
    let mut m = Machine::new(v.options().target);
    bind::fill(&mut m, v.core(0).unwrap(), 0, &Default::default()).unwrap();
    m
}

fn run_on(
    m: &mut Machine,
    stream: &Stream,
    v: &Verified,
    options: &Options,
) -> Result<hadal_sim::Stats, ExecError> {
    bundle_exec::run(stream, v.core(0), v.options().target, m, options, &mut ())
}

fn run(stream: &Stream, v: &Verified, options: &Options) -> Result<hadal_sim::Stats, ExecError> {
    run_on(&mut machine(v), stream, v, options)
}

/// Every bit of every bundle, one at a time, with both answers to unwritten memory. The bits of eight bytes follow
/// each other on one memory, since making it takes longest; a run may find what the one before it wrote.
#[test]
fn every_flipped_bit_ends_in_a_result_or_an_error_with_its_place() {
    let trn2 = Target::TRN2;
    let e3 = |m: &mut hadal_ir::program::Matmult| m.zero_point_weights = Some(3);
    for (name, p, target) in [
        ("dense on trn1", dense(B), Target::TRN1),
        ("float32", dense(F), trn2),
        ("uint8", with(dense(Dtype::Uint8), e3), trn2),
        ("row pairs", double_row(), trn2),
        ("transpose", transpose(), trn2),
        ("gather", gathered(), trn2),
        ("sparse", sparse(), trn2),
        ("mx", mx(), Target::TRN3),
        ("above level 40", dense(B), "level:45".parse().unwrap()),
    ] {
        let (v, stream) = lowered(p, target);
        let places: Vec<usize> =
            (0..stream.items.len()).filter(|i| matches!(stream.items[*i], Item::Bundle(_))).collect();
        let (mut good, mut bad) = (0, 0);
        for (number, item) in places.iter().enumerate() {
            let mut memory = machine(&v);
            for bit in 0..512 {
                if bit % 64 == 0 {
                    memory = machine(&v);
                }
                let mut damaged = stream.clone();
                if let Item::Bundle(b) = &mut damaged.items[*item] {
                    b.word.0[bit / 8] ^= 1 << (bit % 8);
                }
                let uninit = if bit % 2 == 0 { Uninit::Error } else { Uninit::Zero };
                let options = Options { uninit, ..Options::default() };
                match run_on(&mut memory, &damaged, &v, &options) {
                    Ok(_) => good += 1,
                    Err(e) => {
                        bad += 1;
                        // It shows at the damaged bundle or after it, never before.
                        assert!(
                            e.unit != Unit::Bundle || e.index >= number && e.index < places.len(),
                            "{name}, bundle {number}, bit {bit}: {e}"
                        );
                        assert!(!e.name.is_empty() && !e.fault.code().is_empty());
                        assert!(e.unit != Unit::Setup, "{name}, bundle {number}, bit {bit}: {e}");
                    }
                }
            }
        }
        assert_eq!(good + bad, 512 * places.len());
        assert!(good > 0 && bad > 0, "{name}: {good} good, {bad} bad");
    }
}

#[test]
fn a_matmul_without_its_load() {
    let (v, stream) = lowered(dense(B), Target::TRN2);
    let bundle = |i: usize| stream.items[i].clone();
    let ran = |items| run(&Stream { items, loads_elided: 0 }, &v, &Options::default());
    let e = ran(vec![bundle(1), bundle(0)]).unwrap_err();
    assert_eq!((e.unit, e.index), (Unit::Bundle, 0));
    assert!(matches!(*e.fault, Fault::NotLoaded { .. }), "{e}");
    assert!(ran(vec![bundle(0)]).is_ok());
    // Group bytes of a load of other rows: loaded, but not these.
    let mut other = bundle(1);
    if let Item::Bundle(b) = &mut other {
        let mut d = decode(&b.word, Target::TRN2);
        if let Inst::Matmul(m) = &mut d.inst {
            m.row_group = 2;
        }
        b.word = d.encode(Target::TRN2);
    }
    let e = ran(vec![bundle(0), other]).unwrap_err();
    assert!(matches!(*e.fault, Fault::NotLoaded { row: 2, .. }) && e.index == 1, "{e}");
}

/// Operands that start inside a memory and leave it, in each direction.
#[test]
fn addresses_past_the_memory() {
    let target = Target::TRN2;
    let (v, stream) = lowered(dense(B), target);
    let options = Options { uninit: Uninit::Zero, ..Options::default() };
    let end = target.sbuf_bytes_per_partition();
    let past = |which: usize, change: &dyn Fn(&mut Inst)| {
        let mut damaged = stream.clone();
        if let Item::Bundle(b) = &mut damaged.items[which] {
            let mut d = decode(&b.word, target);
            change(&mut d.inst);
            b.word = d.encode(target);
        }
        let e = run(&damaged, &v, &options).unwrap_err();
        assert_eq!(e.index, which);
        (e.operand, *e.fault)
    };
    // Two bytes are left where four elements of two bytes are read.
    let weights = past(0, &|i| {
        if let Inst::LoadStationary(l) = i {
            l.weights.start = Addr4::sbuf(0, end - 2);
        }
    });
    assert!(
        matches!(weights, (Some("weights"), Fault::OutOfRange { partition: 0, offset, .. }) if offset == i64::from(end)),
        "{weights:?}"
    );
    let below = past(1, &|i| {
        if let Inst::Matmul(m) = i {
            m.moving.strides = m.moving.strides.map(|_| -1);
        }
    });
    assert!(matches!(below, (Some("ifmap"), Fault::OutOfRange { offset, .. }) if offset < 0), "{below:?}");
    // Rows from partition 124 on: the fifth is past the last.
    let rows = past(1, &|i| {
        if let Inst::Matmul(m) = i {
            m.moving.start = Addr4::sbuf(124, 0);
        }
    });
    assert!(matches!(rows, (Some("ifmap"), Fault::OutOfRange { partition: 128, .. })), "{rows:?}");
    let bank = past(1, &|i| {
        if let Inst::Matmul(m) = i {
            m.dst.start = Addr4::psum(0, 8, 0);
        }
    });
    assert_eq!(bank.0, Some("out"), "{bank:?}");
}
