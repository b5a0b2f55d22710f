//! The program: memory locations and an ordered list of instructions.
//!
//! Everything a front end produces and every pass rewrites is this one structure. Nothing here is
//! checked beyond what the types say; [`crate::verify`] holds the rules.

use std::fmt;
use std::sync::Arc;

use hadal_isa::PerfMode;
use hadal_num::Dtype;

/// Programs that run side by side, one a core.
///
/// Each core has its own SBUF and PSUM. DRAM locations of the same name are one tensor, shared by all
/// cores; cores run in index order.
#[derive(Debug, Clone, PartialEq)]
pub struct Module {
    /// Name of the kernel, or of the file it was read from.
    pub name: String,
    /// One program per core, core 0 first; never empty.
    pub cores: Vec<Program>,
    /// What a front end dropped or reinterpreted and the user should know.
    pub notes: Vec<Note>,
}

/// A remark that does not stop the work.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// Stable code, for example `N-PERF-MODE`.
    pub code: &'static str,
    /// What was noticed.
    pub text: String,
    /// Where, if known.
    pub pos: Option<Pos>,
}

/// One core's program.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// Program-wide attributes.
    pub attrs: Attrs,
    /// Memory locations; [`LocId`] indexes this list.
    pub locs: Vec<MemLoc>,
    /// Instructions in program order.
    pub instrs: Vec<Instr>,
}

/// Program attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attrs {
    /// When present it overrides the accumulate decision of every matmul writeback: `true` adds unless
    /// the matmul is the first writer, `false` overwrites.
    pub auto_psum_accumulate: Option<bool>,
    /// FP8 conversion configuration `[saturate, nan_suppress]`; default `[0, 0]`.
    pub fp8_conv_config: [u8; 2],
}

/// A position in a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pos {
    /// File name as the source gives it.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 when unknown.
    pub column: u32,
}

impl fmt::Display for Pos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.column == 0 {
            write!(f, "{}:{}", self.file, self.line)
        } else {
            write!(f, "{}:{}:{}", self.file, self.line, self.column)
        }
    }
}

/// Index of a location in [`Program::locs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocId(pub u32);

/// A memory location.
#[derive(Debug, Clone, PartialEq)]
pub struct MemLoc {
    /// Unique name within the program.
    pub name: String,
    /// Space, size and address.
    pub kind: LocKind,
    /// Where it was declared, if known.
    pub pos: Option<Pos>,
}

/// The memory a location lives in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// State buffer: 128 partitions.
    Sb,
    /// Partial-sum buffer: 128 partitions of 8 banks of 2 KiB.
    Psum,
    /// Device memory: named row-major tensors.
    Dram,
}

impl Space {
    /// The name used in the interchange form: `SB`, `PSUM` or `DRAM`.
    pub fn name(self) -> &'static str {
        match self {
            Space::Sb => "SB",
            Space::Psum => "PSUM",
            Space::Dram => "DRAM",
        }
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Space, size and (if given) address of a location.
#[derive(Debug, Clone, PartialEq)]
pub enum LocKind {
    /// State buffer. `bytes` is the size in each of `partitions` partitions.
    Sb {
        /// First partition, 0..=127, if fixed.
        partition: Option<u32>,
        /// Number of partitions.
        partitions: u32,
        /// Byte offset in the partition, if fixed.
        offset: Option<u32>,
        /// Bytes per partition.
        bytes: u32,
    },
    /// Partial-sum buffer. `offset` is the byte offset inside the bank.
    Psum {
        /// First partition, 0..=127, if fixed.
        partition: Option<u32>,
        /// Number of partitions.
        partitions: u32,
        /// Bank, 0..=7, if fixed.
        bank: Option<u32>,
        /// Byte offset in the bank, if fixed.
        offset: Option<u32>,
        /// Bytes per partition.
        bytes: u32,
    },
    /// A named tensor in device memory, one row-major array.
    Dram {
        /// Whether it is a program argument.
        role: Role,
        /// Element type.
        dtype: Dtype,
        /// Shape, outermost dimension first, in containers.
        shape: Vec<u64>,
    },
}

/// Part a DRAM tensor plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Bound to an array before the run.
    Input,
    /// Written out after the run.
    Output,
    /// Neither.
    Internal,
}

impl Role {
    /// The name used in the interchange form.
    pub fn name(self) -> &'static str {
        match self {
            Role::Input => "input",
            Role::Output => "output",
            Role::Internal => "internal",
        }
    }
}

impl MemLoc {
    /// The space the location lives in.
    pub fn space(&self) -> Space {
        match self.kind {
            LocKind::Sb { .. } => Space::Sb,
            LocKind::Psum { .. } => Space::Psum,
            LocKind::Dram { .. } => Space::Dram,
        }
    }

    /// Number of partitions (1 for DRAM).
    pub fn partitions(&self) -> u32 {
        match self.kind {
            LocKind::Sb { partitions, .. } | LocKind::Psum { partitions, .. } => partitions,
            LocKind::Dram { .. } => 1,
        }
    }

    /// Bytes per partition; for DRAM the bytes of the whole tensor.
    pub fn bytes(&self) -> u64 {
        match &self.kind {
            LocKind::Sb { bytes, .. } | LocKind::Psum { bytes, .. } => u64::from(*bytes),
            LocKind::Dram { dtype, shape, .. } => {
                shape.iter().fold(dtype.bytes() as u64, |n, d| n.saturating_mul(*d))
            }
        }
    }

    /// First partition, if fixed.
    pub fn partition(&self) -> Option<u32> {
        match self.kind {
            LocKind::Sb { partition, .. } | LocKind::Psum { partition, .. } => partition,
            LocKind::Dram { .. } => Some(0),
        }
    }

    /// Byte offset in the partition (PSUM: bank included), if fixed.
    pub fn byte_offset(&self) -> Option<u32> {
        match self.kind {
            LocKind::Sb { offset, .. } => offset,
            LocKind::Psum { bank, offset, .. } => {
                Some(bank?.saturating_mul(PSUM_BANK_BYTES).saturating_add(offset?))
            }
            LocKind::Dram { .. } => Some(0),
        }
    }

    /// Whether the address is complete.
    pub fn is_placed(&self) -> bool {
        self.partition().is_some() && self.byte_offset().is_some()
    }
}

/// Bytes of a PSUM bank in one partition.
pub const PSUM_BANK_BYTES: u32 = 2048;
/// Banks of a PSUM partition.
pub const PSUM_BANKS: u32 = 8;
/// Bytes of a PSUM partition.
pub const PSUM_BYTES: u32 = PSUM_BANK_BYTES * PSUM_BANKS;
/// Partitions of SBUF and PSUM, rows and columns of the array.
pub const PARTITIONS: u32 = 128;

/// One `[step, num]` pair of an access pattern; the step is in containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// Distance between consecutive elements, in containers; may be negative or zero.
    pub step: i64,
    /// Number of elements; at least 1.
    pub num: u64,
}

impl Pair {
    /// A pair.
    pub fn new(step: i64, num: u64) -> Self {
        Pair { step, num }
    }
}

/// An access pattern: how an operand walks a location.
///
/// SB and PSUM: the first pair counts partitions (its step is in partitions), the others are the free
/// dimensions, outermost first, in containers of `dtype`. DRAM: the location is one row-major array and
/// every pair, the first included, steps in containers.
#[derive(Debug, Clone, PartialEq)]
pub struct Ap {
    /// The location.
    pub loc: LocId,
    /// Element type the bytes are seen as.
    pub dtype: Dtype,
    /// Partitions added to the location's first partition (0 for DRAM).
    pub partition: u32,
    /// Bytes added to the location's offset.
    pub offset: u64,
    /// Pairs; the first is the partition dimension. Never empty.
    pub pattern: Vec<Pair>,
    /// Gather form: positions along the free dimension.
    pub index: Option<Box<Ap>>,
}

impl Ap {
    /// Number of partitions: the first pair's count.
    pub fn partitions(&self) -> u64 {
        self.pattern.first().map_or(1, |p| p.num)
    }

    /// The free pairs, outermost first.
    pub fn free(&self) -> &[Pair] {
        self.pattern.get(1..).unwrap_or(&[])
    }

    /// Containers per partition: the product of the free counts (saturating).
    pub fn free_elements(&self) -> u64 {
        self.free().iter().fold(1u64, |n, p| n.saturating_mul(p.num))
    }

    /// Containers in all (saturating).
    pub fn elements(&self) -> u64 {
        self.partitions().saturating_mul(self.free_elements())
    }

    /// Least and greatest container offset, relative to the start, that `pairs` reach.
    ///
    /// Saturates at the limits of `i64`, which lie outside every location.
    pub fn reach(pairs: &[Pair]) -> (i64, i64) {
        let (mut lo, mut hi) = (0i64, 0i64);
        for p in pairs {
            let last = i64::try_from(p.num.saturating_sub(1)).unwrap_or(i64::MAX);
            let span = p.step.saturating_mul(last);
            if span < 0 {
                lo = lo.saturating_add(span);
            } else {
                hi = hi.saturating_add(span);
            }
        }
        (lo, hi)
    }
}

/// The engines, with the reference's ordinals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Engine {
    Unassigned = 0,
    Pool = 1,
    Activation = 2,
    Pe = 3,
    Dma = 4,
    Dve = 5,
    Sp = 6,
    All = 7,
}

impl Engine {
    /// Every engine, by ordinal.
    pub const ALL: [Engine; 8] = [
        Engine::Unassigned,
        Engine::Pool,
        Engine::Activation,
        Engine::Pe,
        Engine::Dma,
        Engine::Dve,
        Engine::Sp,
        Engine::All,
    ];

    /// The reference's name.
    pub fn name(self) -> &'static str {
        ["Unassigned", "Pool", "Activation", "PE", "DMA", "DVE", "SP", "ALL"][self as usize]
    }

    /// The engine of that name.
    pub fn from_name(name: &str) -> Option<Engine> {
        Engine::ALL.into_iter().find(|e| e.name() == name)
    }
}

/// One instruction.
#[derive(Debug, Clone, PartialEq)]
pub struct Instr {
    /// Unique name, for example `matmult_0`.
    pub name: String,
    /// What it does.
    pub op: Op,
    /// Engine that runs it.
    pub engine: Engine,
    /// Where it came from, if known.
    pub pos: Option<Pos>,
}

/// The operators.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// `out = weights.T @ ifmap` on the array.
    Matmult(Box<Matmult>),
    /// Structured-sparse matmul.
    MatmultSparse(Box<MatmultSparse>),
    /// MX (block-scaled) matmul.
    MatmultMx(Box<MatmultMx>),
    /// Quantization into MX blocks, on the vector engine.
    QuantizeMx {
        /// bfloat16 or float16 source.
        src: Ap,
        /// x4-packed data.
        data: Ap,
        /// float8_e8m0fnu scales.
        scale: Ap,
    },
    /// Byte copy between any two locations of equal container size.
    DmaCopy {
        /// Destination.
        dst: Ap,
        /// Source.
        src: Ap,
    },
    /// Element copy with conversion.
    TensorCopy {
        /// Destination.
        dst: Ap,
        /// Source.
        src: Ap,
    },
    /// Fill with one value.
    Memset {
        /// Destination.
        dst: Ap,
        /// The value.
        value: Immediate,
    },
    /// `dst = src0 op src1`, element by element in float32.
    TensorTensor {
        /// Destination.
        dst: Ap,
        /// First operand.
        src0: Ap,
        /// Second operand.
        src1: Ap,
        /// Operation.
        op: AluOp,
    },
    /// `dst = (src op0 operand0) op1 operand1`.
    TensorScalar {
        /// Destination.
        dst: Ap,
        /// Source.
        src: Ap,
        /// First operation.
        op0: AluOp,
        /// Its scalar.
        operand0: Immediate,
        /// Second operation and its scalar.
        second: Option<(AluOp, Immediate)>,
    },
    /// `dst = func(src * scale + bias)`.
    Activation {
        /// Destination.
        dst: Ap,
        /// Source.
        src: Ap,
        /// Function name.
        func: ActFunc,
        /// Scale.
        scale: f32,
        /// Bias.
        bias: f32,
        /// Accumulator command (D-44) and reduction, when the accumulator is used.
        accumulate: Option<Accumulate>,
    },
    /// Reduction of the innermost `axes` free dimensions.
    TensorReduce {
        /// Destination.
        dst: Ap,
        /// Source.
        src: Ap,
        /// Operation.
        op: AluOp,
        /// Number of innermost free dimensions reduced.
        axes: u32,
    },
    /// Drain of the activation accumulator.
    ReadActivationAccumulator {
        /// float32 destination, one element a partition.
        dst: Ap,
    },
    /// 32 x 32 block transpose on the vector engine.
    Transpose {
        /// Destination.
        dst: Ap,
        /// Source.
        src: Ap,
    },
    /// `dst = cmp(base + channel_multiplier * partition + sum(i_k * step_k), 0) ? src : on_false`.
    AffineSelect(Box<AffineSelect>),
}

/// Operands of [`Op::AffineSelect`].
#[derive(Debug, Clone, PartialEq)]
pub struct AffineSelect {
    /// Destination.
    pub dst: Ap,
    /// Value where the comparison holds.
    pub src: Ap,
    /// Value elsewhere.
    pub on_false: Immediate,
    /// Comparison with 0.
    pub cmp: AluOp,
    /// Constant term.
    pub base: i64,
    /// Factor of the partition index.
    pub channel_multiplier: i64,
    /// `[step, num]` of the free dimensions, outermost first.
    pub pattern: Vec<Pair>,
}

/// Accumulator use of an activation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Accumulate {
    /// Command: 0 idle, 1 zero, 2 accumulate, 4 zero then accumulate, 3 and 5 load (D-44).
    pub command: u8,
    /// Reduction.
    pub op: AluOp,
    /// Value to load, for commands 3 and 5.
    pub load: Option<f32>,
}

/// A constant operand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Immediate {
    /// Integer.
    Int(i64),
    /// float32.
    Float(f32),
}

impl Immediate {
    /// The value as float32 (integers rounded to nearest).
    pub fn as_f32(self) -> f32 {
        match self {
            Immediate::Int(i) => i as f32,
            Immediate::Float(f) => f,
        }
    }
}

/// Dense matmul.
#[derive(Debug, Clone, PartialEq)]
pub struct Matmult {
    /// Moving operand `[K, N]`.
    pub ifmap: Ap,
    /// Stationary operand `[K, M]`.
    pub weights: Ap,
    /// Destination `[M, N]`.
    pub out: Ap,
    /// Accumulation as the author gave it.
    pub calc: Calc,
    /// Accumulate byte, filled by the passes.
    pub flags: Option<u8>,
    /// Array packing.
    pub perf_mode: PerfMode,
    /// (row, column) of the tile in the array.
    pub tile_position: Option<[u32; 2]>,
    /// (rows, columns) of the tile.
    pub tile_size: Option<[u32; 2]>,
    /// Bit-exact transpose (gen3 and later) instead of a product.
    pub is_transpose: bool,
    /// Hint: the moving operand holds only zeros and ones.
    pub is_fmap_onezero: bool,
    /// Hint: the stationary operand holds only zeros and ones.
    pub is_weight_onezero: bool,
    /// Forces the full column group.
    pub background_transpose: bool,
    /// Replication code (gen2 bytes 24 and 25).
    pub replication: u8,
    /// log2 of the number of banks START clears, if given.
    pub psum_zero_region: Option<u8>,
    /// Zero point of the moving operand (uint8 operands).
    pub zero_point_ifmap: Option<u8>,
    /// Zero point of the stationary operand (uint8 operands).
    pub zero_point_weights: Option<u8>,
    /// Written by the KLR front end for the form "identity stationary, data moving", which is not
    /// `stationary.T @ moving` (D-31).
    pub moving_transpose: bool,
}

impl Matmult {
    /// A plain matmul with everything optional unset.
    pub fn new(ifmap: Ap, weights: Ap, out: Ap) -> Self {
        Matmult {
            ifmap,
            weights,
            out,
            calc: Calc::Auto,
            flags: None,
            perf_mode: PerfMode::None,
            tile_position: None,
            tile_size: None,
            is_transpose: false,
            is_fmap_onezero: false,
            is_weight_onezero: false,
            background_transpose: false,
            replication: 0,
            psum_zero_region: None,
            zero_point_ifmap: None,
            zero_point_weights: None,
            moving_transpose: false,
        }
    }
}

/// Structured-sparse matmul.
#[derive(Debug, Clone, PartialEq)]
pub struct MatmultSparse {
    /// Moving operand `[128, ratio, N]`.
    pub ifmap: Ap,
    /// Compressed stationary operand `[128, M]`.
    pub weights: Ap,
    /// int16/uint16 tags `[128, M/4]`.
    pub tags: Ap,
    /// Destination `[M, N]`.
    pub out: Ap,
    /// Compression ratio: 1, 2 or 4.
    pub compress_ratio: u32,
}

/// MX matmul.
#[derive(Debug, Clone, PartialEq)]
pub struct MatmultMx {
    /// Moving x4 data.
    pub ifmap: Ap,
    /// Stationary x4 data.
    pub weights: Ap,
    /// Scales of the moving data.
    pub ifmap_scale: Ap,
    /// Scales of the stationary data.
    pub weights_scale: Ap,
    /// Destination.
    pub out: Ap,
    /// Accumulate byte as given; the passes fill it when absent.
    pub accumulate_flags: Option<u8>,
    /// log2 of the number of banks START clears, if given.
    pub psum_zero_region: Option<u8>,
    /// (row, column) of the tile in the array.
    pub tile_position: Option<[u32; 2]>,
    /// (rows, columns) of the tile.
    pub tile_size: Option<[u32; 2]>,
}

/// Accumulation as the author gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calc {
    /// Derived by the passes: first write overwrites, later writes add, per element.
    Auto,
    /// Explicit.
    Explicit(CalcFlags),
}

/// Explicit calc flags; `continue` is ACCUMULATE on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CalcFlags {
    /// Clear the destination first.
    pub start: bool,
    /// Last of the group.
    pub stop: bool,
    /// Add to the destination.
    pub accumulate: bool,
    /// Synonym of accumulate.
    pub cont: bool,
}

impl CalcFlags {
    /// The accumulate byte.
    pub fn byte(self) -> u8 {
        u8::from(self.start) | u8::from(self.stop) << 1 | u8::from(self.accumulate || self.cont) << 2
    }

    /// Flags of an accumulate byte.
    pub fn from_byte(b: u8) -> Self {
        CalcFlags { start: b & 1 != 0, stop: b & 2 != 0, accumulate: b & 4 != 0, cont: false }
    }
}

macro_rules! named_enum {
    ($(#[$doc:meta])* $name:ident { $($var:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum $name { $($var),* }

        impl $name {
            /// Every member.
            pub const ALL: &'static [$name] = &[$($name::$var),*];

            /// Name in the interchange form.
            pub fn name(self) -> &'static str {
                match self { $($name::$var => $text),* }
            }

            /// The member of that name.
            pub fn from_name(name: &str) -> Option<$name> {
                match name { $($text => Some($name::$var),)* _ => None }
            }
        }
    };
}

named_enum! {
    /// ALU operations, named as the kernel language names them.
    AluOp {
        Abs = "abs", Add = "add", ArithShiftLeft = "arith_shift_left",
        ArithShiftRight = "arith_shift_right", Average = "average", BitwiseAnd = "bitwise_and",
        BitwiseNot = "bitwise_not", BitwiseOr = "bitwise_or", BitwiseXor = "bitwise_xor",
        Bypass = "bypass", Divide = "divide", IsEqual = "is_equal", IsGe = "is_ge", IsGt = "is_gt",
        IsLe = "is_le", IsLt = "is_lt", LogicalAnd = "logical_and", LogicalOr = "logical_or",
        LogicalShiftLeft = "logical_shift_left", LogicalShiftRight = "logical_shift_right",
        LogicalXor = "logical_xor", Max = "max", Min = "min", Mod = "mod", Mult = "mult",
        NotEqual = "not_equal", Pow = "pow", Rsqrt = "rsqrt", Subtract = "subtract",
    }
}

named_enum! {
    /// Activation functions.
    ActFunc {
        Copy = "copy", Relu = "relu", Gelu = "gelu", Exp = "exp", Sigmoid = "sigmoid", Tanh = "tanh",
        Square = "square", Sqrt = "sqrt", Rsqrt = "rsqrt", Reciprocal = "reciprocal",
    }
}

impl Program {
    /// The location an access pattern names, if the id is valid.
    pub fn loc(&self, id: LocId) -> Option<&MemLoc> {
        self.locs.get(id.0 as usize)
    }

    /// The location of that name.
    pub fn find_loc(&self, name: &str) -> Option<LocId> {
        self.locs.iter().position(|l| l.name == name).and_then(|i| u32::try_from(i).ok()).map(LocId)
    }
}

/// Name of a gathered operand's list of positions.
pub(crate) fn index_name(operand: &str) -> &'static str {
    match operand {
        "ifmap" => "ifmap index",
        "weights" => "weights index",
        _ => "index",
    }
}

/// How an instruction uses an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
}

impl Op {
    /// The operator's name, as in the interchange form.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Matmult(_) => "Matmult",
            Op::MatmultSparse(_) => "MatmultSparse",
            Op::MatmultMx(_) => "MatmultMx",
            Op::QuantizeMx { .. } => "QuantizeMx",
            Op::DmaCopy { .. } => "DmaCopy",
            Op::TensorCopy { .. } => "TensorCopy",
            Op::Memset { .. } => "Memset",
            Op::TensorTensor { .. } => "TensorTensor",
            Op::TensorScalar { .. } => "TensorScalar",
            Op::Activation { .. } => "Activation",
            Op::TensorReduce { .. } => "TensorReduce",
            Op::ReadActivationAccumulator { .. } => "ReadActivationAccumulator",
            Op::Transpose { .. } => "Transpose",
            Op::AffineSelect(_) => "AffineSelect",
        }
    }

    /// Operands with their names in the interchange form, writes last. An index of a gathered operand
    /// is not listed; see [`Ap::index`].
    pub fn operands(&self) -> Vec<(&'static str, Access, &Ap)> {
        use Access::{Read, Write};
        match self {
            Op::Matmult(m) => {
                vec![("ifmap", Read, &m.ifmap), ("weights", Read, &m.weights), ("out", Write, &m.out)]
            }
            Op::MatmultSparse(m) => vec![
                ("ifmap", Read, &m.ifmap),
                ("weights", Read, &m.weights),
                ("tags", Read, &m.tags),
                ("out", Write, &m.out),
            ],
            Op::MatmultMx(m) => vec![
                ("ifmap", Read, &m.ifmap),
                ("weights", Read, &m.weights),
                ("ifmap_scale", Read, &m.ifmap_scale),
                ("weights_scale", Read, &m.weights_scale),
                ("out", Write, &m.out),
            ],
            Op::QuantizeMx { src, data, scale } => {
                vec![("src", Read, src), ("data", Write, data), ("scale", Write, scale)]
            }
            Op::DmaCopy { dst, src }
            | Op::TensorCopy { dst, src }
            | Op::TensorScalar { dst, src, .. }
            | Op::Activation { dst, src, .. }
            | Op::TensorReduce { dst, src, .. }
            | Op::Transpose { dst, src } => vec![("src", Read, src), ("dst", Write, dst)],
            Op::Memset { dst, .. } | Op::ReadActivationAccumulator { dst } => vec![("dst", Write, dst)],
            Op::TensorTensor { dst, src0, src1, .. } => {
                vec![("src0", Read, src0), ("src1", Read, src1), ("dst", Write, dst)]
            }
            Op::AffineSelect(a) => vec![("src", Read, &a.src), ("dst", Write, &a.dst)],
        }
    }

    /// [`Op::operands`] and, after each gathered one, the list of its positions, which is read.
    pub fn uses(&self) -> Vec<(&'static str, Access, &Ap)> {
        let mut all = Vec::new();
        for (name, access, ap) in self.operands() {
            all.push((name, access, ap));
            if let Some(index) = ap.index.as_deref() {
                all.push((index_name(name), Access::Read, index));
            }
        }
        all
    }

    /// Mutable operands, in the order of [`Op::operands`].
    pub fn operands_mut(&mut self) -> Vec<(&'static str, Access, &mut Ap)> {
        use Access::{Read, Write};
        match self {
            Op::Matmult(m) => vec![
                ("ifmap", Read, &mut m.ifmap),
                ("weights", Read, &mut m.weights),
                ("out", Write, &mut m.out),
            ],
            Op::MatmultSparse(m) => vec![
                ("ifmap", Read, &mut m.ifmap),
                ("weights", Read, &mut m.weights),
                ("tags", Read, &mut m.tags),
                ("out", Write, &mut m.out),
            ],
            Op::MatmultMx(m) => vec![
                ("ifmap", Read, &mut m.ifmap),
                ("weights", Read, &mut m.weights),
                ("ifmap_scale", Read, &mut m.ifmap_scale),
                ("weights_scale", Read, &mut m.weights_scale),
                ("out", Write, &mut m.out),
            ],
            Op::QuantizeMx { src, data, scale } => {
                vec![("src", Read, src), ("data", Write, data), ("scale", Write, scale)]
            }
            Op::DmaCopy { dst, src }
            | Op::TensorCopy { dst, src }
            | Op::TensorScalar { dst, src, .. }
            | Op::Activation { dst, src, .. }
            | Op::TensorReduce { dst, src, .. }
            | Op::Transpose { dst, src } => vec![("src", Read, src), ("dst", Write, dst)],
            Op::Memset { dst, .. } | Op::ReadActivationAccumulator { dst } => vec![("dst", Write, dst)],
            Op::TensorTensor { dst, src0, src1, .. } => {
                vec![("src0", Read, src0), ("src1", Read, src1), ("dst", Write, dst)]
            }
            Op::AffineSelect(a) => {
                let AffineSelect { src, dst, .. } = a.as_mut();
                vec![("src", Read, src), ("dst", Write, dst)]
            }
        }
    }

    /// Whether the operator writes PSUM through the array (and so may accumulate).
    pub fn is_matmul(&self) -> bool {
        matches!(self, Op::Matmult(_) | Op::MatmultSparse(_) | Op::MatmultMx(_))
    }

    /// The engine the operator runs on when none is given.
    pub fn default_engine(&self) -> Engine {
        match self {
            Op::Matmult(_) | Op::MatmultSparse(_) | Op::MatmultMx(_) => Engine::Pe,
            Op::DmaCopy { .. } => Engine::Dma,
            Op::Activation { .. } | Op::ReadActivationAccumulator { .. } => Engine::Activation,
            _ => Engine::Dve,
        }
    }
}
