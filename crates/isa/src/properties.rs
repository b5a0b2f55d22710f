//! What must hold for every word and every text: one place for tests and fuzz targets.

use crate::table::Layout;
use crate::text::{parse, parse_listing, print, print_listing};
use crate::valid::check;
use crate::{Target, Word, decode, fields};
use thiserror::Error;

/// A property that failed, with what it failed on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{property} fails for {target}: {detail}")]
pub struct Broken {
    /// The property.
    pub property: &'static str,
    /// The target.
    pub target: Target,
    /// The case.
    pub detail: String,
}

fn require(
    holds: bool,
    property: &'static str,
    target: Target,
    detail: impl FnOnce() -> String,
) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(Broken { property, target, detail: detail() }) }
}

/// Any word: decoding and encoding give it back, its residue is what its own instruction does not
/// write, its text assembles to it, its field listing covers its 64 bytes, and its violations are
/// inside it.
///
/// # Errors
/// The first property that fails.
pub fn word(word: &Word, target: Target) -> Result<(), Broken> {
    let decoded = decode(word, target);
    let shown = || word.to_string();
    require(decoded.encode(target) == *word, "decode then encode", target, shown)?;
    require(decoded.inst.encode(target).xor(word) == decoded.residue, "residue", target, shown)?;
    let again = decode(&decoded.inst.encode(target), target);
    require(again.inst == decoded.inst && again.residue.is_zero(), "encode then decode", target, shown)?;
    let line = print(word, target);
    require(parse(&line, target).as_ref() == Ok(word), "print then parse", target, || line.clone())?;
    let mut covered = [false; 64];
    for row in fields(word, target) {
        let bytes = covered.get_mut(row.offset..row.offset + row.width).unwrap_or_default();
        bytes.fill(true);
    }
    require(covered == [true; 64], "field listing covers every byte", target, shown)?;
    let inside = check(word, target).iter().all(|violation| violation.offset < 64);
    require(inside, "violations are inside the bundle", target, shown)
}

/// Any text: assembling it never panics, and what assembles prints to a listing that assembles to
/// the same words.
///
/// # Errors
/// The property, when it fails.
pub fn text(text: &str, target: Target) -> Result<(), Broken> {
    let Ok(words) = parse_listing(text, target) else { return Ok(()) };
    let listing = print_listing(&words, target);
    require(parse_listing(&listing, target) == Ok(words), "parse then print then parse", target, || {
        listing.clone()
    })
}

/// The targets that between them have every layout: the named ones and a level above 40.
#[must_use]
pub fn targets() -> [Target; 4] {
    let high = Target { level: 41, ..Target::TRN3 };
    debug_assert_eq!(Layout::of(high), Layout::Above40);
    [Target::TRN1, Target::TRN2, Target::TRN3, high]
}
