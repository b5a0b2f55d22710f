//! Brings the row pair of DoubleRow operands first (D-50).
//!
//! Patterns given pair-first stay as they are. gen2 splits one free dimension `[s, 2N]` into
//! `[N*s, 2], [s, N]` and keeps the first half of a destination of 2N (D-65); later generations swap the
//! last two dimensions when the pair is last.

use hadal_isa::{Gen, PerfMode};

use crate::program::{Ap, Op, Pair, Program};
use crate::verify::takes_pairs;

/// Rewrites every DoubleRow matmul of the program.
pub fn run(p: &mut Program, generation: Gen) {
    for instr in &mut p.instrs {
        let Op::Matmult(mm) = &mut instr.op else { continue };
        if !takes_pairs(mm.perf_mode) {
            continue;
        }
        let interleaved = mm.perf_mode == PerfMode::DoubleRowSwInterleave;
        if generation == Gen::Gen2 {
            halve(&mut mm.out, mm.ifmap.free_elements() / 2);
        }
        pair_first(&mut mm.ifmap, generation);
        if !interleaved {
            pair_first(&mut mm.weights, generation);
        }
    }
}

/// A destination `[s, 2N]` of a product of N columns becomes `[s, N]`.
fn halve(out: &mut Ap, columns: u64) {
    if let [_, one] = out.pattern.as_mut_slice()
        && one.num == columns.saturating_mul(2)
    {
        one.num = columns;
    }
}

fn pair_first(ap: &mut Ap, generation: Gen) {
    let free = ap.free();
    let rewritten = match free {
        [one] if generation == Gen::Gen2 && one.num % 2 == 0 => {
            let n = one.num / 2;
            let Some(far) = i64::try_from(n).ok().and_then(|n| n.checked_mul(one.step)) else { return };
            vec![Pair::new(far, 2), Pair::new(one.step, n)]
        }
        [first, .., last] if generation != Gen::Gen2 && first.num != 2 && last.num == 2 => {
            let mut v = free.to_vec();
            let n = v.len();
            v.swap(n - 2, n - 1);
            v
        }
        _ => return,
    };
    ap.pattern.truncate(1);
    ap.pattern.extend(rewritten);
}
