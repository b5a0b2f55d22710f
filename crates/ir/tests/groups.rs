//! First writes and accumulation groups: the accumulate byte of every matmul.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{copy, flags, matmul, memset, program, verified};
use hadal_ir::json;
use hadal_ir::program::Op;
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
