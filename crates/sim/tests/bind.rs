//! Inputs: what they are, and how arrays and seeds fill them.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use hadal_ir::program::{Immediate, Module, Op, Program, Role};
use hadal_isa::Target;
use hadal_num::Dtype;
use hadal_sim::bind::{self, Array, ArrayDtype, BindError, InputRole};
use hadal_sim::{Machine, compare};
use support::*;

fn sample() -> Program {
    program(
        vec![
            dram("hx", Role::Input, Dtype::Bfloat16, &[2, 3]),
            sb("t", 0, 2, 0, 10),
            sb("lut", 0, 2, 64, 10),
            dram("out", Role::Output, Dtype::Bfloat16, &[2, 3]),
            sb("unused", 0, 2, 128, 4),
        ],
        vec![
            Op::DmaCopy {
                dst: ap(1, Dtype::Bfloat16, &[(1, 2), (1, 3)]),
                src: ap(0, Dtype::Bfloat16, &[(3, 2), (1, 3)]),
            },
            Op::TensorCopy {
                dst: ap(1, Dtype::Bfloat16, &[(1, 2), (1, 3)]),
                src: ap(2, Dtype::Float16, &[(1, 2), (1, 3)]),
            },
        ],
    )
}

fn filled(p: &Program, seed: u64, given: &[(String, Array)]) -> Result<Machine, BindError> {
    let mut m = Machine::new(Target::TRN2);
    bind::fill(&mut m, p, seed, &given.iter().cloned().collect())?;
    Ok(m)
}

#[test]
fn inputs_are_arguments_and_what_nothing_writes() {
    let got = bind::inputs(&sample());
    let rows: Vec<_> = got.iter().map(|i| (i.name.as_str(), i.dtype, i.shape.clone(), i.role)).collect();
    assert_eq!(
        rows,
        [
            ("hx", Dtype::Bfloat16, vec![2, 3], InputRole::Argument),
            ("lut", Dtype::Float16, vec![2, 5], InputRole::Implicit),
        ]
    );
}

#[test]
fn inputs_that_share_bytes_are_found() {
    let read = |loc| Op::TensorCopy {
        dst: ap(5, Dtype::Uint8, &[(1, 2), (1, 2)]),
        src: ap(loc, Dtype::Uint8, &[(1, 2), (1, 2)]),
    };
    let p = program(
        vec![
            sb("a", 0, 4, 0, 16),
            sb("beside", 0, 4, 16, 8),
            sb("below", 4, 4, 0, 16),
            sb("b", 3, 2, 15, 1),
            psum("elsewhere", 0, 4, 0, 0, 16),
            sb("out", 0, 4, 64, 16),
        ],
        (0..5).map(read).collect(),
    );
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(bind::overlapping(&p, &bind::inputs(&p)), [pair("a", "b"), pair("below", "b")]);
}

#[test]
fn float_arrays_are_rounded_and_unsigned_ones_are_bits() {
    let p = sample();
    let x = [1.0, 1.003_906_25, 1.011_718_75, -3.0, 1e39, 0.0];
    let f64s = Array {
        dtype: ArrayDtype::F64,
        shape: vec![2, 3],
        data: x.iter().flat_map(|v: &f64| v.to_le_bytes()).collect(),
    };
    let m = filled(&p, 0, &[("hx".into(), f64s)]).unwrap();
    // 1 + 2^-8 ties to even (1), 1 + 3 * 2^-8 ties to even (1 + 2^-6), 1e39 overflows.
    assert_eq!(values(&m, &p, "hx"), [1.0, 1.0, 1.015_625, -3.0, f32::INFINITY, 0.0]);
    let codes: Vec<u8> = [0x7FC1u16, 1, 2, 3, 4, 5].iter().flat_map(|c| c.to_le_bytes()).collect();
    let m = filled(&p, 0, &[bits("hx", ArrayDtype::U16, &[2, 3], codes.clone())]).unwrap();
    assert_eq!(bind::dump(&m, &p, "hx").unwrap().data, codes);
}

#[test]
fn what_does_not_fit_is_refused() {
    let p = sample();
    let fail = |name: &str, array: Array| filled(&p, 0, &[(name.into(), array)]).unwrap_err();
    let f = |shape: &[usize]| Array::from_f32(shape.to_vec(), &vec![0.0; shape.iter().product()]);
    assert_eq!(
        fail("nope", f(&[1])).to_string(),
        "X-401: the program has no location `nope`; it has hx, t, lut, out, unused"
    );
    assert_eq!(
        fail("hx", f(&[3, 2])).to_string(),
        "X-402: `hx` has shape [2, 3], the array given has [3, 2]; reshape the array"
    );
    let (_, wrong) = bits("hx", ArrayDtype::U8, &[2, 3], vec![0; 6]);
    assert_eq!(
        fail("hx", wrong).to_string(),
        "X-403: `hx` holds bfloat16; an array of uint8 is neither float nor an unsigned array of its container's size"
    );
    let short = Array { data: vec![0; 4], ..f(&[2, 3]) };
    assert_eq!(fail("hx", short).code(), "X-404");
}

#[test]
fn seeds_fill_each_location_by_its_name() {
    let p = sample();
    let a = filled(&p, 1, &[]).unwrap();
    assert_eq!(compare(&a, &filled(&p, 1, &[]).unwrap()), None);
    assert!(compare(&a, &filled(&p, 2, &[]).unwrap()).is_some());
    // The stream of `lut` does not depend on the other inputs.
    let mut fewer = p.clone();
    fewer.instrs.remove(0);
    let b = filled(&fewer, 1, &[]).unwrap();
    assert_eq!(bind::dump(&a, &p, "lut"), bind::dump(&b, &fewer, "lut"));
    // Values are standard normal, rounded to the type: all within six standard deviations, not all equal.
    let v = values(&a, &p, "hx");
    assert!(v.iter().all(|x| x.abs() < 6.0) && v.iter().any(|x| *x != v[0]));
    assert_eq!(bind::unwritten(&a, &p, "lut"), Ok(0));
    assert_eq!(bind::unwritten(&a, &p, "t"), Ok(20));
}

/// The very values, so that another machine or a later version gives the same: first draws of two
/// locations, computed by an independent ChaCha8 and Box-Muller in double precision (see the script in
/// `tests/data/sim/normals.py`).
#[test]
fn seeded_values_are_pinned() {
    let text = std::fs::read_to_string(data("sim/normals.txt")).unwrap();
    let mut checked = 0;
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let mut words = line.split_whitespace();
        let (seed, name) = (words.next().unwrap().parse().unwrap(), words.next().unwrap());
        let want: Vec<u32> = words.map(|w| u32::from_str_radix(w, 16).unwrap()).collect();
        let n = want.len() as u64;
        let p = program(
            vec![dram(name, Role::Input, Dtype::Float32, &[n])],
            vec![Op::DmaCopy {
                dst: ap(0, Dtype::Float32, &[(1, n)]),
                src: ap(0, Dtype::Float32, &[(1, n)]),
            }],
        );
        let m = filled(&p, seed, &[]).unwrap();
        let got: Vec<u32> = values(&m, &p, name).iter().map(|v| v.to_bits()).collect();
        assert_eq!(got, want, "seed {seed}, {name}");
        checked += 1;
    }
    assert_eq!(checked, 3);
}

#[test]
fn x4_containers_take_floats_lane_by_lane() {
    let x4 = Dtype::Float4E2m1fnX4;
    let p = program(
        vec![dram("q", Role::Input, x4, &[1, 1]), dram("s", Role::Input, Dtype::Float8E8m0fnu, &[1, 1])],
        vec![],
    );
    let given = [floats("q", &[1, 4], &[0.5, 1.0, 1.5, 2.0]), floats("s", &[1, 1], &[8.0])];
    let m = filled(&p, 0, &given).unwrap();
    assert_eq!(bind::dump(&m, &p, "q").unwrap().data, 0x4321u16.to_le_bytes());
    assert_eq!(bind::dump(&m, &p, "s").unwrap().data, [130]);
    let wide = bind::widen(&bind::dump(&m, &p, "q").unwrap(), x4).unwrap();
    assert_eq!((wide.shape.clone(), wide.to_f32().unwrap()), (vec![1, 4], vec![0.5, 1.0, 1.5, 2.0]));
}

/// What core 0 writes is no input of core 1; what both read is filled once.
#[test]
fn inputs_of_several_cores() {
    let copy = |dst: u32, src: u32| Op::DmaCopy {
        dst: ap(dst, Dtype::Uint8, &[(1, 4)]),
        src: ap(src, Dtype::Uint8, &[(1, 4)]),
    };
    let h = |name, role| dram(name, role, Dtype::Uint8, &[4]);
    let locs = || {
        vec![h("in", Role::Input), h("mid", Role::Internal), h("tab", Role::Internal), h("o", Role::Output)]
    };
    let first = program(locs(), vec![copy(1, 0)]);
    let second = program(
        locs(),
        vec![
            copy(3, 1),
            copy(3, 2),
            Op::Memset { dst: ap(3, Dtype::Uint8, &[(1, 4)]), value: Immediate::Int(1) },
        ],
    );
    let module = Module { name: "m".into(), cores: vec![first, second], notes: vec![] };
    let names: Vec<Vec<String>> = bind::module_inputs(&module)
        .into_iter()
        .map(|core| core.into_iter().map(|i| i.name).collect())
        .collect();
    assert_eq!(names, [vec!["in".to_owned()], vec!["tab".to_owned()]]);
}

/// Tags below 4 * ratio, scales near 1 in uint8, an identity along the transposed operand; through copies.
#[test]
fn seeded_inputs_suit_their_use() {
    use hadal_ir::program::{MatmultMx, MatmultSparse};
    let (b, u) = (Dtype::Bfloat16, Dtype::Uint8);
    for ratio in [1u32, 2, 4] {
        let p = program(
            vec![
                sb("w", 0, 128, 0, 16),
                sb("x", 0, 128, 64, 16 * ratio),
                dram("tags", Role::Input, Dtype::Uint16, &[128, 2]),
                sb("t", 0, 128, 512, 4),
                psum("o", 0, 8, 0, 0, 32),
            ],
            vec![
                Op::DmaCopy {
                    dst: ap(3, Dtype::Uint16, &[(1, 128), (1, 2)]),
                    src: ap(2, Dtype::Uint16, &[(2, 128), (1, 2)]),
                },
                Op::MatmultSparse(Box::new(MatmultSparse {
                    ifmap: ap(1, b, &[(1, 128), (8, u64::from(ratio)), (1, 8)]),
                    weights: ap(0, b, &[(1, 128), (1, 8)]),
                    tags: ap(3, Dtype::Uint16, &[(1, 128), (1, 2)]),
                    out: ap(4, Dtype::Float32, &[(1, 8), (1, 8)]),
                    compress_ratio: ratio,
                })),
            ],
        );
        let m = filled(&p, 3, &[]).unwrap();
        let nibbles: Vec<u32> = bind::dump(&m, &p, "tags")
            .unwrap()
            .data
            .iter()
            .flat_map(|b| [b & 15, b >> 4])
            .map(u32::from)
            .collect();
        assert!(nibbles.iter().all(|t| *t < 4 * ratio), "ratio {ratio}");
        // 1024 draws miss one of at most 16 values with a probability below 1e-27.
        assert!((0..4 * ratio).all(|t| nibbles.contains(&t)), "ratio {ratio}");
    }

    let x4 = Dtype::Float8E4m3fnX4;
    let scale = |loc| ap(loc, u, &[(1, 4), (1, 8)]);
    let p = program(
        vec![
            sb("w", 0, 32, 0, 32),
            sb("x", 0, 32, 64, 32),
            sb("ws", 0, 32, 128, 8),
            dram("scales", Role::Input, u, &[4, 8]),
            sb("xs", 0, 32, 192, 8),
            dram("codes", Role::Input, Dtype::Uint32, &[32, 8]),
            psum("o", 0, 8, 0, 0, 32),
        ],
        vec![
            Op::DmaCopy { dst: scale(4), src: ap(3, u, &[(8, 4), (1, 8)]) },
            Op::DmaCopy { dst: ap(1, x4, &[(1, 32), (1, 8)]), src: ap(5, x4, &[(8, 32), (1, 8)]) },
            Op::MatmultMx(Box::new(MatmultMx {
                ifmap: ap(1, x4, &[(1, 32), (1, 8)]),
                weights: ap(0, x4, &[(1, 32), (1, 8)]),
                ifmap_scale: scale(4),
                weights_scale: scale(2),
                out: ap(6, Dtype::Float32, &[(1, 8), (1, 8)]),
                accumulate_flags: None,
                psum_zero_region: None,
                tile_position: None,
                tile_size: None,
            })),
        ],
    );
    let m = filled(&p, 3, &[]).unwrap();
    for name in ["ws", "scales"] {
        let codes = bind::dump(&m, &p, name).unwrap().data;
        assert!(codes.iter().all(|c| (124..=131).contains(c)), "{name}: {codes:?}");
    }
    // The integers of `codes` are read as FP8 only: normal values, which have nonzero high lanes.
    let codes = bind::dump(&m, &p, "codes").unwrap();
    let values = bind::widen(&codes, x4).unwrap().to_f32().unwrap();
    assert!(values.iter().all(|v| v.abs() < 6.0) && values.iter().filter(|v| v.abs() > 0.25).count() > 512);

    // A transpose of rows 32..64: the ones lie on the diagonal of the operand, two columns into the tile.
    let mut mm =
        matmult(ap(0, b, &[(1, 32), (1, 32)]), ap(1, b, &[(1, 32), (1, 8)]), ap(2, b, &[(1, 8), (1, 32)]));
    (mm.is_transpose, mm.ifmap.partition, mm.ifmap.offset, mm.weights.partition) = (true, 32, 4, 32);
    let p = program(
        vec![sb("x", 0, 64, 0, 72), sb("w", 0, 64, 128, 16), psum("o", 0, 8, 0, 0, 64)],
        vec![Op::Matmult(Box::new(mm))],
    );
    let m = filled(&p, 3, &[]).unwrap();
    for (i, v) in support::values(&m, &p, "x").iter().enumerate() {
        let (row, col) = (i / 36, i % 36);
        assert_eq!(*v, if row >= 32 && col >= 2 && col - 2 == row - 32 { 1.0 } else { 0.0 }, "{row} {col}");
    }
}
