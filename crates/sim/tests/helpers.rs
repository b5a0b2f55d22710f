//! Operators without a bundle, against small results worked out by hand.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use hadal_ir::program::{Accumulate, ActFunc, AffineSelect, AluOp, Immediate, Op, Pair, Program, Role};
use hadal_isa::Target;
use hadal_num::Dtype;
use hadal_sim::bind::{self, Array, ArrayDtype};
use hadal_sim::{Fault, Machine, Options, ir_exec};
use support::*;

const T: Target = Target::TRN2;
const F: Dtype = Dtype::Float32;

/// Two inputs `a`, `b` of `[p, f]` and an output `o` of `[p, f]`, with these operators.
fn two([p, f]: [u32; 2], dtype: Dtype, out: Dtype, ops: Vec<Op>) -> Program {
    let size = dtype.bytes() as u32;
    program(
        vec![
            sb("a", 0, p, 0, f * size),
            sb("b", 0, p, 4096, f * size),
            sb("o", 0, p, 8192, f * out.bytes() as u32),
        ],
        ops,
    )
}

fn run(p: &Program, given: &[(String, Array)]) -> Result<Machine, hadal_sim::ExecError> {
    let mut m = Machine::new(T);
    bind::fill(&mut m, p, 0, &given.iter().cloned().collect()).unwrap();
    ir_exec::run(p, T, &mut m, &Options::default(), &mut ())?;
    Ok(m)
}

fn row(loc: u32, dtype: Dtype, n: u64) -> hadal_ir::program::Ap {
    ap(loc, dtype, &[(1, 1), (1, n)])
}

fn tensor_tensor(op: AluOp, a: &[f32], b: &[f32]) -> Vec<f32> {
    let n = a.len();
    let ops = vec![Op::TensorTensor {
        dst: row(2, F, n as u64),
        src0: row(0, F, n as u64),
        src1: row(1, F, n as u64),
        op,
    }];
    let p = two([1, n as u32], F, F, ops);
    let m = run(&p, &[floats("a", &[1, n], a), floats("b", &[1, n], b)]).unwrap();
    values(&m, &p, "o")
}

#[test]
fn float_operations() {
    let (a, b) = ([6.0, -1.5, 0.0, 2.0], [4.0, 3.0, 0.0, f32::NAN]);
    let first3 = |op| tensor_tensor(op, &a[..3], &b[..3]);
    assert_eq!(first3(AluOp::Add), [10.0, 1.5, 0.0]);
    assert_eq!(first3(AluOp::Subtract), [2.0, -4.5, 0.0]);
    assert_eq!(first3(AluOp::Mult), [24.0, -4.5, 0.0]);
    assert_eq!(tensor_tensor(AluOp::Divide, &a[..2], &b[..2]), [1.5, -0.5]);
    assert_eq!(tensor_tensor(AluOp::Max, &a, &b), [6.0, 3.0, 0.0, 2.0]);
    assert_eq!(tensor_tensor(AluOp::Min, &a, &b), [4.0, -1.5, 0.0, 2.0]);
    assert_eq!(tensor_tensor(AluOp::IsGt, &a, &b), [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(tensor_tensor(AluOp::IsEqual, &a, &b), [0.0, 0.0, 1.0, 0.0]);
    assert_eq!(tensor_tensor(AluOp::NotEqual, &a, &b), [1.0, 1.0, 0.0, 1.0]);
    assert_eq!(tensor_tensor(AluOp::LogicalAnd, &a, &b), [1.0, 1.0, 0.0, 1.0]);
    assert_eq!(tensor_tensor(AluOp::LogicalXor, &a, &[0.0; 4]), [1.0, 1.0, 0.0, 1.0]);
    assert_eq!(first3(AluOp::Abs), [6.0, 1.5, 0.0]);
    assert_eq!(tensor_tensor(AluOp::Pow, &[3.0, 2.0], &[2.0, -1.0]), [9.0, 0.5]);
}

#[test]
fn operations_without_a_known_meaning_are_refused_by_name() {
    let ops =
        vec![Op::TensorTensor { dst: row(2, F, 1), src0: row(0, F, 1), src1: row(1, F, 1), op: AluOp::Mod }];
    let e = run(&two([1, 1], F, F, ops), &[]).unwrap_err();
    assert!(e.to_string().contains("ALU operation mod"), "{e}");
    let ops = vec![Op::TensorTensor {
        dst: row(2, F, 1),
        src0: row(0, F, 1),
        src1: row(1, F, 1),
        op: AluOp::BitwiseOr,
    }];
    let e = run(&two([1, 1], F, F, ops), &[]).unwrap_err();
    assert!(matches!(*e.fault, Fault::Type { dtype: Dtype::Float32, .. }));
}

#[test]
fn bit_operations_on_integers() {
    let bitwise = |dtype: Dtype, array: ArrayDtype, op, a: Vec<u8>, b: Vec<u8>| {
        let n = a.len() / dtype.bytes();
        let ops = vec![Op::TensorTensor {
            dst: row(2, dtype, n as u64),
            src0: row(0, dtype, n as u64),
            src1: row(1, dtype, n as u64),
            op,
        }];
        let p = two([1, n as u32], dtype, dtype, ops);
        let m = run(&p, &[bits("a", array, &[1, n], a), bits("b", array, &[1, n], b)]).unwrap();
        bind::dump(&m, &p, "o").unwrap().data
    };
    let u8s = |op, a: &[u8], b: &[u8]| bitwise(Dtype::Uint8, ArrayDtype::U8, op, a.to_vec(), b.to_vec());
    assert_eq!(u8s(AluOp::BitwiseAnd, &[0xF0, 0x0F], &[0x3C, 0x3C]), [0x30, 0x0C]);
    assert_eq!(u8s(AluOp::BitwiseXor, &[0xF0, 0x0F], &[0x3C, 0x3C]), [0xCC, 0x33]);
    assert_eq!(u8s(AluOp::BitwiseNot, &[0xF0], &[0]), [0x0F]);
    assert_eq!(u8s(AluOp::LogicalShiftLeft, &[0x81, 1], &[1, 9]), [0x02, 0]);
    let i8s = |op, a: &[u8], b: &[u8]| bitwise(Dtype::Int8, ArrayDtype::U8, op, a.to_vec(), b.to_vec());
    assert_eq!(i8s(AluOp::ArithShiftRight, &[0x80, 0x40], &[2, 2]), [0xE0, 0x10]);
    assert_eq!(i8s(AluOp::LogicalShiftRight, &[0x80, 0x40], &[2, 2]), [0x20, 0x10]);
}

#[test]
fn tensor_scalar_applies_two_steps_in_float32() {
    let ops = vec![Op::TensorScalar {
        dst: row(2, Dtype::Bfloat16, 3),
        src: row(0, F, 3),
        op0: AluOp::Mult,
        operand0: Immediate::Float(0.5),
        second: Some((AluOp::Add, Immediate::Int(1))),
    }];
    let p = two([1, 3], F, Dtype::Bfloat16, ops);
    let m = run(&p, &[floats("a", &[1, 3], &[2.0, 256.0, -6.0])]).unwrap();
    assert_eq!(values(&m, &p, "o"), [2.0, 129.0, -2.0]);
}

#[test]
fn copies_convert_and_dma_does_not() {
    let copy = |saturate: u8| {
        let ops = vec![Op::TensorCopy { dst: row(2, Dtype::Float8E4m3fn, 4), src: row(0, F, 4) }];
        let mut p = two([1, 4], F, Dtype::Float8E4m3fn, ops);
        p.attrs.fp8_conv_config = [saturate, 0];
        let m = run(&p, &[floats("a", &[1, 4], &[1.0, 464.0, 465.0, -1e9])]).unwrap();
        bind::dump(&m, &p, "o").unwrap().data
    };
    assert_eq!(copy(0), [0x38, 0x7E, 0x7F, 0xFF]);
    assert_eq!(copy(1), [0x38, 0x7E, 0x7E, 0xFE]);
    // A DMA keeps the bits, whatever the types; a copy of one type does too.
    let nan = 0x7F80_0001u32.to_le_bytes();
    let ops = vec![
        Op::DmaCopy { dst: row(2, Dtype::Uint32, 1), src: row(0, F, 1) },
        Op::TensorCopy { dst: row(1, F, 1), src: row(0, F, 1) },
    ];
    let p = two([1, 1], F, Dtype::Uint32, ops);
    let m = run(&p, &[bits("a", ArrayDtype::U32, &[1, 1], nan.to_vec())]).unwrap();
    assert_eq!(bind::dump(&m, &p, "o").unwrap().data, nan);
    assert_eq!(bind::dump(&m, &p, "b").unwrap().data, nan);
    let ops = vec![Op::DmaCopy { dst: row(2, Dtype::Bfloat16, 2), src: row(0, F, 2) }];
    let e = run(&two([1, 2], F, Dtype::Bfloat16, ops), &[]).unwrap_err();
    assert!(matches!(*e.fault, Fault::Shape { what: "DMA source", .. }));
}

#[test]
fn dma_walks_dram_row_major() {
    // Transposed read of a [2, 3] tensor: partition p takes column p.
    let p = program(
        vec![
            dram("h", Role::Input, Dtype::Uint8, &[2, 3]),
            sb("s", 0, 3, 0, 2),
            dram("out", Role::Output, Dtype::Uint8, &[3, 2]),
        ],
        vec![
            Op::DmaCopy {
                dst: ap(1, Dtype::Uint8, &[(1, 3), (1, 2)]),
                src: ap(0, Dtype::Uint8, &[(1, 3), (3, 2)]),
            },
            Op::DmaCopy {
                dst: ap(2, Dtype::Uint8, &[(2, 3), (1, 2)]),
                src: ap(1, Dtype::Uint8, &[(1, 3), (1, 2)]),
            },
        ],
    );
    let given = [bits("h", ArrayDtype::U8, &[2, 3], vec![1, 2, 3, 4, 5, 6])];
    let (p, m) = both(p, T, Options::default(), &given);
    assert_eq!(bind::dump(&m, &p, "out").unwrap().data, [1, 4, 2, 5, 3, 6]);
    assert_eq!(bind::dump(&m, &p, "out").unwrap().shape, [3, 2]);
}

#[test]
fn operands_are_read_before_the_result_is_written() {
    // Shift a row by one element within itself.
    let mut dst = row(0, F, 3);
    dst.offset = 4;
    let p = two([1, 4], F, F, vec![Op::TensorCopy { dst, src: row(0, F, 3) }]);
    let m = run(&p, &[floats("a", &[1, 4], &[1.0, 2.0, 3.0, 4.0])]).unwrap();
    assert_eq!(values(&m, &p, "a"), [1.0, 1.0, 2.0, 3.0]);
}

#[test]
fn memset_of_every_kind() {
    let set = |dtype: Dtype, value| {
        let p = two([1, 2], dtype, dtype, vec![Op::Memset { dst: row(2, dtype, 2), value }]);
        bind::dump(&run(&p, &[]).unwrap(), &p, "o").unwrap().data
    };
    assert_eq!(set(Dtype::Int16, Immediate::Int(-2)), [0xFE, 0xFF, 0xFE, 0xFF]);
    assert_eq!(set(Dtype::Uint8, Immediate::Int(300)), [0xFF, 0xFF]);
    assert_eq!(set(Dtype::Uint32, Immediate::Int(0x0102_0305)), [5, 3, 2, 1, 5, 3, 2, 1]);
    assert_eq!(set(Dtype::Float16, Immediate::Float(1.0)), [0x00, 0x3C, 0x00, 0x3C]);
    assert_eq!(set(Dtype::Uint8, Immediate::Float(2.5)), [2, 2]);
}

/// A lower triangle: keep where p - f >= 0.
#[test]
fn affine_select_masks() {
    let ops = vec![Op::AffineSelect(Box::new(AffineSelect {
        dst: ap(2, F, &[(1, 3), (1, 3)]),
        src: ap(0, F, &[(1, 3), (1, 3)]),
        on_false: Immediate::Float(-9.0),
        cmp: AluOp::IsGe,
        base: 0,
        channel_multiplier: 1,
        pattern: vec![Pair::new(-1, 3)],
    }))];
    let p = two([3, 3], F, F, ops);
    let a: Vec<f32> = (1..10).map(|v| v as f32).collect();
    let m = run(&p, &[floats("a", &[3, 3], &a)]).unwrap();
    assert_eq!(values(&m, &p, "o"), [1.0, -9.0, -9.0, 4.0, 5.0, -9.0, 7.0, 8.0, 9.0]);
}

#[test]
fn block_transposes() {
    let u = Dtype::Uint16;
    let small = program(
        vec![sb("a", 0, 2, 0, 6), sb("o", 0, 3, 64, 4)],
        vec![Op::Transpose { dst: ap(1, u, &[(1, 3), (1, 2)]), src: ap(0, u, &[(1, 2), (1, 3)]) }],
    );
    let data: Vec<u8> = (1..7u16).flat_map(u16::to_le_bytes).collect();
    let m = run(&small, &[bits("a", ArrayDtype::U16, &[2, 3], data)]).unwrap();
    let want: Vec<u8> = [1u16, 4, 2, 5, 3, 6].iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_eq!(bind::dump(&m, &small, "o").unwrap().data, want);
    // 64 x 96: element (p, f) of a block goes to (f, p) of the same block.
    let large = program(
        vec![sb("a", 0, 64, 0, 192), sb("o", 0, 64, 256, 192)],
        vec![Op::Transpose { dst: ap(1, u, &[(1, 64), (1, 96)]), src: ap(0, u, &[(1, 64), (1, 96)]) }],
    );
    let data: Vec<u8> = (0..64 * 96u16).flat_map(u16::to_le_bytes).collect();
    let m = run(&large, &[bits("a", ArrayDtype::U16, &[64, 96], data)]).unwrap();
    let got = bind::dump(&m, &large, "o").unwrap().data;
    for (p, f) in [(0usize, 0usize), (0, 1), (33, 70), (63, 95), (40, 31)] {
        let (to_p, to_f) = (p / 32 * 32 + f % 32, f / 32 * 32 + p % 32);
        let at = (to_p * 96 + to_f) * 2;
        assert_eq!(u16::from_le_bytes([got[at], got[at + 1]]), (p * 96 + f) as u16);
    }
    let uneven = program(
        vec![sb("a", 0, 40, 0, 80), sb("o", 0, 40, 256, 80)],
        vec![Op::Transpose { dst: ap(1, u, &[(1, 40), (1, 40)]), src: ap(0, u, &[(1, 40), (1, 40)]) }],
    );
    assert!(run(&uneven, &[]).is_err());
}

#[test]
fn reductions_fold_the_inner_dimensions() {
    let reduce = |op, axes, out: u64| {
        let p = program(
            vec![sb("a", 0, 2, 0, 24), sb("o", 0, 2, 64, out as u32 * 4)],
            vec![Op::TensorReduce {
                dst: ap(1, F, &[(1, 2), (1, out)]),
                src: ap(0, F, &[(1, 2), (3, 2), (1, 3)]),
                op,
                axes,
            }],
        );
        let a: Vec<f32> = (1..13).map(|v| v as f32).collect();
        values(&run(&p, &[floats("a", &[2, 6], &a)]).unwrap(), &p, "o")
    };
    assert_eq!(reduce(AluOp::Add, 1, 2), [6.0, 15.0, 24.0, 33.0]);
    assert_eq!(reduce(AluOp::Max, 2, 1), [6.0, 12.0]);
    assert_eq!(reduce(AluOp::Mult, 1, 2), [6.0, 120.0, 504.0, 1320.0]);
}

fn activation(func: ActFunc, x: &[f32], scale: f32, bias: f32) -> Vec<f32> {
    let n = x.len();
    let ops = vec![Op::Activation {
        dst: row(2, F, n as u64),
        src: row(0, F, n as u64),
        func,
        scale,
        bias,
        accumulate: None,
    }];
    let p = two([1, n as u32], F, F, ops);
    values(&run(&p, &[floats("a", &[1, n], x)]).unwrap(), &p, "o")
}

#[test]
fn activation_functions() {
    assert_eq!(activation(ActFunc::Copy, &[1.0, -2.0], 3.0, 0.5), [3.5, -5.5]);
    let relu = activation(ActFunc::Relu, &[1.0, -2.0, f32::NAN], 1.0, 0.0);
    assert_eq!(&relu[..2], [1.0, 0.0]);
    assert!(relu[2].is_nan());
    assert_eq!(activation(ActFunc::Square, &[3.0], 1.0, 0.0), [9.0]);
    assert_eq!(activation(ActFunc::Sqrt, &[2.0], 1.0, 0.0), [std::f32::consts::SQRT_2]);
    assert_eq!(activation(ActFunc::Rsqrt, &[4.0], 1.0, 0.0), [0.5]);
    assert_eq!(activation(ActFunc::Reciprocal, &[-4.0], 1.0, 0.0), [-0.25]);
    assert_eq!(activation(ActFunc::Exp, &[0.0, 1.0], 1.0, 0.0), [1.0, std::f32::consts::E]);
    assert_eq!(activation(ActFunc::Sigmoid, &[0.0, 1e9, -1e9], 1.0, 0.0), [0.5, 1.0, 0.0]);
    // Values of a table of special functions, to seven digits.
    let near = |got: f32, want: f32| assert!((got - want).abs() <= want.abs() * 1.2e-7, "{got} {want}");
    near(activation(ActFunc::Tanh, &[0.5], 1.0, 0.0)[0], 0.462_117_16);
    near(activation(ActFunc::Gelu, &[1.0], 1.0, 0.0)[0], 0.841_344_8);
    near(activation(ActFunc::Gelu, &[-5.0], 1.0, 0.0)[0], -1.433_257_9e-6);
}

#[test]
fn activation_accumulator() {
    let act = |command, load| Op::Activation {
        dst: ap(2, F, &[(1, 2), (1, 2)]),
        src: ap(0, F, &[(1, 2), (1, 2)]),
        func: ActFunc::Copy,
        scale: 1.0,
        bias: 0.0,
        accumulate: Some(Accumulate { command, op: AluOp::Add, load }),
    };
    let read = Op::ReadActivationAccumulator { dst: ap(1, F, &[(1, 2), (1, 1)]) };
    let sums = |ops: Vec<Op>| {
        let mut ops = ops;
        ops.push(read.clone());
        let p = two([2, 2], F, F, ops);
        let m = run(&p, &[floats("a", &[2, 2], &[1.0, 2.0, 10.0, 20.0])]).unwrap();
        let v = values(&m, &p, "b");
        [v[0], v[2]]
    };
    // The rows sum to 3 and 30. `b` is written in its first column only; the rest reads as stored.
    assert_eq!(sums(vec![act(4, None)]), [3.0, 30.0]);
    assert_eq!(sums(vec![act(4, None), act(2, None)]), [6.0, 60.0]);
    assert_eq!(sums(vec![act(2, None), act(1, None)]), [0.0, 0.0]);
    assert_eq!(sums(vec![act(3, Some(100.0)), act(0, None)]), [103.0, 130.0]);
    // A read consumes: the next accumulation starts from zero.
    assert_eq!(sums(vec![act(4, None), read.clone(), act(2, None)]), [3.0, 30.0]);
    let p = two([2, 2], F, F, vec![act(5, None)]);
    let e = run(&p, &[]).unwrap_err();
    assert!(e.to_string().contains("must provide an immediate value to load"), "{e}");
}

/// Everything above runs the same from a stream, where these operators are host items.
#[test]
fn host_items_of_a_stream() {
    let ops = vec![
        Op::Memset { dst: row(2, F, 2), value: Immediate::Float(4.0) },
        Op::TensorTensor { dst: row(2, F, 2), src0: row(2, F, 2), src1: row(0, F, 2), op: AluOp::Mult },
    ];
    let p = two([1, 2], F, F, ops);
    let (p, m) = both(p, T, Options::default(), &[floats("a", &[1, 2], &[0.5, 3.0])]);
    assert_eq!(values(&m, &p, "o"), [2.0, 12.0]);
}
