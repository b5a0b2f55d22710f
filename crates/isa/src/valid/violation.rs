//! A broken rule of a whole bundle.

use std::fmt;

/// A rule that a bundle breaks, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The stable code.
    pub code: &'static str,
    /// Byte in the bundle.
    pub offset: usize,
    /// The field's key.
    pub field: &'static str,
    /// The offending value.
    pub value: u64,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { code, offset, field, value, message } = self;
        write!(f, "{code}: byte {offset:02x} ({field}) is {value:#04x}: {message}")
    }
}

/// Collects violations.
#[derive(Default)]
pub(super) struct Report(Vec<Violation>);

impl Report {
    pub(super) fn add(
        &mut self,
        code: &'static str,
        offset: usize,
        field: &'static str,
        value: u64,
        message: impl Into<String>,
    ) {
        self.0.push(Violation { code, offset, field, value, message: message.into() });
    }

    /// The violations in byte order.
    pub(super) fn finish(mut self) -> Vec<Violation> {
        self.0.sort_by_key(|v| v.offset);
        self.0
    }
}
