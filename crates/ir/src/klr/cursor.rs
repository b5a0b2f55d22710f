//! A bounded cursor over the bytes of a file: the subset of CBOR that KLR writes.
//!
//! Every read is checked against the bytes that are left and nothing is allocated before that check.

use super::error::{KlrError, Place};

/// Head of a tagged value: `d9 tag constructor 80|count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) tag: u8,
    pub(crate) ctor: u8,
    pub(crate) count: u8,
}

/// The place in the schema that a read belongs to, for messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At {
    pub(crate) within: &'static str,
    pub(crate) field: &'static str,
}

/// Read position in a file.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    offset: usize,
}

/// First byte of a tagged value.
pub(crate) const TAG: u8 = 0xd9;
const FALSE: u8 = 0xf4;
const TRUE: u8 = 0xf5;
const FLOAT32: u8 = 0xfa;
const FLOAT64: u8 = 0xfb;

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.offset..).unwrap_or_default()
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    fn place(offset: usize, at: At) -> Place {
        Place { offset, within: at.within, field: at.field }
    }

    pub(crate) fn here(&self, at: At) -> Place {
        Self::place(self.offset, at)
    }

    /// The next `count` bytes; `start` is where the value they belong to begins.
    fn take(&mut self, count: u64, start: usize, at: At) -> Result<&'a [u8], KlrError> {
        let rest = self.rest();
        let taken = usize::try_from(count).ok().and_then(|count| rest.get(..count));
        let taken = taken.ok_or(KlrError::Truncated {
            place: Self::place(start, at),
            needed: count,
            left: rest.len(),
        })?;
        self.offset += taken.len();
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, start: usize, at: At) -> Result<[u8; N], KlrError> {
        let bytes = self.take(N as u64, start, at)?;
        let mut array = [0; N];
        array.copy_from_slice(bytes);
        Ok(array)
    }

    pub(crate) fn byte(&mut self, at: At) -> Result<u8, KlrError> {
        self.array::<1>(self.offset, at).map(|[byte]| byte)
    }

    fn unexpected(start: usize, byte: u8, expected: &'static str, at: At) -> KlrError {
        KlrError::Item { place: Self::place(start, at), found: describe(byte), expected }
    }

    /// Major type and argument, with the argument at any width.
    fn item(&mut self, expected: &'static str, at: At) -> Result<(u8, u64), KlrError> {
        let start = self.offset;
        let byte = self.byte(at)?;
        let argument = match byte & 0x1f {
            small @ 0..=23 => u64::from(small),
            24 => u64::from(self.array::<1>(start, at)?[0]),
            25 => u64::from(u16::from_be_bytes(self.array(start, at)?)),
            26 => u64::from(u32::from_be_bytes(self.array(start, at)?)),
            27 => u64::from_be_bytes(self.array(start, at)?),
            _ => return Err(Self::unexpected(start, byte, expected, at)),
        };
        Ok((byte >> 5, argument))
    }

    /// Argument of an item that must be of major type `major`.
    fn argument(&mut self, major: u8, expected: &'static str, at: At) -> Result<u64, KlrError> {
        let start = self.offset;
        let first = self.peek();
        match (first, first.map(|byte| byte >> 5)) {
            (Some(byte), Some(found)) if found != major => Err(Self::unexpected(start, byte, expected, at)),
            _ => Ok(self.item(expected, at)?.1),
        }
    }

    pub(crate) fn nat(&mut self, at: At) -> Result<u64, KlrError> {
        self.argument(0, "an unsigned integer", at)
    }

    pub(crate) fn int(&mut self, at: At) -> Result<i64, KlrError> {
        let start = self.offset;
        if let Some(byte @ 0x40..) = self.peek() {
            return Err(Self::unexpected(start, byte, "an integer", at));
        }
        let (major, magnitude) = self.item("an integer", at)?;
        let sign = if major == 0 { "" } else { "-1 - " };
        match i64::try_from(magnitude) {
            Ok(value) if major == 0 => Ok(value),
            Ok(value) => Ok(-1 - value),
            Err(_) => {
                let place = Self::place(start, at);
                Err(KlrError::Range { place, sign, magnitude, expected: "a signed 64-bit integer" })
            }
        }
    }

    pub(crate) fn boolean(&mut self, at: At) -> Result<bool, KlrError> {
        let start = self.offset;
        match self.byte(at)? {
            FALSE => Ok(false),
            TRUE => Ok(true),
            byte => Err(Self::unexpected(start, byte, "false or true", at)),
        }
    }

    /// A float of 4 or 8 bytes; widening the former is exact.
    pub(crate) fn float(&mut self, at: At) -> Result<f64, KlrError> {
        let start = self.offset;
        match self.byte(at)? {
            FLOAT32 => Ok(f64::from(f32::from_be_bytes(self.array(start, at)?))),
            FLOAT64 => Ok(f64::from_be_bytes(self.array(start, at)?)),
            byte => Err(Self::unexpected(start, byte, "a floating-point number", at)),
        }
    }

    pub(crate) fn text(&mut self, at: At) -> Result<&'a str, KlrError> {
        let start = self.offset;
        let length = self.argument(3, "a string", at)?;
        let bytes = self.take(length, start, at)?;
        std::str::from_utf8(bytes)
            .map_err(|error| KlrError::Text { place: Self::place(start, at), valid: error.valid_up_to() })
    }

    /// Length of a list, no more than the bytes that are left: every value in a list takes at least one.
    pub(crate) fn list(&mut self, at: At) -> Result<usize, KlrError> {
        let start = self.offset;
        let count = self.argument(4, "a list", at)?;
        let left = self.rest().len();
        usize::try_from(count).ok().filter(|count| *count <= left).ok_or(KlrError::ListTooLong {
            place: Self::place(start, at),
            count,
            left,
        })
    }

    /// Head of a tagged value.
    pub(crate) fn head(&mut self, expected: &'static str, at: At) -> Result<Head, KlrError> {
        let start = self.offset;
        if let Some(byte) = self.peek().filter(|byte| *byte != TAG) {
            return Err(Self::unexpected(start, byte, expected, at));
        }
        let [_, tag, ctor, count] = self.array::<4>(start, at)?;
        match count {
            0x80..=0x97 => Ok(Head { tag, ctor, count: count & 0x1f }),
            _ => Err(KlrError::Item {
                place: Self::place(start + 3, at),
                found: describe(count),
                expected: "a field count (80 to 97)",
            }),
        }
    }
}

/// A byte in words, as the first of a value.
pub(crate) fn describe(byte: u8) -> String {
    let kind = match byte {
        FALSE => "false",
        TRUE => "true",
        FLOAT32 | FLOAT64 => "a floating-point number",
        0x00..=0x1b => "an unsigned integer",
        0x20..=0x3b => "a negative integer",
        0x40..=0x5b => "a byte string",
        0x60..=0x7b => "a string",
        0x80..=0x9b => "a list",
        0xa0..=0xbb => "a map",
        TAG => "a tagged value",
        0xc0..=0xdb => "a short tag",
        0x5f | 0x7f | 0x9f | 0xbf => "a value of indefinite length",
        _ => "no value",
    };
    format!("{kind} (byte {byte:02x})")
}
