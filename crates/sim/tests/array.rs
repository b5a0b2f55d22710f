//! What the array remembers: loads, evictions, float32 passes, and how bare bundles fail.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use hadal_ir::encode::{Bundle, Item, Side, Stream};
use hadal_ir::program::Op;
use hadal_isa::{
    Addr4, Inst, LoadStationary, Matmul, Pattern, PerfVariant, START, Target, Word, col_group, operand_tag,
    row_group,
};
use hadal_num::Dtype;
use hadal_sim::{ExecError, Fault, Machine, Options, Uninit, Unit, bundle_exec};
use support::*;

const T: Target = Target::TRN2;

/// A load of a `[rows, cols]` float16 tile at SBUF byte `at` of partition `part`, into columns from `col`.
fn load(part: u32, rows: u8, cols: u8, at: u32, col: u32) -> LoadStationary {
    LoadStationary {
        weights: Pattern::new(Addr4::sbuf(part, at), &[(1, u16::from(cols))]).unwrap(),
        weights_tag: operand_tag(Dtype::Float16, T.generation).unwrap(),
        rows,
        active_cols: cols,
        row_group: row_group(part, u32::from(rows)),
        col_group: col_group(col, u32::from(cols), false),
        ..LoadStationary::default()
    }
}

/// The matmul of such a tile with `n` moving columns at SBUF byte 0, into bank 0 from partition `col`.
fn matmul(part: u32, rows: u8, cols: u8, n: u16, col: u32, flags: u8) -> Matmul {
    Matmul {
        moving: Pattern::new(Addr4::sbuf(part, 0), &[(1, n)]).unwrap(),
        moving_tag: operand_tag(Dtype::Float16, T.generation).unwrap(),
        dst_tag: operand_tag(Dtype::Float32, T.generation).unwrap(),
        rows,
        active_cols: cols,
        accumulate: flags,
        row_group: row_group(part, u32::from(rows)),
        col_group: col_group(col, u32::from(cols), false),
        dst: Pattern::new(Addr4::psum(col, 0, 0), &[(1, n)]).unwrap(),
        ..Matmul::default()
    }
}

fn stream(words: Vec<Word>) -> Stream {
    let side = Side::default_for(T);
    let items = words.into_iter().map(|word| Item::Bundle(Bundle { word, instr: 0, side })).collect();
    Stream { items, loads_elided: 0 }
}

fn run(insts: Vec<Inst>, machine: &mut Machine) -> Result<(), ExecError> {
    let words = insts.iter().map(|i| i.encode(T)).collect();
    bundle_exec::run(&stream(words), None, T, machine, &Options::default(), &mut ()).map(|_| ())
}

/// SBUF partitions 0..128 with float16 1.0 in bytes 0..64, 2.0 in 64..128, 3.0 in 128..192.
fn machine() -> Machine {
    let mut m = Machine::new(T);
    for p in 0..128 {
        for (i, code) in [0x3C00u16, 0x4000, 0x4200].into_iter().enumerate() {
            let data: Vec<u8> = std::iter::repeat_n(code.to_le_bytes(), 32).flatten().collect();
            assert!(put(&mut m, p, i * 64, &data));
        }
    }
    m
}

fn put(m: &mut Machine, partition: usize, offset: usize, data: &[u8]) -> bool {
    m.sbuf.put(partition, offset, data)
}

fn psum_f32(m: &Machine, partition: usize, element: usize) -> f32 {
    f32::from_le_bytes(m.psum.get(partition, element * 4, 4).unwrap().try_into().unwrap())
}

#[test]
fn two_row_tiles_are_held_side_by_side() {
    let mut m = machine();
    // Rows 0..32 hold 2.0, rows 32..64 hold 3.0; both columns 0..16. The quadrants differ, so both stay.
    run(
        vec![
            load(0, 32, 16, 64, 0).into(),
            load(32, 32, 16, 128, 0).into(),
            matmul(0, 32, 16, 4, 0, START).into(),
        ],
        &mut m,
    )
    .unwrap();
    assert_eq!(psum_f32(&m, 15, 3), 64.0);
    run(
        vec![
            load(0, 32, 16, 64, 0).into(),
            load(32, 32, 16, 128, 0).into(),
            matmul(32, 32, 16, 4, 0, START).into(),
        ],
        &mut m,
    )
    .unwrap();
    assert_eq!(psum_f32(&m, 15, 3), 96.0);
}

/// A Memset of the weights' memory between load and matmul does not reach the array.
#[test]
fn latches_hold_values_not_addresses() {
    let mut m = machine();
    let clear = Op::Memset {
        dst: ap(0, Dtype::Uint16, &[(1, 32), (1, 16)]),
        value: hadal_ir::program::Immediate::Int(0),
    };
    let p = program(vec![sb("w", 0, 32, 64, 32)], vec![clear]);
    let (l, mm) = (load(0, 32, 16, 64, 0), matmul(0, 32, 16, 4, 0, START));
    let mut s = stream(vec![Inst::from(l).encode(T), Inst::from(mm).encode(T), Inst::from(l).encode(T)]);
    s.items.insert(1, Item::Host(0));
    bundle_exec::run(&s, Some(&p), T, &mut m, &Options::default(), &mut ()).unwrap();
    assert_eq!(psum_f32(&m, 0, 0), 64.0);
    run(vec![l.into(), mm.into()], &mut m).unwrap();
    assert_eq!(psum_f32(&m, 0, 0), 0.0);
}

#[test]
fn a_group_that_was_never_loaded() {
    let mut m = machine();
    let e =
        run(vec![load(0, 32, 16, 64, 0).into(), matmul(32, 32, 16, 4, 0, START).into()], &mut m).unwrap_err();
    assert_eq!((e.unit, e.index), (Unit::Bundle, 1));
    assert_eq!(*e.fault, Fault::NotLoaded { row: 2, col: 1 });
    assert_eq!(
        e.to_string(),
        "X-204: bundle 1 (Matmul): tile group (rows 2, columns 1) was never loaded, or a later load evicted it; \
         load weights into the group before the matmul"
    );
}

#[test]
fn a_load_evicts_what_shares_a_quadrant() {
    // Rows 0..64 (group 3) replace rows 0..32 (group 1) of the same columns.
    let evicting = vec![
        load(0, 32, 16, 64, 0).into(),
        load(0, 64, 16, 64, 0).into(),
        matmul(0, 32, 16, 4, 0, START).into(),
    ];
    let e = run(evicting, &mut machine()).unwrap_err();
    assert_eq!(*e.fault, Fault::NotLoaded { row: 1, col: 1 });
    // Other columns leave it alone.
    let keeping = vec![
        load(0, 32, 16, 64, 0).into(),
        load(0, 64, 16, 64, 32).into(),
        matmul(0, 32, 16, 4, 0, START).into(),
    ];
    run(keeping, &mut machine()).unwrap();
}

#[test]
fn a_matmul_must_agree_with_its_load() {
    let e = run(vec![load(0, 32, 16, 64, 0).into(), matmul(0, 32, 8, 4, 0, START).into()], &mut machine());
    assert!(matches!(*e.unwrap_err().fault, Fault::LoadMismatch { what: "active column count", .. }));
    let e = run(vec![load(0, 32, 16, 64, 0).into(), matmul(0, 16, 16, 4, 0, START).into()], &mut machine());
    assert!(matches!(*e.unwrap_err().fault, Fault::LoadMismatch { what: "row count", .. }));
}

#[test]
fn accumulate_bytes() {
    let l: Inst = load(0, 32, 16, 64, 0).into();
    let mm = |flags| -> Inst { matmul(0, 32, 16, 4, 0, flags).into() };
    let mut m = machine();
    // START, add, add with the STOP bit, then flags 0 and 2, which add too (D-16).
    run(vec![l, mm(1), mm(4), mm(6), mm(0), mm(2)], &mut m).unwrap();
    assert_eq!(psum_f32(&m, 3, 3), 5.0 * 64.0);
    run(vec![l, mm(3)], &mut m).unwrap();
    assert_eq!(psum_f32(&m, 3, 3), 64.0);
    for flags in [5, 7, 8, 255] {
        let e = run(vec![l, mm(flags)], &mut m).unwrap_err();
        assert_eq!(*e.fault, Fault::Flags { flags });
    }
    // Adding where nothing was written.
    let e = run(vec![l, mm(4)], &mut machine()).unwrap_err();
    let place = (e.operand, (*e.fault).clone());
    let space = "PSUM".to_owned();
    assert_eq!(place, (Some("out"), Fault::Unwritten { space, partition: 0, offset: 0 }));
}

#[test]
fn zero_regions() {
    let l: Inst = load(0, 32, 16, 64, 0).into();
    let mm = Matmul { psum_zero_region: 1, ..matmul(0, 32, 16, 4, 0, START) };
    let e = run(vec![l, mm.into()], &mut machine()).unwrap_err();
    assert!(e.to_string().contains("does not support psum multibank"), "{e}");
    // gen4 clears two banks, in the destination's partitions only.
    let t = Target::TRN3;
    let mut m = Machine::new(t);
    for p in 0..32 {
        m.sbuf.put(p, 0, &[0; 192]);
    }
    m.psum.put(15, 4095, &[7]);
    m.psum.put(15, 4096, &[7]);
    m.psum.put(16, 100, &[7]);
    let words = vec![l.encode(t), Inst::from(mm).encode(t)];
    bundle_exec::run(&stream(words), None, t, &mut m, &Options::default(), &mut ()).unwrap();
    assert_eq!(m.psum.get(15, 4095, 2), Some(&[0, 7][..]));
    assert_eq!(m.psum.get(16, 100, 1), Some(&[7][..]));
    assert_eq!(m.psum.first_unwritten(0, 0, 4096), None);
    assert_eq!(m.psum.first_unwritten(0, 4096, 1), Some(4096));
}

#[test]
fn second_float32_pass_is_counted_by_the_executor() {
    let mut m = Machine::new(T);
    let f = |v: f32| v.to_le_bytes();
    m.sbuf.put(0, 0, &f(3.0));
    m.sbuf.put(0, 64, &f(5.0));
    let tag = operand_tag(Dtype::Float32, T.generation).unwrap();
    let l: Inst =
        LoadStationary { weights_tag: tag, perf_variant: PerfVariant::FLOAT32, ..load(0, 1, 1, 64, 0) }
            .into();
    let mm = |flags| -> Inst {
        Matmul { moving_tag: tag, perf_variant: PerfVariant::FLOAT32, ..matmul(0, 1, 1, 1, 0, flags) }.into()
    };
    // One float32 matmul: passes 1 and 2.
    run(vec![l, mm(1), l, mm(6)], &mut m).unwrap();
    assert_eq!(psum_f32(&m, 0, 0), 15.0);
    // Two of them.
    run(vec![l, mm(1), l, mm(4), l, mm(4), l, mm(6)], &mut m).unwrap();
    assert_eq!(psum_f32(&m, 0, 0), 30.0);
}

#[test]
fn reads_of_never_written_bytes() {
    let mut m = machine();
    let l: Inst = load(0, 32, 16, 160, 0).into();
    // Bytes 160..192 exist, 192.. do not.
    let wide: Inst = load(0, 32, 17, 160, 0).into();
    run(vec![l], &mut m).unwrap();
    let e = run(vec![wide], &mut m).unwrap_err();
    let space = "SBUF".to_owned();
    assert_eq!(*e.fault, Fault::Unwritten { space, partition: 0, offset: 192 });
    assert_eq!(
        e.to_string(),
        "X-101: bundle 0 (LoadStationary), operand weights: reads byte 192 of partition 0 of SBUF, which nothing \
         has written; write the bytes first (a PSUM tile needs a START matmul), or run with uninit nan or zero"
    );
    let words = |n: u16| {
        let mm = Matmul { active_cols: 17, ..matmul(0, 32, 17, n, 0, START) };
        vec![wide.encode(T), Inst::from(mm).encode(T)]
    };
    for (uninit, ok) in [(Uninit::Nan, f32::is_nan as fn(f32) -> bool), (Uninit::Zero, |v| v == 0.0)] {
        let options = Options { uninit, ..Options::default() };
        bundle_exec::run(&stream(words(4)), None, T, &mut m, &options, &mut ()).unwrap();
        assert_eq!(psum_f32(&m, 0, 0), 96.0);
        assert!(ok(psum_f32(&m, 16, 0)));
    }
}

#[test]
fn places_past_the_memory() {
    // trn2 has 224 KiB a partition; the address can say more.
    let e = run(vec![load(0, 32, 16, 224 * 1024 - 16, 0).into()], &mut machine()).unwrap_err();
    assert_eq!(
        *e.fault,
        Fault::OutOfRange {
            space: "SBUF".into(),
            partition: 0,
            offset: 229_376,
            partitions: 128,
            bytes: 229_376
        }
    );
    // Partition 120 with 16 rows runs past 127.
    let mut m = machine();
    let e = run(vec![load(120, 16, 16, 0, 0).into()], &mut m).unwrap_err();
    assert!(matches!(*e.fault, Fault::OutOfRange { partition: 128, .. }), "{e}");
    // A negative stride below byte 0.
    let mut l = load(0, 1, 16, 0, 0);
    l.weights.strides[0] = -1;
    let e = run(vec![l.into()], &mut m).unwrap_err();
    assert!(matches!(*e.fault, Fault::OutOfRange { offset: -2, .. }), "{e}");
    let mut l = load(0, 1, 16, 0, 0);
    l.weights.start = Addr4::register(3);
    assert!(matches!(*run(vec![l.into()], &mut m).unwrap_err().fault, Fault::Address { .. }));
    let mut l = load(0, 1, 16, 0, 0);
    l.weights.counts[0] = 0;
    assert!(matches!(*run(vec![l.into()], &mut m).unwrap_err().fault, Fault::Shape { .. }));
}

/// Gathered weights: positions along the free dimension, 16 bits each when no program says otherwise.
#[test]
fn gathered_weights() {
    let mut m = Machine::new(T);
    let half = |v: u16| v.to_le_bytes();
    m.sbuf.put(0, 0, &half(0x3C00));
    // Weights 1, 2, 3, 4 and the positions 3, 0, 3.
    for (i, code) in [0x3C00, 0x4000, 0x4200, 0x4400].into_iter().enumerate() {
        m.sbuf.put(0, 64 + 2 * i, &half(code));
    }
    for (i, position) in [3u16, 0, 3].into_iter().enumerate() {
        m.sbuf.put(0, 128 + 2 * i, &half(position));
    }
    let mut l = load(0, 1, 3, 64, 0);
    l.weights = hadal_isa::IndirectPattern {
        data: Addr4::sbuf(0, 64),
        index: Addr4::sbuf(0, 128),
        counts: [3, 1, 1],
    }
    .to_pattern()
    .unwrap();
    run(vec![l.into(), matmul(0, 1, 3, 1, 0, START).into()], &mut m).unwrap();
    assert_eq!([0, 1, 2].map(|p| psum_f32(&m, p, 0)), [4.0, 1.0, 4.0]);
}

/// Any words at all end in a result, never in a panic.
#[test]
fn arbitrary_words_never_panic() {
    arbtest::arbtest(|u| {
        let target = *u.choose(&Target::ALL)?;
        let opcodes = [0x01u8, 0x02, 0x06, 0x07, 0x09, 0x0A, 0xE3];
        let mut words = Vec::new();
        for _ in 0..u.int_in_range(1..=4)? {
            let mut w = u.arbitrary::<[u8; 64]>()?;
            if u.ratio(7, 8)? {
                w[0] = *u.choose(&opcodes)?;
                w[1] = 0x10;
            }
            // Mostly small counts and addresses, so that something gets past the checks.
            if u.ratio(1, 2)? {
                w[0x12] &= 0x0F;
                w[0x13] = 0;
                for at in [0x1B, 0x1D, 0x1F, 0x3B, 0x3D, 0x3F] {
                    w[at] = 0;
                }
            }
            words.push(Word(w));
        }
        let mut m = Machine::new(target);
        let options = Options { uninit: Uninit::Zero, ..Options::default() };
        let _ = bundle_exec::run(&stream(words), None, target, &mut m, &options, &mut ());
        Ok(())
    })
    .budget_ms(2_000);
}
