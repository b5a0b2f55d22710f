//! TensorTensor and TensorScalar: one ALU operation, element by element.

use hadal_ir::program::{AluOp, Immediate};

use super::alu::{Alu, BitOp, FloatOp, operation};
use super::{Core, alu};
use crate::error::{Fault, OperandFault};
use crate::memory::View;

/// Checks that an operand has as many elements as the destination.
pub(crate) fn same_elements(dst: &View, src: &View) -> Result<(), OperandFault> {
    if dst.elements() == src.elements() {
        return Ok(());
    }
    let got = format!("{} elements", src.elements());
    let want = format!("{} as the destination has", dst.elements());
    Err(Fault::Shape { what: "operand", got, want }.on(src.operand))
}

/// `dst = src0 op src1`.
pub(crate) fn tensor_tensor(
    core: &mut Core<'_>,
    dst: &View,
    src0: &View,
    src1: &View,
    op: AluOp,
) -> Result<(), OperandFault> {
    same_elements(dst, src0)?;
    same_elements(dst, src1)?;
    match operation(op)? {
        Alu::Float(f) => {
            let b = core.read_f32(src1)?;
            let a = core.read_f32(src0)?;
            let out: Vec<f32> = a.iter().zip(&b).map(|(a, b)| alu::settled(op, f(*a, *b))).collect();
            core.write_f32(dst, &out)
        }
        Alu::Bits(f) => {
            let logical = op == AluOp::LogicalShiftRight;
            let b = integers(core, src1, false)?;
            let a = integers(core, src0, logical)?;
            let out: Vec<i64> = a.iter().zip(&b).map(|(a, b)| f(*a, *b)).collect();
            write_integers(core, dst, &out)
        }
    }
}

/// `dst = (src op0 operand0) op1 operand1`. Float operations keep float32 between the two steps.
pub(crate) fn tensor_scalar(
    core: &mut Core<'_>,
    dst: &View,
    src: &View,
    first: (AluOp, Immediate),
    second: Option<(AluOp, Immediate)>,
) -> Result<(), OperandFault> {
    same_elements(dst, src)?;
    let steps: Vec<(AluOp, Immediate)> = std::iter::once(first).chain(second).collect();
    let mut floats: Vec<(AluOp, FloatOp, f32)> = Vec::new();
    let mut bits: Vec<(BitOp, i64)> = Vec::new();
    for (op, value) in &steps {
        match operation(*op)? {
            Alu::Float(f) => floats.push((*op, f, value.as_f32())),
            Alu::Bits(f) => bits.push((f, integer(*op, *value)?)),
        }
    }
    if bits.is_empty() {
        let mut values = core.read_f32(src)?;
        for (op, f, scalar) in floats {
            values.iter_mut().for_each(|v| *v = alu::settled(op, f(*v, scalar)));
        }
        return core.write_f32(dst, &values);
    }
    if !floats.is_empty() {
        return Err(Fault::Unsupported {
            what: "TensorScalar with a bitwise and an arithmetic step".to_owned(),
            why: "the conversion between the steps is not documented",
        }
        .into());
    }
    let logical = first.0 == AluOp::LogicalShiftRight;
    let mut values = integers(core, src, logical)?;
    if steps.get(1).is_some_and(|s| s.0 == AluOp::LogicalShiftRight) && !logical {
        return Err(Fault::Unsupported {
            what: "logical_shift_right as a second step".to_owned(),
            why: "the width it shifts in is not documented",
        }
        .into());
    }
    for (f, scalar) in bits {
        values.iter_mut().for_each(|v| *v = f(*v, scalar));
    }
    write_integers(core, dst, &values)
}

/// The scalar of a bitwise step.
fn integer(op: AluOp, value: Immediate) -> Result<i64, OperandFault> {
    match value {
        Immediate::Int(i) => Ok(i),
        Immediate::Float(f) if f.fract() == 0.0 && f.abs() < 9.0e18 => Ok(f as i64),
        Immediate::Float(_) => Err(Fault::Unsupported {
            what: format!("{} with a fractional scalar", op.name()),
            why: "bitwise operations take whole numbers",
        }
        .into()),
    }
}

/// Integer containers as 64-bit integers; `unsigned` ignores the type's sign.
fn integers(core: &Core<'_>, view: &View, unsigned: bool) -> Result<Vec<i64>, OperandFault> {
    if !view.dtype.is_integer() {
        let text = "bitwise operations and shifts take integer types";
        return Err(Fault::Type { text, dtype: view.dtype }.on(view.operand));
    }
    let signed = !unsigned && super::is_signed(view.dtype);
    Ok(super::integers(view.dtype, signed, &core.read(view)?))
}

/// Writes the low bits of integers into integer containers.
fn write_integers(core: &mut Core<'_>, view: &View, values: &[i64]) -> Result<(), OperandFault> {
    if !view.dtype.is_integer() {
        let text = "bitwise operations and shifts give integer types";
        return Err(Fault::Type { text, dtype: view.dtype }.on(view.operand));
    }
    let size = view.dtype.bytes();
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes().into_iter().take(size)).collect();
    core.machine.scatter(view, &bytes)
}
