//! Every byte of a word as a row: place, name, value, meaning, confidence.

use crate::table::{BundleInfo, Confidence, Field, Kind, LENGTH_WORDS, Layout, Shape, Value};
use crate::text::{push_dec, push_place};
use crate::{
    ACCUMULATE, ACCUMULATE_LEGAL, Addr4, MxPattern, Pattern, PerfMode, START, STOP, Target, Word, decode,
    mx_tag_name, tag_name,
};

/// One row of a word's field listing. Rows are in byte order and cover the 64 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRow {
    /// First byte.
    pub offset: usize,
    /// Bytes.
    pub width: usize,
    /// The bit, when the row is one bit of a byte that others share.
    pub bit: Option<u8>,
    /// What the bytes are: the field's key, with the descriptor's part after a dot.
    pub key: String,
    /// The recovered name; null where none was recovered.
    pub name: Option<&'static str>,
    /// The value, little-endian; for rows wider than 8 bytes, the first 8.
    pub value: u64,
    /// The value in words, or what the field means.
    pub meaning: String,
    /// How sure the field is.
    pub confidence: Confidence,
    /// The decision behind an assumed reading: 27 is D-27.
    pub decision: Option<u8>,
}

/// The field listing of a word for a target.
#[must_use]
pub fn fields(word: &Word, target: Target) -> Vec<FieldRow> {
    let decoded = decode(word, target);
    let Some(info) = decoded.inst.info() else { return raw_rows(word) };
    let layout = Layout::of(target);
    let mut rows = header_rows(info, word);
    decoded.inst.walk(layout, |field, value| push_rows(&mut rows, field, value, target));
    for range in info.reserved.iter().filter(|r| r.layouts.holds(layout)) {
        let value = number(word.0.get(range.first..range.end).unwrap_or(&[]));
        rows.push(FieldRow {
            offset: range.first,
            width: range.end - range.first,
            bit: None,
            key: "reserved".to_owned(),
            name: info.reserved_name,
            value,
            meaning: if word.0.iter().take(range.end).skip(range.first).all(|&b| b == 0) {
                "reserved, 0".to_owned()
            } else {
                "reserved, and not 0: no encoder writes this".to_owned()
            },
            confidence: Confidence::Inferred,
            decision: None,
        });
    }
    rows.sort_by_key(|row| (row.offset, row.bit));
    rows
}

/// The little-endian number in the first 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |n, &b| n << 8 | u64::from(b))
}

fn raw_rows(word: &Word) -> Vec<FieldRow> {
    let row = |offset: usize, width: usize, key: &str, meaning: &str| FieldRow {
        offset,
        width,
        bit: None,
        key: key.to_owned(),
        name: None,
        value: number(word.0.get(offset..offset + width).unwrap_or(&[])),
        meaning: meaning.to_owned(),
        confidence: Confidence::Inferred,
        decision: None,
    };
    vec![
        row(0, 1, "opcode", "not an instruction of this target"),
        row(1, 63, "unknown", "bytes of an unknown instruction"),
    ]
}

fn header_rows(info: &BundleInfo, word: &Word) -> Vec<FieldRow> {
    let row = |offset, width, bit, key: &str, name, value, meaning: String| FieldRow {
        offset,
        width,
        bit,
        key: key.to_owned(),
        name,
        value,
        meaning,
        confidence: Confidence::Confirmed,
        decision: None,
    };
    // A flag may share the length byte; the length is then what is left of it.
    let shared = info.fields.iter().any(|f| f.span.offset == 1);
    let length = word.0[1] & if shared { 0xFE } else { 0xFF };
    let length_meaning = if length == LENGTH_WORDS {
        "length: 16 words of 4 bytes".to_owned()
    } else {
        "length: must be 10 (16 words of 4 bytes)".to_owned()
    };
    let reserved = number(&word.0[2..4]);
    let reserved_meaning = if reserved == 0 { "reserved, 0" } else { "reserved, and not 0" };
    vec![
        row(0, 1, None, "opcode", info.opcode_name, u64::from(word.0[0]), info.name.to_owned()),
        row(1, 1, None, "length", None, u64::from(length), length_meaning),
        row(2, 2, None, "reserved", None, reserved, reserved_meaning.to_owned()),
    ]
}

fn push_rows(rows: &mut Vec<FieldRow>, field: &'static Field, value: Value<'_>, target: Target) {
    let row = |offset: usize, width: usize, part: &str, value: u64, meaning: String| FieldRow {
        offset: field.span.offset + offset,
        width,
        bit: if let Shape::Bit(bit) = field.span.shape { Some(bit) } else { None },
        key: if part.is_empty() { field.key.to_owned() } else { format!("{}.{part}", field.key) },
        name: field.name,
        value,
        meaning,
        confidence: field.confidence_on(target.generation),
        decision: field.decision,
    };
    match value {
        Value::Byte(byte) => {
            rows.push(row(0, 1, "", u64::from(byte), byte_meaning(field, byte, target)));
        }
        Value::Pair(pair) => rows.push(row(0, 2, "", number(&pair), field.meaning.to_owned())),
        Value::Pattern3(p) => {
            pattern_parts(p).into_iter().for_each(|(o, w, k, v, m)| rows.push(row(o, w, &k, v, m)));
        }
        Value::Pattern4(p) => {
            pattern_parts(p).into_iter().for_each(|(o, w, k, v, m)| rows.push(row(o, w, &k, v, m)));
        }
        Value::Mx(m) => {
            mx_parts(m).into_iter().for_each(|(o, w, k, v, m)| rows.push(row(o, w, &k, v, m)));
        }
    }
}

/// A descriptor's part: offset, width, name, value, meaning.
type Part = (usize, usize, String, u64, String);

fn place_text(address: Addr4) -> String {
    let mut out = String::new();
    push_place(&mut out, address);
    out
}

fn pattern_parts<const N: usize>(pattern: &Pattern<N>) -> Vec<Part> {
    let mut parts = Vec::new();
    let address = |a: Addr4| (u64::from(a.0), place_text(a));
    if let Some(form) = pattern.as_indirect() {
        let (_, text) = address(form.data);
        parts.push((0, 4, "data".to_owned(), u64::from(pattern.start.0), format!("gather base {text}")));
        let (value, text) = address(form.index);
        parts.push((4, 4, "index".to_owned(), value, format!("indices at {text}")));
        for at in 2..2 * N {
            let value = u64::from(pattern.word(at).unwrap_or_default());
            let (key, meaning) = match at - 2 {
                i if i < N => (format!("count{i}"), format!("elements of free dimension {}", i + 1)),
                _ => ("reserved".to_owned(), "after the counts".to_owned()),
            };
            parts.push((4 + 2 * at, 2, key, value, meaning));
        }
        return parts;
    }
    let (value, text) = address(pattern.start);
    parts.push((0, 4, "start".to_owned(), value, text));
    for (i, stride) in pattern.strides.iter().enumerate() {
        let value = u64::from(stride.cast_unsigned());
        let meaning = format!("step {stride} of free dimension {} (D-08)", i + 1);
        parts.push((4 + 2 * i, 2, format!("stride{i}"), value, meaning));
    }
    for (i, &count) in pattern.counts.iter().enumerate() {
        let meaning = format!("elements of free dimension {} (D-08)", i + 1);
        parts.push((4 + 2 * N + 2 * i, 2, format!("count{i}"), u64::from(count), meaning));
    }
    parts
}

fn mx_parts(operand: &MxPattern) -> Vec<Part> {
    let place = |at, key: &str, a: Addr4| (at, 4, key.to_owned(), u64::from(a.0), place_text(a));
    let step = |at, step: u8| {
        let meaning = if step == 0xFF { "step -1" } else { "step direction: 01 or FF" };
        (at, 1, "step".to_owned(), u64::from(step), meaning.to_owned())
    };
    let extent = |at, k: u16| {
        (at, 2, "k".to_owned(), u64::from(k), "K extent: logical elements per partition".to_owned())
    };
    let partition = |at, p: u8| {
        (at, 1, "scale_partition".to_owned(), u64::from(p), "scale partition in the quadrant".to_owned())
    };
    if let Some(form) = operand.as_indirect() {
        return vec![
            (0, 4, "indices".to_owned(), u64::from(operand.data.0), place_text(form.indices)),
            place(4, "data", form.data),
            place(8, "scale", form.scale),
            extent(12, form.k),
            step(14, form.step),
            partition(15, form.scale_partition),
        ];
    }
    vec![
        place(0, "data", operand.data),
        place(4, "scale", operand.scale),
        extent(8, operand.k),
        step(10, operand.step),
        partition(11, operand.scale_partition),
        (12, 4, "reserved".to_owned(), number(&operand.tail), "never read".to_owned()),
    ]
}

fn byte_meaning(field: &Field, byte: u8, target: Target) -> String {
    match field.kind {
        Kind::Tag(of) => match tag_name(byte, target.generation) {
            Some(name) => format!("{name}, type of {of}"),
            None => format!("no type has this tag; type of {of}"),
        },
        Kind::MxTag(of) => match mx_tag_name(byte) {
            Some(name) => format!("{name}, type of {of}"),
            None => format!("no type has this tag; type of {of}"),
        },
        Kind::PerfMode => match PerfMode::from_code(byte) {
            Some(mode) => mode.name().to_owned(),
            None => "Unknown MatmultPerfMode".to_owned(),
        },
        Kind::Accumulate => accumulate_meaning(byte),
        Kind::Group => group_meaning(byte),
        Kind::PerfVariant => match byte {
            0x00 => "default".to_owned(),
            0x02 => "perf mode or float32r".to_owned(),
            0x80 => "float32, two passes".to_owned(),
            _ => field.meaning.to_owned(),
        },
        _ => field.meaning.to_owned(),
    }
}

/// The flags of an accumulate byte by name.
pub(crate) fn flag_names(byte: u8) -> String {
    let names: Vec<&str> = [(START, "START"), (STOP, "STOP"), (ACCUMULATE, "ACCUMULATE")]
        .into_iter()
        .filter_map(|(bit, name)| (byte & bit != 0).then_some(name))
        .collect();
    if names.is_empty() { "none".to_owned() } else { names.join(" | ") }
}

fn accumulate_meaning(byte: u8) -> String {
    let names = flag_names(byte);
    if ACCUMULATE_LEGAL.contains(&byte) { names } else { format!("{names} (illegal)") }
}

/// The quadrants of a group mask.
pub(crate) fn group_meaning(byte: u8) -> String {
    let mut text = String::from("quadrants");
    for quadrant in (0..4u8).filter(|q| byte >> q & 1 != 0) {
        text.push(' ');
        push_dec(&mut text, u32::from(quadrant));
    }
    if byte & 0x0F == 0 {
        text.push_str(" none");
    }
    text
}
