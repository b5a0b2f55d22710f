//! Placement: live buffers never overlap, and the same program is always placed the same way.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{ap, sb};
use hadal_ir::json;
use hadal_ir::program::{MemLoc, Module, Space};
use hadal_ir::verify::{LowerOptions, verify};
use hadal_isa::Target;
use serde_json::{Value, json as j};

/// A chain of copies over buffers of random sizes, each read a few instructions after it was written.
fn random_program(u: &mut arbtest::arbitrary::Unstructured<'_>) -> arbtest::arbitrary::Result<Module> {
    let n = u.int_in_range(2..=24usize)?;
    let mut locs: Vec<Value> = Vec::new();
    let mut instrs: Vec<Value> = Vec::new();
    for i in 0..n {
        let space = if u.int_in_range(0..=2)? == 0 { "PSUM" } else { "SB" };
        let bytes = if space == "PSUM" {
            4 * u.int_in_range(1..=1024u32)?
        } else {
            4 * u.int_in_range(1..=12000u32)?
        };
        let partitions = *u.choose(&[16, 32, 48, 64, 96, 128])?;
        let mut l = j!({"name": format!("b{i}"), "space": space, "partitions": partitions, "bytes": bytes});
        if space == "SB" && u.int_in_range(0..=9)? == 0 {
            l["partition"] = j!(0);
            l["offset"] = j!(4 * u.int_in_range(0..=1000u32)?);
        }
        locs.push(l);
        let name = format!("b{i}");
        let ap = |l: &str| j!({"loc": l, "dtype": "float32", "pattern": [[1, 16], [1, 1]]});
        instrs.push(j!({"op": "Memset", "name": format!("set{i}"), "dst": ap(&name), "value": 0.0}));
        let back = u.int_in_range(0..=i)?;
        instrs.push(j!({"op": "TensorCopy", "name": format!("use{i}"), "dst": ap(&name), "src": ap(&format!("b{}", i - back))}));
    }
    let v = j!({"format": "hadal-bir", "version": 1, "memlocs": locs, "instructions": instrs});
    Ok(json::parse(&v.to_string(), "random").unwrap())
}

fn life(m: &Module, i: usize) -> (usize, usize) {
    let uses: Vec<usize> = m.cores[0]
        .instrs
        .iter()
        .enumerate()
        .filter(|(_, x)| x.op.operands().iter().any(|o| o.2.loc.0 as usize == i))
        .map(|(k, _)| k)
        .collect();
    (uses[0], *uses.last().unwrap())
}

fn boxes_meet(a: &MemLoc, b: &MemLoc) -> bool {
    let span = |l: &MemLoc| {
        let (p, o) = (l.partition().unwrap(), u64::from(l.byte_offset().unwrap()));
        (p, p + l.partitions(), o, o + l.bytes())
    };
    let (a, b) = (span(a), span(b));
    a.0 < b.1 && b.0 < a.1 && a.2 < b.3 && b.2 < a.3
}

#[derive(Debug, Default)]
struct Tally {
    placed: usize,
    full: usize,
}

/// Places one random program on two targets and checks the result against the definition.
fn one(u: &mut arbtest::arbitrary::Unstructured<'_>, t: &mut Tally) -> arbtest::arbitrary::Result<()> {
    let m = random_program(u)?;
    for target in [Target::TRN1, Target::TRN3] {
        let first = verify(m.clone(), LowerOptions::new(target));
        let again = verify(m.clone(), LowerOptions::new(target));
        match (first, again) {
            (Ok(a), Ok(b)) => {
                t.placed += 1;
                assert_eq!(a, b, "placement differs between runs");
                let out = a.module();
                let locs = &out.cores[0].locs;
                for (i, x) in locs.iter().enumerate() {
                    let size = match x.space() {
                        Space::Sb => u64::from(target.sbuf_bytes_per_partition()),
                        _ => 16384,
                    };
                    assert!(u64::from(x.byte_offset().unwrap()) + x.bytes() <= size, "{}", x.name);
                    assert!(x.partition().unwrap() + x.partitions() <= 128);
                    for (k, y) in locs.iter().enumerate().skip(i + 1) {
                        let fixed = m.cores[0].locs[i].is_placed() && m.cores[0].locs[k].is_placed();
                        let (a, b) = (life(out, i), life(out, k));
                        let both_live = a.0 <= b.1 && b.0 <= a.1;
                        if x.space() == y.space() && both_live && !fixed {
                            assert!(!boxes_meet(x, y), "{} and {}", x.name, y.name);
                        }
                    }
                }
            }
            (Err(a), Err(b)) => {
                t.full += 1;
                assert_eq!(a, b);
                for v in &a {
                    assert!(["V-444", "V-445"].contains(&v.code), "{v}");
                    assert!(v.text.contains("does not fit"), "{v}");
                }
            }
            _ => panic!("verification is not deterministic"),
        }
    }
    Ok(())
}

#[test]
fn live_buffers_never_overlap() {
    let mut t = Tally::default();
    arbtest::arbtest(|u| one(u, &mut t)).budget_ms(1000);
    assert!(t.placed > 100 && t.full > 0, "{t:?}");
}

#[test]
#[ignore = "a thousand programs; see docs/testing.md"]
fn a_thousand_programs_are_placed() {
    let mut t = Tally::default();
    common::seeded(1_000, |u| one(u, &mut t));
    println!("{t:?}");
    assert_eq!(t.placed + t.full, 2_000);
    assert!(t.placed > 1_000 && t.full >= 10, "{t:?}");
}

fn unplaced(name: &str, space: &str, partitions: u32, bytes: u32) -> Value {
    j!({"name": name, "space": space, "partitions": partitions, "bytes": bytes})
}

fn placed(memlocs: Value, instructions: Value, target: Target) -> Module {
    let v = j!({"format": "hadal-bir", "version": 1, "memlocs": memlocs, "instructions": instructions});
    let m = json::parse(&v.to_string(), "t").unwrap();
    verify(m, LowerOptions::new(target)).unwrap_or_else(|e| panic!("{}", e[0])).module().clone()
}

fn first_partition(m: &Module, name: &str) -> u32 {
    let id = m.cores[0].find_loc(name).unwrap();
    m.cores[0].loc(id).unwrap().partition().unwrap()
}

/// Partition p feeds array row p and column c drains to partition c (D-27).
#[test]
fn operands_land_on_their_tile() {
    for (position, size) in
        [([32, 0], [32, 32]), ([64, 64], [64, 64]), ([0, 96], [32, 32]), ([96, 32], [32, 32])]
    {
        let [k, n] = size;
        let m = placed(
            j!([unplaced("x", "SB", k, 128), unplaced("w", "SB", k, 256), unplaced("o", "PSUM", n, 256)]),
            j!([{"op": "Matmult", "name": "m", "tile_position": position, "tile_size": size,
                "ifmap": ap("x", "bfloat16", j!([[1, k], [1, 64]])),
                "weights": ap("w", "bfloat16", j!([[1, k], [1, n]])),
                "out": ap("o", "float32", j!([[1, n], [1, 64]]))}]),
            Target::TRN2,
        );
        let got = ["x", "w", "o"].map(|n| first_partition(&m, n));
        assert_eq!(got, [position[0], position[0], position[1]], "{position:?}");
    }
}

#[test]
fn operands_without_a_tile_share_their_rows() {
    // 32-partition weights that fit no lower than quadrant 1: the moving operand follows, and so does a
    // list of positions.
    let mut locs = vec![sb("big", 0, 229_376)];
    locs[0]["partitions"] = j!(32);
    locs.extend([unplaced("w", "SB", 32, 64), unplaced("x", "SB", 32, 64), unplaced("i", "SB", 32, 64)]);
    locs.push(unplaced("o", "PSUM", 32, 64));
    let m = placed(
        Value::Array(locs),
        j!([{"op": "Memset", "name": "keep", "dst": ap("big", "uint8", j!([[1, 32], [1, 1]])), "value": 0},
            {"op": "Matmult", "name": "m", "ifmap": ap("x", "bfloat16", j!([[1, 32], [1, 16]])),
            "weights": {"loc": "w", "dtype": "bfloat16", "pattern": [[1, 32], [1, 32]],
                "index": ap("i", "uint16", j!([[1, 32], [1, 32]]))},
            "out": ap("o", "float32", j!([[1, 32], [1, 16]]))},
            {"op": "TensorCopy", "name": "use", "dst": ap("big", "uint8", j!([[1, 32], [1, 1]])),
             "src": {"loc": "big", "dtype": "uint8", "offset": 4, "pattern": [[1, 32], [1, 1]]}}]),
        Target::TRN2,
    );
    assert_eq!(["w", "x", "i"].map(|n| first_partition(&m, n)), [32, 32, 32]);
}

/// Scale rows sit in the quadrant of their data.
#[test]
fn scales_follow_their_data() {
    let scale = |loc: &str, n: u32| j!({"loc": loc, "dtype": "float8_e8m0fnu", "partition": 8, "pattern": [[1, 4], [1, n]]});
    let mut fixed = sb("w", 0, 256);
    fixed["partition"] = j!(64);
    fixed["partitions"] = j!(32);
    let m = placed(
        j!([
            fixed,
            unplaced("src", "SB", 32, 512),
            unplaced("xs", "SB", 32, 64),
            unplaced("x", "SB", 32, 256),
            unplaced("ws", "SB", 32, 64),
            unplaced("o", "PSUM", 64, 256)
        ]),
        j!([{"op": "QuantizeMx", "name": "q", "src": ap("src", "bfloat16", j!([[1, 32], [1, 256]])),
             "data": ap("x", "float8_e5m2_x4", j!([[1, 32], [1, 64]])), "scale": scale("xs", 64)},
            {"op": "MatmultMx", "name": "m", "ifmap": ap("x", "float8_e5m2_x4", j!([[1, 32], [1, 64]])),
             "weights": ap("w", "float8_e4m3fn_x4", j!([[1, 32], [1, 64]])), "ifmap_scale": scale("xs", 64),
             "weights_scale": scale("ws", 64), "out": ap("o", "float32", j!([[1, 64], [1, 64]]))}]),
        Target::TRN3,
    );
    assert_eq!(["x", "xs", "ws"].map(|n| first_partition(&m, n)), [64, 64, 64]);
    assert_eq!(first_partition(&m, "o"), 0);
}

/// `a` dies before `b` is born; together they are more than SBUF holds.
fn two_lives(second_source: &str) -> Value {
    let one = |loc: &str| ap(loc, "float32", j!([[1, 128], [1, 16]]));
    j!({"format": "hadal-bir", "version": 1,
        "memlocs": [unplaced("a", "SB", 128, 100_000), unplaced("b", "SB", 128, 100_000), unplaced("c", "SB", 128, 64)],
        "instructions": [
            {"op": "Memset", "name": "set a", "dst": one("a"), "value": 0.0},
            {"op": "TensorCopy", "name": "keep", "dst": one("c"), "src": one("a")},
            {"op": "Memset", "name": "set b", "dst": one("b"), "value": 0.0},
            {"op": "TensorCopy", "name": "use", "dst": one("b"), "src": one(second_source)}]})
}

#[test]
fn space_is_reused_by_live_range() {
    let m = json::parse(&two_lives("c").to_string(), "t").unwrap();
    // 196608 bytes a partition on trn1: one buffer takes the other's place.
    let v = verify(m.clone(), LowerOptions::new(Target::TRN1)).unwrap();
    let offsets: Vec<_> = v.module().cores[0].locs[..2].iter().map(|l| l.byte_offset()).collect();
    assert_eq!(offsets[0], offsets[1]);
    // 229376 on trn2: both have their own.
    let v = verify(m, LowerOptions::new(Target::TRN2)).unwrap();
    let locs = &v.module().cores[0].locs;
    assert!(!boxes_meet(&locs[0], &locs[1]));
}

#[test]
fn what_does_not_fit_is_named_with_what_is_missing() {
    let m = json::parse(&two_lives("a").to_string(), "t").unwrap();
    let e = verify(m, LowerOptions::new(Target::TRN1)).unwrap_err();
    assert_eq!(e.len(), 1);
    // Beside `a` (100000 bytes) 96608 of 196608 are left; `c` is dead by then.
    assert_eq!((e[0].code, e[0].subject.as_str()), ("V-444", "SB location `b`"));
    assert!(
        e[0].text.contains("`set b`") && e[0].text.contains("is 96608: 3392 bytes short"),
        "{}",
        e[0].text
    );
}
