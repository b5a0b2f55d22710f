//! Programs of probes: a few matmuls into one PSUM tile, or one quantization.

use std::collections::BTreeMap;

use hadal_ir::encode::lower;
use hadal_ir::program::{Ap, Attrs, Instr, LocId, LocKind, Matmult, MemLoc, Module, Op, Pair, Program};
use hadal_ir::verify::{LowerOptions, verify};
use hadal_isa::{PerfMode, Target};
use hadal_num::Dtype;

use super::{ProbeError, Reading};
use crate::bind::{Array, ArrayDtype, dump, widen};
use crate::options::Options;
use crate::run::{Executor, RunError, run_module};

/// A program under construction, and its inputs.
#[derive(Default)]
pub(super) struct Maker {
    program: Program,
    given: BTreeMap<String, Array>,
    /// First free byte of an SBUF partition.
    next: u32,
}

/// An operand's values.
pub(super) enum Values<'a> {
    /// Rounded to the operand's type.
    Floats(&'a [f32]),
    /// 16-bit patterns.
    Bits16(&'a [u16]),
}

impl Maker {
    pub(super) fn new() -> Maker {
        Maker { program: Program { attrs: Attrs::default(), ..Program::default() }, ..Maker::default() }
    }

    fn loc(&mut self, name: String, kind: LocKind) -> LocId {
        self.program.locs.push(MemLoc { name, kind, pos: None });
        LocId(u32::try_from(self.program.locs.len() - 1).unwrap_or(u32::MAX))
    }

    /// An SBUF tile of `[rows, columns]` containers with these values.
    pub(super) fn tile(&mut self, dtype: Dtype, [rows, columns]: [u32; 2], values: &Values<'_>) -> Ap {
        let name = format!("t{}", self.program.locs.len());
        let bytes = columns * dtype.bytes() as u32;
        let shape = vec![rows as usize, columns as usize];
        let array = match values {
            Values::Floats(v) => Array::from_f32(shape, v),
            Values::Bits16(v) => {
                let data = v.iter().flat_map(|b| b.to_le_bytes()).collect();
                Array { dtype: ArrayDtype::U16, shape, data }
            }
        };
        self.given.insert(name.clone(), array);
        let loc = self.room(name, rows, bytes);
        pattern(loc, dtype, rows, columns)
    }

    /// An SBUF tile without values.
    pub(super) fn empty(&mut self, name: &str, dtype: Dtype, [rows, columns]: [u32; 2]) -> Ap {
        let loc = self.room(name.to_owned(), rows, columns * dtype.bytes() as u32);
        pattern(loc, dtype, rows, columns)
    }

    fn room(&mut self, name: String, rows: u32, bytes: u32) -> LocId {
        let offset = Some(self.next);
        self.next += bytes.next_multiple_of(64);
        self.loc(name, LocKind::Sb { partition: Some(0), partitions: rows, offset, bytes })
    }

    /// The PSUM tile `o` of `[rows, columns]`.
    pub(super) fn psum(&mut self, dtype: Dtype, [rows, columns]: [u32; 2]) -> Ap {
        let kind = LocKind::Psum {
            partition: Some(0),
            partitions: rows,
            bank: Some(0),
            offset: Some(0),
            bytes: columns * dtype.bytes() as u32,
        };
        let loc = self.loc("o".to_owned(), kind);
        pattern(loc, dtype, rows, columns)
    }

    pub(super) fn push(&mut self, op: Op) {
        let name = format!("i{}", self.program.instrs.len());
        self.program.instrs.push(Instr { name, engine: op.default_engine(), op, pos: None });
    }

    /// `out (+)= weights.T @ moving`: the first write of an element overwrites, later ones add.
    pub(super) fn matmul(&mut self, moving: &Ap, weights: &Ap, out: &Ap) {
        self.push(Op::Matmult(Box::new(Matmult::new(moving.clone(), weights.clone(), out.clone()))));
    }

    /// The transpose of `weights` by an identity.
    pub(super) fn transpose(&mut self, identity: &Ap, weights: &Ap, out: &Ap) {
        let mut mm = Matmult::new(identity.clone(), weights.clone(), out.clone());
        mm.is_transpose = true;
        self.push(Op::Matmult(Box::new(mm)));
    }

    /// A matmul of row pairs, `[rows, 2, columns]` on both sides.
    pub(super) fn row_pairs(&mut self, moving: &Ap, weights: &Ap, out: &Ap) {
        let pair = |ap: &Ap| {
            let mut ap = ap.clone();
            let half = ap.free_elements() / 2;
            ap.pattern.truncate(1);
            ap.pattern.push(Pair::new(i64::try_from(half).unwrap_or(i64::MAX), 2));
            ap.pattern.push(Pair::new(1, half));
            ap
        };
        let mut mm = Matmult::new(pair(moving), pair(weights), out.clone());
        mm.perf_mode = PerfMode::DoubleRow;
        self.push(Op::Matmult(Box::new(mm)));
    }

    /// Runs the bundles and reads locations back.
    pub(super) fn run(
        self,
        target: Target,
        options: &Options,
        names: &[&str],
    ) -> Result<Vec<Reading>, ProbeError> {
        let module = Module { name: "probe".to_owned(), cores: vec![self.program], notes: Vec::new() };
        let verified = verify(module, LowerOptions::new(target)).map_err(ProbeError::Rules)?;
        let lowered = lower(&verified)?;
        let run = run_module(&verified, &lowered, Executor::Bundles, options, 0, &self.given, &mut ())?;
        let module = verified.module();
        let mut out = Vec::with_capacity(names.len());
        for name in names {
            let machine = run.machines.first();
            let (Some(machine), Some(program)) = (machine, module.cores.first()) else { continue };
            let array = dump(machine, program, name).map_err(RunError::from)?;
            let dtype =
                program.find_loc(name).map_or(Dtype::Uint8, |id| crate::bind::element_type(program, id));
            let wide = widen(&array, dtype).map_err(RunError::from)?;
            // FP8 containers are read lane by lane.
            let lane = dtype.bytes() / if dtype.bytes() == dtype.lanes() { dtype.lanes() } else { 1 };
            let bits = array
                .data
                .chunks(lane.max(1))
                .map(|c| c.iter().rev().fold(0u32, |v, b| v << 8 | u32::from(*b)))
                .collect();
            out.push(Reading {
                values: wide.to_f32().unwrap_or_default(),
                bits,
                width: u32::try_from(8 * lane).unwrap_or(32),
            });
        }
        Ok(out)
    }
}

fn pattern(loc: LocId, dtype: Dtype, rows: u32, columns: u32) -> Ap {
    Ap {
        loc,
        dtype,
        partition: 0,
        offset: 0,
        pattern: vec![Pair::new(1, u64::from(rows)), Pair::new(1, u64::from(columns))],
        index: None,
    }
}
