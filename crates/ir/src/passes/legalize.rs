//! PSUM legalize (profile neuronx-cc-2.24): matmul destinations narrower than 4 bytes become float32.
//!
//! The location grows by the ratio, a Memset of it widens with it, and its readers see float32.
//! bfloat16 destinations and transposes are exempt.

use std::collections::BTreeMap;

use hadal_num::Dtype;

use crate::program::{LocId, LocKind, Op, Program, Space};
use crate::verify::rules::{self, Sink};

/// Widens the program's narrow destinations; a fixed neighbour that a widened location would hit is a
/// violation.
pub(crate) fn run(p: &mut Program, sink: &mut Sink) {
    let mut narrow: BTreeMap<LocId, Dtype> = BTreeMap::new();
    for instr in &p.instrs {
        if let Op::Matmult(mm) = &instr.op
            && mm.out.dtype.bytes() < 4
            && mm.out.dtype != Dtype::Bfloat16
            && !mm.is_transpose
            && p.loc(mm.out.loc).is_some_and(|l| l.space() == Space::Psum)
        {
            narrow.insert(mm.out.loc, mm.out.dtype);
        }
    }
    for (id, dtype) in narrow {
        let ratio = 4 / dtype.bytes() as u32;
        widen(p, id, dtype, ratio, sink);
    }
}

fn widen(p: &mut Program, id: LocId, dtype: Dtype, ratio: u32, sink: &mut Sink) {
    let Some(loc) = p.locs.get_mut(id.0 as usize) else { return };
    if let LocKind::Psum { bytes, .. } = &mut loc.kind {
        *bytes = bytes.saturating_mul(ratio);
    }
    for instr in &mut p.instrs {
        for (_, _, ap) in instr.op.operands_mut() {
            if ap.loc == id && ap.dtype == dtype {
                ap.dtype = Dtype::Float32;
                ap.offset = ap.offset.saturating_mul(u64::from(ratio));
            }
        }
    }
    let Some(grown) = p.loc(id) else { return };
    let (Some(start), Some(first)) = (grown.byte_offset(), grown.partition()) else { return };
    let end = u64::from(start) + grown.bytes();
    let parts = first..first.saturating_add(grown.partitions());
    for other in &p.locs {
        let (Some(os), Some(op)) = (other.byte_offset(), other.partition()) else { continue };
        if other.space() != Space::Psum || other.name == grown.name {
            continue;
        }
        let bytes_meet = u64::from(os) < end && u64::from(start) < u64::from(os) + other.bytes();
        let parts_meet = op < parts.end && parts.start < op.saturating_add(other.partitions());
        if bytes_meet && parts_meet {
            sink.loc(
                &rules::LEGALIZE_HIT,
                grown,
                format!(
                    "widened from {dtype} to float32 it reaches byte {end} of the partition, where `{}` begins at {os}",
                    other.name
                ),
            );
        }
    }
}
