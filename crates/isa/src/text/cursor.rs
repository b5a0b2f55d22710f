//! A cursor over one line of text.

use super::error::{AsmError, AsmErrorKind};

/// A position in one line; comments are already cut off.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
    line: usize,
}

impl<'t> Cursor<'t> {
    /// A cursor at the start of a line; text after `;` or `//` is left out.
    pub(super) fn new(text: &'t str, line: usize) -> Self {
        let bytes = text.as_bytes();
        let mut end = 0;
        while let Some(&byte) = bytes.get(end) {
            if byte == b';' || (byte == b'/' && bytes.get(end + 1) == Some(&b'/')) {
                break;
            }
            end += 1;
        }
        Cursor { text: text.get(..end).unwrap_or(text), at: 0, line }
    }

    fn next_byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    pub(super) fn skip_blanks(&mut self) {
        while self.next_byte().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    pub(super) fn at_end(&mut self) -> bool {
        self.skip_blanks();
        self.rest().is_empty()
    }

    /// An error at this place.
    pub(super) fn error(&self, kind: AsmErrorKind) -> AsmError {
        let column = self.text.get(..self.at).map_or(0, |t| t.chars().count()) + 1;
        AsmError { line: self.line, column, kind: Box::new(kind) }
    }

    /// An "expected" error at this place.
    pub(super) fn expected(&self, expected: &'static str) -> AsmError {
        let found = match self.rest().chars().next() {
            None => "the end of the line".to_owned(),
            Some(c) => format!("{c:?}"),
        };
        self.error(AsmErrorKind::Expected { expected, found })
    }

    /// Takes `token` if it is next, after blanks.
    pub(super) fn take(&mut self, token: &str) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(token);
        if found {
            self.advance(token.len());
        }
        found
    }

    /// Takes `token` or fails with `expected`.
    pub(super) fn require(&mut self, token: &str, expected: &'static str) -> Result<(), AsmError> {
        if self.take(token) { Ok(()) } else { Err(self.expected(expected)) }
    }

    /// Skips a number of characters.
    pub(super) fn skip_characters(&mut self, count: usize) {
        let bytes = self.rest().char_indices().nth(count).map_or(self.rest().len(), |(at, _)| at);
        self.advance(bytes);
    }

    /// Takes a run of letters, digits and `_`, after blanks; may be empty.
    pub(super) fn word(&mut self) -> &'t str {
        self.skip_blanks();
        self.run(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }

    /// Takes the characters up to a blank; may be empty.
    pub(super) fn token(&mut self) -> &'t str {
        self.skip_blanks();
        self.run(|byte| !byte.is_ascii_whitespace())
    }

    /// Takes bytes while `part` holds; it must hold for all or none of a character's bytes.
    fn run(&mut self, part: impl Fn(u8) -> bool) -> &'t str {
        let start = self.at;
        while self.next_byte().is_some_and(&part) {
            self.at += 1;
        }
        self.text.get(start..self.at).unwrap_or("")
    }

    /// Takes a decimal or `0x` number in `min..=max`.
    pub(super) fn number(&mut self, what: &'static str, min: i64, max: i64) -> Result<i64, AsmError> {
        self.radix(what, min, max, true)
    }

    /// Takes a decimal number in `min..=max`; for places where an `x` follows.
    pub(super) fn decimal(&mut self, what: &'static str, min: i64, max: i64) -> Result<i64, AsmError> {
        self.radix(what, min, max, false)
    }

    fn radix(&mut self, what: &'static str, min: i64, max: i64, hex_allowed: bool) -> Result<i64, AsmError> {
        self.skip_blanks();
        let start = *self;
        let negative = self.take("-");
        let hex = hex_allowed && (self.rest().starts_with("0x") || self.rest().starts_with("0X"));
        if hex {
            self.advance(2);
        }
        let digits = self.run(|byte| if hex { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() });
        if digits.is_empty() {
            return Err(start.expected("a number"));
        }
        // A number too long for the type is out of every field's range.
        let value = i64::from_str_radix(digits, if hex { 16 } else { 10 }).unwrap_or(i64::MAX);
        let value = if negative { -value } else { value };
        if (min..=max).contains(&value) {
            Ok(value)
        } else {
            Err(start.error(AsmErrorKind::Range { value, what, min, max }))
        }
    }

    /// Takes two hex digits.
    pub(super) fn hex_byte(&mut self) -> Result<u8, AsmError> {
        self.skip_blanks();
        let digits = self.rest().get(..2).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        match digits.and_then(|d| u8::from_str_radix(d, 16).ok()) {
            Some(byte) => {
                self.advance(2);
                Ok(byte)
            }
            None => Err(self.expected("two hex digits")),
        }
    }
}
