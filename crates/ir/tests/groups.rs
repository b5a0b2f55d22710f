//! First writes and accumulation groups: the accumulate byte of every matmul.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{copy, flags, matmul, memset, program, verified};
use hadal_ir::json;
use hadal_ir::program::Op;
use hadal_ir::verify::{LowerOptions, verify};
use hadal_isa::Target;
use serde_json::{Value, json as j};

const TARGETS: [Target; 3] = [Target::TRN1, Target::TRN2, Target::TRN3];

#[track_caller]
fn expect(instructions: &[Value], want: &[(&str, u8)]) {
    for t in TARGETS {
        let v = verified(program(instructions), t);
        let got = flags(v.core(0).unwrap());
        let want: Vec<(String, u8)> = want.iter().map(|(n, b)| ((*n).to_owned(), *b)).collect();
        assert_eq!(got, want, "{t}");
    }
}

fn explicit(mut m: Value, calc: Value) -> Value {
    m["calc"] = calc;
    m
}

#[test]
fn one_matmul_starts_and_stops() {
    expect(&[matmul("a", "o", 0, 64)], &[("a", 3)]);
}

#[test]
fn accumulation_over_four() {
    let mms: Vec<Value> = ["a", "b", "c", "d"].iter().map(|n| matmul(n, "o", 0, 64)).collect();
    expect(&mms, &[("a", 1), ("b", 4), ("c", 4), ("d", 6)]);
}

#[test]
fn interleaved_groups_keep_apart() {
    expect(
        &[matmul("a", "o", 0, 64), matmul("b", "p", 0, 64), matmul("c", "o", 0, 64), matmul("d", "p", 0, 64)],
        &[("a", 1), ("b", 1), ("c", 6), ("d", 6)],
    );
}

#[test]
fn other_columns_of_a_location_are_another_group() {
    expect(&[matmul("a", "o", 0, 64), matmul("b", "o", 64, 128)], &[("a", 3), ("b", 3)]);
}

#[test]
fn partly_written_destination_is_split() {
    // Columns 0..4, then 2..6: two accumulate, two start; every part of the last matmul stops (D-49).
    let v = verified(program(&[matmul("a", "o", 0, 4), matmul("b", "o", 2, 6)]), Target::TRN2);
    let p = v.core(0).unwrap();
    assert_eq!(flags(p), [("a".into(), 1), ("b".into(), 6), ("b.1".into(), 3)]);
    let columns: Vec<(u64, u64, u64)> = p
        .instrs
        .iter()
        .filter_map(|i| match &i.op {
            Op::Matmult(m) => Some((m.out.offset, m.ifmap.offset, m.out.free_elements())),
            _ => None,
        })
        .collect();
    assert_eq!(columns, [(0, 0, 4), (8, 0, 2), (16, 4, 2)]);
}

#[test]
fn a_read_closes_the_group_and_later_matmuls_add() {
    expect(
        &[matmul("a", "o", 0, 64), copy("r", "o"), matmul("b", "o", 0, 64), matmul("c", "o", 0, 64)],
        &[("a", 3), ("b", 4), ("c", 6)],
    );
}

#[test]
fn a_write_by_another_engine_starts_over() {
    expect(&[matmul("a", "o", 0, 64), memset("z", "o"), matmul("b", "o", 0, 64)], &[("a", 3), ("b", 3)]);
}

#[test]
fn explicit_flags_stay() {
    let a = explicit(matmul("a", "o", 0, 64), j!(["start"]));
    let b = explicit(matmul("b", "o", 0, 64), j!(["continue"]));
    let c = explicit(matmul("c", "o", 0, 64), j!(["accumulate", "stop"]));
    expect(&[a, b, c], &[("a", 1), ("b", 4), ("c", 6)]);
}

#[test]
fn mixed_groups_are_derived_anew() {
    let a = explicit(matmul("a", "o", 0, 64), j!(["start", "stop"]));
    let c = explicit(matmul("c", "o", 0, 64), j!(["accumulate"]));
    expect(&[a, matmul("b", "o", 0, 64), c], &[("a", 1), ("b", 4), ("c", 6)]);
}

#[test]
fn a_refused_matmul_is_not_blamed_on_the_next() {
    let mut a = explicit(matmul("a", "o", 0, 64), j!(["start"]));
    a["ifmap"]["dtype"] = j!("int16");
    let b = explicit(matmul("b", "o", 0, 64), j!(["accumulate", "stop"]));
    let e = verify(program(&[a, b]), LowerOptions::new(Target::TRN2)).unwrap_err();
    assert_eq!(e.iter().map(|v| v.code).collect::<Vec<_>>(), ["V-410"]);
}

#[test]
fn explicit_start_opens_a_new_group() {
    let b = explicit(matmul("b", "o", 0, 64), j!(["start", "stop"]));
    expect(&[matmul("a", "o", 0, 64), b], &[("a", 3), ("b", 3)]);
}

#[test]
fn gen4_groups_span_banks() {
    let v = verified(program(&[matmul("a", "o", 0, 1024), matmul("b", "o", 0, 1024)]), Target::TRN3);
    assert_eq!(flags(v.core(0).unwrap()), [("a".into(), 1), ("b".into(), 6)]);
}

#[test]
fn above_level_40_a_memset_starts() {
    let v =
        verified(program(&[matmul("a", "o", 0, 64), matmul("b", "o", 0, 64)]), "level:50".parse().unwrap());
    let p = v.core(0).unwrap();
    let names: Vec<&str> = p.instrs.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["a.zero", "a", "b"]);
    assert_eq!(flags(p), [("a".into(), 4), ("b".into(), 6)]);
}

#[test]
fn resolved_programs_read_back_as_explicit() {
    let v = verified(program(&[matmul("a", "o", 0, 4), matmul("b", "o", 2, 6)]), Target::TRN2);
    let text = json::write(v.module());
    let again = verified(json::parse(&text, "again.bir.json").unwrap(), Target::TRN2);
    assert_eq!(flags(again.core(0).unwrap()), flags(v.core(0).unwrap()));
}

/// An MX matmul of 32 partitions into float32 columns `from..to` of `o`, with its accumulate byte.
fn mx(name: &str, from: u32, to: u32, flags: Option<u8>) -> Value {
    let n = to - from;
    let mut m = j!({"op": "MatmultMx", "name": name,
        "ifmap": common::ap("x", "float8_e5m2_x4", j!([[1, 32], [1, n]])),
        "weights": common::ap("w", "float8_e4m3fn_x4", j!([[1, 32], [1, 64]])),
        "ifmap_scale": common::ap("r", "float8_e8m0fnu", j!([[1, 4], [1, n]])),
        "weights_scale": {"loc": "r", "dtype": "float8_e8m0fnu", "offset": 1024, "pattern": [[1, 4], [1, 64]]},
        "out": {"loc": "o", "dtype": "float32", "offset": from * 4, "pattern": [[1, 64], [1, n]]}});
    if let Some(byte) = flags {
        m["accumulate_flags"] = j!(byte);
    }
    m
}

fn mx_flags(instructions: &[Value]) -> Vec<(String, u8)> {
    flags(verified(program(instructions), Target::TRN3).core(0).unwrap())
}

fn named(want: &[(&str, u8)]) -> Vec<(String, u8)> {
    want.iter().map(|(n, b)| ((*n).to_owned(), *b)).collect()
}

#[test]
fn mx_groups_are_derived_like_dense_ones() {
    assert_eq!(mx_flags(&[mx("a", 0, 64, None)]), named(&[("a", 3)]));
    let four: Vec<Value> = ["a", "b", "c", "d"].iter().map(|n| mx(n, 0, 64, None)).collect();
    assert_eq!(mx_flags(&four), named(&[("a", 1), ("b", 4), ("c", 4), ("d", 6)]));
    // Split along the moving columns, the scales with them.
    let split = [mx("a", 0, 4, None), mx("b", 2, 6, None)];
    assert_eq!(mx_flags(&split), named(&[("a", 1), ("b", 6), ("b.1", 3)]));
    let v = verified(program(&split), Target::TRN3);
    let Op::MatmultMx(m) = &v.core(0).unwrap().instrs[2].op else { panic!() };
    assert_eq!((m.ifmap.offset, m.ifmap_scale.offset, m.out.offset), (2 * 4, 2, 4 * 4));
}

#[test]
fn explicit_mx_flags_are_copied_and_checked() {
    let all = [mx("a", 0, 64, Some(1)), mx("b", 0, 64, Some(4)), mx("c", 0, 64, Some(6))];
    assert_eq!(mx_flags(&all), named(&[("a", 1), ("b", 4), ("c", 6)]));
    let mixed = [mx("a", 0, 64, Some(3)), mx("b", 0, 64, None)];
    assert_eq!(mx_flags(&mixed), named(&[("a", 1), ("b", 6)]));
    // The legal bytes are 0, 1, 2, 3, 4 and 6.
    for byte in [5, 7, 8, 255] {
        let m = program(&[mx("s", 0, 64, Some(3)), mx("a", 0, 64, Some(byte))]);
        let e = verify(m, LowerOptions::new(Target::TRN3)).unwrap_err();
        assert_eq!(e.iter().map(|v| v.code).collect::<Vec<_>>(), ["V-451"], "{byte}");
    }
    let orphan = verify(program(&[mx("a", 0, 64, Some(4))]), LowerOptions::new(Target::TRN3)).unwrap_err();
    assert_eq!(orphan[0].code, "V-452");
}

#[test]
fn a_group_on_gen2_and_gen3_stays_in_its_bank() {
    // 513 float32 would end in the next bank; 512 from byte 4 too.
    for target in [Target::TRN1, Target::TRN2] {
        let m = program(&[matmul("a", "o", 1, 513), matmul("b", "o", 1, 513)]);
        let e = verify(m, LowerOptions::new(target)).unwrap_err();
        assert_eq!(e.iter().map(|v| v.code).collect::<Vec<_>>(), ["V-443", "V-443"], "{target}");
    }
    // Two banks of one location are two groups there.
    let v = verified(program(&[matmul("a", "o", 0, 512), matmul("b", "o", 512, 1024)]), Target::TRN2);
    assert_eq!(v.groups(0).len(), 2);
    // On gen4 one group spans both, and its zero region is 0.
    let v = verified(program(&[matmul("a", "o", 0, 1024), matmul("b", "o", 0, 1024)]), Target::TRN3);
    assert_eq!(v.groups(0).len(), 1);
    let stream = hadal_ir::encode::lower(&v).unwrap().cores.remove(0);
    let matmuls: Vec<_> = stream.bundles().filter(|b| b.word.0[0] == 2).collect();
    assert_eq!(
        matmuls.iter().map(|b| (b.word.0[0x2B], b.word.0[0x2F])).collect::<Vec<_>>(),
        [(1, 0), (6, 0)]
    );
}

fn copy_columns(name: &str, src: &str, from: u32, to: u32) -> Value {
    j!({"op": "TensorCopy", "name": name,
        "src": {"loc": src, "dtype": "float32", "offset": from * 4, "pattern": [[1, 128], [1, to - from]]},
        "dst": common::ap("r", "float32", j!([[1, 128], [1, to - from]]))})
}

#[test]
fn a_read_of_some_columns_closes_the_whole_group() {
    let mms = || [matmul("a", "o", 0, 64), matmul("b", "o", 0, 64)];
    let [a, b] = mms();
    expect(&[a, copy_columns("r", "o", 60, 64), b], &[("a", 3), ("b", 6)]);
    // Columns next to it belong to no group.
    let [a, b] = mms();
    let other = matmul("z", "o", 64, 128);
    expect(&[other, a, copy_columns("r", "o", 64, 128), b], &[("z", 3), ("a", 1), ("b", 6)]);
}

#[test]
fn cores_have_groups_of_their_own() {
    let one = json::write(&program(&[matmul("a", "o", 0, 64)]));
    let core: Value = serde_json::from_str(&one).unwrap();
    let core = j!({"memlocs": core["memlocs"], "instructions": core["instructions"]});
    let two = j!({"format": "hadal-bir", "version": 1, "cores": [core, core]});
    let v = verified(json::parse(&two.to_string(), "two").unwrap(), Target::TRN2);
    for c in 0..2 {
        assert_eq!(flags(v.core(c).unwrap()), named(&[("a", 3)]));
        assert_eq!(v.groups(c).len(), 1);
    }
}

#[test]
fn a_sparse_matmul_starts_afresh() {
    let mut v: Value = serde_json::from_str(&json::write(&program(&[matmul("a", "o", 0, 64)]))).unwrap();
    let dense = v["instructions"][0].clone();
    let named_dense = |name: &str| {
        let mut m = dense.clone();
        m["name"] = j!(name);
        m
    };
    let sparse = j!({"op": "MatmultSparse", "name": "s", "compress_ratio": 1,
        "ifmap": common::ap("x", "bfloat16", j!([[1, 128], [1, 64]])),
        "weights": common::ap("w", "bfloat16", j!([[1, 128], [1, 128]])),
        "tags": common::ap("r", "int16", j!([[1, 128], [1, 32]])),
        "out": common::ap("o", "float32", j!([[1, 128], [1, 64]]))});
    v["instructions"] = j!([named_dense("a"), sparse, named_dense("b")]);
    let m = json::parse(&v.to_string(), "t").unwrap();
    assert_eq!(flags(verified(m, Target::TRN2).core(0).unwrap()), named(&[("a", 3), ("b", 6)]));
}

#[test]
fn a_zero_region_over_another_open_group_is_refused() {
    let zoned = |mut m: Value, n: u8| {
        m["psum_zero_region"] = j!(n);
        m
    };
    // `o` is banks 0 and 1, `p` banks 2 and 3. 2^1 banks from 2 leave `o` alone, 2^2 banks clear it.
    let build = |n| {
        program(&[
            matmul("a", "o", 0, 64),
            zoned(matmul("b", "p", 0, 64), n),
            matmul("c", "o", 0, 64),
            zoned(matmul("d", "p", 0, 64), n),
        ])
    };
    verified(build(1), Target::TRN3);
    let e = verify(build(2), LowerOptions::new(Target::TRN3)).unwrap_err();
    assert_eq!(e.len(), 1);
    assert_eq!((e[0].code, e[0].subject.as_str()), ("V-455", "b"));
    assert!(
        e[0].text.contains("`b` zeroes banks 0..4") && e[0].text.contains("`a` writes banks 0..1"),
        "{}",
        e[0]
    );
    // Once the first group is closed its banks may be cleared.
    let m = program(&[matmul("a", "o", 0, 64), copy("r", "o"), zoned(matmul("b", "p", 0, 64), 2)]);
    verified(m, Target::TRN3);
}

#[test]
fn the_program_attribute_is_carried() {
    for value in [true, false] {
        let mut v: Value = serde_json::from_str(&json::write(&program(&[matmul("a", "o", 0, 64)]))).unwrap();
        v["attrs"] = j!({"auto_psum_accumulate": value});
        let v = verified(json::parse(&v.to_string(), "t").unwrap(), Target::TRN2);
        assert_eq!(v.core(0).unwrap().attrs.auto_psum_accumulate, Some(value));
        let again = json::parse(&json::write(v.module()), "again").unwrap();
        assert_eq!(again.cores[0].attrs.auto_psum_accumulate, Some(value));
    }
}
