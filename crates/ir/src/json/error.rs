//! What can be wrong with a document, and where.

use std::fmt;

/// Class of a [`JsonError`]; each has a stable code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JsonErrorKind {
    /// The text is not JSON.
    Syntax,
    /// The document is not of the form `hadal-bir`, version 1.
    Format,
    /// A value has another type than its key asks for.
    Type,
    /// A key that the object does not have.
    UnknownKey,
    /// A key that the object must have is absent.
    MissingKey,
    /// A key is given twice.
    DuplicateKey,
    /// A number, or the length of a list or name, is outside its limits.
    Range,
    /// Two locations, or two instructions, of a core share a name.
    DuplicateName,
    /// A word that names no location, element type, operator or other thing known.
    UnknownName,
    /// Two parts of the document contradict each other.
    Conflict,
}

impl JsonErrorKind {
    /// Every kind, in code order.
    pub const ALL: [JsonErrorKind; 10] = [
        JsonErrorKind::Syntax,
        JsonErrorKind::Format,
        JsonErrorKind::Type,
        JsonErrorKind::UnknownKey,
        JsonErrorKind::MissingKey,
        JsonErrorKind::DuplicateKey,
        JsonErrorKind::Range,
        JsonErrorKind::DuplicateName,
        JsonErrorKind::UnknownName,
        JsonErrorKind::Conflict,
    ];

    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            JsonErrorKind::Syntax => "JSON-001",
            JsonErrorKind::Format => "JSON-002",
            JsonErrorKind::Type => "JSON-003",
            JsonErrorKind::UnknownKey => "JSON-004",
            JsonErrorKind::MissingKey => "JSON-005",
            JsonErrorKind::DuplicateKey => "JSON-006",
            JsonErrorKind::Range => "JSON-007",
            JsonErrorKind::DuplicateName => "JSON-008",
            JsonErrorKind::UnknownName => "JSON-009",
            JsonErrorKind::Conflict => "JSON-010",
        }
    }
}

/// Why a document was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// Class of the error; gives the code.
    pub kind: JsonErrorKind,
    /// File name as given to the reader.
    pub file: String,
    /// Place in the document, such as `instructions[3].ifmap.pattern[1][1]`; empty for the whole document.
    pub path: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What is wrong, with the value, in one line.
    pub text: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for JsonError {
    /// `error[CODE]: text`, then the place and the remedy, one a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}", self.kind.code(), self.text)?;
        write!(f, "\n  --> {}:{}:{}", self.file, self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, ": {}", self.path)?;
        }
        write!(f, "\n  = help: {}", self.remedy)
    }
}

impl std::error::Error for JsonError {}
