//! Execution through the command: results that no choice of threads or instruction set changes, damaged bundles,
//! and the probes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::process::Command;

use common::{code, data, hadal, hadal_with_input, stderr, stdout};
use hadal::isa::{Addr4, Inst, Target, Word, decode, words_from_hex};
use hadal::num::simd::Level;

/// Programs large enough that work is shared, of each kind of product, and what to read back.
const PROGRAMS: [(&str, &str, &[&str]); 8] = [
    ("programs/dense_bf16.bir.json", "trn1", &["o"]),
    ("programs/fp32_two_pass.bir.json", "trn2", &["o"]),
    ("programs/fp32r.bir.json", "trn2", &["o"]),
    ("programs/sparse_4.bir.json", "trn2", &["o"]),
    ("programs/transpose.bir.json", "trn2", &["o"]),
    ("programs/quantize_matmul_mx.bir.json", "trn3", &["o", "x", "xs"]),
    ("klr/accept/d_mx_scattered.klr", "trn3", &["out"]),
    ("klr/accept/f_doublerow_fp8.klr", "trn3", &["out"]),
];

#[test]
fn results_do_not_depend_on_threads_or_instruction_set() {
    let folder = tempfile::tempdir().unwrap();
    let levels: Vec<Level> = Level::ALL.into_iter().filter(|l| l.is_available()).collect();
    assert!(levels.len() >= 2);
    for (program, target, names) in PROGRAMS {
        let mut first: Option<(Vec<Vec<u8>>, String)> = None;
        // Every level on one thread, and the thread counts on the best level.
        let best = levels.last().unwrap().name();
        let runs = levels.iter().map(|l| (l.name(), "1")).chain(["2", "8"].map(|n| (best, n)));
        for (level, threads) in runs {
            let mut command = Command::new(env!("CARGO_BIN_EXE_hadal"));
            command.current_dir(data()).env("HADAL_SIMD", level);
            command.args(["run", program, "-t", target, "-q", "--threads", threads, "--fp32", "two-pass"]);
            let file = |name: &str| folder.path().join(format!("{name}.npy"));
            for name in names {
                command.arg("--dump").arg(format!("{name}={}", file(name).display()));
            }
            let out = command.output().unwrap();
            assert!(out.status.success(), "{program} on {target}: {}", stderr(&out));
            let bytes: Vec<Vec<u8>> = names.iter().map(|n| std::fs::read(file(n)).unwrap()).collect();
            let choice = format!("{level} on {threads} threads");
            match &first {
                None => {
                    // Zeros everywhere would agree whatever happened.
                    assert!(bytes.iter().all(|b| b[128..].iter().any(|v| *v != 0)), "{program}");
                    first = Some((bytes, choice));
                }
                Some((want, who)) => assert!(*want == bytes, "{program}: {choice} differs from {who}"),
            }
        }
    }
}

fn golden(name: &str) -> Vec<Word> {
    words_from_hex(&std::fs::read_to_string(data().join(format!("programs/{name}.hex"))).unwrap()).unwrap()
}

fn run_words(words: &[Word], target: &str) -> std::process::Output {
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.0).collect();
    hadal_with_input(["run", "-", "-t", target, "--uninit", "zero", "-q"], &bytes)
}

#[test]
fn broken_streams_end_with_a_place() {
    let words = golden("dense_small.trn2");
    assert_eq!(words.len(), 2);
    assert_eq!(code(&run_words(&words, "trn2")), 0);
    let fails = |words: &[Word], text: &str, place: &str| {
        let out = run_words(words, "trn2");
        let error = stderr(&out);
        assert_eq!(code(&out), 5, "{error}");
        assert!(error.contains(text) && error.contains(&format!("--> {place}")), "{error}");
    };
    fails(&[words[1], words[0]], "loaded", "bundle 0 (Matmul)");
    fails(&words[1..], "loaded", "bundle 0 (Matmul)");
    let changed = |which: usize, change: &dyn Fn(&mut Inst)| {
        let mut words = words.clone();
        let mut d = decode(&words[which], Target::TRN2);
        change(&mut d.inst);
        words[which] = d.encode(Target::TRN2);
        words
    };
    let end = Target::TRN2.sbuf_bytes_per_partition();
    let past = changed(0, &|i| {
        if let Inst::LoadStationary(l) = i {
            l.weights.start = Addr4::sbuf(0, end - 2);
        }
    });
    fails(&past, &format!("byte {end} of partition 0"), "bundle 0 (LoadStationary), operand weights");
    let past = changed(1, &|i| {
        if let Inst::Matmul(m) = i {
            m.moving.start = Addr4::sbuf(100, 0);
        }
    });
    fails(&past, "partition 128", "bundle 1 (Matmul), operand ifmap");
    // Half a bundle.
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.0).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes[..96]).unwrap();
    let out = hadal(["run", file.path().to_str().unwrap(), "-t", "trn2"]);
    assert_eq!(code(&out), 3, "{}", stderr(&out));
}

/// One bit in each byte of each bundle, which one by a fixed rule; all 512 are flipped in the simulator's tests.
#[test]
fn flipped_bits_through_the_command() {
    for (name, target) in [("dense_small.trn2", "trn2"), ("quantize_matmul_mx.trn3", "trn3")] {
        let words = golden(name);
        for bundle in 0..words.len() {
            for byte in (bundle % 4..64).step_by(4) {
                let mut damaged = words.clone();
                damaged[bundle].0[byte] ^= 1 << ((byte * 5 + bundle) % 8);
                let out = run_words(&damaged, target);
                let text = stderr(&out);
                assert!([0, 3, 5].contains(&code(&out)), "{name} {bundle} {byte}: {} {text}", code(&out));
                assert!(!text.contains("panicked"), "{text}");
                assert_eq!(code(&out) == 5, text.contains("--> bundle "), "{name} {bundle} {byte}: {text}");
            }
        }
    }
}

/// The numbers that the probes are known by, as the command prints them.
#[test]
fn probes() {
    let json: serde_json::Value = serde_json::from_str(&stdout(&hadal(["probe", "--json"]))).unwrap();
    let probes = json["probes"].as_array().unwrap();
    let expected = |id: &str| {
        let p = probes.iter().find(|p| p["id"] == id).unwrap_or_else(|| panic!("{id}"));
        assert!(p["models"].as_array().unwrap().len() >= 2, "{id}");
        assert!(!p["question"].as_str().unwrap().is_empty() && !p["inputs"].as_str().unwrap().is_empty());
        p["expected"].clone()
    };
    for (id, value, bits) in [
        ("fp32-product", 0.999_996_2, "3F7FFFC0"),
        ("bf16-product", 1.015_686_035_156_25, "3F820200"),
        ("psum-add", 16_777_218.0, "4B800001"),
        ("bf16-psum", 256.0, "4380"),
        ("fp32-psum", 260.0, "43820000"),
        ("fp32r-rounding", 1.000_976_6, "3F802000"),
        ("mx-scale-150", 126.0, "7E 79"),
        ("mx-scale-960", 128.0, "80 7E"),
        ("fp4-packing", 0.5, "4321"),
        ("fp8-packing", 1.0, "7EB84038"),
        ("e4m3fn-overflow", 448.0, "7E 7F"),
    ] {
        let e = expected(id);
        assert!((e["values"][0].as_f64().unwrap() as f32 - value as f32).abs() <= f32::EPSILON, "{id}: {e}");
        assert_eq!(e["bits"], bits, "{id}");
    }
    assert_eq!(expected("mx-scale-960")["values"][1], 896.0);
    let codes = expected("e8m0-codes");
    assert_eq!(codes["bits"], "00400000 3F800000 43000000 7FC00000");
    assert_eq!(codes["values"][3], "NaN");

    let hardware = ["probe", "mx-scale-960", "--mx-rule", "hardware", "--json"];
    let json: serde_json::Value = serde_json::from_str(&stdout(&hadal(hardware))).unwrap();
    assert_eq!(json["probes"][0]["expected"]["values"], serde_json::json!([129.0, 960.0]));
    assert_eq!(json["probes"].as_array().unwrap().len(), 1);

    let out = hadal(["probe", "nonsense"]);
    assert_eq!(code(&out), 2);
    assert!(stderr(&out).contains("psum-add"), "{}", stderr(&out));
    let out = hadal(["probe", "mx-scale-150", "--target", "trn1"]);
    assert_eq!(code(&out), 2, "{}", stderr(&out));
}
