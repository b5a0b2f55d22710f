//! What an input is, told from its contents and never from its name.

use std::fmt;

use crate::files::Source;

/// The forms an input can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A KLR kernel (`.klr`).
    Klr,
    /// A program as JSON (`.bir.json`).
    Json,
    /// Assembly text.
    Assembly,
    /// Bundles, 64 bytes each (`.bin`).
    Bundles,
    /// Bundles as hexadecimal text, one a line.
    Hex,
}

impl Form {
    /// Whether the form holds a program rather than bundles.
    pub fn is_program(self) -> bool {
        matches!(self, Form::Klr | Form::Json)
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Form::Klr => "a KLR kernel",
            Form::Json => "a JSON program",
            Form::Assembly => "assembly text",
            Form::Bundles => "bundles",
            Form::Hex => "bundles in hexadecimal",
        })
    }
}

/// First bytes of a KLR file.
const KLR_MAGIC: [u8; 4] = [0xd9, 0xd9, 0xf7, 0x83];

/// Recognises an input; `None` when its bytes fit no form.
pub fn recognise(source: &Source) -> Option<Form> {
    let bytes = source.bytes.as_slice();
    if bytes.starts_with(&KLR_MAGIC) {
        return Some(Form::Klr);
    }
    match text(bytes) {
        Some(text) => Some(match text.trim_start().chars().next() {
            Some('{') => Form::Json,
            _ if is_hex(text) => Form::Hex,
            _ => Form::Assembly,
        }),
        None if bytes.len().is_multiple_of(64) => Some(Form::Bundles),
        None => None,
    }
}

/// The bytes as text, if they are text: UTF-8 without control characters other than blanks.
pub fn text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let plain = text.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\r' | '\t'));
    plain.then_some(text)
}

/// Whether the first line that is not blank is a long run of hexadecimal digits.
fn is_hex(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|l| !l.is_empty());
    // The shortest assembly mnemonic made of hexadecimal digits alone is far shorter than this.
    first.is_some_and(|l| l.len() >= 32 && l.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(bytes: &[u8]) -> Option<Form> {
        recognise(&Source { name: "x".to_owned(), bytes: bytes.to_vec() })
    }

    #[test]
    fn contents_decide() {
        assert_eq!(form(&[0xd9, 0xd9, 0xf7, 0x83, 0]), Some(Form::Klr));
        assert_eq!(form(b"\n {\"format\""), Some(Form::Json));
        assert_eq!(form(&[0; 128]), Some(Form::Bundles));
        assert_eq!(form(&[0; 100]), None);
        assert_eq!(form(&b"01".repeat(64)), Some(Form::Hex));
        assert_eq!(form(b".target trn2\n"), Some(Form::Assembly));
        assert_eq!(form("\u{feff}; note\n".as_bytes()), Some(Form::Assembly));
    }
}
