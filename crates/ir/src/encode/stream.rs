//! What lowering produces: bundles in order, between the operators that have no bundle.

use hadal_isa::{Target, Word};

/// A lowered module: one stream a core.
#[derive(Debug, Clone, PartialEq)]
pub struct Lowered {
    /// The target the bundles are for.
    pub target: Target,
    /// One stream per core.
    pub cores: Vec<Stream>,
}

/// One core's lowered program.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stream {
    /// Bundles and host operators in program order.
    pub items: Vec<Item>,
    /// Stationary loads the weight cache made unnecessary.
    pub loads_elided: usize,
}

/// One step of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A bundle of the array or the vector engine.
    Bundle(Bundle),
    /// An operator with no known encoding (data movement and helpers): the index of its instruction.
    Host(usize),
}

/// A bundle and what its bytes do not say.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    /// The 64 bytes.
    pub word: Word,
    /// Index of the instruction it came from.
    pub instr: usize,
    /// Facts about the operands that the wire format has no byte for.
    pub side: Side,
}

/// Operand facts that the bundle does not carry.
///
/// Tag `0E` stands for two FP8 formats that differ at codes 78..7F and F8..FF, and a zero point has no
/// known byte; an executor of bare bundles takes [`Side::default_for`] instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Side {
    /// Whether tag `0E` means float8_e4m3fn (otherwise the legacy float8_e4m3).
    pub e4m3fn: bool,
    /// Zero point of the moving operand.
    pub zero_point_ifmap: u8,
    /// Zero point of the stationary operand.
    pub zero_point_weights: u8,
}

impl Side {
    /// What bare bundles mean on a target: gen4 reads tag `0E` as float8_e4m3fn, earlier generations as
    /// float8_e4m3 (public FP8 notes); no zero points.
    pub fn default_for(target: Target) -> Self {
        Side { e4m3fn: target.generation == hadal_isa::Gen::Gen4, ..Side::default() }
    }
}

impl Stream {
    /// The bundles alone.
    pub fn bundles(&self) -> impl Iterator<Item = &Bundle> {
        self.items.iter().filter_map(|i| match i {
            Item::Bundle(b) => Some(b),
            Item::Host(_) => None,
        })
    }
}
