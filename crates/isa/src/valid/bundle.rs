//! Every rule of a whole bundle.

use super::address::Role;
use super::check_accumulation_flag;
use super::fault::Fault;
use super::mx::mxmem1d_valid;
use super::pattern::{mem3d_valid, mem4d_valid, mm_dst_mem3d_valid};
use super::violation::{Report, Violation};
use crate::table::{BundleInfo, Field, Kind, LENGTH_WORDS, Layout, Shape, Value};
use crate::{
    GROUPS_LEGAL, Inst, PerfMode, PerfVariant, Target, Word, decode, group_lanes, sparse_col_grp, tag_name,
};

/// Checks a word as an instruction of a target and gives every violation, in byte order: opcode and
/// length, reserved bytes, type tags, accumulate flags, groups against rows and columns, fixed
/// bytes, and each operand's descriptor in its role.
#[must_use]
pub fn check(word: &Word, target: Target) -> Vec<Violation> {
    let mut report = Report::default();
    let decoded = decode(word, target);
    let Some(info) = decoded.inst.info() else {
        let message = format!("no instruction of {target} has this opcode; check the target");
        report.add("ISA301", 0, "opcode", u64::from(word.opcode()), message);
        return report.finish();
    };
    let bundle = Bundle { word, target, layout: Layout::of(target), info, inst: &decoded.inst };
    bundle.header(&decoded.residue, &mut report);
    bundle.inst.walk(bundle.layout, |field, value| bundle.field(field, value, &mut report));
    bundle.groups(&mut report);
    bundle.reduced(&mut report);
    report.finish()
}

struct Bundle<'a> {
    word: &'a Word,
    target: Target,
    layout: Layout,
    info: &'static BundleInfo,
    inst: &'a Inst,
}

impl Bundle<'_> {
    fn header(&self, residue: &Word, report: &mut Report) {
        for (at, &rest) in residue.0.iter().enumerate().filter(|(_, rest)| **rest != 0) {
            let value = u64::from(self.word.0.get(at).copied().unwrap_or_default());
            if at == 1 {
                let message = format!(
                    "a bundle's length is {LENGTH_WORDS:#04x} words; the word is not an instruction, or is damaged"
                );
                report.add("ISA302", at, "length", value, message);
            } else {
                let message = format!("reserved bits {rest:#04x} must be 0; clear them");
                report.add("ISA303", at, "reserved", value, message);
            }
        }
        self.mx_tails(report);
    }

    /// The last bytes of a static MX descriptor are reserved too.
    fn mx_tails(&self, report: &mut Report) {
        self.inst.walk(self.layout, |field, value| {
            if let Value::Mx(operand) = value
                && !operand.data.is_indirect()
            {
                for (at, &byte) in operand.tail.iter().enumerate().filter(|(_, byte)| **byte != 0) {
                    let at = field.span.offset + 12 + at;
                    report.add("ISA303", at, field.key, u64::from(byte), "reserved byte must be 0; clear it");
                }
            }
        });
    }

    /// The value of the byte field `key`.
    fn byte(&self, key: &str) -> Option<u8> {
        let mut found = None;
        self.inst.walk(self.layout, |field, value| {
            if let Value::Byte(byte) = value
                && field.key == key
            {
                found = Some(byte);
            }
        });
        found
    }

    fn tag_of(&self, operand: &Field) -> u8 {
        let mut found = 0;
        self.inst.walk(self.layout, |field, value| match (field.kind, value) {
            (Kind::Tag(of) | Kind::MxTag(of), Value::Byte(byte)) if of == operand.key => found = byte,
            _ => {}
        });
        found
    }

    fn field(&self, field: &'static Field, value: Value<'_>, report: &mut Report) {
        match value {
            Value::Byte(byte) => self.byte_rule(field, byte, report),
            Value::Pair([a, b]) if a != b => {
                let message = format!("the replication bytes are alike, these are {a:#04x} and {b:#04x}");
                report.add("ISA331", field.span.offset, field.key, u64::from(a), message);
            }
            Value::Pair(_) => {}
            Value::Pattern3(_) | Value::Pattern4(_) | Value::Mx(_) => {
                if let Err(fault) = self.operand(field) {
                    let Fault { offset, value, kind } = fault;
                    let at = field.span.offset + offset;
                    report.add(kind.code(), at, field.key, u64::from(value), kind.to_string());
                }
            }
        }
    }

    /// Runs the descriptor validator of an operand's form and role.
    fn operand(&self, field: &Field) -> Result<(), Fault> {
        let mut bytes = [0u8; 20];
        let bytes = bytes.get_mut(..field.width).unwrap_or_default();
        let from = self.word.0.get(field.span.offset..field.span.offset + field.width).unwrap_or_default();
        bytes.copy_from_slice(from);
        if field.span.shape == Shape::LessBit31
            && let Some(byte) = bytes.get_mut(3)
        {
            *byte &= 0x7F;
        }
        let tag = self.tag_of(field);
        match (field.kind, field.width) {
            (Kind::Mx, _) if matches!(self.inst, Inst::QuantizeMx(_)) => {
                mxmem1d_valid(bytes, tag, Role::SBUF_DESTINATION)
            }
            (Kind::Mx, _) => mxmem1d_valid(bytes, tag, Role::SOURCE),
            (Kind::Destination, _) if tag == BF16 => mm_dst_mem3d_valid(bytes, tag),
            (Kind::Destination, _) => mem3d_valid(bytes, PSUM_WORD, Role::DESTINATION),
            (_, 20) => mem4d_valid(bytes, tag, Role::SOURCE),
            _ => mem3d_valid(bytes, tag, Role::SOURCE),
        }
    }

    fn byte_rule(&self, field: &'static Field, byte: u8, report: &mut Report) {
        let at = field.span.offset;
        let mut fail = |code, message: String| report.add(code, at, field.key, u64::from(byte), message);
        match field.kind {
            Kind::Tag(of) => {
                let legal = self.legal_tags(of);
                if !legal.contains(&byte) {
                    let name = tag_name(byte, self.target.generation).unwrap_or("no type");
                    fail(
                        "ISA304",
                        format!("{name} is not a type that {of} can have here; legal tags are {legal:02x?}"),
                    );
                }
            }
            Kind::MxTag(_) => {
                if !PACKED.contains(&byte) {
                    fail(
                        "ISA324",
                        "MX dtype must be packed with 4 elements into 1; legal tags are [0e, 0f, 10]".into(),
                    );
                }
            }
            Kind::Accumulate => {
                if !check_accumulation_flag(byte) {
                    fail(
                        "ISA305",
                        "accumulate flags must be 0, 1, 2, 3, 4 or 6: START never goes with ACCUMULATE"
                            .into(),
                    );
                }
            }
            Kind::Group => {
                if !GROUPS_LEGAL.contains(&byte) {
                    fail(
                        "ISA306",
                        "a group is one quadrant (1, 2, 4, 8), an aligned pair (3, 12) or all (15)".into(),
                    );
                }
            }
            Kind::PerfMode => {
                if PerfMode::from_code(byte).is_none() {
                    fail("ISA325", "Unknown MatmultPerfMode; modes are 0 to 4".into());
                }
            }
            Kind::PerfVariant => {
                if ![PerfVariant::DEFAULT, PerfVariant::PERF, PerfVariant::FLOAT32].contains(&byte) {
                    fail("ISA326", "the perf variant is 00, 02 or 80".into());
                }
            }
            Kind::Count | Kind::Code => self.plain_rule(field, byte, &mut fail),
            Kind::Flag | Kind::Source | Kind::Destination | Kind::Mx => {}
        }
    }

    /// Rules of bytes that have no kind of their own.
    fn plain_rule(&self, field: &Field, byte: u8, fail: &mut impl FnMut(&'static str, String)) {
        match field.key {
            "rows" | "active_cols" if !(1..=128).contains(&byte) => {
                fail("ISA308", "the array has 128 rows and 128 columns; give 1 to 128".into());
            }
            "src_partitions" if !matches!(byte, 32 | 64 | 96 | 128) => {
                fail("ISA328", "a quantize reads 32, 64, 96 or 128 partitions".into());
            }
            "xbus" if byte != 0x10 => fail("ISA329", "this byte is always 10".into()),
            "aux" if byte != 0x0F => fail("ISA329", "this byte is always 0f".into()),
            "pass" if byte > 2 => fail("ISA330", "the float32 pass is 0 single, 1 low or 2 high".into()),
            "transpose" if !matches!(byte, 0 | 2) => {
                fail("ISA333", "the transpose code is 0 or 2".into());
            }
            "psum_zero_region" if byte > 3 => {
                fail("ISA334", "a zero region is log2 of at most 8 banks; give 0 to 3".into());
            }
            "col_grp" => {
                let row_group = self.byte("row_group").unwrap_or_default();
                match sparse_col_grp(row_group) {
                    None => fail(
                        "ISA327",
                        format!(
                            "invalid structured-sparsity row group {row_group:#04x}; use 1, 2, 3, 4, 8, 12 or 15"
                        ),
                    ),
                    Some(want) if want != byte => {
                        fail("ISA327", format!("row group {row_group:#04x} needs col_grp {want:#04x}"));
                    }
                    Some(_) => {}
                }
            }
            _ => {}
        }
    }

    fn legal_tags(&self, operand: &str) -> &'static [u8] {
        match (self.inst, operand) {
            (_, "dst") => &[0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B],
            (Inst::LoadTagsSparse(_), _) => &[0x04, 0x05],
            (Inst::QuantizeMx(_), _) => &[0x06, 0x07],
            _ => &[0x03, 0x06, 0x07, 0x0A, 0x0D, 0x0E, 0x0F],
        }
    }

    /// Groups against rows and columns, and the fixed column group of MX bundles.
    fn groups(&self, report: &mut Report) {
        let offset =
            |key: &str| self.info.fields_in(self.layout).find(|f| f.key == key).map_or(0, |f| f.span.offset);
        // A sparse row group is a density, not a count of rows.
        let density = matches!(self.inst, Inst::LoadTagsSparse(_) | Inst::MatmultSparse(_));
        for (group, count) in [("row_group", "rows"), ("col_group", "active_cols")] {
            let (Some(mask), Some(lanes)) = (self.byte(group), self.byte(count)) else { continue };
            if density && group == "row_group" {
                if sparse_col_grp(mask).is_none() && matches!(self.inst, Inst::MatmultSparse(_)) {
                    let message = "invalid structured-sparsity row group; use 1, 2, 3, 4, 8, 12 or 15";
                    report.add("ISA327", offset(group), "row_group", u64::from(mask), message);
                }
            } else if GROUPS_LEGAL.contains(&mask) && group_lanes(mask) < u32::from(lanes) {
                let message = format!(
                    "the group covers {} lanes, and {count} is {lanes}; widen the group",
                    group_lanes(mask)
                );
                let key = if group == "row_group" { "row_group" } else { "col_group" };
                report.add("ISA307", offset(group), key, u64::from(mask), message);
            }
        }
        if matches!(self.inst, Inst::LdWeightMx(_) | Inst::MatmultMx(_))
            && let Some(mask) = self.byte("col_group")
            && mask != 0x0F
        {
            let message = "an MX bundle uses the whole column axis; the byte is always 0f";
            report.add("ISA329", offset("col_group"), "col_group", u64::from(mask), message);
        }
    }

    /// A float32r product drains as float32: its destination has four-byte elements (ASSUMED).
    fn reduced(&self, report: &mut Report) {
        if let Inst::Matmul(mm) = self.inst
            && mm.moving_tag == 0x0A
            && mm.perf_variant == PerfVariant::PERF
            && !(8..=11).contains(&mm.dst_tag)
        {
            let message = "a float32r matmul writes a four-byte type; use float32";
            report.add("ISA332", 0x23, "dst_tag", u64::from(mm.dst_tag), message);
        }
    }
}

/// The destination tag that selects the bf16-or-fp32 form.
const BF16: u8 = 6;
/// The alignment tag of a PSUM destination, whatever its declared type.
const PSUM_WORD: u8 = 9;
/// The MX tags of packed types.
const PACKED: [u8; 3] = [0x0E, 0x0F, 0x10];
