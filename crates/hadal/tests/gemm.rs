//! `hadal gemm` from the command line: results, emitted programs, figures and refusals.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::{Path, PathBuf};

use common::{code, hadal, hadal_with_input, stderr, stdout};
use hadal::npy::{self, Kind, Npy};

/// Values with a spread, from a multiplication of the index.
fn values(count: usize, seed: u32) -> Vec<f32> {
    (0..count as u32)
        .map(|i| ((i ^ seed).wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 24) as f32 - 0.5)
        .collect()
}

fn floats(shape: [usize; 2], values: &[f32]) -> Npy {
    let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Npy { kind: Kind::Float, size: 4, shape: shape.to_vec(), data }
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn put(&self, name: &str, array: &Npy) -> String {
        std::fs::write(self.path(name), npy::write(array)).unwrap();
        self.path(name)
    }

    fn read(&self, name: &str) -> Npy {
        npy::read(&std::fs::read(self.path(name)).unwrap()).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let mut all: Vec<String> = std::fs::read_dir(self.0.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        all.sort();
        all
    }
}

#[test]
fn the_emitted_program_runs_to_the_same_array() {
    let dir = Folder::new();
    let (m, k, n) = (130, 300, 70);
    let (a, b) = (values(m * k, 1), values(k * n, 2));
    let (fa, fb) = (dir.put("a.npy", &floats([m, k], &a)), dir.put("b.npy", &floats([k, n], &b)));
    for (format, target) in
        [("bf16", "trn1"), ("fp32", "trn2"), ("e4m3", "trn2"), ("mxfp8-e4m3fn", "trn3"), ("mxfp4", "trn3")]
    {
        let (c, program, inputs, out) =
            (dir.path("c.npy"), dir.path("p.bir.json"), dir.path("in"), dir.path("out"));
        let done = hadal([
            "gemm",
            &fa,
            &fb,
            "--target",
            target,
            "--format",
            format,
            "-o",
            &c,
            "--emit",
            &program,
            "--emit-inputs",
            &inputs,
        ]);
        assert!(stdout(&done).contains(&format!("in {format} on {target}")));
        let mut args: Vec<String> =
            ["run", &program, "--target", target, "--out-dir", &out, "-q"].map(String::from).to_vec();
        for file in std::fs::read_dir(&inputs).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            args.extend(["--in".to_owned(), format!("{name}={}", path.display())]);
        }
        stdout(&hadal(&args));
        let want = dir.read("c.npy");
        assert_eq!((want.kind, want.size, want.shape.as_slice()), (Kind::Float, 4, &[m, n][..]));
        assert!(dir.read("out/out.npy").data == want.data, "{format}");
        std::fs::remove_dir_all(&inputs).unwrap();
    }
    // Without blocks the float operands themselves are inputs, A transposed.
    let program = dir.path("p.bir.json");
    let c = dir.path("c.npy");
    stdout(&hadal(["gemm", &fa, &fb, "--target", "trn2", "--format", "e5m2", "-o", &c, "--emit", &program]));
    let t: Vec<f32> = (0..k * m).map(|i| a[i % m * k + i / m]).collect();
    let ft = dir.put("t.npy", &floats([k, m], &t));
    let out = dir.path("out");
    stdout(&hadal([
        "run",
        &program,
        "--target",
        "trn2",
        "--in",
        &format!("lhsT={ft}"),
        "--in",
        &format!("rhs={fb}"),
        "--out-dir",
        &out,
        "--executor",
        "both",
    ]));
    assert!(dir.read("out/out.npy").data == dir.read("c.npy").data);
}

#[test]
fn figures_are_those_of_a_product_known_by_hand() {
    let dir = Folder::new();
    // 1 + 2^-8 is a tie in bfloat16 and becomes 1: each output is short by 4 * 2^-8 of 4 + 4 * 2^-8.
    let x = 1.0 + 2f32.powi(-8);
    let a = dir.put("a.npy", &floats([2, 4], &[x; 8]));
    let b = dir.put("b.npy", &floats([4, 3], &[1.0; 12]));
    let c = dir.path("c.npy");
    let done = hadal(["gemm", &a, &b, "-t", "trn2", "--format", "bf16", "-o", &c, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&done)).unwrap();
    assert_eq!(dir.read("c.npy").data, floats([2, 3], &[4.0; 6]).data);
    let e = &json["error"];
    let relative = 2f64.powi(-8) / f64::from(x);
    assert_eq!(e["compared"], 6);
    assert!((e["max_relative"].as_f64().unwrap() - relative).abs() < 1e-12);
    assert!((e["rms_relative"].as_f64().unwrap() - relative).abs() < 1e-12);
    assert!((e["snr_db"].as_f64().unwrap() + 20.0 * relative.log10()).abs() < 1e-9);
    // 2^-6 in units of 2^-21, the last place of 4.
    assert_eq!(e["max_ulp"].as_f64().unwrap(), 2f64.powi(15));
    // Either operand takes 3 cycles; A, of 2 columns, is held: a load of 1 cycle, a matmul of max(min(64, 2), 3).
    assert_eq!(json["stationary"], "A");
    assert_eq!(json["estimate"]["cycles"], 1 + 3);
    assert_eq!((json["loads"].as_u64(), json["matmuls"].as_u64()), (Some(1), Some(1)));
    let exact = hadal(["gemm", &a, &b, "-t", "trn2", "--format", "fp16", "-o", &c, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&exact)).unwrap();
    assert_eq!((&json["error"]["exact"], &json["error"]["snr_db"]), (&true.into(), &serde_json::Value::Null));
    let none = hadal(["gemm", &a, &b, "-t", "trn2", "--format", "fp16", "-o", &c, "--check", "none"]);
    assert!(stdout(&none).contains("not compared"));
}

#[test]
fn every_way_an_operand_is_stored_gives_the_same_result() {
    let dir = Folder::new();
    // Halves: exact in float16, bfloat16 and float64.
    let half = |i: usize| (i % 9) as f32 * 0.5 - 2.0;
    let a: Vec<f32> = (0..15).map(half).collect();
    let b = dir.put("b.npy", &floats([5, 2], &(3..13).map(half).collect::<Vec<f32>>()));
    let c = dir.path("c.npy");
    let run = |operand: &str, more: &[&str]| {
        let args = ["gemm", operand, &b, "-t", "trn1", "--format", "bf16", "-o", &c, "-q"];
        stdout(&hadal(args.iter().chain(more)));
        dir.read("c.npy").data
    };
    let want = run(&dir.put("a.npy", &floats([3, 5], &a)), &[]);
    let wide = a.iter().flat_map(|v| f64::from(*v).to_le_bytes()).collect();
    let wide = Npy { kind: Kind::Float, size: 8, shape: vec![3, 5], data: wide };
    assert_eq!(run(&dir.put("d.npy", &wide), &[]), want);
    let bits: Vec<u8> = a.iter().flat_map(|v| ((v.to_bits() >> 16) as u16).to_le_bytes()).collect();
    let bits = dir.put("u.npy", &Npy { kind: Kind::Unsigned, size: 2, shape: vec![3, 5], data: bits });
    assert_eq!(run(&bits, &["--from", "bfloat16"]), want);
    // First axis fastest, and big-endian: read whole.
    let t: Vec<u8> = (0..15).flat_map(|i| a[i % 3 * 5 + i / 3].to_be_bytes()).collect();
    let mut file = npy::header(Kind::Float, 4, &[3, 5]);
    let text = String::from_utf8_lossy(&file)
        .replace("'<f4', 'fortran_order': False,", "'>f4', 'fortran_order': True, ");
    file.truncate(10);
    file.extend_from_slice(&text.as_bytes()[text.len() - 118..]);
    file.extend_from_slice(&t);
    std::fs::write(dir.path("f.npy"), &file).unwrap();
    assert_eq!(run(&dir.path("f.npy"), &[]), want);
    // From standard input, and to standard output.
    let a = npy::write(&floats([3, 5], &a));
    let out = hadal_with_input(["gemm", "-", &b, "-t", "trn1", "--format", "bf16", "-o", "-"], &a);
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    assert_eq!(npy::read(&out.stdout).unwrap().data, want);
    // Codes without a name for what they are.
    let out = hadal(["gemm", &bits, &b, "-t", "trn1", "--format", "bf16", "-o", &c]);
    assert_eq!(code(&out), 3);
    assert!(stderr(&out).contains("nothing says what their bits are"), "{}", stderr(&out));
}

#[test]
fn a_comparison_has_every_format_of_every_target() {
    let dir = Folder::new();
    let a = dir.put("a.npy", &floats([20, 40], &values(800, 1)));
    let b = dir.put("b.npy", &floats([40, 30], &values(1200, 2)));
    let table = stdout(&hadal(["gemm", &a, &b, "--compare"]));
    assert_eq!(table.lines().filter(|l| l.contains(" trn")).count(), 6 + 6 + 9, "{table}");
    let json = stdout(&hadal(["gemm", &a, &b, "--compare", "--json", "-t", "trn3"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let products = json["products"].as_array().unwrap();
    let snr = |format: &str| {
        let found = products.iter().find(|p| p["format"] == format).unwrap();
        found["error"]["snr_db"].as_f64().unwrap()
    };
    assert_eq!(products.len(), 9);
    // More mantissa bits, less noise.
    let order = ["fp32", "fp16", "bf16", "mxfp8-e4m3fn", "mxfp8-e5m2", "mxfp4"];
    assert!(order.windows(2).all(|w| snr(w[0]) > snr(w[1])), "{order:?}");
    // With an output: the product of the one format and target.
    let (c, d) = (dir.path("c.npy"), dir.path("d.npy"));
    let both = ["-t", "trn2", "--format", "fp16"];
    stdout(&hadal(["gemm", &a, &b, "--compare", "-o", &c].iter().chain(&both)));
    stdout(&hadal(["gemm", &a, &b, "-o", &d].iter().chain(&both)));
    assert!(dir.read("c.npy") == dir.read("d.npy"));
}

#[test]
fn what_is_refused_says_so_and_leaves_nothing() {
    let dir = Folder::new();
    let a = dir.put("a.npy", &floats([2, 3], &values(6, 1)));
    let b = dir.put("b.npy", &floats([3, 4], &values(12, 2)));
    let c = dir.path("c.npy");
    let put = |name: &str, bytes: &[u8]| {
        std::fs::write(dir.path(name), bytes).unwrap();
        dir.path(name)
    };
    let flat = dir.put("flat.npy", &Npy { shape: vec![6], ..floats([2, 3], &values(6, 1)) });
    let empty = dir.put("empty.npy", &floats([0, 3], &[]));
    let ints = dir.put("ints.npy", &Npy { kind: Kind::Signed, ..floats([2, 3], &[0.0; 6]) });
    let text = put("text.npy", b"1 2 3");
    let nothing = put("nothing.npy", b"");
    let mut short = npy::write(&floats([2, 3], &values(6, 1)));
    short.truncate(short.len() - 1);
    let short = put("short.npy", &short);
    let huge = put("huge.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\x7f{");
    let mut long = b"\x93NUMPY\x02\x00\x00\x00\x02\x00".to_vec();
    long.resize(140_000, b' ');
    let long = put("long.npy", &long);
    let vast = b"\x93NUMPY\x01\x00\x46\x00{'descr': '<f4', 'fortran_order': False, 'shape': (99999999, 9999999), }  ";
    let vast = put("vast.npy", vast);
    let complex = b"\x93NUMPY\x01\x00\x38\x00{'descr': '<c8', 'fortran_order': False, 'shape': (0,)}  ";
    let complex = put("complex.npy", complex);
    let before = dir.names();
    for (left, code_wanted) in [
        (b.as_str(), 3),
        (&flat, 3),
        (&empty, 3),
        (&ints, 3),
        (&text, 3),
        (&nothing, 3),
        (&short, 3),
        (&huge, 3),
        (&long, 3),
        (&vast, 3),
        (&complex, 3),
        (&dir.path("absent.npy"), 3),
        (".", 3),
    ] {
        let out = hadal(["gemm", left, &b, "-t", "trn2", "--format", "bf16", "-o", &c]);
        let text = stderr(&out);
        assert_eq!(code(&out), code_wanted, "{left}: {text}");
        assert!(text.starts_with("error["), "{left}: {text}");
        assert_eq!(text.lines().filter(|l| l.starts_with("error")).count(), 1, "{left}: {text}");
    }
    let usage: [&[&str]; 8] = [
        &["-t", "trn2", "--format", "mxfp4", "-o", &c],
        &["-t", "trn2", "--format", "e4m3fn", "-o", &c],
        &["-t", "trn3", "--format", "e4m3", "-o", &c],
        &["-t", "trn3", "--format", "int8", "-o", &c],
        &["-t", "trn3", "-o", &c],
        &["--format", "bf16", "-o", &c],
        &["-t", "trn2", "--format", "bf16"],
        &["--compare", "-o", &c],
    ];
    for more in usage {
        let out = hadal(["gemm", &a, &b].iter().chain(more));
        assert_eq!(code(&out), 2, "{more:?}: {}", stderr(&out));
    }
    let out = hadal(["gemm", &a, &b, "-t", "trn2", "--format", "mxfp4", "-o", &c]);
    assert!(stderr(&out).contains("it takes bf16, fp16, fp32, fp32r, e4m3, e5m2"), "{}", stderr(&out));
    let out = hadal(["gemm", &a, &b, "-t", "trn2", "--format", "bf16", "-o", &dir.path("no/such/c.npy")]);
    assert_eq!(code(&out), 3, "{}", stderr(&out));
    assert_eq!(dir.names(), before);
}

#[test]
fn threads_and_vector_levels_write_the_same_bytes() {
    let dir = Folder::new();
    let a = dir.put("a.npy", &floats([600, 70], &values(600 * 70, 1)));
    let b = dir.put("b.npy", &floats([70, 600], &values(600 * 70, 2)));
    let mut all: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    for threads in ["1", "2", "5"] {
        for level in ["scalar", "portable", "avx2"] {
            let path = dir.path(&format!("c-{threads}-{level}.npy"));
            let out = std::process::Command::new(env!("CARGO_BIN_EXE_hadal"))
                .args(["gemm", &a, &b, "-t", "trn3", "--format", "mxfp8-e4m3fn", "-q", "-o", &path])
                .args(["--threads", threads])
                .env("HADAL_SIMD", level)
                .output()
                .unwrap();
            assert_eq!(code(&out), 0, "{}", stderr(&out));
            // No bar, no table: nothing but the file.
            assert!(out.stdout.is_empty() && out.stderr.is_empty());
            all.push((Path::new(&path).to_path_buf(), std::fs::read(&path).unwrap()));
        }
    }
    assert!(all.windows(2).all(|w| w[0].1 == w[1].1));
}

#[test]
fn emitted_bundles_are_those_that_compile_writes() {
    let dir = Folder::new();
    let a = dir.put("a.npy", &floats([20, 300], &values(6000, 1)));
    let b = dir.put("b.npy", &floats([300, 30], &values(9000, 2)));
    let emit = |name: &str| {
        let (c, program) = (dir.path("c.npy"), dir.path(name));
        let args = ["gemm", &a, &b, "-t", "trn2", "--format", "e5m2", "-q", "-o", &c, "--emit", &program];
        stdout(&hadal(args));
        program
    };
    let program = emit("p.bir.json");
    for (name, form) in [("p.bin", "bin"), ("p.hex", "hex"), ("p.asm", "asm")] {
        let (got, want) = (emit(name), dir.path("want"));
        stdout(&hadal(["compile", &program, "-t", "trn2", "--emit", form, "-q", "-o", &want]));
        assert!(std::fs::read(got).unwrap() == std::fs::read(want).unwrap(), "{form}");
    }
}
