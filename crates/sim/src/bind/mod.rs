//! Arrays in and out of a program's memory.
//!
//! [`inputs`] lists what a program reads and nothing in it writes; [`fill`] gives each a value, from the
//! arrays given or from a seed; [`dump`] reads any location back.

mod array;
mod dump;
mod fill;
mod inputs;
mod purpose;
mod random;

use thiserror::Error;

pub use array::{Array, ArrayDtype};
pub use dump::{dump, unwritten, widen};
pub(crate) use fill::known;
pub use fill::{fill, fill_where};
pub use inputs::{InputRole, InputSpec, element_type, inputs, module_inputs, overlapping, shape_of};
pub use purpose::Purpose;

use crate::error::Fault;

/// An array that does not fit the location it is for.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum BindError {
    /// No location of that name.
    #[error("X-401: the program has no location `{name}`; it has {known}")]
    UnknownName {
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Another shape than the location's.
    #[error("X-402: `{name}` has shape {want:?}, the array given has {got:?}; reshape the array")]
    Shape {
        /// The location.
        name: String,
        /// The array's shape.
        got: Vec<usize>,
        /// The location's shape.
        want: Vec<usize>,
    },
    /// An element type that the location does not take.
    #[error(
        "X-403: `{name}` holds {want}; an array of {got} is neither float nor an unsigned array of its container's size"
    )]
    Type {
        /// The location.
        name: String,
        /// The array's type.
        got: ArrayDtype,
        /// The location's element type.
        want: hadal_num::Dtype,
    },
    /// An array whose bytes are not its shape's.
    #[error("X-404: array of shape {shape:?} and type {dtype} has {got} bytes of data, needs {want}")]
    Data {
        /// Its shape.
        shape: Vec<usize>,
        /// Its type.
        dtype: ArrayDtype,
        /// Bytes there are.
        got: usize,
        /// Bytes the shape needs.
        want: usize,
    },
    /// A location without an address.
    #[error("X-405: location `{name}` has no address; verify the program first")]
    Unplaced {
        /// The location.
        name: String,
    },
    /// The location's memory could not be made or reached.
    #[error("{code}: {fault}; {remedy}", code = .fault.code(), remedy = .fault.remedy())]
    Memory {
        /// What is wrong.
        fault: Fault,
    },
}

impl From<Fault> for BindError {
    fn from(fault: Fault) -> Self {
        BindError::Memory { fault }
    }
}

impl BindError {
    /// Code that stays the same between versions.
    pub fn code(&self) -> &'static str {
        match self {
            BindError::UnknownName { .. } => "X-401",
            BindError::Shape { .. } => "X-402",
            BindError::Type { .. } => "X-403",
            BindError::Data { .. } => "X-404",
            BindError::Unplaced { .. } => "X-405",
            BindError::Memory { fault } => fault.code(),
        }
    }
}
