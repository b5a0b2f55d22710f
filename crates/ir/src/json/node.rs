//! JSON values that know where they stand.
//!
//! A [`Node`] is a slice of the document, so its address is its position; the path of a value is only worked
//! out when an error needs it. The document is checked to be JSON once, as a whole, before any node is made.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::error::{JsonError, JsonErrorKind};
use crate::program::Pos;

/// A document: its text, its name, and where its lines start.
pub(super) struct Doc<'a> {
    text: &'a str,
    pub(super) file: Arc<str>,
    lines: Vec<usize>,
}

impl<'a> Doc<'a> {
    pub(super) fn new(text: &'a str, file: &str) -> Self {
        let starts = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        Doc { text, file: Arc::from(file), lines: std::iter::once(0).chain(starts).collect() }
    }

    /// The whole document as one value, or the syntax error.
    pub(super) fn root<'d>(&'d self) -> Result<Node<'d>, JsonError> {
        match serde_json::from_str::<&RawValue>(self.text) {
            Ok(raw) => Ok(Node { raw: raw.get(), doc: self }),
            Err(e) => Err(self.syntax_error(&e)),
        }
    }

    fn syntax_error(&self, e: &serde_json::Error) -> JsonError {
        let full = e.to_string();
        // The library appends its own position, which this error carries in its own fields.
        let what = full.rsplit_once(" at line ").map_or(full.as_str(), |(w, _)| w);
        JsonError {
            kind: JsonErrorKind::Syntax,
            file: self.file.to_string(),
            path: String::new(),
            line: u32::try_from(e.line()).unwrap_or(u32::MAX).max(1),
            column: u32::try_from(e.column()).unwrap_or(u32::MAX).max(1),
            text: format!("not valid JSON: {what}"),
            remedy: "correct the text at this place".to_owned(),
        }
    }

    /// Line and column, from 1, of a byte offset.
    fn line_column(&self, offset: usize) -> (u32, u32) {
        let line = self.lines.partition_point(|start| *start <= offset).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or(0);
        let column = self.text.get(start..offset).map_or(0, |s| s.chars().count()) + 1;
        (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
    }

    fn offset_of(&self, part: &str) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize)
    }

    /// Path of the value or key that starts at `offset`.
    fn path_to(&self, offset: usize) -> String {
        let mut path = String::new();
        let Ok(mut here) = self.root() else { return path };
        loop {
            let within = |n: &Node<'_>| {
                let start = self.offset_of(n.raw);
                (start..start + n.raw.len()).contains(&offset)
            };
            // Only containers are descended into, so nothing here can ask for a path again.
            let next = if here.is(b'{') {
                let found =
                    here.entries().ok().and_then(|e| e.into_iter().find(|(k, v)| within(k) || within(v)));
                found.map(|(k, v)| {
                    push_key(&mut path, &k.text_lossy());
                    within(&v).then_some(v)
                })
            } else if here.is(b'[') {
                let items = here.array().unwrap_or_default();
                let found = items.into_iter().enumerate().find(|(_, v)| within(v));
                found.map(|(i, v)| {
                    path.push_str(&format!("[{i}]"));
                    Some(v)
                })
            } else {
                None
            };
            match next {
                Some(Some(v)) if self.offset_of(v.raw) != offset => here = v,
                _ => return path,
            }
        }
    }
}

fn push_key(path: &mut String, key: &str) {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key);
    } else {
        path.push('[');
        path.push_str(&quote(key));
        path.push(']');
    }
}

/// `text` as a JSON string.
pub(super) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// One value of a document.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    raw: &'a str,
    doc: &'a Doc<'a>,
}

/// Keys and values of an object, in order.
struct Pairs<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Pairs<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<'de>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(entry) = map.next_entry::<&'de RawValue, &'de RawValue>()? {
                    pairs.push(entry);
                }
                Ok(Pairs(pairs))
            }
        }
        d.deserialize_map(V)
    }
}

impl<'a> Node<'a> {
    fn child(&self, raw: &'a RawValue) -> Node<'a> {
        Node { raw: raw.get(), doc: self.doc }
    }

    /// Where the value stands.
    pub(super) fn pos(&self) -> Pos {
        let (line, column) = self.doc.line_column(self.doc.offset_of(self.raw));
        Pos { file: Arc::clone(&self.doc.file), line, column }
    }

    /// An error at this value.
    pub(super) fn error(
        &self,
        kind: JsonErrorKind,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) -> JsonError {
        let offset = self.doc.offset_of(self.raw);
        let (line, column) = self.doc.line_column(offset);
        JsonError {
            kind,
            file: self.doc.file.to_string(),
            path: self.doc.path_to(offset),
            line,
            column,
            text: text.into(),
            remedy: remedy.into(),
        }
    }

    /// The value in words, shortened, for messages.
    pub(super) fn describe(&self) -> String {
        match self.raw.bytes().next() {
            Some(b'{') => "an object".to_owned(),
            Some(b'[') => "a list".to_owned(),
            Some(b'"') => format!("the string {}", shorten(self.raw)),
            Some(b't' | b'f' | b'n') => self.raw.to_owned(),
            _ => format!("the number {}", shorten(self.raw)),
        }
    }

    fn wrong_type(&self, wanted: &str) -> JsonError {
        self.error(
            JsonErrorKind::Type,
            format!("expected {wanted}, found {}", self.describe()),
            format!("write {wanted} here"),
        )
    }

    fn is(&self, first: u8) -> bool {
        self.raw.bytes().next() == Some(first)
    }

    pub(super) fn is_string(&self) -> bool {
        self.is(b'"')
    }

    fn is_number(&self) -> bool {
        self.raw.bytes().next().is_some_and(|b| b == b'-' || b.is_ascii_digit())
    }

    /// A string with escapes resolved; the raw text if they do not resolve.
    fn text_lossy(&self) -> String {
        serde_json::from_str::<String>(self.raw).unwrap_or_else(|_| self.raw.to_owned())
    }

    fn entries(&self) -> Result<Vec<(Node<'a>, Node<'a>)>, JsonError> {
        if !self.is(b'{') {
            return Err(self.wrong_type("an object"));
        }
        match serde_json::from_str::<Pairs<'a>>(self.raw) {
            Ok(pairs) => Ok(pairs.0.into_iter().map(|(k, v)| (self.child(k), self.child(v))).collect()),
            Err(e) => Err(self.doc.syntax_error(&e)),
        }
    }

    /// The members of an object; a key given twice is an error.
    pub(super) fn object(&self) -> Result<Obj<'a>, JsonError> {
        let mut entries: Vec<Entry<'a>> = Vec::new();
        for (key_node, value) in self.entries()? {
            let key = key_node.string("a key")?;
            if entries.iter().any(|e| e.key == key) {
                return Err(key_node.error(
                    JsonErrorKind::DuplicateKey,
                    format!("key {} is given twice", quote(&key)),
                    "keep one of them",
                ));
            }
            entries.push(Entry { key, key_node, value, used: false });
        }
        Ok(Obj { node: *self, entries, known: Vec::new() })
    }

    /// The items of a list.
    pub(super) fn array(&self) -> Result<Vec<Node<'a>>, JsonError> {
        if !self.is(b'[') {
            return Err(self.wrong_type("a list"));
        }
        match serde_json::from_str::<Vec<&'a RawValue>>(self.raw) {
            Ok(items) => Ok(items.into_iter().map(|v| self.child(v)).collect()),
            Err(e) => Err(self.doc.syntax_error(&e)),
        }
    }

    /// A string; `what` says what it should be, for messages.
    pub(super) fn string(&self, what: &str) -> Result<Cow<'a, str>, JsonError> {
        if !self.is_string() {
            return Err(self.wrong_type(&format!("{what} (a string)")));
        }
        let inner = self.raw.get(1..self.raw.len().saturating_sub(1)).unwrap_or("");
        if !inner.contains('\\') {
            return Ok(Cow::Borrowed(inner));
        }
        serde_json::from_str::<String>(self.raw).map(Cow::Owned).map_err(|_| {
            self.error(
                JsonErrorKind::Type,
                format!("{} has an escape that stands for no character", self.describe()),
                "use escapes that form valid Unicode",
            )
        })
    }

    pub(super) fn bool(&self) -> Result<bool, JsonError> {
        match self.raw {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.wrong_type("true or false")),
        }
    }

    /// An integer in `lo..=hi`; `what` names the quantity, for messages.
    pub(super) fn int(&self, what: &str, lo: i64, hi: i64) -> Result<i64, JsonError> {
        if !self.is_number() || self.raw.contains(['.', 'e', 'E']) {
            return Err(self.wrong_type("an integer"));
        }
        match self.raw.parse::<i64>() {
            Ok(v) if (lo..=hi).contains(&v) => Ok(v),
            _ => Err(self.error(
                JsonErrorKind::Range,
                format!("{what} {} is outside {lo}..={hi}", shorten(self.raw)),
                format!("give an integer from {lo} to {hi}"),
            )),
        }
    }

    /// An integer in `lo..=hi` that fits 32 bits.
    pub(super) fn u32(&self, what: &str, lo: u32, hi: u32) -> Result<u32, JsonError> {
        let v = self.int(what, i64::from(lo), i64::from(hi))?;
        Ok(u32::try_from(v).unwrap_or(hi))
    }

    /// An integer in 0..=255.
    pub(super) fn byte(&self, what: &str) -> Result<u8, JsonError> {
        let v = self.int(what, 0, 255)?;
        Ok(u8::try_from(v).unwrap_or(u8::MAX))
    }

    /// Whether the number is written as an integer.
    pub(super) fn is_integer(&self) -> bool {
        self.is_number() && !self.raw.contains(['.', 'e', 'E'])
    }

    /// A float32, rounded once from the decimal text; `"inf"`, `"-inf"` and `"nan"` stand for themselves.
    pub(super) fn float(&self, what: &str) -> Result<f32, JsonError> {
        match self.raw {
            "\"inf\"" => return Ok(f32::INFINITY),
            "\"-inf\"" => return Ok(f32::NEG_INFINITY),
            "\"nan\"" => return Ok(f32::NAN),
            _ => {}
        }
        if !self.is_number() {
            return Err(self.wrong_type("a number, \"inf\", \"-inf\" or \"nan\""));
        }
        match self.raw.parse::<f32>() {
            Ok(v) if v.is_finite() => Ok(v),
            _ => Err(self.error(
                JsonErrorKind::Range,
                format!("{what} {} is larger than any float32", shorten(self.raw)),
                "give a finite float32, or the string \"inf\" or \"-inf\"",
            )),
        }
    }

    /// A word that `find` knows; otherwise an error that lists `known`.
    pub(super) fn word<T>(
        &self,
        what: &str,
        find: impl Fn(&str) -> Option<T>,
        known: &[&str],
    ) -> Result<T, JsonError> {
        let word = self.string(what)?;
        find(&word).ok_or_else(|| {
            self.error(
                JsonErrorKind::UnknownName,
                format!("{} is no {what}", shorten(&quote(&word))),
                suggestion(&word, known),
            )
        })
    }
}

/// One member of an object.
struct Entry<'a> {
    key: Cow<'a, str>,
    key_node: Node<'a>,
    value: Node<'a>,
    used: bool,
}

/// An object being read: members are taken by key, and what is left over at the end is unknown.
pub(super) struct Obj<'a> {
    pub(super) node: Node<'a>,
    entries: Vec<Entry<'a>>,
    known: Vec<&'static str>,
}

impl<'a> Obj<'a> {
    /// The member of that key, if present.
    pub(super) fn take(&mut self, key: &'static str) -> Option<Node<'a>> {
        self.known.push(key);
        let entry = self.entries.iter_mut().find(|e| e.key == key)?;
        entry.used = true;
        Some(entry.value)
    }

    /// The member of that key, which must be present.
    pub(super) fn need(&mut self, key: &'static str) -> Result<Node<'a>, JsonError> {
        if let Some(node) = self.take(key) {
            return Ok(node);
        }
        let near = self.entries.iter().find(|e| !e.used && distance(&e.key, key) <= 2);
        let remedy = match near {
            Some(e) => format!("rename {} to \"{key}\"", quote(&e.key)),
            None => format!("add \"{key}\" to this object"),
        };
        Err(self.node.error(JsonErrorKind::MissingKey, format!("key \"{key}\" is missing"), remedy))
    }

    /// A `true`/`false` member, `false` when absent.
    pub(super) fn flag(&mut self, key: &'static str) -> Result<bool, JsonError> {
        self.take(key).map_or(Ok(false), |n| n.bool())
    }

    /// Ends the reading: a member nobody took is an error.
    pub(super) fn finish(self) -> Result<(), JsonError> {
        match self.entries.iter().find(|e| !e.used) {
            None => Ok(()),
            Some(e) => Err(e.key_node.error(
                JsonErrorKind::UnknownKey,
                format!("unknown key {}", shorten(&quote(&e.key))),
                suggestion(&e.key, &self.known),
            )),
        }
    }
}

/// Shortens a value for a one-line message.
fn shorten(text: &str) -> String {
    const LONGEST: usize = 48;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    text.chars().take(LONGEST).chain("...".chars()).collect()
}

/// "did you mean" when a known word is close, else the list of known words.
fn suggestion(word: &str, known: &[&str]) -> String {
    let near = known.iter().map(|k| (distance(word, k), k)).min();
    match near {
        Some((d, k)) if d <= 2 && d < k.len() => format!("did you mean \"{k}\"?"),
        _ if known.is_empty() => "nothing can stand here".to_owned(),
        _ => format!("known here: {}", known.join(", ")),
    }
}

/// Edit distance, with long words cut off: a message needs no more.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(40).collect(), b.chars().take(40).collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut last = i;
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
        let mut left = i + 1;
        for (cb, cell) in b.iter().zip(row.iter_mut().skip(1)) {
            let best = (last + usize::from(ca != cb)).min(*cell + 1).min(left + 1);
            last = *cell;
            *cell = best;
            left = best;
        }
    }
    row.last().copied().unwrap_or(0)
}
