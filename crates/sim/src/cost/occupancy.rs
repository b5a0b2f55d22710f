//! How much of SBUF and PSUM a program holds at each instruction.

use std::ops::Range;

use hadal_ir::program::{LocKind, PSUM_BANK_BYTES, Program};

use crate::memory::PARTITIONS;

/// Memory in use while one instruction runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Occupancy {
    /// Bytes of SBUF over all partitions.
    pub sbuf_bytes: u64,
    /// PSUM banks with a live byte, one bit each.
    pub psum_banks: u8,
}

/// Occupancy by instruction. A location is live from its first use to its last; one that nothing in the
/// program writes is live from the start.
pub fn occupancy(program: &Program) -> Vec<Occupancy> {
    let count = program.instrs.len();
    let mut out = vec![Occupancy::default(); count];
    let live = live_ranges(program);
    for (loc, range) in program.locs.iter().zip(live) {
        let Some(range) = range else { continue };
        let steps = out.get_mut(range).unwrap_or(&mut []);
        match loc.kind {
            LocKind::Sb { partitions, bytes, .. } => {
                let size = u64::from(partitions.min(PARTITIONS as u32)) * u64::from(bytes);
                steps.iter_mut().for_each(|o| o.sbuf_bytes = o.sbuf_bytes.saturating_add(size));
            }
            LocKind::Psum { bytes, .. } => {
                let start = loc.byte_offset().unwrap_or(0);
                let end = start.saturating_add(bytes.max(1)) - 1;
                let banks = start / PSUM_BANK_BYTES..=end / PSUM_BANK_BYTES;
                let mask = (0..8u32).filter(|b| banks.contains(b)).fold(0u8, |m, b| m | 1 << b);
                steps.iter_mut().for_each(|o| o.psum_banks |= mask);
            }
            LocKind::Dram { .. } => {}
        }
    }
    out
}

/// Instructions from the first use of each location to the last; `None` for one that is not used.
fn live_ranges(program: &Program) -> Vec<Option<Range<usize>>> {
    let mut live: Vec<Option<Range<usize>>> = vec![None; program.locs.len()];
    for (i, instr) in program.instrs.iter().enumerate() {
        for (_, _, ap) in instr.op.operands() {
            for ap in std::iter::once(ap).chain(ap.index.as_deref()) {
                if let Some(slot) = live.get_mut(ap.loc.0 as usize) {
                    let start = slot.as_ref().map_or(i, |r| r.start);
                    *slot = Some(start..i + 1);
                }
            }
        }
    }
    for input in crate::bind::inputs(program) {
        let id = program.find_loc(&input.name).map(|id| id.0 as usize);
        if let Some(Some(range)) = id.and_then(|id| live.get_mut(id)) {
            range.start = 0;
        }
    }
    live
}
