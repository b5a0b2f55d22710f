//! What an input is for, so that generated values suit it.

use std::collections::BTreeMap;

use hadal_ir::program::{Access, Ap, LocId, LocKind, MemLoc, Op, Program};
use hadal_num::{Dtype, Overflow};

use super::random::Stream;

/// The use that decides how an input is filled from a seed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Purpose {
    /// Numbers of this type: floats standard normal, integers 0 to 7. The type is the location's own, or the
    /// one its bytes are read as when the location holds integers and every use reads them as one float type.
    Values(Dtype),
    /// Scales of MX blocks: codes 124 to 131, around 2^0, whatever the location's type.
    Scales,
    /// Sparsity tags: every 4-bit tag below `4 * ratio`.
    Tags {
        /// The smallest compression ratio of their uses.
        ratio: u32,
    },
    /// The moving operand of a transpose: an identity along each of these access patterns, 0 elsewhere.
    Identity(Vec<Ap>),
}

impl Purpose {
    /// A few words for a summary; `None` for plain numbers.
    pub fn note(&self) -> Option<&'static str> {
        match self {
            Purpose::Values(_) => None,
            Purpose::Scales => Some("scales near 1"),
            Purpose::Tags { .. } => Some("legal tags"),
            Purpose::Identity(_) => Some("identity"),
        }
    }
}

/// Locations whose use is more than numbers. Followed through DmaCopy and TensorCopy, last use first; the
/// use of one location never splits.
pub(super) fn special(program: &Program) -> BTreeMap<LocId, Purpose> {
    let mut found: BTreeMap<LocId, Purpose> = BTreeMap::new();
    for instr in program.instrs.iter().rev() {
        match &instr.op {
            Op::MatmultSparse(m) => add(&mut found, &m.tags, Purpose::Tags { ratio: m.compress_ratio }),
            Op::MatmultMx(m) => {
                add(&mut found, &m.weights_scale, Purpose::Scales);
                add(&mut found, &m.ifmap_scale, Purpose::Scales);
            }
            Op::Matmult(m) if m.is_transpose => {
                add(&mut found, &m.ifmap, Purpose::Identity(vec![m.ifmap.clone()]));
            }
            Op::DmaCopy { dst, src } | Op::TensorCopy { dst, src } => {
                let purpose = match found.get(&dst.loc) {
                    None | Some(Purpose::Values(_)) => continue,
                    // The copy's source stands where the operand does.
                    Some(Purpose::Identity(_)) => Purpose::Identity(vec![src.clone()]),
                    Some(other) => other.clone(),
                };
                add(&mut found, src, purpose);
            }
            _ => {}
        }
    }
    found
}

fn add(found: &mut BTreeMap<LocId, Purpose>, ap: &Ap, purpose: Purpose) {
    match (found.get_mut(&ap.loc), purpose) {
        (Some(Purpose::Tags { ratio }), Purpose::Tags { ratio: other }) => *ratio = other.min(*ratio),
        (Some(Purpose::Identity(list)), Purpose::Identity(more)) => list.extend(more),
        // Two uses that do not go together: the later one in the program stays.
        (Some(_), _) => {}
        (None, purpose) => {
            found.insert(ap.loc, purpose);
        }
    }
}

/// The float type that all uses read an integer location's bytes as, if there is one.
pub(super) fn read_as(program: &Program, id: LocId, dtype: Dtype) -> Dtype {
    if !dtype.is_integer() {
        return dtype;
    }
    let all = program.instrs.iter().flat_map(|i| i.op.operands());
    let mut types = all.filter(|(_, access, ap)| *access == Access::Read && ap.loc == id).map(|o| o.2.dtype);
    match types.next() {
        Some(first) if first.bytes() == dtype.bytes() && types.all(|t| t == first) => first,
        _ => dtype,
    }
}

/// The bytes of an input: `count` containers of `dtype`, as [`Stream::containers`] lays them out.
pub(super) fn bytes(
    purpose: &Purpose,
    stream: &mut Stream,
    loc: &MemLoc,
    dtype: Dtype,
    count: usize,
) -> Vec<u8> {
    let size = count.saturating_mul(dtype.bytes());
    match purpose {
        Purpose::Values(read_as) => stream.containers(*read_as, count),
        Purpose::Scales => stream.containers(Dtype::Float8E8m0fnu, size),
        Purpose::Tags { ratio } => stream.tags(u64::from(*ratio), size),
        Purpose::Identity(patterns) => {
            let mut out = vec![0; size];
            patterns.iter().for_each(|ap| identity(&mut out, loc, dtype, ap));
            out
        }
    }
}

/// Ones where element `n` of row `k` of a pattern has `n` = `k` modulo the rows, so that every column selects
/// one row.
fn identity(out: &mut [u8], loc: &MemLoc, dtype: Dtype, ap: &Ap) {
    let mut one = vec![0u8; ap.dtype.bytes()];
    if hadal_num::narrow(ap.dtype, &vec![1.0; ap.dtype.lanes()], Overflow::Ieee, &mut one).is_err() {
        return;
    }
    let width = usize::try_from(loc.bytes()).unwrap_or(usize::MAX) / dtype.bytes() * dtype.bytes();
    let dram = matches!(loc.kind, LocKind::Dram { .. });
    let step = ap.pattern.first().map_or(1, |p| p.step);
    let mut offsets = vec![0i64];
    // No on-chip row is longer; a longer pattern is refused when it is executed.
    if ap.free_elements() > 1 << 20 {
        return;
    }
    for p in ap.free() {
        let counts = 0..i64::try_from(p.num).unwrap_or(0);
        let steps: Vec<i64> = counts.map(|i| i.saturating_mul(p.step)).collect();
        offsets = offsets.iter().flat_map(|a| steps.iter().map(move |b| a.saturating_add(*b))).collect();
    }
    let rows = usize::try_from(ap.partitions()).unwrap_or(usize::MAX);
    for (n, offset) in offsets.iter().enumerate() {
        let k = i64::try_from(n % rows.max(1)).unwrap_or(i64::MAX).saturating_mul(step);
        let (row, container) = if dram { (0, offset.saturating_add(k)) } else { (k, *offset) };
        let row = row.saturating_add(i64::from(ap.partition));
        let byte = container.saturating_mul(one.len() as i64);
        let byte = byte.saturating_add(i64::try_from(ap.offset).unwrap_or(i64::MAX));
        let (Ok(row), Ok(byte)) = (usize::try_from(row), usize::try_from(byte)) else { continue };
        let at = row.saturating_mul(width).saturating_add(byte);
        if let Some(to) = out.get_mut(at..at.saturating_add(one.len())) {
            to.copy_from_slice(&one);
        }
    }
}
