//! The ALU's operations on one pair of values.

use hadal_ir::program::AluOp;

use crate::error::Fault;

/// A float32 operation.
pub(crate) type FloatOp = fn(f32, f32) -> f32;
/// An operation on whole containers, as two's complement integers.
pub(crate) type BitOp = fn(i64, i64) -> i64;

/// How an operation computes.
#[derive(Clone, Copy)]
pub(crate) enum Alu {
    /// In float32, whatever the element types.
    Float(FloatOp),
    /// On the bits of integer containers.
    Bits(BitOp),
}

fn truth(b: bool) -> f32 {
    if b { 1.0 } else { 0.0 }
}

/// The larger value; a NaN gives way to a number, and of two zeros the second is taken.
pub(crate) fn max(a: f32, b: f32) -> f32 {
    if a > b || b.is_nan() { a } else { b }
}

/// The smaller value; a NaN gives way to a number, and of two zeros the second is taken.
pub(crate) fn min(a: f32, b: f32) -> f32 {
    if a < b || b.is_nan() { a } else { b }
}

/// Shifts left by 0..=63; further out nothing is left.
fn shl(a: i64, by: i64) -> i64 {
    u32::try_from(by).ok().and_then(|by| a.checked_shl(by)).unwrap_or(0)
}

/// Shifts right, filling with the sign.
fn sar(a: i64, by: i64) -> i64 {
    a >> u32::try_from(by).unwrap_or(63).min(63)
}

/// A result as it is stored: arithmetic makes one NaN only (D-63), `bypass` hands on what it was given.
pub(crate) fn settled(op: AluOp, value: f32) -> f32 {
    if op == AluOp::Bypass { value } else { hadal_num::matmul::canonical(value) }
}

/// The operation, or the reason there is none.
///
/// Logical operations take any nonzero value (NaN included) for true and give 1 or 0; so do comparisons.
/// `logical_shift_right` is left to its caller's container width and so is handled in
/// [`super::elementwise`].
pub(crate) fn operation(op: AluOp) -> Result<Alu, Fault> {
    let float: FloatOp = match op {
        AluOp::Add => |a, b| a + b,
        AluOp::Subtract => |a, b| a - b,
        AluOp::Mult => |a, b| a * b,
        AluOp::Divide => |a, b| a / b,
        AluOp::Max => max,
        AluOp::Min => min,
        AluOp::Abs => |a, _| a.abs(),
        AluOp::Bypass => |a, _| a,
        AluOp::IsEqual => |a, b| truth(a == b),
        AluOp::NotEqual => |a, b| truth(a != b),
        AluOp::IsGe => |a, b| truth(a >= b),
        AluOp::IsGt => |a, b| truth(a > b),
        AluOp::IsLe => |a, b| truth(a <= b),
        AluOp::IsLt => |a, b| truth(a < b),
        AluOp::LogicalAnd => |a, b| truth(a != 0.0 && b != 0.0),
        AluOp::LogicalOr => |a, b| truth(a != 0.0 || b != 0.0),
        AluOp::LogicalXor => |a, b| truth((a != 0.0) != (b != 0.0)),
        // In float64 and rounded once: within 1 ulp, the same on every machine.
        AluOp::Pow => |a, b| libm::pow(f64::from(a), f64::from(b)) as f32,
        AluOp::Rsqrt => |a, _| (1.0 / libm::sqrt(f64::from(a))) as f32,
        AluOp::BitwiseAnd => return Ok(Alu::Bits(|a, b| a & b)),
        AluOp::BitwiseOr => return Ok(Alu::Bits(|a, b| a | b)),
        AluOp::BitwiseXor => return Ok(Alu::Bits(|a, b| a ^ b)),
        AluOp::BitwiseNot => return Ok(Alu::Bits(|a, _| !a)),
        AluOp::ArithShiftLeft | AluOp::LogicalShiftLeft => return Ok(Alu::Bits(shl)),
        AluOp::ArithShiftRight => return Ok(Alu::Bits(sar)),
        AluOp::LogicalShiftRight => return Ok(Alu::Bits(sar)),
        AluOp::Average | AluOp::Mod => {
            return Err(Fault::Unsupported {
                what: format!("ALU operation {}", op.name()),
                why: "its rounding and signs are not documented",
            });
        }
    };
    Ok(Alu::Float(float))
}
