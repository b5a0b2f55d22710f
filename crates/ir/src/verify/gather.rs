//! Gathered operands: an index list picks positions along the free dimension.
//!
//! The gather form of a descriptor holds a data base, the address of the positions and their number: no
//! strides. So the data is one dimension of step 1 that counts the positions, and the positions are
//! consecutive integers in SB, a list for each partition.

use hadal_isa::PerfMode;
use hadal_num::Dtype;

use crate::program::{Ap, Instr, MatmultMx, MemLoc, Op, Pair, Space, index_name};

use super::rules::{self, Sink};

/// Types of positions. The wire has no tag for them (ASSUMED).
const POSITIONS: [Dtype; 4] = [Dtype::Uint16, Dtype::Int16, Dtype::Uint32, Dtype::Int32];

/// The rules of one gathered operand and its positions.
pub(super) fn check(
    at: (usize, &Instr),
    (name, data): (&'static str, &Ap),
    (index, loc): (&Ap, &MemLoc),
    sink: &mut Sink,
) {
    let op = &at.1.op;
    let known = matches!(op, Op::Matmult(_) | Op::MatmultMx(_)) && matches!(name, "ifmap" | "weights");
    if !known {
        sink.instr(&rules::NO_GATHER, at, Some(name), format!("{} {name} is a gather", op.name()));
        return;
    }
    if let Op::Matmult(mm) = op
        && mm.perf_mode != PerfMode::None
    {
        sink.instr(
            &rules::NO_GATHER,
            at,
            Some(name),
            format!("{} {name} is a gather with perf_mode {}", op.name(), mm.perf_mode),
        );
        return;
    }
    if !matches!(data.free(), [one] if one.step == 1 || one.num == 1) {
        sink.instr(
            &rules::GATHER_DATA,
            at,
            Some(name),
            format!("free pairs {:?} of a gather, not one of step 1", pairs(data.free())),
        );
    }
    let name = index_name(name);
    let mut wrong = |text: String| sink.instr(&rules::GATHER_INDEX, at, Some(name), text);
    if loc.space() != Space::Sb {
        wrong(format!("positions are in SB, `{}` is in {}", loc.name, loc.space()));
    }
    if !POSITIONS.contains(&index.dtype) {
        let legal: Vec<&str> = POSITIONS.iter().map(|d| d.name()).collect();
        wrong(format!("positions are {}, one of {}", index.dtype, legal.join(", ")));
    }
    let unit = |p: &Pair| p.step == 1 || p.num == 1;
    if !matches!(index.pattern.as_slice(), [parts, free] if unit(parts) && unit(free)) {
        wrong(format!("positions have the pattern {:?}, not [[1, P], [1, N]]", pairs(&index.pattern)));
    } else if (index.partitions(), index.free_elements()) != (data.partitions(), data.free_elements()) {
        wrong(format!(
            "{} x {} positions for {} x {} elements",
            index.partitions(),
            index.free_elements(),
            data.partitions(),
            data.free_elements()
        ));
    }
}

fn pairs(pattern: &[Pair]) -> Vec<[i128; 2]> {
    pattern.iter().map(|p| [p.step.into(), p.num.into()]).collect()
}

/// An MX matmul gathers both of its data operands or neither.
pub(super) fn pair(at: (usize, &Instr), mm: &MatmultMx, sink: &mut Sink) {
    let (gathered, plain) = match (&mm.ifmap.index, &mm.weights.index) {
        (Some(_), None) => ("ifmap", "weights"),
        (None, Some(_)) => ("weights", "ifmap"),
        _ => return,
    };
    sink.instr(&rules::MX_GATHER_PAIR, at, Some(plain), format!("{gathered} is a gather and {plain} is not"));
}
