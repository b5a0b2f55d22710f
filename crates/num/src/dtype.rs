//! The 20 element types and everything fixed about each, as one table.

use std::fmt;
use std::str::FromStr;

use crate::NumError;

/// An element type of the tensor engine. The discriminant is its ordinal in programs.
///
/// An `X4` type is a container of four logical elements; every other type holds one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Dtype {
    /// 8-bit unsigned integer.
    Uint8 = 0,
    /// 8-bit two's complement integer.
    Int8 = 1,
    /// Four 4-bit floats (1 sign, 2 exponent, 1 mantissa) in 2 bytes, lane 0 in bits 0..4 (D-06).
    Float4E2m1fnX4 = 2,
    /// 8-bit float, 3 exponent and 4 mantissa bits, with infinities; largest finite value 15.5.
    Float8E3m4 = 3,
    /// 8-bit float, 4 exponent and 3 mantissa bits, with infinities; largest finite value 240.
    Float8E4m3 = 4,
    /// OCP 8-bit float without infinities, one NaN code a sign; largest finite value 448.
    Float8E4m3fn = 5,
    /// Unsigned power of two with bias 127; code `0xFF` is NaN. The block scale of MX tensors.
    Float8E8m0fnu = 6,
    /// OCP 8-bit float, 5 exponent and 2 mantissa bits, with infinities; largest finite value 57344.
    Float8E5m2 = 7,
    /// Four [`Dtype::Float8E4m3fn`] in 4 bytes, lane 0 at the lowest address.
    Float8E4m3fnX4 = 8,
    /// Four [`Dtype::Float8E5m2`] in 4 bytes, lane 0 at the lowest address.
    Float8E5m2X4 = 9,
    /// 16-bit unsigned integer.
    Uint16 = 10,
    /// 16-bit two's complement integer.
    Int16 = 11,
    /// The upper half of a [`Dtype::Float32`].
    Bfloat16 = 12,
    /// IEEE 754 binary16.
    Float16 = 13,
    /// 32-bit unsigned integer.
    Uint32 = 14,
    /// 32-bit two's complement integer.
    Int32 = 15,
    /// IEEE 754 binary32.
    Float32 = 16,
    /// Reduced float32: 8 exponent and 10 mantissa bits in a 4-byte container (D-04).
    Float32r = 17,
    /// 64-bit unsigned integer; never an operand of the tensor engine.
    Uint64 = 18,
    /// 64-bit two's complement integer; never an operand of the tensor engine.
    Int64 = 19,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Integer,
    Float,
    /// A bare exponent: a number, but nothing the array multiplies.
    Scale,
}

struct Row {
    dtype: Dtype,
    name: &'static str,
    bytes: u8,
    lanes: u8,
    class: Class,
    emax: Option<u8>,
}

const fn row(dtype: Dtype, name: &'static str, bytes: u8, lanes: u8, class: Class, emax: Option<u8>) -> Row {
    Row { dtype, name, bytes, lanes, class, emax }
}

/// One row an element type, in ordinal order.
const TABLE: [Row; 20] = {
    use Class::{Float, Integer, Scale};
    use Dtype as D;
    [
        row(D::Uint8, "uint8", 1, 1, Integer, None),
        row(D::Int8, "int8", 1, 1, Integer, None),
        row(D::Float4E2m1fnX4, "float4_e2m1fn_x4", 2, 4, Float, Some(2)),
        row(D::Float8E3m4, "float8_e3m4", 1, 1, Float, None),
        row(D::Float8E4m3, "float8_e4m3", 1, 1, Float, None),
        row(D::Float8E4m3fn, "float8_e4m3fn", 1, 1, Float, Some(8)),
        row(D::Float8E8m0fnu, "float8_e8m0fnu", 1, 1, Scale, None),
        row(D::Float8E5m2, "float8_e5m2", 1, 1, Float, Some(15)),
        row(D::Float8E4m3fnX4, "float8_e4m3fn_x4", 4, 4, Float, Some(8)),
        row(D::Float8E5m2X4, "float8_e5m2_x4", 4, 4, Float, Some(15)),
        row(D::Uint16, "uint16", 2, 1, Integer, None),
        row(D::Int16, "int16", 2, 1, Integer, None),
        row(D::Bfloat16, "bfloat16", 2, 1, Float, None),
        row(D::Float16, "float16", 2, 1, Float, None),
        row(D::Uint32, "uint32", 4, 1, Integer, None),
        row(D::Int32, "int32", 4, 1, Integer, None),
        row(D::Float32, "float32", 4, 1, Float, None),
        row(D::Float32r, "float32r", 4, 1, Float, None),
        row(D::Uint64, "uint64", 8, 1, Integer, None),
        row(D::Int64, "int64", 8, 1, Integer, None),
    ]
};

// A row out of place would answer for another type, so the order is checked where it is written.
const _: () = {
    let mut i = 0;
    while i < TABLE.len() {
        assert!(TABLE[i].dtype as usize == i, "rows stand in ordinal order");
        i += 1;
    }
};

impl Dtype {
    /// Every type, in ordinal order.
    pub const ALL: [Dtype; 20] = {
        let mut all = [Dtype::Uint8; 20];
        let mut i = 0;
        while i < all.len() {
            all[i] = TABLE[i].dtype;
            i += 1;
        }
        all
    };

    const fn row(self) -> &'static Row {
        // In bounds: the discriminants are 0..20, checked against the table above.
        &TABLE[self as usize]
    }

    /// The type's number in programs, 0..=19.
    pub const fn ordinal(self) -> u8 {
        self as u8
    }

    /// The type with this ordinal, if there is one.
    pub fn from_ordinal(ordinal: u8) -> Option<Self> {
        Self::ALL.get(usize::from(ordinal)).copied()
    }

    /// The name used in programs and messages, such as `bfloat16`.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The type with this exact name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.dtype)
    }

    /// Bytes of one stored container: 1, 2, 4 or 8.
    pub const fn bytes(self) -> usize {
        self.row().bytes as usize
    }

    /// Logical elements in one container: 4 for the `x4` types, otherwise 1.
    pub const fn lanes(self) -> usize {
        self.row().lanes as usize
    }

    /// Whether one container holds four logical elements.
    pub const fn is_x4(self) -> bool {
        self.lanes() == 4
    }

    /// Whether the tensor engine takes this type as a floating-point operand.
    ///
    /// True of the FP8 types, bfloat16, float16, float32, float32r and the `x4` types;
    /// false of [`Dtype::Float8E8m0fnu`], which only ever scales.
    pub const fn is_float(self) -> bool {
        matches!(self.row().class, Class::Float)
    }

    /// Whether the type is a signed or unsigned integer.
    pub const fn is_integer(self) -> bool {
        matches!(self.row().class, Class::Integer)
    }

    /// Whether the type is one 8-bit float operand: e3m4, e4m3, e4m3fn or e5m2.
    pub const fn is_fp8(self) -> bool {
        self.is_float() && self.row().bytes == 1
    }

    /// Exponent of the largest value the type can hold in an MX block; `None` when it forms no MX block.
    pub const fn emax(self) -> Option<u8> {
        self.row().emax
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Dtype {
    type Err = NumError;

    fn from_str(name: &str) -> Result<Self, NumError> {
        Self::from_name(name).ok_or_else(|| NumError::UnknownDtype { name: name.to_owned() })
    }
}
