//! Damaged files: always an error or a tree, never a panic, never more work than the file is long.

use super::{bytes, names};
use crate::klr::ast::File;
use crate::klr::error::KlrError;
use crate::klr::{KlrTranspose, lower};

#[test]
fn every_truncation_is_an_error() {
    for name in ["accept/tiny_mm.klr", "accept/tiny_mm_placeholder_props.klr", "accept/g_access_forms.klr"] {
        let whole = bytes(name);
        for length in 0..whole.len() {
            let error =
                File::parse(&whole[..length]).err().unwrap_or_else(|| panic!("{name}: {length} bytes"));
            assert!(error.offset() <= length, "{name}: {length} bytes: {error}");
        }
    }
}

#[test]
fn changed_bytes_never_panic() {
    let files: Vec<Vec<u8>> = names("accept", ".klr").iter().map(|name| bytes(name)).collect();
    arbtest::arbtest(|u| {
        let mut file = u.choose(&files)?.clone();
        for _ in 0..u.int_in_range(1..=8)? {
            let at = u.choose_index(file.len())?;
            file[at] = u.arbitrary()?;
        }
        if let Ok(parsed) = File::parse(&file) {
            // What is accepted can also be shown, and lowered or refused.
            assert!(parsed.to_json().is_object());
            if let Err(violations) = lower(&parsed, KlrTranspose::Refuse) {
                assert!(violations.iter().all(|violation| violation.code.starts_with("KLR-1")));
            }
        }
        Ok(())
    })
    .budget_ms(1000);
}

#[test]
fn random_contents_never_panic() {
    arbtest::arbtest(|u| {
        let mut file = bytes("accept/tiny_mm.klr")[..0x13].to_vec();
        file.extend(u.arbitrary::<Vec<u8>>()?);
        assert!(File::parse(&file).is_err());
        Ok(())
    })
    .budget_ms(1000);
}

/// A count of 2^64 - 1 in the place of every list of the small file, and of its strings.
#[test]
fn huge_counts_fail_at_once() {
    let whole = bytes("accept/tiny_mm.klr");
    let huge = |at: usize, head: u8| {
        [&whole[..at], &[head, 255, 255, 255, 255, 255, 255, 255, 255], &whole[at + 1..]].concat()
    };
    // Offsets from the annotated listing.
    for at in [0x19, 0x1a, 0x1b, 0x1c, 0x24, 0x4c, 0x68, 0x12e, 0x154] {
        let error = File::parse(&huge(at, 0x9b)).err().unwrap();
        let KlrError::ListTooLong { count, .. } = error else { panic!("{error}") };
        assert_eq!((count, error.offset()), (u64::MAX, at));
    }
    for at in [0x0b, 0x17, 0x21, 0x41, 0x14a] {
        let error = File::parse(&huge(at, 0x7b)).err().unwrap();
        let KlrError::Truncated { needed, .. } = error else { panic!("{error}") };
        assert_eq!((needed, error.offset()), (u64::MAX, at));
    }
}

/// Vector offsets within vector offsets, deeper than the reader goes.
#[test]
fn deep_nesting_is_refused() {
    let whole = bytes("accept/tiny_mm.klr");
    // The first access is at 0x35..0x84; its vectorOffset, none, at 0x7b.
    let (before, after) = (&whole[0x35..0x7b], &whole[0x7f..0x84]);
    let nested = |levels: usize| {
        let mut access = whole[0x35..0x84].to_vec();
        for _ in 0..levels {
            access = [before, &[0xd9, 0xff, 0x01, 0x81], &access, after].concat();
        }
        [&whole[..0x35], &access, &whole[0x84..]].concat()
    };
    assert!(File::parse(&nested(10)).is_ok());
    for levels in [30, 5000] {
        let error = File::parse(&nested(levels)).err().unwrap();
        assert_eq!(error.code(), "KLR-008", "{error}");
    }
}
