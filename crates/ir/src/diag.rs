//! Diagnostics: what a rule found, where, and what to do about it.

use std::fmt;

use hadal_isa::table::Confidence;

use crate::program::Pos;

/// One broken rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// Stable code, for example `V-211`.
    pub code: &'static str,
    /// Core the program belongs to.
    pub core: usize,
    /// Index of the instruction in its program; `None` for program-wide rules.
    pub instr: Option<usize>,
    /// Name of the instruction or location concerned.
    pub subject: String,
    /// Operand concerned, by its name in the interchange form.
    pub operand: Option<&'static str>,
    /// One line with the offending values.
    pub text: String,
    /// What to do.
    pub remedy: String,
    /// How well the rule is proven.
    pub confidence: Confidence,
    /// Where in the source, if known.
    pub pos: Option<Pos>,
}

impl Violation {
    /// Where, as one line: the source position if known, the core unless it is the first, the instruction
    /// or location, and the operand.
    pub fn place(&self) -> String {
        let mut place = String::new();
        if let Some(pos) = &self.pos {
            place.push_str(&format!("{pos}: "));
        }
        if self.core > 0 {
            place.push_str(&format!("core {}: ", self.core));
        }
        place.push_str(&self.subject);
        if let Some(operand) = self.operand {
            place.push_str(&format!(", operand {operand}"));
        }
        place
    }
}

impl fmt::Display for Violation {
    /// `error[CODE]: text`, then the place and the remedy, one a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}\n  --> {}", self.code, self.text, self.place())?;
        write!(f, "\n  = help: {}", self.remedy)?;
        match self.confidence {
            Confidence::Assumed => {
                f.write_str("\n  = note: this rule is assumed, not proven by the references")
            }
            Confidence::Inferred => f.write_str("\n  = note: this rule is inferred from the references"),
            _ => Ok(()),
        }
    }
}
