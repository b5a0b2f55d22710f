//! `hadal isa`: the manual.

use clap::{Args, ValueEnum};
use hadal::ir::verify::rules::RULES;
use hadal::isa::Target;
use hadal::isa::manual::{self, Format, ManualError};
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::term::Term;

/// The decisions, as the documentation has them.
const DECISIONS: &str = include_str!("../../../../docs/decisions.md");

/// The manual: bundles, fields, codes, types, verifier rules, decisions.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hadal isa                          the whole manual
  hadal isa Matmul --target trn2     one bundle on one target
  hadal isa verifier                 every rule of the verifier (also: rules)
  hadal isa V-439                    one rule
  hadal isa D-18                     one decision
  hadal isa --format md > isa.md")]
pub(crate) struct IsaArgs {
    /// A section (a bundle, a table, `rules`, `decisions`), an opcode such as 0x02, a rule or a decision.
    name: Option<String>,
    /// One target; all by default.
    #[arg(short, long, value_name = "T")]
    target: Option<Target>,
    /// How to write it [default: text, or json with --json].
    #[arg(long, value_enum, value_name = "FORM")]
    format: Option<FormatName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatName {
    Text,
    Md,
    Json,
}

/// A table of the manual that the instruction set itself does not hold.
struct Chapter {
    id: &'static str,
    title: &'static str,
    columns: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

fn rules() -> Chapter {
    let row = |r: &hadal::ir::verify::rules::Rule| {
        vec![
            r.code.to_owned(),
            r.title.to_owned(),
            r.remedy.to_owned(),
            r.confidence.name().to_owned(),
            r.source.to_owned(),
        ]
    };
    Chapter {
        id: "rules",
        title: "What the verifier checks",
        columns: &["code", "rule", "remedy", "confidence", "source"],
        rows: RULES.iter().map(row).collect(),
    }
}

fn decisions() -> Chapter {
    let cells = |line: &str| -> Option<Vec<String>> {
        let inner = line.strip_prefix("| D-").map(|_| line.trim().trim_matches('|'))?;
        Some(inner.split(" | ").map(|c| c.trim().to_owned()).collect())
    };
    let mut rows: Vec<Vec<String>> = DECISIONS.lines().filter_map(cells).collect();
    rows.sort();
    Chapter {
        id: "decisions",
        title: "Where the evidence is silent or split, and what is chosen",
        columns: &["id", "question", "choice", "reason"],
        rows,
    }
}

/// Runs the command.
pub(crate) fn run(args: &IsaArgs, term: Term) -> Result<(), Failure> {
    let format = match args.format {
        Some(f) => f,
        None if term.json => FormatName::Json,
        None => FormatName::Text,
    };
    let chapters = [rules(), decisions()];
    let Some(name) = args.name.as_deref() else {
        let mut text = manual(None, args.target, format)?;
        match format {
            FormatName::Json => return term.out(&merged(&text, &chapters)),
            _ => chapters.iter().for_each(|c| text.push_str(&format!("\n{}", render(c, format)))),
        }
        return term.out(&text);
    };
    for mut chapter in chapters {
        // The verifier's rules go by both names.
        let alias = chapter.id == "rules" && name.eq_ignore_ascii_case("verifier");
        if alias || name.eq_ignore_ascii_case(chapter.id) {
            return term.out(&render(&chapter, format));
        }
        chapter.rows.retain(|r| r.first().is_some_and(|code| code.eq_ignore_ascii_case(name)));
        if !chapter.rows.is_empty() {
            return term.out(&render(&chapter, format));
        }
    }
    term.out(&manual(Some(name), args.target, format)?)
}

fn manual(name: Option<&str>, target: Option<Target>, format: FormatName) -> Result<String, Failure> {
    let format = match format {
        FormatName::Text => Format::Text,
        FormatName::Md => Format::Markdown,
        FormatName::Json => Format::Json,
    };
    manual::render(name, target, format).map_err(|e| match e {
        ManualError::Section { name, known } => Failure::usage(
            format!("the manual has no section {name:?}"),
            format!("sections: {known}, rules, decisions"),
        ),
        other => Failure::usage(other.to_string(), "use text, md or json"),
    })
}

fn render(chapter: &Chapter, format: FormatName) -> String {
    match format {
        FormatName::Text => text(chapter),
        FormatName::Md => markdown(chapter),
        FormatName::Json => format!("{:#}\n", json!({"sections": [as_json(chapter)]})),
    }
}

/// One entry a paragraph: the columns are too long to stand beside each other.
fn text(chapter: &Chapter) -> String {
    let mut out = format!("{}\n\n", chapter.title);
    for row in &chapter.rows {
        let mut cells = row.iter();
        if let (Some(code), Some(head)) = (cells.next(), cells.next()) {
            out.push_str(&format!("{code}  {head}\n"));
        }
        for (column, cell) in chapter.columns.iter().skip(2).zip(cells) {
            out.push_str(&format!("       {column}: {cell}\n"));
        }
    }
    out
}

fn markdown(chapter: &Chapter) -> String {
    let line = |cells: &[String]| {
        format!("| {} |\n", cells.iter().map(|c| c.replace('|', "\\|")).collect::<Vec<_>>().join(" | "))
    };
    let columns: Vec<String> = chapter.columns.iter().map(|c| (*c).to_owned()).collect();
    let rule: Vec<String> = columns.iter().map(|_| "---".to_owned()).collect();
    let rows: String = chapter.rows.iter().map(|r| line(r)).collect();
    format!("## {}\n\n{}{}{rows}", chapter.title, line(&columns), line(&rule))
}

fn as_json(chapter: &Chapter) -> Value {
    let rows: Vec<Value> = chapter
        .rows
        .iter()
        .map(|r| {
            let members = chapter.columns.iter().zip(r);
            Value::Object(
                members.map(|(c, v)| ((*c).to_owned(), Value::from(v.as_str()))).collect::<Map<_, _>>(),
            )
        })
        .collect();
    json!({"id": chapter.id, "title": chapter.title, "notes": [], "rows": rows})
}

/// The manual's JSON with the chapters among its sections.
fn merged(manual: &str, chapters: &[Chapter]) -> String {
    let mut value: Value = serde_json::from_str(manual).unwrap_or_else(|_| json!({"sections": []}));
    if let Some(sections) = value.get_mut("sections").and_then(Value::as_array_mut) {
        sections.extend(chapters.iter().map(as_json));
    }
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_decision_of_the_documentation_is_a_row() {
        let chapter = decisions();
        let ids: Vec<&str> = chapter.rows.iter().map(|r| r[0].as_str()).collect();
        // They are numbered without a gap, so a row that was not recognised shows.
        assert_eq!(ids, (1..=ids.len()).map(|n| format!("D-{n:02}")).collect::<Vec<_>>());
        assert!(ids.len() >= 50);
        assert!(chapter.rows.iter().all(|r| r.len() == 4));
    }

    #[test]
    fn the_json_manual_holds_every_section() {
        let text = merged(&manual(None, None, FormatName::Json).unwrap(), &[rules(), decisions()]);
        let value: Value = serde_json::from_str(&text).unwrap();
        let ids: Vec<&str> =
            value["sections"].as_array().unwrap().iter().map(|s| s["id"].as_str().unwrap()).collect();
        for wanted in ["Matmul", "QuantizeMx", "rules", "decisions"] {
            assert!(ids.contains(&wanted), "{wanted} in {ids:?}");
        }
    }
}
