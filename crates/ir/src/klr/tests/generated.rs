//! Random values of every type, written by a small encoder that walks the schema file, read by the reader.

use arbtest::arbitrary::{Result, Unstructured};
use serde_json::{Map, Value as Json, json};

use super::{bytes, json as load};
use crate::klr::ast::File;
use crate::klr::schema::{TYPES, Ty};
use crate::klr::{KlrTranspose, lower};

/// The format's spelling of a field type.
fn spelling(ty: Ty) -> String {
    match ty {
        Ty::Nat => "Nat".into(),
        Ty::Int => "Int".into(),
        Ty::Bool => "Bool".into(),
        Ty::Float => "Float".into(),
        Ty::String => "String".into(),
        Ty::Prop => "Prop".into(),
        Ty::List(item) => format!("List<{}>", spelling(*item)),
        Ty::Opt(item) => format!("Option<{}>", spelling(*item)),
        Ty::Ref(ty) => ty.name.into(),
    }
}

#[test]
fn the_table_equals_the_schema_file() {
    let schema = load("schema.json");
    let schema = schema.as_object().unwrap();
    assert_eq!((schema.len(), TYPES.len()), (116, 116));
    for ty in TYPES {
        let row = &schema[ty.name];
        assert_eq!(row["tag"], json!(ty.tag), "{}", ty.name);
        let ctors: Vec<Json> = ty
            .ctors
            .iter()
            .enumerate()
            .map(|(index, ctor)| {
                let fields: Vec<Json> =
                    ctor.fields.iter().map(|field| json!([field.name, spelling(field.ty)])).collect();
                json!([ctor.name, index + usize::from(ty.first), fields.len(), fields])
            })
            .collect();
        assert_eq!(row["ctors"], json!(ctors), "{}", ty.name);
    }
}

struct Writer<'s> {
    schema: &'s Json,
    placeholders: bool,
    bytes: Vec<u8>,
}

impl Writer<'_> {
    fn head(&mut self, major: u8, argument: u64, u: &mut Unstructured) -> Result<()> {
        // Any width that holds the value is legal.
        let least = [23, 0xff, 0xffff, 0xffff_ffff].iter().filter(|bound| argument > **bound).count();
        match u.int_in_range(least..=4)? {
            0 => self.bytes.push(major << 5 | argument as u8),
            width => {
                self.bytes.push(major << 5 | (23 + width as u8));
                self.bytes.extend(&argument.to_be_bytes()[8 - (1 << (width - 1))..]);
            }
        }
        Ok(())
    }

    /// Writes a random value of a type; returns it as the dump shows it. `depth` bounds what follows.
    fn value(&mut self, ty: &str, depth: u32, u: &mut Unstructured) -> Result<Json> {
        let inner = |prefix: &str| ty.strip_prefix(prefix).and_then(|rest| rest.strip_suffix('>'));
        if let Some(item) = inner("List<") {
            let count = if depth == 0 { 0 } else { u.int_in_range(0..=3)? };
            self.head(4, count, u)?;
            return (0..count).map(|_| self.value(item, depth - 1, u)).collect();
        }
        if let Some(item) = inner("Option<") {
            let some = depth > 0 && u.arbitrary()?;
            self.bytes.extend([0xd9, 0xff, u8::from(some), 0x80 | u8::from(some)]);
            return if some { self.value(item, depth - 1, u) } else { Ok(Json::Null) };
        }
        match ty {
            "Nat" => {
                let number: u64 = u.arbitrary()?;
                self.head(0, number, u)?;
                Ok(json!(number))
            }
            "Int" => {
                let number: i64 = u.arbitrary()?;
                let (major, argument) = if number < 0 { (1, !number as u64) } else { (0, number as u64) };
                self.head(major, argument, u)?;
                Ok(json!(number))
            }
            "Bool" => {
                let truth: bool = u.arbitrary()?;
                self.bytes.push(0xf4 + u8::from(truth));
                Ok(json!(truth))
            }
            "Float" => {
                let number = f32::from(u.arbitrary::<i16>()?) / 64.0;
                self.bytes.push(0xfa);
                self.bytes.extend(number.to_be_bytes());
                Ok(json!(f64::from(number)))
            }
            "String" => {
                let text: &str = u.choose(&["", "a", "t5.mm4", "größe"])?;
                self.head(3, text.len() as u64, u)?;
                self.bytes.extend(text.as_bytes());
                Ok(json!(text))
            }
            "Prop" => {
                if self.placeholders {
                    self.bytes.push(0x80);
                }
                Ok(Json::Null)
            }
            _ => self.tagged(ty, None, depth, u),
        }
    }

    fn tagged(&mut self, ty: &str, ctor: Option<usize>, depth: u32, u: &mut Unstructured) -> Result<Json> {
        let row = &self.schema[ty];
        let ctors = row["ctors"].as_array().unwrap();
        let index = match ctor {
            Some(index) => index,
            None if depth == 0 => 0,
            None => u.choose_index(ctors.len())?,
        };
        let [name, _, arity, fields] = ctors[index].as_array().unwrap().as_slice() else { panic!() };
        let (name, arity) = (name.as_str().unwrap(), arity.as_u64().unwrap());
        self.bytes.extend([0xd9, row["tag"].as_u64().unwrap() as u8, index as u8, 0x80 | arity as u8]);
        let mut object = Map::new();
        for field in fields.as_array().unwrap() {
            let (field, ty) = (field[0].as_str().unwrap(), field[1].as_str().unwrap());
            object.insert(field.to_owned(), self.value(ty, depth.saturating_sub(1), u)?);
        }
        Ok(match (ctors.len() == 1 && name == ty, arity) {
            (true, _) => Json::Object(object),
            (false, 0) => json!(name),
            (false, _) => json!({ name: object }),
        })
    }
}

/// Every operator, in both treatments of proofs, is read past to the end of the file and shown as written.
#[test]
fn every_operator_is_read() {
    let schema = load("schema.json");
    let operators = schema["Operator"]["ctors"].as_array().unwrap().len();
    assert_eq!(operators, 76);
    // Header, metadata, contents 2, kernel "k".
    let small = bytes("accept/tiny_mm.klr");
    let start = [&small[..0x0f], &[0xd9, 0xec, 0x02, 0x81, 0xd9, 0x69, 0x00, 0x84, 0x61, b'k']].concat();
    let mut seen = vec![false; operators];
    let case = |index: usize, u: &mut Unstructured| -> Result<()> {
        let mut writer = Writer { schema: &schema, placeholders: u.arbitrary()?, bytes: start.clone() };
        let inputs = writer.value("List<TensorName>", 4, u)?;
        let outputs = writer.value("List<TensorName>", 4, u)?;
        writer.bytes.push(0x81); // one block
        writer.bytes.extend([0xd9, 0x68, 0x00, 0x83, 0x61, b'b', 0xf4, 0x81]); // "b", false, one statement
        writer.bytes.extend([0xd9, 0x67, 0x00, 0x83]);
        let op = writer.tagged("Operator", Some(index), 9, u)?;
        let name = writer.value("Option<String>", 1, u)?;
        let pos = writer.value("Pos", 3, u)?;
        let file = File::parse(&writer.bytes).unwrap_or_else(|error| panic!("{op}: {error}"));
        let statement = json!({"oper": {"op": op, "name": name, "pos": pos}});
        let block = json!({"label": "b", "noReorder": false, "body": [statement]});
        let kernel = json!({"name": "k", "inputs": inputs, "outputs": outputs, "body": [block]});
        assert_eq!(file.to_json(), json!({"kernel": {"kernel": kernel}}));
        let written = op.as_object().unwrap().keys().next().unwrap();
        assert_eq!(file.kernel.cores[0][0].body[0].op.name(), written);
        // Random extents: almost always refused, never a panic.
        if let Err(violations) = lower(&file, KlrTranspose::Moving) {
            assert!(!violations.is_empty());
        }
        Ok(())
    };
    for (index, seen) in seen.iter_mut().enumerate() {
        let noise: Vec<u8> =
            (0..256u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8 ^ index as u8).collect();
        *seen = case(index, &mut Unstructured::new(&noise)).is_ok();
    }
    assert!(seen.iter().all(|seen| *seen), "{seen:?}");
    arbtest::arbtest(|u| {
        let index = u.choose_index(operators)?;
        case(index, u)
    })
    .budget_ms(1000);
}
