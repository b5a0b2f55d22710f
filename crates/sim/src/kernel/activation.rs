//! The activation engine: functions of one value, and its accumulator.

use hadal_ir::program::{Accumulate, ActFunc};
use hadal_num::Dtype;

use super::elementwise::same_elements;
use super::{Core, reduce};
use crate::error::{Fault, OperandFault};
use crate::memory::View;

/// One float32 a partition that activations can reduce into (D-44).
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Accumulator {
    /// Values by partition of the source; absent entries are 0.
    values: Vec<f32>,
    /// Whether a read has consumed the values: the next accumulation starts from zero.
    consumed: bool,
}

/// The function on float32.
///
/// | function | accuracy |
/// |---|---|
/// | `copy` | exact; NaN keeps its bits where nothing is converted |
/// | `relu` | exact; NaN stays, -0 becomes +0 |
/// | `square`, `sqrt`, `reciprocal` | correctly rounded, IEEE 754 |
/// | `exp`, `sigmoid`, `tanh`, `rsqrt`, `gelu` (with the error function, `x Phi(x)`) | within 1 ulp of the mathematical value: computed in float64 in software and rounded once, so the same on every machine |
///
/// The device's own tables are not documented, and its results will differ in the last places.
pub(crate) fn function(func: ActFunc) -> fn(f32) -> f32 {
    match func {
        ActFunc::Copy => |x| x,
        // Keeps NaN; -0 becomes +0.
        ActFunc::Relu => |x| if x > 0.0 || x.is_nan() { x } else { 0.0 },
        ActFunc::Gelu => |x| {
            if x == f32::NEG_INFINITY {
                return -0.0; // the limit; the product would be infinity times 0
            }
            let x = f64::from(x);
            (0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)) as f32
        },
        ActFunc::Exp => |x| libm::exp(f64::from(x)) as f32,
        ActFunc::Sigmoid => |x| (1.0 / (1.0 + libm::exp(-f64::from(x)))) as f32,
        ActFunc::Tanh => |x| libm::tanh(f64::from(x)) as f32,
        ActFunc::Square => |x| x * x,
        ActFunc::Sqrt => libm::sqrtf,
        ActFunc::Rsqrt => |x| (1.0 / libm::sqrt(f64::from(x))) as f32,
        ActFunc::Reciprocal => |x| 1.0 / x,
    }
}

/// `dst = func(src * scale + bias)`, the product rounded before the add.
pub(crate) fn activation(
    core: &mut Core<'_>,
    dst: &View,
    src: &View,
    func: ActFunc,
    (scale, bias): (f32, f32),
    accumulate: Option<Accumulate>,
) -> Result<(), OperandFault> {
    same_elements(dst, src)?;
    let f = function(func);
    let mut values = core.read_f32(src)?;
    // A plain copy keeps every bit.
    let identity = func == ActFunc::Copy && scale == 1.0 && bias == 0.0;
    if !identity {
        values.iter_mut().for_each(|x| *x = f(*x * scale + bias));
    }
    if let Some(acc) = accumulate {
        let rows = usize::try_from(src.rows).unwrap_or(usize::MAX);
        let per_row = values.len() / rows.max(1);
        core.accumulator.take(acc, rows, per_row, &values)?;
    }
    if identity && dst.dtype == src.dtype {
        let bytes = core.read(src)?;
        return core.machine.scatter(dst, &bytes);
    }
    core.write_f32(dst, &values)
}

impl Accumulator {
    fn take(
        &mut self,
        acc: Accumulate,
        rows: usize,
        per_row: usize,
        values: &[f32],
    ) -> Result<(), OperandFault> {
        let load = || {
            acc.load.ok_or_else(|| Fault::Unsupported {
                what: format!("accumulator command {}", acc.command),
                why: "an instruction that does a LoadAccumulate must provide an immediate value to load",
            })
        };
        let start = match acc.command {
            0 => return Ok(()),
            1 => {
                self.values = vec![0.0; rows];
                self.consumed = false;
                return Ok(());
            }
            2 => self.consumed.then_some(0.0),
            4 => Some(0.0),
            3 | 5 => Some(load()?),
            command => {
                return Err(Fault::Unsupported {
                    what: format!("accumulator command {command}"),
                    why: "the commands are 0 to 5",
                }
                .into());
            }
        };
        let f = reduce::fold(acc.op)?;
        if let Some(start) = start {
            self.values = vec![start; rows];
        }
        if self.values.len() < rows {
            self.values.resize(rows, 0.0);
        }
        self.consumed = false;
        for (slot, row) in self.values.iter_mut().zip(values.chunks(per_row.max(1))) {
            *slot = row.iter().fold(*slot, |a, &b| f(a, b));
        }
        Ok(())
    }
}

/// Writes the accumulator, one float32 a partition, and marks it consumed.
pub(crate) fn read_accumulator(core: &mut Core<'_>, dst: &View) -> Result<(), OperandFault> {
    if dst.dtype != Dtype::Float32 {
        let text = "the accumulator is read as float32";
        return Err(Fault::Type { text, dtype: dst.dtype }.on(dst.operand));
    }
    if dst.per_row() != 1 {
        let got = format!("{} elements in a partition", dst.per_row());
        return Err(
            Fault::Shape { what: "destination of the accumulator", got, want: "1".into() }.on(dst.operand)
        );
    }
    core.machine.check(dst)?;
    let bytes: Vec<u8> = (0..usize::try_from(dst.rows).unwrap_or(0))
        .flat_map(|p| core.accumulator.values.get(p).copied().unwrap_or(0.0).to_le_bytes())
        .collect();
    core.accumulator.consumed = true;
    core.machine.scatter(dst, &bytes)
}
