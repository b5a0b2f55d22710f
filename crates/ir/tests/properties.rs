//! The front ends on damaged inputs: whatever still parses must verify or be refused, and encode.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::PathBuf;

use hadal_ir::properties;

fn files(dir: &str, suffix: &str) -> Vec<Vec<u8>> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(dir);
    let mut paths: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths.retain(|p| p.to_str().unwrap().ends_with(suffix));
    paths.iter().map(|p| fs::read(p).unwrap()).collect()
}

/// A few edits: digits changed in text, bytes changed in binaries, spans removed or doubled.
fn damage(
    u: &mut arbtest::arbitrary::Unstructured<'_>,
    bytes: &mut Vec<u8>,
    text: bool,
) -> arbtest::arbitrary::Result<()> {
    for _ in 0..u.int_in_range(0..=3)? {
        let at = u.int_in_range(0..=bytes.len() - 1)?;
        match u.int_in_range(0..=3)? {
            0 if text => {
                // The next digit becomes another: the document stays well-formed.
                if let Some(d) = bytes[at..].iter().position(u8::is_ascii_digit) {
                    bytes[at + d] = b'0' + u.int_in_range(0..=9u8)?;
                }
            }
            0 | 1 => bytes[at] = u.arbitrary()?,
            2 => {
                let end = (at + u.int_in_range(1..=8)?).min(bytes.len());
                bytes.drain(at..end);
            }
            _ => {
                let end = (at + u.int_in_range(1..=8)?).min(bytes.len());
                let span = bytes[at..end].to_vec();
                bytes.splice(at..at, span);
            }
        }
        if bytes.is_empty() {
            bytes.push(b'{');
        }
    }
    Ok(())
}

#[test]
fn json_programs() {
    let seeds = files("programs", ".bir.json");
    assert!(seeds.len() >= 15);
    for s in &seeds {
        properties::json(std::str::from_utf8(s).unwrap()).unwrap();
    }
    arbtest::arbtest(|u| {
        let mut bytes = u.choose(&seeds)?.clone();
        damage(u, &mut bytes, true)?;
        properties::json(&String::from_utf8_lossy(&bytes)).unwrap();
        Ok(())
    })
    .budget_ms(1000);
}

#[test]
fn klr_kernels() {
    let seeds = files("klr/accept", ".klr");
    assert!(seeds.len() >= 12);
    for s in &seeds {
        properties::klr(s).unwrap();
    }
    arbtest::arbtest(|u| {
        let mut bytes = u.choose(&seeds)?.clone();
        damage(u, &mut bytes, false)?;
        properties::klr(&bytes).unwrap();
        Ok(())
    })
    .budget_ms(1000);
}
