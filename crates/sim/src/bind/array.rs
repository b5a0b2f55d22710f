//! Dense arrays as files hold them.

use std::fmt;

use hadal_num::{Dtype, NumError, Overflow};

use super::BindError;

/// Element type of an [`Array`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ArrayDtype {
    F16,
    F32,
    F64,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
}

impl ArrayDtype {
    /// Bytes of one element.
    pub fn bytes(self) -> usize {
        match self {
            ArrayDtype::U8 | ArrayDtype::I8 => 1,
            ArrayDtype::F16 | ArrayDtype::U16 | ArrayDtype::I16 => 2,
            ArrayDtype::F32 | ArrayDtype::U32 | ArrayDtype::I32 => 4,
            ArrayDtype::F64 | ArrayDtype::U64 | ArrayDtype::I64 => 8,
        }
    }

    /// Whether the type is a float.
    pub fn is_float(self) -> bool {
        matches!(self, ArrayDtype::F16 | ArrayDtype::F32 | ArrayDtype::F64)
    }

    /// The unsigned type of that many bytes.
    pub fn unsigned(bytes: usize) -> Option<ArrayDtype> {
        Some(match bytes {
            1 => ArrayDtype::U8,
            2 => ArrayDtype::U16,
            4 => ArrayDtype::U32,
            8 => ArrayDtype::U64,
            _ => return None,
        })
    }

    /// Whether the bits of this type are the bits of `dtype`'s container: an unsigned array of its size, or
    /// a signed one when the type is a signed integer.
    pub fn is_bits_of(self, dtype: Dtype) -> bool {
        let signed = matches!(self, ArrayDtype::I8 | ArrayDtype::I16 | ArrayDtype::I32 | ArrayDtype::I64);
        self.bytes() == dtype.bytes() && !self.is_float() && (!signed || crate::kernel::is_signed(dtype))
    }
}

impl fmt::Display for ArrayDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ArrayDtype::F16 => "float16",
            ArrayDtype::F32 => "float32",
            ArrayDtype::F64 => "float64",
            ArrayDtype::U8 => "uint8",
            ArrayDtype::U16 => "uint16",
            ArrayDtype::U32 => "uint32",
            ArrayDtype::U64 => "uint64",
            ArrayDtype::I8 => "int8",
            ArrayDtype::I16 => "int16",
            ArrayDtype::I32 => "int32",
            ArrayDtype::I64 => "int64",
        })
    }
}

/// A dense array: row-major, little-endian.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Element type.
    pub dtype: ArrayDtype,
    /// Shape, outermost dimension first.
    pub shape: Vec<usize>,
    /// Elements, little-endian, last dimension fastest.
    pub data: Vec<u8>,
}

impl Array {
    /// An array of float32.
    pub fn from_f32(shape: Vec<usize>, values: &[f32]) -> Array {
        Array { dtype: ArrayDtype::F32, shape, data: values.iter().flat_map(|v| v.to_le_bytes()).collect() }
    }

    /// Number of elements the shape asks for (saturating).
    pub fn len(&self) -> usize {
        self.shape.iter().fold(1usize, |n, d| n.saturating_mul(*d))
    }

    /// Whether the shape has no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks that the data is the shape's.
    ///
    /// # Errors
    /// [`BindError::Data`].
    pub fn check(&self) -> Result<(), BindError> {
        let want = self.len().saturating_mul(self.dtype.bytes());
        if self.data.len() == want {
            return Ok(());
        }
        let (shape, dtype, got) = (self.shape.clone(), self.dtype, self.data.len());
        Err(BindError::Data { shape, dtype, got, want })
    }

    /// The elements in containers of another format, each rounded once from the array's own type. `None` for
    /// integer arrays.
    pub(crate) fn narrow(&self, dtype: Dtype, overflow: Overflow) -> Option<Result<Vec<u8>, NumError>> {
        let mut out = vec![0; self.data.len() / self.dtype.bytes() / dtype.lanes() * dtype.bytes()];
        let done = if self.dtype == ArrayDtype::F64 {
            let values: Vec<f64> = self.data.as_chunks().0.iter().map(|c| f64::from_le_bytes(*c)).collect();
            hadal_num::narrow_f64(dtype, &values, overflow, &mut out)
        } else {
            hadal_num::narrow(dtype, &self.to_f32()?, overflow, &mut out)
        };
        Some(done.map(|()| out))
    }

    /// The elements as float32, rounded to nearest. `None` for integer arrays.
    pub fn to_f32(&self) -> Option<Vec<f32>> {
        Some(match self.dtype {
            ArrayDtype::F16 => {
                let mut out = vec![0.0; self.data.len() / 2];
                hadal_num::widen(Dtype::Float16, &self.data, &mut out).ok()?;
                out
            }
            ArrayDtype::F32 => self.data.as_chunks().0.iter().map(|c| f32::from_le_bytes(*c)).collect(),
            ArrayDtype::F64 => {
                self.data.as_chunks().0.iter().map(|c| f64::from_le_bytes(*c) as f32).collect()
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Array {
        let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Array { dtype: ArrayDtype::F64, shape: vec![values.len()], data }
    }

    #[test]
    fn one_rounding_from_float64() {
        // Just above the tie between 1 and the next float16: nearest is up, while rounding to float32 first
        // loses the excess and ties to even, down. And just below the tie.
        let tie = 1.0 + 2f64.powi(-11);
        let x = of(&[tie + 2f64.powi(-40), tie - 2f64.powi(-40)]);
        let got = x.narrow(Dtype::Float16, Overflow::Ieee).unwrap().unwrap();
        assert_eq!(got, [0x01, 0x3C, 0x00, 0x3C]);
        assert_eq!(x.to_f32().unwrap(), [1.0 + 2f32.powi(-11); 2]);
    }

    #[test]
    fn wide_integers_keep_what_float32_cannot() {
        let got =
            of(&[16_777_217.0, -2_147_483_645.0]).narrow(Dtype::Int32, Overflow::Ieee).unwrap().unwrap();
        assert_eq!(got, [16_777_217_i32.to_le_bytes(), (-2_147_483_645_i32).to_le_bytes()].concat());
    }
}
