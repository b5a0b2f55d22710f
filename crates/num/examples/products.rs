//! Times one product a line of standard input, for scripts that interleave it with something else.
//!
//! An operation is `TYPE`, or `TYPE/prepared` with the stationary operand packed beforehand; its amount is two for each
//! multiplication. Arguments: `products [THREADS [K M N]]`.

mod serve;

use std::hint::black_box;

use hadal_num::matmul::{Blocks, Codes, Operand, Prepared, product};
use hadal_num::mx::{MxFormat, ScaleRule, Source, quantize};
use hadal_num::{Dtype, NumError, Overflow, narrow};
use serve::{Operation, on_pool};

/// Normally distributed enough: sums of uniform values.
fn values(len: usize) -> Vec<f32> {
    let mut state = 1_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 24) as f32 - 0.5
    };
    (0..len).map(|_| uniform() + uniform() + uniform() + uniform()).collect()
}

/// An operand of `[k, columns]` that lives as long as the program.
fn operand(name: &str, k: usize, columns: usize) -> Result<Operand<'static>, NumError> {
    let wide = values(k * columns);
    if let Some(format) = MxFormat::ALL.into_iter().find(|f| name == format!("mx-{f}")) {
        let (rows, cols, rule) = (k / 4, 4 * columns, ScaleRule::Reference);
        let mut data = vec![0; rows * columns * format.container_bytes()];
        let mut scales = vec![0; rows / 8 * columns];
        quantize(Source::Float32(&wide), rows, cols, format, rule, &mut data, &mut scales)?;
        return Ok(Operand::Mx(Blocks::dense(format, rule, data.leak(), scales.leak(), columns)));
    }
    match name.parse()? {
        Dtype::Float32 => Ok(Operand::Values(wide.leak())),
        dtype => {
            let mut codes = vec![0; k * columns * dtype.bytes()];
            narrow(dtype, &wide, Overflow::Saturate, &mut codes)?;
            Ok(Operand::Codes(Codes::dense(dtype, codes.leak(), columns)))
        }
    }
}

fn operations([k, m, n]: [usize; 3]) -> Result<Vec<Operation>, NumError> {
    let mut all = Vec::new();
    let amount = 2 * k * m * n;
    for name in [
        "float32",
        "bfloat16",
        "float16",
        "float8_e4m3fn",
        "float8_e5m2",
        "mx-float8_e4m3fn",
        "mx-float8_e5m2",
        "mx-float4_e2m1fn",
    ] {
        let (w, x) = (operand(name, k, m)?, operand(name, k, n)?);
        let mut out = vec![0.0; m * n];
        let work = move || {
            let _ = product(w, x, [k, m, n], black_box(&mut out));
        };
        all.push(Operation { name: name.to_owned(), amount, work: Box::new(work) });
        let prepared = Prepared::new(w, k, m)?;
        let mut out = vec![0.0; m * n];
        let work = move || {
            let _ = prepared.product(x, n, black_box(&mut out));
        };
        all.push(Operation { name: format!("{name}/prepared"), amount, work: Box::new(work) });
    }
    Ok(all)
}

fn main() -> std::io::Result<()> {
    let mut numbers = std::env::args().skip(1).map(|n| n.parse::<usize>().ok());
    let mut number = |default| numbers.next().flatten().unwrap_or(default);
    let (threads, shape) = (number(1), [number(128), number(128), number(512)]);
    let all = operations(shape).map_err(std::io::Error::other)?;
    on_pool(threads, || all)
}
