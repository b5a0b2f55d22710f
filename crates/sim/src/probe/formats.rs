//! Probes of element formats, block scales and packing.

use hadal_ir::program::Op;
use hadal_isa::Target;
use hadal_num::mx::MxFormat;
use hadal_num::{Dtype, Format, Overflow, decode, encode, narrow};

use super::program::{Maker, Values};
use super::{Model, Probe, ProbeError, Reading, place};
use crate::options::Options;

const EVERY: &[Target] = &Target::ALL;
const GEN4: &[Target] = &[Target::TRN3];

/// The scale code of a block by the exponent of its largest value: `field - e`, not below `floor`.
fn scale_code(amax: f32, e: u32, floor: u32) -> u32 {
    (amax.to_bits() >> 23 & 0xFF).saturating_sub(e).max(floor)
}

/// Element `x` under scale `code` as float8_e4m3fn, and its value with the scale applied.
fn element(x: f32, code: u32) -> (u32, f32) {
    let scale = 2f32.powi(i32::try_from(code).unwrap_or(127) - 127);
    let byte = encode(Format::Float8E4m3fn, x / scale, Overflow::Saturate);
    (byte, decode(Format::Float8E4m3fn, byte) * scale)
}

/// A prediction for [`block`]: scale code, element code, and the value they stand for.
fn prediction(name: &'static str, amax: f32, x: f32, [e, floor]: [u32; 2]) -> Model {
    let code = scale_code(amax, e, floor);
    let (byte, value) = element(x, code);
    Model { name, reading: Reading { values: vec![code as f32, value], bits: vec![code, byte], width: 8 } }
}

/// Quantizes a block of one `amax`, one `x` and zeros from float16; the scale and the second element.
fn block(target: Target, options: &Options, amax: f32, x: f32) -> Result<Reading, ProbeError> {
    let mut values = vec![0.0; 32 * 8];
    if let [first, second, ..] = values.as_mut_slice() {
        (*first, *second) = (amax, x);
    }
    let mut m = Maker::new();
    let src = m.tile(Dtype::Float16, [32, 8], &Values::Floats(&values));
    let data = m.empty("data", Dtype::Float8E4m3fnX4, [32, 2]);
    let scale = m.empty("scale", Dtype::Float8E8m0fnu, [32, 2]);
    m.push(Op::QuantizeMx { src, data, scale });
    let read = m.run(target, options, &["scale", "data"])?;
    let (code, byte) = (first(&read, 0, 0), first(&read, 1, 1));
    let value = decode(Format::Float8E4m3fn, byte) * 2f32.powi(i32::try_from(code).unwrap_or(127) - 127);
    Ok(Reading { values: vec![code as f32, value], bits: vec![code, byte], width: 8 })
}

fn first(read: &[Reading], which: usize, at: usize) -> u32 {
    read.get(which).and_then(|r| r.bits.get(at)).copied().unwrap_or(0)
}

/// Codes of a format as values.
fn decoded(format: Format, codes: &[u32]) -> Reading {
    Reading::f32(&codes.iter().map(|c| decode(format, *c)).collect::<Vec<f32>>())
}

/// One container of four lanes.
fn packed(dtype: Dtype, values: &[f32; 4]) -> Result<Reading, ProbeError> {
    let mut bytes = vec![0u8; dtype.bytes()];
    narrow(dtype, values, Overflow::Ieee, &mut bytes)?;
    let word = bytes.iter().rev().fold(0u32, |v, b| v << 8 | u32::from(*b));
    Ok(word_reading(dtype, values, word))
}

fn word_reading(dtype: Dtype, values: &[f32; 4], word: u32) -> Reading {
    let width = u32::try_from(8 * dtype.bytes()).unwrap_or(32);
    Reading { values: values.to_vec(), bits: vec![word], width }
}

/// The container with lane 0 in the highest bits, from single codes.
fn reversed(format: MxFormat, values: &[f32; 4], lane_bits: u32) -> Reading {
    let code = |v: &f32| encode(format.format(), *v, Overflow::Ieee);
    word_reading(format.dtype(), values, values.iter().fold(0, |w, v| w << lane_bits | code(v)))
}

pub(super) fn probes(target: Option<Target>, options: &Options) -> Result<Vec<Probe>, ProbeError> {
    let mut out = Vec::new();
    let rules = |amax: f32, x: f32| {
        vec![
            prediction("reference", amax, x, [8, 1]),
            prediction("reference-alt", amax, x, [7, 1]),
            prediction("hardware", amax, x, [7, 0]),
            prediction("ocp", amax, x, [8, 0]),
        ]
    };
    if let Some(t) = place(target, GEN4) {
        out.push(Probe {
            id: "mx-scale-150",
            question: "which exponent does the block scale subtract?",
            inputs: "QuantizeMx to float8_e4m3fn, float16 block of 150, 150 and zeros; scale code, element code",
            targets: GEN4,
            decision: Some("D-05"),
            result: block(t, options, 150.0, 150.0)?,
            models: rules(150.0, 150.0),
        });
        out.push(Probe {
            id: "mx-scale-960",
            question: "does the largest value of a block saturate?",
            inputs: "QuantizeMx to float8_e4m3fn, float16 block of 960, 957 and zeros; scale code, code of 957",
            targets: GEN4,
            decision: Some("D-05"),
            result: block(t, options, 960.0, 957.0)?,
            models: rules(960.0, 957.0),
        });
        out.push(Probe {
            id: "mx-scale-zero",
            question: "what is the scale of a block of zeros?",
            inputs: "QuantizeMx to float8_e4m3fn, float16 block of zeros; scale code, element code",
            targets: GEN4,
            decision: Some("D-05"),
            result: block(t, options, 0.0, 0.0)?,
            models: rules(0.0, 0.0),
        });
        let values = [0.5, 1.0, 1.5, 2.0];
        out.push(Probe {
            id: "fp4-packing",
            question: "which bits of an FP4 container hold lane 0?",
            inputs: "float4_e2m1fn_x4 container of 0.5, 1, 1.5, 2",
            targets: GEN4,
            decision: Some("D-06"),
            result: packed(Dtype::Float4E2m1fnX4, &values)?,
            models: vec![
                Model {
                    name: "lane 0 lowest",
                    reading: word_reading(Dtype::Float4E2m1fnX4, &values, 0x4321),
                },
                Model { name: "lane 0 highest", reading: reversed(MxFormat::Float4E2m1fn, &values, 4) },
            ],
        });
        let values = [1.0, 2.0, -1.0, 448.0];
        out.push(Probe {
            id: "fp8-packing",
            question: "which byte of an FP8 container holds lane 0?",
            inputs: "float8_e4m3fn_x4 container of 1, 2, -1, 448",
            targets: GEN4,
            decision: None,
            result: packed(Dtype::Float8E4m3fnX4, &values)?,
            models: vec![
                Model {
                    name: "lane 0 in the lowest-addressed byte",
                    reading: word_reading(Dtype::Float8E4m3fnX4, &values, 0x7EB8_4038),
                },
                Model {
                    name: "lane 0 in the highest-addressed byte",
                    reading: reversed(MxFormat::Float8E4m3fn, &values, 8),
                },
            ],
        });
    }
    if place(target, EVERY).is_some() {
        let codes = [0, 127, 134, 255];
        let values = |zero: f32, top: f32| Reading::f32(&[zero, 1.0, 128.0, top]);
        let nan = f32::from_bits(0x7FC0_0000);
        out.push(Probe {
            id: "e8m0-codes",
            question: "what do the first and the last float8_e8m0fnu code stand for?",
            inputs: "float8_e8m0fnu codes 0, 127, 134, 255 as float32",
            targets: EVERY,
            decision: None,
            result: decoded(Format::Float8E8m0fnu, &codes),
            models: vec![
                Model { name: "2^-127 and NaN", reading: values(2f32.powi(-127), nan) },
                Model { name: "0 and NaN", reading: values(0.0, nan) },
                Model { name: "2^-127 and 2^128", reading: values(2f32.powi(-127), f32::INFINITY) },
            ],
        });
        let cast = |o| {
            let codes: Vec<u32> =
                [464.0, 465.0].iter().map(|v| encode(Format::Float8E4m3fn, *v, o)).collect();
            let values = codes.iter().map(|c| decode(Format::Float8E4m3fn, *c)).collect();
            Reading { values, bits: codes, width: 8 }
        };
        let model = |name, values: [f32; 2], bits: [u32; 2]| Model {
            name,
            reading: Reading { values: values.to_vec(), bits: bits.to_vec(), width: 8 },
        };
        out.push(Probe {
            id: "e4m3fn-overflow",
            question: "what does a cast to float8_e4m3fn make of too large a value?",
            inputs: "float32 464, 465 cast to float8_e4m3fn by the default rule (FP8 conversion byte 0 = 0)",
            targets: EVERY,
            decision: None,
            result: cast(Overflow::Ieee),
            models: vec![
                model("ieee: half a step above 448 still rounds to it, then NaN", [448.0, nan], [0x7E, 0x7F]),
                model("saturate", [448.0; 2], [0x7E; 2]),
                model("NaN above 448", [nan; 2], [0x7F; 2]),
            ],
        });
    }
    Ok(out)
}
