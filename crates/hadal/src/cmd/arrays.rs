//! Arrays between files and the simulator.

use hadal::npy::{Kind, Npy};
use hadal::num::Dtype;
use hadal::sim::bind::{Array, ArrayDtype};

/// An array read from a file, as the simulator takes it.
pub(crate) fn from_npy(npy: Npy) -> Array {
    let dtype = match (npy.kind, npy.size) {
        (Kind::Float, 2) => ArrayDtype::F16,
        (Kind::Float, 8) => ArrayDtype::F64,
        (Kind::Float, _) => ArrayDtype::F32,
        (Kind::Unsigned, 1) => ArrayDtype::U8,
        (Kind::Unsigned, 2) => ArrayDtype::U16,
        (Kind::Unsigned, 8) => ArrayDtype::U64,
        (Kind::Unsigned, _) => ArrayDtype::U32,
        (Kind::Signed, 1) => ArrayDtype::I8,
        (Kind::Signed, 2) => ArrayDtype::I16,
        (Kind::Signed, 8) => ArrayDtype::I64,
        (Kind::Signed, _) => ArrayDtype::I32,
    };
    Array { dtype, shape: npy.shape, data: npy.data }
}

/// An array of the simulator as a file holds it.
pub(crate) fn to_npy(array: &Array) -> Npy {
    let kind = match array.dtype {
        ArrayDtype::F16 | ArrayDtype::F32 | ArrayDtype::F64 => Kind::Float,
        ArrayDtype::U8 | ArrayDtype::U16 | ArrayDtype::U32 | ArrayDtype::U64 => Kind::Unsigned,
        ArrayDtype::I8 | ArrayDtype::I16 | ArrayDtype::I32 | ArrayDtype::I64 => Kind::Signed,
    };
    Npy { kind, size: array.dtype.bytes(), shape: array.shape.clone(), data: array.data.clone() }
}

/// Bit patterns as numpy's own type where it has one: float32 and the integers. Narrow floats stay codes.
pub(crate) fn native(bits: &Array, dtype: Dtype) -> Npy {
    let kind = match dtype {
        Dtype::Float32 | Dtype::Float32r => Kind::Float,
        Dtype::Int8 | Dtype::Int16 | Dtype::Int32 | Dtype::Int64 => Kind::Signed,
        _ => Kind::Unsigned,
    };
    Npy { kind, ..to_npy(bits) }
}
