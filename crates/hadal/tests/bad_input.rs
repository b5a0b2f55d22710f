//! Input that is no input: exit code 3, one clear line or few, quickly, and nothing written.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::{code, data, hadal, stderr};

/// Compiles a file that cannot be read; returns what was said.
fn refused(file: &Path) -> String {
    let dir = tempfile::tempdir().unwrap();
    let out_file = dir.path().join("out.bin");
    let begin = Instant::now();
    let out = hadal([
        "compile".as_ref(),
        file.as_os_str(),
        "--target".as_ref(),
        "trn2".as_ref(),
        "-o".as_ref(),
        out_file.as_os_str(),
    ]);
    let text = stderr(&out);
    assert_eq!(code(&out), 3, "{}: {text}", file.display());
    assert!(begin.elapsed() < Duration::from_secs(5), "{} took {:?}", file.display(), begin.elapsed());
    assert!(out.stdout.is_empty());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{} left a file", file.display());
    assert!(text.starts_with("error["), "{text}");
    assert!(text.lines().count() <= 3, "{text}");
    text
}

#[test]
fn a_klr_file_cut_short_anywhere() {
    let whole = std::fs::read(data().join("klr/accept/tiny_mm.klr")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cut.klr");
    for length in 0..whole.len() {
        std::fs::write(&file, &whole[..length]).unwrap();
        let text = refused(&file);
        match length {
            0 => assert!(text.contains("is empty"), "{text}"),
            4.. => assert!(text.contains("[KLR-"), "{length}: {text}"),
            _ => {}
        }
    }
}

#[test]
fn a_count_of_a_thousand_million() {
    let text = std::fs::read_to_string(data().join("programs/dense_bf16.bir.json")).unwrap();
    let squeezed: String = text.split_whitespace().collect();
    let edited = squeezed.replacen("[1,512]", "[1,1000000000]", 1);
    assert_ne!(edited, squeezed);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("huge.bir.json");
    std::fs::write(&file, edited).unwrap();
    let said = refused(&file);
    assert!(said.contains("error[JSON-007]: count 1000000000 is outside 1..=16777216"), "{said}");
    assert!(said.contains("instructions[0].ifmap.pattern[1][1]"), "{said}");
}

#[test]
fn things_that_are_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("empty"), b"").unwrap();
    std::fs::write(at("odd.bin"), [0u8; 65]).unwrap();
    std::fs::write(at("blank"), b"  \n \n").unwrap();
    std::fs::write(at("prose"), b"hello there\n").unwrap();
    assert!(refused(dir.path()).contains("is a folder"));
    assert!(refused(&at("empty")).contains("is empty"));
    assert!(refused(&at("absent")).contains("FILE-001"));
    assert!(refused(&at("odd.bin")).contains("neither a program nor bundles"));
    assert!(refused(&at("prose")).contains("this command takes a program"));
    refused(&at("blank"));
    #[cfg(unix)]
    assert!(refused(Path::new("/dev/zero")).contains("is a device"));
}

#[test]
fn bundle_inputs_that_are_wrong_say_where() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("a.asm"), b".target trn2\nMatmul nonsense=1\n").unwrap();
    std::fs::write(at("a.hex"), "01".repeat(64) + "\n" + &"02".repeat(60) + "\n").unwrap();
    std::fs::write(at("p.bir.json"), b"{}").unwrap();
    for (name, want) in
        [("a.asm", "a.asm:2:"), ("a.hex", "line 2"), ("p.bir.json", "this command takes bundles")]
    {
        let file = at(name).display().to_string();
        let out = hadal(["dis", &file, "-t", "trn2"]);
        assert_eq!(code(&out), 3);
        assert!(stderr(&out).contains(want), "{}", stderr(&out));
    }
}

#[test]
fn arrays_that_do_not_fit() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(at("bad.npy"), b"not an array").unwrap();
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    npy.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    npy.extend(header.as_bytes());
    npy.extend([0u8; 16]);
    std::fs::write(at("small.npy"), npy).unwrap();
    for (given, want) in [
        (format!("x={}", at("bad.npy")), "NPY-001"),
        (format!("x={}", at("absent.npy")), "FILE-001"),
        (format!("x={}", at("small.npy")), "X-402"),
        (format!("nobody={}", at("small.npy")), "X-401"),
    ] {
        let out = hadal(["run", "programs/dense_bf16.bir.json", "-t", "trn2", "--in", &given]);
        assert_eq!(code(&out), 3, "{given}");
        assert!(stderr(&out).contains(want), "{}", stderr(&out));
    }
}
