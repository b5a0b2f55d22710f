//! The `.safetensors` file format: a JSON header that says where each tensor lies, then the tensors back to back.
//!
//! Only the header is held here; the data of a tensor stays in its file and is read where the header says. Every
//! size that a header states is checked against the file's length before anything is allocated or believed, so a
//! [`Header`] that was read describes bytes that are there, each belonging to exactly one tensor.

use std::fmt;
use std::io::Read;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value, json};
use thiserror::Error;

/// Most bytes of a header; the format's own limit.
pub const MAX_HEADER: u64 = 100_000_000;
/// Bytes before the header: its length, little-endian.
const PREFIX: u64 = 8;
/// The entry of a header that is no tensor.
const METADATA: &str = "__metadata__";

/// One tensor of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The tensor's name.
    pub name: String,
    /// Element type as the format spells it, such as `BF16` or `F8_E4M3`; may be one that is not known here.
    pub dtype: String,
    /// Shape, outermost dimension first.
    pub shape: Vec<u64>,
    /// Where in the file its bytes begin.
    pub offset: u64,
    /// How many bytes it has.
    pub bytes: u64,
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    /// The tensors in the order of their bytes, which follow each other without gaps.
    pub entries: Vec<Entry>,
    /// Free text by key.
    pub metadata: Vec<(String, String)>,
}

/// Why bytes are no safetensors file.
#[derive(Debug, Error)]
pub enum SafetensorsError {
    /// The file ends before the header does.
    #[error(
        "ST-001: the file is cut short: its header takes {needed} bytes, {left} are left; download or write it again"
    )]
    Short {
        /// Bytes of the header.
        needed: u64,
        /// Bytes after its length.
        left: u64,
    },
    /// A header length beyond the format's limit.
    #[error("ST-002: the header claims {bytes} bytes, the format allows {MAX_HEADER}; write the file again")]
    TooLarge {
        /// The claim.
        bytes: u64,
    },
    /// A header that does not parse.
    #[error("ST-003: the header cannot be read: {why}; write the file again")]
    Header {
        /// What is wrong, with the tensor where one is to blame.
        why: String,
    },
    /// Tensors that do not fill the file exactly.
    #[error("ST-004: tensor {name:?} {why}; write the file again")]
    Layout {
        /// The tensor.
        name: String,
        /// What is wrong with its place.
        why: String,
    },
    /// Reading failed.
    #[error("ST-005: reading the header failed: {0}; check the file")]
    Io(#[from] std::io::Error),
}

/// Bits of one element; `None` for a type that is not known here.
pub fn element_bits(dtype: &str) -> Option<u64> {
    Some(match dtype {
        "F4" => 4,
        "F6_E2M3" | "F6_E3M2" => 6,
        "BOOL" | "U8" | "I8" | "F8_E5M2" | "F8_E4M3" | "F8_E8M0" | "F8_E4M3FNUZ" | "F8_E5M2FNUZ" => 8,
        "I16" | "U16" | "F16" | "BF16" => 16,
        "I32" | "U32" | "F32" => 32,
        "I64" | "U64" | "F64" | "C64" => 64,
        _ => return None,
    })
}

/// Bytes of a tensor; `None` when it is no whole number of bytes, too large to count, or of unknown type.
pub fn tensor_bytes(dtype: &str, shape: &[u64]) -> Option<u64> {
    let bits = shape.iter().try_fold(element_bits(dtype)?, |n, d| n.checked_mul(*d))?;
    bits.is_multiple_of(8).then_some(bits / 8)
}

/// Whether a file that begins with these bytes may be of this format: a length, then a JSON object.
pub fn looks_like(start: &[u8]) -> bool {
    start.get(PREFIX as usize) == Some(&b'{')
}

impl Header {
    /// Reads the header of a file of `file_bytes` bytes from its beginning.
    ///
    /// # Errors
    ///
    /// [`SafetensorsError`] when the header is cut short, larger than the format allows, malformed, or does not give
    /// every byte of the file to exactly one tensor.
    pub fn read(from: &mut dyn Read, file_bytes: u64) -> Result<Header, SafetensorsError> {
        let left = file_bytes.saturating_sub(PREFIX);
        if file_bytes < PREFIX {
            return Err(SafetensorsError::Short { needed: PREFIX, left: file_bytes });
        }
        let mut length = [0; PREFIX as usize];
        from.read_exact(&mut length)?;
        let length = u64::from_le_bytes(length);
        if length > MAX_HEADER {
            return Err(SafetensorsError::TooLarge { bytes: length });
        }
        if length > left {
            return Err(SafetensorsError::Short { needed: length, left });
        }
        let mut text = Vec::new();
        from.take(length).read_to_end(&mut text)?;
        if text.len() as u64 != length {
            return Err(SafetensorsError::Short { needed: length, left: text.len() as u64 });
        }
        let header = Header::parse(&text, PREFIX + length)?;
        header.check_layout(PREFIX + length, file_bytes)?;
        Ok(header)
    }

    fn parse(text: &[u8], data_start: u64) -> Result<Header, SafetensorsError> {
        let fail = |why: String| SafetensorsError::Header { why };
        let Pairs(pairs) = serde_json::from_slice(text).map_err(|e| fail(e.to_string()))?;
        let mut header = Header::default();
        for (name, value) in pairs {
            if name == METADATA {
                let free = Map::deserialize(value).map_err(|e| fail(format!("{METADATA}: {e}")))?;
                for (key, value) in free {
                    match value {
                        Value::String(text) => header.metadata.push((key, text)),
                        _ => return Err(fail(format!("{METADATA}: the value of {key:?} is no text"))),
                    }
                }
                continue;
            }
            // Names end up in listings and file names.
            if name.chars().any(char::is_control) {
                return Err(fail(format!("tensor {name:?} has a control character in its name")));
            }
            let raw = RawEntry::deserialize(value).map_err(|e| fail(format!("tensor {name:?}: {e}")))?;
            let [begin, end] = raw.data_offsets;
            let place = |why: String| SafetensorsError::Layout { name: name.clone(), why };
            let bytes = end
                .checked_sub(begin)
                .ok_or_else(|| place(format!("ends at {end}, before its start {begin}")))?;
            if element_bits(&raw.dtype).is_some() && tensor_bytes(&raw.dtype, &raw.shape) != Some(bytes) {
                return Err(place(format!("has {bytes} bytes, which is not {} {:?}", raw.dtype, raw.shape)));
            }
            let offset = begin.checked_add(data_start).ok_or_else(|| place(format!("starts at {begin}")))?;
            header.entries.push(Entry { name, dtype: raw.dtype, shape: raw.shape, offset, bytes });
        }
        let mut names: Vec<&str> = header.entries.iter().map(|e| e.name.as_str()).collect();
        names.sort_unstable();
        if let Some([twice, _]) = names.array_windows().find(|[a, b]| a == b) {
            return Err(fail(format!("two tensors are called {twice:?}")));
        }
        header.entries.sort_by_key(|e| (e.offset, e.bytes));
        Ok(header)
    }

    fn check_layout(&self, data_start: u64, file_bytes: u64) -> Result<(), SafetensorsError> {
        let mut next = data_start;
        for e in &self.entries {
            let place = |why: String| SafetensorsError::Layout { name: e.name.clone(), why };
            if e.offset != next {
                return Err(place(format!(
                    "begins at byte {} of the data, the one before it ends at {}",
                    e.offset - data_start,
                    next - data_start
                )));
            }
            next = e.offset.checked_add(e.bytes).filter(|end| *end <= file_bytes).ok_or_else(|| {
                place(format!(
                    "takes {} bytes, the file has {} left",
                    e.bytes,
                    file_bytes - e.offset.min(file_bytes)
                ))
            })?;
        }
        if next != file_bytes {
            let why = format!("{} bytes after the last tensor belong to none", file_bytes - next);
            return Err(SafetensorsError::Header { why });
        }
        Ok(())
    }

    /// The text of a metadata key.
    pub fn note(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// The header of a new file, and the offset of each tensor in it.
    ///
    /// Takes the entries in any order and ignores their offsets: the tensors are laid out by falling element size, so
    /// that each is aligned to its element, and otherwise in the order given. Returns the file's first bytes; the
    /// entries then say where each tensor goes.
    pub fn lay_out(&mut self) -> Vec<u8> {
        self.entries.sort_by_key(|e| std::cmp::Reverse(element_bits(&e.dtype).unwrap_or(8)));
        let mut map = Map::new();
        if !self.metadata.is_empty() {
            let free: Map<String, Value> = self.metadata.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
            map.insert(METADATA.to_owned(), Value::Object(free));
        }
        let mut at = 0u64;
        for e in &mut self.entries {
            e.offset = at;
            at = at.saturating_add(e.bytes);
            let entry = json!({"dtype": e.dtype, "shape": e.shape, "data_offsets": [e.offset, at]});
            map.insert(e.name.clone(), entry);
        }
        let mut text = Value::Object(map).to_string().into_bytes();
        text.resize(text.len().next_multiple_of(8), b' ');
        let mut out = (text.len() as u64).to_le_bytes().to_vec();
        out.append(&mut text);
        for e in &mut self.entries {
            e.offset = e.offset.saturating_add(out.len() as u64);
        }
        out
    }
}

#[derive(Deserialize)]
struct RawEntry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

/// A JSON object with its pairs as they stand, repeated names included.
struct Pairs(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensors by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arbtest::arbtest;

    fn file(header: &str, data: usize) -> Vec<u8> {
        let mut out = (header.len() as u64).to_le_bytes().to_vec();
        out.extend_from_slice(header.as_bytes());
        out.resize(out.len() + data, 0);
        out
    }

    fn read(bytes: &[u8]) -> Result<Header, SafetensorsError> {
        Header::read(&mut &bytes[..], bytes.len() as u64)
    }

    fn refused(bytes: &[u8], want: &str) {
        let text = read(bytes).unwrap_err().to_string();
        assert!(text.contains(want), "{text}");
        assert!(!text.contains('\n'), "{text}");
    }

    #[test]
    fn headers_that_lie() {
        refused(&[1, 2, 3], "ST-001: the file is cut short: its header takes 8 bytes, 3 are left");
        refused(&(1u64 << 60).to_le_bytes(), "ST-002: the header claims 1152921504606846976 bytes");
        refused(&file("{}", 0)[..9], "ST-001: the file is cut short: its header takes 2 bytes, 1 are left");
        refused(&file("[]", 0), "ST-003");
        refused(&file("{", 0), "ST-003");
        refused(&file(&"[".repeat(5000), 0), "ST-003");
        refused(&file("{}", 4), "4 bytes after the last tensor belong to none");
        refused(
            &file(r#"{"a":{"dtype":"F32","shape":[2]}}"#, 8),
            r#"tensor "a": missing field `data_offsets`"#,
        );
        let one = |shape: &str, offsets: &str| {
            format!(r#"{{"a":{{"dtype":"F32","shape":[{shape}],"data_offsets":[{offsets}]}}}}"#)
        };
        assert!(read(&file(&one("2", "0,8"), 8)).is_ok());
        refused(&file(&one("2", "0,8"), 7), r#"tensor "a" takes 8 bytes, the file has 7 left"#);
        refused(&file(&one("2", "4,12"), 12), "begins at byte 4 of the data, the one before it ends at 0");
        refused(&file(&one("2", "8,0"), 8), "ends at 0, before its start 8");
        refused(&file(&one("3", "0,8"), 8), "has 8 bytes, which is not F32 [3]");
        refused(&file(&one("4294967296,4294967296", "0,8"), 8), "has 8 bytes, which is not F32");
        refused(&file(&one("2", "18446744073709551608,18446744073709551615"), 8), "ST-004");
        let both = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#;
        refused(&file(both, 2), r#"two tensors are called "a""#);
        refused(&file(r#"{"__metadata__":{"k":1}}"#, 0), r#"the value of "k" is no text"#);
    }

    #[test]
    fn what_is_laid_out_reads_back_aligned() {
        let entry = |name: &str, dtype: &str, shape: &[u64]| Entry {
            name: name.to_owned(),
            dtype: dtype.to_owned(),
            shape: shape.to_vec(),
            offset: 0,
            bytes: tensor_bytes(dtype, shape).unwrap(),
        };
        let mut header = Header {
            entries: vec![entry("s", "U8", &[3]), entry("d", "U32", &[5]), entry("h", "BF16", &[1, 3])],
            metadata: vec![("k".to_owned(), "v".to_owned())],
        };
        let mut bytes = header.lay_out();
        assert_eq!(bytes.len() % 8, 0);
        bytes.resize(bytes.len() + 29, 0);
        let back = read(&bytes).unwrap();
        assert_eq!(back, header);
        assert_eq!(back.note("k"), Some("v"));
        for e in &back.entries {
            assert_eq!(e.offset % (element_bits(&e.dtype).unwrap() / 8), 0);
        }
    }

    #[test]
    fn any_bytes_give_a_header_or_an_error() {
        let good = file(
            r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[1,2],"data_offsets":[8,10]}}"#,
            10,
        );
        arbtest(|u| {
            let mut bytes = good.clone();
            for _ in 0..u.int_in_range(1..=3)? {
                let at = u.choose_index(bytes.len())?;
                bytes[at] = u.arbitrary()?;
            }
            if let Ok(header) = read(&bytes) {
                let data: u64 = header.entries.iter().map(|e| e.bytes).sum();
                assert!(data <= bytes.len() as u64);
            }
            Ok(())
        });
    }
}
