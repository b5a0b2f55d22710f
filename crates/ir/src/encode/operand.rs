//! Placed access patterns to descriptors.

use hadal_isa::{Addr4, IndirectPattern, Pattern};

use crate::geom::{self, Area, RunSet};
use crate::program::{Ap, Instr, LocKind, PSUM_BANK_BYTES, Program};

use super::EncodeError;

/// The area an operand touches in absolute coordinates of its memory.
///
/// The positions of a gather are not known here: it may touch every byte of its partitions.
pub(super) fn placed_area(p: &Program, ap: &Ap) -> Option<Area> {
    let loc = p.loc(ap.loc)?;
    let start = geom::start_partition(ap, loc)?;
    let parts = start..start.checked_add(u32::try_from(ap.partitions()).ok()?)?;
    if let Some(index) = ap.index.as_deref() {
        let anywhere = Area::new(parts, RunSet::single(0..1 << 18));
        return Some(anywhere.union(&placed_area(p, index)?));
    }
    let runs = geom::runs_of(ap.free(), ap.dtype.bytes() as u64, geom::start_byte(ap, loc)?)?;
    Some(Area::new(parts, runs))
}

/// The pattern of a placed operand: static, or the gather form when it has positions.
pub(super) fn pattern<const N: usize>(
    p: &Program,
    instr: &Instr,
    operand: &'static str,
    ap: &Ap,
) -> Result<Pattern<N>, EncodeError> {
    let fail = |what: String| EncodeError { instr: instr.name.clone(), operand, what };
    let no_address = || fail("its location has no address".to_owned());
    let start = address(p, ap).ok_or_else(no_address)?;
    if let Some(index) = ap.index.as_deref() {
        let mut counts = [1; N];
        let n =
            u16::try_from(index.free_elements()).map_err(|_| fail("positions over 16 bits".to_owned()))?;
        if let Some(first) = counts.first_mut() {
            *first = n;
        }
        let index = address(p, index).ok_or_else(no_address)?;
        let gather = IndirectPattern { data: start, index, counts };
        return gather.to_pattern().ok_or_else(|| fail("its descriptor has no gather form".to_owned()));
    }
    let mut dims = Vec::with_capacity(N);
    for q in ap.free() {
        let dim = i16::try_from(q.step).ok().zip(u16::try_from(q.num).ok());
        dims.push(dim.ok_or_else(|| fail(format!("pair [{}, {}] does not fit 16 bits", q.step, q.num)))?);
    }
    Pattern::new(start, &dims).ok_or_else(|| fail(format!("{} free dimensions, {N} fit", dims.len())))
}

/// The start address of a placed SB or PSUM operand.
pub(super) fn address(p: &Program, ap: &Ap) -> Option<Addr4> {
    let loc = p.loc(ap.loc)?;
    let partition = geom::start_partition(ap, loc)?;
    let byte = u32::try_from(geom::start_byte(ap, loc)?).ok()?;
    match loc.kind {
        LocKind::Sb { .. } => Some(Addr4::sbuf(partition, byte)),
        LocKind::Psum { .. } => Some(Addr4::psum(partition, byte / PSUM_BANK_BYTES, byte % PSUM_BANK_BYTES)),
        LocKind::Dram { .. } => None,
    }
}
