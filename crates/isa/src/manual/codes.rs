//! Sections about codes: types and tags, performance modes, flags, groups, checks.

use super::model::{Cell, Section, Table};
use crate::valid::RULES;
use crate::{
    ACCUMULATE_LEGAL, GROUPS_LEGAL, Gen, PerfMode, PerfVariant, Target, group_lanes, mx_tag, sparse_col_grp,
    tag,
};
use hadal_num::Dtype;

/// The sections, in order.
pub(super) fn sections(target: Option<Target>) -> Vec<Section> {
    vec![
        types(target),
        perf_modes(),
        perf_variants(),
        accumulate(),
        groups(),
        col_grp(),
        sparse_pass(),
        checks(),
    ]
}

fn types(target: Option<Target>) -> Section {
    let shows = |generation| target.is_none_or(|t: Target| t.generation == generation);
    let dense = |dtype, generation| match tag(dtype, generation) {
        Ok(tag) if shows(generation) => Cell::Hex(u64::from(tag), 2),
        _ => Cell::Null,
    };
    let rows = Dtype::ALL
        .into_iter()
        .map(|dtype| {
            vec![
                Cell::Number(u64::from(dtype.ordinal())),
                Cell::text(dtype.name()),
                Cell::Number(dtype.bytes() as u64),
                dense(dtype, Gen::Gen2),
                dense(dtype, Gen::Gen3),
                dense(dtype, Gen::Gen4),
                if shows(Gen::Gen4) { Cell::Hex(u64::from(mx_tag(dtype)), 2) } else { Cell::Null },
            ]
        })
        .collect();
    Section::new(
        "types",
        "Element types and their tags",
        &[
            "A dense PE operand of type float32r is written with the tag of float32 and perf variant 02.",
            "Tags of float32r, uint64 and int64 are ASSUMED (D-03). gen3 and gen4 dense bundles refuse the packed (x4) types.",
        ],
        Table { columns: &["ordinal", "type", "bytes", "gen2", "gen3", "gen4", "gen4_mx"], rows },
    )
}

fn perf_modes() -> Section {
    let rows = PerfMode::ALL
        .into_iter()
        .map(|mode| {
            let note = match mode {
                PerfMode::None => "one element in each cell",
                PerfMode::DoubleRow => {
                    "two contraction rows in one pass; patterns have the pair first (D-50)"
                }
                PerfMode::DoubleRowSwInterleave => {
                    "DoubleRow with the weights' row pairs interleaved in memory"
                }
                PerfMode::DoubleColumn | PerfMode::DoublePixel => "no proven encoding",
            };
            vec![Cell::Number(u64::from(mode.code())), Cell::text(mode.name()), Cell::text(note)]
        })
        .collect();
    Section::new(
        "perf-modes",
        "Performance modes (MatmultPerfMode, D-01)",
        &["The ordinal is written at byte 23 of LoadStationary (ASSUMED, D-11)."],
        Table { columns: &["code", "name", "meaning"], rows },
    )
}

fn perf_variants() -> Section {
    let rows = [
        (PerfVariant::DEFAULT, "default"),
        (PerfVariant::PERF, "any performance mode, or float32r"),
        (PerfVariant::FLOAT32, "float32: two passes"),
    ];
    let rows = rows
        .iter()
        .map(|&(code, meaning)| vec![Cell::Hex(u64::from(code), 2), Cell::text(meaning)])
        .collect();
    Section::new(
        "perf-variants",
        "Performance variants",
        &["Byte 21 of LoadStationary and Matmul."],
        Table { columns: &["code", "meaning"], rows },
    )
}

fn accumulate() -> Section {
    let rows = (0..8u8)
        .map(|byte| {
            vec![
                Cell::Number(u64::from(byte)),
                Cell::text(crate::fields::flag_names(byte)),
                Cell::text(if ACCUMULATE_LEGAL.contains(&byte) { "yes" } else { "no" }),
            ]
        })
        .collect();
    Section::new(
        "accumulate",
        "Accumulate flags",
        &[
            "Bit 0 START zeroes the destination, then writes; bit 1 STOP ends the group; bit 2 ACCUMULATE adds into the destination.",
            "By position in a group (D-25): alone 3, first 1, interior 4, last 6.",
        ],
        Table { columns: &["code", "flags", "legal"], rows },
    )
}

fn groups() -> Section {
    let rows = GROUPS_LEGAL
        .into_iter()
        .map(|mask| {
            vec![
                Cell::Hex(u64::from(mask), 2),
                Cell::text(crate::fields::group_meaning(mask)),
                Cell::Number(u64::from(group_lanes(mask))),
            ]
        })
        .collect();
    Section::new(
        "groups",
        "Row and column groups",
        &[
            "Up to 32 lanes: 1 << (position / 32). Up to 64: 3 below position 64, else 12 (D-09). More: 0F.",
            "Column groups are forced to 0F for transposes, float32r, background transposes and MX.",
        ],
        Table { columns: &["code", "quadrants", "lanes"], rows },
    )
}

fn col_grp() -> Section {
    let rows = (0..16u8)
        .filter_map(|group| {
            let code = sparse_col_grp(group)?;
            Some(vec![Cell::Hex(u64::from(group), 2), Cell::Hex(u64::from(code), 2)])
        })
        .collect();
    Section::new(
        "col-grp",
        "col_grp of a sparse tags load, from its row group",
        &["The row group is that of (row position, 128 / compression ratio) (D-39); any other is an error."],
        Table { columns: &["row_group", "col_grp"], rows },
    )
}

fn sparse_pass() -> Section {
    let rows = [(0, "single pass"), (1, "float32 low pass"), (2, "float32 high pass")];
    let rows = rows.iter().map(|&(code, meaning)| vec![Cell::Number(code), Cell::text(meaning)]).collect();
    Section::new(
        "sparse-pass",
        "float32 passes of MatmultSparse",
        &["Byte 2B of MatmultSparse; it is not the accumulate byte."],
        Table { columns: &["code", "meaning"], rows },
    )
}

fn checks() -> Section {
    let rows = RULES.iter().map(|&(code, rule)| vec![Cell::text(code), Cell::text(rule)]).collect();
    Section::new("checks", "What a bundle check reports", &[], Table { columns: &["code", "rule"], rows })
}
