//! The first bundles, byte by byte, as `hadal dis --fields` tells them.

use hadal::ir::encode::Bundle;
use hadal::isa::{self, FieldRow, text};
use serde_json::{Value, json};

use crate::cmd::run::timeline::CoreView;

/// Bundles shown.
const MAX_BUNDLES: usize = 32;

/// The first bundles of a core.
pub(super) fn first(core: CoreView<'_>, bundles: &[&Bundle]) -> Vec<Value> {
    let target = core.lowered.target;
    bundles
        .iter()
        .take(MAX_BUNDLES)
        .map(|b| {
            let mut line = String::new();
            text::print_into(&mut line, &b.word, target);
            let instr = core.instr(b);
            json!({
                "mnemonic": core.mnemonic(b),
                "text": line,
                "hex": b.word.to_string(),
                "instruction": instr.map(|i| i.name.as_str()),
                "source": instr.and_then(|i| i.pos.as_ref()).map(ToString::to_string),
                "fields": isa::fields(&b.word, target).iter().map(field).collect::<Vec<_>>(),
            })
        })
        .collect()
}

/// Offset, width, bit, key, recovered name, value, meaning, confidence, decision, part.
fn field(row: &FieldRow) -> Value {
    let digits = row.width.min(8) * 2;
    json!([
        row.offset,
        row.width,
        row.bit,
        row.key,
        row.name,
        format!("0x{:0digits$x}", row.value),
        row.meaning,
        row.confidence.name(),
        row.decision.map(|d| format!("D-{d:02}")),
        part(&row.key),
    ])
}

/// Which part of a bundle a field belongs to; each has a colour.
fn part(key: &str) -> &'static str {
    match key.split_once('.') {
        Some((_, "reserved")) => "reserved",
        Some(("dst" | "out", _)) => "result",
        Some(_) => "operand",
        None => match key {
            "opcode" | "length" => "header",
            "reserved" => "reserved",
            _ => "setting",
        },
    }
}
