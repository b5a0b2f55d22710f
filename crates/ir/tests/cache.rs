//! The weight cache against a naive model of the array: every Matmul sees the weights its instruction
//! names, as they are in memory at that point.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;

use common::{ap, sb};
use hadal_ir::encode::{Item, lower};
use hadal_ir::json;
use hadal_ir::program::{Module, Op};
use hadal_ir::verify::{LowerOptions, verify};
use hadal_isa::{Inst, Pattern, Target, decode};
use serde_json::{Value, json as j};

/// What one 32 x 32 quadrant was loaded with: the pattern and how often its memory had been written.
type Held = Option<(Pattern<3>, u8, u32)>;

fn random_program(u: &mut arbtest::arbitrary::Unstructured<'_>) -> arbtest::arbitrary::Result<Module> {
    let mut instrs: Vec<Value> = Vec::new();
    let mut locs = vec![sb("x", 0, 256)];
    for i in 0..3u32 {
        locs.push(sb(&format!("w{i}"), 1024 + 64 * i, 64));
    }
    let n = u.int_in_range(2..=14usize)?;
    for k in 0..n {
        let w = u.int_in_range(0..=2u32)?;
        if u.int_in_range(0..=5)? == 0 {
            let (start, parts) = *u.choose(&[(0, 128), (0, 32), (64, 64), (96, 32)])?;
            instrs.push(j!({"op": "Memset", "name": format!("s{k}"), "value": 1.0,
                "dst": {"loc": format!("w{w}"), "dtype": "bfloat16", "partition": start, "pattern": [[1, parts], [1, 32]]}}));
            continue;
        }
        // A tile of the array: rows, columns and where.
        let (row, rows) = *u.choose(&[(0, 128), (0, 64), (64, 64), (0, 32), (32, 32), (96, 32)])?;
        let col = *u.choose(&[0, 32, 96])?;
        let o = format!("o{k}");
        locs.push(j!({"name": o, "space": "PSUM", "partition": 0, "partitions": 128, "bank": k % 8, "offset": 128 * (k / 8), "bytes": 64}));
        let dtype = if u.int_in_range(0..=7)? == 0 { "float32" } else { "bfloat16" };
        let cols = if dtype == "float32" { 16 } else { 32 };
        let at = |loc: &str, n: u32| {
            let mut a = ap(loc, dtype, j!([[1, rows], [1, n]]));
            a["partition"] = j!(row);
            a
        };
        let mut out = ap(&o, "float32", j!([[1, cols], [1, 8]]));
        out["partition"] = j!(col);
        instrs.push(j!({"op": "Matmult", "name": format!("m{k}"), "ifmap": at("x", 8),
            "weights": at(&format!("w{w}"), cols), "out": out}));
    }
    let v = j!({"format": "hadal-bir", "version": 1, "memlocs": locs, "instructions": instrs});
    Ok(json::parse(&v.to_string(), "random").unwrap())
}

fn quadrants(row_group: u8, col_group: u8) -> Vec<usize> {
    (0..16).filter(|q| row_group >> (q / 4) & 1 == 1 && col_group >> (q % 4) & 1 == 1).collect()
}

/// Replays the stream; returns how many loads it saw.
fn replay(m: &Module, cache: bool) -> (usize, usize) {
    let options = LowerOptions { weight_cache: cache, ..LowerOptions::new(Target::TRN2) };
    let v = verify(m.clone(), options).unwrap_or_else(|e| panic!("{}", e[0]));
    let p = v.core(0).unwrap();
    let stream = lower(&v).unwrap().cores.remove(0);
    let mut array: [Held; 16] = [None; 16];
    // Writes to each location so far: any write makes the tile a different one.
    let mut version: BTreeMap<u32, u32> = BTreeMap::new();
    let mut loads = 0;
    for item in &stream.items {
        match item {
            Item::Host(i) => {
                for (_, _, ap) in p.instrs[*i].op.operands() {
                    *version.entry(ap.loc.0).or_default() += 1;
                }
            }
            Item::Bundle(b) => {
                let Op::Matmult(mm) = &p.instrs[b.instr].op else { panic!() };
                let now = version.get(&mm.weights.loc.0).copied().unwrap_or(0);
                match decode(&b.word, Target::TRN2).inst {
                    Inst::LoadStationary(l) => {
                        loads += 1;
                        for q in quadrants(l.row_group, l.col_group) {
                            array[q] = Some((l.weights, l.weights_tag, now));
                        }
                    }
                    Inst::Matmul(x) => {
                        for q in quadrants(x.row_group, x.col_group) {
                            let (pattern, tag, seen) = array[q].expect("a matmul on an unloaded quadrant");
                            let loc = &p.locs[mm.weights.loc.0 as usize];
                            let start = loc.partition().unwrap() + mm.weights.partition;
                            assert_eq!(
                                pattern.start,
                                hadal_isa::Addr4::sbuf(start, loc.byte_offset().unwrap())
                            );
                            assert_eq!(u64::from(pattern.counts[0]), mm.weights.free_elements());
                            assert_eq!(tag, x.moving_tag);
                            // A write to other partitions of the tile's memory may keep it; a write to its own may not.
                            assert!(seen == now || disjoint_writes(p, b.instr, &mm.weights, seen));
                        }
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    (loads, stream.loads_elided)
}

/// Whether the writes to the weights' location since version `seen`, up to instruction `until`, all lie
/// on other partitions.
fn disjoint_writes(
    p: &hadal_ir::program::Program,
    until: usize,
    w: &hadal_ir::program::Ap,
    seen: u32,
) -> bool {
    let mut count = 0;
    p.instrs[..until].iter().all(|i| {
        let Op::Memset { dst, .. } = &i.op else { return true };
        if dst.loc != w.loc {
            return true;
        }
        count += 1;
        let (a, b) = (u64::from(dst.partition), u64::from(w.partition));
        count <= seen || a + dst.partitions() <= b || b + w.partitions() <= a
    })
}

#[derive(Debug, Default)]
struct Tally {
    with: usize,
    elided: usize,
    without: usize,
}

fn one(u: &mut arbtest::arbitrary::Unstructured<'_>, t: &mut Tally) -> arbtest::arbitrary::Result<()> {
    let m = random_program(u)?;
    let a = replay(&m, true);
    let b = replay(&m, false);
    assert_eq!(b.1, 0);
    assert_eq!(a.0 + a.1, b.0, "loads plus elided loads are the loads without a cache");
    t.with += a.0;
    t.elided += a.1;
    t.without += b.0;
    Ok(())
}

#[test]
fn every_matmul_sees_its_weights() {
    let mut t = Tally::default();
    arbtest::arbtest(|u| one(u, &mut t)).budget_ms(1000);
    assert!(t.elided > 0 && t.with < t.without, "the cache never hit: {t:?}");
}

#[test]
#[ignore = "ten thousand programs; see docs/testing.md"]
fn ten_thousand_programs_see_their_weights() {
    let mut t = Tally::default();
    common::seeded(10_000, |u| one(u, &mut t));
    println!("{t:?}");
    assert!(t.elided > 1_000, "{t:?}");
}
