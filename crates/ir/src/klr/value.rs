//! The tree of values of a file, as the schema gives it, each with the byte offset it was read at.

use super::schema::{Ctor, TypeDef};

/// One value.
#[derive(Debug, Clone)]
pub struct Value {
    /// Byte offset of its first byte; where it would stand if it takes no bytes.
    pub offset: usize,
    /// Content.
    pub kind: Kind,
}

/// Content of a value.
#[derive(Debug, Clone)]
pub enum Kind {
    /// Unsigned integer.
    Nat(u64),
    /// Signed integer.
    Int(i64),
    /// Truth value.
    Bool(bool),
    /// Floating-point number.
    Float(f64),
    /// Text.
    String(String),
    /// A proof.
    Prop,
    /// A field that the file's dialect does not have.
    Absent,
    /// List.
    List(Vec<Value>),
    /// Optional value.
    Opt(Option<Box<Value>>),
    /// Tagged value.
    Node(Node),
}

/// A constructor applied to its fields.
#[derive(Debug, Clone)]
pub struct Node {
    /// Type.
    pub ty: &'static TypeDef,
    /// Constructor, one of the type's.
    pub ctor: &'static Ctor,
    /// One value a field of the constructor, in the same order.
    pub fields: Vec<Value>,
}

impl Node {
    /// The value of the field called `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let index = self.ctor.fields.iter().position(|field| field.name == name)?;
        self.fields.get(index)
    }
}

impl Value {
    /// The tagged value, if it is one.
    pub fn node(&self) -> Option<&Node> {
        match &self.kind {
            Kind::Node(node) => Some(node),
            _ => None,
        }
    }
}
