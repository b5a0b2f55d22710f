//! The array's transpose mode.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use hadal_ir::program::{Op, Program};
use hadal_isa::Target;
use hadal_num::Dtype;
use hadal_sim::bind::{self, ArrayDtype};
use hadal_sim::{Fault, Machine, Options, Uninit, ir_exec};
use support::*;

/// Transposes `[k, m]` of `dtype` through an identity of the same type.
fn transpose(dtype: Dtype, [k, m]: [u64; 2], dst: Dtype) -> Program {
    let size = dtype.bytes() as u32;
    let mut mm = matmult(
        ap(0, dtype, &[(1, k), (1, k)]),
        ap(1, dtype, &[(1, k), (1, m)]),
        ap(2, dst, &[(1, m), (1, k)]),
    );
    mm.is_transpose = true;
    program(
        vec![
            sb("id", 0, k as u32, 0, k as u32 * size),
            sb("w", 0, k as u32, 4096, m as u32 * size),
            psum("o", 0, m as u32, 0, 0, k as u32 * dst.bytes() as u32),
        ],
        vec![Op::Matmult(Box::new(mm))],
    )
}

fn identity(k: usize, one: u16) -> Vec<u8> {
    let code = |i: usize| if i / k == i % k { one } else { 0 };
    (0..k * k).flat_map(|i| code(i).to_le_bytes()).collect()
}

#[test]
fn sixteen_bit_patterns_survive() {
    // NaN payloads, infinities, both zeros, subnormals: [4, 3] of bfloat16 codes.
    let codes: [u16; 12] =
        [0x7FC1, 0xFF81, 0x7F80, 0xFF80, 0x0000, 0x8000, 0x0001, 0x807F, 0x3F80, 0x7F7F, 0x7FFF, 0xFFFF];
    let w: Vec<u8> = codes.iter().flat_map(|c| c.to_le_bytes()).collect();
    let want: Vec<u8> = (0..12).flat_map(|i| codes[(i % 4) * 3 + i / 4].to_le_bytes()).collect();
    for target in [Target::TRN2, Target::TRN3] {
        let given = [
            bits("id", ArrayDtype::U16, &[4, 4], identity(4, 0x3F80)),
            bits("w", ArrayDtype::U16, &[4, 3], w.clone()),
        ];
        let (p, m) =
            both(transpose(Dtype::Bfloat16, [4, 3], Dtype::Bfloat16), target, Options::default(), &given);
        assert_eq!(bind::dump(&m, &p, "o").unwrap().data, want);
    }
}

#[test]
fn fp8_drains_into_sixteen_bits() {
    let w: Vec<u8> = vec![0x7D, 0xFC, 0x00, 0x80, 0x3C, 0x01];
    let id: Vec<u8> = (0..9).map(|i| if i / 3 == i % 3 { 0x3C } else { 0 }).collect();
    let given = [bits("id", ArrayDtype::U8, &[3, 3], id), bits("w", ArrayDtype::U8, &[3, 2], w)];
    let p = transpose(Dtype::Float8E5m2, [3, 2], Dtype::Uint16);
    let (p, m) = both(p, Target::TRN2, Options::default(), &given);
    assert_eq!(bind::dump(&m, &p, "o").unwrap().data, [0x7D, 0, 0x00, 0, 0x3C, 0, 0xFC, 0, 0x80, 0, 0x01, 0]);
}

#[test]
fn float32_patterns_survive_both_passes() {
    let codes: [u32; 4] = [0x7F80_0001, 0xFFC0_1234, 0x8000_0000, 0x0000_0001];
    let w: Vec<u8> = codes.iter().flat_map(|c| c.to_le_bytes()).collect();
    let id = bytes_of(&[1.0, 0.0, 0.0, 1.0]);
    let given = [bits("id", ArrayDtype::U32, &[2, 2], id), bits("w", ArrayDtype::U32, &[2, 2], w)];
    let want: Vec<u8> =
        [codes[0], codes[2], codes[1], codes[3]].iter().flat_map(|c| c.to_le_bytes()).collect();
    for target in [Target::TRN2, "level:41".parse().unwrap()] {
        let p = transpose(Dtype::Float32, [2, 2], Dtype::Float32);
        let (p, m) = both(p, target, Options::default(), &given);
        assert_eq!(bind::dump(&m, &p, "o").unwrap().data, want, "{target}");
    }
}

/// Writing again replaces, and a flag byte that asks to add is refused.
#[test]
fn a_transpose_overwrites() {
    let mut p = transpose(Dtype::Float16, [1, 1], Dtype::Float16);
    let again = p.instrs[0].op.clone();
    p.instrs.push(instr("again", again));
    let given = [floats("id", &[1, 1], &[1.0]), floats("w", &[1, 1], &[5.0])];
    let (mut p, mut m) = both(p, Target::TRN2, Options::default(), &given);
    assert_eq!(values(&m, &p, "o"), [5.0]);
    if let Op::Matmult(mm) = &mut p.instrs[1].op {
        mm.flags = Some(hadal_isa::ACCUMULATE);
    }
    let e = ir_exec::run(&p, Target::TRN2, &mut m, &Options::default(), &mut ()).unwrap_err();
    assert!(e.to_string().contains("a transpose does not accumulate"), "{e}");
}

/// A permutation moves rows; a column of zeros gives zeros.
#[test]
fn the_moving_operand_selects() {
    let w = [0x4000u16, 0x4200, 0x4400].map(u16::to_le_bytes).concat();
    // Columns select rows 2, 0 and none.
    let id = [0u16, 0x3C00, 0, 0, 0, 0, 0x3C00, 0, 0].map(u16::to_le_bytes).concat();
    let given = [bits("id", ArrayDtype::U16, &[3, 3], id), bits("w", ArrayDtype::U16, &[3, 1], w)];
    let p = transpose(Dtype::Float16, [3, 1], Dtype::Float16);
    let (p, m) = both(p, Target::TRN2, Options::default(), &given);
    assert_eq!(values(&m, &p, "o"), [4.0, 2.0, 0.0]);
}

#[test]
fn two_nonzeros_in_a_column_are_refused() {
    let p = transpose(Dtype::Float16, [2, 1], Dtype::Float16);
    let mut m = Machine::new(Target::TRN2);
    let given = [floats("id", &[2, 2], &[1.0, 0.0, 0.0, 1.0]), floats("w", &[2, 1], &[5.0, 6.0])];
    bind::fill(&mut m, &p, 0, &given.into_iter().collect()).unwrap();
    ir_exec::run(&p, Target::TRN2, &mut m, &Options::default(), &mut ()).unwrap();
    m.sbuf.put(1, 0, &0x3C00u16.to_le_bytes());
    let e = ir_exec::run(&p, Target::TRN2, &mut m, &Options::default(), &mut ()).unwrap_err();
    assert_eq!(*e.fault, Fault::TransposeColumn { column: 0, first: 0, second: 1 });
    assert_eq!((e.index, e.operand), (0, Some("ifmap")));
    // gen2 has no such mode: an ordinary product, where the two rows add up.
    let p = transpose(Dtype::Float16, [2, 1], Dtype::Float32);
    let options = Options { uninit: Uninit::Zero, ..Options::default() };
    let mut n = Machine::new(Target::TRN1);
    for (partition, code) in [(0, 0x4500u16), (1, 0x4600)] {
        n.sbuf.put(partition, 0, &0x3C00u16.to_le_bytes());
        n.sbuf.put(partition, 4096, &code.to_le_bytes());
    }
    ir_exec::run(&p, Target::TRN1, &mut n, &options, &mut ()).unwrap();
    assert_eq!(values(&n, &p, "o"), [11.0, 0.0]);
}
