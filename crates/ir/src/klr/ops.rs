//! The operators that are lowered, with their operands; every other one is carried as read.

use super::error::KlrError;
use super::schema;
use super::tensor::{ApPair, Dtype, TensorRef};
use super::value::{Kind, Value};
use super::view::{FromValue, choice, field, node_of, payload, record};

choice! {
    /// Engine that an operator is assigned to.
    Engine from Engine {
        Unassigned = "unassigned", Act = "act", Dma = "dma", Dve = "dve", Pe = "pe", Pool = "pool", Sp = "sp",
    }
}

choice! {
    /// Performance mode of a matmul.
    PerfMode from MatmulPerfMode {
        None = "None", DoubleRow = "DoubleRow", DoubleRowSwInterleave = "DoubleRowSwInterleave",
    }
}

choice! {
    /// What a DMA does with the old destination.
    DgeComputeOp from DgeComputeOp { None = "none", Add = "add", }
}

choice! {
    /// Elementwise operation.
    AluOp from AluOp {
        Abs = "abs", Add = "add", ArithShiftLeft = "arith_shift_left", ArithShiftRight = "arith_shift_right",
        Average = "average", BitwiseAnd = "bitwise_and", BitwiseNot = "bitwise_not", BitwiseOr = "bitwise_or",
        BitwiseXor = "bitwise_xor", Bypass = "bypass", Divide = "divide", IsEqual = "is_equal", IsGe = "is_ge",
        IsGt = "is_gt", IsLe = "is_le", IsLt = "is_lt", LogicalAnd = "logical_and", LogicalOr = "logical_or",
        LogicalShiftLeft = "logical_shift_left", LogicalShiftRight = "logical_shift_right",
        LogicalXor = "logical_xor", Max = "max", Min = "min", Mod = "mod", Mult = "mult",
        NotEqual = "not_equal", Pow = "pow", Rsqrt = "rsqrt", Subtract = "subtract",
    }
}

choice! {
    /// How many free dimensions an operator covers.
    TensorSubDim from TensorSubDim { X = "X", Xy = "XY", Xyz = "XYZ", Xyzw = "XYZW", }
}

/// What a DMA does with an index outside the tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DmaBounds {
    /// Leaves the element out.
    Skip,
    /// Faults.
    Error,
    /// As a register says.
    Reg(u64),
}

impl FromValue for DmaBounds {
    fn from_value(value: &Value) -> Result<Self, KlrError> {
        let node = node_of(value, &schema::DmaBounds)?;
        match node.ctor.name {
            "skip" => Ok(Self::Skip),
            "error" => Ok(Self::Error),
            _ => payload(node, value.offset).map(Self::Reg),
        }
    }
}

/// A scalar operand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Immediate {
    /// In a register.
    Reg(u64),
    /// Behind a pointer.
    Pointer,
    /// Integer.
    Int32(i64),
    /// Float.
    Float32(f64),
}

impl FromValue for Immediate {
    fn from_value(value: &Value) -> Result<Self, KlrError> {
        let node = node_of(value, &schema::Immediate)?;
        match node.ctor.name {
            "reg" => payload(node, value.offset).map(Self::Reg),
            "pointer" => Ok(Self::Pointer),
            "int32" => payload(node, value.offset).map(Self::Int32),
            _ => payload(node, value.offset).map(Self::Float32),
        }
    }
}

record! {
    /// `dst = stationary.T @ moving`; program order decides whether it overwrites or adds.
    NcMatMul from NcMatMul {
        /// Destination, PSUM.
        dst: TensorRef = "dst",
        /// Stationary operand (the weights).
        stationary: TensorRef = "stationary",
        /// Moving operand (the ifmap).
        moving: TensorRef = "moving",
        /// The stationary operand holds ones and zeros only.
        is_stationary_one_zero: bool = "isStationaryOneZero",
        /// The moving operand holds ones and zeros only.
        is_moving_one_zero: bool = "isMovingZero",
        /// Transpose mode.
        is_transpose: bool = "isTranspose",
        /// Row and column of the tile; empty: not given.
        tile_position: Vec<u64> = "tilePosition",
        /// Rows and columns of the tile; empty: not given.
        tile_size: Vec<u64> = "tileSize",
        /// Performance mode.
        perf_mode: PerfMode = "perfMode",
    }
}

record! {
    /// Matmul of MX operands.
    MatMulMx from MatMulMX {
        /// Destination, PSUM.
        dst: TensorRef = "dst",
        /// Stationary operand.
        stationary: TensorRef = "stationary",
        /// Moving operand.
        moving: TensorRef = "moving",
        /// Block scales of the stationary operand.
        stationary_scale: TensorRef = "stationaryScale",
        /// Block scales of the moving operand.
        moving_scale: TensorRef = "movingScale",
        /// Row and column of the tile.
        tile_position: Option<Vec<u64>> = "tilePosition",
        /// Rows and columns of the tile.
        tile_size: Option<Vec<u64>> = "tileSize",
    }
}

record! {
    /// Quantizes to MX data and block scales.
    QuantizeMx from QuantizeMX {
        /// Data.
        dst: TensorRef = "dst",
        /// Source.
        src: TensorRef = "src",
        /// Block scales.
        dst_scale: TensorRef = "dstScale",
    }
}

record! {
    /// DMA copy with queue settings.
    NcDmaCopy from NcDmaCopy {
        /// Destination.
        dst: TensorRef = "dst",
        /// Source.
        src: TensorRef = "src",
        /// Combination with the old destination.
        compute_op: DgeComputeOp = "compute_op",
        /// Treatment of indexes outside the tensor.
        oob_mode: DmaBounds = "oobMode",
        /// Descriptor generation mode.
        dge_mode: u64 = "dgeMode",
        /// Promise that no destination element is written twice.
        unique_indices: bool = "uniqueIndices",
        /// Queue priority; none when the dialect lacks the field.
        priority: Option<u64> = "priority",
        /// Engine; `unassigned` when the dialect lacks the field.
        engine: Engine = "engine",
    }
}

record! {
    /// DMA copy.
    DmaCopy from DmaCopy {
        /// Destination.
        dst: TensorRef = "dst",
        /// Source.
        src: TensorRef = "src",
        /// Combination with the old destination.
        compute_op: DgeComputeOp = "compute_op",
        /// Treatment of destination indexes outside the tensor.
        dst_bounds_check: DmaBounds = "dstBoundsCheck",
        /// Treatment of source indexes outside the tensor.
        src_bounds_check: DmaBounds = "srcBoundsCheck",
    }
}

record! {
    /// Copy between SBUF and PSUM with conversion.
    NcCopy from NcCopy {
        /// Destination.
        dst: TensorRef = "dst",
        /// Source.
        src: TensorRef = "src",
        /// Type of the result.
        dtype: Option<Dtype> = "dtype",
        /// Engine.
        engine: Engine = "engine",
    }
}

record! {
    /// Copy, the earlier form.
    Copy from Copy {
        /// Destination.
        dst: TensorRef = "dst",
        /// Source.
        src: TensorRef = "src",
        /// Dimensions covered.
        op_dim: Option<TensorSubDim> = "opDim",
    }
}

record! {
    /// Fills a tensor with one value.
    MemSet from MemSet {
        /// Destination.
        dst: TensorRef = "dst",
        /// Value.
        value: Immediate = "value",
        /// Type of the result.
        dtype: Dtype = "dtype",
        /// Engine.
        engine: Engine = "engine",
    }
}

record! {
    /// An affine function of partition and free indexes:
    /// offset + partition * channelMultiplier + sum of `i_k * step_k`.
    DataPattern from DataPattern {
        /// Constant.
        offset: i64 = "offset",
        /// Free dimensions.
        pattern: Vec<ApPair> = "pattern",
        /// Factor of the partition index.
        channel_multiplier: i64 = "channelMultiplier",
    }
}

record! {
    /// Keeps elements where the affine value compares true with 0, replaces the others.
    NcAffineSelect from NcAffineSelect {
        /// Destination.
        dst: TensorRef = "dst",
        /// Affine function.
        pred: DataPattern = "pred",
        /// Elements kept.
        on_true_tile: TensorRef = "onTrueTile",
        /// Value of the others.
        on_false_value: Immediate = "onFalseValue",
        /// Type of the result.
        dtype: Option<Dtype> = "dtype",
        /// Comparison.
        cmp_op: AluOp = "cmpOp",
    }
}

record! {
    /// Elementwise operation on two tensors.
    TensorTensor from TensorTensor {
        /// Destination.
        dst: TensorRef = "dst",
        /// First operand.
        src0: TensorRef = "src0",
        /// Second operand.
        src1: TensorRef = "src1",
        /// Operation.
        op: AluOp = "op",
        /// Type of the result.
        dtype: Option<Dtype> = "dtype",
        /// Engine.
        engine: Engine = "engine",
    }
}

record! {
    /// Transpose on a vector engine, in blocks of 32 x 32.
    Transpose from Transpose {
        /// Destination.
        dst: TensorRef = "dst",
        /// Source.
        src: TensorRef = "src",
        /// Type of the result.
        dtype: Option<Dtype> = "dtype",
        /// Engine.
        engine: Engine = "engine",
    }
}

macro_rules! operators {
    ($($variant:ident = $wire:literal,)*) => {
        /// An operator.
        #[derive(Debug, Clone)]
        pub enum Operator {
            $(#[doc = concat!("`", $wire, "`.")] $variant(Box<$variant>),)*
            /// Recognised, but not lowered.
            Other {
                /// Name in the format's own vocabulary.
                name: &'static str,
                /// Operands as read.
                value: Value,
            },
        }

        impl Operator {
            /// Name in the format's own vocabulary.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $wire,)* Self::Other { name, .. } => name }
            }
        }

        impl FromValue for Operator {
            fn from_value(value: &Value) -> Result<Self, KlrError> {
                let node = node_of(value, &schema::Operator)?;
                match node.ctor.name {
                    $($wire => payload(node, value.offset).map(Self::$variant),)*
                    name => {
                        let absent = || Value { offset: value.offset, kind: Kind::Absent };
                        Ok(Self::Other { name, value: node.fields.first().cloned().unwrap_or_else(absent) })
                    }
                }
            }
        }
    };
}

operators! {
    NcMatMul = "ncMatMul",
    MatMulMx = "ncMatMulMX",
    QuantizeMx = "quantizeMX",
    NcDmaCopy = "ncDmaCopy",
    DmaCopy = "dmaCopy",
    NcCopy = "ncCopy",
    Copy = "copy",
    MemSet = "memSet",
    NcAffineSelect = "ncAffineSelect",
    TensorTensor = "tensorTensor",
    Transpose = "transpose",
}

impl Operator {
    /// Tensor operands with their field names; none for operators that are not lowered.
    pub fn operands(&self) -> Vec<(&'static str, &TensorRef)> {
        match self {
            Self::NcMatMul(op) => {
                vec![("dst", &op.dst), ("stationary", &op.stationary), ("moving", &op.moving)]
            }
            Self::MatMulMx(op) => vec![
                ("dst", &op.dst),
                ("stationary", &op.stationary),
                ("moving", &op.moving),
                ("stationaryScale", &op.stationary_scale),
                ("movingScale", &op.moving_scale),
            ],
            Self::QuantizeMx(op) => vec![("dst", &op.dst), ("src", &op.src), ("dstScale", &op.dst_scale)],
            Self::NcDmaCopy(op) => vec![("dst", &op.dst), ("src", &op.src)],
            Self::DmaCopy(op) => vec![("dst", &op.dst), ("src", &op.src)],
            Self::NcCopy(op) => vec![("dst", &op.dst), ("src", &op.src)],
            Self::Copy(op) => vec![("dst", &op.dst), ("src", &op.src)],
            Self::MemSet(op) => vec![("dst", &op.dst)],
            Self::NcAffineSelect(op) => vec![("dst", &op.dst), ("onTrueTile", &op.on_true_tile)],
            Self::TensorTensor(op) => vec![("dst", &op.dst), ("src0", &op.src0), ("src1", &op.src1)],
            Self::Transpose(op) => vec![("dst", &op.dst), ("src", &op.src)],
            Self::Other { .. } => Vec::new(),
        }
    }
}
