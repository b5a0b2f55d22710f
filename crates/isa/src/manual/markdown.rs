//! The manual as Markdown.

use super::model::{Cell, Section};

pub(super) fn render(sections: &[Section]) -> String {
    let mut out = String::from("# Instruction bundles of the tensor engine\n");
    for section in sections {
        out.push_str(&format!("\n## {}\n\n", section.title));
        for note in &section.notes {
            out.push_str(note);
            out.push_str("\n\n");
        }
        let table = &section.table;
        out.push_str(&format!("| {} |\n", table.columns.join(" | ")));
        out.push_str(&format!("|{}\n", "---|".repeat(table.columns.len())));
        for row in &table.rows {
            let cells: Vec<String> = row.iter().map(|c| escape(&Cell::shown(c))).collect();
            out.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
    }
    out
}

fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('>', "&gt;")
}
