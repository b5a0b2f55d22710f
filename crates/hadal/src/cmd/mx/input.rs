//! Tensors in files, read a piece at a time: one array of a `.npy`, or all of a `.safetensors`.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use clap::ValueEnum;
use glob::Pattern;
use hadal::files::{self, FileError};
use hadal::npy::{self, Kind};
use hadal::num::mx::Source;
use hadal::num::{self, Dtype};
use hadal::safetensors::{self, Header};

use crate::failure::Failure;

/// Bytes that pass through a buffer on their way to float32.
const PIECE: usize = 1 << 18;

/// What the bits of an unsigned array are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Bits {
    #[value(alias = "bf16")]
    Bfloat16,
    #[value(alias = "fp16")]
    Float16,
    #[value(alias = "fp32")]
    Float32,
}

impl Bits {
    fn dtype(self) -> Dtype {
        match self {
            Bits::Bfloat16 => Dtype::Bfloat16,
            Bits::Float16 => Dtype::Float16,
            Bits::Float32 => Dtype::Float32,
        }
    }
}

/// One tensor of an input.
#[derive(Debug, Clone)]
pub(super) struct Tensor {
    /// Its name; empty for the array of a `.npy`.
    pub(super) name: String,
    /// The element type as the file spells it.
    pub(super) spelled: String,
    pub(super) shape: Vec<u64>,
    pub(super) bytes: u64,
    /// How its elements are read as numbers, where that is known.
    pub(super) dtype: Option<Dtype>,
    offset: u64,
}

/// A tensor that divides into MX blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Picked {
    /// Which tensor of the input.
    pub(super) index: usize,
    pub(super) dtype: Dtype,
    pub(super) rows: usize,
    pub(super) cols: usize,
}

/// A tensor that was left alone, and why.
#[derive(Debug, Clone)]
pub(super) struct Left {
    pub(super) index: usize,
    pub(super) why: String,
}

enum Data {
    File(File),
    Memory(Vec<u8>),
}

/// An open input.
pub(super) struct Input {
    /// Its name for messages.
    pub(super) name: String,
    /// The tensors, in the order of their bytes.
    pub(super) tensors: Vec<Tensor>,
    /// The header of a `.safetensors`, absent for a `.npy`.
    pub(super) header: Option<Header>,
    data: Data,
}

type Reason = (String, &'static str);

impl Input {
    /// Opens a file and checks what its header says; `bits` says what unsigned elements are.
    pub(super) fn open(path: &Path, bits: Option<Bits>) -> Result<Input, Failure> {
        // Only a file can be read at any place; a pipe is read to its end first.
        if path != Path::new("-") && std::fs::metadata(path).is_ok_and(|m| m.is_file()) {
            let (name, mut file) = files::open(path)?;
            let unreadable = |error| FileError::Unreadable { name: name.clone(), error };
            let bytes = file.metadata().map_err(unreadable)?.len();
            let mut start = Vec::new();
            file.by_ref().take(9).read_to_end(&mut start).map_err(unreadable)?;
            file.rewind().map_err(unreadable)?;
            // The name helps where a header is too broken to be known.
            let named = path.extension().is_some_and(|e| e == "safetensors")
                && !start.is_empty()
                && !start.starts_with(b"\x93NUMPY");
            if named || safetensors::looks_like(&start) {
                let header = Header::read(&mut file, bytes)
                    .map_err(|error| Failure::Safetensors { name: name.clone(), error })?;
                return Ok(Input::of(name, header, Data::File(file), bits));
            }
        }
        let source = files::read(path)?;
        let name = source.name;
        if safetensors::looks_like(&source.bytes) {
            let header = Header::read(&mut source.bytes.as_slice(), source.bytes.len() as u64)
                .map_err(|error| Failure::Safetensors { name: name.clone(), error })?;
            return Ok(Input::of(name, header, Data::Memory(source.bytes), bits));
        }
        let array =
            npy::read_owned(source.bytes).map_err(|error| Failure::Npy { name: name.clone(), error })?;
        let dtype = match (array.kind, array.size) {
            (Kind::Float, 2) => Some(Dtype::Float16),
            (Kind::Float, 4) => Some(Dtype::Float32),
            (Kind::Float, _) => None,
            (_, size) => bits.map(Bits::dtype).filter(|d| d.bytes() == size),
        };
        if let Some(given) = bits.map(Bits::dtype).filter(|d| Some(*d) != dtype) {
            return Err(Failure::Cast {
                name,
                text: format!("--from {given} says what unsigned bits are, the array is {array}"),
                remedy: "leave --from out for a float array, else give the format whose bits the array holds",
            });
        }
        let kind = match array.kind {
            Kind::Float => "float",
            Kind::Unsigned => "uint",
            Kind::Signed => "int",
        };
        let tensor = Tensor {
            name: String::new(),
            spelled: format!("{kind}{}", array.size * 8),
            shape: array.shape.iter().map(|d| *d as u64).collect(),
            bytes: array.data.len() as u64,
            dtype,
            offset: 0,
        };
        Ok(Input { name, tensors: vec![tensor], header: None, data: Data::Memory(array.data) })
    }

    fn of(name: String, header: Header, data: Data, bits: Option<Bits>) -> Input {
        let tensors = header.entries.iter().map(|e| {
            let dtype = match e.dtype.as_str() {
                "F32" => Some(Dtype::Float32),
                "F16" => Some(Dtype::Float16),
                "BF16" => Some(Dtype::Bfloat16),
                "F8_E4M3" => Some(Dtype::Float8E4m3fn),
                "F8_E5M2" => Some(Dtype::Float8E5m2),
                "U16" => bits.map(Bits::dtype).filter(|d| d.bytes() == 2),
                "U32" => bits.map(Bits::dtype).filter(|d| d.bytes() == 4),
                _ => None,
            };
            Tensor {
                name: e.name.clone(),
                spelled: e.dtype.clone(),
                shape: e.shape.clone(),
                bytes: e.bytes,
                dtype,
                offset: e.offset,
            }
        });
        Input { name, tensors: tensors.collect(), header: Some(header), data }
    }

    /// The tensor of that index; an index is only ever made from the list itself.
    pub(super) fn tensor(&self, index: usize) -> Option<&Tensor> {
        self.tensors.get(index)
    }

    /// Where a tensor stands, for messages.
    pub(super) fn place(&self, index: usize) -> String {
        match self.tensor(index) {
            Some(t) if self.header.is_some() => format!("{}: tensor {:?}", self.name, t.name),
            _ => self.name.clone(),
        }
    }

    /// What is wrong with a tensor.
    pub(super) fn fail(&self, index: usize, text: impl Into<String>, remedy: &'static str) -> Failure {
        Failure::Cast { name: self.place(index), text: text.into(), remedy }
    }

    /// Refuses a pattern for a file that holds one nameless array.
    pub(super) fn check_pattern(&self, pattern: Option<&Pattern>) -> Result<(), Failure> {
        match pattern {
            Some(_) if self.header.is_none() => Err(Failure::usage(
                format!("--tensor picks tensors of a .safetensors file; {} holds one array", self.name),
                "leave --tensor out",
            )),
            Some(p) if !self.tensors.iter().any(|t| p.matches(&t.name)) => {
                let known: Vec<&str> = self.tensors.iter().take(5).map(|t| t.name.as_str()).collect();
                let more = if self.tensors.len() > known.len() { ", ..." } else { "" };
                Err(Failure::Cast {
                    name: self.name.clone(),
                    text: format!("no tensor is called {p}; there are {}{more}", known.join(", ")),
                    remedy: "* stands for any characters, ? for one, [ab] for either; quote the pattern",
                })
            }
            _ => Ok(()),
        }
    }

    /// The tensors to make blocks of. With a pattern these are all that it matches, and each must be able to; without
    /// one these are all that can, less the scales of FP8 tensors.
    pub(super) fn pick(&self, pattern: Option<&Pattern>) -> Result<(Vec<Picked>, Vec<Left>), Failure> {
        self.check_pattern(pattern)?;
        let scales: Vec<usize> = (0..self.tensors.len()).flat_map(|i| self.companions(i)).collect();
        let (mut picked, mut left) = (Vec::new(), Vec::new());
        let mut first = None;
        for (index, t) in self.tensors.iter().enumerate() {
            let chosen = pattern.map(|p| p.matches(&t.name));
            if chosen == Some(false) {
                left.push(Left { index, why: "not matched by --tensor".to_owned() });
                continue;
            }
            if chosen.is_none() && scales.contains(&index) {
                left.push(Left { index, why: "the scale of an FP8 tensor".to_owned() });
                continue;
            }
            match blocks(t) {
                Ok((dtype, rows, cols)) => picked.push(Picked { index, dtype, rows, cols }),
                Err((text, remedy)) if chosen == Some(true) => return Err(self.fail(index, text, remedy)),
                Err((why, remedy)) => {
                    first = first.or_else(|| Some(self.fail(index, why.clone(), remedy)));
                    left.push(Left { index, why });
                }
            }
        }
        match first {
            _ if !picked.is_empty() => Ok((picked, left)),
            Some(failure) => Err(failure),
            None => Err(Failure::Cast {
                name: self.name.clone(),
                text: "holds no tensor that can be quantized".to_owned(),
                remedy: "give a file with tensors of rank 2",
            }),
        }
    }

    /// The tensors that hold the scale of an FP8 tensor, by the names checkpoints use: NAME_scale, NAME_scale_inv and
    /// NAME.scale. Whatever the name, a value is a code times its scale.
    pub(super) fn companions(&self, index: usize) -> Vec<usize> {
        let Some(t) = self.tensor(index).filter(|t| t.spelled.starts_with("F8_E4M3")) else {
            return Vec::new();
        };
        let names = ["_scale", "_scale_inv", ".scale"].map(|end| format!("{}{end}", t.name));
        (0..self.tensors.len()).filter(|i| self.tensor(*i).is_some_and(|t| names.contains(&t.name))).collect()
    }

    /// Reads bytes of a tensor, from `from` on.
    pub(super) fn read(&mut self, index: usize, from: u64, into: &mut [u8]) -> Result<(), Failure> {
        let at = self.tensor(index).map_or(0, |t| t.offset) + from;
        let result = match &mut self.data {
            Data::File(file) => file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(into)),
            Data::Memory(bytes) => {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                let rest = bytes.get(at..).unwrap_or(&[]);
                rest.take(into.len() as u64).read_exact(into)
            }
        };
        result.map_err(|error| FileError::Unreadable { name: self.name.clone(), error }.into())
    }

    /// Reads elements of a picked tensor, from element `from` on, as float32.
    pub(super) fn floats(&mut self, picked: Picked, from: usize, into: &mut [f32]) -> Result<(), Failure> {
        let Picked { index, dtype, .. } = picked;
        let size = dtype.bytes();
        let mut piece = vec![0; PIECE.min(into.len() * size)];
        let mut at = from as u64 * size as u64;
        for out in into.chunks_mut(PIECE / size) {
            let bytes = piece.get_mut(..out.len() * size).unwrap_or_default();
            self.read(index, at, bytes)?;
            at += bytes.len() as u64;
            if dtype == Dtype::Float32 {
                // The same bits; no cast.
                for (to, from) in out.iter_mut().zip(bytes.as_chunks().0) {
                    *to = f32::from_le_bytes(*from);
                }
            } else {
                num::widen(dtype, bytes, out)
                    .map_err(|e| self.fail(index, e.to_string(), "check the file"))?;
            }
        }
        Ok(())
    }

    /// Reads whole rows of a picked tensor into `rows`.
    pub(super) fn rows(&mut self, picked: Picked, first: usize, rows: &mut Rows) -> Result<(), Failure> {
        let from = first * picked.cols;
        let elements = (picked.rows - first).min(rows.at_once) * picked.cols;
        if matches!(picked.dtype, Dtype::Bfloat16 | Dtype::Float16) {
            rows.halves.resize(elements * 2, 0);
            self.read(picked.index, from as u64 * 2, &mut rows.halves)
        } else {
            rows.floats.resize(elements, 0.0);
            self.floats(picked, from, &mut rows.floats)
        }
    }
}

/// Rows of a tensor as the quantizer takes them: 16-bit floats as they stand, everything else as float32.
pub(super) struct Rows {
    dtype: Dtype,
    /// Rows of a full piece.
    pub(super) at_once: usize,
    halves: Vec<u8>,
    floats: Vec<f32>,
}

impl Rows {
    pub(super) fn new(picked: Picked, at_once: usize) -> Self {
        Rows { dtype: picked.dtype, at_once, halves: Vec::new(), floats: Vec::new() }
    }

    pub(super) fn source(&self) -> Source<'_> {
        match self.dtype {
            Dtype::Bfloat16 => Source::Bfloat16(&self.halves),
            Dtype::Float16 => Source::Float16(&self.halves),
            _ => Source::Float32(&self.floats),
        }
    }
}

/// Type and shape of a tensor that divides into blocks, or why it does not.
fn blocks(t: &Tensor) -> Result<(Dtype, usize, usize), Reason> {
    let Some(dtype) = t.dtype else {
        return Err(match t.spelled.as_str() {
            "uint16" | "uint32" | "int16" | "int32" | "U16" | "U32" => (
                format!("elements are {}, and nothing says what their bits are", t.spelled),
                "give --from bfloat16, float16 or float32",
            ),
            other => (
                format!("elements of type {other} cannot be quantized"),
                "cast to float32, float16 or bfloat16 first",
            ),
        });
    };
    let [rows, cols] = t.shape.as_slice() else {
        return Err((
            format!("shape {:?} is not [P, F]", t.shape),
            "reshape to two dimensions, with the partitions first",
        ));
    };
    if !rows.is_multiple_of(8) {
        return Err((
            format!("{rows} rows of shape {:?} do not divide into blocks of 8 x 4", t.shape),
            "pad the rows to a multiple of 8",
        ));
    }
    if !cols.is_multiple_of(4) {
        return Err((
            format!("rows of {cols} elements of shape {:?} do not divide into blocks of 8 x 4", t.shape),
            "pad each row to a multiple of 4",
        ));
    }
    match (usize::try_from(*rows), usize::try_from(*cols)) {
        (Ok(rows), Ok(cols)) => Ok((dtype, rows, cols)),
        _ => Err((format!("shape {:?} does not fit in memory", t.shape), "split the tensor")),
    }
}
