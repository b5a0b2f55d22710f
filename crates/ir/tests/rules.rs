//! Every rule has a program that breaks it, with the exact text the user sees, and the nearest program
//! that passes.
//!
//! The texts stand in `tests/cases/rules.txt`; `BLESS=1` rewrites that file, for review.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use hadal_ir::json;
use hadal_ir::verify::{LowerOptions, Profile, rules::RULES, verify};
use hadal_isa::Target;
use serde_json::{Value, json as j};

const TRN1: Target = Target::TRN1;
const TRN2: Target = Target::TRN2;
const TRN3: Target = Target::TRN3;

/// Patches: JSON pointer and new value; `null` removes the key; a pointer ending in `/-` appends.
type Patches = Vec<(&'static str, Value)>;

struct Row {
    code: &'static str,
    target: Target,
    profile: Profile,
    base: Value,
    /// Applied to both programs.
    common: Patches,
    /// What breaks the rule.
    fail: Patches,
    /// What the nearest passing program has instead.
    pass: Patches,
    /// Target of the passing program.
    pass_target: Target,
}

fn ap(loc: &str, dtype: &str, pattern: Value) -> Value {
    j!({"loc": loc, "dtype": dtype, "pattern": pattern})
}

fn dense() -> Value {
    j!({
        "memlocs": [
            {"name": "x", "space": "SB", "partition": 0, "partitions": 128, "offset": 0, "bytes": 8192},
            {"name": "w", "space": "SB", "partition": 0, "partitions": 128, "offset": 8192, "bytes": 1024},
            {"name": "o", "space": "PSUM", "partition": 0, "partitions": 128, "bank": 0, "offset": 0, "bytes": 2048}
        ],
        "instructions": [{
            "op": "Matmult", "name": "mm",
            "ifmap": ap("x", "bfloat16", j!([[1, 128], [1, 512]])),
            "weights": ap("w", "bfloat16", j!([[1, 128], [1, 128]])),
            "out": ap("o", "float32", j!([[1, 128], [1, 512]]))
        }]
    })
}

fn double_row() -> Value {
    let mut v = dense();
    let i = &mut v["instructions"][0];
    i["ifmap"] = ap("x", "float8_e4m3", j!([[1, 128], [512, 2], [1, 512]]));
    i["weights"] = ap("w", "float8_e4m3", j!([[1, 128], [128, 2], [1, 128]]));
    i["perf_mode"] = j!("DoubleRow");
    v
}

/// A transpose of bfloat16 [128, 128].
fn transpose() -> Value {
    let mut v = dense();
    let i = &mut v["instructions"][0];
    i["ifmap"] = ap("x", "bfloat16", j!([[1, 128], [1, 128]]));
    i["out"] = ap("o", "bfloat16", j!([[1, 128], [1, 128]]));
    i["is_transpose"] = j!(true);
    v
}

/// Stationary columns picked from `w` by positions in `i`.
fn gather() -> Value {
    let mut v = dense();
    v["memlocs"].as_array_mut().unwrap().push(
        j!({"name": "i", "space": "SB", "partition": 0, "partitions": 128, "offset": 16384, "bytes": 1024}),
    );
    v["instructions"][0]["weights"]["index"] = ap("i", "uint16", j!([[1, 128], [1, 128]]));
    v
}

fn mx() -> Value {
    let sb = |name: &str, offset: u32, bytes: u32| j!({"name": name, "space": "SB", "partition": 0, "partitions": 128, "offset": offset, "bytes": bytes});
    j!({
        "memlocs": [
            sb("src", 0, 4096), sb("x", 4096, 4096), sb("xs", 8192, 1024), sb("w", 9216, 1024), sb("ws", 10240, 256),
            {"name": "o", "space": "PSUM", "partition": 0, "partitions": 128, "bank": 0, "offset": 0, "bytes": 2048}
        ],
        "instructions": [
            {"op": "QuantizeMx", "name": "q",
             "src": ap("src", "bfloat16", j!([[1, 128], [1, 2048]])),
             "data": ap("x", "float8_e5m2_x4", j!([[1, 128], [1, 512]])),
             "scale": ap("xs", "float8_e8m0fnu", j!([[1, 128], [1, 512]]))},
            {"op": "MatmultMx", "name": "mx",
             "ifmap": ap("x", "float8_e5m2_x4", j!([[1, 128], [1, 512]])),
             "weights": ap("w", "float8_e4m3fn_x4", j!([[1, 128], [1, 128]])),
             "ifmap_scale": ap("xs", "float8_e8m0fnu", j!([[1, 128], [1, 512]])),
             "weights_scale": ap("ws", "float8_e8m0fnu", j!([[1, 128], [1, 128]])),
             "out": ap("o", "float32", j!([[1, 128], [1, 512]]))}
        ]
    })
}

fn sparse() -> Value {
    j!({
        "memlocs": [
            {"name": "w", "space": "SB", "partition": 0, "partitions": 128, "offset": 0, "bytes": 256},
            {"name": "x", "space": "SB", "partition": 0, "partitions": 128, "offset": 256, "bytes": 2048},
            {"name": "t", "space": "SB", "partition": 0, "partitions": 128, "offset": 8192, "bytes": 64},
            {"name": "o", "space": "PSUM", "partition": 0, "partitions": 128, "bank": 0, "offset": 0, "bytes": 2048}
        ],
        "instructions": [{
            "op": "MatmultSparse", "name": "sp", "compress_ratio": 2,
            "weights": ap("w", "bfloat16", j!([[1, 128], [1, 128]])),
            "ifmap": ap("x", "bfloat16", j!([[1, 128], [256, 2], [1, 256]])),
            "tags": ap("t", "int16", j!([[1, 128], [1, 32]])),
            "out": ap("o", "float32", j!([[1, 128], [1, 256]]))
        }]
    })
}

/// A copy, an addition and a block transpose around SB tiles, and a DRAM tensor.
fn helpers() -> Value {
    let sb = |name: &str, offset: u32| j!({"name": name, "space": "SB", "partition": 0, "partitions": 64, "offset": offset, "bytes": 256});
    j!({
        "memlocs": [
            sb("a", 0), sb("b", 256), sb("c", 512),
            {"name": "d", "space": "DRAM", "dtype": "float32", "shape": [64, 64]}
        ],
        "instructions": [
            {"op": "DmaCopy", "name": "in", "dst": ap("a", "float32", j!([[1, 64], [1, 64]])),
             "src": ap("d", "float32", j!([[64, 64], [1, 64]]))},
            {"op": "TensorTensor", "name": "add", "dst": ap("b", "float32", j!([[1, 64], [1, 64]])),
             "src0": ap("a", "float32", j!([[1, 64], [1, 64]])),
             "src1": ap("a", "float32", j!([[1, 64], [1, 64]])), "alu": "add"},
            {"op": "Transpose", "name": "tr", "dst": ap("c", "float32", j!([[1, 64], [1, 64]])),
             "src": ap("b", "float32", j!([[1, 64], [1, 64]]))},
            {"op": "AffineSelect", "name": "sel", "dst": ap("b", "float32", j!([[1, 64], [1, 64]])),
             "src": ap("c", "float32", j!([[1, 64], [1, 64]])), "cmp": "is_ge", "base": 0,
             "channel_multiplier": -1, "pattern": [[1, 64]], "on_false": 0.0}
        ]
    })
}

fn base_row(code: &'static str, target: Target, base: Value, fail: Patches) -> Row {
    Row {
        code,
        target,
        profile: Profile::Hardware,
        base,
        common: vec![],
        fail,
        pass: vec![],
        pass_target: target,
    }
}

fn rows() -> Vec<Row> {
    let big = |n: u64| j!([[1, 128], [1, n]]);
    let memset = |p: Value| j!({"op": "Memset", "name": "zero", "dst": {"loc": "o", "dtype": "float32", "pattern": p}, "value": 0.0});
    let mm2 = || dense()["instructions"][0].clone();
    vec![
        base_row("V-207", TRN3, mx(), vec![("/instructions/0/engine", j!("PE"))]),
        base_row("V-211", TRN3, mx(), vec![("/instructions/0/src/pattern/1/1", j!(2044))]),
        base_row("V-270", TRN3, mx(), vec![("/instructions/0/scale/pattern/1/1", j!(256))]),
        Row {
            pass: vec![("/instructions/0/ifmap/offset", j!(7168))],
            ..base_row("V-301", TRN2, dense(), vec![("/instructions/0/ifmap/offset", j!(7170))])
        },
        Row {
            common: vec![("/memlocs/1/partitions", j!(64)), ("/instructions/0/ifmap/pattern/0/1", j!(64))],
            pass: vec![("/instructions/0/weights/pattern/0/1", j!(64))],
            ..base_row("V-302", TRN2, dense(), vec![("/instructions/0/ifmap/pattern/0/1", j!(128))])
        },
        base_row("V-303", TRN2, dense(), vec![("/instructions/0/ifmap/pattern/0/0", j!(2))]),
        Row {
            pass: vec![("/instructions/0/ifmap/pattern", j!([[1, 128], [64, 8], [8, 8], [1, 8]]))],
            ..base_row(
                "V-304",
                TRN2,
                dense(),
                vec![("/instructions/0/ifmap/pattern", j!([[1, 128], [256, 2], [64, 4], [8, 8], [1, 8]]))],
            )
        },
        base_row(
            "V-305",
            TRN2,
            gather(),
            vec![("/instructions/0/out/index", ap("i", "uint16", j!([[1, 128], [1, 512]])))],
        ),
        Row {
            common: vec![("/memlocs/0/bytes", j!(131072)), ("/memlocs/1/offset", j!(131072))],
            fail: vec![("/instructions/0/ifmap/pattern", j!([[1, 128], [32768, 2], [1, 256]]))],
            pass: vec![("/instructions/0/ifmap/pattern", j!([[1, 128], [32767, 2], [1, 256]]))],
            ..base_row("V-306", TRN2, dense(), vec![])
        },
        Row {
            pass: vec![("/memlocs/0/partition", j!(0))],
            ..base_row("V-307", TRN2, helpers(), vec![("/memlocs/0/partition", j!(65))])
        },
        Row {
            fail: vec![(
                "/memlocs/-",
                j!({"name": "big", "space": "SB", "partition": 0, "partitions": 128, "offset": 0, "bytes": 196609}),
            )],
            pass: vec![(
                "/memlocs/-",
                j!({"name": "big", "space": "SB", "partition": 0, "partitions": 128, "offset": 0, "bytes": 196608}),
            )],
            ..base_row("V-308", TRN1, dense(), vec![])
        },
        Row {
            pass: vec![("/memlocs/1/offset", j!(8194))],
            ..base_row("V-309", TRN2, dense(), vec![("/memlocs/1/offset", j!(8193))])
        },
        base_row("V-311", TRN2, dense(), vec![("/instructions/0/out/pattern/1/0", j!(0))]),
        base_row("V-312", TRN2, gather(), vec![("/instructions/0/weights/pattern/1/0", j!(2))]),
        Row {
            pass: vec![("/instructions/0/weights/index/dtype", j!("int32"))],
            ..base_row("V-313", TRN2, gather(), vec![("/instructions/0/weights/index/dtype", j!("uint8"))])
        },
        // The scales' first rows, partitions 0..4, against data on all 128.
        base_row("V-314", TRN3, mx(), vec![("/memlocs/2/offset", j!(4096 + 2048 - 4))]),
        Row {
            pass: vec![("/instructions/1/src1/loc", j!("a"))],
            ..base_row("V-315", TRN2, helpers(), vec![("/instructions/1/src1/loc", j!("c"))])
        },
        base_row("V-401", TRN2, dense(), vec![("/instructions/0/out/loc", j!("x"))]),
        base_row(
            "V-402",
            TRN2,
            dense(),
            vec![("/instructions/0/weights", ap("o", "bfloat16", j!([[1, 128], [1, 128]])))],
        ),
        base_row(
            "V-403",
            TRN2,
            helpers(),
            vec![("/instructions/1/src1", ap("d", "float32", j!([[64, 64], [1, 64]])))],
        ),
        base_row("V-404", TRN2, dense(), vec![("/instructions/0/engine", j!("DVE"))]),
        Row {
            pass: vec![("/instructions/0/ifmap/dtype", j!("uint8"))],
            ..base_row("V-410", TRN2, dense(), vec![("/instructions/0/ifmap/dtype", j!("int8"))])
        },
        Row {
            pass: vec![("/instructions/0/weights/dtype", j!("uint8"))],
            ..base_row("V-411", TRN2, dense(), vec![("/instructions/0/weights/dtype", j!("int32"))])
        },
        Row {
            fail: vec![("/instructions/0/ifmap/dtype", j!("float32"))],
            pass: vec![
                ("/instructions/0/ifmap/dtype", j!("float32")),
                ("/instructions/0/weights/dtype", j!("float32")),
            ],
            ..base_row("V-412", TRN2, dense(), vec![])
        },
        Row {
            fail: vec![
                ("/instructions/0/ifmap/dtype", j!("float8_e4m3")),
                ("/instructions/0/weights/dtype", j!("float8_e4m3fn")),
            ],
            pass: vec![
                ("/instructions/0/ifmap/dtype", j!("float8_e4m3fn")),
                ("/instructions/0/weights/dtype", j!("float8_e4m3fn")),
            ],
            ..base_row("V-413", TRN3, dense(), vec![])
        },
        Row {
            pass: vec![("/instructions/0/ifmap/dtype", j!("float8_e4m3fn"))],
            ..base_row("V-414", TRN3, dense(), vec![("/instructions/0/ifmap/dtype", j!("float8_e4m3fn_x4"))])
        },
        Row {
            pass: vec![],
            ..base_row("V-415", TRN2, double_row(), vec![("/instructions/0/ifmap/dtype", j!("bfloat16"))])
        },
        Row { pass_target: TRN2, ..base_row("V-416", TRN1, double_row(), vec![]) },
        Row {
            pass: vec![],
            ..base_row("V-417", TRN2, dense(), vec![("/instructions/0/out/dtype", j!("bfloat16"))])
        },
        Row {
            common: vec![("/instructions/0/ifmap/dtype", j!("float8_e4m3fn"))],
            pass_target: TRN3,
            ..base_row("V-418", TRN2, dense(), vec![])
        },
        Row {
            common: vec![("/instructions/0/zero_points", j!({"weights": 3}))],
            pass: vec![("/instructions/0/weights/dtype", j!("uint8"))],
            ..base_row("V-419", TRN2, dense(), vec![])
        },
        base_row("V-421", TRN2, dense(), vec![("/instructions/0/ifmap/pattern/0/1", j!(96))]),
        Row {
            common: vec![
                ("/instructions/0/tile_size", j!([64, 128])),
                ("/instructions/0/tile_position", j!([0, 0])),
            ],
            pass: vec![
                ("/instructions/0/ifmap/pattern/0/1", j!(64)),
                ("/instructions/0/weights/pattern/0/1", j!(64)),
            ],
            ..base_row("V-422", TRN2, dense(), vec![])
        },
        Row {
            common: vec![
                ("/instructions/0/tile_size", j!([128, 64])),
                ("/instructions/0/tile_position", j!([0, 0])),
            ],
            pass: vec![
                ("/instructions/0/weights/pattern/1/1", j!(64)),
                ("/instructions/0/out/pattern/0/1", j!(64)),
            ],
            ..base_row("V-423", TRN2, dense(), vec![])
        },
        Row {
            common: vec![
                ("/memlocs/2/bytes", j!(4096)),
                ("/instructions/0/ifmap/pattern", big(513)),
                ("/instructions/0/out/pattern", big(513)),
            ],
            fail: vec![("/instructions/0/out/dtype", j!("float32"))],
            pass_target: TRN3,
            ..base_row("V-424", TRN2, dense(), vec![])
        },
        base_row("V-425", TRN2, dense(), vec![("/instructions/0/weights/pattern/1/1", j!(64))]),
        base_row("V-426", TRN2, dense(), vec![("/instructions/0/ifmap/pattern/1/1", j!(256))]),
        Row {
            common: vec![
                ("/instructions/0/tile_size", j!([32, 128])),
                ("/instructions/0/ifmap/pattern/0/1", j!(32)),
                ("/instructions/0/weights/pattern/0/1", j!(32)),
            ],
            pass_target: TRN2,
            ..base_row("V-427", TRN1, dense(), vec![])
        },
        Row {
            common: vec![
                ("/instructions/0/tile_size", j!([64, 128])),
                ("/instructions/0/ifmap/pattern/0/1", j!(64)),
                ("/instructions/0/weights/pattern/0/1", j!(64)),
                ("/instructions/0/ifmap/partition", j!(64)),
                ("/instructions/0/weights/partition", j!(64)),
            ],
            fail: vec![("/instructions/0/tile_position", j!([32, 0]))],
            pass: vec![("/instructions/0/tile_position", j!([64, 0]))],
            ..base_row("V-428", TRN2, dense(), vec![])
        },
        Row {
            common: vec![
                ("/instructions/0/weights/pattern", j!([[1, 128], [64, 2], [1, 64]])),
                ("/instructions/0/out/pattern/0/1", j!(64)),
            ],
            ..base_row("V-429", TRN2, double_row(), vec![("/instructions/0/tile_size", j!([128, 64]))])
        },
        Row {
            fail: vec![("/instructions/0/weights/pattern", j!([[1, 128], [1, 256]]))],
            pass: vec![("/instructions/0/weights/pattern", j!([[1, 128], [2, 128], [1, 2]]))],
            ..base_row("V-430", TRN2, double_row(), vec![])
        },
        Row {
            pass: vec![("/instructions/0/perf_mode", j!("DoubleRow"))],
            ..base_row("V-431", TRN2, double_row(), vec![("/instructions/0/perf_mode", j!("DoublePixel"))])
        },
        Row {
            common: vec![("/instructions/0/psum_zero_region", j!(1))],
            pass_target: TRN3,
            ..base_row("V-433", TRN2, dense(), vec![])
        },
        Row {
            pass: vec![("/instructions/0/calc", j!(["start"]))],
            ..base_row("V-434", TRN2, transpose(), vec![("/instructions/0/calc", j!(["accumulate"]))])
        },
        base_row("V-435", TRN2, transpose(), vec![("/instructions/0/moving_transpose", j!(true))]),
        Row {
            common: vec![("/instructions/0/replication", j!(1))],
            pass_target: TRN1,
            ..base_row("V-436", TRN2, dense(), vec![])
        },
        Row {
            pass: vec![("/instructions/0/psum_zero_region", j!(3))],
            ..base_row("V-437", TRN3, dense(), vec![("/instructions/0/psum_zero_region", j!(4))])
        },
        Row {
            pass_target: TRN3,
            ..base_row(
                "V-438",
                Target { level: 45, ..TRN3 },
                dense(),
                vec![("/instructions/0/psum_zero_region", j!(2))],
            )
        },
        Row {
            common: vec![("/instructions/0", mx()["instructions"][0].clone())],
            pass_target: TRN3,
            ..base_row(
                "V-439",
                TRN2,
                {
                    let mut v = mx();
                    v["instructions"].as_array_mut().unwrap().truncate(1);
                    v
                },
                vec![],
            )
        },
        Row {
            common: vec![
                ("/instructions/0/ifmap/pattern/0/1", j!(64)),
                ("/instructions/0/weights/pattern/0/1", j!(64)),
                ("/instructions/0/weights/partition", j!(64)),
            ],
            fail: vec![("/instructions/0/ifmap/partition", j!(32))],
            pass: vec![("/instructions/0/ifmap/partition", j!(64))],
            ..base_row("V-441", TRN2, dense(), vec![])
        },
        Row {
            common: vec![
                ("/instructions/0/ifmap/pattern/0/1", j!(64)),
                ("/instructions/0/weights/pattern/0/1", j!(64)),
                ("/instructions/0/tile_size", j!([64, 128])),
                ("/instructions/0/tile_position", j!([64, 0])),
                ("/instructions/0/weights/partition", j!(64)),
                ("/instructions/0/ifmap/partition", j!(64)),
                ("/instructions/0/weights/pattern/1/1", j!(64)),
            ],
            fail: vec![
                ("/instructions/0/out/pattern/0/1", j!(64)),
                ("/instructions/0/out/partition", j!(64)),
            ],
            pass: vec![("/instructions/0/out/pattern/0/1", j!(64))],
            ..base_row("V-442", TRN2, dense(), vec![])
        },
        Row {
            common: vec![("/memlocs/2/bytes", j!(4096)), ("/instructions/0/out/offset", j!(4))],
            pass_target: TRN3,
            ..base_row("V-443", TRN2, dense(), vec![])
        },
        Row {
            common: vec![
                ("/memlocs/0/bytes", j!(100_000)),
                ("/memlocs/0/offset", Value::Null),
                ("/memlocs/1/bytes", j!(100_000)),
                ("/memlocs/1/offset", Value::Null),
            ],
            pass_target: TRN2,
            ..base_row("V-444", TRN1, dense(), vec![])
        },
        Row {
            base: nine_banks(),
            fail: vec![("/instructions/9/src0/loc", j!("o0"))],
            pass: vec![("/instructions/9/src0/loc", j!("o8"))],
            ..base_row("V-445", TRN2, dense(), vec![])
        },
        Row {
            common: vec![
                ("/instructions/0/ifmap/pattern/0/1", j!(64)),
                ("/instructions/0/weights/pattern/0/1", j!(64)),
            ],
            fail: vec![("/instructions/0/weights/partition", j!(64))],
            pass: vec![],
            ..base_row("V-446", TRN2, dense(), vec![])
        },
        Row {
            profile: Profile::NeuronxCc224,
            common: vec![
                ("/memlocs/2/bytes", j!(512)),
                ("/instructions/0/ifmap/pattern/1/1", j!(256)),
                ("/instructions/0/out", ap("o", "float16", j!([[1, 128], [1, 256]]))),
            ],
            fail: vec![(
                "/memlocs/-",
                j!({"name": "n", "space": "PSUM", "partition": 0, "partitions": 128, "bank": 0, "offset": 512, "bytes": 512}),
            )],
            pass: vec![(
                "/memlocs/-",
                j!({"name": "n", "space": "PSUM", "partition": 0, "partitions": 128, "bank": 0, "offset": 1024, "bytes": 512}),
            )],
            ..base_row("V-447", TRN2, dense(), vec![])
        },
        Row {
            pass: vec![("/instructions/0/calc", j!(["start", "stop"]))],
            ..base_row("V-451", TRN2, dense(), vec![("/instructions/0/calc", j!(["start", "accumulate"]))])
        },
        Row {
            common: vec![("/instructions/-", {
                let mut m = mm2();
                m["name"] = j!("mm1");
                m["calc"] = j!(["accumulate", "stop"]);
                m
            })],
            fail: vec![
                ("/instructions/0/out/pattern/1/1", j!(256)),
                ("/instructions/0/ifmap/pattern/1/1", j!(256)),
                ("/instructions/0/calc", j!(["start"])),
            ],
            pass: vec![("/instructions/0/calc", j!(["start"]))],
            ..base_row("V-452", TRN2, dense(), vec![])
        },
        Row {
            base: {
                let mut v = dense();
                let m = mm2();
                v["instructions"] = j!([memset(j!([[1, 128], [1, 512]])), m]);
                v
            },
            common: vec![("/instructions/1/calc", j!(["accumulate", "stop"]))],
            pass_target: TRN3,
            ..base_row("V-453", TRN2, dense(), vec![])
        },
        Row {
            base: {
                let mut v = dense();
                let mut m = mm2();
                m["name"] = j!("mm1");
                v["instructions"] = j!([mm2(), m]);
                v
            },
            fail: vec![
                ("/instructions/0/weights/pattern/1/1", j!(64)),
                ("/instructions/0/out/pattern/0/1", j!(64)),
            ],
            pass: vec![],
            ..base_row("V-454", TRN2, dense(), vec![])
        },
        Row {
            base: interleaved(),
            fail: vec![("/memlocs/3/bank", j!(1))],
            pass: vec![("/memlocs/3/bank", j!(2))],
            ..base_row("V-455", TRN3, dense(), vec![])
        },
        base_row("V-461", TRN3, mx(), vec![("/instructions/1/weights/dtype", j!("uint32"))]),
        base_row("V-462", TRN3, mx(), vec![("/instructions/1/weights_scale/dtype", j!("int8"))]),
        Row {
            common: vec![
                ("/instructions/1/weights/pattern/1/1", j!(64)),
                ("/instructions/1/weights_scale/pattern/1/1", j!(64)),
                ("/instructions/1/out/pattern/0/1", j!(64)),
            ],
            ..base_row("V-463", TRN3, mx(), vec![("/instructions/1/weights/pattern/1/0", j!(2))])
        },
        Row {
            common: vec![
                ("/instructions/1/ifmap/pattern/0/1", j!(32)),
                ("/instructions/1/weights/pattern/0/1", j!(32)),
            ],
            fail: vec![
                ("/instructions/0/src/pattern/0/1", j!(48)),
                ("/instructions/0/data/pattern/0/1", j!(48)),
            ],
            pass: vec![
                ("/instructions/0/src/pattern/0/1", j!(96)),
                ("/instructions/0/data/pattern/0/1", j!(96)),
            ],
            ..base_row("V-464", TRN3, mx(), vec![])
        },
        Row {
            fail: vec![
                ("/instructions/1/weights/pattern/1/1", j!(127)),
                ("/instructions/1/weights_scale/pattern/1/1", j!(127)),
                ("/instructions/1/out/pattern/0/1", j!(127)),
            ],
            pass: vec![
                ("/instructions/1/weights/pattern/1/1", j!(126)),
                ("/instructions/1/weights_scale/pattern/1/1", j!(126)),
                ("/instructions/1/out/pattern/0/1", j!(126)),
            ],
            ..base_row("V-465", TRN3, mx(), vec![])
        },
        base_row("V-466", TRN3, mx(), vec![("/instructions/1/tile_size", j!([128, 64]))]),
        base_row("V-467", TRN3, mx(), vec![("/instructions/1/weights_scale/pattern/1/1", j!(64))]),
        Row {
            fail: vec![("/instructions/1/weights_scale/partition", j!(2))],
            pass: vec![("/instructions/1/weights_scale/partition", j!(4))],
            ..base_row("V-468", TRN3, mx(), vec![])
        },
        Row {
            fail: vec![("/memlocs/4/partitions", j!(99))],
            pass: vec![("/memlocs/4/partitions", j!(100))],
            ..base_row("V-469", TRN3, mx(), vec![])
        },
        base_row("V-470", TRN3, mx(), vec![("/instructions/0/src/dtype", j!("uint16"))]),
        base_row("V-471", TRN2, sparse(), vec![("/instructions/0/compress_ratio", j!(3))]),
        base_row("V-472", TRN2, sparse(), vec![("/instructions/0/weights/pattern/0/1", j!(126))]),
        base_row("V-473", TRN2, sparse(), vec![("/instructions/0/tags/dtype", j!("int8"))]),
        base_row(
            "V-474",
            TRN2,
            sparse(),
            vec![("/instructions/0/ifmap/pattern", j!([[1, 128], [1, 256], [256, 2]]))],
        ),
        Row {
            common: vec![
                (
                    "/memlocs/-",
                    j!({"name": "i", "space": "SB", "partition": 0, "partitions": 128, "offset": 16384, "bytes": 1024}),
                ),
                ("/instructions/1/ifmap/index", ap("i", "uint16", j!([[1, 128], [1, 512]]))),
            ],
            pass: vec![("/instructions/1/weights/index", ap("i", "uint16", j!([[1, 128], [1, 128]])))],
            ..base_row("V-475", TRN3, mx(), vec![])
        },
        base_row("V-481", TRN2, helpers(), vec![("/instructions/1/src1/pattern/1/1", j!(32))]),
        Row {
            pass: vec![],
            ..base_row("V-482", TRN2, helpers(), vec![("/instructions/0/dst/dtype", j!("bfloat16"))])
        },
        base_row(
            "V-483",
            TRN2,
            helpers(),
            vec![("/instructions/2/src/pattern/1/1", j!(48)), ("/instructions/2/dst/pattern/1/1", j!(48))],
        ),
        base_row("V-484", TRN2, helpers(), vec![("/instructions/1/alu", j!("bitwise_and"))]),
        base_row("V-485", TRN2, helpers(), vec![("/instructions/3/pattern", j!([[1, 32]]))]),
        Row {
            common: vec![(
                "/instructions/-",
                j!({"op": "Activation", "name": "act", "func": "copy",
                    "dst": ap("a", "float32", j!([[1, 64], [1, 64]])),
                    "src": ap("b", "float32", j!([[1, 64], [1, 64]]))}),
            )],
            fail: vec![("/instructions/4/accumulate", j!({"command": 3, "op": "add"}))],
            pass: vec![("/instructions/4/accumulate", j!({"command": 3, "op": "add", "load": 1.0}))],
            ..base_row("V-486", TRN2, helpers(), vec![])
        },
        two_cores(),
    ]
}

/// Nine PSUM tiles, each a bank; the last instruction reads one of them.
fn nine_banks() -> Value {
    let mut v = dense();
    let mut locs = vec![v["memlocs"][0].clone(), v["memlocs"][1].clone()];
    locs.push(
        j!({"name": "r", "space": "SB", "partition": 0, "partitions": 128, "offset": 16384, "bytes": 2048}),
    );
    let mut instrs = Vec::new();
    for i in 0..9 {
        locs.push(j!({"name": format!("o{i}"), "space": "PSUM", "partitions": 128, "bytes": 2048}));
        let mut m = v["instructions"][0].clone();
        m["name"] = j!(format!("mm{i}"));
        m["out"]["loc"] = j!(format!("o{i}"));
        instrs.push(m);
    }
    let tile = |l: &str| ap(l, "float32", j!([[1, 128], [1, 512]]));
    instrs.push(j!({"op": "TensorTensor", "name": "sum", "dst": tile("r"), "src0": tile("o0"), "src1": tile("o7"), "alu": "add"}));
    for i in 1..7 {
        instrs.push(j!({"op": "TensorCopy", "name": format!("c{i}"), "dst": tile("r"), "src": tile(&format!("o{i}"))}));
    }
    v["memlocs"] = Value::Array(locs);
    v["instructions"] = Value::Array(instrs);
    v
}

/// Two accumulation groups of two matmuls each, interleaved, both with explicit zero regions.
fn interleaved() -> Value {
    let mut v = dense();
    v["memlocs"].as_array_mut().unwrap().push(
        j!({"name": "p", "space": "PSUM", "partition": 0, "partitions": 128, "bank": 1, "offset": 0, "bytes": 2048}),
    );
    let m = v["instructions"][0].clone();
    let one = |name: &str, loc: &str| {
        let mut m = m.clone();
        m["name"] = j!(name);
        m["out"]["loc"] = j!(loc);
        m["psum_zero_region"] = j!(1);
        m
    };
    v["instructions"] = j!([one("a0", "o"), one("b0", "p"), one("a1", "o"), one("b1", "p")]);
    v
}

fn two_cores() -> Row {
    let core = |rows: u32| {
        j!({
            "memlocs": [
                {"name": "a", "space": "SB", "partition": 0, "partitions": 64, "offset": 0, "bytes": 256},
                {"name": "d", "space": "DRAM", "dtype": "float32", "shape": [128, 64], "role": "output"}
            ],
            "instructions": [
                {"op": "DmaCopy", "name": "out", "src": ap("a", "float32", j!([[1, 64], [1, 64]])),
                 "dst": {"loc": "d", "dtype": "float32", "offset": rows * 256, "pattern": [[64, 64], [1, 64]]}}
            ]
        })
    };
    Row {
        base: j!({"cores": [core(0), core(32)]}),
        fail: vec![],
        pass: vec![("/cores/1/instructions/0/dst/offset", j!(64 * 256))],
        ..base_row("V-491", TRN2, dense(), vec![])
    }
}

fn patch(v: &mut Value, patches: &Patches) {
    for (pointer, value) in patches {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let at = v.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}"));
        match at {
            Value::Object(o) if value.is_null() => {
                o.shift_remove(key);
            }
            Value::Object(o) => {
                o.insert(key.to_owned(), value.clone());
            }
            Value::Array(a) if key == "-" => a.push(value.clone()),
            Value::Array(a) => a[key.parse::<usize>().unwrap()] = value.clone(),
            other => panic!("{pointer} in {other}"),
        }
    }
}

/// One element a line, so that positions are stable.
fn text(v: &Value) -> String {
    let list = |v: &Value| v.as_array().unwrap().iter().map(Value::to_string).collect::<Vec<_>>().join(",\n");
    if let Some(cores) = v.get("cores") {
        let cores: Vec<String> = cores
            .as_array()
            .unwrap()
            .iter()
            .map(|c| {
                format!(
                    "{{\"memlocs\": [\n{}],\n\"instructions\": [\n{}]}}",
                    list(&c["memlocs"]),
                    list(&c["instructions"])
                )
            })
            .collect();
        format!("{{\"format\": \"hadal-bir\", \"version\": 1, \"cores\": [\n{}]}}\n", cores.join(",\n"))
    } else {
        format!(
            "{{\"format\": \"hadal-bir\", \"version\": 1,\n\"memlocs\": [\n{}],\n\"instructions\": [\n{}]}}\n",
            list(&v["memlocs"]),
            list(&v["instructions"])
        )
    }
}

#[test]
fn every_rule_has_its_pair() {
    let mut shown = String::new();
    let mut tested = BTreeSet::new();
    let mut wrong = Vec::new();
    for row in rows() {
        let build = |patches: &Patches| {
            let mut v = row.base.clone();
            patch(&mut v, &row.common);
            patch(&mut v, patches);
            text(&v)
        };
        let options = |target| LowerOptions {
            profile: row.profile,
            unwritten_reads: true,
            ..LowerOptions::new(target)
        };
        let bad = build(&row.fail);
        let module = json::parse(&bad, "t.bir.json").unwrap_or_else(|e| panic!("{}: {e}\n{bad}", row.code));
        let found = verify(module, options(row.target)).err().unwrap_or_default();
        for v in &found {
            writeln!(shown, "{v}\n").unwrap();
        }
        let codes: Vec<&str> = found.iter().map(|v| v.code).collect();
        // A rule alone, but where breaking it moves bytes that another rule speaks of.
        let alone: &[&str] = if row.code == "V-424" { &["V-424", "V-443"] } else { &[row.code] };
        if codes != alone {
            wrong.push(format!("{} broke {codes:?}:\n{bad}", row.code));
        }
        let good = build(&row.pass);
        let module = json::parse(&good, "t.bir.json").unwrap_or_else(|e| panic!("{}: {e}\n{good}", row.code));
        if let Err(e) = verify(module, options(row.pass_target)) {
            wrong.push(format!("{}: the nearest passing program fails:\n{}\n{good}", row.code, e[0]));
        }
        tested.insert(row.code);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let all: BTreeSet<&str> = RULES.iter().map(|r| r.code).collect();
    assert_eq!(tested, all);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/rules.txt");
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, &shown).unwrap();
    }
    assert_eq!(shown, fs::read_to_string(path).unwrap());
}

/// The page that goes from demands to codes names every code.
#[test]
fn the_page_of_demands_is_complete() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verifier.md")).unwrap();
    let missing: Vec<&str> = RULES.iter().map(|r| r.code).filter(|c| !page.contains(c)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
