//! Verification, lowering and the memory map through the command; expected values are worked out by hand.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::{Path, PathBuf};

use common::{code, hadal, stderr, stdout};
use hadal::npy::{self, Kind, Npy};
use serde_json::{Value, json};

fn sb(name: &str, partitions: u32, offset: u32, bytes: u32) -> Value {
    json!({"name": name, "space": "SB", "partition": 0, "partitions": partitions, "offset": offset, "bytes": bytes})
}

fn psum(name: &str, bank: u32, bytes: u32) -> Value {
    json!({"name": name, "space": "PSUM", "partition": 0, "partitions": 128, "bank": bank, "offset": 0, "bytes": bytes})
}

fn ap(loc: &str, dtype: &str, pattern: &[[u32; 2]]) -> Value {
    json!({"loc": loc, "dtype": dtype, "pattern": pattern})
}

/// Writes a program, one element a line; instruction i stands on line `memlocs + 4 + i`.
fn save(dir: &Path, name: &str, memlocs: &[Value], instructions: &[Value]) -> PathBuf {
    let list = |v: &[Value]| v.iter().map(Value::to_string).collect::<Vec<_>>().join(",\n");
    let text = format!(
        "{{\"format\": \"hadal-bir\", \"version\": 1,\n\"memlocs\": [\n{}],\n\"instructions\": [\n{}]}}\n",
        list(memlocs),
        list(instructions)
    );
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn run(args: &[&str], program: &Path) -> std::process::Output {
    let program = program.display().to_string();
    let mut all = vec![args[0], &program];
    all.extend(&args[1..]);
    hadal(all)
}

const WANT: [(&str, &str); 10] = [
    ("V-401", "out"),
    ("V-402", "weights"),
    ("V-410", "ifmap"),
    ("V-411", "weights"),
    ("V-412", "ifmap"),
    ("V-421", "ifmap"),
    ("V-426", "out"),
    ("V-427", ""),
    ("V-439", ""),
    ("V-451", ""),
];

/// Ten instructions, each of which breaks one rule of trn2.
fn ten(dir: &Path) -> PathBuf {
    let bf = |loc: &str, k: u32, n: u32| ap(loc, "bfloat16", &[[1, k], [1, n]]);
    let f32 = |loc: &str, m: u32, n: u32| ap(loc, "float32", &[[1, m], [1, n]]);
    let mut all = Vec::new();
    for i in 0..10 {
        all.push(json!({"op": "Matmult", "name": format!("bad_{i}"), "ifmap": bf("x", 128, 256),
            "weights": bf("w", 128, 64), "out": f32("o", 64, 256)}));
    }
    all[0]["out"]["loc"] = json!("x");
    all[1]["weights"]["loc"] = json!("o");
    all[2]["ifmap"]["dtype"] = json!("int8");
    all[3]["weights"]["dtype"] = json!("int32");
    all[4]["ifmap"]["dtype"] = json!("float32");
    all[5]["ifmap"]["pattern"][0][1] = json!(64);
    all[6]["out"]["pattern"][1][1] = json!(128);
    all[7]["tile_size"] = json!([128, 16]);
    all[7]["weights"]["pattern"][1][1] = json!(16);
    all[7]["out"]["pattern"][0][1] = json!(16);
    all[8] = json!({"op": "QuantizeMx", "name": "bad_8", "src": bf("x", 128, 256),
        "data": ap("y", "float8_e5m2_x4", &[[1, 128], [1, 64]]),
        "scale": ap("z", "float8_e8m0fnu", &[[1, 128], [1, 64]])});
    all[9]["calc"] = json!(["start", "accumulate"]);
    let locs = [
        sb("x", 128, 0, 2048),
        sb("w", 128, 2048, 256),
        sb("y", 128, 4096, 256),
        sb("z", 128, 4352, 64),
        psum("o", 0, 2048),
    ];
    save(dir, "ten.bir.json", &locs, &all)
}

#[test]
fn ten_violations_are_reported_in_one_run() {
    let dir = tempfile::tempdir().unwrap();
    let program = ten(dir.path());
    let out = run(&["verify", "--target", "trn2"], &program);
    assert_eq!(code(&out), 4);
    let text = stderr(&out);
    let codes: Vec<&str> =
        text.lines().filter_map(|l| Some(l.strip_prefix("error[")?.split_once(']')?.0)).collect();
    assert_eq!(codes, WANT.map(|w| w.0), "{text}");
    assert!(text.contains("10 violations on trn2"), "{text}");
    assert_eq!(text.matches("\n  = help: ").count(), 10);

    let out = run(&["verify", "--target", "trn2", "--json"], &program);
    assert_eq!(code(&out), 4);
    let v: Value = serde_json::from_slice(&out.stdout).unwrap();
    let list = v["violations"].as_array().unwrap();
    assert_eq!(list.len(), 10);
    for (i, (found, (code, operand))) in list.iter().zip(WANT).enumerate() {
        assert_eq!(found["code"], code);
        assert_eq!(found["instruction"], format!("bad_{i}"));
        assert_eq!(found["index"], i);
        assert_eq!(found["operand"], if operand.is_empty() { Value::Null } else { json!(operand) });
        // Five locations on lines 3 to 7, so the first instruction is on line 9.
        assert_eq!(found["position"]["line"], 9 + i);
        let place = found["place"].as_str().unwrap();
        assert!(place.contains(&format!("ten.bir.json:{}:1: bad_{i}", 9 + i)), "{place}");
        for key in ["text", "remedy", "confidence"] {
            assert!(!found[key].as_str().unwrap().is_empty(), "{key}");
        }
    }
}

#[test]
fn a_kernel_is_reported_by_its_source_line() {
    let out = hadal(["verify", "klr/accept/f_doublerow_fp8.klr", "--target", "trn1", "--json", "-q"]);
    assert_eq!(code(&out), 4);
    let v: Value = serde_json::from_slice(&out.stdout).unwrap();
    let first = &v["violations"][0];
    assert_eq!(first["code"], "V-416");
    assert!(first["position"]["line"].as_u64().unwrap() > 0, "{first}");
    assert!(first["position"]["file"].as_str().unwrap().ends_with(".py"), "{first}");
}

#[test]
fn the_manual_lists_the_verifier() {
    let text = stdout(&hadal(["isa", "verifier"]));
    for rule in hadal::ir::verify::rules::RULES {
        assert!(text.contains(&format!("{}  {}", rule.code, rule.title)), "{}", rule.code);
    }
    assert_eq!(text, stdout(&hadal(["isa", "rules"])));
}

/// 128 columns of a sparse matmul into `[128, 64]`.
fn sparse(dir: &Path, ratio: u32, dtype: &str) -> PathBuf {
    let m = json!({"op": "MatmultSparse", "name": "s", "compress_ratio": ratio,
        "weights": ap("w", dtype, &[[1, 128], [1, 128]]),
        "ifmap": ap("x", dtype, &[[1, 128], [64, ratio], [1, 64]]),
        "tags": ap("t", "int16", &[[1, 128], [1, 32]]),
        "out": ap("o", "float32", &[[1, 128], [1, 64]])});
    let locs = [sb("w", 128, 0, 512), sb("x", 128, 512, 1024), sb("t", 128, 2048, 64), psum("o", 0, 2048)];
    save(dir, &format!("s{ratio}{dtype}.bir.json"), &locs, &[m])
}

#[test]
fn sparse_matmuls_of_every_ratio() {
    let dir = tempfile::tempdir().unwrap();
    for ratio in [1, 2, 4] {
        for (dtype, want) in [("bfloat16", "06 01 07"), ("float32", "06 01 07 01 07")] {
            let program = sparse(dir.path(), ratio, dtype);
            let hex = stdout(&run(&["compile", "--target", "trn2", "--emit", "hex"], &program));
            let opcodes: Vec<&str> = hex.lines().map(|l| &l[..2]).collect();
            assert_eq!(opcodes.join(" "), want, "{ratio} {dtype}");
            let census =
                stdout(&run(&["compile", "--target", "trn2", "--mode", "census", "--json"], &program));
            let v: Value = serde_json::from_str(&census).unwrap();
            let counts: Vec<(u64, u64)> = v["cores"][0]["opcodes"]
                .as_array()
                .unwrap()
                .iter()
                .map(|o| (o["opcode"].as_u64().unwrap(), o["count"].as_u64().unwrap()))
                .collect();
            let passes = if dtype == "float32" { 2 } else { 1 };
            assert_eq!(counts, [(1, passes), (6, 1), (7, passes)]);
            for target in ["trn1", "trn3"] {
                let out = run(&["compile", "--target", target, "--mode", "census"], &program);
                assert_eq!(code(&out), 4);
                assert!(stderr(&out).starts_with("error[V-439]"), "{}", stderr(&out));
            }
        }
    }
}

#[test]
fn inferred_modes_encode_but_do_not_run() {
    let dir = tempfile::tempdir().unwrap();
    for mode in ["DoubleColumn", "DoublePixel"] {
        let m = json!({"op": "Matmult", "name": "m", "perf_mode": mode,
            "ifmap": ap("x", "float8_e4m3", &[[1, 128], [64, 2], [1, 64]]),
            "weights": ap("w", "float8_e4m3", &[[1, 128], [128, 2], [1, 128]]),
            "out": ap("o", "float32", &[[1, 128], [1, 64]])});
        let locs = [sb("x", 128, 0, 128), sb("w", 128, 128, 256), psum("o", 0, 2048)];
        let program = save(dir.path(), "m.bir.json", &locs, &[m]);
        let out = run(&["compile", "--target", "trn2", "--emit", "hex"], &program);
        assert_eq!(code(&out), 4);
        assert!(stderr(&out).starts_with("error[V-431]"), "{}", stderr(&out));
        let hex =
            stdout(&run(&["compile", "--target", "trn2", "--emit", "hex", "--allow-inferred"], &program));
        assert_eq!(hex.lines().count(), 2);
        for executor in ["bundles", "ir"] {
            let out = run(&["run", "--target", "trn2", "--allow-inferred", "--executor", executor], &program);
            assert_eq!(code(&out), 5, "{}", stderr(&out));
            assert!(stderr(&out).contains(mode), "{}", stderr(&out));
        }
    }
}

fn array(path: &Path, kind: Kind, size: usize, shape: &[usize], data: Vec<u8>) {
    std::fs::write(path, npy::write(&Npy { kind, size, shape: shape.to_vec(), data })).unwrap();
}

#[test]
fn gathered_weights_run() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let mut m = json!({"op": "Matmult", "name": "m", "ifmap": ap("x", "bfloat16", &[[1, 128], [1, 1]]),
        "weights": ap("w", "bfloat16", &[[1, 128], [1, 4]]), "out": ap("o", "float32", &[[1, 4], [1, 1]])});
    m["weights"]["index"] = ap("i", "uint16", &[[1, 128], [1, 4]]);
    let locs = [sb("x", 128, 0, 2), sb("w", 128, 64, 16), sb("i", 128, 128, 8), psum("o", 0, 4)];
    let program = save(dir.path(), "g.bir.json", &locs, &[m]);
    // w[k, c] = c; partition k picks (k + 2 m) mod 8 for column m; only partition 3 moves a one.
    let floats = |v: Vec<f32>| v.into_iter().flat_map(f32::to_le_bytes).collect::<Vec<u8>>();
    let w = (0..128 * 8).map(|i| (i % 8) as f32).collect();
    array(&at("w.npy"), Kind::Float, 4, &[128, 8], floats(w));
    let x = (0..128).map(|k| if k == 3 { 1.0 } else { 0.0 }).collect();
    array(&at("x.npy"), Kind::Float, 4, &[128, 1], floats(x));
    let i = (0..128u16).flat_map(|k| (0..4u16).flat_map(move |m| ((k + 2 * m) % 8).to_le_bytes())).collect();
    array(&at("i.npy"), Kind::Unsigned, 2, &[128, 4], i);
    let given = |n: &str| format!("{n}={}", at(&format!("{n}.npy")).display());
    let dump = format!("o={}", at("o.npy").display());
    for target in ["trn1", "trn2", "trn3"] {
        let (x, w, i) = (given("x"), given("w"), given("i"));
        let args = ["run", "--target", target, "--executor", "both", "--in", &x, "--in", &w, "--in", &i];
        let args: Vec<&str> = args.into_iter().chain(["--dump", &dump, "--widen"]).collect();
        stdout(&run(&args, &program));
        let o = npy::read(&std::fs::read(at("o.npy")).unwrap()).unwrap();
        // The location has 128 partitions, of which the product writes four.
        assert_eq!(o.data.get(..16), Some(&*floats(vec![3.0, 5.0, 7.0, 1.0])), "{target}");
    }
}

/// Verification finds what a run would stop at; a run may be told to go on.
#[test]
fn reads_of_unwritten_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let set =
        json!({"op": "Memset", "name": "half", "dst": ap("s", "float32", &[[1, 128], [1, 8]]), "value": 1.0});
    let copy = json!({"op": "TensorCopy", "name": "all", "src": ap("s", "float32", &[[1, 128], [1, 16]]),
        "dst": ap("r", "float32", &[[1, 128], [1, 16]])});
    let program = save(dir.path(), "u.bir.json", &[sb("s", 128, 0, 64), sb("r", 128, 64, 64)], &[set, copy]);
    let out = run(&["verify", "--target", "trn2"], &program);
    assert_eq!(code(&out), 4);
    let want = "error[V-315]: reads partition 0, byte 32 of SB location `s`, which is not written before";
    assert!(stderr(&out).starts_with(want), "{}", stderr(&out));
    assert_eq!(code(&run(&["run", "--target", "trn2"], &program)), 5);
    stdout(&run(&["run", "--target", "trn2", "--uninit", "zero"], &program));
}

/// `x` and `w` live while `m` runs; `r` is written by `c`; `o` covers banks 1 and 2.
fn mapped(dir: &Path) -> PathBuf {
    let m = json!({"op": "Matmult", "name": "m", "ifmap": ap("x", "bfloat16", &[[1, 128], [1, 64]]),
        "weights": ap("w", "bfloat16", &[[1, 128], [1, 32]]), "out": ap("o", "float32", &[[1, 32], [1, 64]])});
    let c = json!({"op": "TensorCopy", "name": "c", "src": ap("o", "float32", &[[1, 32], [1, 64]]),
        "dst": ap("r", "float32", &[[1, 32], [1, 64]])});
    let locs = [sb("x", 128, 0, 128), sb("w", 128, 128, 64), sb("r", 64, 1024, 256), psum("o", 1, 4096)];
    save(dir, "map.bir.json", &locs, &[m, c])
}

#[test]
fn the_map_of_memory() {
    let dir = tempfile::tempdir().unwrap();
    let program = mapped(dir.path());
    let text = stdout(&run(&["run", "--target", "trn2", "--map"], &program));
    for line in [
        "SBUF, 229376 bytes a partition",
        // 128 + 64 + 256 placed; r alone is more than x and w together.
        "  partitions 0..64: 448 bytes placed, at most 256 in use at once at 1 (c): 0.1 %",
        "  partitions 64..128: 192 bytes placed, at most 192 in use at once at 0 (m): 0.1 %",
        "      1024..1280    r  partitions 0..64, lives 1 (c)",
        "  bank 0: free",
        "  bank 1: 1 location",
        "         0..2048    o  partitions 0..128, lives 0..1 (m .. c)",
        "  bank 3: free",
        "  bank 2  ##",
    ] {
        assert!(text.lines().any(|l| l == line), "{line:?} in\n{text}");
    }
    let text = stdout(&run(&["run", "--target", "trn2", "--map", "--json"], &program));
    let v: Value = serde_json::from_str(&text).unwrap();
    let map = &v["map"][0];
    assert_eq!(
        map["sbuf"]["partitions"],
        json!([
            {"partition": 0, "partitions": 64, "bytes_placed": 448, "bytes_in_use": 256,
             "at": {"index": 1, "instruction": "c"}},
            {"partition": 64, "partitions": 64, "bytes_placed": 192, "bytes_in_use": 192,
             "at": {"index": 0, "instruction": "m"}}])
    );
    let banks = map["psum"]["banks"].as_array().unwrap();
    let holding: Vec<u64> = banks
        .iter()
        .filter(|b| b["locations"].as_array().is_some_and(|l| !l.is_empty()))
        .map(|b| b["bank"].as_u64().unwrap())
        .collect();
    assert_eq!((banks.len(), holding), (8, vec![1, 2]));
    assert_eq!(banks[1]["locations"][0]["life"], json!({"first": 0, "last": 1, "from": "m", "to": "c"}));
    // 128 partitions of 128 and 64 bytes, then 64 of 256.
    assert_eq!(
        map["occupancy"],
        json!([{"instruction": "m", "sbuf_bytes": 24576, "psum_banks": [1, 2]},
               {"instruction": "c", "sbuf_bytes": 16384, "psum_banks": [1, 2]}])
    );
}
