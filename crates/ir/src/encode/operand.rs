//! Placed access patterns to descriptors.

use hadal_isa::{Addr4, Pattern};

use crate::geom::{self, Area};
use crate::program::{Ap, Instr, LocKind, PSUM_BANK_BYTES, Program};

use super::EncodeError;

/// The area an operand touches in absolute coordinates of its memory.
pub(super) fn placed_area(p: &Program, ap: &Ap) -> Option<Area> {
    let loc = p.loc(ap.loc)?;
    let start = geom::start_partition(ap, loc)?;
    let parts = start..start.checked_add(u32::try_from(ap.partitions()).ok()?)?;
    let runs = geom::runs_of(ap.free(), ap.dtype.bytes() as u64, geom::start_byte(ap, loc)?)?;
    Some(Area::new(parts, runs))
}

/// The static pattern of a placed operand.
pub(super) fn pattern<const N: usize>(
    p: &Program,
    instr: &Instr,
    operand: &'static str,
    ap: &Ap,
) -> Result<Pattern<N>, EncodeError> {
    let fail = |what: String| EncodeError { instr: instr.name.clone(), operand, what };
    let start = address(p, ap).ok_or_else(|| fail("its location has no address".to_owned()))?;
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
