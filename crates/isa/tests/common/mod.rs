//! Shared by the integration tests: golden words, a small generator, random instructions.
#![allow(dead_code, missing_docs, clippy::unwrap_used, reason = "shared by several test crates")]

use hadal_isa::table::{BundleInfo, Kind, Layout, Shape, ValueMut};
use hadal_isa::*;
use std::path::PathBuf;

/// SplitMix64: the same words on every machine.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).unwrap()
    }

    pub(crate) fn word(&mut self) -> Word {
        let mut bytes = [0u8; 64];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes());
        }
        Word(bytes)
    }
}

pub(crate) fn golden_dir() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/programs"))
}

/// Golden hex files as (file name, target, words).
pub(crate) fn goldens() -> Vec<(String, Target, Vec<Word>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(golden_dir()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.ends_with(".hex") {
            continue;
        }
        let target = name.split('.').nth(1).unwrap().parse().unwrap();
        let words = words_from_hex(&std::fs::read_to_string(&path).unwrap()).unwrap();
        all.push((name, target, words));
    }
    assert!(all.len() > 60, "golden programs are missing");
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// One golden program's words.
pub(crate) fn golden(name: &str) -> Vec<Word> {
    let path = golden_dir().join(format!("{name}.hex"));
    words_from_hex(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A typed instruction with random values in every field of the target's layout.
pub(crate) fn random_inst(info: &BundleInfo, target: Target, rng: &mut Rng) -> Inst {
    let mut word = Word::ZERO;
    word.0[0] = info.opcode;
    let mut inst = decode(&word, target).inst;
    inst.walk_mut(Layout::of(target), |field, value| {
        let mut bytes = rng.word().0;
        match value {
            ValueMut::Byte(b) => {
                *b = bytes[0] & if matches!(field.span.shape, Shape::Bit(_)) { 1 } else { 0xFF };
            }
            ValueMut::Pair(p) => *p = [bytes[0], bytes[1]],
            ValueMut::Pattern3(p) => {
                if field.span.shape == Shape::LessBit31 {
                    bytes[3] &= 0x7F;
                }
                *p = pattern(&bytes);
            }
            ValueMut::Pattern4(p) => *p = pattern(&bytes),
            ValueMut::Mx(m) => *m = MxPattern::from_bytes(bytes[..16].try_into().unwrap()),
        }
        assert!(field.kind != Kind::Flag || field.width == 1);
    });
    inst
}

pub(crate) fn pattern<const N: usize>(b: &[u8; 64]) -> Pattern<N> {
    let u16_at = |at: usize| u16::from_le_bytes([b[at], b[at + 1]]);
    Pattern {
        start: Addr4(u32::from_le_bytes([b[0], b[1], b[2], b[3]])),
        strides: std::array::from_fn(|i| u16_at(4 + 2 * i).cast_signed()),
        counts: std::array::from_fn(|i| u16_at(4 + 2 * N + 2 * i)),
    }
}
