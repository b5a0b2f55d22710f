//! The reader: from bytes to a [`Value`] tree, driven by the [`schema`].
//!
//! A file is three tagged values in a row: header, metadata, contents. It is nearly CBOR, but proof fields are
//! counted without taking bytes, so that a generic CBOR reader loses its place. One writer puts a byte 80 in
//! their stead; which of the two a file is shows at its first `TensorName`, where the truth value after
//! `freeElements` comes with or without such a byte before it.

use super::cursor::{At, Cursor, Head, TAG, describe};
use super::error::{KlrError, Place};
use super::schema::{self, Ctor, Ty, TypeDef};
use super::value::{Kind, Node, Value};

/// Values may nest this deep. Kernels of the compiler need about 20.
pub const MAX_DEPTH: usize = 64;

const HEADER: [u8; 4] = [0xd9, 0xd9, 0xf7, 0x83];
const PLACEHOLDER: u8 = 0x80;
const OPTION: u8 = 0xff;

/// Which of the accepted dialects a file is in. `None`: the file holds nothing that would show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dialect {
    /// Proof fields take a byte each.
    pub placeholder_props: Option<bool>,
    /// Blocks say whether they may be reordered.
    pub block_no_reorder: Option<bool>,
    /// DMA copies name a priority.
    pub dma_priority: Option<bool>,
    /// DMA copies name an engine.
    pub dma_engine: Option<bool>,
}

/// A file as read, before the typed view.
#[derive(Debug, Clone)]
pub struct Raw {
    /// Version numbers of the header: major, minor, patch. They are the same in all known dialects.
    pub version: [u64; 3],
    /// Format name of the metadata.
    pub metadata: String,
    /// Dialect.
    pub dialect: Dialect,
    /// The contents: a node of type `Contents`, constructor `kernel` or `lnc`.
    pub contents: Value,
}

/// Reads a whole file.
///
/// # Errors
/// The first thing that no accepted dialect has, with its byte offset.
pub fn read(bytes: &[u8]) -> Result<Raw, KlrError> {
    if !bytes.starts_with(&HEADER) {
        return Err(not_klr(bytes));
    }
    let mut reader = Reader { cursor: Cursor::new(bytes), dialect: Dialect::default(), depth: 0 };
    let header = reader.tagged(&schema::KLRFile, At { within: "KLRFile", field: "" })?;
    let metadata = reader.tagged(&schema::KLRMetaData, At { within: "KLRMetaData", field: "" })?;
    reader.check_contents()?;
    let contents = reader.tagged(&schema::Contents, At { within: "Contents", field: "" })?;
    let count = reader.cursor.rest().len();
    if count != 0 {
        return Err(KlrError::Trailing { offset: reader.cursor.offset(), count });
    }
    let number = |index: usize| match header.node().and_then(|node| node.fields.get(index)) {
        Some(Value { kind: Kind::Nat(number), .. }) => *number,
        _ => 0,
    };
    let metadata = match metadata.node().and_then(|node| node.get("format")) {
        Some(Value { kind: Kind::String(format), .. }) => format.clone(),
        _ => String::new(),
    };
    let version = [number(0), number(1), number(2)];
    Ok(Raw { version, metadata, dialect: reader.dialect, contents })
}

/// Whether `bytes` begin like a KLR file.
pub fn is_klr(bytes: &[u8]) -> bool {
    bytes.starts_with(&HEADER)
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    dialect: Dialect,
    depth: usize,
}

impl Reader<'_> {
    /// Refuses contents that hold no operators before anything in them is looked at: they use other types.
    fn check_contents(&self) -> Result<(), KlrError> {
        let mut ahead = self.cursor.clone();
        let offset = ahead.offset();
        let at = At { within: "Contents", field: "" };
        let head = ahead.head("a tagged value Contents", at)?;
        if head.tag != schema::Contents.tag {
            return Ok(());
        }
        let number = head.ctor;
        let kind = match number {
            0 => "a Python syntax tree",
            1 => "an NKI syntax tree",
            // The number of today's kernels once stood for call sites, whose payload is another type.
            2 => match ahead.rest() {
                [0xd9, tag, ..] if *tag == schema::Kernel.tag => return Ok(()),
                [0xd9] | [] => return Ok(()),
                _ => "an HLO call site of an earlier dialect",
            },
            3 => return Ok(()),
            4 => "an HLO call site",
            _ => "unknown",
        };
        Err(KlrError::Contents { offset, number, kind })
    }

    fn enter(&mut self, at: At) -> Result<(), KlrError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(KlrError::Depth { place: self.cursor.here(at), limit: MAX_DEPTH });
        }
        Ok(())
    }

    fn value(&mut self, ty: Ty, at: At) -> Result<Value, KlrError> {
        let offset = self.cursor.offset();
        let kind = match ty {
            Ty::Nat => Kind::Nat(self.cursor.nat(at)?),
            Ty::Int => Kind::Int(self.cursor.int(at)?),
            Ty::Bool => Kind::Bool(self.cursor.boolean(at)?),
            Ty::Float => Kind::Float(self.cursor.float(at)?),
            Ty::String => Kind::String(self.cursor.text(at)?.to_owned()),
            Ty::Prop => self.proof(at)?,
            Ty::List(item) => self.list(*item, at)?,
            Ty::Opt(item) => self.option(*item, at)?,
            Ty::Ref(ty) => return self.tagged(ty, at),
        };
        Ok(Value { offset, kind })
    }

    fn proof(&mut self, at: At) -> Result<Kind, KlrError> {
        let place = self.cursor.here(at);
        let found = self.cursor.peek();
        let placeholder = *self.dialect.placeholder_props.get_or_insert(found == Some(PLACEHOLDER));
        if placeholder {
            let byte = self.cursor.byte(at)?;
            if byte != PLACEHOLDER {
                let expected = "the byte 80 that stands for a proof";
                return Err(KlrError::Item { place, found: describe(byte), expected });
            }
        }
        Ok(Kind::Prop)
    }

    fn list(&mut self, item: Ty, at: At) -> Result<Kind, KlrError> {
        let count = self.cursor.list(at)?;
        self.enter(at)?;
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(self.value(item, at)?);
        }
        self.depth -= 1;
        Ok(Kind::List(items))
    }

    fn option(&mut self, item: Ty, at: At) -> Result<Kind, KlrError> {
        let place = self.cursor.here(at);
        let head = self.cursor.head("an option (d9 ff)", at)?;
        match head {
            Head { tag: OPTION, ctor: 0, count: 0 } => Ok(Kind::Opt(None)),
            Head { tag: OPTION, ctor: 1, count: 1 } => {
                self.enter(at)?;
                let value = self.value(item, at)?;
                self.depth -= 1;
                Ok(Kind::Opt(Some(Box::new(value))))
            }
            _ => Err(dialect(place, head, "an option (d9 ff 00 80 or d9 ff 01 81)".to_owned())),
        }
    }

    fn tagged(&mut self, ty: &'static TypeDef, at: At) -> Result<Value, KlrError> {
        let place = self.cursor.here(at);
        let offset = place.offset;
        let head = self.cursor.head("a tagged value", at)?;
        if head.tag != ty.tag {
            return Err(dialect(place, head, format!("{} (tag {})", ty.name, ty.tag)));
        }
        let Some(ctor) = ty.ctor(head.ctor) else {
            let last = usize::from(ty.first) + ty.ctors.len() - 1;
            let expected = format!("{} (tag {}) with constructor {} to {last}", ty.name, ty.tag, ty.first);
            return Err(dialect(place, head, expected));
        };
        self.enter(at)?;
        let fields = self.fields(ty, ctor, head, place)?;
        self.depth -= 1;
        Ok(Value { offset, kind: Kind::Node(Node { ty, ctor, fields }) })
    }

    fn fields(
        &mut self,
        ty: &'static TypeDef,
        ctor: &'static Ctor,
        head: Head,
        place: Place,
    ) -> Result<Vec<Value>, KlrError> {
        let (count, full) = (usize::from(head.count), ctor.fields.len());
        let optional = ty.optional_fields();
        let mut one_less = count + 1 == full && !optional.is_empty();
        if count != full && !one_less {
            let name = if ty.is_struct() { ty.name.to_owned() } else { format!("{}.{}", ty.name, ctor.name) };
            let counts =
                if optional.is_empty() { full.to_string() } else { format!("{} or {full}", full - 1) };
            return Err(dialect(place, head, format!("{name} with {counts} fields")));
        }
        let mut fields = Vec::with_capacity(full);
        for field in ctor.fields {
            let at = At { within: ty.name, field: field.name };
            // Of several fields that may be the missing one, it is the first that is not there, or the last.
            let lacking = one_less
                && optional.contains(&field.name)
                && (optional.last() == Some(&field.name) || !self.could_be(field.ty));
            if optional.contains(&field.name) {
                self.note_optional(field.name, !lacking);
            }
            fields.push(if lacking {
                one_less = false;
                Value { offset: self.cursor.offset(), kind: Kind::Absent }
            } else {
                self.value(field.ty, at)?
            });
        }
        Ok(fields)
    }

    /// Whether the next bytes begin like a value of a tagged type.
    fn could_be(&self, ty: Ty) -> bool {
        let tag = match ty {
            Ty::Opt(_) => OPTION,
            Ty::Ref(ty) => ty.tag,
            _ => return true,
        };
        self.cursor.rest().starts_with(&[TAG, tag])
    }

    fn note_optional(&mut self, field: &str, present: bool) {
        let seen = match field {
            "noReorder" => &mut self.dialect.block_no_reorder,
            "priority" => &mut self.dialect.dma_priority,
            _ => &mut self.dialect.dma_engine,
        };
        seen.get_or_insert(present);
    }
}

fn dialect(place: Place, head: Head, expected: String) -> KlrError {
    let Head { tag, ctor, count } = head;
    let known = schema::TYPES.iter().find(|ty| ty.tag == tag).map_or("unknown", |ty| ty.name);
    let old = tag == schema::TensorName.tag && matches!(count, 5 | 7);
    let note = if old { " (a kernel of July 2025)" } else { "" };
    let found = format!("tag {tag} ({known}) constructor {ctor} with {count} fields{note}");
    KlrError::Dialect { place, found, expected }
}

/// Says what a file without the header is. Some tools write text under the same file extension.
fn not_klr(bytes: &[u8]) -> KlrError {
    const COMPILE: &str = "write the kernel in the binary form (contents 2 or 3)";
    let head = bytes.get(..4096).unwrap_or(bytes);
    let text = match std::str::from_utf8(head) {
        Ok(text) => Some(text),
        // A character cut in two by the end of the excerpt is no reason to call it binary.
        Err(error) if error.error_len().is_none() => {
            head.get(..error.valid_up_to()).and_then(|head| std::str::from_utf8(head).ok())
        }
        Err(_) => None,
    };
    let text = text.filter(|text| !text.chars().any(|c| c.is_control() && !c.is_whitespace()));
    let (found, hint) = match text {
        _ if bytes.is_empty() => ("the file is empty".to_owned(), COMPILE),
        _ if HEADER.starts_with(bytes) => (format!("only {} bytes", bytes.len()), COMPILE),
        Some(text) if text.trim_start().starts_with(['{', '[']) && text.contains(":=") => {
            ("the printed form of a kernel (text)".to_owned(), COMPILE)
        }
        Some(text) if text.trim_start().starts_with(['{', '[']) => ("JSON text".to_owned(), COMPILE),
        Some(_) => ("text".to_owned(), COMPILE),
        None => {
            let first: Vec<String> = bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
            (format!("the first bytes are {}", first.join(" ")), "check the file's kind")
        }
    };
    KlrError::NotKlr { found, hint }
}
