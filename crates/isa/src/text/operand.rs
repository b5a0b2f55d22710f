//! Operands: types, places, dimensions.

use super::cursor::Cursor;
use super::error::{AsmError, AsmErrorKind};
use crate::table::Kind;
use crate::{Addr4, IndirectPattern, MxIndirect, MxPattern, Pattern, Target, mx_tag, operand_tag};
use hadal_num::Dtype;

/// An operand's tag byte, and whether its type asks for the float32r variant.
pub(super) struct Type {
    pub(super) tag: u8,
    pub(super) reduced: bool,
}

/// Reads `type@`; `kind` is that of the tag byte.
pub(super) fn read_type(cursor: &mut Cursor<'_>, kind: Kind, target: Target) -> Result<Type, AsmError> {
    cursor.skip_blanks();
    let start = *cursor;
    let name = cursor.word();
    let found = if name == "tag" && cursor.take(":") {
        Type { tag: byte(cursor, "a type tag")?, reduced: false }
    } else if name.is_empty() {
        return Err(start.expected("an element type"));
    } else {
        let dtype = Dtype::from_name(name).ok_or_else(|| start.error(AsmErrorKind::Type(name.to_owned())))?;
        let tag = match kind {
            Kind::MxTag(_) => mx_tag(dtype),
            _ => operand_tag(dtype, target.generation).map_err(|_| {
                start.error(AsmErrorKind::TypeHere { found: name.to_owned(), target: target.to_string() })
            })?,
        };
        Type { tag, reduced: dtype == Dtype::Float32r }
    };
    cursor.require("@", "'@' between type and place")?;
    Ok(found)
}

/// Reads a byte in decimal or hex.
pub(super) fn byte(cursor: &mut Cursor<'_>, what: &'static str) -> Result<u8, AsmError> {
    narrow(cursor.number(what, 0, 255)?, cursor)
}

/// Narrows a number whose range was checked.
fn narrow<T: TryFrom<i64>>(value: i64, cursor: &Cursor<'_>) -> Result<T, AsmError> {
    T::try_from(value).map_err(|_| cursor.expected("a number that fits"))
}

fn u16_number(cursor: &mut Cursor<'_>, what: &'static str) -> Result<u16, AsmError> {
    narrow(cursor.number(what, 0, 0xFFFF)?, cursor)
}

fn u32_number(cursor: &mut Cursor<'_>, what: &'static str, max: i64) -> Result<u32, AsmError> {
    narrow(cursor.number(what, 0, max)?, cursor)
}

fn comma(cursor: &mut Cursor<'_>) -> Result<(), AsmError> {
    cursor.require(",", "','")
}

/// Reads a place from its space's name on.
fn place(cursor: &mut Cursor<'_>) -> Result<Addr4, AsmError> {
    cursor.skip_blanks();
    let start = *cursor;
    let space = cursor.word();
    if !matches!(space, "sbuf" | "psum" | "reg" | "addr") {
        return Err(start.error(AsmErrorKind::Name {
            found: space.to_owned(),
            what: "a place",
            known: "sbuf, psum, reg, addr, or for a whole operand gather, mx, mxgather",
        }));
    }
    cursor.require("[", "'['")?;
    let address = match space {
        "sbuf" => {
            let partition = u32_number(cursor, "an SBUF partition", 127)?;
            comma(cursor)?;
            Addr4::sbuf(partition, u32_number(cursor, "an SBUF offset", 0x3_FFFF)?)
        }
        "psum" => {
            let partition = u32_number(cursor, "a PSUM partition", 127)?;
            comma(cursor)?;
            let bank = u32_number(cursor, "a PSUM bank", 15)?;
            comma(cursor)?;
            Addr4::psum(partition, bank, u32_number(cursor, "an offset in a bank", 2047)?)
        }
        "reg" => Addr4::register(byte(cursor, "a register id")?),
        _ => Addr4(u32_number(cursor, "an address word", 0xFFFF_FFFF)?),
    };
    cursor.require("]", "']'")?;
    Ok(address)
}

/// Reads up to `N` items in brackets; the rest keep `unit`.
fn items<T: Copy, const N: usize>(
    cursor: &mut Cursor<'_>,
    unit: T,
    read: impl Fn(&mut Cursor<'_>) -> Result<T, AsmError>,
) -> Result<[T; N], AsmError> {
    cursor.skip_blanks();
    let start = *cursor;
    cursor.require("[", "'[' before the dimensions")?;
    let mut list = [unit; N];
    let mut found = 0;
    while !cursor.take("]") {
        let item = read(cursor)?;
        if let Some(slot) = list.get_mut(found) {
            *slot = item;
        }
        found += 1;
        cursor.take(",");
    }
    if found > N { Err(start.error(AsmErrorKind::Dimensions { found, room: N })) } else { Ok(list) }
}

fn dimension(cursor: &mut Cursor<'_>) -> Result<(i16, u16), AsmError> {
    let stride = narrow(cursor.decimal("a stride", -0x8000, 0x7FFF)?, cursor)?;
    cursor.require("x", "'x' between stride and count")?;
    Ok((stride, u16_number(cursor, "a count")?))
}

/// Reads an operand of a pattern field, after its type.
pub(super) fn pattern<const N: usize>(cursor: &mut Cursor<'_>) -> Result<Pattern<N>, AsmError> {
    let start = *cursor;
    if cursor.take("gather[") {
        let data = place(cursor)?;
        comma(cursor)?;
        let index = place(cursor)?;
        cursor.require("]", "']'")?;
        let counts = items(cursor, 1, |c| u16_number(c, "a count"))?;
        let form = IndirectPattern { data, index, counts };
        return form.to_pattern().ok_or_else(|| start.expected("a static pattern"));
    }
    let address = place(cursor)?;
    let dims: [(i16, u16); N] = items(cursor, (1, 1), dimension)?;
    Ok(Pattern { start: address, strides: dims.map(|d| d.0), counts: dims.map(|d| d.1) })
}

fn scale(cursor: &mut Cursor<'_>) -> Result<(Addr4, u8), AsmError> {
    comma(cursor)?;
    let scale = place(cursor)?;
    comma(cursor)?;
    let partition = byte(cursor, "a scale partition")?;
    cursor.require("]", "']'")?;
    Ok((scale, partition))
}

/// Reads `[step x K]`.
fn extent(cursor: &mut Cursor<'_>) -> Result<(u8, u16), AsmError> {
    cursor.require("[", "'[' before step and extent")?;
    let step: i8 = narrow(cursor.decimal("a step", -128, 127)?, cursor)?;
    cursor.require("x", "'x' between step and extent")?;
    let k = u16_number(cursor, "a K extent")?;
    cursor.require("]", "']'")?;
    Ok((step.cast_unsigned(), k))
}

/// Reads an MX operand, after its type.
pub(super) fn mx(cursor: &mut Cursor<'_>) -> Result<MxPattern, AsmError> {
    if cursor.take("mxgather[") {
        let indices = place(cursor)?;
        comma(cursor)?;
        let data = place(cursor)?;
        let (scale, scale_partition) = scale(cursor)?;
        let (step, k) = extent(cursor)?;
        return Ok(MxIndirect { indices, data, scale, k, step, scale_partition }.to_pattern());
    }
    cursor.require("mx[", "mx[...] or mxgather[...]")?;
    let data = place(cursor)?;
    let (scale, scale_partition) = scale(cursor)?;
    let (step, k) = extent(cursor)?;
    let mut operand = MxPattern::new(data, scale, k, step, scale_partition);
    if cursor.take("[tail") {
        for byte in &mut operand.tail {
            *byte = cursor.hex_byte()?;
        }
        cursor.require("]", "']'")?;
    }
    Ok(operand)
}
