//! Products of operands of every kind against the definition, bit for bit.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers outside the test functions too

use arbtest::arbitrary::{Result, Unstructured};
use arbtest::arbtest;
use hadal_num::matmul::{Blocks, Codes, Operand, Prepared, matmul_ref, product, product_tiled};
use hadal_num::mx::{MxFormat, ScaleRule, expand};
use hadal_num::simd::{Level, with_level};
use hadal_num::{Dtype, Overflow, narrow, round_f32r, widen};

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_available())
}

/// Types that codes may have, those with a path of their own and some without.
const TYPES: [Dtype; 11] = [
    Dtype::Bfloat16,
    Dtype::Float16,
    Dtype::Float8E3m4,
    Dtype::Float8E4m3,
    Dtype::Float8E4m3fn,
    Dtype::Float8E5m2,
    Dtype::Float32,
    Dtype::Float32r,
    Dtype::Uint8,
    Dtype::Int8,
    Dtype::Uint16,
];

/// An operand that owns its bytes, and its values by a way that shares nothing with the product's.
struct Owned {
    kind: Kind,
    values: Vec<f32>,
}

enum Kind {
    Values,
    Codes { dtype: Dtype, bytes: Vec<u8>, row_bytes: usize, zero_point: u8 },
    Mx { format: MxFormat, rule: ScaleRule, data: Vec<u8>, row_bytes: usize, scales: Vec<u8> },
}

impl Owned {
    fn operand(&self) -> Operand<'_> {
        match &self.kind {
            Kind::Values => Operand::Values(&self.values),
            Kind::Codes { dtype, bytes, row_bytes, zero_point } => {
                Operand::Codes(Codes { dtype: *dtype, bytes, row_bytes: *row_bytes, zero_point: *zero_point })
            }
            Kind::Mx { format, rule, data, row_bytes, scales } => {
                Operand::Mx(Blocks { format: *format, rule: *rule, data, row_bytes: *row_bytes, scales })
            }
        }
    }
}

/// Draws many numbers from little entropy.
struct Draw(u64);

impl Draw {
    fn new(u: &mut Unstructured<'_>) -> Result<Self> {
        Ok(Self(u.arbitrary::<u64>()? | 1))
    }

    fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    fn below(&mut self, n: u32) -> u32 {
        self.bits() % n
    }
}

/// How the values of an operand are spread.
#[derive(Clone, Copy, Debug)]
enum Spread {
    /// Around 1, so that products are ordinary.
    Near,
    /// Around an exponent, with or without low mantissa bits.
    Around(u32, u32),
    /// Anything: subnormals, infinities, NaNs.
    Any,
}

fn spread(u: &mut Unstructured<'_>) -> Result<Spread> {
    Ok(match u.int_in_range(0..=4)? {
        0 | 1 => Spread::Near,
        // Products near both ends of the range, where a rounded and an unrounded one differ.
        2 => Spread::Around(u.int_in_range(52..=66)?, u.int_in_range(0..=23)?),
        3 => Spread::Around(u.int_in_range(186..=194)?, u.int_in_range(0..=23)?),
        _ => Spread::Any,
    })
}

fn value(draw: &mut Draw, spread: Spread) -> f32 {
    let bits = draw.bits();
    match spread {
        Spread::Near => f32::from_bits(bits & 0x807F_FFFF | (124 + draw.below(6)) << 23),
        Spread::Around(exponent, cut) => {
            let kept = bits & 0x807F_FFFF & !((1 << cut) - 1);
            f32::from_bits(kept | (exponent + draw.below(4)) << 23)
        }
        Spread::Any => match draw.below(16) {
            0 => 0.0,
            1 => -0.0,
            2 => f32::from_bits(bits & 0x807F_FFFF),
            3 => [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -f32::NAN][bits as usize % 4],
            4 => f32::from_bits(bits & 0x80FF_FFFF | 0x7E00_0000),
            5..=8 => f32::from_bits(bits),
            _ => f32::from_bits(bits & 0x807F_FFFF | 0x3F80_0000),
        },
    }
}

fn owned(u: &mut Unstructured<'_>, k: usize, columns: usize) -> Result<Owned> {
    let mut draw = Draw::new(u)?;
    let spread = spread(u)?;
    // Now and then one value of another kind among the rest.
    let odd = u.ratio(1, 3)?.then_some(draw.below(1 + (k * columns) as u32) as usize);
    let mut wide: Vec<f32> = (0..k * columns)
        .map(|i| value(&mut draw, if odd == Some(i) { Spread::Any } else { spread }))
        .collect();
    let kind = u.int_in_range(0..=3)?;
    if kind == 0 {
        return Ok(Owned { kind: Kind::Values, values: wide });
    }
    if kind == 1 && k.is_multiple_of(32) {
        let format = *u.choose(&MxFormat::ALL)?;
        let rule = *u.choose(&ScaleRule::ALL)?;
        // Every code and every scale, mostly moderate ones.
        let row = columns * format.container_bytes();
        let row_bytes = row + usize::from(u.ratio(1, 2)?) * 3;
        let data: Vec<u8> = (0..k / 4 * row_bytes).map(|_| draw.bits() as u8).collect();
        let wild = u.ratio(1, 3)?;
        let scales: Vec<u8> = (0..k / 32 * columns)
            .map(|_| if wild { draw.bits() as u8 } else { (120 + draw.below(14)) as u8 })
            .collect();
        let dense: Vec<u8> = data.chunks(row_bytes.max(1)).flat_map(|r| &r[..row]).copied().collect();
        let mut values = vec![0.0; k * columns];
        expand(format, rule, &dense, &scales, k / 4, columns, &mut values).unwrap();
        return Ok(Owned { kind: Kind::Mx { format, rule, data, row_bytes, scales }, values });
    }
    let dtype = *u.choose(&TYPES)?;
    let row = columns * dtype.bytes();
    let row_bytes = row + [0, 0, 1, 6][u.int_in_range(0..=3)?];
    let zero_point = if u.ratio(1, 4)? { u.arbitrary()? } else { 0 };
    let mut dense = vec![0; k * row];
    if u.arbitrary()? {
        narrow(dtype, &wide, Overflow::Ieee, &mut dense).unwrap();
    } else {
        dense.iter_mut().for_each(|byte| *byte = draw.bits() as u8);
    }
    widen(dtype, &dense, &mut wide).unwrap();
    for x in &mut wide {
        *x = if dtype == Dtype::Float32r { round_f32r(*x) } else { *x };
        *x = if zero_point == 0 { *x } else { *x - f32::from(zero_point) };
    }
    let mut bytes = vec![0xA5; if k == 0 { 0 } else { (k - 1) * row_bytes + row }];
    for (i, from) in dense.chunks(row.max(1)).enumerate() {
        bytes[i * row_bytes..i * row_bytes + row].copy_from_slice(from);
    }
    Ok(Owned { kind: Kind::Codes { dtype, bytes, row_bytes, zero_point }, values: wide })
}

fn assert_same(got: &[f32], want: &[f32], what: impl Fn() -> String) {
    for (i, (a, b)) in got.iter().zip(want).enumerate() {
        assert_eq!(a.to_bits(), b.to_bits(), "{} output {i}: {a:e} instead of {b:e}", what());
    }
}

/// A shape whose tails of all kinds occur, with `k` a multiple of 32 half of the time.
fn shape(u: &mut Unstructured<'_>) -> Result<[usize; 3]> {
    let k = match u.int_in_range(0..=5)? {
        0..=2 => 32 * u.int_in_range(0..=3)?,
        3 => u.int_in_range(250..=290)?,
        4 => u.int_in_range(0..=5)?,
        _ => u.int_in_range(0..=70)?,
    };
    Ok([k, u.int_in_range(0..=27)?, u.int_in_range(0..=75)?])
}

#[test]
fn every_operand_gives_the_bits_of_the_definition() {
    arbtest(|u| {
        let [k, m, n] = shape(u)?;
        let (w, x) = (owned(u, k, m)?, owned(u, k, n)?);
        let mut want = vec![1.0; m * n];
        matmul_ref(&w.values, &x.values, k, m, n, &mut want).unwrap();
        for level in levels() {
            let what = || {
                let [w, x] = [&w, &x].map(|o| o.operand());
                format!("{} [{k}, {m}, {n}] {w:.0?} {x:.0?}", level.name())
            };
            let mut out = vec![f32::NAN; m * n];
            with_level(level, || product(w.operand(), x.operand(), [k, m, n], &mut out)).unwrap();
            assert_same(&out, &want, what);
            let mut out = vec![f32::NAN; m * n];
            let prepared = with_level(level, || Prepared::new(w.operand(), k, m)).unwrap();
            prepared.product(x.operand(), n, &mut out).unwrap();
            assert_same(&out, &want, what);
        }
        Ok(())
    })
    .budget_ms(2_000);
}

#[test]
fn tiles_of_the_contraction_are_added_one_by_one() {
    arbtest(|u| {
        let [k, m, n] = if u.ratio(1, 6)? { [1100, 7, 19] } else { shape(u)? };
        let (w, x) = (owned(u, k, m)?, owned(u, k, n)?);
        let k_tile = *u.choose(&[1, 3, 31, 32, 64, 128, 512, 600, usize::MAX])?;
        let mut want = vec![0.0; m * n];
        let mut sums = vec![0.0; m * n];
        for start in (0..k).step_by(k_tile) {
            let end = k.min(start.saturating_add(k_tile));
            let (w, x) = (&w.values[start * m..end * m], &x.values[start * n..end * n]);
            matmul_ref(w, x, end - start, m, n, &mut sums).unwrap();
            for (to, sum) in want.iter_mut().zip(&sums) {
                *to += sum;
                *to = if to.is_nan() { f32::from_bits(0x7FC0_0000) } else { *to };
            }
        }
        for level in levels() {
            let mut out = vec![f32::NAN; m * n];
            with_level(level, || product_tiled(w.operand(), x.operand(), [k, m, n], k_tile, &mut out))
                .unwrap();
            assert_same(&out, &want, || format!("{} [{k}, {m}, {n}] by {k_tile}", level.name()));
        }
        Ok(())
    });
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let (k, m, n) = (320, 133, 2100);
    let mut draw = Draw(1);
    let bytes = |draw: &mut Draw, len: usize| (0..len).map(|_| draw.bits() as u8).collect::<Vec<u8>>();
    // Finite bfloat16 codes, and MX codes with moderate scales.
    let w: Vec<u8> =
        bytes(&mut draw, k * m * 2).as_chunks::<2>().0.iter().flat_map(|c| [c[0], c[1] & 0xBF]).collect();
    let data = bytes(&mut draw, k * n);
    let scales: Vec<u8> = (0..k / 32 * n).map(|_| (120 + draw.below(9)) as u8).collect();
    let w = Operand::Codes(Codes::dense(Dtype::Bfloat16, &w, m));
    let x = Operand::Mx(Blocks::dense(MxFormat::Float8E4m3fn, ScaleRule::Ocp, &data, &scales, n));
    let mut want = vec![0.0; m * n];
    matmul_ref(&w.values(k, m).unwrap(), &x.values(k, n).unwrap(), k, m, n, &mut want).unwrap();
    for threads in 1..=3 {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        for level in levels() {
            let mut out = vec![f32::NAN; m * n];
            pool.install(|| with_level(level, || product(w, x, [k, m, n], &mut out))).unwrap();
            assert_same(&out, &want, || format!("{threads} threads"));
            let prepared = pool.install(|| with_level(level, || Prepared::new(w, k, m))).unwrap();
            pool.install(|| prepared.product(x, n, &mut out)).unwrap();
            assert_same(&out, &want, || format!("{threads} threads"));
        }
    }
}

#[test]
fn products_are_rounded_where_they_are_not_exact() {
    let one = |w: &[f32], x: &[f32]| {
        let mut outs = levels().map(|level| {
            let mut out = [0.0];
            with_level(level, || product(Operand::Values(w), Operand::Values(x), [w.len(), 1, 1], &mut out))
                .unwrap();
            out[0]
        });
        let first = outs.next().unwrap();
        assert!(outs.all(|out| out.to_bits() == first.to_bits()));
        first
    };
    // bfloat16 values of which the product needs a bit below 2^-149: it rounds to even, a fused sum would keep it.
    let tiny = 1.0 + 2f32.powi(-7);
    let (a, b) = (tiny * 2f32.powi(-70), tiny * 2f32.powi(-66));
    let rounded = a * b;
    assert_eq!(one(&[1.0, a], &[-rounded, b]), 0.0);
    assert_ne!(f64::from(a) * f64::from(b), f64::from(rounded));
    // A product past the largest float32 is infinity, though with the sum so far it would be finite.
    let big = 2f32.powi(64);
    assert_eq!(one(&[1.0, big], &[-(2f32.powi(127)), big]), f32::INFINITY);
    assert_eq!(big.mul_add(big, -(2f32.powi(127))), 2f32.powi(127));
}

#[test]
fn operands_are_checked() {
    let codes =
        |bytes, row_bytes| Operand::Codes(Codes { dtype: Dtype::Bfloat16, bytes, row_bytes, zero_point: 0 });
    let error = |w, x, k| product(w, x, [k, 1, 1], &mut [0.0]).unwrap_err();
    let two = Operand::Values(&[0.0; 2]);
    assert_eq!(
        error(two, codes(&[0; 9], 8), 2).to_string(),
        "moving operand has 9 bytes, expected 10; pass a slice of exactly that length"
    );
    assert!(product(two, codes(&[0; 10], 8), [2, 1, 1], &mut [0.0]).is_ok());
    assert_eq!(error(two, codes(&[0; 10], usize::MAX / 2 + 9), 2).code(), "num-length");
    assert_eq!(error(Operand::Values(&[0.0; 3]), codes(&[0; 10], usize::MAX), 3).code(), "num-shape");
    let x4 = Operand::Codes(Codes::dense(Dtype::Float8E5m2X4, &[0; 8], 1));
    assert_eq!(
        error(two, x4, 2).to_string(),
        "float8_e5m2_x4 holds four elements a container; pass it as MX blocks, or widen it first"
    );
    let mx = Operand::Mx(Blocks::dense(MxFormat::Float8E5m2, ScaleRule::Ocp, &[0; 8], &[0], 1));
    assert_eq!(error(two, mx, 2).code(), "num-blocks");
}
