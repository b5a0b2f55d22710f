//! Small programs, built as the interchange form.
#![allow(dead_code, unreachable_pub)]

use hadal_ir::encode::{Lowered, lower};
use hadal_ir::json;
use hadal_ir::program::{Module, Op, Program};
use hadal_ir::verify::{LowerOptions, Verified, verify};
use hadal_isa::Target;
use serde_json::{Value, json as j};

pub fn ap(loc: &str, dtype: &str, pattern: Value) -> Value {
    j!({"loc": loc, "dtype": dtype, "pattern": pattern})
}

pub fn sb(name: &str, offset: u32, bytes: u32) -> Value {
    j!({"name": name, "space": "SB", "partition": 0, "partitions": 128, "offset": offset, "bytes": bytes})
}

pub fn psum(name: &str, bank: u32, bytes: u32) -> Value {
    j!({"name": name, "space": "PSUM", "partition": 0, "partitions": 128, "bank": bank, "offset": 0, "bytes": bytes})
}

/// A bfloat16 matmul of 128 x 128 into float32 columns `from..to` of `out`.
pub fn matmul(name: &str, out: &str, from: u32, to: u32) -> Value {
    let n = to - from;
    j!({"op": "Matmult", "name": name,
        "ifmap": ap("x", "bfloat16", j!([[1, 128], [1, n]])),
        "weights": ap("w", "bfloat16", j!([[1, 128], [1, 128]])),
        "out": {"loc": out, "dtype": "float32", "offset": from * 4, "pattern": [[1, 128], [1, n]]}})
}

pub fn copy(name: &str, src: &str) -> Value {
    j!({"op": "TensorCopy", "name": name, "src": ap(src, "float32", j!([[1, 128], [1, 64]])),
        "dst": ap("r", "float32", j!([[1, 128], [1, 64]]))})
}

pub fn memset(name: &str, loc: &str) -> Value {
    j!({"op": "Memset", "name": name, "dst": ap(loc, "float32", j!([[1, 128], [1, 64]])), "value": 1.0})
}

/// Memory for [`matmul`]: x, w, r in SB, o and p in PSUM.
pub fn program(instructions: &[Value]) -> Module {
    let v = j!({"format": "hadal-bir", "version": 1,
        "memlocs": [sb("x", 0, 8192), sb("w", 8192, 256), sb("r", 16384, 2048), psum("o", 0, 4096), psum("p", 2, 4096)],
        "instructions": instructions});
    json::parse(&v.to_string(), "t.bir.json").unwrap()
}

pub fn verified(m: Module, target: Target) -> Verified {
    verify(m, LowerOptions::new(target)).unwrap_or_else(|e| panic!("{}", e[0]))
}

/// (name, accumulate byte) of every matmul after the passes.
pub fn flags(p: &Program) -> Vec<(String, u8)> {
    p.instrs
        .iter()
        .filter_map(|i| match &i.op {
            Op::Matmult(m) => Some((i.name.clone(), m.flags.unwrap())),
            Op::MatmultMx(m) => Some((i.name.clone(), m.accumulate_flags.unwrap())),
            _ => None,
        })
        .collect()
}

pub fn lowered(m: Module, target: Target) -> Lowered {
    lower(&verified(m, target)).unwrap()
}

/// Runs `test` on `n` cases, each drawn from its own seed; the same cases on every machine.
pub fn seeded(
    n: u64,
    mut test: impl FnMut(&mut arbtest::arbitrary::Unstructured<'_>) -> arbtest::arbitrary::Result<()>,
) {
    for seed in 0..n {
        // splitmix64 from the case's number.
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let bytes: Vec<u8> = (0..512)
            .flat_map(|_| {
                state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                let mut z = state;
                z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                (z ^ (z >> 31)).to_le_bytes()
            })
            .collect();
        test(&mut arbtest::arbitrary::Unstructured::new(&bytes))
            .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
}
