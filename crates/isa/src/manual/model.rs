//! A manual before it is written: sections with a table of typed cells.

/// One cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    /// Nothing: empty in text, `null` in JSON.
    Null,
    /// A decimal number.
    Number(u64),
    /// A number shown in hex with this many digits; a number in JSON.
    Hex(u64, usize),
    /// Words.
    Text(String),
    /// A list of numbers.
    List(Vec<u64>),
}

impl Cell {
    pub(super) fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    /// Words, or nothing.
    pub(super) fn name(name: Option<&str>) -> Cell {
        name.map_or(Cell::Null, Cell::text)
    }

    /// The cell as words.
    pub(super) fn shown(&self) -> String {
        match self {
            Cell::Null => "-".to_owned(),
            Cell::Number(n) => n.to_string(),
            Cell::Hex(n, digits) => format!("{n:0digits$X}"),
            Cell::Text(text) => text.clone(),
            Cell::List(list) => list.iter().map(u64::to_string).collect::<Vec<_>>().join(" "),
        }
    }
}

/// A table: column names, and rows of as many cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) columns: &'static [&'static str],
    pub(super) rows: Vec<Vec<Cell>>,
}

/// One section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// The name it is asked for by.
    pub(super) id: String,
    pub(super) title: String,
    pub(super) notes: Vec<String>,
    pub(super) table: Table,
}

impl Section {
    pub(super) fn new(id: &str, title: &str, notes: &[&str], table: Table) -> Section {
        Section {
            id: id.to_owned(),
            title: title.to_owned(),
            notes: notes.iter().map(|&n| n.to_owned()).collect(),
            table,
        }
    }
}
