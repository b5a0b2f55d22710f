//! The reader against the golden programs, the writer against the reader, and every class of error.

use std::path::{Path, PathBuf};

use arbtest::arbtest;
use hadal_isa::PerfMode;
use hadal_num::Dtype;

use super::{JsonErrorKind, parse, write};
use crate::program::*;

fn golden() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/programs");
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.to_string_lossy().ends_with(".bir.json"))
        .collect();
    files.sort();
    files
}

fn without_positions(mut m: Module) -> Module {
    for core in &mut m.cores {
        core.locs.iter_mut().for_each(|l| l.pos = None);
        core.instrs.iter_mut().for_each(|i| i.pos = None);
    }
    m
}

#[test]
fn golden_programs_parse_and_round_trip() {
    let files = golden();
    assert_eq!(files.len(), 16);
    for file in files {
        let name = file.to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let module = parse(&text, &name).unwrap_or_else(|e| panic!("{e}"));
        let again = parse(&write(&module), "again.bir.json").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(without_positions(module), without_positions(again), "{name}");
    }
}

fn ap(loc: u32, dtype: Dtype, pairs: &[(i64, u64)]) -> Ap {
    let pattern = pairs.iter().map(|&(step, num)| Pair { step, num }).collect();
    Ap { loc: LocId(loc), dtype, partition: 0, offset: 0, pattern, index: None }
}

#[test]
fn double_row_reads_as_written_by_hand() {
    let text = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/programs/double_row.bir.json"),
    )
    .unwrap();
    let m = parse(&text, "dir/double_row.bir.json").unwrap();
    assert_eq!(m.name, "double_row");
    let core = &m.cores[0];
    assert_eq!(
        core.locs[2].kind,
        LocKind::Psum { partition: Some(0), partitions: 128, bank: Some(0), offset: Some(0), bytes: 2048 }
    );
    let mut want = Matmult::new(
        ap(1, Dtype::Float8E4m3, &[(1, 128), (512, 2), (1, 512)]),
        ap(0, Dtype::Float8E4m3, &[(1, 128), (128, 2), (1, 128)]),
        ap(2, Dtype::Float32, &[(1, 128), (1, 512)]),
    );
    want.perf_mode = PerfMode::DoubleRow;
    assert_eq!(core.instrs[0].op, Op::Matmult(Box::new(want)));
    assert_eq!(core.instrs[0].engine, Engine::Pe);
    // The operator's key stands on the line after the instruction's brace, which is the third character.
    let opens = text.lines().position(|l| l.contains("\"op\"")).unwrap();
    let pos = core.instrs[0].pos.clone().unwrap();
    assert_eq!((&*pos.file, pos.line as usize, pos.column), ("dir/double_row.bir.json", opens, 3));
}

/// A module that uses every operator, every kind of location and every option.
const EVERYTHING: &str = r#"{"format": "hadal-bir", "version": 1, "name": "all \"of\" it", "cores": [
{"attrs": {"auto_psum_accumulate": false, "fp8_conv_config": [1, 0]},
 "memlocs": [
  {"name": "a", "space": "SB", "partitions": 128, "bytes": 196609},
  {"name": "b", "space": "SB", "partition": 32, "partitions": 32, "offset": 64, "bytes": 4},
  {"name": "p", "space": "PSUM", "partitions": 128, "bank": 7, "bytes": 2048},
  {"name": "q", "space": "PSUM", "partition": 0, "partitions": 128, "bank": 1, "offset": 16, "bytes": 8},
  {"name": "hx", "space": "DRAM", "role": "input", "dtype": "bfloat16", "shape": [128, 512]},
  {"name": "t", "space": "DRAM", "dtype": "uint64", "shape": [3]}],
 "instructions": [
  {"op": "Matmult", "name": "m0", "ifmap": {"loc": "a", "dtype": "uint8", "pattern": [[1, 128], [-1, 8]], "partition": 0, "offset": 7},
   "weights": {"loc": "a", "dtype": "uint8", "pattern": [[1, 128], [0, 8]],
    "index": {"loc": "b", "dtype": "uint16", "pattern": [[1, 32], [1, 2]]}},
   "out": {"loc": "p", "dtype": "float32", "pattern": [[1, 8], [1, 8]]},
   "calc": ["start", "stop", "accumulate", "continue"], "perf_mode": "DoubleRowSwInterleave",
   "tile_position": [32, 64], "tile_size": [32, 64], "is_transpose": true, "is_fmap_onezero": true,
   "is_weight_onezero": true, "background_transpose": true, "moving_transpose": true, "replication": 255,
   "psum_zero_region": 3, "zero_points": {"ifmap": 0, "weights": 255}},
  {"op": "MatmultSparse", "name": "s", "ifmap": {"loc": "a", "dtype": "bfloat16", "pattern": [[1, 128]]},
   "weights": {"loc": "a", "dtype": "bfloat16", "pattern": [[1, 128]]}, "tags": {"loc": "a", "dtype": "int16", "pattern": [[1, 128]]},
   "out": {"loc": "p", "dtype": "float32", "pattern": [[1, 128]]}, "compress_ratio": 4},
  {"op": "MatmultMx", "name": "x", "ifmap": {"loc": "a", "dtype": "float8_e5m2_x4", "pattern": [[1, 128]]},
   "weights": {"loc": "a", "dtype": "float4_e2m1fn_x4", "pattern": [[1, 128]]},
   "ifmap_scale": {"loc": "a", "dtype": "float8_e8m0fnu", "pattern": [[1, 128]]},
   "weights_scale": {"loc": "a", "dtype": "uint8", "pattern": [[1, 128]]},
   "out": {"loc": "p", "dtype": "float32", "pattern": [[1, 128]]}, "accumulate_flags": 5, "psum_zero_region": 0,
   "tile_position": [0, 0], "tile_size": [64, 128]},
  {"op": "QuantizeMx", "name": "qz", "engine": "Pool", "src": {"loc": "a", "dtype": "float16", "pattern": [[1, 128]]},
   "data": {"loc": "a", "dtype": "float8_e4m3fn_x4", "pattern": [[1, 128]]},
   "scale": {"loc": "a", "dtype": "float8_e8m0fnu", "pattern": [[1, 128]]}},
  {"op": "DmaCopy", "name": "d", "src": {"loc": "hx", "dtype": "bfloat16", "pattern": [[512, 128], [1, 512]]},
   "dst": {"loc": "a", "dtype": "bfloat16", "pattern": [[1, 128], [1, 512]]}},
  {"op": "TensorCopy", "name": "c", "src": {"loc": "p", "dtype": "float32", "pattern": [[1, 1]]},
   "dst": {"loc": "a", "dtype": "int8", "pattern": [[1, 1]]}},
  {"op": "Transpose", "name": "tr", "src": {"loc": "p", "dtype": "float32", "pattern": [[1, 1]]},
   "dst": {"loc": "a", "dtype": "float32r", "pattern": [[1, 1]]}},
  {"op": "Memset", "name": "z", "dst": {"loc": "q", "dtype": "float32", "pattern": [[1, 1]]}, "value": 1.0},
  {"op": "Memset", "name": "z2", "dst": {"loc": "q", "dtype": "int32", "pattern": [[1, 1]]}, "value": -9223372036854775808},
  {"op": "Memset", "name": "z3", "dst": {"loc": "q", "dtype": "float32", "pattern": [[1, 1]]}, "value": "-inf"},
  {"op": "TensorTensor", "name": "tt", "dst": {"loc": "a", "dtype": "float32", "pattern": [[1, 1]]},
   "src0": {"loc": "a", "dtype": "float32", "pattern": [[1, 1]]}, "src1": {"loc": "q", "dtype": "float32", "pattern": [[1, 1]]}, "alu": "max"},
  {"op": "TensorScalar", "name": "ts", "dst": {"loc": "a", "dtype": "float32", "pattern": [[1, 1]]},
   "src": {"loc": "a", "dtype": "float32", "pattern": [[1, 1]]}, "op0": "mult", "operand0": 1e-45, "op1": "add", "operand1": -0.0},
  {"op": "Activation", "name": "ac", "dst": {"loc": "a", "dtype": "float32", "pattern": [[1, 1]]},
   "src": {"loc": "a", "dtype": "float32", "pattern": [[1, 1]]}, "func": "gelu", "scale": 0.1, "bias": 3.4028235e38,
   "accumulate": {"command": 3, "op": "add", "load": 2}},
  {"op": "TensorReduce", "name": "tred", "dst": {"loc": "a", "dtype": "float32", "pattern": [[1, 1]]},
   "src": {"loc": "a", "dtype": "float32", "pattern": [[1, 1], [1, 2]]}, "alu": "add", "axis": 1},
  {"op": "ReadActivationAccumulator", "name": "ra", "dst": {"loc": "a", "dtype": "float32", "pattern": [[1, 1]]}},
  {"op": "AffineSelect", "name": "af", "dst": {"loc": "a", "dtype": "float32", "pattern": [[1, 1]]},
   "src": {"loc": "a", "dtype": "float32", "pattern": [[1, 1]]}, "cmp": "is_ge", "base": -5, "channel_multiplier": 2,
   "pattern": [[-1, 16777216], [2147483648, 1]], "on_false": 0.5}]},
{"memlocs": [{"name": "t", "space": "DRAM", "role": "output", "dtype": "uint64", "shape": [3]}], "instructions": []}]}"#;

#[test]
fn every_operator_and_option_round_trips() {
    let m = parse(EVERYTHING, "all.bir.json").unwrap_or_else(|e| panic!("{e}"));
    let written = write(&m);
    let again = parse(&written, "all.bir.json").unwrap_or_else(|e| panic!("{e}"));
    let (m, again) = (without_positions(m), without_positions(again));
    assert_eq!(m, again);
    assert_eq!(write(&again), written);
    // Spot checks, so that a field dropped by reader and writer alike would show.
    assert_eq!(m.name, "all \"of\" it");
    assert_eq!(m.cores.len(), 2);
    assert_eq!(m.cores[0].attrs, Attrs { auto_psum_accumulate: Some(false), fp8_conv_config: [1, 0] });
    let Op::Matmult(mm) = &m.cores[0].instrs[0].op else { panic!("not a matmul") };
    let all = CalcFlags { start: true, stop: true, accumulate: true, cont: true };
    assert_eq!(mm.calc, Calc::Explicit(all));
    assert_eq!((mm.tile_position, mm.tile_size), (Some([32, 64]), Some([32, 64])));
    assert!(mm.is_transpose && mm.is_fmap_onezero && mm.is_weight_onezero);
    assert!(mm.background_transpose && mm.moving_transpose);
    assert_eq!((mm.replication, mm.psum_zero_region), (255, Some(3)));
    assert_eq!((mm.zero_point_ifmap, mm.zero_point_weights), (Some(0), Some(255)));
    assert_eq!((mm.ifmap.offset, mm.ifmap.pattern[1].step), (7, -1));
    assert_eq!(mm.weights.index.as_ref().unwrap().loc, LocId(1));
    assert_eq!(m.cores[0].instrs[3].engine, Engine::Pool);
    let values: Vec<Immediate> = m.cores[0]
        .instrs
        .iter()
        .filter_map(|i| if let Op::Memset { value, .. } = i.op { Some(value) } else { None })
        .collect();
    assert_eq!(
        values,
        [Immediate::Float(1.0), Immediate::Int(i64::MIN), Immediate::Float(f32::NEG_INFINITY)]
    );
    let Op::TensorScalar { operand0, second, .. } = &m.cores[0].instrs[11].op else { panic!("not ts") };
    assert_eq!(*operand0, Immediate::Float(f32::from_bits(1)));
    assert_eq!(second.unwrap().1.as_f32().to_bits(), (-0.0f32).to_bits());
    let names: std::collections::BTreeSet<&str> = m.cores[0].instrs.iter().map(|i| i.op.name()).collect();
    assert_eq!(names.len(), 14, "every operator of the form occurs");
}

#[test]
fn a_matmul_with_its_byte_set_is_written_with_that_byte() {
    let mut m = parse(&small(|s| s), "m.bir.json").unwrap();
    if let Op::Matmult(mm) = &mut m.cores[0].instrs[0].op {
        mm.flags = Some(6);
    }
    assert!(write(&m).contains("\"calc\": [\"stop\", \"accumulate\"]"));
}

/// A small program, edited as text.
fn small(edit: impl Fn(String) -> String) -> String {
    edit(
        r#"{"format": "hadal-bir", "version": 1,
 "memlocs": [
  {"name": "x", "space": "SB", "partitions": 128, "bytes": 512},
  {"name": "o", "space": "PSUM", "partitions": 128, "bytes": 512}],
 "instructions": [
  {"op": "Matmult", "name": "m",
   "ifmap": {"loc": "x", "dtype": "bfloat16", "pattern": [[1, 128], [1, 128]]},
   "weights": {"loc": "x", "dtype": "bfloat16", "pattern": [[1, 128], [1, 128]]},
   "out": {"loc": "o", "dtype": "float32", "pattern": [[1, 128], [1, 128]]}}]}
"#
        .to_owned(),
    )
}

/// Replaces `from` by `to` in the small program; `@` in `to` marks where the error must point. `want` is the
/// message with `AT` for that place.
fn refused(from: &str, to: &str, want: &str) {
    let text = small(|s| {
        assert!(s.contains(from), "the edit applies");
        s.replacen(from, to, 1)
    });
    let (before, after) = text.split_once('@').unwrap();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
    match parse(&format!("{before}{after}"), "m.bir.json") {
        Ok(_) => panic!("accepted: {to}"),
        Err(e) => assert_eq!(e.to_string(), want.replace("AT", &format!("m.bir.json:{line}:{column}"))),
    }
}

#[test]
fn syntax() {
    refused(
        "\"version\": 1,",
        "\"version\": 1,@,",
        "error[JSON-001]: not valid JSON: key must be a string\n  --> AT\n  = help: correct the text at this place",
    );
    let e = parse("", "m").unwrap_err();
    assert_eq!((e.kind, e.line, e.column), (JsonErrorKind::Syntax, 1, 1));
    assert_eq!(parse("{} {}", "m").unwrap_err().kind, JsonErrorKind::Syntax);
}

#[test]
fn format() {
    refused(
        "\"version\": 1",
        "\"version\": @2",
        "error[JSON-002]: version 2 is not known\n  --> AT: version\n  = help: this reader takes version 1",
    );
    refused(
        "\"hadal-bir\"",
        "@\"bir\"",
        "error[JSON-002]: the format is \"bir\", not \"hadal-bir\"\n  --> AT: format\n  = help: this reader takes programs in the form \"hadal-bir\" only",
    );
}

#[test]
fn wrong_type() {
    refused(
        "\"bytes\": 512",
        "\"bytes\": @\"512\"",
        "error[JSON-003]: expected an integer, found the string \"512\"\n  --> AT: memlocs[0].bytes\n  = help: write an integer here",
    );
    refused(
        "\"bytes\": 512",
        "\"bytes\": @5.0",
        "error[JSON-003]: expected an integer, found the number 5.0\n  --> AT: memlocs[0].bytes\n  = help: write an integer here",
    );
    assert_eq!(
        parse("[]", "m").unwrap_err().to_string(),
        "error[JSON-003]: expected an object, found a list\n  --> m:1:1\n  = help: write an object here"
    );
}

#[test]
fn unknown_key() {
    refused(
        "\"name\": \"m\",",
        "\"name\": \"m\", @\"calk\": \"auto\",",
        "error[JSON-004]: unknown key \"calk\"\n  --> AT: instructions[0].calk\n  = help: did you mean \"calc\"?",
    );
    refused(
        "\"space\": \"SB\"",
        "\"space\": \"SB\", @\"role\": \"input\"",
        "error[JSON-004]: unknown key \"role\"\n  --> AT: memlocs[0].role\n  = help: known here: name, space, partition, partitions, offset, bytes",
    );
    refused(
        "[[1, 128], [1, 128]]}",
        "[[1, 128], [1, 128]], @\"a b\": 0}",
        "error[JSON-004]: unknown key \"a b\"\n  --> AT: instructions[0].ifmap[\"a b\"]\n  = help: known here: loc, dtype, pattern, partition, offset, index",
    );
}

#[test]
fn missing_key() {
    refused(
        "{\"loc\": \"o\", ",
        "@{",
        "error[JSON-005]: key \"loc\" is missing\n  --> AT: instructions[0].out\n  = help: add \"loc\" to this object",
    );
}

#[test]
fn a_misspelt_key_that_must_be_there() {
    refused(
        "{\"loc\": \"o\", ",
        "@{\"lok\": \"o\", ",
        "error[JSON-005]: key \"loc\" is missing\n  --> AT: instructions[0].out\n  = help: rename \"lok\" to \"loc\"",
    );
}

#[test]
fn duplicate_key() {
    refused(
        "\"bytes\": 512",
        "\"bytes\": 512, @\"b\\u0079tes\": 512",
        "error[JSON-006]: key \"bytes\" is given twice\n  --> AT: memlocs[0].bytes\n  = help: keep one of them",
    );
}

#[test]
fn range() {
    refused(
        "[1, 128]]",
        "[1, @1000000000]]",
        "error[JSON-007]: count 1000000000 is outside 1..=16777216\n  --> AT: instructions[0].ifmap.pattern[1][1]\n  = help: give an integer from 1 to 16777216",
    );
    refused(
        "[1, 128]]",
        "[@-99999999999999999999, 128]]",
        "error[JSON-007]: step -99999999999999999999 is outside -2147483648..=2147483648\n  --> AT: instructions[0].ifmap.pattern[1][0]\n  = help: give an integer from -2147483648 to 2147483648",
    );
    refused(
        "[[1, 128], [1, 128]]",
        "@[[1, 128], [1, 128], [1, 1], [1, 1], [1, 1], [1, 1]]",
        "error[JSON-007]: a pattern of 6 pairs is outside 1..=5\n  --> AT: instructions[0].ifmap.pattern\n  = help: write [[step, num], ...], partitions first in an operand, then at most 4 free dimensions",
    );
    refused(
        "[1, 128]]",
        "@[1, 128, 3]]",
        "error[JSON-007]: a pattern entry has 3 numbers, not 2\n  --> AT: instructions[0].ifmap.pattern[1]\n  = help: write [step, num]",
    );
    refused(
        "\"bytes\": 512",
        "\"bytes\": @1048577",
        "error[JSON-007]: bytes 1048577 is outside 1..=1048576\n  --> AT: memlocs[0].bytes\n  = help: give an integer from 1 to 1048576",
    );
    refused(
        "\"name\": \"x\"",
        "\"name\": @\"\"",
        "error[JSON-007]: a name of 0 bytes cannot be used\n  --> AT: memlocs[0].name\n  = help: a name has 1 to 255 bytes and no control characters",
    );
    refused(
        "{\"name\": \"o\",",
        "{\"name\": \"h\", \"space\": \"DRAM\", \"dtype\": \"float32\", \"shape\": @[65536, 65536]}, {\"name\": \"o\",",
        "error[JSON-007]: a float32 tensor of this shape takes 17179869184 bytes, more than 4294967296\n  --> AT: memlocs[1].shape\n  = help: give a smaller shape",
    );
}

#[test]
fn limits_themselves_are_accepted() {
    for (from, to) in [
        ("[1, 128]]", "[2147483648, 16777216]]"),
        ("[1, 128]]", "[-2147483648, 1]]"),
        ("\"bytes\": 512", "\"bytes\": 1048576"),
        ("\"bytes\": 512", "\"bytes\": 196609"),
        ("\"partitions\": 128", "\"partitions\": 1024"),
    ] {
        let text = small(|s| s.replacen(from, to, 1));
        parse(&text, "m").unwrap_or_else(|e| panic!("{to}: {e}"));
    }
}

#[test]
fn duplicate_name() {
    refused(
        "\"name\": \"o\"",
        "\"name\": @\"x\"",
        "error[JSON-008]: a second location is called \"x\"\n  --> AT: memlocs[1].name\n  = help: give every location of a core its own name",
    );
}

#[test]
fn unknown_name() {
    refused(
        "\"loc\": \"x\"",
        "\"loc\": @\"y\"",
        "error[JSON-009]: no location is called \"y\"\n  --> AT: instructions[0].ifmap.loc\n  = help: declare it in \"memlocs\", or name one that is declared there",
    );
    refused(
        "\"bfloat16\"",
        "@\"bf16\"",
        "error[JSON-009]: \"bf16\" is no element type\n  --> AT: instructions[0].ifmap.dtype\n  = help: known here: uint8, int8, float4_e2m1fn_x4, float8_e3m4, float8_e4m3, float8_e4m3fn, float8_e8m0fnu, float8_e5m2, float8_e4m3fn_x4, float8_e5m2_x4, uint16, int16, bfloat16, float16, uint32, int32, float32, float32r, uint64, int64",
    );
    refused(
        "\"Matmult\"",
        "@\"Matmul\"",
        "error[JSON-009]: \"Matmul\" is no operator\n  --> AT: instructions[0].op\n  = help: did you mean \"Matmult\"?",
    );
}

#[test]
fn conflict() {
    let text = EVERYTHING.replace(
        "\"dtype\": \"uint64\", \"shape\": [3]}], \"instructions\": []",
        "\"dtype\": \"uint64\", \"shape\": [4]}], \"instructions\": []",
    );
    assert_eq!(
        parse(&text, "m.bir.json").unwrap_err().to_string(),
        "error[JSON-010]: DRAM tensor \"t\" is uint64 [3] on core 0 and uint64 [4] on core 1\n  --> m.bir.json:1:73: cores\n  = help: DRAM tensors of one name are one tensor: give them one type and shape",
    );
}

#[test]
fn codes_are_distinct() {
    let codes: std::collections::BTreeSet<&str> = JsonErrorKind::ALL.iter().map(|k| k.code()).collect();
    assert_eq!(codes.len(), JsonErrorKind::ALL.len());
}

#[test]
fn deep_nesting_is_refused_quickly() {
    let text = "[".repeat(1_000_000);
    assert_eq!(parse(&text, "m").unwrap_err().kind, JsonErrorKind::Syntax);
    let text = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let text = small(|s| s.replacen("\"bytes\": 512", &format!("\"bytes\": {text}"), 1));
    assert_eq!(parse(&text, "m").unwrap_err().path, "memlocs[0].bytes");
}

#[test]
fn any_edit_of_a_program_gives_a_module_or_an_error_in_the_text() {
    let text = EVERYTHING.to_owned();
    arbtest(|u| {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..u.int_in_range(1..=3)? {
            let at = u.choose_index(bytes.len())?;
            bytes[at] = *u.choose(b"0123456789\"{}[],:-eE.x\\ \n")?;
        }
        let edited = String::from_utf8(bytes).unwrap();
        match parse(&edited, "f") {
            Ok(m) => drop(write(&m)),
            Err(e) => assert!(e.line as usize <= edited.lines().count() + 1 && e.column >= 1),
        }
        Ok(())
    });
}
