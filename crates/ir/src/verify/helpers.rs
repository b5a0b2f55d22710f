//! Shapes of data movement and helper operators.

use hadal_num::Dtype;

use crate::program::{Accumulate, AluOp, Ap, Instr, Op, Program, Space};

use super::rules::{self, Sink};

pub(super) fn check(at: (usize, &Instr), sink: &mut Sink) {
    match &at.1.op {
        Op::DmaCopy { dst, src } => {
            if dst.elements() != src.elements() {
                mismatch(at, dst, src, sink);
            }
            if dst.dtype.bytes() != src.dtype.bytes() {
                sink.instr(
                    &rules::DMA_SIZE,
                    at,
                    Some("dst"),
                    format!(
                        "{} ({} bytes) to {} ({} bytes)",
                        src.dtype,
                        src.dtype.bytes(),
                        dst.dtype,
                        dst.dtype.bytes()
                    ),
                );
            }
        }
        Op::TensorCopy { dst, src } | Op::TensorScalar { dst, src, .. } => same_shape(at, dst, src, sink),
        Op::Activation { dst, src, accumulate, .. } => {
            same_shape(at, dst, src, sink);
            if let Some(a) = accumulate {
                accumulator(at, a, sink);
            }
        }
        Op::TensorTensor { dst, src0, src1, op } => {
            same_shape(at, dst, src0, sink);
            same_shape(at, dst, src1, sink);
            if !binary_has_meaning(*op, &[dst.dtype, src0.dtype, src1.dtype]) {
                sink.instr(
                    &rules::ALU_OP,
                    at,
                    None,
                    format!("{} on {} and {}", op.name(), src0.dtype, src1.dtype),
                );
            }
        }
        Op::AffineSelect(a) => {
            same_shape(at, &a.dst, &a.src, sink);
            let covered = a.pattern.iter().fold(1u64, |n, q| n.saturating_mul(q.num));
            if covered != a.dst.free_elements() {
                sink.instr(
                    &rules::SELECT_SHAPE,
                    at,
                    Some("dst"),
                    format!("pattern covers {covered} elements, destination has {}", a.dst.free_elements()),
                );
            }
            if !is_comparison(a.cmp) {
                sink.instr(&rules::ALU_OP, at, None, format!("{} is not a comparison", a.cmp.name()));
            }
        }
        Op::Transpose { dst, src } => transpose(at, dst, src, sink),
        Op::TensorReduce { dst, src, op, axes } => {
            let kept = src.free().len().saturating_sub(*axes as usize);
            let want = src.free().iter().take(kept).fold(1u64, |n, q| n.saturating_mul(q.num));
            if dst.partitions() != src.partitions() || dst.free_elements() != want {
                mismatch(at, dst, src, sink);
            }
            if !matches!(op, AluOp::Add | AluOp::Max | AluOp::Min | AluOp::Mult) {
                sink.instr(&rules::ALU_OP, at, None, format!("{} does not reduce", op.name()));
            }
        }
        Op::ReadActivationAccumulator { dst } if dst.dtype != Dtype::Float32 => {
            sink.instr(
                &rules::ALU_OP,
                at,
                Some("dst"),
                format!("the accumulator is float32, the destination {}", dst.dtype),
            );
        }
        _ => {}
    }
}

fn accumulator(at: (usize, &Instr), a: &Accumulate, sink: &mut Sink) {
    let mut wrong = |text: String| sink.instr(&rules::ACCUMULATOR, at, None, text);
    if a.command > 5 {
        wrong(format!("accumulator command {}, one of 0 to 5", a.command));
    } else if matches!(a.command, 3 | 5) && a.load.is_none() {
        wrong(format!(
            "an instruction that does a LoadAccumulate must provide an immediate value to load: command {}",
            a.command
        ));
    }
    if !matches!(a.op, AluOp::Add | AluOp::Max | AluOp::Min | AluOp::Mult) {
        wrong(format!("{} does not accumulate", a.op.name()));
    }
}

fn mismatch(at: (usize, &Instr), dst: &Ap, src: &Ap, sink: &mut Sink) {
    sink.instr(
        &rules::SHAPE_MISMATCH,
        at,
        Some("dst"),
        format!(
            "source is {} partitions x {} elements, destination {} x {}",
            src.partitions(),
            src.free_elements(),
            dst.partitions(),
            dst.free_elements()
        ),
    );
}

fn same_shape(at: (usize, &Instr), dst: &Ap, src: &Ap, sink: &mut Sink) {
    if dst.partitions() != src.partitions() || dst.free_elements() != src.free_elements() {
        mismatch(at, dst, src, sink);
    }
}

fn transpose(at: (usize, &Instr), dst: &Ap, src: &Ap, sink: &mut Sink) {
    let (p, f) = (src.partitions(), src.free_elements());
    let ok = if p <= 32 && f <= 32 {
        dst.partitions() == f && dst.free_elements() == p
    } else {
        p % 32 == 0 && f % 32 == 0 && dst.partitions() == p && dst.free_elements() == f
    };
    if !ok || dst.dtype.bytes() != src.dtype.bytes() {
        sink.instr(
            &rules::TRANSPOSE_SHAPE,
            at,
            Some("dst"),
            format!(
                "source {p} x {f} {}, destination {} x {} {}",
                src.dtype,
                dst.partitions(),
                dst.free_elements(),
                dst.dtype
            ),
        );
    }
}

/// Whether an ALU operation compares.
pub(crate) fn is_comparison(op: AluOp) -> bool {
    matches!(op, AluOp::IsEqual | AluOp::IsGe | AluOp::IsGt | AluOp::IsLe | AluOp::IsLt | AluOp::NotEqual)
}

/// Whether a two-operand ALU operation has a meaning for these element types: arithmetic, comparison
/// and logic everywhere, bitwise operations and shifts on integers only.
pub(crate) fn binary_has_meaning(op: AluOp, types: &[Dtype]) -> bool {
    use AluOp::{
        Add, ArithShiftLeft, ArithShiftRight, BitwiseAnd, BitwiseOr, BitwiseXor, Divide, LogicalAnd,
        LogicalOr, LogicalShiftLeft, LogicalShiftRight, LogicalXor, Max, Min, Mult, Subtract,
    };
    match op {
        Add | Subtract | Mult | Max | Min | Divide | LogicalAnd | LogicalOr | LogicalXor => {
            types.iter().all(|t| !t.is_x4())
        }
        BitwiseAnd | BitwiseOr | BitwiseXor | ArithShiftLeft | ArithShiftRight | LogicalShiftLeft
        | LogicalShiftRight => types.iter().all(|t| t.is_integer() && t.bytes() <= 4),
        _ => is_comparison(op),
    }
}

/// Cores share DRAM and have no barrier: no core may touch what another writes.
pub(super) fn core_races(cores: &[Program], sinks: &mut [Sink]) {
    use crate::geom::{self, RunSet};
    use crate::program::Access;
    use std::collections::BTreeMap;
    if cores.len() < 2 {
        return;
    }
    // tensor name -> per core (reads, writes), with the first instruction that wrote.
    type Use = (RunSet, RunSet, Option<usize>);
    let mut uses: BTreeMap<&str, Vec<Use>> = BTreeMap::new();
    for (c, p) in cores.iter().enumerate() {
        for (i, instr) in p.instrs.iter().enumerate() {
            for (_, access, ap) in instr.op.operands() {
                let Some(loc) = p.loc(ap.loc).filter(|l| l.space() == Space::Dram) else { continue };
                let Some(runs) = geom::operand_runs(ap, Space::Dram) else { continue };
                let per_core = uses.entry(&loc.name).or_insert_with(|| vec![Use::default(); cores.len()]);
                let Some(u) = per_core.get_mut(c) else { continue };
                if access == Access::Write {
                    u.1 = u.1.union(&runs);
                    u.2 = u.2.or(Some(i));
                } else {
                    u.0 = u.0.union(&runs);
                }
            }
        }
    }
    for (name, per_core) in &uses {
        for (a, ua) in per_core.iter().enumerate() {
            for (b, ub) in per_core.iter().enumerate() {
                if a == b || (a > b && ua.1.intersects(&ub.1)) {
                    continue;
                }
                let clash = ua.1.intersect(&ub.0.union(&ub.1));
                let Some(first) = clash.runs().first() else { continue };
                let (Some(i), Some(sink)) = (ua.2, sinks.get_mut(a)) else { continue };
                let Some(instr) = cores.get(a).and_then(|p| p.instrs.get(i)) else { continue };
                sink.instr(
                    &rules::CORE_RACE,
                    (i, instr),
                    None,
                    format!(
                        "core {a} writes bytes {}..{} of DRAM `{name}`, which core {b} uses too",
                        first.start, first.end
                    ),
                );
            }
        }
    }
}
