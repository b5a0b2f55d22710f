//! The JSON view of a file: plain structures as objects, constructors without fields as strings, others as an
//! object of one key; proofs and empty options as null; fields the dialect lacks are left out.

use serde_json::{Map, Number, Value as Json};

use super::value::{Kind, Node, Value};

/// The value as JSON. Numbers that JSON lacks become the strings `NaN`, `Infinity` and `-Infinity`.
pub fn to_json(value: &Value) -> Json {
    match &value.kind {
        Kind::Nat(number) => Json::from(*number),
        Kind::Int(number) => Json::from(*number),
        Kind::Bool(truth) => Json::from(*truth),
        Kind::Float(number) => float(*number),
        Kind::String(text) => Json::from(text.as_str()),
        Kind::Prop | Kind::Absent | Kind::Opt(None) => Json::Null,
        Kind::List(items) => items.iter().map(to_json).collect(),
        Kind::Opt(Some(value)) => to_json(value),
        Kind::Node(node) => self::node(node),
    }
}

fn float(number: f64) -> Json {
    match Number::from_f64(number) {
        Some(number) => Json::Number(number),
        None if number.is_nan() => Json::from("NaN"),
        None if number > 0.0 => Json::from("Infinity"),
        None => Json::from("-Infinity"),
    }
}

fn node(node: &Node) -> Json {
    let is_struct = node.ty.is_struct();
    if !is_struct && node.fields.is_empty() {
        return Json::from(node.ctor.name);
    }
    let present = node.ctor.fields.iter().zip(&node.fields).filter(|(_, v)| !matches!(v.kind, Kind::Absent));
    let fields: Map<String, Json> = present.map(|(f, v)| (f.name.to_owned(), to_json(v))).collect();
    if is_struct {
        Json::Object(fields)
    } else {
        Json::Object(Map::from_iter([(node.ctor.name.to_owned(), Json::Object(fields))]))
    }
}
