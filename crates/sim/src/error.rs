//! What can go wrong in a run, where it went wrong, and what to do about it.

use std::fmt;

use hadal_num::Dtype;
use thiserror::Error;

/// The reason an instruction could not be executed. [`Fault::code`] is stable; [`Fault::remedy`] says
/// what to change.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// A read of bytes that nothing has written.
    #[error("reads byte {offset} of partition {partition} of {space}, which nothing has written")]
    Unwritten {
        /// Memory: `SBUF`, `PSUM` or the name of a DRAM tensor.
        space: String,
        /// Partition; 0 in DRAM.
        partition: usize,
        /// Byte offset in the partition (PSUM: bank included) or in the tensor.
        offset: usize,
    },
    /// An access outside the memory.
    #[error(
        "touches byte {offset} of partition {partition} of {space}, which has {partitions} partitions of {bytes} bytes"
    )]
    OutOfRange {
        /// Memory: `SBUF`, `PSUM` or the name of a DRAM tensor.
        space: String,
        /// First partition outside, or the partition of the first byte outside.
        partition: i64,
        /// First byte outside.
        offset: i64,
        /// Partitions there are.
        partitions: usize,
        /// Bytes in a partition.
        bytes: usize,
    },
    /// A location without an address.
    #[error("location `{name}` has no address")]
    Unplaced {
        /// The location.
        name: String,
    },
    /// An access pattern naming a location that the program does not have.
    #[error("access pattern names location #{id}, which the program does not have")]
    NoLocation {
        /// The id.
        id: u32,
    },
    /// An operand or a tensor too large to hold.
    #[error("{what} needs {bytes} bytes, more than the {limit} allowed")]
    TooLarge {
        /// What is too large.
        what: String,
        /// Its size, saturating.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// A DRAM tensor declared twice with different sizes.
    #[error("DRAM tensor `{name}` has {have} bytes on one core and {want} on another")]
    DramSize {
        /// The tensor.
        name: String,
        /// Size of the first declaration.
        have: usize,
        /// Size of the second.
        want: usize,
    },
    /// A start address that names no memory.
    #[error("start address {addr:#010x} {why}")]
    Address {
        /// The four bytes.
        addr: u32,
        /// What it is instead.
        why: &'static str,
    },
    /// An operand in the wrong memory.
    #[error("operand is in {got}, must be in {want}")]
    WrongSpace {
        /// Where it is.
        got: String,
        /// Where it must be.
        want: &'static str,
    },
    /// A tag byte that stands for no element type here.
    #[error("type tag {tag:02X} stands for no element type of this operand")]
    Tag {
        /// The tag.
        tag: u8,
    },
    /// A word that is no known instruction of the target.
    #[error("opcode {opcode:02X} is no instruction of {target}")]
    Opcode {
        /// Byte 0.
        opcode: u8,
        /// The target.
        target: String,
    },
    /// A matmul through a tile group that holds no weights.
    #[error("tile group (rows {row:X}, columns {col:X}) was never loaded, or a later load evicted it")]
    NotLoaded {
        /// Row group.
        row: u8,
        /// Column group.
        col: u8,
    },
    /// A matmul that disagrees with the load it pairs with.
    #[error("{what} is {got}, but the array holds {want}")]
    LoadMismatch {
        /// What disagrees.
        what: &'static str,
        /// The matmul's value.
        got: String,
        /// The load's value.
        want: String,
    },
    /// A performance mode without numeric meaning.
    #[error("performance mode {mode} has no numeric meaning that is known")]
    PerfMode {
        /// Name or code of the mode.
        mode: String,
    },
    /// Operands whose shapes do not go together.
    #[error("{what}: {got}, expected {want}")]
    Shape {
        /// What is compared.
        what: &'static str,
        /// The value found.
        got: String,
        /// The value that fits.
        want: String,
    },
    /// An element type an operand cannot have.
    #[error("{text} ({dtype})")]
    Type {
        /// The rule.
        text: &'static str,
        /// The type found.
        dtype: Dtype,
    },
    /// A transpose whose moving operand does not select one row.
    #[error(
        "moving column {column} of a transpose has nonzero rows {first} and {second}; one at most is allowed"
    )]
    TransposeColumn {
        /// Column of the moving operand.
        column: usize,
        /// First nonzero row.
        first: usize,
        /// Second nonzero row.
        second: usize,
    },
    /// An accumulate byte outside the legal set.
    #[error("accumulate byte {flags:#04x} is not one of 0, 1, 2, 3, 4, 6")]
    Flags {
        /// The byte.
        flags: u8,
    },
    /// A zero region on a generation without them.
    #[error("{target} does not support psum multibank: zero region {region} would clear {} banks", 1u32 << (*region).min(31))]
    Multibank {
        /// The target.
        target: String,
        /// log2 of the banks.
        region: u8,
    },
    /// A zero region larger than PSUM.
    #[error("zero region {region} clears more than the 8 banks there are")]
    ZeroRegion {
        /// log2 of the banks.
        region: u8,
    },
    /// A sparsity tag that names no element of its group.
    #[error("sparsity tag {tag} of row {row}, column {column} is over {} for compression ratio {ratio}", 4 * ratio - 1)]
    SparseTag {
        /// The tag.
        tag: u8,
        /// Row of the compressed weights.
        row: usize,
        /// Column of the compressed weights.
        column: usize,
        /// Compression ratio.
        ratio: usize,
    },
    /// A sparse matmul without tags.
    #[error("no sparsity tags are loaded")]
    NoTags,
    /// An operation that has no executable meaning.
    #[error("{what} is not executable: {why}")]
    Unsupported {
        /// The operation.
        what: String,
        /// Why not.
        why: &'static str,
    },
    /// A position of a gather outside its operand.
    #[error("index {position} of the gather is {value}, which is not a position of the operand")]
    Index {
        /// Which index.
        position: usize,
        /// Its value.
        value: i64,
    },
    /// A host instruction of a stream that its program does not have.
    #[error("the stream names instruction {index}, but the program given has {len}")]
    NoInstruction {
        /// The index.
        index: usize,
        /// Instructions there are.
        len: usize,
    },
    /// A conversion that the number library refused.
    #[error("{0}")]
    Number(#[from] hadal_num::NumError),
}

impl Fault {
    /// Code that stays the same between versions.
    pub fn code(&self) -> &'static str {
        match self {
            Fault::Unwritten { .. } => "X-101",
            Fault::OutOfRange { .. } => "X-102",
            Fault::Unplaced { .. } => "X-103",
            Fault::NoLocation { .. } => "X-104",
            Fault::TooLarge { .. } => "X-105",
            Fault::DramSize { .. } => "X-106",
            Fault::Index { .. } => "X-107",
            Fault::WrongSpace { .. } => "X-108",
            Fault::Address { .. } => "X-201",
            Fault::Tag { .. } => "X-202",
            Fault::Opcode { .. } => "X-203",
            Fault::NotLoaded { .. } => "X-204",
            Fault::LoadMismatch { .. } => "X-205",
            Fault::NoInstruction { .. } => "X-206",
            Fault::PerfMode { .. } => "X-301",
            Fault::Shape { .. } => "X-302",
            Fault::Type { .. } => "X-303",
            Fault::TransposeColumn { .. } => "X-304",
            Fault::Flags { .. } => "X-305",
            Fault::Multibank { .. } => "X-306",
            Fault::ZeroRegion { .. } => "X-307",
            Fault::Unsupported { .. } => "X-308",
            Fault::Number(_) => "X-309",
            Fault::SparseTag { .. } => "X-310",
            Fault::NoTags => "X-207",
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Fault::Unwritten { .. } => {
                "write the bytes first (a PSUM tile needs a START matmul), or run with uninit nan or zero"
            }
            Fault::OutOfRange { .. } => "correct the partition, offset, steps or counts of the operand",
            Fault::Unplaced { .. } => "verify the program first; its passes place every location",
            Fault::NoLocation { .. } => "correct the location of the operand",
            Fault::TooLarge { .. } => "split the operand or the tensor",
            Fault::DramSize { .. } => "give the tensor one shape and type on every core",
            Fault::Index { .. } => "correct the index values",
            Fault::WrongSpace { .. } => "move the operand",
            Fault::Address { .. } => "use a static SBUF or PSUM address",
            Fault::Tag { .. } => "use a tag that the target's dense or MX table has",
            Fault::Opcode { .. } => "check the target, or remove the word",
            Fault::NotLoaded { .. } => "load weights into the group before the matmul",
            Fault::LoadMismatch { .. } => "make the matmul agree with the load before it",
            Fault::NoInstruction { .. } => "give the program that the stream was lowered from",
            Fault::PerfMode { .. } => "use None, DoubleRow or DoubleRowSwInterleave",
            Fault::Shape { .. } => "make the operands' shapes agree",
            Fault::Type { .. } => "use an element type that the instruction takes",
            Fault::TransposeColumn { .. } => "pass the identity as the moving operand of a transpose",
            Fault::Flags { .. } => "use START alone or ACCUMULATE alone, with or without STOP",
            Fault::Multibank { .. } => "use zero region 0, or a gen4 target",
            Fault::ZeroRegion { .. } => "use a zero region of 0 to 3",
            Fault::Unsupported { .. } => "rewrite the program without it",
            Fault::SparseTag { .. } => "use tags below four times the compression ratio",
            Fault::NoTags => "load the tags before the sparse matmul",
            Fault::Number(_) => "correct the operand's shape or type",
        }
    }
}

/// A fault and the operand it is about.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OperandFault {
    pub(crate) operand: Option<&'static str>,
    pub(crate) fault: Fault,
}

impl From<Fault> for OperandFault {
    fn from(fault: Fault) -> Self {
        OperandFault { operand: None, fault }
    }
}

impl From<hadal_num::NumError> for OperandFault {
    fn from(e: hadal_num::NumError) -> Self {
        Fault::from(e).into()
    }
}

impl Fault {
    pub(crate) fn on(self, operand: &'static str) -> OperandFault {
        OperandFault { operand: Some(operand), fault: self }
    }
}

/// What an index of an error counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Instructions of a program, from 0.
    Instruction,
    /// Bundles of a stream, from 0; operators without a bundle are not counted.
    Bundle,
    /// The memory of the whole program, before the first instruction.
    Setup,
}

/// A run that stopped, with its place.
#[derive(Debug, Clone, PartialEq, Error)]
pub struct ExecError {
    /// Core whose program it was.
    pub core: usize,
    /// What `index` counts.
    pub unit: Unit,
    /// Which instruction or bundle, from 0.
    pub index: usize,
    /// Name of the instruction, or of the bundle's kind when no name is known.
    pub name: String,
    /// Operand concerned, by its name in the interchange form.
    pub operand: Option<&'static str>,
    /// The reason.
    #[source]
    pub fault: Box<Fault>,
}

impl ExecError {
    /// Code that stays the same between versions.
    pub fn code(&self) -> &'static str {
        self.fault.code()
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        self.fault.remedy()
    }

    /// The place alone: core, instruction or bundle, operand.
    pub fn place(&self) -> String {
        let mut s = String::new();
        if self.core > 0 {
            s.push_str(&format!("core {}: ", self.core));
        }
        match self.unit {
            Unit::Instruction => s.push_str(&format!("instruction {} ({})", self.index, self.name)),
            Unit::Bundle => s.push_str(&format!("bundle {} ({})", self.index, self.name)),
            Unit::Setup => s.push_str("program memory"),
        }
        if let Some(op) = self.operand {
            s.push_str(&format!(", operand {op}"));
        }
        s
    }
}

impl fmt::Display for ExecError {
    /// `CODE: place: reason; remedy`, one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}; {}", self.code(), self.place(), self.fault, self.remedy())
    }
}
