//! Reads the numpy files that hold expected values.

#![allow(dead_code)] // each test binary uses its share

use std::path::PathBuf;

/// A file below the workspace's `tests/data`.
pub(crate) fn data(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(path)
}

/// The cases listed in a folder of test data.
pub(crate) fn cases(folder: &str) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(data(folder).join("cases.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// One C-ordered little-endian array: element type letter and size (`u1`, `f4`, ..), shape, raw bytes.
pub(crate) struct Npy {
    pub(crate) descr: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

impl Npy {
    /// Reads a version 1 file.
    pub(crate) fn load(path: &str) -> Self {
        let raw = std::fs::read(data(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(&raw[..8], b"\x93NUMPY\x01\x00", "{path}: not a version 1 npy file");
        let header_len = usize::from(u16::from_le_bytes([raw[8], raw[9]]));
        let header = std::str::from_utf8(&raw[10..10 + header_len]).unwrap();
        assert!(header.contains("'fortran_order': False"), "{path}: {header}");
        let after = |key: &str| header.split_once(key).unwrap_or_else(|| panic!("{path}: no {key}")).1;
        let descr = after("'descr': '").split('\'').next().unwrap().trim_start_matches(['<', '|']).to_owned();
        let shape: Vec<usize> = after("'shape': (")
            .split(')')
            .next()
            .unwrap()
            .split(',')
            .filter(|part| !part.trim().is_empty())
            .map(|part| part.trim().parse().unwrap())
            .collect();
        let bytes = raw[10 + header_len..].to_vec();
        let size: usize = descr[1..].parse().unwrap();
        assert_eq!(bytes.len(), size * shape.iter().product::<usize>(), "{path}");
        Self { descr, shape, bytes }
    }

    /// The elements' bit patterns, zero-extended.
    pub(crate) fn codes(&self) -> Vec<u32> {
        match self.descr.as_str() {
            "u1" | "i1" => self.bytes.iter().map(|&byte| u32::from(byte)).collect(),
            "u2" | "i2" => {
                self.bytes.as_chunks::<2>().0.iter().map(|&b| u32::from(u16::from_le_bytes(b))).collect()
            }
            "u4" | "i4" | "f4" => {
                self.bytes.as_chunks::<4>().0.iter().map(|&b| u32::from_le_bytes(b)).collect()
            }
            other => panic!("no bit patterns for {other}"),
        }
    }

    /// The elements of a float32 file.
    pub(crate) fn f32s(&self) -> Vec<f32> {
        assert_eq!(self.descr, "f4");
        self.codes().into_iter().map(f32::from_bits).collect()
    }
}

/// Equal bits, or both NaN of the same sign or not: a NaN is compared by class.
pub(crate) fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}
