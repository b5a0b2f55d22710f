//! From the value tree to typed structures, checked against the schema by name.

use super::error::KlrError;
use super::schema::TypeDef;
use super::value::{Kind, Node, Value};

/// A type that a value can be read as.
pub(crate) trait FromValue: Sized {
    /// # Errors
    /// [`KlrError::Shape`] when the value is of another kind; a tree made by the reader never is.
    fn from_value(value: &Value) -> Result<Self, KlrError>;

    /// What stands for a field that the file's dialect lacks.
    fn absent() -> Option<Self> {
        None
    }
}

fn shape(value: &Value, expected: &'static str) -> KlrError {
    KlrError::Shape { offset: value.offset, expected }
}

/// The node of a value, which must be of type `ty`.
pub(crate) fn node_of<'a>(value: &'a Value, ty: &'static TypeDef) -> Result<&'a Node, KlrError> {
    value.node().filter(|node| std::ptr::eq(node.ty, ty)).ok_or_else(|| shape(value, ty.name))
}

/// Field `name` of `node`, which was read at `offset`.
pub(crate) fn field<T: FromValue>(node: &Node, offset: usize, name: &'static str) -> Result<T, KlrError> {
    let value = node.get(name).ok_or(KlrError::Shape { offset, expected: name })?;
    match value.kind {
        Kind::Absent => T::absent().ok_or_else(|| shape(value, name)),
        _ => T::from_value(value),
    }
}

/// The only field of a wrapping constructor such as `Access.simple`.
pub(crate) fn payload<T: FromValue>(node: &Node, offset: usize) -> Result<T, KlrError> {
    match node.fields.as_slice() {
        [value] => T::from_value(value),
        _ => Err(KlrError::Shape { offset, expected: node.ctor.name }),
    }
}

impl FromValue for u64 {
    fn from_value(value: &Value) -> Result<Self, KlrError> {
        if let Kind::Nat(number) = value.kind { Ok(number) } else { Err(shape(value, "Nat")) }
    }
}

impl FromValue for i64 {
    fn from_value(value: &Value) -> Result<Self, KlrError> {
        if let Kind::Int(number) = value.kind { Ok(number) } else { Err(shape(value, "Int")) }
    }
}

impl FromValue for f64 {
    fn from_value(value: &Value) -> Result<Self, KlrError> {
        if let Kind::Float(number) = value.kind { Ok(number) } else { Err(shape(value, "Float")) }
    }
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Result<Self, KlrError> {
        if let Kind::Bool(truth) = value.kind { Ok(truth) } else { Err(shape(value, "Bool")) }
    }

    fn absent() -> Option<Self> {
        Some(false)
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Result<Self, KlrError> {
        if let Kind::String(text) = &value.kind { Ok(text.clone()) } else { Err(shape(value, "String")) }
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    fn from_value(value: &Value) -> Result<Self, KlrError> {
        let Kind::List(items) = &value.kind else { return Err(shape(value, "List")) };
        items.iter().map(T::from_value).collect()
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Result<Self, KlrError> {
        let Kind::Opt(inner) = &value.kind else { return Err(shape(value, "Option")) };
        inner.as_deref().map(T::from_value).transpose()
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: FromValue> FromValue for Box<T> {
    fn from_value(value: &Value) -> Result<Self, KlrError> {
        T::from_value(value).map(Box::new)
    }
}

/// A structure whose fields carry their names on disk.
macro_rules! record {
    ($(#[$meta:meta])* $name:ident from $ty:ident {
        $($(#[$field_meta:meta])* $field:ident: $field_ty:ty = $wire:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name { $($(#[$field_meta])* pub $field: $field_ty,)* }

        impl FromValue for $name {
            fn from_value(value: &Value) -> Result<Self, KlrError> {
                let node = node_of(value, &schema::$ty)?;
                Ok(Self { $($field: field(node, value.offset, $wire)?,)* })
            }
        }
    };
}

/// An enumeration whose variants carry their names on disk. The first is what an absent field means.
macro_rules! choice {
    ($(#[$meta:meta])* $name:ident from $ty:ident { $first:ident = $first_wire:literal, $($variant:ident = $wire:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            #[doc = concat!("`", $first_wire, "`.")]
            $first,
            $(#[doc = concat!("`", $wire, "`.")] $variant,)*
        }

        impl $name {
            /// Name in the format's own vocabulary.
            pub fn name(self) -> &'static str {
                match self { Self::$first => $first_wire, $(Self::$variant => $wire,)* }
            }
        }

        impl FromValue for $name {
            fn from_value(value: &Value) -> Result<Self, KlrError> {
                match node_of(value, &schema::$ty)?.ctor.name {
                    $first_wire => Ok(Self::$first),
                    $($wire => Ok(Self::$variant),)*
                    _ => Err(KlrError::Shape { offset: value.offset, expected: stringify!($name) }),
                }
            }

            fn absent() -> Option<Self> {
                Some(Self::$first)
            }
        }
    };
}

pub(crate) use {choice, record};
