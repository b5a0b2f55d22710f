//! The one description of every bundle, and the types its rows are made of.
//!
//! Rows carry data; the codec, the text, the checks and the manual are functions over them.

mod bundles;
mod emit;
mod integrity;
mod row;
mod wire;

pub use bundles::{
    BUNDLES, Inst, LdWeightMx, LoadStationary, LoadTagsSparse, Matmul, MatmultMx, MatmultSparse, QuantizeMx,
};
pub use row::{
    BundleInfo, Confidence, Engine, Field, Generations, Kind, Layout, Layouts, Reserved, Shape, Span,
};
pub use wire::{Bundle, Value, ValueMut};

/// Byte 1 of every bundle: its length in 32-bit words.
pub const LENGTH_WORDS: u8 = 0x10;
