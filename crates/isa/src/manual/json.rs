//! The manual as JSON: `{"sections": [{"id", "title", "notes", "rows": [{column: value}]}]}`.

use super::model::{Cell, Section};

pub(super) fn render(sections: &[Section]) -> String {
    let mut out = String::from("{\"sections\": [");
    for (at, section) in sections.iter().enumerate() {
        out.push_str(if at > 0 { ",\n" } else { "\n" });
        out.push_str("{\"id\": ");
        push_string(&mut out, &section.id);
        out.push_str(", \"title\": ");
        push_string(&mut out, &section.title);
        out.push_str(", \"notes\": [");
        for (at, note) in section.notes.iter().enumerate() {
            if at > 0 {
                out.push_str(", ");
            }
            push_string(&mut out, note);
        }
        out.push_str("], \"rows\": [");
        for (at, row) in section.table.rows.iter().enumerate() {
            out.push_str(if at > 0 { ",\n  {" } else { "\n  {" });
            for (at, (column, cell)) in section.table.columns.iter().zip(row).enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                push_string(&mut out, column);
                out.push_str(": ");
                push_cell(&mut out, cell);
            }
            out.push('}');
        }
        out.push_str("]}");
    }
    out.push_str("\n]}\n");
    out
}

fn push_cell(out: &mut String, cell: &Cell) {
    match cell {
        Cell::Null => out.push_str("null"),
        Cell::Number(n) | Cell::Hex(n, _) => out.push_str(&n.to_string()),
        Cell::Text(text) => push_string(out, text),
        Cell::List(list) => {
            let items: Vec<String> = list.iter().map(u64::to_string).collect();
            out.push_str(&format!("[{}]", items.join(", ")));
        }
    }
}

fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if u32::from(c) < 0x20 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}
