//! Modules as text.

use std::fmt::Write;

use super::node::quote;
use crate::program::{
    Accumulate, Ap, Attrs, Calc, CalcFlags, Immediate, Instr, LocKind, Matmult, MemLoc, Module, Op, Pair,
    Program, Role,
};

/// Writes a module in the form that [`parse`](super::parse) reads.
///
/// What the form leaves unsaid is left out (absent options, zero offsets, default engines). A matmul whose
/// accumulate byte the passes have set is written with that byte as its explicit `calc` list. Positions and
/// notes are not part of the form.
pub fn write(module: &Module) -> String {
    let mut out = String::new();
    out.push_str("{\"format\": \"hadal-bir\", \"version\": 1");
    put(&mut out, format_args!(",\n \"name\": {}", quote(&module.name)));
    match module.cores.as_slice() {
        [only] => {
            out.push_str(",\n");
            program(&mut out, only);
            out.push('}');
        }
        cores => {
            out.push_str(",\n \"cores\": [");
            for (i, core) in cores.iter().enumerate() {
                out.push_str(if i == 0 { "\n{\n" } else { ",\n{\n" });
                program(&mut out, core);
                out.push('}');
            }
            out.push_str("]}");
        }
    }
    out.push('\n');
    out
}

fn put(out: &mut String, args: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = out.write_fmt(args);
}

fn program(out: &mut String, p: &Program) {
    if p.attrs != Attrs::default() {
        let mut obj = Members::default();
        if let Some(v) = p.attrs.auto_psum_accumulate {
            obj.add("auto_psum_accumulate", v);
        }
        if p.attrs.fp8_conv_config != [0, 0] {
            let [saturate, nan] = p.attrs.fp8_conv_config;
            obj.add("fp8_conv_config", format_args!("[{saturate}, {nan}]"));
        }
        put(out, format_args!(" \"attrs\": {},\n", obj.inline()));
    }
    list(out, "memlocs", p.locs.iter().map(|l| memloc(l).inline()));
    out.push_str(",\n");
    list(out, "instructions", p.instrs.iter().map(|i| instruction(p, i)));
}

fn list(out: &mut String, key: &str, items: impl Iterator<Item = String>) {
    put(out, format_args!(" \"{key}\": ["));
    for (i, item) in items.enumerate() {
        out.push_str(if i == 0 { "\n  " } else { ",\n  " });
        out.push_str(&item);
    }
    out.push(']');
}

/// Members of an object under construction, as `"key": value` texts.
#[derive(Default)]
struct Members(Vec<String>);

impl Members {
    fn add(&mut self, key: &str, value: impl std::fmt::Display) {
        self.0.push(format!("\"{key}\": {value}"));
    }

    fn add_text(&mut self, key: &str, value: &str) {
        self.add(key, quote(value));
    }

    fn add_if(&mut self, key: &str, value: Option<impl std::fmt::Display>) {
        if let Some(v) = value {
            self.add(key, v);
        }
    }

    fn add_flag(&mut self, key: &str, value: bool) {
        if value {
            self.add(key, true);
        }
    }

    fn inline(&self) -> String {
        format!("{{{}}}", self.0.join(", "))
    }
}

fn memloc(l: &MemLoc) -> Members {
    let mut obj = Members::default();
    obj.add_text("name", &l.name);
    obj.add_text("space", l.space().name());
    match &l.kind {
        LocKind::Sb { partition, partitions, offset, bytes } => {
            obj.add_if("partition", *partition);
            obj.add("partitions", partitions);
            obj.add_if("offset", *offset);
            obj.add("bytes", bytes);
        }
        LocKind::Psum { partition, partitions, bank, offset, bytes } => {
            obj.add_if("partition", *partition);
            obj.add("partitions", partitions);
            obj.add_if("bank", *bank);
            obj.add_if("offset", *offset);
            obj.add("bytes", bytes);
        }
        LocKind::Dram { role, dtype, shape } => {
            if *role != Role::Internal {
                obj.add_text("role", role.name());
            }
            obj.add_text("dtype", dtype.name());
            obj.add("shape", format_args!("{shape:?}"));
        }
    }
    obj
}

fn pattern(pairs: &[Pair]) -> String {
    let items: Vec<String> = pairs.iter().map(|p| format!("[{}, {}]", p.step, p.num)).collect();
    format!("[{}]", items.join(", "))
}

fn operand(p: &Program, ap: &Ap) -> String {
    let mut obj = Members::default();
    obj.add_text("loc", p.loc(ap.loc).map_or("", |l| &l.name));
    obj.add_text("dtype", ap.dtype.name());
    obj.add("pattern", pattern(&ap.pattern));
    obj.add_if("partition", (ap.partition != 0).then_some(ap.partition));
    obj.add_if("offset", (ap.offset != 0).then_some(ap.offset));
    obj.add_if("index", ap.index.as_ref().map(|i| operand(p, i)));
    obj.inline()
}

fn float(v: f32) -> String {
    if v.is_nan() {
        "\"nan\"".to_owned()
    } else if v.is_infinite() {
        if v > 0.0 { "\"inf\"" } else { "\"-inf\"" }.to_owned()
    } else {
        // The debug form is the shortest text that reads back equal, and always has a point or exponent.
        format!("{v:?}")
    }
}

fn immediate(v: Immediate) -> String {
    match v {
        Immediate::Int(i) => i.to_string(),
        Immediate::Float(f) => float(f),
    }
}

fn calc(m: &Matmult) -> String {
    let flags = match (m.flags, m.calc) {
        (Some(byte), _) => CalcFlags::from_byte(byte),
        (None, Calc::Explicit(flags)) => flags,
        (None, Calc::Auto) => return "\"auto\"".to_owned(),
    };
    let words = [
        ("\"start\"", flags.start),
        ("\"stop\"", flags.stop),
        ("\"accumulate\"", flags.accumulate),
        ("\"continue\"", flags.cont),
    ];
    let set: Vec<&str> = words.iter().filter(|w| w.1).map(|w| w.0).collect();
    format!("[{}]", set.join(", "))
}

fn tile(obj: &mut Members, position: Option<[u32; 2]>, size: Option<[u32; 2]>) {
    obj.add_if("tile_position", position.map(|[r, c]| format!("[{r}, {c}]")));
    obj.add_if("tile_size", size.map(|[r, c]| format!("[{r}, {c}]")));
}

fn instruction(p: &Program, i: &Instr) -> String {
    let mut head = Members::default();
    head.add_text("op", i.op.name());
    head.add_text("name", &i.name);
    if i.engine != i.op.default_engine() {
        head.add_text("engine", i.engine.name());
    }
    let operands: Vec<String> =
        i.op.operands().into_iter().map(|(key, _, ap)| format!("\"{key}\": {}", operand(p, ap))).collect();
    let tail = options(&i.op);
    let mut lines = vec![head.0.join(", ")];
    lines.extend(operands);
    if !tail.0.is_empty() {
        lines.push(tail.0.join(", "));
    }
    format!("{{{}}}", lines.join(",\n   "))
}

/// The members of an instruction that are not operands.
fn options(op: &Op) -> Members {
    let mut obj = Members::default();
    match op {
        Op::Matmult(m) => matmult(&mut obj, m),
        Op::MatmultSparse(m) => obj.add("compress_ratio", m.compress_ratio),
        Op::MatmultMx(m) => {
            obj.add_if("accumulate_flags", m.accumulate_flags);
            obj.add_if("psum_zero_region", m.psum_zero_region);
            tile(&mut obj, m.tile_position, m.tile_size);
        }
        Op::QuantizeMx { .. }
        | Op::DmaCopy { .. }
        | Op::TensorCopy { .. }
        | Op::Transpose { .. }
        | Op::ReadActivationAccumulator { .. } => {}
        Op::Memset { value, .. } => obj.add("value", immediate(*value)),
        Op::TensorTensor { op, .. } => obj.add_text("alu", op.name()),
        Op::TensorScalar { op0, operand0, second, .. } => {
            obj.add_text("op0", op0.name());
            obj.add("operand0", immediate(*operand0));
            if let Some((op1, operand1)) = second {
                obj.add_text("op1", op1.name());
                obj.add("operand1", immediate(*operand1));
            }
        }
        Op::Activation { func, scale, bias, accumulate, .. } => {
            obj.add_text("func", func.name());
            obj.add("scale", float(*scale));
            obj.add("bias", float(*bias));
            obj.add_if("accumulate", accumulate.map(accumulator));
        }
        Op::TensorReduce { op, axes, .. } => {
            obj.add_text("alu", op.name());
            obj.add("axis", axes);
        }
        Op::AffineSelect(a) => {
            obj.add_text("cmp", a.cmp.name());
            obj.add("base", a.base);
            obj.add("channel_multiplier", a.channel_multiplier);
            obj.add("pattern", pattern(&a.pattern));
            obj.add("on_false", immediate(a.on_false));
        }
    }
    obj
}

fn accumulator(a: Accumulate) -> String {
    let mut obj = Members::default();
    obj.add("command", a.command);
    obj.add_text("op", a.op.name());
    obj.add_if("load", a.load.map(float));
    obj.inline()
}

fn matmult(obj: &mut Members, m: &Matmult) {
    obj.add("calc", calc(m));
    if m.perf_mode != hadal_isa::PerfMode::None {
        obj.add_text("perf_mode", m.perf_mode.name());
    }
    tile(obj, m.tile_position, m.tile_size);
    obj.add_flag("is_transpose", m.is_transpose);
    obj.add_flag("is_fmap_onezero", m.is_fmap_onezero);
    obj.add_flag("is_weight_onezero", m.is_weight_onezero);
    obj.add_flag("background_transpose", m.background_transpose);
    obj.add_flag("moving_transpose", m.moving_transpose);
    obj.add_if("replication", (m.replication != 0).then_some(m.replication));
    obj.add_if("psum_zero_region", m.psum_zero_region);
    if m.zero_point_ifmap.is_some() || m.zero_point_weights.is_some() {
        let mut points = Members::default();
        points.add_if("ifmap", m.zero_point_ifmap);
        points.add_if("weights", m.zero_point_weights);
        obj.add("zero_points", points.inline());
    }
}
