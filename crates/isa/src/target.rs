//! Core generations and encoder levels.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A core generation: which set of encoders a level uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gen {
    /// Sunda, NeuronCore-v2: trn1 and inf2.
    Gen2,
    /// Cayman, NeuronCore-v3: trn2.
    Gen3,
    /// Mariana, NeuronCore-v4: trn3.
    Gen4,
}

impl Gen {
    /// All generations, oldest first.
    pub const ALL: [Gen; 3] = [Gen::Gen2, Gen::Gen3, Gen::Gen4];

    /// `gen2`, `gen3` or `gen4`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Gen::Gen2 => "gen2",
            Gen::Gen3 => "gen3",
            Gen::Gen4 => "gen4",
        }
    }
}

impl fmt::Display for Gen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What bundles are encoded for: a generation, and the numeric level that two encoder rules test
/// (`level > 40` drops the accumulate and group bytes of a dense matmul).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Core generation.
    pub generation: Gen,
    /// Architecture level: 20, 30, 40, or a number given as `level:N`.
    pub level: u16,
}

impl Target {
    /// trn1 (and inf2): generation 2, level 20.
    pub const TRN1: Target = Target { generation: Gen::Gen2, level: 20 };
    /// trn2: generation 3, level 30.
    pub const TRN2: Target = Target { generation: Gen::Gen3, level: 30 };
    /// trn3: generation 4, level 40.
    pub const TRN3: Target = Target { generation: Gen::Gen4, level: 40 };
    /// The three named targets, oldest first.
    pub const ALL: [Target; 3] = [Target::TRN1, Target::TRN2, Target::TRN3];

    /// The named target of a generation.
    #[must_use]
    pub const fn of(generation: Gen) -> Target {
        match generation {
            Gen::Gen2 => Target::TRN1,
            Gen::Gen3 => Target::TRN2,
            Gen::Gen4 => Target::TRN3,
        }
    }

    /// SBUF bytes in one partition: 192, 224 or 256 KiB (public architecture guides).
    #[must_use]
    pub const fn sbuf_bytes_per_partition(self) -> u32 {
        match self.generation {
            Gen::Gen2 => 192 * 1024,
            Gen::Gen3 => 224 * 1024,
            Gen::Gen4 => 256 * 1024,
        }
    }

    /// PSUM bytes in one partition: 16 KiB, eight banks of 2 KiB, on every generation.
    #[must_use]
    pub const fn psum_bytes_per_partition(self) -> u32 {
        16 * 1024
    }
}

impl fmt::Display for Target {
    /// `trn1`, `trn2`, `trn3`, or `level:N` for any other level.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Target::TRN1 => f.pad("trn1"),
            Target::TRN2 => f.pad("trn2"),
            Target::TRN3 => f.pad("trn3"),
            Target { level, .. } => f.pad(&format!("level:{level}")),
        }
    }
}

/// A target name that is not known.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "ISA110: unknown target {name:?}; use trn1, trn2, trn3, inf2, gen2..gen4, sunda, cayman, mariana, core-v2..core-v4, or level:N with N from 20"
)]
pub struct TargetError {
    /// The name as given.
    pub name: String,
}

impl FromStr for Target {
    type Err = TargetError;

    /// Reads any of a target's names, in any case. `level:N` is gen2 for 20..=29, gen3 for 30..=39
    /// and gen4 from 40 up.
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let unknown = || TargetError { name: text.to_owned() };
        let name = text.to_ascii_lowercase();
        if let Some(level) = name.strip_prefix("level:") {
            let level: u16 = level.parse().map_err(|_| unknown())?;
            let generation = match level {
                20..=29 => Gen::Gen2,
                30..=39 => Gen::Gen3,
                40.. => Gen::Gen4,
                _ => return Err(unknown()),
            };
            return Ok(Target { generation, level });
        }
        match name.as_str() {
            "trn1" | "inf2" | "gen2" | "sunda" | "core-v2" | "corev2" => Ok(Target::TRN1),
            "trn2" | "gen3" | "cayman" | "core-v3" | "corev3" => Ok(Target::TRN2),
            "trn3" | "gen4" | "mariana" | "core-v4" | "corev4" => Ok(Target::TRN3),
            _ => Err(unknown()),
        }
    }
}
