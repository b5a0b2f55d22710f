//! The probes against the numbers they are known by, written here by hand.

#![allow(clippy::unwrap_used, clippy::panic)]

use hadal_isa::Target;
use hadal_sim::probe::{Probe, all};
use hadal_sim::{Fp32Mode, Options, PsumRounding, ScaleRule};

fn find(options: &Options, id: &str) -> Probe {
    all(None, options).unwrap().into_iter().find(|p| p.id == id).unwrap_or_else(|| panic!("{id}"))
}

/// Bits computed, and bits of each model.
fn bits(options: &Options, id: &str) -> (String, Vec<String>) {
    let p = find(options, id);
    (p.result.hex(), p.models.iter().map(|m| m.reading.hex()).collect())
}

#[track_caller]
fn check(id: &str, result: &str, models: &[&str]) {
    let (got, all) = bits(&Options::default(), id);
    assert_eq!(
        (got.as_str(), all.iter().map(String::as_str).collect::<Vec<_>>()),
        (result, models.to_vec()),
        "{id}"
    );
}

#[test]
fn known_numbers() {
    // 1 - 2^-18; 1 from bfloat16 operands.
    check("fp32-product", "3F7FFFC0", &["3F7FFFC0", "3F800000"]);
    assert_eq!(find(&Options::default(), "fp32-product").result.values, [0.999_996_2]);
    check("bf16-product", "3F820200", &["3F820200", "3F820000"]);
    assert_eq!(find(&Options::default(), "bf16-product").result.values, [1.015_686]);
    assert_eq!(f64::from(f32::from_bits(0x3F82_0200)), 1.015_686_035_156_25);
    // 0, and 2^-24 twice.
    check("fp32-rounding", "00000000", &["00000000", "33800000", "33800000"]);
    // 16777216 and 16777218.
    check("array-order", "4B800000", &["4B800000", "4B800001"]);
    check("psum-add", "4B800001", &["4B800001", "4B800000"]);
    // 256, 260, 264.
    check("bf16-psum", "4380", &["4380", "4382", "4384"]);
    check("fp32-psum", "43820000", &["43820000", "43800000"]);
    // 1.0009766, 1, 1.0007324.
    check("fp32r-rounding", "3F802000", &["3F802000", "3F800000", "3F801800"]);
    check("double-row", "43800000 43800000", &["43800000 43800000", "43000000 43000000"]);
    let (one, two) = ("3F800000", "40000000");
    let (adds, overwrites) = (format!("{one} {one} {two} {two} {one} {one}"), [one; 6].join(" "));
    check("first-write", &adds, &[&adds, &overwrites]);
    check("transpose-nan", "7F81 3F80", &["7F81 3F80", "7FC0 7FC0"]);
    check("transpose-nan-gen2", "7FC00000 7FC00000", &["7FC00000 7FC00000", "7F810000 3F800000"]);
    // Scale codes 126 and 127; 150 is 300 * 2^-1, nearest 288 (79), or 150 * 2^0, nearest 144 (71).
    let (r, h) = ("7E 79", "7F 71");
    check("mx-scale-150", r, &[r, h, h, r]);
    // 128 with 957 clamped to 896 (code 7E is 448), 129 with 960 (code 77 is 240).
    let (r, h) = ("80 7E", "81 77");
    check("mx-scale-960", r, &[r, h, h, r]);
    let p = find(&Options::default(), "mx-scale-960");
    assert_eq!((p.models[0].reading.values[1], p.models[2].reading.values[1]), (896.0, 960.0));
    check("mx-scale-zero", "01 00", &["01 00", "01 00", "00 00", "00 00"]);
    check("fp4-packing", "4321", &["4321", "1234"]);
    check("fp8-packing", "7EB84038", &["7EB84038", "3840B87E"]);
    // 2^-127, 1, 128, NaN.
    let (a, b, c) = ("00400000", "3F800000 43000000", "7FC00000");
    check(
        "e8m0-codes",
        &format!("{a} {b} {c}"),
        &[&format!("{a} {b} {c}"), &format!("00000000 {b} {c}"), &format!("{a} {b} 7F800000")],
    );
    check("e4m3fn-overflow", "7E 7F", &["7E 7F", "7E 7E", "7F 7F"]);
}

#[test]
fn options_change_what_is_in_force() {
    let two = Options { fp32: Fp32Mode::TwoPass, ..Options::default() };
    assert_eq!(bits(&two, "fp32-rounding").0, "33800000");
    for (rule, scale) in [
        (ScaleRule::Reference, 0x7E),
        (ScaleRule::ReferenceAlt, 0x7F),
        (ScaleRule::Hardware, 0x7F),
        (ScaleRule::Ocp, 0x7E),
    ] {
        let p = find(&Options { mx_rule: rule, ..Options::default() }, "mx-scale-150");
        assert_eq!(p.result.bits[0], scale);
        // The model of the rule's name is in force.
        let named = p.models.iter().find(|m| m.name == rule.name()).unwrap();
        assert!(p.in_force(named), "{rule}");
    }
    let stochastic = Options { psum_rounding: PsumRounding::Stochastic(1), ..Options::default() };
    let v = find(&stochastic, "bf16-psum").result.values[0];
    assert!([256.0, 258.0, 260.0, 262.0, 264.0].contains(&v), "{v}");
}

#[test]
fn every_probe_tells_models_apart_and_one_is_in_force() {
    for target in [None, Some(Target::TRN1), Some(Target::TRN2), Some(Target::TRN3)] {
        let probes = all(target, &Options::default()).unwrap();
        assert!(probes.len() >= 11);
        for p in probes {
            assert!(p.models.iter().any(|m| p.in_force(m)), "{}", p.id);
            assert!(p.models.iter().any(|m| !p.in_force(m)), "{}", p.id);
            assert!(target.is_none_or(|t| p.targets.contains(&t)), "{}", p.id);
        }
    }
    let ids = |t| all(Some(t), &Options::default()).unwrap().iter().map(|p| p.id).collect::<Vec<_>>();
    assert!(
        ids(Target::TRN1).contains(&"transpose-nan-gen2") && !ids(Target::TRN1).contains(&"mx-scale-150")
    );
    assert!(ids(Target::TRN2).contains(&"double-row") && !ids(Target::TRN2).contains(&"bf16-psum"));
}
