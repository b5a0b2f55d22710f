//! The public profiler's syntax for an instruction.
//!
//! `src=<dtype>@<addr>[strides][num] dst=<dtype>@<addr>[strides][num] <M>*<K> acc_flags=<f> psum_zero=<v>`,
//! and for an MX source `src=<dtype>@$MX[<data>,<scale>,<start_scale_partition>]@[step][num]`.
//! Reading it back is not supported: it leaves bytes out.

use super::print::Slots;
use super::write::{push_address, push_dec, push_signed};
use crate::table::{Field, Kind, Layout, Value};
use crate::{Addr4, Inst, MxPattern, Pattern, Target, Word, decode, mx_tag_dtype, operand_dtype};
use hadal_num::Dtype;

/// The profiler lists dimensions innermost first, the reverse of the wire (D-08).
const INNERMOST_FIRST: bool = true;

/// The profiler-style text of one word.
#[must_use]
pub fn print_profile(word: &Word, target: Target) -> String {
    let mut out = String::with_capacity(160);
    print_profile_into(&mut out, word, target);
    out
}

/// Appends the profiler-style text of one word to a buffer, without a line end.
pub fn print_profile_into(out: &mut String, word: &Word, target: Target) {
    let inst = decode(word, target).inst;
    let Some(info) = inst.info() else {
        out.push_str("Unknown opcode=");
        push_dec(out, u32::from(word.opcode()));
        return;
    };
    out.push_str(info.name);
    let slots = Slots::of(&inst, Layout::of(target));
    // Sources come first whatever their order on the wire.
    for role in ["src", "dst"] {
        for (field, value) in slots.iter().filter(|(field, _)| role_of(field) == Some(role)) {
            out.push(' ');
            out.push_str(role);
            out.push('=');
            push_dtype(out, field, &slots, target);
            match value {
                Value::Pattern3(pattern) => push_pattern(out, pattern),
                Value::Pattern4(pattern) => push_pattern(out, pattern),
                Value::Mx(operand) => push_mx(out, operand),
                Value::Byte(_) | Value::Pair(_) => {}
            }
        }
    }
    push_controls(out, &inst, &slots);
}

fn role_of(field: &Field) -> Option<&'static str> {
    match field.kind {
        Kind::Destination => Some("dst"),
        Kind::Mx if field.key == "out" => Some("dst"),
        Kind::Source | Kind::Mx => Some("src"),
        _ => None,
    }
}

fn push_controls(out: &mut String, inst: &Inst, slots: &Slots<'_>) {
    let byte = |key: &str| slots.byte(|field| field.key == key).map(|(_, byte)| u32::from(byte));
    if let (Some(m), Some(k)) = (byte("active_cols"), byte("rows")) {
        out.push(' ');
        push_dec(out, m);
        out.push('*');
        push_dec(out, k);
    }
    if matches!(inst, Inst::Matmul(_) | Inst::MatmultMx(_)) {
        for (key, label) in [("accumulate", " acc_flags="), ("psum_zero_region", " psum_zero=")] {
            if let Some(value) = byte(key) {
                out.push_str(label);
                push_dec(out, value);
            }
        }
    }
}

fn push_dtype(out: &mut String, field: &Field, slots: &Slots<'_>, target: Target) {
    let Some((kind, tag)) = slots.tag_of(field.key) else { return };
    let dtype = match kind {
        Kind::MxTag(_) => mx_tag_dtype(tag),
        _ if field.kind == Kind::Destination => operand_dtype(tag, 0, target.generation),
        _ => operand_dtype(tag, slots.perf_variant(), target.generation),
    };
    match dtype {
        Some(dtype) => out.push_str(profile_name(dtype)),
        None => {
            out.push_str("dtype");
            push_dec(out, u32::from(tag));
        }
    }
}

/// The profiler's name of a type: bfloat16, fp8e4 and fp8e5 are documented, the rest follow them
/// (ASSUMED).
const fn profile_name(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Float16 => "fp16",
        Dtype::Float32 => "fp32",
        Dtype::Float32r => "fp32r",
        Dtype::Float8E3m4 => "fp8e3",
        Dtype::Float8E4m3 | Dtype::Float8E4m3fn => "fp8e4",
        Dtype::Float8E5m2 => "fp8e5",
        Dtype::Float4E2m1fnX4 => "fp4_x4",
        Dtype::Float8E4m3fnX4 => "fp8e4_x4",
        Dtype::Float8E5m2X4 => "fp8e5_x4",
        other => other.name(),
    }
}

fn push_hex_address(out: &mut String, address: Addr4) {
    push_address(out, address.0);
}

fn push_pattern<const N: usize>(out: &mut String, pattern: &Pattern<N>) {
    out.push('@');
    push_hex_address(out, pattern.start);
    out.push('[');
    for i in 0..N {
        if i > 0 {
            out.push(',');
        }
        push_signed(out, pattern.strides[if INNERMOST_FIRST { N - 1 - i } else { i }]);
    }
    out.push_str("][");
    for i in 0..N {
        if i > 0 {
            out.push(',');
        }
        push_dec(out, u32::from(pattern.counts[if INNERMOST_FIRST { N - 1 - i } else { i }]));
    }
    out.push(']');
}

fn push_mx(out: &mut String, operand: &MxPattern) {
    let (data, scale, partition, step, k) = match operand.as_indirect() {
        Some(g) => (g.data, g.scale, g.scale_partition, g.step, g.k),
        None => (operand.data, operand.scale, operand.scale_partition, operand.step, operand.k),
    };
    out.push_str("@$MX[");
    push_hex_address(out, data);
    out.push(',');
    push_hex_address(out, scale);
    out.push(',');
    push_dec(out, u32::from(partition));
    out.push_str("]@[");
    push_signed(out, i16::from(step.cast_signed()));
    out.push_str("][");
    push_dec(out, u32::from(k));
    out.push(']');
}
