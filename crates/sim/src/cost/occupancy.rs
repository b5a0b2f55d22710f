//! How much of SBUF and PSUM a program holds at each instruction.

use std::ops::Range;

use hadal_ir::passes::alloc::live_ranges;
use hadal_ir::program::{LocKind, PSUM_BANK_BYTES, PSUM_BANKS, Program};

use crate::memory::PARTITIONS;

/// Memory in use while one instruction runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Occupancy {
    /// Bytes of SBUF over all partitions; locations that share bytes count each.
    pub sbuf_bytes: u64,
    /// PSUM banks with a live byte, one bit each.
    pub psum_banks: u8,
}

/// Occupancy by instruction. A location is live from its first use to its last; one that nothing in the
/// program writes is live from the start.
pub fn occupancy(program: &Program) -> Vec<Occupancy> {
    // What changes at each instruction: bytes, and locations of each bank.
    let count = program.instrs.len();
    let mut bytes = vec![0i128; count + 1];
    let mut banks = vec![[0i64; PSUM_BANKS as usize]; count + 1];
    for (loc, life) in program.locs.iter().zip(live_ranges(program)) {
        let Some(life) = life else { continue };
        match loc.kind {
            LocKind::Sb { partitions, bytes: size, .. } => {
                let size = i128::from(partitions.min(PARTITIONS as u32)) * i128::from(size);
                at_both_ends(&mut bytes, &life, |b, sign| *b += i128::from(sign) * size);
            }
            LocKind::Psum { bytes: size, .. } => {
                let start = loc.byte_offset().unwrap_or(0);
                let end = start.saturating_add(size.max(1)) - 1;
                let here = start / PSUM_BANK_BYTES..=end / PSUM_BANK_BYTES;
                at_both_ends(&mut banks, &life, |b, sign| {
                    b.iter_mut().zip(0u32..).filter(|(_, i)| here.contains(i)).for_each(|(n, _)| *n += sign);
                });
            }
            LocKind::Dram { .. } => {}
        }
    }
    let (mut sbuf, mut psum) = (0i128, [0i64; PSUM_BANKS as usize]);
    bytes
        .iter()
        .zip(&banks)
        .take(count)
        .map(|(bytes, banks)| {
            sbuf += bytes;
            psum.iter_mut().zip(banks).for_each(|(n, change)| *n += change);
            let mask = psum.iter().zip(0u32..).filter(|(n, _)| **n > 0).fold(0u8, |m, (_, i)| m | 1 << i);
            Occupancy { sbuf_bytes: u64::try_from(sbuf).unwrap_or(u64::MAX), psum_banks: mask }
        })
        .collect()
}

/// Applies a change where a life begins, and takes it back where it ends.
fn at_both_ends<T>(changes: &mut [T], life: &Range<usize>, change: impl Fn(&mut T, i64)) {
    if let Some(first) = changes.get_mut(life.start) {
        change(first, 1);
    }
    if let Some(after) = changes.get_mut(life.end) {
        change(after, -1);
    }
}
