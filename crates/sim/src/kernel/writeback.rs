//! PSUM writeback: clearing, overwriting, adding, and rounding into the destination's type.

use hadal_isa::{ACCUMULATE_LEGAL, Gen, START};
use hadal_num::matmul::canonical;
use hadal_num::{Dtype, Overflow};

use super::{Core, narrow, widen};
use crate::error::{Fault, OperandFault};
use crate::memory::{Store, View};
use crate::options::PsumRounding;

/// What a writeback does with the value that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accum {
    /// Writes the sum.
    Overwrite,
    /// Adds the sum.
    Add,
    /// Adds where the element was written before, writes elsewhere.
    AddUnlessFirst,
}

/// The accumulate decision of one matmul.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Writeback {
    pub(crate) accum: Accum,
    /// log2 of the banks that START clears; `None` without START.
    pub(crate) clear: Option<u8>,
    /// An accumulate byte without START.
    pub(crate) asked_to_add: bool,
}

impl Writeback {
    /// The decision of a dense matmul's accumulate byte. Above level 40 there is none, and every matmul
    /// adds. `None` stands for a program whose passes have not run: the first write of an element
    /// overwrites.
    pub(crate) fn decide(core: &Core<'_>, flags: Option<u8>, region: u8) -> Result<Self, OperandFault> {
        if core.target.level <= 40 {
            return Writeback::decide_mx(core, flags, region);
        }
        let accum = match core.attrs.auto_psum_accumulate {
            Some(true) => Accum::AddUnlessFirst,
            Some(false) => Accum::Overwrite,
            None => Accum::Add,
        };
        Ok(Writeback { accum, clear: None, asked_to_add: false })
    }

    /// The decision of an MX matmul's accumulate byte, which every level has.
    pub(crate) fn decide_mx(core: &Core<'_>, flags: Option<u8>, region: u8) -> Result<Self, OperandFault> {
        if let Some(flags) = flags.filter(|f| !ACCUMULATE_LEGAL.contains(f)) {
            return Err(Fault::Flags { flags }.into());
        }
        let start = flags.is_some_and(|f| f & START != 0);
        let accum = match (core.attrs.auto_psum_accumulate, flags) {
            (Some(true), _) | (None, None) => Accum::AddUnlessFirst,
            (Some(false), _) => Accum::Overwrite,
            (None, Some(_)) if start => Accum::Overwrite,
            (None, Some(_)) => Accum::Add,
        };
        Ok(Writeback { accum, clear: start.then_some(region), asked_to_add: flags.is_some() && !start })
    }

    /// The second pass of a float32 matmul always adds.
    pub(crate) const SECOND_PASS: Writeback =
        Writeback { accum: Accum::Add, clear: None, asked_to_add: true };
}

impl Core<'_> {
    /// Checks that a matmul's destination is in PSUM and holds `[m, n]`.
    pub(crate) fn check_destination(&self, dst: &View, m: usize, n: usize) -> Result<(), OperandFault> {
        if dst.store != Store::Psum {
            let got = self.machine.store_name(dst.store);
            return Err(Fault::WrongSpace { got, want: "PSUM" }.on(dst.operand));
        }
        if dst.rows != m as u64 || dst.per_row() != n as u64 {
            return Err(Fault::Shape {
                what: "matmul destination",
                got: format!("[{}, {}]", dst.rows, dst.per_row()),
                want: format!("[{m}, {n}]"),
            }
            .on(dst.operand));
        }
        self.machine.check(dst)
    }

    /// START's clear (D-17): nothing for region 0, whose own bytes the write covers.
    fn clear(&mut self, dst: &View, region: u8) -> Result<(), OperandFault> {
        if region == 0 {
            return Ok(());
        }
        if self.target.generation != Gen::Gen4 {
            return Err(Fault::Multibank { target: self.target.to_string(), region }.on(dst.operand));
        }
        if region > 3 {
            return Err(Fault::ZeroRegion { region }.on(dst.operand));
        }
        let span = (hadal_isa::PSUM_BANK_BYTES as usize) << region;
        let offset = usize::try_from(dst.offset).unwrap_or(usize::MAX) / span * span;
        self.machine.clear_psum_banks(dst, offset, span)
    }

    /// Writes the sums of a matmul, `[m, n]` row-major, by its accumulate decision.
    pub(crate) fn write_psum(
        &mut self,
        dst: &View,
        sums: &[f32],
        how: Writeback,
    ) -> Result<(), OperandFault> {
        if !dst.dtype.is_float() || dst.dtype.is_x4() {
            let text = "a matmul's sum is written as a float type";
            return Err(Fault::Type { text, dtype: dst.dtype }.on(dst.operand));
        }
        if let Some(region) = how.clear {
            self.clear(dst, region)?;
        }
        self.psum_writes += 1;
        self.stats.matmuls += 1;
        if dst.dtype == Dtype::Float32 && self.write_psum_f32(dst, sums, how.accum)? {
            return Ok(());
        }
        let mut values = sums.to_vec();
        match how.accum {
            Accum::Overwrite => {}
            Accum::Add => {
                let old = self.read_f32(dst)?;
                values.iter_mut().zip(old).for_each(|(v, o)| *v = canonical(*v + o));
            }
            Accum::AddUnlessFirst => {
                let (bytes, marks) = self.machine.gather_with_marks(dst)?;
                let old = widen(dst.dtype, &bytes)?;
                for ((v, o), written) in values.iter_mut().zip(old).zip(marks) {
                    if written {
                        *v = canonical(*v + o);
                    }
                }
            }
        }
        let bytes = match (dst.dtype, self.options.psum_rounding) {
            (Dtype::Bfloat16, PsumRounding::Stochastic(seed)) if self.target.generation == Gen::Gen4 => {
                self.round_stochastic(&values, seed)
            }
            _ => narrow(dst.dtype, &values, Overflow::Ieee)?,
        };
        self.machine.scatter(dst, &bytes)
    }

    /// The usual case, in place: a float32 destination that is written whole or not at all. `false`, and
    /// nothing done, when it is another.
    fn write_psum_f32(&mut self, dst: &View, sums: &[f32], accum: Accum) -> Result<bool, OperandFault> {
        let add = match (accum, self.machine.written(dst)?) {
            (Accum::Overwrite, _) | (Accum::AddUnlessFirst, Some(false)) => false,
            (_, Some(true)) => true,
            _ => return Ok(false),
        };
        self.machine.update(dst, |done, piece| {
            let from = sums.get(done / 4..).unwrap_or(&[]);
            let pairs = piece.as_chunks_mut::<4>().0.iter_mut().zip(from);
            if add {
                pairs.for_each(|(to, sum)| *to = canonical(sum + f32::from_le_bytes(*to)).to_le_bytes());
            } else {
                pairs.for_each(|(to, sum)| *to = sum.to_le_bytes());
            }
        })?;
        Ok(true)
    }

    /// bfloat16 with the discarded 16 bits against a draw that depends on the seed, the writeback's number
    /// and the element alone.
    fn round_stochastic(&self, values: &[f32], seed: u64) -> Vec<u8> {
        let stream = mix(seed ^ mix(self.psum_writes));
        let mut bytes = Vec::with_capacity(values.len() * 2);
        for (i, v) in values.iter().enumerate() {
            let bits = if v.is_nan() {
                0x7FC0_0000 | v.to_bits() & 0x8000_0000
            } else {
                // The largest finite value may carry into infinity, as rounding to nearest does.
                let draw = mix(stream.wrapping_add(i as u64)) as u32 & 0xFFFF;
                if v.is_infinite() { v.to_bits() } else { v.to_bits() + draw }
            };
            bytes.extend_from_slice(&((bits >> 16) as u16).to_le_bytes());
        }
        bytes
    }

    /// Writes the bits of a transpose, containers of `dtype`, `[m, n]` row-major, over what is there. A
    /// transpose copies; it does not accumulate.
    pub(crate) fn write_transposed(
        &mut self,
        dst: &View,
        bits: Vec<u8>,
        dtype: Dtype,
        how: Writeback,
    ) -> Result<(), OperandFault> {
        if how.asked_to_add {
            let what = "a transpose without START".to_owned();
            return Err(Fault::Unsupported { what, why: "a transpose does not accumulate" }.into());
        }
        let bits = match (dtype.bytes(), dst.dtype.bytes()) {
            (from, to) if from == to => bits,
            // FP8 and uint8 drain as 16 bits, the upper byte zero.
            (1, 2) => bits.iter().flat_map(|&b| [b, 0]).collect(),
            _ => {
                let text = "a transpose drains into its operand's type, or 16 bits for an 8-bit one";
                return Err(Fault::Type { text, dtype: dst.dtype }.on(dst.operand));
            }
        };
        if let Some(region) = how.clear {
            self.clear(dst, region)?;
        }
        self.psum_writes += 1;
        self.stats.matmuls += 1;
        self.machine.scatter(dst, &bits)
    }
}

/// A 64-bit mixing function (the finalizer of splitmix64).
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}
