//! Every golden program lowers to the bytes an independent encoder produced.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::PathBuf;

use hadal_ir::encode::lower;
use hadal_ir::verify::{LowerOptions, verify};
use hadal_ir::{encode::Stream, json};
use hadal_isa::Target;

fn dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/programs")
}

fn hex(s: &Stream) -> String {
    s.bundles().map(|b| format!("{}\n", b.word)).collect()
}

#[test]
fn hex_equals_the_independent_encoder() {
    let mut compared = 0;
    for entry in fs::read_dir(dir()).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(stem) = file.strip_suffix(".bir.json") else { continue };
        let text = fs::read_to_string(&path).unwrap();
        let module = json::parse(&text, &file).unwrap();
        for (name, target) in [("trn1", Target::TRN1), ("trn2", Target::TRN2), ("trn3", Target::TRN3)] {
            for (suffix, cache) in [("", true), (".nocache", false)] {
                let Ok(want) = fs::read_to_string(dir().join(format!("{stem}.{name}{suffix}.hex"))) else {
                    continue;
                };
                let options = LowerOptions { weight_cache: cache, ..LowerOptions::new(target) };
                let v = verify(module.clone(), options).unwrap_or_else(|e| panic!("{stem} {name}: {e:#?}"));
                let got = lower(&v).unwrap();
                assert_eq!(hex(&got.cores[0]), want, "{stem} {name}{suffix}");
                compared += 1;
            }
        }
    }
    assert!(compared >= 58, "only {compared} listings found");
}
