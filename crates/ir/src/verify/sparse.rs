//! Types and shapes of the structured-sparse matmul (gen3).

use hadal_num::Dtype;

use crate::program::{Instr, MatmultSparse, PARTITIONS};

use super::matmul::{drained, is_operand_type, pairing};
use super::rules::{self, Sink};
use super::{LowerOptions, Profile};

pub(super) fn check(at: (usize, &Instr), mm: &MatmultSparse, o: &LowerOptions, sink: &mut Sink) {
    for (rule, name, d) in
        [(&rules::IFMAP_TYPE, "ifmap", mm.ifmap.dtype), (&rules::WEIGHTS_TYPE, "weights", mm.weights.dtype)]
    {
        if !is_operand_type(d) || d.is_x4() {
            sink.instr(rule, at, Some(name), format!("Invalid {name} data type for matmult: {d}"));
        }
    }
    for (name, d) in [("ifmap", mm.ifmap.dtype), ("weights", mm.weights.dtype)] {
        if d == Dtype::Float8E4m3fn && o.profile == Profile::Hardware {
            sink.instr(
                &rules::E4M3FN_GEN,
                at,
                Some(name),
                format!("{d} on {}, which reads its tag as legacy float8_e4m3", o.target),
            );
        }
    }
    pairing(at, mm.ifmap.dtype, mm.weights.dtype, sink);
    if mm.out.dtype != Dtype::Float32 {
        sink.instr(
            &rules::DST_TYPE,
            at,
            Some("out"),
            format!("destination is {}; {} takes float32", mm.out.dtype, o.target),
        );
    }
    if ![1, 2, 4].contains(&mm.compress_ratio) {
        sink.instr(
            &rules::SPARSE_RATIO,
            at,
            None,
            format!("compress_ratio {}, one of [1, 2, 4]", mm.compress_ratio),
        );
        return;
    }
    rows(at, mm, sink);
    let m = mm.weights.free_elements();
    if m > u64::from(PARTITIONS) {
        sink.instr(
            &rules::COLUMNS,
            at,
            Some("weights"),
            format!("stationary free size {m}, at most {PARTITIONS}"),
        );
    }
    let tags_ok = matches!(mm.tags.dtype, Dtype::Int16 | Dtype::Uint16)
        && m.is_multiple_of(4)
        && mm.tags.free_elements() == m / 4;
    if !tags_ok {
        sink.instr(
            &rules::SPARSE_TAGS,
            at,
            Some("tags"),
            format!(
                "tags are {} [{}, {}], stationary free size {m}",
                mm.tags.dtype,
                mm.tags.partitions(),
                mm.tags.free_elements()
            ),
        );
    }
    let ratio = u64::from(mm.compress_ratio);
    let leading = mm.ifmap.free().first().map_or(0, |p| p.num);
    if ratio > 1 && leading != ratio {
        sink.instr(
            &rules::SPARSE_MOVING,
            at,
            Some("ifmap"),
            format!("first free count is {leading}, compress_ratio {ratio}"),
        );
        return;
    }
    let n = mm.ifmap.free_elements() / ratio;
    drained(at, &mm.out, m, n, false, o, sink);
}

fn rows(at: (usize, &Instr), mm: &MatmultSparse, sink: &mut Sink) {
    let k = mm.weights.partitions();
    if !k.is_multiple_of(4) {
        sink.instr(
            &rules::SPARSE_ROWS,
            at,
            Some("weights"),
            format!("num_active_rows should be divisible by 4: {k}"),
        );
        return;
    }
    for (name, n) in [("weights", k), ("ifmap", mm.ifmap.partitions()), ("tags", mm.tags.partitions())] {
        if n != u64::from(PARTITIONS) {
            sink.instr(
                &rules::SPARSE_ROWS,
                at,
                Some(name),
                format!("Only the 128-active-rows case is supported: {n}"),
            );
        }
    }
}
