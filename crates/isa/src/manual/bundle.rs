//! Sections about bundles: the list of them, the header, and one for each.

use super::model::{Cell, Section, Table};
use crate::table::{BUNDLES, BundleInfo, Confidence, Field, Layout, Layouts, Reserved, Shape};
use crate::{Gen, Target};

/// The list of bundles.
pub(super) fn overview(target: Option<Target>) -> Section {
    let rows = BUNDLES
        .iter()
        .filter(|info| target.is_none_or(|t| info.generations.holds(t.generation)))
        .map(|info| {
            vec![
                Cell::Hex(u64::from(info.opcode), 2),
                Cell::text(info.name),
                Cell::List(info.generations.iter().map(number).collect()),
                Cell::text(info.engine.name()),
                Cell::name(info.wire),
                Cell::text(info.doc),
            ]
        })
        .collect();
    Section::new(
        "bundles",
        "Bundles",
        &[
            "Every instruction is one 64-byte bundle; multi-byte fields are little-endian; offsets and codes are in hex.",
            "Nine bundles when LoadStationary and Matmul count once for each of their encoders, gen2 and gen3 (which gen4 inherits).",
            "gen2 = Sunda = CoreV2 = trn1, inf2; gen3 = Cayman = CoreV3 = trn2; gen4 = Mariana = CoreV4 = trn3.",
            "Confidence: CONFIRMED the exact store was seen; STRONG a table or predicate agrees; INFERRED implied; ASSUMED a choice of this project, with its decision number.",
        ],
        Table { columns: &["opcode", "bundle", "generations", "engine", "wire", "does"], rows },
    )
}

fn number(generation: Gen) -> u64 {
    match generation {
        Gen::Gen2 => 2,
        Gen::Gen3 => 3,
        Gen::Gen4 => 4,
    }
}

/// The header that all bundles share.
pub(super) fn header() -> Section {
    let row = |offset, width, key: &str, meaning: &str| {
        vec![
            Cell::Hex(offset, 2),
            Cell::Number(width),
            Cell::text(key),
            Cell::Null,
            Cell::text(Confidence::Confirmed.name()),
            Cell::text(meaning),
        ]
    };
    let rows = vec![
        row(0, 1, "opcode", "see bundles"),
        row(1, 1, "length", "0x10: sixteen 4-byte words; QuantizeMx keeps its saturate flag in bit 0"),
        row(2, 2, "reserved", "0"),
    ];
    Section::new(
        "header",
        "Header",
        &["The 32-bit word at 0 is 0x1000 | opcode in every bundle."],
        Table { columns: &["offset", "width", "key", "name", "confidence", "meaning"], rows },
    )
}

const FIELD_COLUMNS: &[&str] =
    &["offset", "width", "bits", "generations", "levels", "key", "name", "confidence", "decision", "meaning"];

/// A bundle's section: its fields and reserved bytes in byte order, the header included.
pub(super) fn section(info: &'static BundleInfo, target: Option<Target>) -> Section {
    let layout = target.map(Layout::of);
    let here = |layouts: Layouts| match layout {
        Some(layout) => layouts.holds(layout),
        None => Layout::ALL.into_iter().any(|l| layouts.holds(l) && info.has_layout(l)),
    };
    let mut rows: Vec<(usize, Vec<Cell>)> = vec![
        (0, fixed_row(info, 0, 1, "opcode", info.opcode_name, format!("{:02X}", info.opcode))),
        (1, fixed_row(info, 1, 1, "length", None, "0x10: sixteen 4-byte words".to_owned())),
        (2, fixed_row(info, 2, 2, "reserved", None, "0".to_owned())),
    ];
    for field in info.fields.iter().filter(|f| here(f.layouts)) {
        rows.push((field.span.offset, field_row(info, field, target)));
    }
    for range in info.reserved.iter().filter(|r| here(r.layouts)) {
        rows.push((range.first, reserved_row(info, range)));
    }
    rows.sort_by_key(|(offset, _)| *offset);
    Section {
        id: info.name.to_owned(),
        title: format!("{} (opcode {:02X}, {})", info.name, info.opcode, info.engine.name()),
        notes: vec![info.doc.to_owned()],
        table: Table { columns: FIELD_COLUMNS, rows: rows.into_iter().map(|(_, row)| row).collect() },
    }
}

/// The generations of a bundle that have one of the layouts.
fn generations(info: &BundleInfo, layouts: Layouts) -> Cell {
    let has = |generation: &Gen| match generation {
        Gen::Gen2 => layouts.holds(Layout::Gen2),
        Gen::Gen3 => layouts.holds(Layout::Gen34),
        Gen::Gen4 => layouts.holds(Layout::Gen34) || layouts.holds(Layout::Above40),
    };
    Cell::List(info.generations.iter().filter(has).map(number).collect())
}

fn levels(layouts: Layouts) -> Cell {
    if layouts.is_level_gated() {
        Cell::text("<= 40")
    } else if layouts == Layouts::GT40 {
        Cell::text("> 40")
    } else {
        Cell::Null
    }
}

/// A row of the header.
fn fixed_row(
    info: &BundleInfo,
    offset: u64,
    width: u64,
    key: &str,
    name: Option<&str>,
    meaning: String,
) -> Vec<Cell> {
    vec![
        Cell::Hex(offset, 2),
        Cell::Number(width),
        Cell::Null,
        generations(info, Layouts::ALL),
        Cell::Null,
        Cell::text(key),
        Cell::name(name),
        Cell::text(Confidence::Confirmed.name()),
        Cell::Null,
        Cell::Text(meaning),
    ]
}

fn field_row(info: &BundleInfo, field: &Field, target: Option<Target>) -> Vec<Cell> {
    let confidence = match target {
        Some(target) => field.confidence_on(target.generation),
        None => field.confidence,
    };
    let bits = match field.span.shape {
        Shape::Whole => Cell::Null,
        Shape::Bit(bit) => Cell::Text(format!("bit {bit}")),
        Shape::LessBit31 => Cell::text("all but bit 31 of the start"),
    };
    vec![
        Cell::Hex(field.span.offset as u64, 2),
        Cell::Number(field.width as u64),
        bits,
        generations(info, field.layouts),
        levels(field.layouts),
        Cell::text(field.key),
        Cell::name(field.name),
        Cell::text(confidence.name()),
        field.decision.map_or(Cell::Null, |d| Cell::Text(format!("D-{d:02}"))),
        Cell::text(field.meaning),
    ]
}

fn reserved_row(info: &BundleInfo, range: &Reserved) -> Vec<Cell> {
    vec![
        Cell::Hex(range.first as u64, 2),
        Cell::Number((range.end - range.first) as u64),
        Cell::Null,
        generations(info, range.layouts),
        levels(range.layouts),
        Cell::text("reserved"),
        Cell::name(info.reserved_name),
        Cell::text(Confidence::Inferred.name()),
        Cell::Null,
        Cell::text("0"),
    ]
}
