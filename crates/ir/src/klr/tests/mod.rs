//! Tests of the reader and of lowering. Expected values come from files and dumps that an independent reader made.

mod damage;
mod files;
mod generated;
mod lowered;
mod refused;

use std::path::PathBuf;

fn path(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/klr")).join(name)
}

pub(super) fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub(super) fn json(name: &str) -> serde_json::Value {
    serde_json::from_slice(&bytes(name)).unwrap()
}

/// The files of a directory with an extension, in order.
pub(super) fn names(dir: &str, extension: &str) -> Vec<String> {
    let entries = std::fs::read_dir(path(dir)).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(extension))
        .map(|name| format!("{dir}/{name}"))
        .collect();
    names.sort();
    assert!(!names.is_empty(), "{dir}");
    names
}
