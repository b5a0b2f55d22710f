//! The meaning of every operator, written once and shared by both executors.

mod activation;
mod alu;
mod block_transpose;
mod copy;
mod dense;
mod elementwise;
mod gather;
mod pe_transpose;
mod reduce;
mod select;
pub(crate) mod sparse;
mod writeback;

pub(crate) mod host;
pub(crate) mod matmul;
pub(crate) mod mx;

use hadal_ir::program::Attrs;
use hadal_isa::Target;
use hadal_num::{Dtype, Overflow};

use crate::error::OperandFault;
use crate::memory::{Machine, View};
use crate::options::Options;
use crate::stats::Stats;

pub(crate) use activation::Accumulator;
pub(crate) use dense::{Moving, Part, Tile, Weights};
pub(crate) use gather::read as read_gathered;
pub(crate) use writeback::Writeback;

/// One core while it runs: its memory, the rules, and what its engines remember between instructions.
#[derive(Debug)]
pub(crate) struct Core<'a> {
    pub(crate) machine: &'a mut Machine,
    pub(crate) options: &'a Options,
    pub(crate) target: Target,
    pub(crate) attrs: Attrs,
    /// Accumulator of the activation engine.
    pub(crate) accumulator: Accumulator,
    /// Matmul writebacks so far, which number the draws of stochastic rounding.
    pub(crate) psum_writes: u64,
    pub(crate) stats: Stats,
    pub(crate) scratch: matmul::Scratch,
}

impl<'a> Core<'a> {
    pub(crate) fn new(machine: &'a mut Machine, options: &'a Options, target: Target, attrs: Attrs) -> Self {
        Core {
            machine,
            options,
            target,
            attrs,
            accumulator: Accumulator::default(),
            psum_writes: 0,
            stats: Stats::default(),
            scratch: matmul::Scratch::default(),
        }
    }

    /// An operand's bytes.
    pub(crate) fn read(&self, view: &View) -> Result<Vec<u8>, OperandFault> {
        self.machine.gather(view, self.options.uninit)
    }

    /// An operand widened to float32, lane by lane for `x4` types.
    pub(crate) fn read_f32(&self, view: &View) -> Result<Vec<f32>, OperandFault> {
        widen(view.dtype, &self.read(view)?)
    }

    /// Narrows to an operand's type and writes it.
    pub(crate) fn write_f32(&mut self, view: &View, values: &[f32]) -> Result<(), OperandFault> {
        let bytes = narrow(view.dtype, values, self.overflow(view.dtype))?;
        self.machine.scatter(view, &bytes)
    }

    /// The overflow rule of a conversion to `dtype`: what the program configured for FP8, IEEE for the rest.
    pub(crate) fn overflow(&self, dtype: Dtype) -> Overflow {
        let fp8 = dtype.is_fp8() || matches!(dtype, Dtype::Float8E4m3fnX4 | Dtype::Float8E5m2X4);
        if fp8 && self.attrs.fp8_conv_config[0] == 1 { Overflow::Saturate } else { Overflow::Ieee }
    }
}

/// Widens whole containers to float32.
pub(crate) fn widen(dtype: Dtype, bytes: &[u8]) -> Result<Vec<f32>, OperandFault> {
    let mut out = vec![0.0; bytes.len() / dtype.bytes() * dtype.lanes()];
    hadal_num::widen(dtype, bytes, &mut out)?;
    Ok(out)
}

/// Narrows float32 to whole containers.
pub(crate) fn narrow(dtype: Dtype, values: &[f32], overflow: Overflow) -> Result<Vec<u8>, OperandFault> {
    let mut out = vec![0; values.len() / dtype.lanes() * dtype.bytes()];
    hadal_num::narrow(dtype, values, overflow, &mut out)?;
    Ok(out)
}

/// Whether an integer type is two's complement.
pub(crate) fn is_signed(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::Int8 | Dtype::Int16 | Dtype::Int32 | Dtype::Int64)
}

/// Integer containers of up to 8 bytes as 64-bit integers.
pub(crate) fn integers(dtype: Dtype, signed: bool, bytes: &[u8]) -> Vec<i64> {
    let shift = 64 - 8 * dtype.bytes() as u32;
    let value = |c: &[u8]| {
        let raw = c.iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b)) as i64;
        if signed { raw << shift >> shift } else { raw }
    };
    bytes.chunks(dtype.bytes()).map(value).collect()
}
