//! Assembly text to words.

use super::cursor::Cursor;
use super::error::{AsmError, AsmErrorKind};
use super::operand::{self, Type};
use crate::table::{BUNDLES, BundleInfo, Field, Kind, Layout, ValueMut};
use crate::{
    ACCUMULATE, Inst, MxPattern, Pattern, PerfMode, PerfVariant, START, STOP, Target, Word, WordError, decode,
};

/// Assembles a listing: one instruction a line, blank lines and comments ignored.
///
/// # Errors
/// The first [`AsmError`], with its line and column.
pub fn parse_listing(text: &str, target: Target) -> Result<Vec<Word>, AsmError> {
    let mut words = Vec::new();
    for (at, line) in text.lines().enumerate() {
        words.extend(parse_line(&mut Cursor::new(line, at + 1), target)?);
    }
    Ok(words)
}

/// Assembles one instruction.
///
/// # Errors
/// [`AsmError`] on line 1; also when the line holds no instruction.
pub fn parse(line: &str, target: Target) -> Result<Word, AsmError> {
    let mut cursor = Cursor::new(line, 1);
    parse_line(&mut cursor, target)?.ok_or_else(|| cursor.expected("an instruction"))
}

/// The target that a listing's first `.target` line names, if it has one.
///
/// # Errors
/// [`AsmError`] when the name is not a target.
pub fn listing_target(text: &str) -> Result<Option<Target>, AsmError> {
    for (at, line) in text.lines().enumerate() {
        let mut cursor = Cursor::new(line, at + 1);
        if cursor.token() == ".target" {
            return read_target(&mut cursor).map(Some);
        }
    }
    Ok(None)
}

fn read_target(cursor: &mut Cursor<'_>) -> Result<Target, AsmError> {
    cursor.skip_blanks();
    let start = *cursor;
    let name = cursor.token();
    name.parse().map_err(|_| start.error(AsmErrorKind::TargetName(name.to_owned())))
}

/// Places a malformed word's error on the digit, or on the whole.
fn word_error(mut digits: Cursor<'_>, error: &WordError) -> AsmError {
    match *error {
        WordError::Digit { column, .. } => {
            digits.skip_characters(column - 1);
            digits.expected("a hex digit")
        }
        WordError::Length { digits: found, .. } => digits.error(AsmErrorKind::WordLength(found)),
        WordError::Bytes { bytes, .. } => digits.error(AsmErrorKind::WordLength(2 * bytes)),
    }
}

fn parse_line(cursor: &mut Cursor<'_>, target: Target) -> Result<Option<Word>, AsmError> {
    if cursor.at_end() {
        return Ok(None);
    }
    let start = *cursor;
    let word = if cursor.rest().starts_with('.') {
        directive(cursor, target)?
    } else {
        let name = cursor.word();
        if name.is_empty() {
            return Err(start.expected("an instruction"));
        }
        Some(instruction(cursor, bundle(name, &start, target)?, target)?)
    };
    if cursor.at_end() { Ok(word) } else { Err(cursor.expected("the end of the line")) }
}

fn directive(cursor: &mut Cursor<'_>, target: Target) -> Result<Option<Word>, AsmError> {
    let start = *cursor;
    match cursor.token() {
        ".word" => {
            cursor.skip_blanks();
            let digits = *cursor;
            cursor.token().parse().map(Some).map_err(|error| word_error(digits, &error))
        }
        ".target" => {
            let listing = read_target(cursor)?;
            if listing == target {
                return Ok(None);
            }
            Err(start
                .error(AsmErrorKind::Target { listing: listing.to_string(), wanted: target.to_string() }))
        }
        other => Err(start.error(AsmErrorKind::Directive(other.to_owned()))),
    }
}

fn bundle(name: &str, at: &Cursor<'_>, target: Target) -> Result<&'static BundleInfo, AsmError> {
    let here = |info: &&BundleInfo| info.generations.holds(target.generation);
    match BUNDLES.iter().find(|info| info.name == name) {
        Some(info) if here(&info) => Ok(info),
        Some(_) => {
            Err(at.error(AsmErrorKind::NotOnTarget { found: name.to_owned(), target: target.to_string() }))
        }
        None => {
            let known: Vec<&str> = BUNDLES.iter().filter(here).map(|info| info.name).collect();
            Err(at.error(AsmErrorKind::Mnemonic { found: name.to_owned(), known: known.join(", ") }))
        }
    }
}

/// A value read from text, before it is stored.
enum Parsed {
    Byte(u8),
    Pair([u8; 2]),
    Pattern3(Pattern<3>),
    Pattern4(Pattern<4>),
    Mx(MxPattern),
}

fn instruction(cursor: &mut Cursor<'_>, info: &'static BundleInfo, target: Target) -> Result<Word, AsmError> {
    let layout = Layout::of(target);
    let mut blank = Word::ZERO;
    blank.0[0] = info.opcode;
    let mut inst = decode(&blank, target).inst;
    // One bit for each row of the bundle that has its value.
    let mut given = 0u32;
    let mut hint = 0;
    let mut raw: Vec<(u8, u8)> = Vec::new();
    let mut reduced = false;
    while !cursor.at_end() {
        let at = *cursor;
        let key = cursor.word();
        if key == "bytes" && cursor.take("{") {
            read_bytes(cursor, &mut raw)?;
            continue;
        }
        let row = find(info, key, hint, layout).ok_or_else(|| unknown_key(info, key, &at, target))?;
        let Some(field) = info.fields.get(row) else { return Err(at.expected("a field's name")) };
        hint = row + 1;
        if given >> row & 1 != 0 {
            return Err(at.error(AsmErrorKind::Twice(key.to_owned())));
        }
        given |= 1 << row;
        cursor.require("=", "'=' after the field's name")?;
        if let Some(tag) = tag_field(info, field, layout) {
            let read = operand::read_type(cursor, tag.kind, target)?;
            reduced |= read.reduced && field.kind == Kind::Source;
            store_tag(&mut inst, layout, tag, &read);
        }
        let value = value(cursor, field)?;
        store(&mut inst, layout, field, &value);
    }
    let mut variant_given = false;
    for (row, field) in info.fields.iter().enumerate().filter(|(_, f)| f.layouts.holds(layout)) {
        let is_given = given >> row & 1 != 0;
        variant_given |= is_given && field.kind == Kind::PerfVariant;
        if is_operand(field) && !is_given {
            let kind = AsmErrorKind::Missing { instruction: info.name, missing: field.key };
            return Err(cursor.error(kind));
        }
    }
    if reduced && !variant_given {
        inst.walk_mut(layout, |field, slot| {
            if let (Kind::PerfVariant, ValueMut::Byte(byte)) = (field.kind, slot) {
                *byte = PerfVariant::PERF;
            }
        });
    }
    let mut word = inst.encode(target);
    for (at, byte) in raw {
        if let Some(slot) = word.0.get_mut(usize::from(at)) {
            *slot = byte;
        }
    }
    Ok(word)
}

fn is_operand(field: &Field) -> bool {
    matches!(field.kind, Kind::Source | Kind::Destination | Kind::Mx)
}

/// The tag field of an operand.
fn tag_field(info: &BundleInfo, operand: &Field, layout: Layout) -> Option<&'static Field> {
    info.fields_in(layout).find(|f| matches!(f.kind, Kind::Tag(of) | Kind::MxTag(of) if of == operand.key))
}

/// Tags are part of their operands.
fn is_listed(field: &Field) -> bool {
    !matches!(field.kind, Kind::Tag(_) | Kind::MxTag(_))
}

/// The row of the field `key`, looked for from `hint` on: text mostly follows the table.
fn find(info: &BundleInfo, key: &str, hint: usize, layout: Layout) -> Option<usize> {
    let rows = info.fields.len();
    (hint..rows).chain(0..hint.min(rows)).find(|&row| {
        info.fields.get(row).is_some_and(|f| f.key == key && f.layouts.holds(layout) && is_listed(f))
    })
}

fn unknown_key(info: &BundleInfo, key: &str, at: &Cursor<'_>, target: Target) -> AsmError {
    if key.is_empty() {
        return at.expected("a field's name");
    }
    let listed = info.fields_in(Layout::of(target)).filter(|f| is_listed(f));
    let known: Vec<&str> = listed.map(|f| f.key).collect();
    at.error(AsmErrorKind::Key {
        found: key.to_owned(),
        instruction: info.name,
        target: target.to_string(),
        known: known.join(", "),
    })
}

fn value(cursor: &mut Cursor<'_>, field: &Field) -> Result<Parsed, AsmError> {
    Ok(match (field.kind, field.width) {
        (Kind::Mx, _) => Parsed::Mx(operand::mx(cursor)?),
        (Kind::Source | Kind::Destination, 20) => Parsed::Pattern4(operand::pattern(cursor)?),
        (Kind::Source | Kind::Destination, _) => Parsed::Pattern3(operand::pattern(cursor)?),
        (_, 2) => {
            cursor.require("[", "'[' before two bytes")?;
            let first = operand::byte(cursor, "a byte")?;
            cursor.require(",", "','")?;
            let second = operand::byte(cursor, "a byte")?;
            cursor.require("]", "']'")?;
            Parsed::Pair([first, second])
        }
        (Kind::Accumulate, _) => Parsed::Byte(flags(cursor)?),
        (Kind::PerfMode, _) => Parsed::Byte(perf_mode(cursor)?),
        (Kind::Flag, _) => {
            let at = *cursor;
            let value = operand::byte(cursor, "a flag")?;
            if value > 1 {
                let kind = AsmErrorKind::Range { value: i64::from(value), what: "a flag", min: 0, max: 1 };
                return Err(at.error(kind));
            }
            Parsed::Byte(value)
        }
        _ => Parsed::Byte(operand::byte(cursor, "a byte")?),
    })
}

/// True when a number comes next, rather than a name.
fn number_next(cursor: &mut Cursor<'_>) -> bool {
    cursor.skip_blanks();
    cursor.rest().starts_with(|c: char| c.is_ascii_digit() || c == '-')
}

fn flags(cursor: &mut Cursor<'_>) -> Result<u8, AsmError> {
    if number_next(cursor) {
        return operand::byte(cursor, "accumulate flags");
    }
    let mut byte = 0;
    loop {
        let at = *cursor;
        byte |= match cursor.word() {
            "start" => START,
            "stop" => STOP,
            "accumulate" => ACCUMULATE,
            found => {
                return Err(at.error(AsmErrorKind::Name {
                    found: found.to_owned(),
                    what: "an accumulate flag",
                    known: "start, stop, accumulate, or a number",
                }));
            }
        };
        if !cursor.take("|") {
            return Ok(byte);
        }
    }
}

fn perf_mode(cursor: &mut Cursor<'_>) -> Result<u8, AsmError> {
    if number_next(cursor) {
        return operand::byte(cursor, "a performance mode");
    }
    let at = *cursor;
    let name = cursor.word();
    name.parse::<PerfMode>().map(PerfMode::code).map_err(|_| {
        at.error(AsmErrorKind::Name {
            found: name.to_owned(),
            what: "a performance mode",
            known: "None, DoubleRow, DoubleColumn, DoublePixel, DoubleRowSwInterleave, or a number",
        })
    })
}

/// Reads `OO:VV ...}`.
fn read_bytes(cursor: &mut Cursor<'_>, raw: &mut Vec<(u8, u8)>) -> Result<(), AsmError> {
    while !cursor.take("}") {
        let at = *cursor;
        let offset = cursor.hex_byte()?;
        if offset > 63 {
            let kind =
                AsmErrorKind::Range { value: i64::from(offset), what: "a byte's offset", min: 0, max: 63 };
            return Err(at.error(kind));
        }
        cursor.require(":", "':' between offset and value")?;
        raw.push((offset, cursor.hex_byte()?));
    }
    Ok(())
}

fn store_tag(inst: &mut Inst, layout: Layout, tag: &Field, read: &Type) {
    store(inst, layout, tag, &Parsed::Byte(read.tag));
}

fn store(inst: &mut Inst, layout: Layout, wanted: &Field, value: &Parsed) {
    inst.walk_mut(layout, |field, slot| {
        // In one layout a place belongs to one field.
        if field.span != wanted.span {
            return;
        }
        match (slot, value) {
            (ValueMut::Byte(slot), Parsed::Byte(value)) => *slot = *value,
            (ValueMut::Pair(slot), Parsed::Pair(value)) => *slot = *value,
            (ValueMut::Pattern3(slot), Parsed::Pattern3(value)) => *slot = *value,
            (ValueMut::Pattern4(slot), Parsed::Pattern4(value)) => *slot = *value,
            (ValueMut::Mx(slot), Parsed::Mx(value)) => *slot = *value,
            // A field's kind and width fix its type, so the pairs always agree.
            _ => {}
        }
    });
}
