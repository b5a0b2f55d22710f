//! Probes of the array: what is rounded when, and in which order.

use hadal_ir::program::Ap;
use hadal_isa::Target;
use hadal_num::{Dtype, Format, Overflow, decode, encode};

use super::program::{Maker, Values};
use super::{Model, Probe, ProbeError, Reading, place};
use crate::options::Options;

const EVERY: &[Target] = &Target::ALL;
const FROM_GEN3: &[Target] = &[Target::TRN2, Target::TRN3];
const GEN4: &[Target] = &[Target::TRN3];
const GEN2: &[Target] = &[Target::TRN1];

/// The fixed part of a probe.
struct Head {
    id: &'static str,
    question: &'static str,
    inputs: &'static str,
    targets: &'static [Target],
    decision: Option<&'static str>,
}

impl Head {
    fn with(self, result: Option<Reading>, models: Vec<(&'static str, Reading)>) -> Probe {
        let Head { id, question, inputs, targets, decision } = self;
        let models = models.into_iter().map(|(name, reading)| Model { name, reading }).collect();
        let result = result.unwrap_or(Reading { values: Vec::new(), bits: Vec::new(), width: 32 });
        Probe { id, question, inputs, targets, decision, result, models }
    }
}

/// `x` rounded to bfloat16.
fn bf16(x: f32) -> f32 {
    decode(Format::Bfloat16, encode(Format::Bfloat16, x, Overflow::Ieee))
}

fn bf16_reading(values: &[f32]) -> Reading {
    let bits = values.iter().map(|v| encode(Format::Bfloat16, *v, Overflow::Ieee)).collect();
    Reading { values: values.to_vec(), bits, width: 16 }
}

/// One output from matmuls of one column each: the contraction's weights and moving values.
fn dot(
    target: Target,
    options: &Options,
    dtype: Dtype,
    dst: Dtype,
    steps: &[[&[f32]; 2]],
) -> Result<Option<Reading>, ProbeError> {
    let mut m = Maker::new();
    let mut operands: Vec<[Ap; 2]> = Vec::new();
    for step in steps {
        let tile = |m: &mut Maker, v: &[f32]| {
            m.tile(dtype, [u32::try_from(v.len()).unwrap_or(1), 1], &Values::Floats(v))
        };
        operands.push([tile(&mut m, step[0]), tile(&mut m, step[1])]);
    }
    let out = m.psum(dst, [1, 1]);
    operands.iter().for_each(|[w, x]| m.matmul(x, w, &out));
    Ok(m.run(target, options, &["o"])?.pop())
}

pub(super) fn probes(target: Option<Target>, options: &Options) -> Result<Vec<Probe>, ProbeError> {
    let mut out = Vec::new();
    let f = Dtype::Float32;
    let one = |v: f32| Reading::f32(&[v]);
    let mut add = |head: Head,
                   run: &dyn Fn(Target) -> Result<Option<Reading>, ProbeError>,
                   models: Vec<(&'static str, Reading)>|
     -> Result<(), ProbeError> {
        if let Some(t) = place(target, head.targets) {
            let result = run(t)?;
            out.push(head.with(result, models));
        }
        Ok(())
    };

    let (w, x) = (1.0 + 2f32.powi(-9), 1.0 - 2f32.powi(-9));
    add(
        Head {
            id: "fp32-product",
            question: "does a float32 matmul keep float32 operands?",
            inputs: "matmul K=1, float32: w = 1 + 2^-9, x = 1 - 2^-9",
            targets: EVERY,
            decision: None,
        },
        &|t| dot(t, options, f, f, &[[&[w], &[x]]]),
        vec![("float32 operands", one(w * x)), ("operands cast to bfloat16 first", one(bf16(w) * bf16(x)))],
    )?;

    let v = 1.007_812_5f32;
    add(
        Head {
            id: "bf16-product",
            question: "is the product of two bfloat16 values kept in float32?",
            inputs: "matmul K=1, bfloat16, float32 PSUM: w = x = 1.0078125",
            targets: EVERY,
            decision: None,
        },
        &|t| dot(t, options, Dtype::Bfloat16, f, &[[&[v], &[v]]]),
        vec![("float32 product", one(v * v)), ("product rounded to bfloat16", one(bf16(v * v)))],
    )?;

    let (w, x) = (1.0 + 2f32.powi(-12), [1.0 + 2f32.powi(-12), 1.0 + 2f32.powi(-11)]);
    let (hi, lo) = (1.0f32, 2f32.powi(-12));
    let two_pass = (hi * x[0] - x[1]) + lo * x[0];
    add(
        Head {
            id: "fp32-rounding",
            question: "is a float32 product rounded before it is added, and multiplied whole?",
            inputs: "matmul K=2, float32: w = 1 + 2^-12, -1; x = 1 + 2^-12, 1 + 2^-11",
            targets: EVERY,
            decision: Some("D-18, D-19"),
        },
        &|t| dot(t, options, f, f, &[[&[w, -1.0], &x]]),
        vec![
            ("one pass, product rounded before the add", one(w * x[0] - x[1])),
            ("two passes, the weights split in two", one(two_pass)),
            (
                "one pass, product added unrounded",
                one((f64::from(w) * f64::from(x[0]) - f64::from(x[1])) as f32),
            ),
        ],
    )?;

    let big = 2f32.powi(24);
    add(
        Head {
            id: "array-order",
            question: "does one float32 accumulator add in ascending order?",
            inputs: "matmul K=3, float32: w = 2^24, 1, 1; x = 1, 1, 1",
            targets: EVERY,
            decision: Some("D-18"),
        },
        &|t| dot(t, options, f, f, &[[&[big, 1.0, 1.0], &[1.0; 3]]]),
        vec![
            ("ascending, float32", one((big + 1.0) + 1.0)),
            ("descending, or a wider accumulator", one((1.0 + 1.0) + big)),
        ],
    )?;

    add(
        Head {
            id: "psum-add",
            question: "is the sum made in the array and added to PSUM once?",
            inputs: "float32 PSUM holds 2^24; matmul K=2, float32 adds 1*1 + 1*1",
            targets: EVERY,
            decision: Some("D-29"),
        },
        &|t| dot(t, options, f, f, &[[&[1.0, 1.0], &[big, 0.0]], [&[1.0, 1.0], &[1.0, 1.0]]]),
        vec![
            ("sum first, one add", one(big + (1.0 + 1.0))),
            ("one chain from the PSUM value", one((big + 1.0) + 1.0)),
        ],
    )?;

    let count = [
        [&[1.0f32][..], &[256.0][..]],
        [&[1.0], &[1.0]],
        [&[1.0], &[1.0]],
        [&[1.0], &[1.0]],
        [&[1.0], &[1.0]],
    ];
    let up = |round: fn(f32) -> f32| (0..4).fold(256.0f32, |v, _| round(v + 1.0));
    add(
        Head {
            id: "bf16-psum",
            question: "is a bfloat16 PSUM value rounded at each write?",
            inputs: "bfloat16 PSUM holds 256; four matmuls K=1, bfloat16, add 1 each",
            targets: GEN4,
            decision: Some("D-23"),
        },
        &|t| dot(t, options, Dtype::Bfloat16, Dtype::Bfloat16, &count),
        vec![
            ("nearest even at each write", bf16_reading(&[up(bf16)])),
            ("kept in float32, rounded when read", bf16_reading(&[bf16(up(|v| v))])),
            ("rounded up at each write (stochastic: 256 to 264)", bf16_reading(&[up(truncated_up)])),
        ],
    )?;
    add(
        Head {
            id: "fp32-psum",
            question: "does float32 PSUM keep what bfloat16 PSUM loses?",
            inputs: "float32 PSUM holds 256; four matmuls K=1, bfloat16, add 1 each",
            targets: EVERY,
            decision: None,
        },
        &|t| dot(t, options, Dtype::Bfloat16, f, &count),
        vec![("float32", one(up(|v| v))), ("bfloat16 at each write", one(up(bf16)))],
    )?;

    let x = 1.0 + 2f32.powi(-11) + 2f32.powi(-12);
    let cut = f32::from_bits(x.to_bits() & !0x1FFF);
    add(
        Head {
            id: "fp32r-rounding",
            question: "how does float32r round to 10 mantissa bits?",
            inputs: "matmul K=1, float32r: w = 1, x = 1 + 2^-11 + 2^-12",
            targets: EVERY,
            decision: Some("D-04"),
        },
        &|t| dot(t, options, Dtype::Float32r, f, &[[&[1.0], &[x]]]),
        vec![("nearest even", one(1.0 + 2f32.powi(-10))), ("truncated", one(cut)), ("not rounded", one(x))],
    )?;

    add(
        Head {
            id: "double-row",
            question: "does DoubleRow contract both planes?",
            inputs: "DoubleRow matmul, float8_e5m2: weights [128, 2, 1] and moving [128, 2, 2] of ones",
            targets: FROM_GEN3,
            decision: None,
        },
        &|t| {
            let mut m = Maker::new();
            let ones = |m: &mut Maker, n: u32| {
                m.tile(Dtype::Float8E5m2, [128, n], &Values::Floats(&vec![1.0; 128 * n as usize]))
            };
            let (w, x) = (ones(&mut m, 2), ones(&mut m, 4));
            let out = m.psum(f, [1, 2]);
            m.row_pairs(&x, &w, &out);
            Ok(m.run(t, options, &["o"])?.pop())
        },
        vec![("both planes", Reading::f32(&[256.0; 2])), ("one plane", Reading::f32(&[128.0; 2]))],
    )?;

    add(
        Head {
            id: "first-write",
            question: "does the first write of each element overwrite and each later one add?",
            inputs: "two matmuls K=1 of ones, calc auto: into columns 0 to 3, then 2 to 5, of one PSUM tile",
            targets: EVERY,
            decision: Some("D-28"),
        },
        &|t| {
            let mut m = Maker::new();
            let w = m.tile(f, [1, 1], &Values::Floats(&[1.0]));
            let x = m.tile(f, [1, 4], &Values::Floats(&[1.0; 4]));
            let mut out = m.psum(f, [1, 6]);
            out.pattern.truncate(1);
            out.pattern.push(hadal_ir::program::Pair::new(1, 4));
            m.matmul(&x, &w, &out);
            out.offset = 8;
            m.matmul(&x, &w, &out);
            Ok(m.run(t, options, &["o"])?.pop())
        },
        vec![
            ("per element", Reading::f32(&[1.0, 1.0, 2.0, 2.0, 1.0, 1.0])),
            ("every matmul overwrites", Reading::f32(&[1.0; 6])),
        ],
    )?;

    // A signalling NaN with a payload, and 1.
    let source = [0x7F81u16, 0x3F80];
    let transpose = |t: Target, dst: Dtype| -> Result<Option<Reading>, ProbeError> {
        let mut m = Maker::new();
        let w = m.tile(Dtype::Bfloat16, [2, 1], &Values::Bits16(&source));
        let x = m.tile(Dtype::Bfloat16, [2, 2], &Values::Floats(&[1.0, 0.0, 0.0, 1.0]));
        let out = m.psum(dst, [1, 2]);
        m.transpose(&x, &w, &out);
        Ok(m.run(t, options, &["o"])?.pop())
    };
    let copied = Reading {
        values: vec![f32::NAN, 1.0],
        bits: source.iter().map(|b| u32::from(*b)).collect(),
        width: 16,
    };
    let spread = Reading { values: vec![f32::NAN; 2], bits: vec![0x7FC0; 2], width: 16 };
    add(
        Head {
            id: "transpose-nan",
            question: "does a transpose copy bits?",
            inputs: "transpose, bfloat16: stationary [2, 1] of bits 7F81, 3F80; moving the 2 x 2 identity",
            targets: FROM_GEN3,
            decision: Some("D-21"),
        },
        &|t| transpose(t, Dtype::Bfloat16),
        vec![("bit for bit", copied), ("a matmul: NaN spreads", spread)],
    )?;
    add(
        Head {
            id: "transpose-nan-gen2",
            question: "is a transpose an ordinary matmul on gen2?",
            inputs: "transpose, bfloat16 into float32: stationary [2, 1] of bits 7F81, 3F80; moving the 2 x 2 identity",
            targets: GEN2,
            decision: Some("D-21"),
        },
        // Which NaN comes out of arithmetic is not said; it is shown as the canonical one.
        &|t| Ok(transpose(t, f)?.map(canonical)),
        vec![
            ("a matmul: NaN spreads", Reading { bits: vec![0x7FC0_0000; 2], ..Reading::f32(&[f32::NAN; 2]) }),
            (
                "bit for bit",
                Reading { values: vec![f32::NAN, 1.0], bits: vec![0x7F81_0000, 0x3F80_0000], width: 32 },
            ),
        ],
    )?;
    Ok(out)
}

/// bfloat16 away from zero.
fn truncated_up(v: f32) -> f32 {
    f32::from_bits(v.to_bits().saturating_add(0xFFFF) & 0xFFFF_0000)
}

fn canonical(mut r: Reading) -> Reading {
    for (bits, value) in r.bits.iter_mut().zip(&r.values) {
        if value.is_nan() {
            *bits = 0x7FC0_0000;
        }
    }
    r
}
