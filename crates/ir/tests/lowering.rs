//! Forms that no golden listing has: gathers, row pairs on gen2, interleaved weights, inferred encodings.
//! Expected bytes are written out by hand from the descriptor layouts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{ap, psum, sb};
use hadal_ir::encode::lower;
use hadal_ir::json;
use hadal_ir::verify::{LowerOptions, Profile, verify};
use hadal_isa::{Target, Word};
use serde_json::{Value, json as j};

fn parse(instruction: &Value) -> hadal_ir::program::Module {
    let v = j!({"format": "hadal-bir", "version": 1,
        "memlocs": [sb("x", 0, 4096), sb("w", 8192, 1024), sb("i", 16384, 2048), sb("s", 20480, 1024),
            psum("o", 1, 4096)],
        "instructions": [instruction]});
    json::parse(&v.to_string(), "t.bir.json").unwrap()
}

fn words(instruction: &Value, options: LowerOptions) -> Vec<Word> {
    let v = verify(parse(instruction), options).unwrap_or_else(|e| panic!("{}", e[0]));
    let stream = lower(&v).unwrap().cores.remove(0);
    stream.bundles().map(|b| b.word).collect()
}

fn codes(instruction: &Value, options: LowerOptions) -> Vec<&'static str> {
    verify(parse(instruction), options).err().unwrap_or_default().iter().map(|v| v.code).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn gathered(mut operand: Value, offset: u32, n: u32) -> Value {
    let parts = operand["pattern"][0][1].clone();
    operand["index"] = j!({"loc": "i", "dtype": "uint16", "offset": offset, "pattern": [[1, parts], [1, n]]});
    operand
}

#[test]
fn gathered_dense_operands() {
    let m = j!({"op": "Matmult", "name": "m",
        "ifmap": gathered(ap("x", "bfloat16", j!([[1, 128], [1, 300]])), 256, 300),
        "weights": gathered(ap("w", "bfloat16", j!([[1, 128], [1, 96]])), 0, 96),
        "out": ap("o", "float32", j!([[1, 96], [1, 300]]))});
    for target in [Target::TRN1, Target::TRN2, Target::TRN3] {
        let got = words(&m, LowerOptions::new(target));
        assert_eq!(got.iter().map(|w| w.0[0]).collect::<Vec<_>>(), [1, 2], "{target}");
        // data base 0x2000 with byte 3 |= 0x20, index address 0x4000, counts 96 1 1.
        assert_eq!(hex(&got[0].0[0x10..0x20]), "00200020004000006000010001000000", "{target}");
        assert_eq!(got[0].0[0x27], 96);
        // data base 0, index address 0x4100, counts 300 1 1.
        assert_eq!(hex(&got[1].0[0x10..0x20]), "00000020004100002c01010001000000", "{target}");
    }
}

#[test]
fn gathered_mx_operands() {
    let scale = |at: u32, n: u32| j!({"loc": "s", "dtype": "float8_e8m0fnu", "partition": 4, "offset": at, "pattern": [[1, 4], [1, n]]});
    let m = j!({"op": "MatmultMx", "name": "m",
        "ifmap": gathered(ap("x", "float8_e5m2_x4", j!([[1, 32], [1, 300]])), 256, 300),
        "weights": gathered(ap("w", "float8_e4m3fn_x4", j!([[1, 32], [1, 64]])), 0, 64),
        "ifmap_scale": scale(0, 300), "weights_scale": scale(512, 64),
        "out": ap("o", "float32", j!([[1, 64], [1, 300]]))});
    let got = words(&m, LowerOptions::new(Target::TRN3));
    assert_eq!(got.iter().map(|w| w.0[0]).collect::<Vec<_>>(), [0x09, 0x0A]);
    // positions 0x4000 with byte 3 |= 0x20, data 0x2000, scale 0x5200, 64 * 4 elements, step 1, scale row 4.
    assert_eq!(hex(&got[0].0[0x10..0x20]), "00400020002000000052000000010104");
    // positions 0x4100, data 0, scale 0x5000, 300 * 4 = 0x4b0.
    assert_eq!(hex(&got[1].0[0x10..0x20]), "004100200000000000500000b0040104");
}

#[test]
fn a_cached_gather_needs_the_same_positions() {
    let one = |name: &str, at: u32| {
        j!({"op": "Matmult", "name": name, "ifmap": ap("x", "bfloat16", j!([[1, 128], [1, 64]])),
            "weights": gathered(ap("w", "bfloat16", j!([[1, 128], [1, 32]])), at, 32),
            "out": {"loc": "o", "dtype": "float32", "offset": 0, "pattern": [[1, 32], [1, 64]]}})
    };
    let set = |loc: &str, at: u32| {
        j!({"op": "Memset", "name": format!("set {loc} {at}"), "value": 0,
            "dst": {"loc": loc, "dtype": "uint16", "offset": at, "pattern": [[1, 128], [1, 1]]}})
    };
    let loads = |instructions: Value| {
        let mut v: Value = serde_json::from_str(&json::write(&parse(&one("a", 0)))).unwrap();
        v["instructions"] = instructions;
        let m = json::parse(&v.to_string(), "t").unwrap();
        let v = verify(m, LowerOptions::new(Target::TRN2)).unwrap_or_else(|e| panic!("{}", e[0]));
        let stream = lower(&v).unwrap().cores.remove(0);
        stream.bundles().filter(|b| b.word.0[0] == 1).count()
    };
    assert_eq!(loads(j!([one("a", 0), one("b", 0)])), 1);
    assert_eq!(loads(j!([one("a", 0), one("b", 64)])), 2, "other positions");
    assert_eq!(loads(j!([one("a", 0), set("i", 0), one("b", 0)])), 2, "positions overwritten");
    assert_eq!(
        loads(j!([one("a", 0), set("w", 1022), one("b", 0)])),
        2,
        "data overwritten past the first 32"
    );
}

#[test]
fn a_gather_may_pick_from_few_elements() {
    // 128 positions into 16 elements: more positions than the location has elements after its base.
    let m = j!({"op": "Matmult", "name": "m", "ifmap": ap("x", "bfloat16", j!([[1, 128], [1, 8]])),
        "weights": {"loc": "w", "dtype": "bfloat16", "offset": 992, "pattern": [[1, 128], [1, 128]],
            "index": ap("i", "int32", j!([[1, 128], [1, 128]]))},
        "out": ap("o", "float32", j!([[1, 128], [1, 8]]))});
    assert_eq!(words(&m, LowerOptions::new(Target::TRN2)).len(), 2);
    let mut outside = m.clone();
    outside["weights"]["offset"] = j!(1024);
    assert_eq!(codes(&outside, LowerOptions::new(Target::TRN2)), ["V-301"]);
}

fn pairs(mode: &str, x: Value, w: Value, out: Value) -> Value {
    j!({"op": "Matmult", "name": "m", "perf_mode": mode, "ifmap": ap("x", "float8_e4m3", x),
        "weights": ap("w", "float8_e4m3", w), "out": ap("o", "float32", out)})
}

#[test]
fn double_row_on_gen2_splits_its_dimension() {
    let old = LowerOptions { profile: Profile::NeuronxCc224, ..LowerOptions::new(Target::TRN1) };
    let (x, w) = (j!([[1, 128], [1, 1024]]), j!([[1, 128], [2, 256]]));
    for out in [j!([[1, 128], [1, 512]]), j!([[1, 128], [1, 1024]])] {
        let m = pairs("DoubleRow", x.clone(), w.clone(), out);
        assert_eq!(codes(&m, LowerOptions::new(Target::TRN1)).first(), Some(&"V-416"));
        let got = words(&m, old);
        assert_eq!(got.len(), 2);
        let (load, mm) = (&got[0].0, &got[1].0);
        // [2, 256] becomes [256, 2], [2, 128]; the unit dimension trails.
        assert_eq!(hex(&load[0x10..0x20]), "00200000000102000100020080000100");
        assert_eq!((load[0x21], load[0x23], load[0x26], load[0x27]), (0x02, 1, 128, 128));
        // [1, 1024] becomes [512, 2], [1, 512].
        assert_eq!(hex(&mm[0x10..0x20]), "00000000000201000100020000020100");
        // 512 columns in bank 1, whether the destination was given as 512 or as 1024.
        assert_eq!(hex(&mm[0x30..0x40]), "00080002010001000100000201000100");
        assert_eq!((mm[0x21], mm[0x27], mm[0x2B]), (0x02, 128, 3));
    }
}

#[test]
fn interleaved_weights_stay_as_they_are() {
    let m = pairs(
        "DoubleRowSwInterleave",
        j!([[1, 128], [2, 512], [1, 2]]),
        j!([[1, 128], [1, 256]]),
        j!([[1, 128], [1, 512]]),
    );
    for target in [Target::TRN2, Target::TRN3] {
        let got = words(&m, LowerOptions::new(target));
        let (load, mm) = (&got[0].0, &got[1].0);
        assert_eq!(hex(&load[0x10..0x20]), "00200000010001000100000101000100");
        assert_eq!((load[0x21], load[0x23], load[0x27]), (0x02, 4, 128));
        // The pair comes first: [2, 512], [1, 2] becomes [1, 2], [2, 512].
        assert_eq!(hex(&mm[0x10..0x20]), "00000000010002000100020000020100");
    }
}

#[test]
fn inferred_modes_are_double_row_with_their_own_ordinal() {
    let program = |mode: &str| {
        pairs(
            mode,
            j!([[1, 128], [512, 2], [1, 512]]),
            j!([[1, 128], [128, 2], [1, 128]]),
            j!([[1, 128], [1, 512]]),
        )
    };
    let options = LowerOptions::new(Target::TRN2);
    let inferred = LowerOptions { allow_inferred: true, ..options };
    let proven = words(&program("DoubleRow"), options);
    for (mode, ordinal) in [("DoubleColumn", 2), ("DoublePixel", 3)] {
        assert_eq!(codes(&program(mode), options), ["V-431"]);
        let mut want = proven.clone();
        want[0].0[0x23] = ordinal;
        assert_eq!(words(&program(mode), inferred), want);
    }
}

#[test]
fn legacy_e4m3_on_gen4_is_a_note() {
    let m = |dtype: &str| {
        j!({"op": "Matmult", "name": "m", "ifmap": ap("x", dtype, j!([[1, 128], [1, 64]])),
            "weights": ap("w", dtype, j!([[1, 128], [1, 64]])), "out": ap("o", "float32", j!([[1, 64], [1, 64]]))})
    };
    let notes = |dtype: &str, target| {
        let v = verify(parse(&m(dtype)), LowerOptions::new(target)).unwrap();
        v.module().notes.iter().map(|n| n.code).collect::<Vec<_>>()
    };
    assert_eq!(notes("float8_e4m3", Target::TRN3), ["N-E4M3"]);
    assert!(notes("float8_e4m3", Target::TRN2).is_empty());
    assert!(notes("float8_e4m3fn", Target::TRN3).is_empty());
}
