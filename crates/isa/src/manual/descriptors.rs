//! Sections about the structures inside bundles: start addresses and operand descriptors.

use super::model::{Cell, Section, Table};
use crate::table::Confidence;

/// A row: offset (null where it depends on n), width, part, confidence, decision, meaning.
type Row = (Option<u64>, u64, &'static str, Confidence, Option<u8>, &'static str);

const COLUMNS: &[&str] = &["offset", "width", "part", "confidence", "decision", "meaning"];

use Confidence::{Assumed, Confirmed, Strong};

const TENSOR: &[Row] = &[
    (Some(0x0), 4, "start", Confirmed, None, "ADDR4 of the first element; the partition is part of it"),
    (
        Some(0x4),
        2,
        "stride0..",
        Confirmed,
        Some(8),
        "n signed 16-bit steps in elements (containers), outermost first",
    ),
    (
        None,
        2,
        "count0..",
        Confirmed,
        Some(8),
        "n unsigned 16-bit counts, at offset 4 + 2n; 0 is invalid; unused trailing dimensions have stride 1, count 1",
    ),
];

const GATHER: &[Row] = &[
    (Some(0x0), 4, "data", Confirmed, None, "ADDR4 of the data's base, with bit 29 (byte 3, bit 5) set"),
    (Some(0x4), 4, "index", Confirmed, None, "ADDR4 of the index list; bits 29 to 31 clear"),
    (Some(0x8), 2, "count0..", Strong, Some(8), "n unsigned 16-bit counts; the bytes after them are 0"),
];

const MX: &[Row] = &[
    (
        Some(0x0),
        4,
        "data",
        Confirmed,
        None,
        "ADDR4 of the data; 4-byte containers, 2-byte when the tag is 10 (packed FP4)",
    ),
    (
        Some(0x4),
        4,
        "scale",
        Confirmed,
        None,
        "ADDR4 of the block scales, SBUF only: the quadrant's first partition and the byte offset",
    ),
    (Some(0x8), 2, "k", Confirmed, None, "K extent: elements per partition times four, not 0"),
    (Some(0xA), 1, "step", Confirmed, None, "step direction: 01 or FF"),
    (Some(0xB), 1, "scale_partition", Confirmed, None, "scale partition within the quadrant: 0, 4, 8 or 12"),
    (Some(0xC), 4, "reserved", Confirmed, None, "never read"),
];

const MX_GATHER: &[Row] = &[
    (Some(0x0), 4, "indices", Confirmed, None, "ADDR4 of the index list, with bit 29 (byte 3, bit 5) set"),
    (Some(0x4), 4, "data", Confirmed, None, "ADDR4 of the data"),
    (Some(0x8), 4, "scale", Confirmed, None, "ADDR4 of the block scales"),
    (Some(0xC), 2, "k", Confirmed, None, "K extent: number of indices times four"),
    (Some(0xE), 1, "step", Strong, None, "step direction"),
    (Some(0xF), 1, "scale_partition", Confirmed, None, "scale partition within the quadrant"),
];

fn table(rows: &[Row]) -> Table {
    let rows = rows
        .iter()
        .map(|&(offset, width, part, confidence, decision, meaning)| {
            vec![
                offset.map_or(Cell::Null, |o| Cell::Hex(o, 2)),
                Cell::Number(width),
                Cell::text(part),
                Cell::text(confidence.name()),
                decision.map_or(Cell::Null, |d| Cell::Text(format!("D-{d:02}"))),
                Cell::text(meaning),
            ]
        })
        .collect();
    Table { columns: COLUMNS, rows }
}

fn address() -> Section {
    let bits: &[(&str, Confidence, Option<u8>, &str)] = &[
        ("0..28", Confirmed, None, "byte address"),
        ("29", Confirmed, None, "gather/scatter marker"),
        ("30", Confirmed, None, "with bits 29 and 28 clear: an SBUF sub-region that validators reject"),
        (
            "31",
            Confirmed,
            Some(10),
            "with bit 29 clear: register mode, byte 0 is a register id below 0x40; in a gen2 load, the transpose flag",
        ),
        (
            "SBUF",
            Confirmed,
            None,
            "partition << 18 | byte offset; window 0000000..1FFFFFF; 192, 224, 256 KiB per partition on gen2, gen3, gen4",
        ),
        (
            "PSUM",
            Confirmed,
            None,
            "2000000 + (partition << 15 | bank << 11 | byte offset); window 2000000..23FFFFF; 8 banks of 2048 bytes",
        ),
        (
            "MX scale",
            Confirmed,
            None,
            "((partition << 18) & FF800000) + byte offset: the quadrant's first partition; SBUF only",
        ),
        (
            "valid",
            Assumed,
            Some(7),
            "register id below 0x40; otherwise bit 31 clear, aligned to the tag's size (1, 2, 4), in a window the operand's role allows",
        ),
    ];
    let rows = bits
        .iter()
        .map(|&(bits, confidence, decision, meaning)| {
            vec![
                Cell::text(bits),
                Cell::text(confidence.name()),
                decision.map_or(Cell::Null, |d| Cell::Text(format!("D-{d:02}"))),
                Cell::text(meaning),
            ]
        })
        .collect();
    Section::new(
        "addr4",
        "ADDR4: a start address",
        &["Four bytes, at the start of every operand."],
        Table { columns: &["bits", "confidence", "decision", "meaning"], rows },
    )
}

/// The sections, in order.
pub(super) fn sections() -> Vec<Section> {
    vec![
        address(),
        Section::new(
            "tensor",
            "TENSORnD and MEM_PATTERNnD: a static pattern, n = 1..4",
            &[
                "4 + 4n bytes: 8, 12, 16, 20. The source role (TENSOR) and the destination role (MEM_PATTERN) are the same bytes; the validators' flags differ.",
            ],
            table(TENSOR),
        ),
        Section::new(
            "tensor-gather",
            "The gather/scatter form of a pattern",
            &["The same bytes, when bit 29 of the start is set and bit 30 is clear."],
            table(GATHER),
        ),
        Section::new(
            "mxmem",
            "MXMEM_PATTERN1D: an MX operand",
            &["16 bytes, of which 12 are written."],
            table(MX),
        ),
        Section::new(
            "mxindirect",
            "MXINDIRECT16B: an MX operand whose data is gathered",
            &["The same 16 bytes; every static field is four bytes further on."],
            table(MX_GATHER),
        ),
    ]
}
