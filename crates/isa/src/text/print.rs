//! Words to assembly text.

use super::write::{push_code, push_dec, push_hex, push_place, push_signed};
use crate::table::{Field, Kind, Layout, Value};
use crate::{
    ACCUMULATE, Decoded, Inst, MxPattern, Pattern, PerfMode, START, STOP, Target, Word, decode, mx_tag_name,
    operand_dtype,
};

/// More fields than any bundle has.
const MAX_FIELDS: usize = 16;

/// The fields of an instruction in a layout, collected so that an operand can find its tag.
pub(super) struct Slots<'a> {
    rows: [Option<(&'static Field, Value<'a>)>; MAX_FIELDS],
}

impl<'a> Slots<'a> {
    pub(super) fn of(inst: &'a Inst, layout: Layout) -> Self {
        let mut rows = [None; MAX_FIELDS];
        let mut free = rows.iter_mut();
        inst.walk(layout, |field, value| {
            if let Some(slot) = free.next() {
                *slot = Some((field, value));
            }
        });
        Slots { rows }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static Field, Value<'a>)> {
        self.rows.iter().map_while(|row| *row)
    }

    /// The byte of the field whose kind satisfies `wanted`.
    pub(super) fn byte(&self, wanted: impl Fn(&Field) -> bool) -> Option<(Kind, u8)> {
        self.iter().find_map(|(field, value)| match value {
            Value::Byte(byte) if wanted(field) => Some((field.kind, byte)),
            _ => None,
        })
    }

    /// The tag byte of the operand `key`.
    pub(super) fn tag_of(&self, key: &str) -> Option<(Kind, u8)> {
        self.byte(|field| matches!(field.kind, Kind::Tag(of) | Kind::MxTag(of) if of == key))
    }

    /// The perf variant byte, 0 where the bundle has none.
    pub(super) fn perf_variant(&self) -> u8 {
        self.byte(|field| field.kind == Kind::PerfVariant).map_or(0, |(_, byte)| byte)
    }
}

/// The text of one word, for a target.
#[must_use]
pub fn print(word: &Word, target: Target) -> String {
    let mut out = String::with_capacity(256);
    print_into(&mut out, word, target);
    out
}

/// A listing: the `.target` line, then one instruction a line.
#[must_use]
pub fn print_listing(words: &[Word], target: Target) -> String {
    let mut out = String::with_capacity(32 + words.len() * 224);
    out.push_str(".target ");
    out.push_str(&target.to_string());
    out.push('\n');
    for word in words {
        print_into(&mut out, word, target);
        out.push('\n');
    }
    out
}

/// Appends the text of one word to a buffer, without a line end.
pub fn print_into(out: &mut String, word: &Word, target: Target) {
    let Decoded { inst, residue } = decode(word, target);
    let Some(info) = inst.info() else {
        out.push_str(".word ");
        for &byte in &word.0 {
            push_hex(out, byte);
        }
        return;
    };
    out.push_str(info.name);
    let slots = Slots::of(&inst, Layout::of(target));
    for (field, value) in slots.iter() {
        match value {
            Value::Byte(byte) => push_byte(out, field, byte),
            Value::Pair([0, 0]) => {}
            Value::Pair([a, b]) => {
                push_key(out, field);
                out.push('[');
                push_code(out, a);
                out.push_str(", ");
                push_code(out, b);
                out.push(']');
            }
            Value::Pattern3(pattern) => {
                push_type(out, field, &slots, target);
                push_pattern(out, pattern);
            }
            Value::Pattern4(pattern) => {
                push_type(out, field, &slots, target);
                push_pattern(out, pattern);
            }
            Value::Mx(operand) => {
                push_type(out, field, &slots, target);
                push_mx(out, operand);
            }
        }
    }
    if !residue.is_zero() {
        push_residue(out, word, &residue);
    }
}

fn push_key(out: &mut String, field: &Field) {
    out.push_str(field.label);
}

fn push_byte(out: &mut String, field: &Field, byte: u8) {
    if byte == 0 || matches!(field.kind, Kind::Tag(_) | Kind::MxTag(_)) {
        return;
    }
    push_key(out, field);
    match field.kind {
        Kind::Count | Kind::Flag => push_dec(out, u32::from(byte)),
        Kind::Accumulate if byte <= 7 => push_flags(out, byte),
        Kind::PerfMode => match PerfMode::from_code(byte) {
            Some(mode) => out.push_str(mode.name()),
            None => push_code(out, byte),
        },
        _ => push_code(out, byte),
    }
}

/// Appends accumulate flags 1..=7 by name.
fn push_flags(out: &mut String, byte: u8) {
    let mut first = true;
    for (bit, name) in [(START, "start"), (STOP, "stop"), (ACCUMULATE, "accumulate")] {
        if byte & bit != 0 {
            if !first {
                out.push('|');
            }
            out.push_str(name);
            first = false;
        }
    }
}

/// Appends ` key=type@`.
fn push_type(out: &mut String, field: &Field, slots: &Slots<'_>, target: Target) {
    push_key(out, field);
    if let Some((kind, tag)) = slots.tag_of(field.key) {
        match type_name(kind, tag, field, slots, target) {
            Some(name) => out.push_str(name),
            None => {
                out.push_str("tag:");
                push_code(out, tag);
            }
        }
    }
    out.push('@');
}

fn type_name(kind: Kind, tag: u8, field: &Field, slots: &Slots<'_>, target: Target) -> Option<&'static str> {
    /// The tag of float32r proper; on the wire an operand of that type has float32's.
    const FLOAT32R: u8 = 0x0B;
    match kind {
        _ if tag == FLOAT32R => None,
        Kind::MxTag(_) => mx_tag_name(tag),
        // Only sources go through the reduced path: a destination of tag 0A is float32.
        _ if field.kind == Kind::Destination => operand_dtype(tag, 0, target.generation).map(|d| d.name()),
        _ => operand_dtype(tag, slots.perf_variant(), target.generation).map(|d| d.name()),
    }
}

fn push_pattern<const N: usize>(out: &mut String, pattern: &Pattern<N>) {
    if let Some(gather) = pattern.as_indirect()
        && gather.to_pattern() == Some(*pattern)
    {
        out.push_str("gather[");
        push_place(out, gather.data);
        out.push_str(", ");
        push_place(out, gather.index);
        out.push_str("][");
        for (at, &count) in gather.counts.iter().enumerate() {
            if at > 0 {
                out.push(' ');
            }
            push_dec(out, u32::from(count));
        }
        out.push(']');
        return;
    }
    push_place(out, pattern.start);
    out.push('[');
    let unit = |at: &usize| pattern.strides[*at] == 1 && pattern.counts[*at] == 1;
    let shown = (1..N).rev().find(|at| !unit(at)).map_or(1, |last| last + 1);
    for at in 0..shown {
        if at > 0 {
            out.push(' ');
        }
        push_signed(out, pattern.strides[at]);
        out.push('x');
        push_dec(out, u32::from(pattern.counts[at]));
    }
    out.push(']');
}

fn push_mx(out: &mut String, operand: &MxPattern) {
    let (step, k) = match operand.as_indirect() {
        Some(gather) if gather.to_pattern() == *operand => {
            out.push_str("mxgather[");
            push_place(out, gather.indices);
            out.push_str(", ");
            push_place(out, gather.data);
            push_scale(out, gather.scale, gather.scale_partition);
            (gather.step, gather.k)
        }
        _ => {
            out.push_str("mx[");
            push_place(out, operand.data);
            push_scale(out, operand.scale, operand.scale_partition);
            (operand.step, operand.k)
        }
    };
    out.push_str("][");
    push_signed(out, i16::from(step.cast_signed()));
    out.push('x');
    push_dec(out, u32::from(k));
    out.push(']');
    if operand.tail != [0; 4] && !out_is_gather(operand) {
        out.push_str("[tail ");
        for byte in operand.tail {
            push_hex(out, byte);
        }
        out.push(']');
    }
}

/// True when the operand prints in gather form, in which the tail holds fields.
fn out_is_gather(operand: &MxPattern) -> bool {
    operand.as_indirect().is_some_and(|gather| gather.to_pattern() == *operand)
}

fn push_scale(out: &mut String, scale: crate::Addr4, partition: u8) {
    out.push_str(", ");
    push_place(out, scale);
    out.push_str(", ");
    push_dec(out, u32::from(partition));
}

/// Appends the bytes that no field explains, as they are in the word.
fn push_residue(out: &mut String, word: &Word, residue: &Word) {
    out.push_str(" bytes{");
    let mut first = true;
    for (at, (&byte, &rest)) in word.0.iter().zip(&residue.0).enumerate() {
        if rest != 0 {
            if !first {
                out.push(' ');
            }
            push_hex(out, at as u8);
            out.push(':');
            push_hex(out, byte);
            first = false;
        }
    }
    out.push('}');
}
