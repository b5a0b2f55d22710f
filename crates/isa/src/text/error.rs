//! What can be wrong with assembly text, and where.

use thiserror::Error;

/// An error in assembly text: line and column from 1, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{line}:{column}: {}: {kind}", kind.code())]
pub struct AsmError {
    /// Line in the listing.
    pub line: usize,
    /// Column in the line, in characters.
    pub column: usize,
    /// What is wrong. Boxed, so that the parser's results stay small.
    pub kind: Box<AsmErrorKind>,
}

/// What is wrong with assembly text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AsmErrorKind {
    /// The mnemonic is not a bundle.
    #[error("{found:?} is not an instruction; use one of {known}, or .word")]
    Mnemonic {
        /// The word found.
        found: String,
        /// The mnemonics of the target.
        known: String,
    },
    /// The target does not have the bundle.
    #[error(
        "{found} is not an instruction of {target}; assemble for a target that has it, or give the bytes with .word"
    )]
    NotOnTarget {
        /// The mnemonic.
        found: String,
        /// The target.
        target: String,
    },
    /// The bundle has no such field on the target.
    #[error("{instruction} has no field {found:?} on {target}; its fields are {known}")]
    Key {
        /// The key found.
        found: String,
        /// The mnemonic.
        instruction: &'static str,
        /// The target.
        target: String,
        /// The keys that exist.
        known: String,
    },
    /// A key is given twice.
    #[error("field {0:?} is given twice; keep one")]
    Twice(String),
    /// An operand is not given.
    #[error("{instruction} needs the operand {missing:?}; add {missing}=type@place[stride x count]")]
    Missing {
        /// The mnemonic.
        instruction: &'static str,
        /// The operand's key.
        missing: &'static str,
    },
    /// Something else was expected here.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What was expected.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A number does not fit.
    #[error("{value} is out of range for {what}; it must be in {min}..={max}")]
    Range {
        /// The number.
        value: i64,
        /// What it is for.
        what: &'static str,
        /// Least allowed.
        min: i64,
        /// Greatest allowed.
        max: i64,
    },
    /// No such element type.
    #[error("{0:?} is not an element type; use a type's name or tag:0xNN")]
    Type(String),
    /// A type that has no tag here.
    #[error(
        "{found} has no tag in a dense bundle of {target}; packed types go in the MX bundles, or give tag:0xNN"
    )]
    TypeHere {
        /// The type.
        found: String,
        /// The target.
        target: String,
    },
    /// A word in a value is not known.
    #[error("{found:?} is not {what}; use {known}")]
    Name {
        /// The word found.
        found: String,
        /// What it should name.
        what: &'static str,
        /// The names that exist.
        known: &'static str,
    },
    /// A pattern has too many dimensions.
    #[error(
        "{found} dimensions do not fit a descriptor with {room}; merge dimensions or split the instruction"
    )]
    Dimensions {
        /// Dimensions given.
        found: usize,
        /// Dimensions the descriptor has.
        room: usize,
    },
    /// A directive is not known.
    #[error("{0:?} is not a directive; use .target or .word")]
    Directive(String),
    /// A `.target` that is not the one assembled for.
    #[error(
        "the listing is for {listing} and is being assembled for {wanted}; assemble for {listing}, or change the line"
    )]
    Target {
        /// The target of the listing.
        listing: String,
        /// The target asked for.
        wanted: String,
    },
    /// A target name that is not known.
    #[error("unknown target {0:?}; use trn1, trn2, trn3 or level:N")]
    TargetName(String),
    /// A `.word` that is not 64 bytes.
    #[error("a .word has 128 hex digits, this one has {0}; give all 64 bytes")]
    WordLength(usize),
}

impl AsmErrorKind {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            AsmErrorKind::Mnemonic { .. } => "ISA201",
            AsmErrorKind::NotOnTarget { .. } => "ISA202",
            AsmErrorKind::Key { .. } => "ISA203",
            AsmErrorKind::Twice(_) => "ISA204",
            AsmErrorKind::Missing { .. } => "ISA205",
            AsmErrorKind::Expected { .. } => "ISA206",
            AsmErrorKind::Range { .. } => "ISA207",
            AsmErrorKind::Type(_) => "ISA208",
            AsmErrorKind::TypeHere { .. } => "ISA209",
            AsmErrorKind::Name { .. } => "ISA210",
            AsmErrorKind::Dimensions { .. } => "ISA211",
            AsmErrorKind::Directive(_) => "ISA212",
            AsmErrorKind::Target { .. } => "ISA213",
            AsmErrorKind::TargetName(_) => "ISA214",
            AsmErrorKind::WordLength(_) => "ISA215",
        }
    }
}
