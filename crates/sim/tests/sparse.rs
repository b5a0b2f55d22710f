//! The structured-sparse product, against the dense product of the expanded weights.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use hadal_ir::program::{MatmultSparse, Op, Program};
use hadal_isa::Target;
use hadal_num::Dtype;
use hadal_sim::bind::{self, Array, ArrayDtype};
use hadal_sim::{Fault, Machine, Options, ir_exec};
use support::*;

const T: Target = Target::TRN2;

fn sparse(dtype: Dtype, ratio: u32, m: u64, n: u64) -> Program {
    let size = dtype.bytes() as u32;
    let moving: Vec<(i64, u64)> = match ratio {
        1 => vec![(1, 128), (1, n)],
        r => vec![(1, 128), (n as i64, u64::from(r)), (1, n)],
    };
    program(
        vec![
            sb("w", 0, 128, 0, m as u32 * size),
            sb("x", 0, 128, 1024, ratio * n as u32 * size),
            sb("t", 0, 128, 16384, m as u32 / 2),
            psum("o", 0, m as u32, 4, 0, n as u32 * 4),
        ],
        vec![Op::MatmultSparse(Box::new(MatmultSparse {
            ifmap: ap(1, dtype, &moving),
            weights: ap(0, dtype, &[(1, 128), (1, m)]),
            tags: ap(2, Dtype::Uint16, &[(1, 128), (1, m / 4)]),
            out: ap(3, Dtype::Float32, &[(1, m), (1, n)]),
            compress_ratio: ratio,
        }))],
    )
}

/// Tags from a small generator, below 4 * ratio, packed four to a word.
fn tags(ratio: usize, m: usize) -> (Vec<usize>, Array) {
    let mut state = 12345u32;
    let list: Vec<usize> = (0..128 * m)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as usize % (4 * ratio)
        })
        .collect();
    let words: Vec<u8> = list
        .chunks(4)
        .flat_map(|c| (c[0] | c[1] << 4 | c[2] << 8 | c[3] << 12).to_le_bytes().into_iter().take(2))
        .collect();
    (list, Array { dtype: ArrayDtype::U16, shape: vec![128, m / 4], data: words })
}

#[test]
fn equals_a_plain_loop_over_the_tags() {
    let (m, n) = (8usize, 24usize);
    for dtype in [Dtype::Bfloat16, Dtype::Float32] {
        for ratio in [1usize, 2, 4] {
            let (list, packed) = tags(ratio, m);
            let p = sparse(dtype, ratio as u32, m as u64, n as u64);
            let (after, machine) = both(p, T, Options::default(), &[("t".to_owned(), packed)]);
            let (w, x) = (values(&machine, &after, "w"), values(&machine, &after, "x"));
            let mut want = Vec::new();
            for i in 0..m {
                for j in 0..n {
                    let mut sum = 0f32;
                    for p in 0..128 {
                        let t = list[p * m + i];
                        sum += w[p * m + i] * x[((p / 4 * 4 + t / ratio) * ratio + t % ratio) * n + j];
                    }
                    want.push(sum);
                }
            }
            assert_eq!(bind::dump(&machine, &after, "o").unwrap().data, bytes_of(&want), "{dtype} {ratio}");
        }
    }
}

#[test]
fn a_tag_past_its_group_is_refused() {
    let p = sparse(Dtype::Bfloat16, 2, 4, 4);
    let mut m = Machine::new(T);
    let mut words = vec![0u8; 256];
    words[2 * 5] = 0x80;
    let given = [bits("t", ArrayDtype::U16, &[128, 1], words)];
    bind::fill(&mut m, &p, 0, &given.into_iter().collect()).unwrap();
    let e = ir_exec::run(&p, T, &mut m, &Options::default(), &mut ()).unwrap_err();
    assert_eq!(*e.fault, Fault::SparseTag { tag: 8, row: 5, column: 1, ratio: 2 });
}
