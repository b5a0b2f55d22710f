//! What is to be computed, and on what.

use hadal_ir::verify::LowerOptions;
use hadal_isa::Gen;

use crate::{Format, GemmError};

/// Largest number of rows or columns of the result: access patterns of its tensors stay far inside 63 bits.
pub const LIMIT: usize = 1 << 30;
/// Longest contraction: a segment's program has an instruction or more for each pass.
pub const K_LIMIT: usize = 1 << 24;
/// Most outputs: what a plan's list of segments is bounded by.
pub const OUTPUTS: usize = 1 << 36;

/// Where the block scales and elements of the stationary operand come from. The moving operand of an MX product
/// is quantized on the device, except to FP4, which QuantizeMx does not write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weights {
    /// Quantized from the values given, before the program runs.
    #[default]
    Offline,
    /// Rounded to bfloat16 and quantized on the device, as the moving operand.
    Device,
}

/// Which operand the array holds while the other streams through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stationary {
    /// The one that takes fewer cycles by the cost model; A when both take the same.
    #[default]
    Auto,
    /// A: the result drains in rows.
    A,
    /// B: the result drains in columns.
    B,
}

/// A product C = A @ B of `[m, k]` by `[k, n]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Element format of both operands.
    pub format: Format,
    /// Target, rule book and weight cache.
    pub lower: LowerOptions,
    /// Who quantizes the stationary operand of an MX product.
    pub weights: Weights,
    /// Which operand is stationary.
    pub stationary: Stationary,
}

/// One of the two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// A, the program's `lhsT`.
    A,
    /// B, the program's `rhs`.
    B,
}

impl Side {
    /// The operand's name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Side::A => "A",
            Side::B => "B",
        }
    }

    /// The operand's tensor in the program.
    pub const fn tensor(self) -> &'static str {
        match self {
            Side::A => "lhsT",
            Side::B => "rhs",
        }
    }

    /// The tensor of its block scales.
    pub const fn scale_tensor(self) -> &'static str {
        match self {
            Side::A => "lhsT_scale",
            Side::B => "rhs_scale",
        }
    }
}

impl Problem {
    /// A product with everything optional at its default.
    pub fn new([m, k, n]: [usize; 3], format: Format, lower: LowerOptions) -> Self {
        let (weights, stationary) = (Weights::default(), Stationary::default());
        Problem { m, n, k, format, lower, weights, stationary }
    }

    /// Checks the extents and that the target has the format.
    pub(crate) fn check(&self) -> Result<(), GemmError> {
        let Problem { m, n, k, format, .. } = *self;
        let extents = [m, n, k];
        if extents.contains(&0) {
            return Err(GemmError::Extent { m, n, k, why: "empty" });
        }
        if extents.iter().any(|e| *e > LIMIT) || k > K_LIMIT || m.saturating_mul(n) > OUTPUTS {
            return Err(GemmError::Extent { m, n, k, why: "too large" });
        }
        let target = self.lower.target;
        if !format.is_on(target.generation) {
            let generation = target.generation;
            return Err(GemmError::FormatNotOnTarget { format, target, generation });
        }
        Ok(())
    }

    /// Columns of an operand that the program sees: rows of A, columns of B.
    pub(crate) fn columns(&self, side: Side) -> usize {
        match side {
            Side::A => self.m,
            Side::B => self.n,
        }
    }

    /// The operand the array holds.
    pub fn stationary_side(&self) -> Side {
        match self.stationary {
            Stationary::A => Side::A,
            Stationary::B => Side::B,
            Stationary::Auto if cycles(self.n, self.m) < cycles(self.m, self.n) => Side::B,
            Stationary::Auto => Side::A,
        }
    }

    /// The operand that streams.
    pub fn moving_side(&self) -> Side {
        match self.stationary_side() {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }

    /// Whether the program quantizes an operand itself, from bfloat16.
    pub fn quantizes(&self, side: Side) -> bool {
        match self.format.mx() {
            None | Some(hadal_num::mx::MxFormat::Float4E2m1fn) => false,
            Some(_) => self.weights == Weights::Device || side == self.moving_side(),
        }
    }

    /// Whether FP8 rows are contracted in pairs.
    pub(crate) fn pairs_rows(&self) -> bool {
        let fp8 = self.format.dtype().is_fp8();
        fp8 && self.lower.target.generation != Gen::Gen2 && self.k > crate::tile::ROWS
    }
}

/// Cycles of one row of tiles of the contraction, stationary by moving columns, as the cost model counts them.
fn cycles(stationary: usize, moving: usize) -> u64 {
    let (columns, bank) = (crate::tile::ROWS, crate::tile::BANK);
    let split = |extent: usize, size: usize| (extent / size, extent % size);
    let ((full_s, tail_s), (full_v, tail_v)) = (split(stationary, columns), split(moving, bank));
    let one = |s: usize, v: usize| {
        if s == 0 || v == 0 { 0 } else { hadal_sim::cost::matmul_cycles(s as u64, v as u64) }
    };
    let row = |s: usize| full_v as u64 * one(s, bank) + one(s, tail_v);
    full_s as u64 * row(columns) + row(tail_s)
}
