//! Kernels against numpy: three computed cases kept as data, and the whole comparison where numpy is.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::process::Command;

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests")
}

/// Runs a kernel on the kept inputs and compares the bytes of one output.
fn kept(kernel: &str, target: &str, inputs: &[&str], output: &str) {
    let data = tests().join("data/computed");
    let folder = tempfile::tempdir().unwrap();
    let got = folder.path().join("got.npy");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hadal"));
    command.arg("run").arg(tests().join(format!("data/klr/accept/{kernel}.klr")));
    command.args(["--target", target, "--executor", "both", "-q"]);
    for name in inputs {
        let file = data.join(format!("{kernel}.{name}.in.npy"));
        command.arg("--in").arg(format!("{name}={}", file.display()));
    }
    command.arg("--dump").arg(format!("{output}={}", got.display()));
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let want = std::fs::read(data.join(format!("{kernel}.{output}.out.npy"))).unwrap();
    // The arrays are little-endian uint32 at the end of either file; headers may differ in padding.
    let got = std::fs::read(got).unwrap();
    let body = |f: &[u8]| f[10 + usize::from(u16::from_le_bytes([f[8], f[9]]))..].to_vec();
    assert!(!body(&want).is_empty());
    assert!(body(&got) == body(&want), "{kernel} on {target} differs from numpy");
}

#[test]
fn kept_cases() {
    for target in ["trn1", "trn2", "trn3"] {
        kept("tiny_mm", target, &["a", "b"], "p");
    }
    for target in ["trn2", "trn3"] {
        kept("f_doublerow_fp8", target, &["lhsT", "rhs"], "out");
    }
    kept("d2_mx_rowtile32", "trn3", &["a", "b"], "out");
}

#[test]
fn every_kernel_where_numpy_is() {
    let numpy = Command::new("python3").args(["-c", "import numpy"]).output();
    if !numpy.is_ok_and(|o| o.status.success()) {
        eprintln!("skipped: no python3 with numpy");
        return;
    }
    let out = Command::new("python3")
        .arg(tests().join("numpy/check.py"))
        .arg(env!("CARGO_BIN_EXE_hadal"))
        .arg(tests().join("data/klr/accept"))
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
}
