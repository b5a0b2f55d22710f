//! Every cast against tables made by an independent implementation, all entries.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers outside the test functions too

mod support;

use hadal_num::{Dtype, Format, Overflow, decode, encode, narrow, round_f32r, widen};
use support::{Npy, same};

const RULES: [(&str, Overflow); 2] = [("ieee", Overflow::Ieee), ("saturate", Overflow::Saturate)];
const FP8: [Format; 4] = [Format::Float8E3m4, Format::Float8E4m3, Format::Float8E4m3fn, Format::Float8E5m2];

/// Compares the codes of `inputs` in `format` with a file, NaNs by class.
fn check(inputs: &[f32], format: Format, rule: Overflow, file: &str) {
    let want = Npy::load(file).codes();
    assert_eq!(inputs.len(), want.len(), "{file}");
    for (&x, want) in inputs.iter().zip(want) {
        let got = encode(format, x, rule);
        let nan = decode(format, want).is_nan() && decode(format, got).is_nan();
        assert!(
            got == want || (nan && !matches!(format, Format::Float8E8m0fnu)),
            "{file}: {:08X} gives {got:X}, want {want:X}",
            x.to_bits()
        );
    }
}

fn all_16_bit(format: Format) -> Vec<f32> {
    (0..=0xFFFF).map(|code| decode(format, code)).collect()
}

fn probes() -> Vec<f32> {
    Npy::load("casts/float32_probe_bits.npy").codes().into_iter().map(f32::from_bits).collect()
}

#[test]
fn widening_matches_for_every_code() {
    let formats = [Format::Bfloat16, Format::Float16, Format::Float4E2m1fn, Format::Float8E8m0fnu];
    for format in formats.into_iter().chain(FP8) {
        let want = Npy::load(&format!("casts/{format}_to_float32.npy")).f32s();
        for (code, want) in (0..).zip(want) {
            let got = decode(format, code);
            assert!(same(got, want), "{format} {code:X}: {got} ({:08X}), want {want}", got.to_bits());
        }
    }
}

#[test]
fn narrowing_matches_for_every_16_bit_input() {
    for source in [Format::Bfloat16, Format::Float16] {
        let inputs = all_16_bit(source);
        for format in FP8 {
            for (name, rule) in RULES {
                check(&inputs, format, rule, &format!("casts/{source}_to_{format}_{name}.npy"));
            }
        }
        for (_, rule) in RULES {
            check(
                &inputs,
                Format::Float4E2m1fn,
                rule,
                &format!("casts/{source}_to_float4_e2m1fn_saturate.npy"),
            );
        }
    }
}

#[test]
fn narrowing_matches_for_every_float32_probe() {
    let inputs = probes();
    for format in FP8 {
        for (name, rule) in RULES {
            check(&inputs, format, rule, &format!("casts/float32_probe_to_{format}_{name}.npy"));
        }
    }
    for format in [Format::Bfloat16, Format::Float16] {
        check(&inputs, format, Overflow::Ieee, &format!("casts/float32_probe_to_{format}_ieee.npy"));
    }
    use Format::{Float4E2m1fn, Float8E8m0fnu, Float32r, Int8, Int16, Int32, Uint8, Uint16, Uint32};
    check(&inputs, Float4E2m1fn, Overflow::Saturate, "casts/float32_probe_to_float4_e2m1fn_saturate.npy");
    check(&inputs, Float32r, Overflow::Ieee, "casts/float32_probe_to_float32r.npy");
    for format in [Float8E8m0fnu, Int8, Int16, Int32, Uint8, Uint16, Uint32] {
        for (_, rule) in RULES {
            check(&inputs, format, rule, &format!("casts/float32_probe_to_{format}.npy"));
        }
    }
}

#[test]
fn float32r_keeps_nan_payloads_bit_for_bit() {
    let want = Npy::load("casts/float32_probe_to_float32r.npy").codes();
    for (x, want) in probes().into_iter().zip(want) {
        assert_eq!(round_f32r(x).to_bits(), want, "{:08X}", x.to_bits());
    }
}

#[test]
fn narrowed_nans_are_canonical_and_keep_their_sign() {
    let canonical = [
        (Format::Float8E3m4, 0x78, 7),
        (Format::Float8E4m3, 0x7C, 7),
        (Format::Float8E4m3fn, 0x7F, 7),
        (Format::Float8E5m2, 0x7E, 7),
        (Format::Bfloat16, 0x7FC0, 15),
        (Format::Float16, 0x7E00, 15),
        (Format::Float4E2m1fn, 0, 3),
    ];
    for (format, code, sign_bit) in canonical {
        for payload in [1, 0x1234, 0x0040_0000, 0x007F_FFFF] {
            for (_, rule) in RULES {
                assert_eq!(encode(format, f32::from_bits(0x7F80_0000 | payload), rule), code, "{format}");
                let negative = f32::from_bits(0xFF80_0000 | payload);
                assert_eq!(encode(format, negative, rule), code | 1 << sign_bit, "{format}");
            }
        }
    }
    for format in FP8.into_iter().chain([Format::Float16]) {
        let (quiet, sign) = if format == Format::Float16 { (0x7C01, 0x8000) } else { (0x7F, 0x80) };
        assert_eq!(decode(format, quiet).to_bits(), 0x7FC0_0000, "{format}");
        assert_eq!(decode(format, quiet | sign).to_bits(), 0xFFC0_0000, "{format}");
    }
    assert_eq!(decode(Format::Bfloat16, 0x7F81).to_bits(), 0x7F81_0000);
}

#[test]
fn documented_limits_hold_under_both_rules() {
    let e4m3fn = |x, rule| encode(Format::Float8E4m3fn, x, rule);
    assert_eq!(
        [464.0, 465.0].map(|x| decode(Format::Float8E4m3fn, e4m3fn(x, Overflow::Ieee))).map(|v| v == 448.0),
        [true, false]
    );
    assert_eq!(e4m3fn(465.0, Overflow::Ieee), 0x7F);
    assert_eq!(e4m3fn(f32::INFINITY, Overflow::Saturate), 0x7E);
    assert_eq!(encode(Format::Float8E5m2, f32::NEG_INFINITY, Overflow::Saturate), 0xFB);
    assert_eq!(encode(Format::Float8E5m2, f32::INFINITY, Overflow::Ieee), 0x7C);
    for (format, largest) in
        [(Format::Float8E3m4, 15.5), (Format::Float8E4m3, 240.0), (Format::Float16, 65504.0)]
    {
        let code = encode(format, f32::MAX, Overflow::Saturate);
        assert_eq!(decode(format, code), largest);
        assert_eq!(decode(format, encode(format, -f32::MAX, Overflow::Ieee)), f32::NEG_INFINITY);
    }
    // One rounding, not two: just above the tie between 1 and the next float16, but below the float32 that
    // a detour through a coarser intermediate would see.
    let x = f32::from_bits(0x3F80_1001);
    assert_eq!(encode(Format::Float16, x, Overflow::Ieee), 0x3C01);
    assert_eq!(round_f32r(1.0 + 2f32.powi(-11) + 2f32.powi(-12)), 1.000_976_6);
}

#[test]
fn x4_lanes_start_at_the_lowest_bits() {
    let mut fp4 = [0; 2];
    narrow(Dtype::Float4E2m1fnX4, &[0.5, 1.0, 1.5, 2.0], Overflow::Saturate, &mut fp4).unwrap();
    assert_eq!(u16::from_le_bytes(fp4), 0x4321);
    let mut fp8 = [0; 4];
    narrow(Dtype::Float8E4m3fnX4, &[1.0, 2.0, -1.0, 448.0], Overflow::Saturate, &mut fp8).unwrap();
    assert_eq!(u32::from_le_bytes(fp8), 0x7EB8_4038);
    let mut back = [0.0; 4];
    widen(Dtype::Float4E2m1fnX4, &fp4, &mut back).unwrap();
    assert_eq!(back, [0.5, 1.0, 1.5, 2.0]);
    widen(Dtype::Float8E4m3fnX4, &fp8, &mut back).unwrap();
    assert_eq!(back, [1.0, 2.0, -1.0, 448.0]);
}

#[test]
fn sixty_four_bit_integers_saturate_and_round() {
    let mut raw = [0; 32];
    narrow(Dtype::Int64, &[-2.5, f32::NAN, 1e30, -1e30], Overflow::Ieee, &mut raw).unwrap();
    let got: Vec<i64> = raw.as_chunks::<8>().0.iter().map(|&b| i64::from_le_bytes(b)).collect();
    assert_eq!(got, [-2, 0, i64::MAX, i64::MIN]);
    narrow(Dtype::Uint64, &[-2.5, 3.5, 1e30, f32::NEG_INFINITY], Overflow::Ieee, &mut raw).unwrap();
    let got: Vec<u64> = raw.as_chunks::<8>().0.iter().map(|&b| u64::from_le_bytes(b)).collect();
    assert_eq!(got, [0, 4, u64::MAX, 0]);
    let mut back = [0.0; 1];
    // 2^24 + 1 lies halfway between two float32 and goes to the even one.
    widen(Dtype::Uint64, &16_777_217_u64.to_le_bytes(), &mut back).unwrap();
    assert_eq!(back, [16_777_216.0]);
    widen(Dtype::Int32, &(-16_777_219_i32).to_le_bytes(), &mut back).unwrap();
    assert_eq!(back, [-16_777_220.0]);
}

#[test]
fn slices_of_the_wrong_length_are_refused() {
    let error = widen(Dtype::Bfloat16, &[0; 3], &mut [0.0; 1]).unwrap_err();
    assert_eq!(error.code(), "num-partial-container");
    assert_eq!(
        error.to_string(),
        "3 bytes are not a whole number of bfloat16 containers of 2 bytes; drop or complete the last one"
    );
    let error = narrow(Dtype::Float4E2m1fnX4, &[0.0; 3], Overflow::Ieee, &mut [0; 2]).unwrap_err();
    assert_eq!(error.code(), "num-length");
    assert_eq!(
        error.to_string(),
        "source to narrow has 3 elements, expected 4; pass a slice of exactly that length"
    );
}

#[test]
fn slices_equal_single_codes_for_every_type() {
    let inputs = probes();
    let whole = &inputs[..inputs.len() / 4 * 4];
    for dtype in Dtype::ALL {
        let Some(format) = dtype.format() else { continue };
        for (_, rule) in RULES {
            let mut bytes = vec![0; whole.len() / dtype.lanes() * dtype.bytes()];
            narrow(dtype, whole, rule, &mut bytes).unwrap();
            let mut back = vec![0.0; whole.len()];
            widen(dtype, &bytes, &mut back).unwrap();
            for (&x, &y) in whole.iter().zip(&back) {
                let want = decode(format, encode(format, x, rule));
                assert_eq!(y.to_bits(), want.to_bits(), "{dtype} {:08X}", x.to_bits());
            }
        }
    }
}
