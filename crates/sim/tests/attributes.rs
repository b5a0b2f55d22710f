//! Program attributes, and reads the program may not make.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use hadal_ir::program::{Calc, CalcFlags, Op, Program};
use hadal_isa::Target;
use hadal_num::Dtype;
use hadal_sim::{Fault, Machine, Options, Uninit, bind, ir_exec};
use support::*;

const T: Target = Target::TRN2;
const F: Dtype = Dtype::Float32;

/// Two matmuls 2 * 3 into one PSUM element, the second with START as well.
fn twice(attribute: Option<bool>) -> Program {
    let start = Calc::Explicit(CalcFlags { start: true, stop: true, ..CalcFlags::default() });
    let mut mm =
        matmult(ap(0, F, &[(1, 1), (1, 1)]), ap(1, F, &[(1, 1), (1, 1)]), ap(2, F, &[(1, 1), (1, 1)]));
    mm.calc = start;
    let op = Op::Matmult(Box::new(mm));
    let mut p = program(
        vec![sb("x", 0, 1, 0, 4), sb("w", 0, 1, 64, 4), psum("o", 0, 1, 0, 0, 4)],
        vec![op.clone(), op],
    );
    p.attrs.auto_psum_accumulate = attribute;
    p
}

#[test]
fn auto_psum_accumulate_overrides_the_flags() {
    let given = [floats("x", &[1, 1], &[3.0]), floats("w", &[1, 1], &[2.0])];
    for (attribute, want) in [(None, 6.0), (Some(true), 12.0), (Some(false), 6.0)] {
        let (p, m) = both(twice(attribute), T, Options::default(), &given);
        assert_eq!(values(&m, &p, "o"), [want], "{attribute:?}");
    }
    // Adding is what false forces off.
    let mut p = twice(Some(false));
    if let Op::Matmult(m) = &mut p.instrs[1].op {
        m.calc = Calc::Explicit(CalcFlags { accumulate: true, stop: true, ..CalcFlags::default() });
    }
    if let Op::Matmult(m) = &mut p.instrs[0].op {
        m.calc = Calc::Explicit(CalcFlags { start: true, ..CalcFlags::default() });
    }
    let (p, m) = both(p, T, Options::default(), &given);
    assert_eq!(values(&m, &p, "o"), [6.0]);
}

/// A program writes half of a tile and reads all of it.
#[test]
fn reading_what_the_program_has_not_written() {
    let mut dst = ap(0, F, &[(1, 2), (1, 2)]);
    dst.offset = 8;
    let p = program(
        vec![sb("s", 0, 2, 128, 16), sb("t", 0, 2, 256, 16)],
        vec![
            Op::Memset { dst, value: hadal_ir::program::Immediate::Float(1.0) },
            Op::TensorCopy { dst: ap(1, F, &[(1, 2), (1, 4)]), src: ap(0, F, &[(1, 2), (1, 4)]) },
        ],
    );
    let run = |uninit| {
        let mut m = Machine::new(T);
        bind::fill(&mut m, &p, 0, &Default::default()).unwrap();
        let r = ir_exec::run(&p, T, &mut m, &Options { uninit, ..Options::default() }, &mut ());
        (r, m)
    };
    let e = run(Uninit::Error).0.unwrap_err();
    assert_eq!((e.index, e.name.as_str(), e.operand), (1, "i1", Some("src")));
    assert_eq!(*e.fault, Fault::Unwritten { space: "SBUF".into(), partition: 0, offset: 128 });
    let (r, m) = run(Uninit::Zero);
    r.unwrap();
    assert_eq!(values(&m, &p, "t"), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]);
    let (r, m) = run(Uninit::Nan);
    r.unwrap();
    assert!(values(&m, &p, "t")[0].is_nan());
    assert_eq!(bind::unwritten(&m, &p, "s"), Ok(16));
}

/// Every choice of the options, and every decision about a number, is among the rules of the targets it bears on.
#[test]
fn rules_name_what_is_in_force() {
    use hadal_sim::{Fp32Mode, PsumRounding, ScaleRule};
    let rules = |o: Options, t: Target| o.rules(t).join("\n");
    let every =
        ["D-04", "D-16", "D-17", "D-18", "D-19", "D-21", "D-28", "D-29", "D-32", "D-43", "D-51", "D-60"];
    for (t, more, less) in [
        (Target::TRN1, &["ordinary matmul", "legacy"][..], &["D-20", "D-05", "D-23"][..]),
        (Target::TRN2, &["bit for bit", "D-20", "legacy"], &["D-05", "D-23"]),
        (
            Target::TRN3,
            &[
                "bit for bit",
                "D-05",
                "D-06",
                "D-23",
                "D-33",
                "D-46",
                "2^n banks",
                "0E of bare bundles: float8_e4m3fn",
            ],
            &["D-20"],
        ),
    ] {
        let text = rules(Options::default(), t);
        for part in every.iter().chain(more) {
            assert!(text.contains(part), "{part} on {t} in\n{text}");
        }
        assert!(less.iter().all(|part| !text.contains(part)), "{t}:\n{text}");
    }
    assert!(rules(Options::default(), "level:45".parse().unwrap()).contains("D-42"));

    // Each choice shows in a text of its own.
    let d = Options::default();
    let distinct = |all: &[Options]| {
        let texts: std::collections::BTreeSet<String> = all.iter().map(|o| rules(*o, Target::TRN3)).collect();
        assert_eq!(texts.len(), all.len());
    };
    distinct(&[Fp32Mode::Single, Fp32Mode::TwoPass].map(|fp32| Options { fp32, ..d }));
    distinct(&ScaleRule::ALL.map(|mx_rule| Options { mx_rule, ..d }));
    distinct(
        &[PsumRounding::Rne, PsumRounding::Stochastic(1), PsumRounding::Stochastic(2)]
            .map(|psum_rounding| Options { psum_rounding, ..d }),
    );
    distinct(&[Uninit::Error, Uninit::Nan, Uninit::Zero].map(|uninit| Options { uninit, ..d }));
    let default = rules(d, Target::TRN3);
    for part in
        ["single product", "MX block scale: reference (D-05)", "nearest even (D-23)", "an error (D-43)"]
    {
        assert!(default.contains(part), "{part} in\n{default}");
    }
}
