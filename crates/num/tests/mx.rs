//! MX blocks against golden data, worked examples and the definitions.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers outside the test functions too

mod support;

use arbtest::arbtest;
use hadal_num::matmul::matmul_blocked;
use hadal_num::mx::{
    Counts, MxFormat, ScaleOffset, ScaleRule, Source, checkpoint_to_tile, dequantize, expand, gather_scales,
    pack, quantize, quantize_counted, scatter_scales, tile_to_checkpoint, unpack,
};
use hadal_num::simd::{Level, with_level};
use hadal_num::{Dtype, NumError, Overflow, decode, narrow};
use support::{Npy, cases, same};

fn mx_format(name: &str) -> MxFormat {
    MxFormat::ALL.into_iter().find(|format| format.to_string() == name).unwrap()
}

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_available())
}

#[derive(Debug, PartialEq)]
struct Quantized {
    data: Vec<u8>,
    scales: Vec<u8>,
    counts: Counts,
}

fn run(src: Source<'_>, p: usize, f: usize, format: MxFormat, rule: ScaleRule) -> Quantized {
    let mut data = vec![0xA5; p * f / 4 * format.container_bytes()];
    let mut scales = vec![0xA5; p * f / 32];
    let counts = quantize_counted(src, p, f, format, rule, &mut data, &mut scales).unwrap();
    let (mut plain, mut plain_scales) = (vec![0x5A; data.len()], vec![0x5A; scales.len()]);
    quantize(src, p, f, format, rule, &mut plain, &mut plain_scales).unwrap();
    assert!(plain == data && plain_scales == scales, "counting changes nothing");
    Quantized { data, scales, counts }
}

#[test]
fn golden_blocks_match_bit_for_bit_at_every_level() {
    let cases = cases("mx");
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        let format = mx_format(case["fmt"].as_str().unwrap());
        let rule: ScaleRule = case["rule"].as_str().unwrap().parse().unwrap();
        let [p, f] = [0, 1].map(|i| case["shape"][i].as_u64().unwrap() as usize);
        let part = |what: &str| Npy::load(&format!("mx/{name}_{what}.npy"));
        let x = part("x");
        let source = match case["src"].as_str().unwrap() {
            "bfloat16" => Source::Bfloat16(&x.bytes),
            "float16" => Source::Float16(&x.bytes),
            other => panic!("{name}: source {other}"),
        };
        let (codes, scales, deq) = (part("codes").bytes, part("scales").bytes, part("deq").f32s());
        for level in levels() {
            with_level(level, || {
                let got = run(source, p, f, format, rule);
                assert_eq!(got.scales, scales, "{name} {}", level.name());
                let mut unpacked = vec![0; p * f];
                unpack(format, &got.data, &mut unpacked).unwrap();
                assert_eq!(unpacked, codes, "{name} {}", level.name());
                let mut repacked = vec![0; got.data.len()];
                pack(format, &unpacked, &mut repacked).unwrap();
                assert_eq!(repacked, got.data, "{name}");
                let mut values = vec![1.0; p * f];
                dequantize(format, rule, &got.data, &got.scales, p, f, &mut values).unwrap();
                assert!(values.iter().zip(&deq).all(|(&a, &b)| same(a, b)), "{name} {}", level.name());
            });
        }
    }
    assert_eq!(cases.len(), 72);
}

#[test]
fn golden_products_match_bit_for_bit() {
    let mut seen = 0;
    for case in cases("matmul").iter().filter(|case| case["kind"] == "mx") {
        let name = case["name"].as_str().unwrap();
        let [p, m, n] = ["P", "M", "N"].map(|key| case[key].as_u64().unwrap() as usize);
        let operand = |side: &str, columns: usize| {
            let format = mx_format(case[side].as_str().unwrap());
            let data = Npy::load(&format!("matmul/{name}_{side}.npy")).bytes;
            let scales = Npy::load(&format!("matmul/{name}_{side}s.npy")).bytes;
            let mut out = vec![0.0; 4 * p * columns];
            expand(format, ScaleRule::Reference, &data, &scales, p, columns, &mut out).unwrap();
            out
        };
        let want = Npy::load(&format!("matmul/{name}_out.npy")).f32s();
        for level in levels() {
            with_level(level, || {
                let (w, x) = (operand("w", m), operand("x", n));
                let mut out = vec![0.0; m * n];
                matmul_blocked(&w, &x, 4 * p, m, n, &mut out).unwrap();
                assert!(out.iter().zip(&want).all(|(&a, &b)| same(a, b)), "{name} {}", level.name());
            });
        }
        seen += 1;
    }
    assert_eq!(seen, 3);
}

/// One 8 x 4 block that starts with `first` and is zero elsewhere.
fn block(first: &[f32]) -> Vec<f32> {
    let mut x = vec![0.0; 32];
    x[..first.len()].copy_from_slice(first);
    x
}

#[test]
fn documented_probe_blocks_come_out_as_documented() {
    let e4m3fn = MxFormat::Float8E4m3fn;
    let x = block(&[150.0]);
    for (rule, scale) in [(ScaleRule::Reference, 126), (ScaleRule::Ocp, 126), (ScaleRule::Hardware, 127)] {
        assert_eq!(run((&x[..]).into(), 8, 4, e4m3fn, rule).scales, [scale], "{rule}");
    }
    let x = block(&[960.0, 957.0]);
    for (rule, scale, value) in [(ScaleRule::Reference, 128, 896.0), (ScaleRule::Hardware, 129, 960.0)] {
        let got = run((&x[..]).into(), 8, 4, e4m3fn, rule);
        assert_eq!(got.scales, [scale], "{rule}");
        let mut out = [0.0; 32];
        dequantize(e4m3fn, rule, &got.data, &got.scales, 8, 4, &mut out).unwrap();
        assert_eq!(out[1], value, "{rule}");
    }
    let scales = [0, 127, 134, 255].map(|code| decode(hadal_num::Format::Float8E8m0fnu, code));
    assert_eq!(scales[..3], [2f32.powi(-127), 1.0, 128.0]);
    assert!(scales[3].is_nan());
}

#[test]
fn rules_differ_on_what_cannot_be_scaled() {
    let x = block(&[f32::NAN, -f32::NAN, f32::INFINITY, 1.0]);
    let e4m3fn = MxFormat::Float8E4m3fn;
    let reference = run((&x[..]).into(), 8, 4, e4m3fn, ScaleRule::Reference);
    // The exponent field is 255, so the scale is 255 - 8, under which 1 is far below the smallest code.
    assert_eq!(reference.scales, [247]);
    assert_eq!(reference.data[..4], [0x00, 0x80, 0x7E, 0x00]);
    assert_eq!(reference.counts, Counts { nan: 2, saturated: 1, flushed: 1, nan_blocks: 0 });
    let hardware = run((&x[..]).into(), 8, 4, e4m3fn, ScaleRule::Hardware);
    assert_eq!((hardware.scales[0], &hardware.data[..4]), (248, &[0x7F, 0xFF, 0x7E, 0x00][..]));
    let ocp = run((&x[..]).into(), 8, 4, e4m3fn, ScaleRule::Ocp);
    assert_eq!((ocp.scales[0], &ocp.data[..]), (255, &[0; 32][..]));
    assert_eq!(ocp.counts, Counts { nan_blocks: 1, ..Counts::default() });
    // The factor of scale 254 is built as the bits of 0, so an infinity becomes NaN and is suppressed.
    let fp4 = run((&x[..]).into(), 8, 4, MxFormat::Float4E2m1fn, ScaleRule::ReferenceAlt);
    assert_eq!((fp4.scales[0], &fp4.data[..2]), (254, &[0x80, 0x00][..]));
    assert_eq!(fp4.counts, Counts { nan: 3, saturated: 0, flushed: 1, nan_blocks: 0 });
    // All-zero blocks: the floor of the rules.
    for (rule, floor) in ScaleRule::ALL.into_iter().zip([1, 1, 0, 0]) {
        assert_eq!(run((&block(&[])[..]).into(), 8, 4, e4m3fn, rule).scales, [floor], "{rule}");
    }
}

#[test]
fn counts_tell_saturation_from_rounding() {
    // In a block with maximum in [256, 512) and rule `reference` the factor is 1.
    let x = block(&[448.0, 464.0, 464.1, -500.0, 0.0001, 0.0009, -0.0]);
    let got = run((&x[..]).into(), 8, 4, MxFormat::Float8E4m3fn, ScaleRule::Reference);
    assert_eq!(got.scales, [127]);
    assert_eq!(got.data[..7], [0x7E, 0x7E, 0x7E, 0xFE, 0x00, 0x00, 0x80]);
    // 464 rounds to the even 448 by itself; half of the smallest step, 2^-10, is above both small values.
    assert_eq!(got.counts, Counts { nan: 0, saturated: 2, flushed: 2, nan_blocks: 0 });
    // FP4 saturates from 7 on: 6.9 rounds to 6, and 7 would have rounded to 8.
    let x = block(&[4.0, 6.9, 7.0, -7.5]);
    let got = run((&x[..]).into(), 8, 4, MxFormat::Float4E2m1fn, ScaleRule::Reference);
    assert_eq!((got.scales[0], &got.data[..2]), (127, &[0x76, 0xF7][..]));
    assert_eq!(got.counts, Counts { nan: 0, saturated: 2, flushed: 0, nan_blocks: 0 });
}

#[test]
fn scale_255_is_infinite_power_or_nan() {
    let e5m2 = MxFormat::Float8E5m2;
    let mut data = [0; 32];
    // 2^-1, 2^-2 with sign, 1, 0.
    data[..4].copy_from_slice(&[0x38, 0xB4, 0x3C, 0x00]);
    for level in levels() {
        with_level(level, || {
            let mut out = [9.0; 32];
            dequantize(e5m2, ScaleRule::Reference, &data, &[255], 8, 4, &mut out).unwrap();
            assert_eq!(out[..4], [2f32.powi(127), -(2f32.powi(126)), f32::INFINITY, 0.0]);
            for rule in [ScaleRule::Hardware, ScaleRule::Ocp] {
                dequantize(e5m2, rule, &data, &[255], 8, 4, &mut out).unwrap();
                assert!(out.iter().all(|x| x.is_nan()), "{rule}");
            }
            // The smallest scale leaves subnormals: 2^-1 * 2^-127.
            dequantize(e5m2, ScaleRule::Hardware, &data, &[0], 8, 4, &mut out).unwrap();
            assert_eq!(out[0].to_bits(), 0x0020_0000);
        });
    }
}

fn any_value(u: &mut arbtest::arbitrary::Unstructured<'_>, octave: u32) -> arbtest::arbitrary::Result<f32> {
    let bits: u32 = u.arbitrary()?;
    Ok(match bits >> 27 {
        0 => f32::from_bits(bits.rotate_left(7)),
        1 => f32::from_bits(bits & 0x807F_FFFF),
        2 => [0.0, -0.0, f32::INFINITY, f32::NAN][bits as usize % 4],
        // Near the others of its block, with few enough mantissa bits to hit ties.
        3..=15 => f32::from_bits(bits << 16 & 0x807C_0000 | (octave + bits % 12).min(254) << 23),
        _ => f32::from_bits(bits << 10 & 0x807F_FFFF | (octave + bits % 16).min(254) << 23),
    })
}

#[test]
fn every_level_and_source_type_equals_the_definition() {
    arbtest(|u| {
        let (p, f) = (8 * u.int_in_range(1..=3)?, 4 * u.int_in_range(1..=19)?);
        let format = *u.choose(&MxFormat::ALL)?;
        let rule = *u.choose(&ScaleRule::ALL)?;
        let octave = u.int_in_range(0..=245)?;
        let x: Vec<f32> = (0..p * f).map(|_| any_value(u, octave)).collect::<Result<_, _>>()?;
        let [bf16, f16] = [Dtype::Bfloat16, Dtype::Float16].map(|dtype| {
            let mut bytes = vec![0; 2 * x.len()];
            narrow(dtype, &x, Overflow::Ieee, &mut bytes).unwrap();
            bytes
        });
        for src in [Source::Float32(&x), Source::Bfloat16(&bf16), Source::Float16(&f16)] {
            let want = with_level(Level::Scalar, || run(src, p, f, format, rule));
            let values = |level| {
                let mut out = vec![0.0; p * f];
                with_level(level, || dequantize(format, rule, &want.data, &want.scales, p, f, &mut out))
                    .unwrap();
                out
            };
            let want_values = values(Level::Scalar);
            for level in levels() {
                let got = with_level(level, || run(src, p, f, format, rule));
                assert_eq!(got, want, "{format} {rule} {}", level.name());
                let equal = values(level).iter().zip(&want_values).all(|(&a, &b)| same(a, b));
                assert!(equal, "{format} {rule} {}", level.name());
            }
        }
        Ok(())
    });
}

/// Finite blocks with a given top exponent that between them hold every bfloat16 of the 21 octaves below, and the
/// float32 next to each and halfway to the next, of both signs.
#[test]
fn every_level_equals_the_definition_for_every_bfloat16_of_a_block_and_its_neighbours() {
    for top in [0, 1, 2, 3, 4, 5, 10, 11, 12, 18, 100, 127, 160, 200, 201, 202, 207, 208, 209, 215, 254_u32] {
        let mut x = Vec::new();
        for bf16 in top.saturating_sub(20) << 7..=top << 7 | 0x7F {
            for low in [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF] {
                if x.len() % 32 == 0 {
                    x.push(f32::from_bits(top << 23 | 0x7F_FFFF));
                }
                x.push(f32::from_bits(bf16 << 16 | low | (bf16 ^ low) << 31));
            }
        }
        // From one block after another to rows of blocks, with a few blocks of zeros at the end.
        let blocks = x.len() / 32 + 3;
        x.resize(32 * blocks, 0.0);
        let f = 4 * blocks;
        let x: Vec<f32> = (0..8 * f).map(|i| x[i % f / 4 * 32 + i / f * 4 + i % 4]).collect();
        let mut bf16 = vec![0; 2 * x.len()];
        narrow(Dtype::Bfloat16, &x, Overflow::Saturate, &mut bf16).unwrap();
        for (format, rule) in MxFormat::ALL.into_iter().flat_map(|f| ScaleRule::ALL.map(|rule| (f, rule))) {
            for src in [Source::Float32(&x), Source::Bfloat16(&bf16)] {
                let want = with_level(Level::Scalar, || run(src, 8, f, format, rule));
                for level in levels() {
                    let got = with_level(level, || run(src, 8, f, format, rule));
                    assert!(got == want, "{format} {rule} {} {top}", level.name());
                }
            }
        }
    }
}

#[test]
fn large_tensors_agree_for_any_number_of_threads() {
    let (p, f) = (128, 16384 + 12);
    let x: Vec<f32> = (0..(p * f) as u32)
        .map(|i| f32::from_bits(i.wrapping_mul(0x9E37_79B9) & 0x807F_FFFF | (110 + i / 77 % 30) << 23))
        .collect();
    let all = [1, 2, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let got = run((&x[..]).into(), p, f, MxFormat::Float8E4m3fn, ScaleRule::Reference);
            let mut out = vec![0.0; p * f];
            dequantize(MxFormat::Float8E4m3fn, ScaleRule::Reference, &got.data, &got.scales, p, f, &mut out)
                .unwrap();
            (got, out)
        })
    });
    assert!(all[0] == all[1] && all[1] == all[2]);
    let alone = with_level(Level::Scalar, || {
        run((&x[8 * f..16 * f]).into(), 8, f, MxFormat::Float8E4m3fn, ScaleRule::Reference)
    });
    assert_eq!(alone.data, all[0].0.data[8 * f..16 * f]);
    assert_eq!(alone.scales, all[0].0.scales[f / 4..f / 2]);
}

#[test]
fn scales_go_to_the_quadrant_of_their_data() {
    for p in [8, 16, 24, 32, 64, 96, 128] {
        for offset in [0, 4, 8, 12] {
            let offset = ScaleOffset::new(offset).unwrap();
            let rows = p / 8;
            let scales: Vec<u8> = (1..=rows as u8 * 3).collect();
            let mut memory = vec![0xEE; 128 * 3];
            scatter_scales(&scales, 3, offset, &mut memory).unwrap();
            let mut back = vec![0; scales.len()];
            gather_scales(&memory, 3, offset, &mut back).unwrap();
            assert_eq!(back, scales);
            let untouched = memory.iter().filter(|&&byte| byte == 0xEE).count();
            assert_eq!(untouched, (128 - rows) * 3);
            // Row i scales partitions 8i..8i+8, which lie in the quadrant it is put in.
            assert!((0..rows).all(|i| offset.partition(i) / 32 == 8 * i / 32));
        }
    }
    let offset = ScaleOffset::new(4).unwrap();
    assert_eq!([0, 1, 3, 4, 7, 15].map(|row| offset.partition(row)), [4, 5, 7, 36, 39, 103]);
    assert_eq!(ScaleOffset::new(3).unwrap_err().to_string(), "scale offset 3 is not one of 0, 4, 8 and 12");
    let short = scatter_scales(&[0; 5], 1, offset, &mut [0; 36]).unwrap_err();
    assert_eq!(short, NumError::Length { what: "scale memory", unit: "bytes", got: 36, want: 37 });
}

#[test]
fn checkpoint_blocks_become_hardware_blocks() {
    for k in 0..1536 {
        let t = checkpoint_to_tile(k);
        assert_eq!(tile_to_checkpoint(t), k);
        let (partition, lane) = (t % 512 % 128, t % 512 / 128);
        assert_eq!((t / 512, partition / 8), (k / 512, k % 512 / 32), "block of {k}");
        assert_eq!((partition, lane), (8 * (k % 512 / 32) + k % 32 / 4, k % 4));
    }
}

#[test]
fn requests_that_make_no_blocks_are_refused() {
    let mut none = [0; 0];
    let error =
        quantize(&[0.0; 36][..], 9, 4, MxFormat::Float8E5m2, ScaleRule::Ocp, &mut none, &mut []).unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (
            "num-blocks",
            "9 x 4 does not divide into MX blocks of 8 x 4; pad rows to a multiple of 8 and columns to one of 4"
        )
    );
    assert_eq!(MxFormat::try_from(Dtype::Float8E4m3).unwrap_err().code(), "num-not-mx");
    assert_eq!(MxFormat::try_from(Dtype::Float8E5m2X4), Ok(MxFormat::Float8E5m2));
    assert_eq!("ocp".parse(), Ok(ScaleRule::Ocp));
    assert_eq!("OCP".parse::<ScaleRule>().unwrap_err().code(), "num-unknown-rule");
    assert_eq!(MxFormat::ALL.map(|f| Some(f.emax())), MxFormat::ALL.map(|f| f.dtype().emax()));
}
