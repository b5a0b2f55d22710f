//! Rules every operand obeys: inside its location, encodable, in a space its operator reaches.

use crate::geom;
use crate::program::{Access, Ap, Instr, MemLoc, Op, Program, Space, index_name};

use super::rules::{self, Sink};

/// Checks the operands of one instruction. Returns whether the later rules may look at their shapes.
pub(super) fn check(p: &Program, at: (usize, &Instr), sink: &mut Sink) -> bool {
    let before = sink.found.len();
    for (name, access, ap) in at.1.op.operands() {
        let Some(loc) = p.loc(ap.loc) else { return false };
        pattern(at, name, ap, loc, sink);
        bounds(at, name, ap, loc, sink);
        if access == Access::Write {
            overlap(at, name, ap, loc, sink);
        }
        space(at, name, access, loc, sink);
        if let Some(index) = ap.index.as_deref() {
            let Some(loc) = p.loc(index.loc) else { return false };
            super::gather::check(at, (name, ap), (index, loc), sink);
            bounds(at, index_name(name), index, loc, sink);
        }
    }
    sink.found.len() == before
}

/// Whether a scale operand's nominal partition count is exempt from the partition rules.
pub(super) fn is_scale(name: &str) -> bool {
    matches!(name, "ifmap_scale" | "weights_scale" | "scale")
}

/// Free dimensions the operand's descriptor holds.
fn max_free(op: &Op, name: &str) -> usize {
    match op {
        Op::Matmult(_) => 3,
        Op::MatmultSparse(_) if name != "ifmap" => 3,
        Op::MatmultMx(_) if name == "out" => 3,
        Op::QuantizeMx { .. } if name == "src" => 3,
        Op::MatmultMx(_) | Op::QuantizeMx { .. } => 1,
        _ => 4,
    }
}

/// Whether the operand ends up in a bundle's 16-bit words.
fn is_encoded(op: &Op) -> bool {
    op.is_matmul() || matches!(op, Op::QuantizeMx { .. })
}

fn pattern(at: (usize, &Instr), name: &'static str, ap: &Ap, loc: &MemLoc, sink: &mut Sink) {
    let op = &at.1.op;
    let limit = max_free(op, name);
    if ap.free().len() > limit && loc.space() != Space::Dram {
        sink.instr(
            &rules::TOO_MANY_DIMS,
            at,
            Some(name),
            format!("{} free dimensions, {} {name} has {limit}", ap.free().len(), op.name()),
        );
    }
    if let Some(first) = ap.pattern.first()
        && loc.space() != Space::Dram
        && first.num > 1
        && first.step != 1
    {
        sink.instr(
            &rules::PARTITION_STEP,
            at,
            Some(name),
            format!("partition step is {}, not 1", first.step),
        );
    }
    if is_encoded(op) {
        for q in ap.free() {
            if i16::try_from(q.step).is_err() || u16::try_from(q.num).is_err() {
                sink.instr(
                    &rules::NOT_ENCODABLE,
                    at,
                    Some(name),
                    format!(
                        "pair [{}, {}] does not fit a stride of 16 signed bits and a count of 16 bits",
                        q.step, q.num
                    ),
                );
            }
        }
    }
}

fn bounds(at: (usize, &Instr), name: &'static str, ap: &Ap, loc: &MemLoc, sink: &mut Sink) {
    let dram = loc.space() == Space::Dram;
    if !dram && !is_scale(name) {
        let parts = geom::operand_partitions(ap);
        if parts.end > loc.partitions() {
            sink.instr(
                &rules::PARTITIONS_OUT,
                at,
                Some(name),
                format!(
                    "partitions {}..{} lie outside {} location `{}`, which has {}",
                    parts.start,
                    parts.end,
                    loc.space(),
                    loc.name,
                    loc.partitions()
                ),
            );
        }
    }
    let size = ap.dtype.bytes() as u64;
    // A gather walks its positions, which are data: only its base is known to be inside.
    let pairs = match (&ap.index, dram) {
        (Some(_), _) => &[],
        (None, true) => ap.pattern.as_slice(),
        (None, false) => ap.free(),
    };
    let (lo, hi) = Ap::reach(pairs);
    let first = i128::from(ap.offset) + i128::from(lo) * i128::from(size);
    let end = i128::from(ap.offset) + (i128::from(hi) + 1) * i128::from(size);
    if first < 0 || end > i128::from(loc.bytes()) {
        sink.instr(
            &rules::OUT_OF_LOCATION,
            at,
            Some(name),
            format!(
                "bytes {first}..{end} lie outside {} location `{}`, which has {} bytes{}",
                loc.space(),
                loc.name,
                loc.bytes(),
                if dram { "" } else { " a partition" }
            ),
        );
    }
}

fn overlap(at: (usize, &Instr), name: &'static str, ap: &Ap, loc: &MemLoc, sink: &mut Sink) {
    if is_scale(name) {
        return;
    }
    let dram = loc.space() == Space::Dram;
    let elements = if dram { ap.elements() } else { ap.free_elements() };
    let bytes = elements.saturating_mul(ap.dtype.bytes() as u64);
    if let Some(runs) = geom::operand_runs(ap, loc.space())
        && runs.len() < bytes
    {
        sink.instr(
            &rules::SELF_OVERLAP,
            at,
            Some(name),
            format!(
                "{elements} elements of {} bytes land on {} distinct bytes",
                ap.dtype.bytes(),
                runs.len()
            ),
        );
    }
}

fn space(at: (usize, &Instr), name: &'static str, access: Access, loc: &MemLoc, sink: &mut Sink) {
    let op = &at.1.op;
    let has = loc.space();
    match (op, access) {
        (Op::Matmult(_) | Op::MatmultSparse(_) | Op::MatmultMx(_), Access::Write) if has != Space::Psum => {
            sink.instr(
                &rules::DST_NOT_PSUM,
                at,
                Some(name),
                format!("{} dst tensor is not psum: `{}` is in {has}", op.name(), loc.name),
            );
        }
        (Op::Matmult(_) | Op::MatmultSparse(_) | Op::MatmultMx(_), Access::Read)
        | (Op::QuantizeMx { .. }, _)
            if has != Space::Sb =>
        {
            let text = if is_scale(name) {
                format!("MX Scale Tensor can only be in SB: `{}` is in {has}", loc.name)
            } else {
                format!("{} {name} must be in SB: `{}` is in {has}", op.name(), loc.name)
            };
            sink.instr(&rules::OPERAND_NOT_SB, at, Some(name), text);
        }
        (Op::DmaCopy { .. }, _) => {}
        _ if has == Space::Dram && !op.is_matmul() && !matches!(op, Op::QuantizeMx { .. }) => {
            sink.instr(
                &rules::COMPUTE_IN_DRAM,
                at,
                Some(name),
                format!("{} {name} must be SB or PSUM: `{}` is in DRAM", op.name(), loc.name),
            );
        }
        _ => {}
    }
}

/// Engines that have the operator.
fn engines(op: &Op) -> &'static [crate::program::Engine] {
    use crate::program::Engine::{Activation, Dma, Dve, Pe, Pool, Sp};
    match op {
        Op::Matmult(_) | Op::MatmultSparse(_) | Op::MatmultMx(_) => &[Pe],
        Op::QuantizeMx { .. } => &[Dve],
        Op::DmaCopy { .. } => &[Dma, Sp, Activation, Pe, Dve, Pool],
        _ => &[Activation, Dve, Pool],
    }
}

/// The engine rule.
pub(super) fn engine(at: (usize, &Instr), sink: &mut Sink) {
    let (_, instr) = at;
    let legal = engines(&instr.op);
    if !legal.contains(&instr.engine) {
        let rule =
            if matches!(instr.op, Op::QuantizeMx { .. }) { &rules::QUANTIZE_ENGINE } else { &rules::ENGINE };
        let names: Vec<&str> = legal.iter().map(|e| e.name()).collect();
        sink.instr(
            rule,
            at,
            None,
            format!(
                "{} cannot run on {} (engines: {})",
                instr.op.name(),
                instr.engine.name(),
                names.join(", ")
            ),
        );
    }
}
