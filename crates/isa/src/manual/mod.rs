//! The manual of the bundles, rendered from the table: text for a terminal, Markdown, JSON.
//!
//! A manual is a list of sections (one a bundle, and one for each shared structure or code table);
//! each is a title, sentences and at most one table. In JSON a section's table is an array of
//! objects keyed by column, in which an unnamed byte has the name `null`.

mod bundle;
mod codes;
mod descriptors;
mod json;
mod markdown;
mod model;
mod plain;

use crate::Target;
use crate::table::BUNDLES;
use model::Section;
use std::str::FromStr;
use thiserror::Error;

/// How a manual is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Aligned columns for a terminal.
    #[default]
    Text,
    /// Markdown.
    Markdown,
    /// One JSON object.
    Json,
}

/// Why a manual cannot be given.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ManualError {
    /// No section has this name.
    #[error("ISA120: the manual has no section {name:?}; sections are {known}")]
    Section {
        /// The name as given.
        name: String,
        /// The sections there are.
        known: String,
    },
    /// No such format.
    #[error("ISA121: {0:?} is not a format; use text, md or json")]
    Format(String),
}

impl FromStr for Format {
    type Err = ManualError;

    fn from_str(text: &str) -> Result<Self, ManualError> {
        match text {
            "text" => Ok(Format::Text),
            "md" => Ok(Format::Markdown),
            "json" => Ok(Format::Json),
            other => Err(ManualError::Format(other.to_owned())),
        }
    }
}

/// Names of the manual's sections, in order; a bundle's section has the bundle's name.
#[must_use]
pub fn sections() -> Vec<String> {
    build(None).into_iter().map(|section| section.id).collect()
}

/// The whole manual, or the section `name` (in any case, or a bundle's opcode in hex such as
/// `0x02`), for every target or for one.
///
/// # Errors
/// [`ManualError::Section`] for an unknown name.
pub fn render(name: Option<&str>, target: Option<Target>, format: Format) -> Result<String, ManualError> {
    let mut sections = build(target);
    if let Some(name) = name {
        let wanted = wanted(name);
        let known: Vec<String> = sections.iter().map(|s| s.id.clone()).collect();
        sections.retain(|s| s.id.eq_ignore_ascii_case(&wanted));
        if sections.is_empty() {
            return Err(ManualError::Section { name: name.to_owned(), known: known.join(", ") });
        }
    }
    Ok(match format {
        Format::Text => plain::render(&sections),
        Format::Markdown => markdown::render(&sections),
        Format::Json => json::render(&sections),
    })
}

/// A section's name from a name or an opcode.
fn wanted(name: &str) -> String {
    let opcode = name.strip_prefix("0x").and_then(|hex| u8::from_str_radix(hex, 16).ok());
    match opcode.and_then(|code| BUNDLES.iter().find(|info| info.opcode == code)) {
        Some(info) => info.name.to_owned(),
        None => name.to_owned(),
    }
}

fn build(target: Option<Target>) -> Vec<Section> {
    let mut all = vec![bundle::overview(target), bundle::header()];
    let here =
        |generations: crate::table::Generations| target.is_none_or(|t| generations.holds(t.generation));
    all.extend(BUNDLES.iter().filter(|b| here(b.generations)).map(|info| bundle::section(info, target)));
    all.extend(descriptors::sections());
    all.extend(codes::sections(target));
    all
}
