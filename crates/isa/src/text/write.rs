//! Pieces of text, appended without allocation.

use crate::{Addr4, Place};

/// Every three-digit group, "000" to "999", back to back.
const DIGITS: [u8; 3000] = {
    let mut digits = [0; 3000];
    let mut n = 0;
    while n < 1000 {
        digits[3 * n] = b'0' + (n / 100) as u8;
        digits[3 * n + 1] = b'0' + (n / 10 % 10) as u8;
        digits[3 * n + 2] = b'0' + (n % 10) as u8;
        n += 1;
    }
    digits
};

/// Every byte as "0xNN", back to back.
const CODES: [u8; 1024] = {
    let hex = b"0123456789abcdef";
    let mut codes = [0; 1024];
    let mut n = 0;
    while n < 256 {
        codes[4 * n] = b'0';
        codes[4 * n + 1] = b'x';
        codes[4 * n + 2] = hex[n >> 4];
        codes[4 * n + 3] = hex[n & 15];
        n += 1;
    }
    codes
};

const fn text(bytes: &'static [u8]) -> &'static str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => "",
    }
}

static DIGIT_TEXT: &str = text(&DIGITS);
static CODE_TEXT: &str = text(&CODES);

/// Appends a number in decimal.
#[inline]
pub(crate) fn push_dec(out: &mut String, value: u32) {
    if value < 1000 {
        // Leading zeros are left out.
        let skip = usize::from(value < 100) + usize::from(value < 10);
        let at = 3 * value as usize;
        out.push_str(DIGIT_TEXT.get(at + skip..at + 3).unwrap_or_default());
    } else {
        push_long(out, value);
    }
}

fn push_long(out: &mut String, value: u32) {
    push_dec(out, value / 1000);
    let at = 3 * (value % 1000) as usize;
    out.push_str(DIGIT_TEXT.get(at..at + 3).unwrap_or_default());
}

/// Appends a signed number in decimal.
pub(super) fn push_signed(out: &mut String, value: i16) {
    if value < 0 {
        out.push('-');
    }
    push_dec(out, u32::from(value.unsigned_abs()));
}

/// Appends a byte as `0xNN`.
pub(super) fn push_code(out: &mut String, value: u8) {
    let at = 4 * usize::from(value);
    out.push_str(CODE_TEXT.get(at..at + 4).unwrap_or_default());
}

/// Appends a byte as `NN`.
pub(super) fn push_hex(out: &mut String, value: u8) {
    let at = 4 * usize::from(value);
    out.push_str(CODE_TEXT.get(at + 2..at + 4).unwrap_or_default());
}

/// Appends a 32-bit number as `0xNNNNNNNN`.
pub(crate) fn push_address(out: &mut String, value: u32) {
    out.push_str("0x");
    for byte in value.to_be_bytes() {
        push_hex(out, byte);
    }
}

/// Appends an address: its place when that says everything, the raw word otherwise.
pub(crate) fn push_place(out: &mut String, address: Addr4) {
    match address.place() {
        Place::Sbuf { partition, offset } => {
            out.push_str("sbuf[");
            push_dec(out, partition);
            out.push_str(", ");
            push_dec(out, offset);
        }
        Place::Psum { partition, bank, offset } => {
            out.push_str("psum[");
            push_dec(out, partition);
            out.push_str(", ");
            push_dec(out, bank);
            out.push_str(", ");
            push_dec(out, offset);
        }
        Place::Register(id) if Addr4::register(id) == address => {
            out.push_str("reg[");
            push_dec(out, u32::from(id));
        }
        Place::Register(_) | Place::Indirect(_) | Place::Outside => {
            out.push_str("addr[");
            push_address(out, address.0);
        }
    }
    out.push(']');
}
