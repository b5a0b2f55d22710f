//! Every instruction set returns the bits of the definitions.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers outside the test functions too

mod support;

use arbtest::arbtest;
use hadal_num::simd::{Level, with_level};
use hadal_num::{Dtype, Overflow, convert, narrow, widen};
use support::Npy;

const RULES: [Overflow; 2] = [Overflow::Ieee, Overflow::Saturate];

fn fast_levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|&level| level != Level::Scalar && level.is_available())
}

fn bytes_for(dtype: Dtype, elements: usize) -> usize {
    elements / dtype.lanes() * dtype.bytes()
}

/// Narrowed and widened again at one level.
fn cast(level: Level, dtype: Dtype, overflow: Overflow, x: &[f32]) -> (Vec<u8>, Vec<u32>) {
    with_level(level, || {
        let mut codes = vec![0xA5; bytes_for(dtype, x.len())];
        narrow(dtype, x, overflow, &mut codes).unwrap();
        let mut back = vec![0.0; x.len()];
        widen(dtype, &codes, &mut back).unwrap();
        (codes, back.into_iter().map(f32::to_bits).collect())
    })
}

#[test]
fn a_forced_level_ends_with_its_scope() {
    let outside = Level::active();
    with_level(Level::Scalar, || {
        with_level(Level::Portable, || assert_eq!(Level::active(), Level::Portable));
        assert_eq!(Level::active(), Level::Scalar);
    });
    assert_eq!(Level::active(), outside);
}

/// Runs itself in a process of its own for each value, since the variable is read once.
#[test]
fn the_environment_chooses_among_what_the_machine_has() {
    const CHILD: &str = "HADAL_NUM_PRINT_LEVEL";
    if std::env::var_os(CHILD).is_some() {
        println!("level={}.", Level::active().name());
        return;
    }
    let level_under = |value: Option<&str>| {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", "the_environment_chooses_among_what_the_machine_has", "--nocapture"])
            .env(CHILD, "1");
        match value {
            Some(value) => child.env("HADAL_SIMD", value),
            None => child.env_remove("HADAL_SIMD"),
        };
        let text = String::from_utf8(child.output().unwrap().stdout).unwrap();
        text.split_once("level=").unwrap().1.split_once('.').unwrap().0.to_owned()
    };
    let best = level_under(None);
    assert_eq!(best, Level::ALL.into_iter().rfind(|level| level.is_available()).unwrap().name());
    assert_eq!(level_under(Some("sse9")), best);
    for level in Level::ALL {
        let want = if level.is_available() { level.name() } else { &best };
        assert_eq!(level_under(Some(level.name())), want);
    }
}

#[test]
fn all_levels_agree_on_every_16_bit_pattern_and_every_probe() {
    let mut inputs: Vec<f32> = (0..=0xFFFF_u32).map(|upper| f32::from_bits(upper << 16)).collect();
    inputs.extend((0..=0xFFFF_u32).map(|half| f32::from_bits(half << 13 | 0x3800_0000)));
    inputs.extend(Npy::load("casts/float32_probe_bits.npy").codes().into_iter().map(f32::from_bits));
    for dtype in Dtype::ALL {
        for overflow in RULES {
            let want = cast(Level::Scalar, dtype, overflow, &inputs);
            for level in fast_levels() {
                assert!(
                    cast(level, dtype, overflow, &inputs) == want,
                    "{dtype} {overflow:?} {}",
                    level.name()
                );
            }
        }
    }
}

#[test]
fn all_levels_agree_on_every_code() {
    for dtype in Dtype::ALL.into_iter().filter(|dtype| dtype.bytes() <= 2 || dtype.is_x4()) {
        let codes: Vec<u8> = (0..=0xFFFF_u16).flat_map(u16::to_le_bytes).collect();
        let count = codes.len() / dtype.bytes() * dtype.lanes();
        let wide = |level| {
            let mut out = vec![0.0; count];
            with_level(level, || widen(dtype, &codes, &mut out)).unwrap();
            out.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        let want = wide(Level::Scalar);
        for level in fast_levels() {
            assert!(wide(level) == want, "{dtype} {}", level.name());
        }
    }
}

#[test]
fn all_levels_agree_on_every_code_cast_to_and_from_bfloat16() {
    let codes: Vec<u8> = (0..=0xFFFF_u16).flat_map(u16::to_le_bytes).collect();
    let cast = |level, from: Dtype, to: Dtype, overflow| {
        let mut out = vec![0x5A; bytes_for(to, codes.len() / from.bytes() * from.lanes())];
        with_level(level, || convert(from, &codes, to, overflow, &mut out)).unwrap();
        out
    };
    for dtype in Dtype::ALL {
        for overflow in RULES {
            for (from, to) in [(dtype, Dtype::Bfloat16), (Dtype::Bfloat16, dtype)] {
                let want = cast(Level::Scalar, from, to, overflow);
                for level in fast_levels() {
                    let got = cast(level, from, to, overflow);
                    assert!(got == want, "{from} to {to} {overflow:?} {}", level.name());
                }
            }
        }
    }
}

#[test]
fn random_slices_agree_at_any_length_and_alignment() {
    arbtest(|u| {
        let dtype = *u.choose(&Dtype::ALL)?;
        let target = *u.choose(&Dtype::ALL)?;
        let overflow = *u.choose(&RULES)?;
        let len = u.int_in_range(0..=70)? * 4;
        let skip = u.int_in_range(0..=7)?;
        let x: Vec<f32> =
            (0..len + skip).map(|_| u.arbitrary().map(f32::from_bits)).collect::<Result<_, _>>()?;
        let x = &x[skip..];
        let want = cast(Level::Scalar, dtype, overflow, x);
        let converted = |level| {
            let mut out = vec![0x5A; bytes_for(target, len)];
            with_level(level, || convert(dtype, &want.0, target, overflow, &mut out)).unwrap();
            out
        };
        let want_converted = converted(Level::Scalar);
        for level in fast_levels() {
            assert_eq!(cast(level, dtype, overflow, x), want, "{dtype} {}", level.name());
            assert_eq!(converted(level), want_converted, "{dtype} to {target} {}", level.name());
        }
        Ok(())
    });
}

/// A tensor large enough to be split over threads and written past the caches, at an odd address.
#[test]
fn large_tensors_agree_for_any_number_of_threads() {
    let len = (8 << 20) + 36;
    let x: Vec<f32> = (0..len as u32).map(|i| f32::from_bits(i.wrapping_mul(0x9E37_79B9))).collect();
    let runs = [Dtype::Float8E4m3fn, Dtype::Float4E2m1fnX4, Dtype::Bfloat16, Dtype::Int16].map(|dtype| {
        [1, 2, 3].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut codes = vec![0xA5; bytes_for(dtype, x.len() - 4) + 2];
                narrow(dtype, &x[4..], Overflow::Saturate, &mut codes[2..]).unwrap();
                let mut back = vec![0.0; x.len()];
                widen(dtype, &codes[2..], &mut back[4..]).unwrap();
                let mut other = vec![0; bytes_for(Dtype::Bfloat16, x.len() - 4)];
                convert(dtype, &codes[2..], Dtype::Bfloat16, Overflow::Ieee, &mut other).unwrap();
                (dtype, codes, back.into_iter().map(f32::to_bits).collect::<Vec<_>>(), other)
            })
        })
    });
    for [one, two, three] in runs {
        let dtype = one.0;
        assert!(one == two && two == three, "{dtype}");
        // The small pieces are what the other tests have compared with the definitions.
        let mut piece = vec![0; bytes_for(dtype, 4096)];
        for (x, codes) in x[4..].chunks_exact(4096).zip(one.1[2..].chunks_exact(piece.len())) {
            narrow(dtype, x, Overflow::Saturate, &mut piece).unwrap();
            assert!(piece == codes, "{dtype}");
        }
        let mut piece = vec![0.0; 4096];
        for (codes, wide) in
            one.1[2..].chunks_exact(bytes_for(dtype, 4096)).zip(one.2[4..].chunks_exact(4096))
        {
            widen(dtype, codes, &mut piece).unwrap();
            assert!(piece.iter().map(|x| x.to_bits()).eq(wide.iter().copied()), "{dtype}");
        }
    }
}

/// Every float32 there is, in one format: about two minutes in an optimised build.
///
/// `cargo test --release -p hadal-num --test levels -- --ignored float8_e4m3fn`
fn every_float32(dtype: Dtype) {
    const PART: u32 = 1 << 18;
    let mut x = vec![0.0; PART as usize];
    let mut want = vec![0; bytes_for(dtype, x.len())];
    let mut got = want.clone();
    for first in (0..=u32::MAX).step_by(PART as usize) {
        for (x, bits) in x.iter_mut().zip(first..) {
            *x = f32::from_bits(bits);
        }
        for overflow in RULES {
            with_level(Level::Scalar, || narrow(dtype, &x, overflow, &mut want)).unwrap();
            for level in fast_levels() {
                with_level(level, || narrow(dtype, &x, overflow, &mut got)).unwrap();
                assert!(got == want, "{dtype} {overflow:?} {} from {first:08X}", level.name());
            }
        }
    }
}

macro_rules! every_float32 {
    ($($name:ident: $dtype:ident,)*) => {
        mod every_float32 {
            $(#[test]
            #[ignore = "all 2^32 inputs take minutes"]
            fn $name() {
                super::every_float32(hadal_num::Dtype::$dtype);
            })*
        }
    };
}

every_float32! {
    float4_e2m1fn: Float4E2m1fnX4,
    float8_e3m4: Float8E3m4,
    float8_e4m3: Float8E4m3,
    float8_e4m3fn: Float8E4m3fn,
    float8_e5m2: Float8E5m2,
    float8_e8m0fnu: Float8E8m0fnu,
    bfloat16: Bfloat16,
    float16: Float16,
    float32r: Float32r,
    int8: Int8,
    uint8: Uint8,
    int16: Int16,
    uint16: Uint16,
}
