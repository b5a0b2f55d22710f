//! `docs/isa.md` is what `hadal isa` prints; `BLESS=1` rewrites it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::Command;

#[test]
fn the_manual_in_the_docs_is_the_one_the_command_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/isa.md");
    let out = Command::new(env!("CARGO_BIN_EXE_hadal")).args(["isa", "--format", "md"]).output().unwrap();
    assert!(out.status.success());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &out.stdout).unwrap();
    }
    let kept = std::fs::read(&path).unwrap();
    assert!(kept == out.stdout, "docs/isa.md is stale: BLESS=1 cargo test -p hadal --test manual");
}
