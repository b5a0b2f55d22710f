//! Damaged input through the whole command: an exit code of the contract, never a panic.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use arbtest::arbitrary::{Result, Unstructured};
use arbtest::arbtest;
use common::{code, data, hadal_with_input, stderr};

fn must_end_well(args: &[&str], input: &[u8]) {
    let out = hadal_with_input(args, input);
    let text = stderr(&out);
    assert!([0, 3, 4, 5].contains(&code(&out)), "exit {} of {args:?}: {text}", code(&out));
    assert!(!text.contains("panicked"), "{text}");
    assert_eq!(code(&out) == 0, !text.contains("error["), "{text}");
}

fn targets(u: &mut Unstructured<'_>) -> Result<&'static str> {
    u.choose(&["trn1", "trn2", "trn3", "level:41"]).copied()
}

#[test]
fn json_programs_with_numbers_and_words_exchanged() {
    let names =
        ["dense_bf16", "double_row", "explicit_calc", "quantize_matmul_mx", "sparse_2", "tiles_32_rows"];
    let programs = names.map(|n| {
        let text = std::fs::read_to_string(data().join(format!("programs/{n}.bir.json"))).unwrap();
        text.split_whitespace().collect::<String>()
    });
    let digits = |c: char| c.is_ascii_digit() || c == '-';
    arbtest(|u| {
        let text = u.choose(&programs)?;
        let mut parts: Vec<String> = Vec::new();
        for c in text.chars() {
            match parts.last_mut() {
                Some(last) if last.ends_with(digits) == digits(c) => last.push(c),
                _ => parts.push(c.to_string()),
            }
        }
        for _ in 0..u.int_in_range(1..=3)? {
            let numbers: Vec<usize> = (0..parts.len()).filter(|i| parts[*i].ends_with(digits)).collect();
            let at = *u.choose(&numbers)?;
            let values =
                ["0", "1", "2", "-1", "3", "32", "64", "127", "129", "512", "2048", "65536", "1000000"];
            parts[at] = (*u.choose(&values)?).to_owned();
        }
        let target = targets(u)?;
        must_end_well(&["run", "-", "-t", target, "--executor", "both"], parts.concat().as_bytes());
        Ok(())
    })
    .budget_ms(2000);
}

#[test]
fn kernels_with_bytes_exchanged() {
    let kernels = ["tiny_mm", "f_doublerow_fp8", "e_transpose", "d_mx_scattered", "g_access_forms"]
        .map(|n| std::fs::read(data().join(format!("klr/accept/{n}.klr"))).unwrap());
    arbtest(|u| {
        let mut bytes = u.choose(&kernels)?.clone();
        for _ in 0..u.int_in_range(1..=3)? {
            // The first four bytes are what makes it a kernel at all.
            let at = u.int_in_range(4..=bytes.len() - 1)?;
            bytes[at] = u.arbitrary()?;
        }
        let target = targets(u)?;
        must_end_well(&["run", "-", "-t", target, "--klr-transpose", "moving"], &bytes);
        Ok(())
    })
    .budget_ms(2000);
}

#[test]
fn bundles_with_bytes_exchanged() {
    let hex = std::fs::read_to_string(data().join("programs/weight_reuse.trn2.hex")).unwrap();
    let mx = std::fs::read_to_string(data().join("programs/quantize_matmul_mx.trn3.hex")).unwrap();
    let golden = [hex, mx].map(|t| {
        let words = hadal::isa::words_from_hex(&t).unwrap();
        words.iter().flat_map(|w| w.0).collect::<Vec<u8>>()
    });
    arbtest(|u| {
        let mut bytes = u.choose(&golden)?.clone();
        for _ in 0..u.int_in_range(1..=4)? {
            let at = u.choose_index(bytes.len())?;
            bytes[at] = u.arbitrary()?;
        }
        let target = targets(u)?;
        must_end_well(&["run", "-", "-t", target, "--uninit", "zero"], &bytes);
        must_end_well(&["dis", "-", "-t", target, "--fields", "--check"], &bytes);
        Ok(())
    })
    .budget_ms(2000);
}
