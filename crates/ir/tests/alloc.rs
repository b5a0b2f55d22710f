//! Placement: live buffers never overlap, and the same program is always placed the same way.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

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

#[test]
fn live_buffers_never_overlap() {
    let (mut placed, mut full) = (0, 0);
    arbtest::arbtest(|u| {
        let m = random_program(u)?;
        for target in [Target::TRN1, Target::TRN3] {
            let first = verify(m.clone(), LowerOptions::new(target));
            let again = verify(m.clone(), LowerOptions::new(target));
            match (first, again) {
                (Ok(a), Ok(b)) => {
                    placed += 1;
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
                    full += 1;
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
    })
    .budget_ms(1000);
    assert!(placed > 100 && full > 0, "placed {placed}, full {full}");
}
