//! The 64-byte instruction word and its two carriers: raw bytes and hex lines.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// One instruction bundle: 64 bytes, multi-byte fields little-endian.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Word(pub [u8; 64]);

impl Word {
    /// Bytes in a bundle.
    pub const BYTES: usize = 64;
    /// The all-zero word.
    pub const ZERO: Word = Word([0; 64]);

    /// The opcode, byte 0.
    #[must_use]
    pub const fn opcode(&self) -> u8 {
        self.0[0]
    }

    /// The bitwise exclusive or of two words.
    #[must_use]
    pub fn xor(&self, other: &Word) -> Word {
        Word(std::array::from_fn(|i| self.0[i] ^ other.0[i]))
    }

    /// The bitwise and of two words.
    #[must_use]
    pub fn and(&self, other: &[u8; 64]) -> Word {
        Word(std::array::from_fn(|i| self.0[i] & other[i]))
    }

    /// True when every byte is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0 == [0; 64]
    }
}

impl Default for Word {
    fn default() -> Self {
        Word::ZERO
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends the two lower-case hex digits of a byte.
pub(crate) fn push_hex(out: &mut String, byte: u8) {
    out.push(char::from(DIGITS[usize::from(byte >> 4)]));
    out.push(char::from(DIGITS[usize::from(byte & 15)]));
}

impl fmt::Display for Word {
    /// 128 lower-case hex digits, byte 0 first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(128);
        for &byte in &self.0 {
            push_hex(&mut text, byte);
        }
        f.pad(&text)
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Word({self})")
    }
}

/// Why bytes or hex text are not a sequence of bundles.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WordError {
    /// A hex word does not have 128 digits.
    #[error(
        "ISA101: a bundle has 128 hex digits, this one has {digits}; give one 64-byte bundle a line (line {line})"
    )]
    Length {
        /// Line in the text, from 1.
        line: usize,
        /// Digits found.
        digits: usize,
    },
    /// A character is not a hex digit.
    #[error("ISA102: {found:?} is not a hex digit (line {line}, column {column})")]
    Digit {
        /// Line in the text, from 1.
        line: usize,
        /// Column in the line, from 1.
        column: usize,
        /// The character.
        found: char,
    },
    /// A byte file is not a whole number of bundles.
    #[error(
        "ISA103: {bytes} bytes are not a whole number of 64-byte bundles ({over} left over); the file is cut short or is not a bundle file"
    )]
    Bytes {
        /// Bytes in the file.
        bytes: usize,
        /// Bytes after the last whole bundle.
        over: usize,
    },
}

fn word_from_hex(text: &str, line: usize) -> Result<Word, WordError> {
    let mut word = [0u8; 64];
    let mut digits = 0usize;
    for (at, c) in text.chars().enumerate() {
        let Some(value) = c.to_digit(16).and_then(|v| u8::try_from(v).ok()) else {
            return Err(WordError::Digit { line, column: at + 1, found: c });
        };
        if let Some(byte) = word.get_mut(digits / 2) {
            *byte = *byte << 4 | value;
        }
        digits += 1;
    }
    if digits == 128 { Ok(Word(word)) } else { Err(WordError::Length { line, digits }) }
}

impl FromStr for Word {
    type Err = WordError;

    /// Reads 128 hex digits of either case; surrounding blanks are allowed.
    fn from_str(text: &str) -> Result<Self, WordError> {
        word_from_hex(text.trim(), 1)
    }
}

/// Reads a hex listing: one bundle a line, blank lines skipped.
///
/// # Errors
/// [`WordError`] with the line of the first malformed bundle.
pub fn words_from_hex(text: &str) -> Result<Vec<Word>, WordError> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(at, line)| word_from_hex(line.trim(), at + 1))
        .collect()
}

/// Reads a byte file: bundles back to back.
///
/// # Errors
/// [`WordError::Bytes`] when the length is not a multiple of 64.
pub fn words_from_bytes(bytes: &[u8]) -> Result<Vec<Word>, WordError> {
    let (words, rest) = bytes.as_chunks::<64>();
    if rest.is_empty() {
        Ok(words.iter().map(|w| Word(*w)).collect())
    } else {
        Err(WordError::Bytes { bytes: bytes.len(), over: rest.len() })
    }
}
