//! The manual and the field listing against facts stated here by hand, and against each other.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Rng, golden, goldens};
use hadal_isa::manual::{Format, render, sections};
use hadal_isa::table::{BUNDLES, Confidence};
use hadal_isa::*;
use serde_json::Value;
use std::collections::BTreeSet;

/// The recovered names, all of them.
const CENSUS: &[&str] = &[
    "d3_mm_dtype",
    "s_s3d3_mm_opcode",
    "d3_mm_perf_opt_dtype",
    "d3_mm_perf_opt_src",
    "d3_mm_num_elements",
    "mm_psum_flags",
    "d3_mm_valid_col_group_active_col",
    "d3_mm_valid_xbus",
    "d3_mm_valid_src_partition",
    "s3_lw_opcode",
    "lw_dtype",
    "lw_valid_num_rows",
    "lw_valid_row_group",
    "lw_valid_col_group_active_column",
    "lw_valid_xbus",
    "lw_perf_opt_src",
    "lw_perf_opt_dtype",
    "lw_reserved_zero",
    "col_grp",
    "num_active_cols",
];

fn json(name: Option<&str>, target: Option<Target>) -> Value {
    serde_json::from_str(&render(name, target, Format::Json).unwrap()).unwrap()
}

fn rows(section: &str, target: Option<Target>) -> Vec<Value> {
    let manual = json(Some(section), target);
    assert_eq!(manual["sections"].as_array().unwrap().len(), 1);
    manual["sections"][0]["rows"].as_array().unwrap().clone()
}

#[test]
fn every_field_stands_where_the_layout_rules_put_it() {
    // Bundle, generations, offset, width, key, confidence; written from the layout rules.
    type Fact = (&'static str, &'static [u64], u64, u64, &'static str, &'static str);
    let facts: &[Fact] = &[
        ("LoadStationary", &[2, 3, 4], 0x00, 1, "opcode", "CONFIRMED"),
        ("LoadStationary", &[3, 4], 0x0C, 1, "transpose", "CONFIRMED"),
        ("LoadStationary", &[2], 0x13, 1, "transpose", "CONFIRMED"),
        ("LoadStationary", &[3, 4], 0x10, 16, "weights", "CONFIRMED"),
        ("LoadStationary", &[2], 0x10, 16, "weights", "CONFIRMED"),
        ("LoadStationary", &[2, 3, 4], 0x20, 1, "weights_tag", "CONFIRMED"),
        ("LoadStationary", &[2, 3, 4], 0x21, 1, "perf_variant", "CONFIRMED"),
        ("LoadStationary", &[2, 3, 4], 0x23, 1, "perf_mode", "ASSUMED"),
        ("LoadStationary", &[2], 0x24, 2, "replication", "CONFIRMED"),
        ("LoadStationary", &[2, 3, 4], 0x26, 1, "rows", "STRONG"),
        ("LoadStationary", &[2, 3, 4], 0x27, 1, "active_cols", "CONFIRMED"),
        ("LoadStationary", &[2, 3, 4], 0x2C, 1, "row_group", "CONFIRMED"),
        ("LoadStationary", &[2, 3, 4], 0x2D, 1, "col_group", "CONFIRMED"),
        ("LoadStationary", &[2], 0x2E, 1, "xbus", "CONFIRMED"),
        ("Matmul", &[2, 3, 4], 0x10, 16, "moving", "CONFIRMED"),
        ("Matmul", &[2, 3, 4], 0x20, 1, "moving_tag", "STRONG"),
        ("Matmul", &[2, 3, 4], 0x21, 1, "perf_variant", "STRONG"),
        ("Matmul", &[2, 3, 4], 0x23, 1, "dst_tag", "CONFIRMED"),
        ("Matmul", &[2], 0x24, 2, "replication", "CONFIRMED"),
        ("Matmul", &[2, 3, 4], 0x26, 1, "rows", "STRONG"),
        ("Matmul", &[2, 3, 4], 0x27, 1, "active_cols", "STRONG"),
        ("Matmul", &[2, 3, 4], 0x2B, 1, "accumulate", "CONFIRMED"),
        ("Matmul", &[2, 3, 4], 0x2C, 1, "row_group", "STRONG"),
        ("Matmul", &[2, 3, 4], 0x2D, 1, "col_group", "STRONG"),
        ("Matmul", &[2], 0x2E, 1, "xbus", "ASSUMED"),
        ("Matmul", &[2, 3, 4], 0x2F, 1, "psum_zero_region", "CONFIRMED"),
        ("Matmul", &[2, 3, 4], 0x30, 16, "dst", "CONFIRMED"),
        ("LoadTagsSparse", &[3], 0x10, 16, "tags", "CONFIRMED"),
        ("LoadTagsSparse", &[3], 0x20, 1, "tags_tag", "CONFIRMED"),
        ("LoadTagsSparse", &[3], 0x21, 1, "col_grp", "CONFIRMED"),
        ("LoadTagsSparse", &[3], 0x26, 1, "rows", "STRONG"),
        ("LoadTagsSparse", &[3], 0x27, 1, "active_cols", "STRONG"),
        ("LoadTagsSparse", &[3], 0x2C, 1, "row_group", "CONFIRMED"),
        ("LoadTagsSparse", &[3], 0x2D, 1, "aux", "STRONG"),
        ("MatmultSparse", &[3], 0x10, 20, "moving", "CONFIRMED"),
        ("MatmultSparse", &[3], 0x24, 1, "moving_tag", "ASSUMED"),
        ("MatmultSparse", &[3], 0x25, 1, "dst_tag", "ASSUMED"),
        ("MatmultSparse", &[3], 0x2B, 1, "pass", "CONFIRMED"),
        ("MatmultSparse", &[3], 0x2D, 1, "col_group", "STRONG"),
        ("MatmultSparse", &[3], 0x30, 16, "dst", "CONFIRMED"),
        ("LdWeightMx", &[4], 0x10, 16, "weights", "CONFIRMED"),
        ("LdWeightMx", &[4], 0x20, 1, "weights_tag", "CONFIRMED"),
        ("LdWeightMx", &[4], 0x2D, 1, "col_group", "CONFIRMED"),
        ("MatmultMx", &[4], 0x10, 16, "moving", "CONFIRMED"),
        ("MatmultMx", &[4], 0x28, 1, "dst_tag", "CONFIRMED"),
        ("MatmultMx", &[4], 0x2B, 1, "accumulate", "CONFIRMED"),
        ("MatmultMx", &[4], 0x2F, 1, "psum_zero_region", "CONFIRMED"),
        ("MatmultMx", &[4], 0x30, 16, "dst", "CONFIRMED"),
        ("QuantizeMx", &[4], 0x01, 1, "saturate", "CONFIRMED"),
        ("QuantizeMx", &[4], 0x10, 16, "src", "CONFIRMED"),
        ("QuantizeMx", &[4], 0x20, 1, "src_tag", "CONFIRMED"),
        ("QuantizeMx", &[4], 0x21, 1, "src_partitions", "CONFIRMED"),
        ("QuantizeMx", &[4], 0x28, 1, "data_tag", "ASSUMED"),
        ("QuantizeMx", &[4], 0x30, 16, "out", "CONFIRMED"),
    ];
    for (bundle, generations, offset, width, key, confidence) in facts {
        let all = rows(bundle, None);
        let found = all.iter().find(|row| {
            row["key"] == *key
                && row["offset"] == *offset
                && row["width"] == *width
                && row["generations"] == serde_json::json!(generations)
        });
        let row = found.unwrap_or_else(|| unreachable!("{bundle} {key} at {offset:02x}"));
        assert_eq!(row["confidence"], *confidence, "{bundle} {key}");
    }
    let gated: Vec<String> = rows("Matmul", None)
        .iter()
        .filter(|row| row["levels"] == "<= 40")
        .map(|row| row["key"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(gated, ["accumulate", "row_group", "col_group"]);
}

#[test]
fn names_come_from_the_census_or_are_null() {
    let known: BTreeSet<&str> = CENSUS.iter().copied().collect();
    let mut named = BTreeSet::new();
    for info in BUNDLES {
        for row in rows(info.name, None) {
            assert!(row.get("name").is_some());
            if let Some(name) = row["name"].as_str() {
                assert!(known.contains(name), "{name}");
                named.insert(name.to_owned());
            }
        }
    }
    for name in
        ["d3_mm_dtype", "s3_lw_opcode", "lw_valid_num_rows", "col_grp", "mm_psum_flags", "d3_mm_valid_xbus"]
    {
        assert!(named.contains(name), "{name}");
    }
    // No name was recovered for these.
    for (bundle, key) in
        [("LoadStationary", "replication"), ("LoadTagsSparse", "aux"), ("Matmul", "psum_zero_region")]
    {
        let row = rows(bundle, None).into_iter().find(|row| row["key"] == key).unwrap();
        assert_eq!(row["name"], Value::Null);
    }
}

#[test]
fn a_bundle_section_covers_its_64_bytes() {
    for target in Target::ALL {
        for info in BUNDLES.iter().filter(|b| b.generations.holds(target.generation)) {
            let mut covered = [0u8; 64];
            for row in rows(info.name, Some(target)) {
                if row["bits"].as_str().is_some_and(|bits| bits.starts_with("bit")) {
                    continue;
                }
                let first = usize::try_from(row["offset"].as_u64().unwrap()).unwrap();
                let width = usize::try_from(row["width"].as_u64().unwrap()).unwrap();
                covered[first..first + width].iter_mut().for_each(|c| *c += 1);
            }
            assert_eq!(covered, [1; 64], "{} {target}", info.name);
        }
    }
}

#[test]
fn type_tags_are_the_tables() {
    // Ordinal, gen2, gen3, gen4 MX tags; None where the generation refuses the type.
    let gen2 = [3, 2, 5, 0xD, 0xE, 0xE, 3, 0xF, 0xE, 0xF, 5, 4, 6, 7, 9, 8, 0xA, 0xB, 1, 0xC];
    let types = rows("types", None);
    assert_eq!(types.len(), 20);
    for (at, row) in types.iter().enumerate() {
        assert_eq!(row["gen2"], gen2[at], "{row}");
        let refused = [2, 8, 9].contains(&at);
        for column in ["gen3", "gen4"] {
            assert_eq!(row[column], if refused { Value::Null } else { gen2[at].into() }, "{row}");
        }
        assert_eq!(row["gen4_mx"], if at == 2 { 0x10 } else { gen2[at] }, "{row}");
    }
}

#[test]
fn formats_and_names() {
    let names = sections();
    for name in
        ["bundles", "header", "LoadStationary", "addr4", "mxmem", "types", "perf-modes", "groups", "checks"]
    {
        assert!(names.iter().any(|n| n == name), "{name}");
        for format in [Format::Text, Format::Markdown, Format::Json] {
            assert!(render(Some(name), None, format).unwrap().lines().count() >= 3, "{name}");
        }
    }
    assert_eq!(render(Some("matmul"), None, Format::Text), render(Some("0x02"), None, Format::Text));
    let text = render(Some("Matmul"), Some(Target::TRN2), Format::Text).unwrap();
    assert!(text.starts_with("Matmul (opcode 02, PE)\n"), "{text}");
    assert!(text.contains("2B"), "{text}");
    let markdown = render(None, None, Format::Markdown).unwrap();
    assert!(markdown.contains("\n## QuantizeMx (opcode E3, DVE)\n"));
    for line in markdown.lines().filter(|line| line.starts_with('|')) {
        assert!(line.ends_with('|'), "{line}");
    }
    let error = render(Some("nope"), None, Format::Text).unwrap_err().to_string();
    assert!(
        error.starts_with("ISA120: the manual has no section \"nope\"; sections are bundles, header, "),
        "{error}"
    );
    assert!(render(Some("MatmultMx"), Some(Target::TRN1), Format::Text).is_err());
    assert_eq!(
        "yaml".parse::<Format>().unwrap_err().to_string(),
        "ISA121: \"yaml\" is not a format; use text, md or json"
    );
    assert_eq!("md".parse(), Ok(Format::Markdown));
}

#[test]
fn flags_that_are_legal_and_groups_that_cover() {
    let legal: Vec<u64> = rows("accumulate", None)
        .iter()
        .filter(|row| row["legal"] == "yes")
        .map(|row| row["code"].as_u64().unwrap())
        .collect();
    assert_eq!(legal, [0, 1, 2, 3, 4, 6]);
    let lanes: Vec<(u64, u64)> = rows("groups", None)
        .iter()
        .map(|row| (row["code"].as_u64().unwrap(), row["lanes"].as_u64().unwrap()))
        .collect();
    assert_eq!(lanes, [(1, 32), (2, 32), (4, 32), (8, 32), (3, 64), (12, 64), (15, 128)]);
}

fn covers(word: &Word, target: Target) {
    let rows = fields(word, target);
    let mut covered = [false; 64];
    for row in &rows {
        covered[row.offset..row.offset + row.width].fill(true);
        if row.width <= 8 && row.bit.is_none() && row.key != "length" {
            let bytes = &word.0[row.offset..row.offset + row.width];
            let mut value = bytes.iter().rev().fold(0u64, |n, &b| n << 8 | u64::from(b));
            if (word.opcode(), target.generation, row.offset) == (1, Gen::Gen2, 0x10) {
                // Bit 31 is the transpose flag, a row of its own.
                value &= 0x7FFF_FFFF;
            }
            assert_eq!(row.value, value, "{row:?}");
        }
        assert!(!row.meaning.is_empty());
    }
    assert_eq!(covered, [true; 64]);
    assert!(rows.is_sorted_by_key(|row| row.offset));
}

#[test]
fn field_listings_show_every_byte() {
    for (_, target, words) in goldens() {
        words.iter().for_each(|word| covers(word, target));
    }
    let mut rng = Rng(5);
    for _ in 0..3000 {
        let mut word = rng.word();
        word.0[0] = [1, 2, 6, 7, 9, 10, 0xE3, 0x44][rng.below(8)];
        for target in [Target::TRN1, Target::TRN2, Target::TRN3, "level:41".parse().unwrap()] {
            covers(&word, target);
        }
    }
}

#[test]
fn field_listings_explain_values() {
    let words = golden("dense_bf16.trn3");
    let mm = fields(&words[1], Target::TRN3);
    let row = |key: &str| mm.iter().find(|r| r.key == key).unwrap();
    assert_eq!((row("moving.start").offset, row("moving.start").meaning.as_str()), (0x10, "sbuf[0, 512]"));
    assert_eq!((row("moving.count0").offset, row("moving.count0").value), (0x1A, 512));
    assert_eq!(row("dst.start").meaning, "psum[0, 1, 0]");
    assert_eq!(row("accumulate").meaning, "START | STOP");
    assert_eq!(row("accumulate").name, Some("mm_psum_flags"));
    assert_eq!(row("row_group").meaning, "quadrants 0 1 2 3");
    assert_eq!(row("moving_tag").meaning, "bfloat16, type of moving");
    // The dense destination tag is inherited on gen4.
    assert_eq!((row("dst_tag").confidence, row("dst_tag").decision), (Confidence::Assumed, Some(36)));
    let gen3 = fields(&golden("dense_bf16.trn2")[1], Target::TRN2);
    assert_eq!(gen3.iter().find(|r| r.key == "dst_tag").unwrap().confidence, Confidence::Confirmed);
    let mx = fields(&golden("quantize_matmul_mx.trn3")[0], Target::TRN3);
    let row = |key: &str| mx.iter().find(|r| r.key == key).unwrap();
    assert_eq!((row("saturate").bit, row("saturate").value), (Some(0), 1));
    assert_eq!((row("length").value, row("out.k").value, row("out.scale_partition").value), (0x10, 2048, 4));
    assert_eq!(row("data_tag").meaning, "float8_e5m2_x4, type of out");
}
