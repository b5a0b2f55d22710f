//! The manual as aligned columns.

use super::model::{Section, Table};

pub(super) fn render(sections: &[Section]) -> String {
    let mut out = String::new();
    for (at, section) in sections.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        out.push_str(&section.title);
        out.push('\n');
        for note in &section.notes {
            out.push_str("  ");
            out.push_str(note);
            out.push('\n');
        }
        push_table(&mut out, &section.table);
    }
    out
}

fn push_table(out: &mut String, table: &Table) {
    let header: Vec<String> = table.columns.iter().map(|&c| c.to_owned()).collect();
    let mut lines = vec![header];
    lines.extend(table.rows.iter().map(|row| row.iter().map(super::model::Cell::shown).collect()));
    // A column that no row fills is left out.
    let filled = |column: usize| {
        table.rows.iter().any(|row| row.get(column).is_some_and(|c| *c != super::model::Cell::Null))
    };
    let columns: Vec<usize> = (0..table.columns.len()).filter(|&c| filled(c)).collect();
    let width =
        |c: usize| lines.iter().filter_map(|line| line.get(c)).map(|t| t.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = columns.iter().map(|&c| width(c)).collect();
    for line in &lines {
        let mut text = String::from(" ");
        for (&column, &width) in columns.iter().zip(&widths) {
            let cell = line.get(column).map_or("", String::as_str);
            text.push_str(&format!(" {cell:width$} "));
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
}
