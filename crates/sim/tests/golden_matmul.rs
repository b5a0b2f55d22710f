//! The dense golden products, bit for bit, on every generation that has the type, through both executors.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use hadal_ir::program::Op;
use hadal_isa::Target;
use hadal_num::Dtype;
use hadal_sim::{Fp32Mode, Options, bind};
use support::*;

fn case(name: &str, dtype: Dtype, [k, m, n]: [u64; 3], targets: &[Target]) {
    let w = npy(&format!("matmul/{name}_w.npy"));
    let x = npy(&format!("matmul/{name}_x.npy"));
    let out = npy(&format!("matmul/{name}_out.npy"));
    assert_eq!(w.shape, [k as usize, m as usize]);
    assert_eq!(x.shape, [k as usize, n as usize]);
    let size = dtype.bytes() as u32;
    let p = program(
        vec![
            sb("x", 0, k as u32, 64, n as u32 * size),
            sb("w", 0, k as u32, 8192, m as u32 * size),
            psum("o", 0, m as u32, 2, 0, n as u32 * 4),
        ],
        vec![Op::Matmult(Box::new(matmult(
            ap(0, dtype, &[(1, k), (1, n)]),
            ap(1, dtype, &[(1, k), (1, m)]),
            ap(2, Dtype::Float32, &[(1, m), (1, n)]),
        )))],
    );
    for &target in targets {
        let given = [("x".to_owned(), x.clone()), ("w".to_owned(), w.clone())];
        let (after, machine) = both(p.clone(), target, Options::default(), &given);
        let got = bind::dump(&machine, &after, "o").unwrap();
        assert_eq!(got.shape, out.shape);
        assert!(got.data == out.data, "{name} on {target}");
    }
}

#[test]
fn bf16_full() {
    case("bf16_full", Dtype::Bfloat16, [128, 128, 512], &Target::ALL);
}

#[test]
fn fp16_small() {
    case("fp16_small", Dtype::Float16, [96, 64, 200], &Target::ALL);
}

#[test]
fn e4m3fn_mid() {
    case("e4m3_mid", Dtype::Float8E4m3fn, [128, 128, 96], &[Target::TRN3]);
}

#[test]
fn e5m2_wide() {
    case("e5m2_wide", Dtype::Float8E5m2, [64, 32, 512], &Target::ALL);
}

#[test]
fn fp32_mid() {
    case("fp32_mid", Dtype::Float32, [128, 96, 128], &Target::ALL);
}

#[test]
fn fp32r_mid() {
    case("fp32r_mid", Dtype::Float32r, [128, 96, 128], &Target::ALL);
}

/// The two-pass product is the sum of two separately rounded sums, written then added (D-19).
#[test]
fn two_pass_fp32_against_a_plain_loop() {
    let (k, m, n) = (128usize, 96usize, 128usize);
    let w = npy("matmul/fp32_mid_w.npy");
    let x = npy("matmul/fp32_mid_x.npy");
    let read = |a: &bind::Array| -> Vec<f32> {
        a.data.chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect()
    };
    let (wf, xf) = (read(&w), read(&x));
    // float32r by integer arithmetic on the bits: add half an ulp of bit 13, ties to even, clear the rest.
    let round = |v: f32| {
        let b = v.to_bits();
        f32::from_bits((b + 0xFFF + (b >> 13 & 1)) & !0x1FFF)
    };
    let mut want = Vec::new();
    for i in 0..m {
        for j in 0..n {
            let (mut hi, mut lo) = (0f32, 0f32);
            for p in 0..k {
                let v = wf[p * m + i];
                let h = round(v);
                hi += h * xf[p * n + j];
                lo += (v - h) * xf[p * n + j];
            }
            want.push(hi + lo);
        }
    }
    let p = program(
        vec![sb("x", 0, 128, 0, 512), sb("w", 0, 128, 512, 384), psum("o", 0, 96, 0, 0, 512)],
        vec![Op::Matmult(Box::new(matmult(
            ap(0, Dtype::Float32, &[(1, 128), (1, 128)]),
            ap(1, Dtype::Float32, &[(1, 128), (1, 96)]),
            ap(2, Dtype::Float32, &[(1, 96), (1, 128)]),
        )))],
    );
    let options = Options { fp32: Fp32Mode::TwoPass, ..Options::default() };
    let given = [("x".to_owned(), x), ("w".to_owned(), w)];
    let (after, machine) = both(p.clone(), Target::TRN2, options, &given);
    assert_eq!(bind::dump(&machine, &after, "o").unwrap().data, bytes_of(&want));
    // It is another result than the single pass.
    let (after, machine) = both(p, Target::TRN2, Options::default(), &given);
    assert_ne!(bind::dump(&machine, &after, "o").unwrap().data, bytes_of(&want));
}
