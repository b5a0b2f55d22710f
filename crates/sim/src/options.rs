//! Numeric choices of a run and the rules they put in force.

use hadal_isa::{Gen, Target};
use hadal_num::mx::ScaleRule;

/// How a float32 matmul, which the encoder emits as two passes, is computed (D-19).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fp32Mode {
    /// The first pass writes the whole product, the second adds nothing. What the reference simulator does.
    #[default]
    Single,
    /// Weights split as `w = hi + lo`, `hi` rounded to float32r; one product a pass.
    TwoPass,
}

/// How a sum is rounded when the PSUM destination is bfloat16 (D-23).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PsumRounding {
    /// To nearest, ties to even.
    #[default]
    Rne,
    /// Up or down with probability by the discarded part; the value seeds the draw. gen4 only.
    Stochastic(u64),
}

/// What a read of never-written bytes gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Uninit {
    /// An error that names the place.
    #[default]
    Error,
    /// Bytes `FF`, a NaN in every float format that has one.
    Nan,
    /// Bytes 0.
    Zero,
}

/// Numeric choices of a run. The default is the reference's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// float32 matmuls.
    pub fp32: Fp32Mode,
    /// Scale of an MX block (D-05).
    pub mx_rule: ScaleRule,
    /// Rounding into a bfloat16 PSUM destination.
    pub psum_rounding: PsumRounding,
    /// Reads of never-written bytes.
    pub uninit: Uninit,
}

impl Options {
    /// The rules in force on a target, one line each, with the decision behind it.
    pub fn rules(&self, target: Target) -> Vec<String> {
        let mut r = vec![
            "sum order: partition ascending, then row pair or lane, products rounded before the add, from +0, then one add into PSUM (D-18, D-29)"
                .to_owned(),
            match self.fp32 {
                Fp32Mode::Single => {
                    "float32 matmul: single product; the second pass adds nothing (D-19)".to_owned()
                }
                Fp32Mode::TwoPass => {
                    "float32 matmul: two products, w = hi + lo with hi = float32r(w), hi first (D-19)".to_owned()
                }
            },
            "float32r: rounded to 10 mantissa bits, ties to even (D-04)".to_owned(),
        ];
        if target.level > 40 {
            r.push(
                "accumulate: no byte on the wire above level 40; every matmul adds into PSUM (D-42)"
                    .to_owned(),
            );
        } else {
            r.push("accumulate: START overwrites, without START the sum is added (D-16)".to_owned());
        }
        r.push("calc auto: the first write of an element overwrites, later ones add (D-28, D-48)".to_owned());
        r.push("zero points: subtracted in float32 (D-60)".to_owned());
        r.push(if target.generation == Gen::Gen4 {
            "START clears the destination's own bytes, or 2^n banks for zero region n > 0 (D-17)".to_owned()
        } else {
            "START clears the destination's own bytes; zero regions above 0 are refused (D-17)".to_owned()
        });
        r.push(if target.generation == Gen::Gen2 {
            "transpose: an ordinary matmul by identity (D-21)".to_owned()
        } else {
            "transpose: the selected stationary row, bit for bit (D-21)".to_owned()
        });
        if target.generation == Gen::Gen3 {
            r.push("sparse: tag t of row p picks partition 4 (p / 4) + t / ratio, plane t % ratio; lowest nibble first (D-20)".to_owned());
        }
        if target.generation == Gen::Gen4 {
            r.push(match self.psum_rounding {
                PsumRounding::Rne => {
                    "bfloat16 PSUM: old value widened, added, rounded to nearest even (D-23)".to_owned()
                }
                PsumRounding::Stochastic(seed) => {
                    format!(
                        "bfloat16 PSUM: old value widened, added, rounded stochastically, seed {seed} (D-23)"
                    )
                }
            });
            r.push(format!("MX block scale: {} (D-05)", self.mx_rule.name()));
            r.push(match self.mx_rule {
                ScaleRule::Hardware => "NaN in QuantizeMx: kept (D-33)".to_owned(),
                ScaleRule::Ocp => "NaN in QuantizeMx: scale 255, element codes 0 (D-47)".to_owned(),
                _ => "NaN in QuantizeMx: the zero code with the sign (D-33)".to_owned(),
            });
            r.push("QuantizeMx narrows with saturation; FP4 lane 0 in the lowest bits (D-06)".to_owned());
            r.push(match self.mx_rule {
                ScaleRule::Hardware | ScaleRule::Ocp => "MX scale 255: NaN (D-46)".to_owned(),
                _ => "MX scale 255: 2^128 (D-46)".to_owned(),
            });
        }
        r.push(
            "narrowing: one rounding to nearest even; FP8 overflow as IEEE, or saturating where the program's FP8 configuration says so"
                .to_owned(),
        );
        r.push(match target.generation {
            Gen::Gen4 => "FP8 tag 0E of bare bundles: float8_e4m3fn (D-51)".to_owned(),
            _ => "FP8 tag 0E of bare bundles: legacy float8_e4m3 (D-51)".to_owned(),
        });
        r.push(
            "activation functions: within 1 ulp of the mathematical value, the same on every machine"
                .to_owned(),
        );
        r.push("float32 to integer: nearest even, saturating, NaN to 0 (D-32)".to_owned());
        r.push(match self.uninit {
            Uninit::Error => "never-written bytes: an error (D-43)".to_owned(),
            Uninit::Nan => "never-written bytes: read as FF (D-43)".to_owned(),
            Uninit::Zero => "never-written bytes: read as 0 (D-43)".to_owned(),
        });
        r
    }
}
