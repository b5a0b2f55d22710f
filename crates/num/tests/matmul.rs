//! Dense products: golden results bit for bit, and the blocked form against the definition.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers outside the test functions too

mod support;

use arbtest::arbtest;
use hadal_num::matmul::{matmul_blocked, matmul_ref};
use hadal_num::simd::{Level, with_level};
use hadal_num::{Dtype, round_f32r, widen};
use support::{Npy, cases, same};

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_available())
}

/// Operand values of a golden file.
fn operand(name: &str, dtype: Dtype) -> Vec<f32> {
    let file = Npy::load(&format!("matmul/{name}.npy"));
    let mut values = vec![0.0; file.bytes.len() / dtype.bytes()];
    widen(dtype, &file.bytes, &mut values).unwrap();
    if dtype == Dtype::Float32r { values.into_iter().map(round_f32r).collect() } else { values }
}

#[test]
fn golden_products_match_bit_for_bit() {
    let mut seen = 0;
    for case in cases("matmul").iter().filter(|case| case["kind"] == "dense") {
        let name = case["name"].as_str().unwrap();
        let dtype: Dtype = case["dtype"].as_str().unwrap().parse().unwrap();
        let [k, m, n] = ["K", "M", "N"].map(|key| case[key].as_u64().unwrap() as usize);
        let (w, x) = (operand(&format!("{name}_w"), dtype), operand(&format!("{name}_x"), dtype));
        let want = Npy::load(&format!("matmul/{name}_out.npy")).f32s();
        let mut out = vec![f32::NAN; m * n];
        matmul_ref(&w, &x, k, m, n, &mut out).unwrap();
        assert!(out.iter().zip(&want).all(|(&a, &b)| same(a, b)), "{name}");
        for level in levels() {
            out.fill(f32::NAN);
            with_level(level, || matmul_blocked(&w, &x, k, m, n, &mut out)).unwrap();
            assert!(out.iter().zip(&want).all(|(&a, &b)| same(a, b)), "{name} {}", level.name());
        }
        seen += 1;
    }
    assert_eq!(seen, 6);
}

/// A value of any kind: ordinary, zero of either sign, subnormal, huge, infinite or NaN.
fn value(u: &mut arbtest::arbitrary::Unstructured<'_>) -> arbtest::arbitrary::Result<f32> {
    let bits: u32 = u.arbitrary()?;
    Ok(match u.int_in_range(0..=9)? {
        0 => 0.0,
        1 => -0.0,
        2 => f32::from_bits(bits & 0x807F_FFFF),
        3 => f32::from_bits(bits),
        4 => f32::from_bits(bits & 0x80FF_FFFF | 0x7E00_0000),
        5 => [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -f32::NAN][bits as usize % 4],
        _ => f32::from_bits(bits & 0x807F_FFFF | 0x3F80_0000),
    })
}

#[test]
fn the_blocked_form_returns_the_bits_of_the_definition() {
    arbtest(|u| {
        // Now and then deeper than a tile runs between two stores of its sums.
        let k = if u.ratio(1, 8)? { u.int_in_range(250..=530)? } else { u.int_in_range(0..=9)? };
        let [m, n] = [u.int_in_range(0..=29)?, u.int_in_range(0..=37)?];
        // Few distinct values keep the entropy budget for shapes while every kind still meets every other.
        let pool: Vec<f32> = (0..16).map(|_| value(u)).collect::<Result<_, _>>()?;
        let mut state = u64::from(u.arbitrary::<u32>()?) | 1;
        let mut draw = |len: usize| -> Vec<f32> {
            (0..len)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    pool[(state >> 60) as usize]
                })
                .collect()
        };
        let (w, x) = (draw(k * m), draw(k * n));
        let (mut a, mut b) = (vec![1.0; m * n], vec![2.0; m * n]);
        matmul_ref(&w, &x, k, m, n, &mut a).unwrap();
        for level in levels() {
            with_level(level, || matmul_blocked(&w, &x, k, m, n, &mut b)).unwrap();
            for (i, (&a, &b)) in a.iter().zip(&b).enumerate() {
                let place = || format!("[{k},{m}]x[{k},{n}] {} output {i}", level.name());
                // NaN included: results carry one NaN only.
                assert_eq!(a.to_bits(), b.to_bits(), "{}: {a:e} and {b:e}", place());
                assert!(!b.is_nan() || b.to_bits() == 0x7FC0_0000, "{}", place());
            }
        }
        Ok(())
    });
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let (k, m, n) = (300, 101, 97);
    let fill = |len: u32, seed: u32| -> Vec<f32> {
        (0..len)
            .map(|i| f32::from_bits((i ^ seed).wrapping_mul(0x9E37_79B9) & 0x807F_FFFF | 0x3F80_0000))
            .collect()
    };
    let (w, x) = (fill(k * m, 1), fill(k * n, 2));
    let [k, m, n] = [k, m, n].map(|size| size as usize);
    let mut want = vec![0.0; m * n];
    matmul_ref(&w, &x, k, m, n, &mut want).unwrap();
    for threads in 1..=4 {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut out = vec![0.0; m * n];
        pool.install(|| matmul_blocked(&w, &x, k, m, n, &mut out)).unwrap();
        assert!(out.iter().zip(&want).all(|(&a, &b)| a.to_bits() == b.to_bits()), "{threads} threads");
    }
}

#[test]
fn products_round_before_they_are_added() {
    // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24 lies halfway and rounds to the even 1 + 2^-11.
    let a = 1.0 + 2f32.powi(-12);
    let mut out = [1.0];
    for matmul in [matmul_ref, matmul_blocked] {
        matmul(&[1.0, a], &[-(1.0 + 2f32.powi(-11)), a], 2, 1, 1, &mut out).unwrap();
        assert_eq!(out, [0.0], "a fused multiply-add would leave 2^-24");
    }
}

#[test]
fn shapes_are_checked() {
    let error = matmul_blocked(&[0.0; 5], &[0.0; 4], 2, 3, 2, &mut [0.0; 6]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "stationary operand has 5 elements, expected 6; pass a slice of exactly that length"
    );
    assert_eq!(matmul_ref(&[], &[], usize::MAX, 2, 0, &mut []).unwrap_err().code(), "num-shape");
}
