//! `hadal mx` on `.safetensors` files, which the format's own crate writes and reads here.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use common::{code, data, hadal, stderr, stdout};
use hadal::npy;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

type Tensor<'a> = (&'a str, Dtype, Vec<usize>, &'a [u8]);

fn save(path: &Path, tensors: &[Tensor<'_>]) {
    let views: Vec<(&str, TensorView<'_>)> = tensors
        .iter()
        .map(|(name, dtype, shape, data)| (*name, TensorView::new(*dtype, shape.clone(), data).unwrap()))
        .collect();
    let note = HashMap::from([("origin".to_owned(), "a test".to_owned())]);
    std::fs::write(path, safetensors::serialize(views, Some(note)).unwrap()).unwrap();
}

fn run(args: &[&str]) -> std::process::Output {
    hadal(["mx"].iter().chain(args))
}

fn note(bytes: &[u8], key: &str) -> Option<String> {
    SafeTensors::read_metadata(bytes).unwrap().1.metadata().as_ref()?.get(key).cloned()
}

fn golden(name: &str) -> Vec<u8> {
    npy::read(&std::fs::read(data().join(name)).unwrap()).unwrap().data
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

fn folder() -> Folder {
    Folder(tempfile::tempdir().unwrap())
}

#[test]
fn a_checkpoint_there_and_back() {
    let f = folder();
    let (b, h) = (
        golden("mx/normal_bfloat16_float8_e4m3fn_reference_x.npy"),
        golden("mx/ties_float16_float8_e4m3fn_reference_x.npy"),
    );
    let norm = floats(&[1.5; 7]);
    let ids: Vec<u8> = (0..24u64).flat_map(u64::to_le_bytes).collect();
    save(
        &f.path("m.safetensors"),
        &[
            ("b.weight", Dtype::BF16, vec![128, 64], &b),
            ("h.weight", Dtype::F16, vec![128, 64], &h),
            ("norm", Dtype::F32, vec![7], &norm),
            ("ids", Dtype::I64, vec![8, 3], &ids),
        ],
    );
    let said = stdout(&run(&["quantize", &f.text("m.safetensors"), "-o", &f.text("q"), "--json"]));
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["tensors"].as_array().unwrap().len(), 2);
    assert_eq!(said["copied"].as_array().unwrap().len(), 2);
    let bytes = std::fs::read(f.path("q.safetensors")).unwrap();
    let q = SafeTensors::deserialize(&bytes).unwrap();
    for (name, case) in [("b", "normal_bfloat16"), ("h", "ties_float16")] {
        let data = q.tensor(&format!("{name}.weight.data")).unwrap();
        assert_eq!((data.dtype(), data.shape()), (Dtype::U32, &[128, 16][..]));
        assert!(data.data() == golden(&format!("mx/{case}_float8_e4m3fn_reference_codes.npy")), "{name}");
        let scale = q.tensor(&format!("{name}.weight.scale")).unwrap();
        assert_eq!((scale.dtype(), scale.shape()), (Dtype::U8, &[16, 16][..]));
        assert!(scale.data() == golden(&format!("mx/{case}_float8_e4m3fn_reference_scales.npy")), "{name}");
        assert!(q.tensor(&format!("{name}.weight")).is_err());
    }
    assert_eq!(q.tensor("norm").unwrap().data(), norm);
    assert_eq!(q.tensor("ids").unwrap().data(), ids);
    assert_eq!(q.len(), 6);
    assert_eq!(note(&bytes, "origin").as_deref(), Some("a test"));
    let how: Value = serde_json::from_str(&note(&bytes, "hadal.mx").unwrap()).unwrap();
    assert_eq!(how["rule"], "reference");
    assert_eq!(how["layout"], "logical");
    assert_eq!(how["tensors"]["h.weight"]["shape"], serde_json::json!([128, 64]));

    stdout(&run(&["dequantize", &f.text("q.safetensors"), "-o", &f.text("back.safetensors")]));
    let bytes = std::fs::read(f.path("back.safetensors")).unwrap();
    let back = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(back.len(), 4);
    let w = back.tensor("h.weight").unwrap();
    assert_eq!((w.dtype(), w.shape()), (Dtype::F32, &[128, 64][..]));
    assert!(w.data() == golden("mx/ties_float16_float8_e4m3fn_reference_deq.npy"));
    assert_eq!(note(&bytes, "hadal.mx"), None);
}

#[test]
fn a_pattern_decides_and_must_fit() {
    let f = folder();
    let w = floats(&[1.0; 64]);
    let odd = floats(&[1.0; 36]);
    save(
        &f.path("m.safetensors"),
        &[
            ("l.0.w", Dtype::F32, vec![8, 8], &w),
            ("l.1.w", Dtype::F32, vec![8, 8], &w),
            ("odd", Dtype::F32, vec![9, 4], &odd),
        ],
    );
    let m = f.text("m.safetensors");
    let names = |file: &str| {
        let bytes = std::fs::read(f.path(file)).unwrap();
        let mut names: Vec<String> =
            SafeTensors::deserialize(&bytes).unwrap().names().into_iter().map(String::from).collect();
        names.sort();
        names
    };
    stdout(&run(&[
        "quantize",
        &m,
        "--tensor",
        "*.[1-9].w",
        "--format",
        "e2m1",
        "-o",
        &f.text("q.safetensors"),
    ]));
    assert_eq!(names("q.safetensors"), ["l.0.w", "l.1.w.data", "l.1.w.scale", "odd"]);
    for (pattern, text) in [
        ("o*", "tensor \"odd\": 9 rows of shape [9, 4] do not divide into blocks of 8 x 4"),
        ("none*", "no tensor is called none*; there are"),
    ] {
        let out = run(&["quantize", &m, "--tensor", pattern, "-o", &f.text("p")]);
        assert_eq!(code(&out), 3);
        assert!(stderr(&out).contains(text), "{}", stderr(&out));
        assert!(!f.path("p.safetensors").exists());
    }
    assert_eq!(code(&run(&["quantize", &m, "--tensor", "[", "-o", &f.text("p")])), 2);
    // A file in which nothing divides says why.
    save(&f.path("n.safetensors"), &[("odd", Dtype::F32, vec![9, 4], &odd)]);
    let out = run(&["quantize", &f.text("n.safetensors"), "-o", &f.text("p")]);
    assert_eq!(code(&out), 3);
    assert!(stderr(&out).contains("tensor \"odd\": 9 rows"), "{}", stderr(&out));
    // A name that is taken.
    save(
        &f.path("t.safetensors"),
        &[("w", Dtype::F32, vec![8, 8], &w), ("w.data", Dtype::F32, vec![9, 4], &odd)],
    );
    let out = run(&["quantize", &f.text("t.safetensors"), "-o", &f.text("p")]);
    assert_eq!(code(&out), 3);
    assert!(stderr(&out).contains("need the name \"w.data\""), "{}", stderr(&out));
}

/// The values of FP8 codes by an independent table.
fn table(format: &str) -> Vec<f32> {
    let bytes = golden(&format!("casts/{format}_to_float32.npy"));
    bytes.as_chunks().0.iter().map(|c| f32::from_le_bytes(*c)).collect()
}

#[test]
fn a_cured_checkpoint_means_to_a_legacy_reader_what_it_meant() {
    let f = folder();
    let (ours, legacy) = (table("float8_e4m3fn"), table("float8_e4m3"));
    let all: Vec<u8> = (0..=255).collect();
    // No code that differs, but one that halving would round.
    let small = vec![0x01u8; 16];
    let two = floats(&[0.5, 3.0]);
    let bf16 = 0x3F80u16.to_le_bytes();
    let e8m0 = [120u8];
    save(
        &f.path("m.safetensors"),
        &[
            ("a", Dtype::F8_E4M3, vec![16, 16], &all),
            ("a_scale", Dtype::F32, vec![2], &two),
            ("b.weight", Dtype::F8_E4M3, vec![256], &all),
            ("b.weight_scale_inv", Dtype::BF16, vec![1], &bf16),
            ("c", Dtype::F8_E4M3, vec![4, 64], &all),
            ("d", Dtype::F8_E4M3, vec![4, 64], &all),
            ("d.scale", Dtype::F8_E8M0, vec![1], &e8m0),
            ("e", Dtype::F8_E4M3, vec![16], &small),
            ("e_scale", Dtype::F32, vec![2], &two),
        ],
    );
    let m = f.text("m.safetensors");
    let json = |args: &[&str]| -> Value { serde_json::from_str(&stdout(&run(args))).unwrap() };
    let before = json(&["audit", &m, "--target", "trn2", "--json"]);
    // Codes 78..7E and F8..FE, in four tensors of all codes.
    assert_eq!(before["differ"], 4 * 14);
    for t in before["tensors"].as_array().unwrap().iter().filter(|t| t["name"] != "e") {
        assert_eq!((&t["to_infinity"], &t["to_nan"], &t["nan_in_both"]), (&2.into(), &12.into(), &2.into()));
        assert_eq!(t["codes"].as_object().unwrap().len(), 16);
    }
    assert_eq!(json(&["audit", &m, "--target", "trn3", "--json"])["differ"], 0);

    let out = f.text("fixed.safetensors");
    let fixed = json(&["audit", &m, "--target", "trn1", "--fix", "-o", &out, "--json"]);
    let bytes = std::fs::read(&out).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let get = |name: &str| file.tensor(name).unwrap().data().to_vec();
    let mut inexact = 0;
    for (code, &to) in get("a").iter().enumerate() {
        let (want, got) = (ours[code], legacy[usize::from(to)] * 2.0);
        if got != want && !(got.is_nan() && want.is_nan()) {
            // Half of an odd multiple of 2^-9 below 2^-6 is no multiple, and lies half a step off.
            assert!(want.abs() < 2f32.powi(-5) && (got - want).abs() == 2f32.powi(-9), "{code:02X}");
            inexact += 1;
        }
    }
    let row =
        |name: &str| fixed["tensors"].as_array().unwrap().iter().find(|t| t["name"] == name).unwrap().clone();
    assert_eq!(row("a")["inexact"], inexact);
    assert!(inexact > 0);
    for name in ["b.weight", "c", "d"] {
        assert_eq!(get(name), get("a"), "{name}");
    }
    assert_eq!(get("a_scale"), floats(&[1.0, 6.0]));
    assert_eq!(get("b.weight_scale_inv"), 0x4000u16.to_le_bytes());
    assert_eq!(get("d.scale"), [121]);
    assert_eq!((get("e"), get("e_scale")), (small, two));
    assert_eq!((&row("c")["scale"], &row("c")["factor"]), (&Value::Null, &2.into()));
    assert_eq!((&row("e")["fixed"], &row("e")["factor"]), (&false.into(), &1.into()));
    let how: Value = serde_json::from_str(&note(&bytes, "hadal.fp8-halved").unwrap()).unwrap();
    assert_eq!(how["tensors"]["b.weight"]["doubled"], "b.weight_scale_inv");
    assert_eq!(how["tensors"]["c"]["doubled"], Value::Null);
    assert_eq!(json(&["audit", &out, "--target", "trn2", "--json"])["differ"], 0);
}

#[test]
fn scales_that_cannot_be_doubled() {
    let f = folder();
    let codes = [0x7Eu8; 8];
    let (max, one) = (floats(&[f32::MAX]), floats(&[1.0]));
    for (scales, text) in [
        (vec![("w_scale", Dtype::F32, vec![1], &max[..])], "tensor \"w_scale\": doubling it overflows F32"),
        (vec![("w_scale", Dtype::I32, vec![1], &one[..])], "a scale of type I32 cannot be doubled"),
        (
            vec![("w_scale", Dtype::F32, vec![1], &one[..]), ("w_scale_inv", Dtype::F32, vec![1], &one[..])],
            "more than one scale",
        ),
    ] {
        let mut tensors: Vec<Tensor<'_>> = vec![("w", Dtype::F8_E4M3, vec![8], &codes)];
        tensors.extend(scales);
        save(&f.path("m.safetensors"), &tensors);
        let out = run(&["audit", &f.text("m.safetensors"), "--target", "trn2", "--fix", "-o", &f.text("p")]);
        assert_eq!(code(&out), 3);
        assert!(stderr(&out).contains(text), "{}", stderr(&out));
        assert_eq!(std::fs::read_dir(f.0.path()).unwrap().count(), 1);
    }
}

#[test]
fn tensors_without_elements_take_no_time() {
    let f = folder();
    // A crate that allocates by shape could not make these.
    let header = br#"{"w":{"dtype":"F32","shape":[288230376151711744,0],"data_offsets":[0,0]},"v":{"dtype":"F8_E4M3","shape":[0,4611686018427387904],"data_offsets":[0,0]}}"#;
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header].concat();
    std::fs::write(f.path("m.safetensors"), bytes).unwrap();
    let m = f.text("m.safetensors");
    stdout(&run(&["report", &m]));
    stdout(&run(&["audit", &m, "--target", "trn2"]));
    stdout(&run(&["quantize", &m, "-o", &f.text("q")]));
    stdout(&run(&["dequantize", &f.text("q.safetensors"), "-o", &f.text("b.safetensors")]));
}

#[test]
fn damaged_files_are_refused_in_a_line() {
    let f = folder();
    let w = floats(&[1.0; 32]);
    save(&f.path("m.safetensors"), &[("w", Dtype::F32, vec![8, 4], &w)]);
    let good = std::fs::read(f.path("m.safetensors")).unwrap();
    let mut files = vec![("empty", Vec::new()), ("huge", (1u64 << 60).to_le_bytes().to_vec())];
    files.push(("huge with a header", [&(1u64 << 60).to_le_bytes()[..], &good[8..]].concat()));
    files.extend([4, 8, 9, 40, good.len() - 1].map(|n| ("cut", good[..n].to_vec())));
    files.push(("long", [&good[..], b"x"].concat()));
    files.push(("text", b"hello".to_vec()));
    for (what, bytes) in files {
        std::fs::write(f.path("bad.safetensors"), &bytes).unwrap();
        for command in ["quantize", "report", "audit", "dequantize"] {
            let mut args = vec![command.to_owned(), f.text("bad.safetensors")];
            match command {
                "audit" => args.extend(["--target", "trn2"].map(String::from)),
                "report" => {}
                _ => args.extend(["-o".to_owned(), f.text("p")]),
            }
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let out = run(&args);
            let said = stderr(&out);
            assert_eq!(code(&out), 3, "{command} {what} {}: {said}", bytes.len());
            assert!(said.starts_with("error[") && said.lines().count() == 1, "{command} {what}: {said}");
        }
    }
    let mut left: Vec<_> = std::fs::read_dir(f.0.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["bad.safetensors", "m.safetensors"]);
}
