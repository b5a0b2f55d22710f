//! Running the built command from tests.

#![allow(clippy::unwrap_used)]
#![allow(dead_code)] // Each test file uses a part.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The folder of test data.
pub(crate) fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data")
}

/// Runs the command in the data folder.
pub(crate) fn hadal<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hadal"))
        .args(args)
        .current_dir(data())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Runs the command with the given standard input.
pub(crate) fn hadal_with_input<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, input: &[u8]) -> Output {
    use std::io::Write;
    let mut child = Command::new(env!("CARGO_BIN_EXE_hadal"))
        .args(args)
        .current_dir(data())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The inputs of these tests are smaller than a pipe, so writing them first cannot block.
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

/// Standard output of a run that must succeed.
pub(crate) fn stdout(out: &Output) -> String {
    assert!(out.status.success(), "{}", stderr(out));
    String::from_utf8(out.stdout.clone()).unwrap()
}

/// Standard error.
pub(crate) fn stderr(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// Exit code.
pub(crate) fn code(out: &Output) -> i32 {
    out.status.code().unwrap_or(-1)
}
