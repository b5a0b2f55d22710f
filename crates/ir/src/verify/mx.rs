//! Types, shapes and scale placement of MX operators (gen4).

use hadal_num::Dtype;

use crate::geom::{self, Area};
use crate::program::{Ap, Instr, MatmultMx, PARTITIONS, Program};

use super::gather;
use super::matmul::{drained, tile_rules, zero_region};
use super::rules::{self, Sink};
use super::written::scale_area;
use super::{LowerOptions, Profile};

/// Rows that a partition range of MX data has scales for: one for each 8 partitions.
const ROWS_PER_SCALE: u64 = 8;

pub(super) fn matmul(at: (usize, &Instr), mm: &MatmultMx, o: &LowerOptions, sink: &mut Sink) {
    for (name, ap) in [("ifmap", &mm.ifmap), ("weights", &mm.weights)] {
        let fp4_refused = ap.dtype == Dtype::Float4E2m1fnX4 && o.profile == Profile::NeuronxCc224;
        if !ap.dtype.is_x4() || fp4_refused {
            sink.instr(
                &rules::MX_TYPE,
                at,
                Some(name),
                format!("{} is not an MX operand type here", ap.dtype),
            );
        }
        unit_step(at, name, ap, sink);
        partitions(at, name, ap, &[32, 64, 128], sink);
    }
    gather::pair(at, mm, sink);
    for (name, scale, data) in
        [("ifmap_scale", &mm.ifmap_scale, &mm.ifmap), ("weights_scale", &mm.weights_scale, &mm.weights)]
    {
        scale_shape(at, name, scale, data, &rules::MX_SCALE_COUNT, sink);
    }
    let (k, m, n) = (mm.weights.partitions(), mm.weights.free_elements(), mm.ifmap.free_elements());
    if mm.ifmap.partitions() != k {
        sink.instr(
            &rules::K_MISMATCH,
            at,
            Some("ifmap"),
            format!("{} moving partitions, {k} stationary", mm.ifmap.partitions()),
        );
    }
    if let Some(rows) = mm.tile_size.map(|s| s[0]).filter(|rows| k > u64::from(*rows)) {
        sink.instr(&rules::ROWS, at, Some("weights"), format!("{k} partitions, at most {rows}"));
    }
    zero_region(at, mm.psum_zero_region, o, sink);
    if m % 2 != 0 || m > u64::from(PARTITIONS) {
        sink.instr(
            &rules::MX_EVEN,
            at,
            Some("weights"),
            format!("stationary free size {m}, not an even number up to 128"),
        );
    }
    if !matches!(mm.out.dtype, Dtype::Float32 | Dtype::Bfloat16) {
        sink.instr(
            &rules::DST_TYPE,
            at,
            Some("out"),
            format!("destination is {}; {} takes float32 or bfloat16", mm.out.dtype, o.target),
        );
    }
    drained(at, &mm.out, m, n, false, o, sink);
    tile_rules(at, mm.tile_size, mm.tile_position, o.target.generation, sink);
    let column = [mm.tile_size.map_or(PARTITIONS, |s| s[1]), mm.tile_position.map_or(0, |p| p[1])];
    if column != [PARTITIONS, 0] {
        sink.instr(
            &rules::MX_COLUMN_TILE,
            at,
            None,
            format!("column tile of {} at {}, not of 128 at 0", column[0], column[1]),
        );
    }
    if let Some(b) = mm.accumulate_flags
        && !hadal_isa::ACCUMULATE_LEGAL.contains(&b)
    {
        sink.instr(
            &rules::START_AND_ACCUMULATE,
            at,
            None,
            format!("accumulate byte {b} is not one of {:?}", hadal_isa::ACCUMULATE_LEGAL),
        );
    }
}

pub(super) fn quantize(at: (usize, &Instr), (src, data, scale): (&Ap, &Ap, &Ap), sink: &mut Sink) {
    if !matches!(src.dtype, Dtype::Bfloat16 | Dtype::Float16) {
        sink.instr(
            &rules::MX_SOURCE,
            at,
            Some("src"),
            format!("source is {}, not bfloat16 or float16", src.dtype),
        );
    }
    let packed = matches!(data.dtype, Dtype::Float8E4m3fnX4 | Dtype::Float8E5m2X4);
    if !packed {
        sink.instr(
            &rules::QUANTIZE_PACKING,
            at,
            Some("data"),
            if data.dtype.is_x4() {
                format!("{} is not a type QuantizeMx writes", data.dtype)
            } else {
                format!("MX dtype must be packed with 4 elements into 1: {}", data.dtype)
            },
        );
    }
    if src.partitions() != data.partitions() || src.free_elements() != data.free_elements().saturating_mul(4)
    {
        sink.instr(
            &rules::QUANTIZE_PACKING,
            at,
            Some("data"),
            format!(
                "source has {} x {} elements, data {} x {} containers of 4",
                src.partitions(),
                src.free_elements(),
                data.partitions(),
                data.free_elements()
            ),
        );
    }
    unit_step(at, "data", data, sink);
    partitions(at, "data", data, &[32, 64, 96, 128], sink);
    scale_shape(at, "scale", scale, data, &rules::QUANTIZE_SCALE, sink);
}

fn unit_step(at: (usize, &Instr), name: &'static str, ap: &Ap, sink: &mut Sink) {
    let ok = matches!(ap.free(), [one] if one.step.abs() == 1 || one.num == 1);
    if !ok {
        let pairs: Vec<[i128; 2]> = ap.free().iter().map(|p| [p.step.into(), p.num.into()]).collect();
        sink.instr(
            &rules::MX_PATTERN,
            at,
            Some(name),
            format!("free pairs {pairs:?}, not one of step 1 or -1"),
        );
    } else if ap.free_elements() > u64::from(u16::MAX) / 4 {
        sink.instr(
            &rules::NOT_ENCODABLE,
            at,
            Some(name),
            format!("{} containers of 4 elements do not fit a 16-bit extent", ap.free_elements()),
        );
    }
}

fn partitions(at: (usize, &Instr), name: &'static str, ap: &Ap, legal: &[u64], sink: &mut Sink) {
    if !legal.contains(&ap.partitions()) {
        sink.instr(
            &rules::MX_PARTITIONS,
            at,
            Some(name),
            format!("{} partitions, one of {legal:?}", ap.partitions()),
        );
    }
}

fn scale_shape(
    at: (usize, &Instr),
    name: &'static str,
    scale: &Ap,
    data: &Ap,
    count: &rules::Rule,
    sink: &mut Sink,
) {
    if !matches!(scale.dtype, Dtype::Float8E8m0fnu | Dtype::Uint8) {
        sink.instr(
            &rules::MX_SCALE_TYPE,
            at,
            Some(name),
            format!("scales are {}, not float8_e8m0fnu or uint8", scale.dtype),
        );
    }
    if scale.free_elements() != data.free_elements() {
        sink.instr(
            count,
            at,
            Some(name),
            format!(
                "{} scales a row for {} data elements",
                scale.free_elements(),
                data.free_elements().saturating_mul(4)
            ),
        );
    }
    unit_step(at, name, scale, sink);
}

pub(super) fn place_matmul(p: &Program, at: (usize, &Instr), mm: &MatmultMx, sink: &mut Sink) {
    let start = |ap: &Ap| p.loc(ap.loc).and_then(|l| geom::start_partition(ap, l));
    if let (Some(x), Some(w)) = (start(&mm.ifmap), start(&mm.weights)) {
        if x != w {
            sink.instr(
                &rules::ROW_START,
                at,
                Some("ifmap"),
                format!("moving starts at partition {x}, stationary at {w}"),
            );
        }
        if let Some(t) = mm.tile_position
            && t[0] != w
        {
            sink.instr(
                &rules::TILE_PLACEMENT,
                at,
                Some("weights"),
                format!(
                    "tile_position {t:?} puts weights at array row {}, but it starts at partition {w}",
                    t[0]
                ),
            );
        }
    }
    if let Some(column) = start(&mm.out).filter(|c| *c != 0) {
        sink.instr(
            &rules::MX_COLUMN_TILE,
            at,
            Some("out"),
            format!("the destination starts at partition {column}, but column 0 drains to partition 0"),
        );
    }
    place_scale(p, at, "ifmap_scale", &mm.ifmap, &mm.ifmap_scale, sink);
    place_scale(p, at, "weights_scale", &mm.weights, &mm.weights_scale, sink);
}

/// Scale rows sit in the quadrants of their data.
pub(super) fn place_scale(
    p: &Program,
    at: (usize, &Instr),
    name: &'static str,
    data: &Ap,
    scale: &Ap,
    sink: &mut Sink,
) {
    let (Some(sl), Some(dl)) = (p.loc(scale.loc), p.loc(data.loc)) else { return };
    let (Some(start), Some(first)) = (geom::start_partition(scale, sl), geom::start_partition(data, dl))
    else {
        return;
    };
    if start / 32 != first / 32 || start % 32 >= 16 || start % 4 != 0 {
        sink.instr(
            &rules::MX_SCALE_START,
            at,
            Some(name),
            format!("scales start at partition {start}, their data at {first}"),
        );
        return;
    }
    let last_row = (data.partitions() / ROWS_PER_SCALE).saturating_sub(1);
    let last = u64::from(start) + last_row % 4 + 32 * (last_row / 4);
    let end = u64::from(sl.partition().unwrap_or(0)) + u64::from(sl.partitions());
    if last >= end {
        sink.instr(
            &rules::MX_SCALE_ROWS,
            at,
            Some(name),
            format!("the last scale row sits at partition {last}, location `{}` ends at {end}", sl.name),
        );
    }
}

/// Data and scales of one quantization do not share bytes.
pub(super) fn outputs(p: &Program, at: (usize, &Instr), data: &Ap, scale: &Ap, sink: &mut Sink) {
    let placed = |ap: &Ap| {
        let loc = p.loc(ap.loc)?;
        let runs = geom::runs_of(ap.free(), ap.dtype.bytes() as u64, geom::start_byte(ap, loc)?)?;
        Some((geom::start_partition(ap, loc)?, runs))
    };
    let (Some((first, bytes)), Some((scale_first, scale_bytes))) = (placed(data), placed(scale)) else {
        return;
    };
    let rows = u32::try_from(data.partitions()).unwrap_or(u32::MAX);
    let data_area = Area::new(first..first.saturating_add(rows), bytes);
    let scale_area = scale_area(scale_first, data.partitions(), &scale_bytes);
    if let Some((partition, byte)) = data_area.intersect(&scale_area).first() {
        sink.instr(
            &rules::OUTPUT_OVERLAP,
            at,
            Some("scale"),
            format!("data and scales both write partition {partition}, byte {byte} of SB"),
        );
    }
}
