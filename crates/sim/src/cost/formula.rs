//! The formulas of the model, each with where it comes from and how sure it is.

use hadal_isa::Gen;
use hadal_isa::table::Confidence;

/// Rows and columns of the array.
pub const LANES: u64 = 128;
/// Cells of the array.
pub const CELLS: u64 = LANES * LANES;
/// Fewest columns whose results the array drains at full speed: a matmul of fewer moving columns takes as
/// long as one of this many, or as its stationary columns if those are fewer.
pub const DRAIN: u64 = 64;
/// Columns loaded in one cycle.
pub const LOAD_RATE: u64 = 4;
/// Bundles of a float32 matmul.
pub const FLOAT32_PASSES: u64 = 2;
/// Cycles of each float32 pass, in those of a 16-bit matmul, without the one-zero hint.
pub const FLOAT32_PASS: u64 = 2;
/// Lanes of an MX container, contracted in one cycle.
pub const MX_LANES: u64 = 4;

/// One formula of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Formula {
    /// What it gives.
    pub name: &'static str,
    /// The formula.
    pub formula: &'static str,
    /// What it rests on.
    pub source: &'static str,
    /// How sure it is. None is confirmed: nothing here was measured.
    pub confidence: Confidence,
}

const fn row(
    name: &'static str,
    formula: &'static str,
    source: &'static str,
    confidence: Confidence,
) -> Formula {
    Formula { name, formula, source, confidence }
}

/// Every formula, in the order of `docs/cost.md`.
pub const FORMULAS: [Formula; 14] = [
    row(
        "clock",
        "2.8 GHz on trn1, 2.4 GHz on trn2 and trn3",
        "public architecture guides; 2 x 128 x 128 x clock is the published 92 and 79 dense bfloat16 TFLOPS",
        Confidence::Strong,
    ),
    row(
        "matmul",
        "max(min(64, stationary columns), moving columns) cycles",
        "public kernel-language documentation of nc_matmul: one moving column a cycle",
        Confidence::Strong,
    ),
    row(
        "float32 matmul",
        "4 x: two bundles, each 2 x",
        "the same documentation; the published 23 and 20 float32 TFLOPS are a quarter of bfloat16",
        Confidence::Strong,
    ),
    row(
        "float32 matmul, one-zero hint",
        "2 x: two bundles, each 1 x",
        "the same documentation's hint for operands of zeros and ones; not on the wire, so bare bundles never have it",
        Confidence::Inferred,
    ),
    row(
        "DoubleRow matmul",
        "as a matmul; a cell contracts 2 rows",
        "the published 158 FP8 TFLOPS of trn2 are twice its 79",
        Confidence::Strong,
    ),
    row(
        "MX matmul",
        "as a matmul; a cell contracts 4 lanes",
        "the published 315 MX TFLOPS of trn3 are four times its 79",
        Confidence::Strong,
    ),
    row(
        "sparse matmul",
        "as a matmul of its compressed rows",
        "no public figure; the bundle streams one moving column as a dense one does",
        Confidence::Assumed,
    ),
    row(
        "transpose",
        "as a matmul of the same shape and type",
        "a transpose is a matmul bundle with a flag; no public figure of its own",
        Confidence::Assumed,
    ),
    row(
        "load",
        "columns / 4 cycles, rounded up: 32 for 128; DoubleRow loads count half the columns",
        "public weight-load figures; the rounding and the count for DoubleRow are assumed",
        Confidence::Inferred,
    ),
    row("load of sparsity tags", "as a load of the same columns", "no public figure", Confidence::Assumed),
    row(
        "hidden load",
        "a load runs during the matmul before it and adds only what is longer; loads in a row share that time",
        "public descriptions of background weight loading; the sharing is assumed",
        Confidence::Inferred,
    ),
    row("elided load", "0 cycles", "the array still holds the tile: there is no bundle", Confidence::Strong),
    row(
        "tile groups",
        "bundles of different tile groups take turns",
        "the hardware runs small tiles in parallel; by how much is not published, so the estimate is an upper bound there",
        Confidence::Assumed,
    ),
    row(
        "other engines",
        "0 cycles, never waited for",
        "the model covers the array alone: data movement, vector work and QuantizeMx cost it nothing",
        Confidence::Assumed,
    ),
];

/// Clock of the array in Hz.
pub fn clock(generation: Gen) -> f64 {
    match generation {
        Gen::Gen2 => 2.8e9,
        Gen::Gen3 | Gen::Gen4 => 2.4e9,
    }
}

/// Cycles of one pass: `stationary` output columns of the array, `moving` columns streamed.
pub fn matmul_cycles(stationary: u64, moving: u64) -> u64 {
    stationary.min(DRAIN).max(moving)
}

/// Cycles of one float32 pass. `hint`: an operand is said to hold zeros and ones only.
pub fn float32_pass_cycles(stationary: u64, moving: u64, hint: bool) -> u64 {
    matmul_cycles(stationary, moving) * if hint { 1 } else { FLOAT32_PASS }
}

/// Cycles of a load of that many columns.
pub fn load_cycles(columns: u64) -> u64 {
    columns.div_ceil(LOAD_RATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures every description of the array gives.
    #[test]
    fn closed_formulas() {
        // A full tile: one moving column a cycle.
        assert_eq!(matmul_cycles(128, 512), 512);
        assert_eq!(FLOAT32_PASSES * float32_pass_cycles(128, 512, false), 2048);
        assert_eq!(FLOAT32_PASSES * float32_pass_cycles(128, 512, true), 1024);
        // One moving column waits for 64, or for fewer stationary columns.
        assert_eq!(matmul_cycles(128, 1), 64);
        assert_eq!(matmul_cycles(64, 1), 64);
        assert_eq!(matmul_cycles(20, 1), 20);
        assert_eq!(matmul_cycles(20, 21), 21);
        assert_eq!(FLOAT32_PASSES * float32_pass_cycles(128, 1, false), 256);
        assert_eq!([1, 4, 5, 127, 128].map(load_cycles), [1, 1, 2, 32, 32]);
    }

    /// TFLOPS = 2 x cells x packing x clock, over the passes a type takes.
    #[test]
    fn published_peaks() {
        let peak = |g, packing: u64, slower: u64| {
            (2.0 * (CELLS * packing) as f64 * clock(g) / slower as f64 / 1e12).round()
        };
        let float32 = FLOAT32_PASSES * FLOAT32_PASS;
        assert_eq!((peak(Gen::Gen2, 1, 1), peak(Gen::Gen2, 1, float32)), (92.0, 23.0));
        assert_eq!((peak(Gen::Gen3, 1, 1), peak(Gen::Gen3, 1, float32)), (79.0, 20.0));
        // 157.3 and 314.6: the published 158 and 315 are rounded up from the rounded 79.
        assert!((peak(Gen::Gen3, 2, 1) - 158.0).abs() <= 1.0);
        assert_eq!(peak(Gen::Gen4, MX_LANES, 1), 315.0);
    }

    #[test]
    fn nothing_is_confirmed_without_a_device() {
        assert!(FORMULAS.iter().all(|f| f.confidence != Confidence::Confirmed));
    }
}
