//! Operands in files, read where they are needed.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use hadal::files::{self, FileError};
use hadal::gemm::Matrix;
use hadal::npy::{self, Head, Kind};
use hadal::num::{Dtype, round_to_odd, widen};

use crate::failure::Failure;

/// Bytes of a row below which a matrix is read as a whole, if it is not too large.
const SHORT_ROW: usize = 1024;
/// Largest such matrix, in bytes.
const HELD: usize = 256 << 20;

/// How elements are read as numbers.
#[derive(Debug, Clone, Copy)]
enum Element {
    Float64,
    Narrow(Dtype),
}

impl Element {
    fn bytes(self) -> usize {
        match self {
            Element::Float64 => 8,
            Element::Narrow(dtype) => dtype.bytes(),
        }
    }
}

/// An operand: its array's data stay in the file where that is possible.
#[derive(Debug)]
pub(super) struct Operand {
    /// Its name for messages.
    pub(super) name: String,
    shape: [usize; 2],
    element: Element,
    data: Data,
}

#[derive(Debug)]
enum Data {
    /// A file, and where the data begin.
    #[cfg(unix)]
    File(File, u64),
    Memory(Vec<u8>),
}

impl Operand {
    /// Opens an array and checks what its header says; `from` says what unsigned elements are.
    pub(super) fn open(path: &Path, from: Option<Dtype>) -> Result<Operand, Failure> {
        #[cfg(unix)]
        // Only a file can be read at any place; a pipe is read to its end first.
        if path != Path::new("-") && std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() > 0) {
            let (name, file) = files::open(path)?;
            let unreadable = |error| FileError::Unreadable { name: name.clone(), error };
            let bytes = file.metadata().map_err(unreadable)?.len();
            let mut start = Vec::new();
            (&file).take(npy::HEAD_LIMIT as u64).read_to_end(&mut start).map_err(unreadable)?;
            let head =
                npy::head(&start, bytes).map_err(|error| Failure::Npy { name: name.clone(), error })?;
            let row = head.shape.last().copied().unwrap_or(0).saturating_mul(head.size);
            let bytes = head.shape.iter().fold(head.size, |n, d| n.saturating_mul(*d));
            // A read a row is a poor way through short rows.
            if head.plain && (row >= SHORT_ROW || bytes > HELD) {
                let data = Data::File(file, head.offset);
                return Operand::new(name, &head, from, data);
            }
        }
        let source = files::read(path)?;
        let name = source.name;
        let array =
            npy::read_owned(source.bytes).map_err(|error| Failure::Npy { name: name.clone(), error })?;
        let head = Head { kind: array.kind, size: array.size, shape: array.shape, plain: true, offset: 0 };
        Operand::new(name, &head, from, Data::Memory(array.data))
    }

    fn new(name: String, head: &Head, from: Option<Dtype>, data: Data) -> Result<Operand, Failure> {
        let kind = match head.kind {
            Kind::Float => "float",
            Kind::Unsigned => "uint",
            Kind::Signed => "int",
        };
        let spelled = format!("{kind}{}", 8 * head.size);
        let fail = |text: String, remedy| Err(Failure::Cast { name: name.clone(), text, remedy });
        let element = match (head.kind, head.size, from) {
            (Kind::Float, 2, _) => Element::Narrow(Dtype::Float16),
            (Kind::Float, 4, _) => Element::Narrow(Dtype::Float32),
            (Kind::Float, _, _) => Element::Float64,
            (_, size, Some(dtype)) if dtype.bytes() == size => Element::Narrow(dtype),
            (_, _, Some(dtype)) => {
                let text = format!("elements are {spelled}, which are no bits of {dtype}");
                return fail(text, "give the format whose bits the array holds");
            }
            _ => {
                let text = format!("elements are {spelled}, and nothing says what their bits are");
                return fail(text, "give --from bfloat16 or another format, or a float array");
            }
        };
        let shape = match head.shape.as_slice() {
            [rows, columns] if *rows > 0 && *columns > 0 => [*rows, *columns],
            [_, _] => {
                let text = format!("shape {:?} has no elements", head.shape);
                return fail(text, "give matrices with at least one row and one column");
            }
            other => {
                let text = format!("shape {other:?} is not that of a matrix");
                return fail(text, "reshape to two dimensions: A is [M, K], B is [K, N]");
            }
        };
        Ok(Operand { name, shape, element, data })
    }

    /// Calls `f` with the bytes of a run of elements.
    fn bytes<T>(
        &self,
        row: usize,
        column: usize,
        len: usize,
        f: impl FnOnce(&[u8]) -> io::Result<T>,
    ) -> io::Result<T> {
        let size = self.element.bytes();
        let at = (row * self.shape[1] + column) * size;
        match &self.data {
            #[cfg(unix)]
            Data::File(file, offset) => {
                use std::os::unix::fs::FileExt;
                let mut bytes = vec![0; len * size];
                file.read_exact_at(&mut bytes, offset + at as u64)?;
                f(&bytes)
            }
            Data::Memory(bytes) => f(bytes.get(at..at + len * size).ok_or(io::ErrorKind::UnexpectedEof)?),
        }
    }
}

fn narrow_floats(dtype: Dtype, bytes: &[u8], out: &mut [f32]) -> io::Result<()> {
    if dtype == Dtype::Float32 {
        // The same bits; no cast.
        for (to, from) in out.iter_mut().zip(bytes.as_chunks().0) {
            *to = f32::from_le_bytes(*from);
        }
        return Ok(());
    }
    widen(dtype, bytes, out).map_err(io::Error::other)
}

impl Matrix for Operand {
    fn shape(&self) -> [usize; 2] {
        self.shape
    }

    fn read(&self, row: usize, column: usize, out: &mut [f64]) -> io::Result<()> {
        let element = self.element;
        self.bytes(row, column, out.len(), |bytes| {
            match element {
                Element::Float64 => {
                    for (to, from) in out.iter_mut().zip(bytes.as_chunks().0) {
                        *to = f64::from_le_bytes(*from);
                    }
                }
                Element::Narrow(Dtype::Float32) => {
                    for (to, from) in out.iter_mut().zip(bytes.as_chunks().0) {
                        *to = f64::from(f32::from_le_bytes(*from));
                    }
                }
                Element::Narrow(dtype) => {
                    let mut values = vec![0.0; out.len()];
                    narrow_floats(dtype, bytes, &mut values)?;
                    out.iter_mut().zip(values).for_each(|(to, from)| *to = f64::from(from));
                }
            }
            Ok(())
        })
    }

    fn read_f32(&self, row: usize, column: usize, odd: bool, out: &mut [f32]) -> io::Result<()> {
        let element = self.element;
        self.bytes(row, column, out.len(), |bytes| match element {
            Element::Float64 => {
                for (to, from) in out.iter_mut().zip(bytes.as_chunks().0) {
                    let wide = f64::from_le_bytes(*from);
                    *to = if odd { round_to_odd(wide) } else { wide as f32 };
                }
                Ok(())
            }
            Element::Narrow(dtype) => narrow_floats(dtype, bytes, out),
        })
    }
}
