//! The golden programs through the command: bundles as an independent encoder writes them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{data, hadal, hadal_with_input, stderr, stdout};

/// Golden program and target of every expected hex file, with whether the weight cache is off.
fn cases() -> Vec<(String, String, bool)> {
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(data().join("programs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(stem) = name.strip_suffix(".hex") else { continue };
        let (stem, no_cache) = match stem.strip_suffix(".nocache") {
            Some(s) => (s, true),
            None => (stem, false),
        };
        let (program, target) = stem.rsplit_once('.').unwrap();
        cases.push((program.to_owned(), target.to_owned(), no_cache));
    }
    cases.sort();
    cases
}

#[test]
fn compile_gives_the_golden_bundles() {
    let cases = cases();
    assert_eq!(cases.len(), 74, "hex files in tests/data/programs");
    for (program, target, no_cache) in cases {
        let suffix = if no_cache { ".nocache" } else { "" };
        let want =
            std::fs::read_to_string(data().join(format!("programs/{program}.{target}{suffix}.hex"))).unwrap();
        let mut args = vec!["compile".to_owned(), format!("programs/{program}.bir.json")];
        args.extend(["--target".to_owned(), target.clone(), "--emit".to_owned(), "hex".to_owned()]);
        if no_cache {
            args.push("--no-weight-cache".to_owned());
        }
        let out = hadal(&args);
        assert_eq!(stdout(&out), want, "{program} on {target}{suffix}: {}", stderr(&out));
    }
}

#[test]
fn what_dis_prints_asm_reads() {
    for (program, target, no_cache) in cases() {
        if no_cache {
            continue;
        }
        let file = format!("programs/{program}.{target}.hex");
        let listing = hadal(["dis", &file, "--target", &target]);
        let again = hadal_with_input(["asm", "-", "--emit", "hex"], stdout(&listing).as_bytes());
        assert_eq!(stdout(&again), std::fs::read_to_string(data().join(&file)).unwrap(), "{file}");
        // The field listing is comments, so it assembles to the same.
        let fields = hadal(["dis", &file, "--target", &target, "--fields"]);
        let again = hadal_with_input(["asm", "-", "--emit", "hex"], stdout(&fields).as_bytes());
        assert_eq!(stdout(&again), std::fs::read_to_string(data().join(&file)).unwrap(), "{file}");
    }
}

#[test]
fn bundles_in_every_form_are_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let golden = "programs/weight_reuse.trn2.hex";
    let (bin, asm) = (at("w.bin"), at("w.asm"));
    let compiled = hadal(["compile", "programs/weight_reuse.bir.json", "-t", "trn2", "-o", &bin]);
    stdout(&compiled);
    stdout(&hadal(["compile", "programs/weight_reuse.bir.json", "-t", "trn2", "--emit", "asm", "-o", &asm]));
    let want = std::fs::read_to_string(data().join(golden)).unwrap();
    for file in [golden, &bin, &asm] {
        assert_eq!(stdout(&hadal(["asm", file, "-t", "trn2", "--emit", "hex"])), want, "{file}");
    }
    assert_eq!(std::fs::read(&bin).unwrap().len(), 64 * want.lines().count());
}

#[test]
fn the_instruction_sets_own_checks_pass_on_golden_bundles() {
    for (program, target, no_cache) in cases() {
        let suffix = if no_cache { ".nocache" } else { "" };
        let out =
            hadal(["dis", &format!("programs/{program}.{target}{suffix}.hex"), "-t", &target, "--check"]);
        assert!(out.status.success(), "{program} {target}: {}", stderr(&out));
    }
}

#[test]
fn the_program_after_the_passes_compiles_to_the_same_bundles() {
    for (program, target, no_cache) in cases() {
        if no_cache {
            continue;
        }
        let file = format!("programs/{program}.bir.json");
        let ir = stdout(&hadal(["compile", &file, "-t", &target, "--emit", "ir"]));
        let out = hadal_with_input(["compile", "-", "-t", &target, "--emit", "hex"], ir.as_bytes());
        let want = std::fs::read_to_string(data().join(format!("programs/{program}.{target}.hex"))).unwrap();
        assert_eq!(stdout(&out), want, "{program} on {target}: {}\n{ir}", stderr(&out));
    }
}

#[test]
fn both_executors_agree_on_golden_programs() {
    // Inputs from the seed suit their use: legal tags for the sparse programs, an identity for the transpose.
    for (program, target, no_cache) in cases() {
        let mut args = vec!["run".to_owned(), format!("programs/{program}.bir.json")];
        args.extend(["-t", &target, "--executor", "both", "-q"].map(str::to_owned));
        if no_cache {
            args.push("--no-weight-cache".to_owned());
        }
        let out = hadal(&args);
        assert!(out.status.success(), "{program} on {target}: {}", stderr(&out));
    }
}
