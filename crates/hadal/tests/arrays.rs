//! Arrays in and out of the command, with values that follow from arithmetic alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;

use common::{code, hadal, stderr, stdout};
use hadal::npy::{self, Kind, Npy};

fn save(path: &Path, kind: Kind, size: usize, shape: &[usize], data: Vec<u8>) {
    let array = Npy { kind, size, shape: shape.to_vec(), data };
    std::fs::write(path, npy::write(&array)).unwrap();
}

fn floats(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_le_bytes).collect()
}

fn load(path: &Path) -> Npy {
    npy::read(&std::fs::read(path).unwrap()).unwrap()
}

fn as_floats(array: &Npy) -> Vec<f32> {
    assert_eq!((array.kind, array.size), (Kind::Float, 4));
    array.data.as_chunks().0.iter().map(|c| f32::from_le_bytes(*c)).collect()
}

#[test]
fn ones_times_ones() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    save(&at("x.npy"), Kind::Float, 4, &[128, 512], floats(vec![1.0; 128 * 512]));
    // The bit pattern of 1 in bfloat16.
    save(&at("w.npy"), Kind::Unsigned, 2, &[128, 128], 0x3F80u16.to_le_bytes().repeat(128 * 128));
    for executor in ["bundles", "ir", "both"] {
        let out = hadal([
            "run",
            "programs/dense_bf16.bir.json",
            "--target",
            "trn2",
            "--executor",
            executor,
            "--in",
            &format!("x={}", at("x.npy").display()),
            "--in",
            &format!("w={}", at("w.npy").display()),
            "--out-dir",
            &at("out").display().to_string(),
            "--dump",
            &format!("x={}", at("x-bits.npy").display()),
        ]);
        assert!(stdout(&out).contains("from 128 to 128"), "{}", stdout(&out));
        let o = load(&at("out/o.npy"));
        assert_eq!(o.shape, [128, 512]);
        assert!(as_floats(&o).iter().all(|v| *v == 128.0));
        let x = load(&at("x-bits.npy"));
        assert_eq!((x.kind, x.size, x.shape), (Kind::Unsigned, 2, vec![128, 512]));
        assert!(x.data.as_chunks::<2>().0.iter().all(|c| u16::from_le_bytes(*c) == 0x3F80));
        std::fs::remove_dir_all(at("out")).unwrap();
    }
}

#[test]
fn double_row_of_ones_is_256() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    save(&at("x.npy"), Kind::Float, 4, &[128, 1024], floats(vec![1.0; 128 * 1024]));
    save(&at("w.npy"), Kind::Float, 4, &[128, 256], floats(vec![1.0; 128 * 256]));
    let out = hadal([
        "run",
        "programs/double_row.bir.json",
        "--target",
        "trn2",
        "--executor",
        "both",
        "--in",
        &format!("x={}", at("x.npy").display()),
        "--in",
        &format!("w={}", at("w.npy").display()),
        "--dump",
        &format!("o={}", at("o.npy").display()),
        "--widen",
    ]);
    stdout(&out);
    assert!(as_floats(&load(&at("o.npy"))).iter().all(|v| *v == 256.0));
}

#[test]
fn a_transpose_moves_bits() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    // Every bit pattern of 14 bits, so infinities and NaN payloads among them.
    let bits = |row: usize, column: usize| u16::try_from((row * 128 + column) * 4 + 3).unwrap();
    let all = |f: &dyn Fn(usize, usize) -> u16| -> Vec<u8> {
        (0..128 * 128).flat_map(|i| f(i / 128, i % 128).to_le_bytes()).collect()
    };
    save(&at("w.npy"), Kind::Unsigned, 2, &[128, 128], all(&bits));
    let identity = (0..128 * 128).map(|i| if i / 128 == i % 128 { 1.0 } else { 0.0 });
    save(&at("x.npy"), Kind::Float, 4, &[128, 128], floats(identity));
    for target in ["trn2", "trn3"] {
        let out = hadal([
            "run",
            "programs/transpose.bir.json",
            "--target",
            target,
            "--executor",
            "both",
            "--in",
            &format!("x={}", at("x.npy").display()),
            "--in",
            &format!("w={}", at("w.npy").display()),
            "--dump",
            &format!("o={}", at("o.npy").display()),
        ]);
        stdout(&out);
        assert_eq!(load(&at("o.npy")).data, all(&|row, column| bits(column, row)), "{target}");
    }
}

#[test]
fn the_seed_decides_the_inputs() {
    let range = |seed: &str| {
        let out = hadal(["run", "programs/dense_bf16.bir.json", "-t", "trn2", "--seed", seed, "--json"]);
        let value: serde_json::Value = serde_json::from_str(&stdout(&out)).unwrap();
        value["outputs"][0]["min"].as_f64().unwrap()
    };
    assert_eq!(range("7").to_bits(), range("7").to_bits());
    assert_ne!(range("7").to_bits(), range("8").to_bits());
}

#[test]
fn threads_decide_nothing() {
    let run = |threads: &str| {
        let program = "programs/quantize_matmul_mx.bir.json";
        let dir = tempfile::tempdir().unwrap();
        let out_dir = dir.path().display().to_string();
        stdout(&hadal(["run", program, "-t", "trn3", "--threads", threads, "--out-dir", &out_dir]));
        ["o", "x", "xs"].map(|name| std::fs::read(dir.path().join(format!("{name}.npy"))).unwrap())
    };
    let one = run("1");
    assert!(one == run("2") && one == run("5"));
}

#[test]
fn a_run_that_fails_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let out_dir = dir.path().join("out");
    let out = hadal([
        "run".to_owned(),
        "programs/quantize_matmul_mx.bir.json".to_owned(),
        "--target".to_owned(),
        "trn2".to_owned(),
        "--out-dir".to_owned(),
        out_dir.display().to_string(),
    ]);
    assert_eq!(code(&out), 4, "{}", stderr(&out));
    assert!(!out_dir.exists());
}

#[test]
fn cast_to_codes_and_back() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let path = |name: &str| at(name).display().to_string();
    // 464 rounds to 448, 465 past it; 1, 2, -1 and 448 have the codes 38, 40, B8 and 7E.
    save(&at("x.npy"), Kind::Float, 4, &[2, 4], floats([1.0, 2.0, -1.0, 448.0, 464.0, 465.0, 0.0, -0.0]));
    stdout(&hadal(["cast", &path("x.npy"), "--to", "float8_e4m3fn", "-o", &path("c.npy")]));
    let c = load(&at("c.npy"));
    assert_eq!((c.kind, c.size, &c.shape[..]), (Kind::Unsigned, 1, &[2, 4][..]));
    assert_eq!(c.data, [0x38, 0x40, 0xB8, 0x7E, 0x7E, 0x7F, 0x00, 0x80]);
    stdout(&hadal([
        "cast",
        &path("x.npy"),
        "--to",
        "e4m3fn",
        "--overflow",
        "saturate",
        "-o",
        &path("s.npy"),
    ]));
    assert_eq!(load(&at("s.npy")).data[5], 0x7E);
    stdout(&hadal(["cast", &path("c.npy"), "--from", "e4m3fn", "--to", "float32", "-o", &path("y.npy")]));
    let y = as_floats(&load(&at("y.npy")));
    assert_eq!(y[..5], [1.0, 2.0, -1.0, 448.0, 448.0]);
    assert!(y[5].is_nan() && y[7].is_sign_negative());
    // Four lanes a container, the first in the lowest byte.
    stdout(&hadal(["cast", &path("x.npy"), "--to", "float8_e4m3fn_x4", "-o", &path("p.npy")]));
    let p = load(&at("p.npy"));
    assert_eq!((p.size, &p.shape[..]), (4, &[2, 1][..]));
    assert_eq!(p.data[..4], 0x7EB8_4038u32.to_le_bytes());
    save(&at("f.npy"), Kind::Float, 4, &[4], floats([0.5, 1.0, 1.5, 2.0]));
    stdout(&hadal(["cast", &path("f.npy"), "--to", "float4_e2m1fn_x4", "-o", &path("q.npy")]));
    assert_eq!(load(&at("q.npy")).data, 0x4321u16.to_le_bytes());
    // Codes without a format, and a dimension that four does not divide.
    let out = hadal(["cast", &path("c.npy"), "--to", "fp32", "-o", &path("z.npy")]);
    assert_eq!(code(&out), 3);
    assert!(stderr(&out).contains("nothing says what its bits are"), "{}", stderr(&out));
    save(&at("odd.npy"), Kind::Float, 4, &[3], floats([1.0; 3]));
    let out = hadal(["cast", &path("odd.npy"), "--to", "float4_e2m1fn_x4", "-o", &path("z.npy")]);
    assert_eq!(code(&out), 3);
    assert!(!at("z.npy").exists());
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_hadal"))
        .arg("isa")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Closing our end before reading makes the command's write fail.
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    assert!(out.stderr.is_empty());
}
