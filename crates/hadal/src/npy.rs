//! The `.npy` file format: arrays in and out.
//!
//! Reading checks every size that a header states against the bytes that are there before it allocates, and
//! never panics. Data is held as little-endian bytes in C order whatever the file used.

use std::fmt;

use thiserror::Error;

/// Element kind of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// IEEE float of 2, 4 or 8 bytes.
    Float,
    /// Unsigned integer, or an opaque code of that size (numpy's kind `V`, which ml_dtypes writes).
    Unsigned,
    /// Two's complement integer.
    Signed,
}

/// An array: kind, bytes of an element, shape, and the elements in C order, little-endian.
#[derive(Debug, Clone, PartialEq)]
pub struct Npy {
    /// What an element is.
    pub kind: Kind,
    /// Bytes of an element: 1, 2, 4 or 8.
    pub size: usize,
    /// Shape, outermost dimension first; empty for a scalar.
    pub shape: Vec<usize>,
    /// `size` times the product of `shape` bytes.
    pub data: Vec<u8>,
}

/// Why bytes are not an array that can be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NpyError {
    /// The magic bytes are missing.
    #[error("NPY-001: not a .npy file: it does not begin with \\x93NUMPY; save the array with numpy.save")]
    Magic,
    /// The file ends early.
    #[error("NPY-002: the file is cut short: {what} takes {needed} bytes, {left} are left; write it again")]
    Short {
        /// What does not fit.
        what: &'static str,
        /// Its size.
        needed: u64,
        /// Bytes left.
        left: u64,
    },
    /// The header text does not parse.
    #[error("NPY-003: the header {header:?} cannot be read: {why}; save the array with numpy.save")]
    Header {
        /// The text, shortened.
        header: String,
        /// What is wrong.
        why: &'static str,
    },
    /// An element type without meaning here.
    #[error(
        "NPY-004: element type {descr:?} is not supported; convert to float16/32/64 or an integer type, codes as unsigned"
    )]
    Descr {
        /// numpy's type string.
        descr: String,
    },
    /// The version of the format is unknown.
    #[error("NPY-005: format version {major}.{minor} is not known; save the array with numpy.save")]
    Version {
        /// Major version.
        major: u8,
        /// Minor version.
        minor: u8,
    },
}

impl Kind {
    /// numpy's letter.
    pub fn letter(self) -> char {
        match self {
            Kind::Float => 'f',
            Kind::Unsigned => 'u',
            Kind::Signed => 'i',
        }
    }
}

impl fmt::Display for Npy {
    /// Type and shape, such as `float32 [128, 512]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Float => "float",
            Kind::Unsigned => "uint",
            Kind::Signed => "int",
        };
        write!(f, "{kind}{} {:?}", self.size * 8, self.shape)
    }
}

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Reads a `.npy` file of version 1, 2 or 3.
///
/// # Errors
///
/// [`NpyError`] for anything that is not a plain array of numbers.
pub fn read(bytes: &[u8]) -> Result<Npy, NpyError> {
    let (header, data) = open(bytes)?;
    Ok(header.array(data.to_vec()))
}

/// [`read`] from bytes that are not needed afterwards: the array takes their memory over.
///
/// # Errors
///
/// As [`read`].
pub fn read_owned(mut bytes: Vec<u8>) -> Result<Npy, NpyError> {
    let (header, data) = open(&bytes)?;
    let (skip, length) = (bytes.len() - data.len(), header.data_bytes());
    bytes.drain(..skip);
    bytes.truncate(length);
    Ok(header.array(bytes))
}

/// Longest header of a file that is read in parts. numpy itself refuses more than 10000 bytes.
pub const HEAD_LIMIT: usize = 1 << 16;

/// What a file says before its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// What an element is.
    pub kind: Kind,
    /// Bytes of an element.
    pub size: usize,
    /// Shape, outermost dimension first.
    pub shape: Vec<usize>,
    /// Whether the data are little-endian and in C order, so that a part of them can be used as it is.
    pub plain: bool,
    /// Where the data begin.
    pub offset: u64,
}

/// Reads what stands before the data of a file of `file_bytes` bytes, given its first [`HEAD_LIMIT`] bytes (or all
/// of a shorter one), and checks that the data are there.
///
/// # Errors
///
/// As [`read`]; also for a header longer than the limit.
pub fn head(start: &[u8], file_bytes: u64) -> Result<Head, NpyError> {
    let (header, offset) = match preamble(start) {
        Err(NpyError::Short { what: "the header", .. }) if file_bytes > start.len() as u64 => {
            return Err(NpyError::Header { header: String::new(), why: "it is longer than 65536 bytes" });
        }
        other => other.map(|(header, data)| (header, start.len() as u64 - data.len() as u64))?,
    };
    let (needed, left) = (header.needed(), file_bytes.saturating_sub(offset));
    if needed > left {
        return Err(NpyError::Short { what: "the data", needed, left });
    }
    let plain = !(header.big_endian && header.size > 1 || header.fortran && header.shape.len() > 1);
    Ok(Head { kind: header.kind, size: header.size, shape: header.shape, plain, offset })
}

/// The header, and at least the bytes of the data.
fn open(bytes: &[u8]) -> Result<(Header, &[u8]), NpyError> {
    let (header, data) = preamble(bytes)?;
    take(data, header.needed(), "the data")?;
    Ok((header, data))
}

/// The header, and what follows it.
fn preamble(bytes: &[u8]) -> Result<(Header, &[u8]), NpyError> {
    let rest = bytes.strip_prefix(MAGIC.as_slice()).ok_or(NpyError::Magic)?;
    let (version, rest) = take(rest, 2, "the version")?;
    let (major, minor) = match version {
        [a, b] => (*a, *b),
        _ => return Err(NpyError::Magic),
    };
    let width = match major {
        1 => 2,
        2 | 3 => 4,
        _ => return Err(NpyError::Version { major, minor }),
    };
    let (length, rest) = take(rest, width, "the header length")?;
    let length = length.iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b));
    let (header, data) = take(rest, length, "the header")?;
    Ok((Header::parse(&String::from_utf8_lossy(header))?, data))
}

fn take<'a>(bytes: &'a [u8], n: u64, what: &'static str) -> Result<(&'a [u8], &'a [u8]), NpyError> {
    usize::try_from(n).ok().and_then(|n| bytes.split_at_checked(n)).ok_or(NpyError::Short {
        what,
        needed: n,
        left: bytes.len() as u64,
    })
}

/// The first axis varies fastest in the file; the last one must.
fn to_c_order(data: &[u8], size: usize, shape: &[usize]) -> Vec<u8> {
    let mut strides = vec![0usize; shape.len()];
    let mut step = size;
    for (stride, dim) in strides.iter_mut().zip(shape) {
        *stride = step;
        step = step.saturating_mul(*dim);
    }
    let mut out = Vec::with_capacity(data.len());
    let mut index = vec![0usize; shape.len()];
    for _ in 0..data.len() / size.max(1) {
        let at: usize = index.iter().zip(&strides).map(|(i, s)| i * s).sum();
        out.extend_from_slice(data.get(at..at + size).unwrap_or(&[]));
        for (i, dim) in index.iter_mut().zip(shape).rev() {
            *i += 1;
            if *i < *dim {
                break;
            }
            *i = 0;
        }
    }
    out
}

struct Header {
    kind: Kind,
    size: usize,
    big_endian: bool,
    fortran: bool,
    shape: Vec<usize>,
}

impl Header {
    /// Bytes of the data as the shape says.
    fn needed(&self) -> u64 {
        let count = self.shape.iter().try_fold(self.size as u64, |n, d| n.checked_mul(*d as u64));
        count.unwrap_or(u64::MAX)
    }

    /// Bytes of the data, already known to be there.
    fn data_bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.size
    }

    /// The array of these data, brought to C order and little-endian.
    fn array(self, mut data: Vec<u8>) -> Npy {
        data.truncate(self.data_bytes());
        if self.big_endian {
            data.chunks_exact_mut(self.size).for_each(<[u8]>::reverse);
        }
        if self.fortran {
            data = to_c_order(&data, self.size, &self.shape);
        }
        Npy { kind: self.kind, size: self.size, shape: self.shape, data }
    }

    /// Reads the dictionary literal that numpy writes: `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
    fn parse(text: &str) -> Result<Header, NpyError> {
        let fail = |why| NpyError::Header { header: text.trim().chars().take(80).collect(), why };
        let value = |key: &str| {
            let quoted = [format!("'{key}':"), format!("\"{key}\":")];
            let found = quoted.iter().find_map(|q| text.split_once(q.as_str()));
            found.map(|(_, after)| after.trim_start())
        };
        let descr = value("descr").ok_or_else(|| fail("no 'descr'"))?;
        let quote = descr.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let Some(quote) = quote else {
            return Err(NpyError::Descr { descr: descr.chars().take(40).collect() });
        };
        let descr = descr.split(quote).nth(1).unwrap_or("");
        let (kind, size, big_endian) =
            element(descr).ok_or_else(|| NpyError::Descr { descr: descr.to_owned() })?;
        let order = value("fortran_order").ok_or_else(|| fail("no 'fortran_order'"))?;
        let fortran = match (order.starts_with("True"), order.starts_with("False")) {
            (true, _) => true,
            (_, true) => false,
            _ => return Err(fail("'fortran_order' is neither True nor False")),
        };
        let shape = value("shape").ok_or_else(|| fail("no 'shape'"))?;
        let inner = shape.strip_prefix('(').and_then(|s| s.split_once(')')).map(|s| s.0);
        let inner = inner.ok_or_else(|| fail("'shape' is not a tuple"))?;
        let dims = inner.split(',').map(str::trim).filter(|d| !d.is_empty());
        let shape: Result<Vec<usize>, _> = dims.map(str::parse).collect();
        let shape = shape.map_err(|_| fail("'shape' holds something that is no size"))?;
        if shape.len() > 32 {
            return Err(fail("more than 32 dimensions"));
        }
        Ok(Header { kind, size, big_endian, fortran, shape })
    }
}

/// Kind, size and whether big-endian of a type string such as `<f4`.
fn element(descr: &str) -> Option<(Kind, usize, bool)> {
    let mut chars = descr.chars();
    let order = chars.next()?;
    let letter = chars.next()?;
    let size: usize = chars.as_str().parse().ok()?;
    let big = match order {
        '<' | '|' | '=' => false,
        '>' => true,
        _ => return None,
    };
    let kind = match (letter, size) {
        ('f', 2 | 4 | 8) => Kind::Float,
        ('u' | 'V', 1 | 2 | 4 | 8) | ('b', 1) => Kind::Unsigned,
        ('i', 1 | 2 | 4 | 8) => Kind::Signed,
        _ => return None,
    };
    Some((kind, size, big))
}

/// The bytes of a `.npy` file, version 1.0, with the data aligned to 64 bytes as numpy does.
pub fn write(array: &Npy) -> Vec<u8> {
    let mut out = header(array.kind, array.size, &array.shape);
    out.reserve_exact(array.data.len());
    out.extend_from_slice(&array.data);
    out
}

/// What stands in a `.npy` file before the data of an array of `size`-byte elements.
pub fn header(kind: Kind, size: usize, shape: &[usize]) -> Vec<u8> {
    let order = if size == 1 { '|' } else { '<' };
    let dims: Vec<String> = shape.iter().map(usize::to_string).collect();
    let comma = if dims.len() == 1 { "," } else { "" };
    let mut header = format!(
        "{{'descr': '{order}{}{size}', 'fortran_order': False, 'shape': ({}{comma}), }}",
        kind.letter(),
        dims.join(", ")
    );
    let unpadded = MAGIC.len() + 4 + header.len() + 1;
    header.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    header.push('\n');
    let mut out = Vec::with_capacity(10 + header.len());
    out.extend_from_slice(MAGIC);
    // At most 32 dimensions of 20 digits: the length always fits 16 bits.
    let length = u16::try_from(header.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&[1, 0]);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use arbtest::arbtest;

    fn header(text: &str, data: &[u8]) -> Vec<u8> {
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend_from_slice(&u16::try_from(text.len()).unwrap().to_le_bytes());
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(data);
        out
    }

    #[test]
    fn writes_what_numpy_writes() {
        // numpy.save of numpy.array([1, 2], dtype='<u2').
        let mut want =
            b"\x93NUMPY\x01\x00v\x00{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }".to_vec();
        want.resize(127, b' ');
        want.push(b'\n');
        want.extend_from_slice(&[1, 0, 2, 0]);
        let array = Npy { kind: Kind::Unsigned, size: 2, shape: vec![2], data: vec![1, 0, 2, 0] };
        assert_eq!(write(&array), want);
        assert_eq!(read(&want), Ok(array));
    }

    #[test]
    fn byte_order_and_axis_order_are_undone() {
        // [[1, 2, 3], [4, 5, 6]] as big-endian, first axis fastest.
        let data: Vec<u8> = [1u16, 4, 2, 5, 3, 6].iter().flat_map(|v| v.to_be_bytes()).collect();
        let file = header("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n", &data);
        let got = read(&file).unwrap();
        let want: Vec<u8> = (1u16..=6).flat_map(u16::to_le_bytes).collect();
        assert_eq!((got.kind, got.shape, got.data), (Kind::Signed, vec![2, 3], want));
    }

    #[test]
    fn sizes_are_checked_before_anything_is_allocated() {
        let file =
            header("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, 99999999999), }", &[]);
        assert_eq!(read(&file), Err(NpyError::Short { what: "the data", needed: u64::MAX, left: 0 }));
        let long = b"\x93NUMPY\x02\x00\xff\xff\xff\xff{";
        assert_eq!(read(long), Err(NpyError::Short { what: "the header", needed: 0xffff_ffff, left: 1 }));
    }

    #[test]
    fn refused_types() {
        for descr in ["<c8", "|O", "<U4", "<f16", "<M8[ns]", ""] {
            let file =
                header(&format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (), }}"), &[0; 16]);
            assert_eq!(read(&file), Err(NpyError::Descr { descr: descr.to_owned() }));
        }
        assert_eq!(read(b"PK\x03\x04"), Err(NpyError::Magic));
    }

    #[test]
    fn any_bytes_give_an_array_or_an_error() {
        arbtest(|u| {
            let mut file = header("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3, 1), }", &[0; 24]);
            for _ in 0..u.int_in_range(1..=4)? {
                let at = u.choose_index(file.len())?;
                file[at] = u.arbitrary()?;
            }
            // A head is read just when the whole is, as far as it is short.
            assert_eq!(head(&file, file.len() as u64).map(|h| h.shape), read(&file).map(|a| a.shape));
            if let Ok(a) = read(&file) {
                assert_eq!(a.data.len(), a.size * a.shape.iter().product::<usize>());
                assert_eq!(read_owned(file), Ok(a.clone()));
                assert_eq!(read(&write(&a)), Ok(a));
            }
            Ok(())
        });
    }
}
