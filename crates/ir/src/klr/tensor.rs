//! Tensors of a kernel and the ways in which an operator accesses them.

use super::error::KlrError;
use super::schema;
use super::value::Value;
use super::view::{FromValue, choice, field, node_of, payload, record};

choice! {
    /// Memory that an address lies in.
    Memory from Memory {
        Hbm = "hbm", Sbuf = "sbuf", Psum = "psum", Reg = "reg", SharedHbm = "shared_hbm",
        PrivateHbm = "private_hbm",
    }
}

choice! {
    /// Element type.
    Dtype from Dtype {
        Bfloat16 = "bfloat16", Float8e3 = "float8e3", Float8e4 = "float8e4", Float8e5 = "float8e5",
        Float16 = "float16", Float32 = "float32", Float32r = "float32r", Int8 = "int8", Int16 = "int16",
        Int64 = "int64", Int32 = "int32", Uint8 = "uint8", Uint16 = "uint16", Uint32 = "uint32",
        Uint64 = "uint64", Float8E4m3 = "float8_e4m3", Float8E4m3fn = "float8_e4m3fn",
        Float8E5m2X4 = "float8_e5m2_x4", Float8E4m3fnX4 = "float8_e4m3fn_x4",
        Float4E2m1fnX4 = "float4_e2m1fn_x4",
    }
}

record! {
    /// Extents of a tensor.
    Shape from Shape {
        /// Partitions.
        par_dim: u64 = "parDim",
        /// Extents along the free dimension, outermost first.
        free_dims: Vec<u64> = "freeDims",
    }
}

record! {
    /// Where a tensor lives. Tensors with the same name and memory are one buffer.
    Address from Address {
        /// Buffer name.
        name: String = "name",
        /// Memory.
        memory: Memory = "memory",
        /// Partitions of the buffer.
        par_size: u64 = "parSize",
        /// Bytes of the buffer in a partition.
        free_size: u64 = "freeSize",
        /// First partition, if placed.
        par_offset: Option<u64> = "parOffset",
        /// Byte in the partition, if placed.
        free_offset: Option<u64> = "freeOffset",
        /// Whether the cores share the buffer.
        is_shared: bool = "isShared",
    }
}

record! {
    /// A named tensor.
    TensorName from TensorName {
        /// Tensor name.
        name: String = "name",
        /// Element type.
        dtype: Dtype = "dtype",
        /// Extents.
        shape: Shape = "shape",
        /// Buffer.
        address: Address = "address",
        /// Elements in a partition of the row-major array that patterns index.
        free_elements: u64 = "freeElements",
        /// Whether the compiler may rotate the buffer between iterations.
        address_rotation: bool = "addressRotation",
    }
}

record! {
    /// A strided range, `l` included, `u` excluded.
    Slice from Slice {
        /// First index.
        l: u64 = "l",
        /// Bound.
        u: u64 = "u",
        /// Step.
        step: i64 = "step",
    }
}

/// Index of one dimension.
#[derive(Debug, Clone, PartialEq)]
pub enum Index {
    /// One coordinate: the dimension has extent 1 in the access.
    Coord(u64),
    /// A range.
    Slice(Slice),
}

impl FromValue for Index {
    fn from_value(value: &Value) -> Result<Self, KlrError> {
        let node = node_of(value, &schema::Index)?;
        match node.ctor.name {
            "coord" => payload(node, value.offset).map(Self::Coord),
            _ => payload(node, value.offset).map(Self::Slice),
        }
    }
}

record! {
    /// An access by one index a dimension, partitions first.
    AccessBasic from AccessBasic {
        /// Tensor.
        tensor: TensorName = "tensor",
        /// Indexes.
        indexes: Vec<Index> = "indexes",
    }
}

record! {
    /// One dimension of a pattern.
    ApPair from APPair {
        /// Distance between neighbours, in elements.
        step: i64 = "step",
        /// Number of elements.
        num: u64 = "num",
        /// Start in this dimension, in steps. In a [`BirAccessPattern`] it is folded into the offset of the
        /// whole already and must not be added again.
        offset: u64 = "offset",
    }
}

record! {
    /// An access by strides, with the start given per partition and free dimension.
    AccessPattern from AccessPattern {
        /// Tensor.
        tensor: TensorName = "tensor",
        /// Partitions of the access.
        par_num: u64 = "parNum",
        /// Dimensions, partitions first.
        pattern: Vec<ApPair> = "pattern",
        /// First partition, unless the partition pair says it.
        par_offset: u64 = "parOffset",
        /// Plain sum of the starts in the pairs; the first element of a partition if the pairs have none.
        free_offset: u64 = "freeOffset",
        /// Dimensions that a coordinate fixed.
        fixed_axis: Vec<u64> = "fixedAxis",
    }
}

/// An offset known only when the kernel runs.
#[derive(Debug, Clone, PartialEq)]
pub enum ScalarOffset {
    /// In a named register.
    Reg(String),
    /// In memory.
    Acc(Box<Access>),
}

impl FromValue for ScalarOffset {
    fn from_value(value: &Value) -> Result<Self, KlrError> {
        let node = node_of(value, &schema::ScalarOffset)?;
        match node.ctor.name {
            "reg" => payload(node, value.offset).map(Self::Reg),
            _ => payload(node, value.offset).map(Self::Acc),
        }
    }
}

record! {
    /// An access by strides over the tensor as one row-major array `[parDim, freeElements]`:
    /// element index = offset + sum of `i_k * step_k`. The form the compiler writes.
    BirAccessPattern from BirAccessPattern {
        /// Tensor.
        tensor: TensorName = "tensor",
        /// Index of the first element.
        offset: u64 = "offset",
        /// Dimensions, partitions first.
        pattern: Vec<ApPair> = "pattern",
        /// Offset from a register or from memory.
        scalar_offset: Option<ScalarOffset> = "scalarOffset",
        /// Offsets from a tensor.
        vector_offset: Option<Box<Access>> = "vectorOffset",
        /// Dimension that the dynamic offsets apply to.
        indirect_dim: i64 = "indirectDim",
        /// Element type that the access sees, if another.
        dtype_override: Option<Dtype> = "dtypeOverride",
    }
}

/// An access to a named tensor.
#[derive(Debug, Clone, PartialEq)]
pub enum Access {
    /// All of it.
    Simple(TensorName),
    /// By index.
    Basic(AccessBasic),
    /// By strides with split offsets.
    Pattern(AccessPattern),
    /// By strides over the whole array.
    BirPattern(BirAccessPattern),
}

impl Access {
    /// The tensor.
    pub fn tensor(&self) -> &TensorName {
        match self {
            Self::Simple(tensor) => tensor,
            Self::Basic(access) => &access.tensor,
            Self::Pattern(access) => &access.tensor,
            Self::BirPattern(access) => &access.tensor,
        }
    }
}

impl FromValue for Access {
    fn from_value(value: &Value) -> Result<Self, KlrError> {
        let node = node_of(value, &schema::Access)?;
        match node.ctor.name {
            "simple" => payload(node, value.offset).map(Self::Simple),
            "basic" => payload(node, value.offset).map(Self::Basic),
            "pattern" => payload(node, value.offset).map(Self::Pattern),
            _ => payload(node, value.offset).map(Self::BirPattern),
        }
    }
}

record! {
    /// A view of SBUF or PSUM by address.
    TensorSram from TensorSram {
        /// Name.
        name: String = "name",
        /// Element type.
        dtype: Dtype = "dtype",
        /// Partitions.
        par_num: u64 = "parNum",
        /// Free dimensions; steps in elements.
        pattern: Vec<ApPair> = "pattern",
        /// First partition.
        par_offset: u64 = "parOffset",
        /// Byte in the partition.
        free_offset: u64 = "freeOffset",
    }
}

record! {
    /// A view of device memory by address.
    TensorHbm from TensorHbm {
        /// Name.
        name: String = "name",
        /// Element type.
        dtype: Dtype = "dtype",
        /// Byte address.
        address: u64 = "address",
        /// Dimensions; steps in elements.
        dims: Vec<ApPair> = "dims",
    }
}

/// An operand.
#[derive(Debug, Clone, PartialEq)]
pub enum TensorRef {
    /// Access to a named tensor.
    Abstract(Access),
    /// View of SBUF.
    Sbuf(TensorSram),
    /// View of PSUM.
    Psum(TensorSram),
    /// View of device memory.
    Hbm(TensorHbm),
    /// A register.
    Reg(u64),
}

impl FromValue for TensorRef {
    fn from_value(value: &Value) -> Result<Self, KlrError> {
        let node = node_of(value, &schema::TensorRef)?;
        match node.ctor.name {
            "abstract" => payload(node, value.offset).map(Self::Abstract),
            "sbuf" => payload(node, value.offset).map(Self::Sbuf),
            "psum" => payload(node, value.offset).map(Self::Psum),
            "hbm" => payload(node, value.offset).map(Self::Hbm),
            _ => payload(node, value.offset).map(Self::Reg),
        }
    }
}
