//! Which pass of a float32 matmul a load begins. The bundles do not say; order and bytes do.

use hadal_isa::Word;

/// A pass of a float32 matmul (D-19). Every other matmul has one pass, the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    First,
    Second,
}

/// Follows loads and matmuls in order: a float32 load with the bytes of the load before it, right after
/// that one's first-pass matmul, begins the second pass.
#[derive(Debug, Default)]
pub(crate) enum Fp32Pass {
    /// Nothing is under way.
    #[default]
    Idle,
    /// A first-pass load whose matmul has not run.
    Loaded(Word),
    /// A first-pass load whose matmul has run.
    Multiplied(Word),
}

impl Fp32Pass {
    /// A load: which pass it begins.
    pub(crate) fn load(&mut self, word: &Word, float32: bool) -> Pass {
        if !float32 {
            *self = Fp32Pass::Idle;
            return Pass::First;
        }
        if matches!(self, Fp32Pass::Multiplied(w) if w == word) {
            *self = Fp32Pass::Idle;
            return Pass::Second;
        }
        *self = Fp32Pass::Loaded(*word);
        Pass::First
    }

    /// A matmul has run.
    pub(crate) fn matmul(&mut self) {
        *self = match std::mem::take(self) {
            Fp32Pass::Loaded(word) => Fp32Pass::Multiplied(word),
            _ => Fp32Pass::Idle,
        };
    }

    /// Some other bundle of the array has run.
    pub(crate) fn other(&mut self) {
        *self = Fp32Pass::Idle;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identical_load_after_the_matmul_is_the_second_pass() {
        let a = Word([1; 64]);
        let b = Word([2; 64]);
        let mut p = Fp32Pass::default();
        // Twice the same float32 matmul: passes 1 2 1 2.
        for _ in 0..2 {
            assert_eq!(p.load(&a, true), Pass::First);
            p.matmul();
            assert_eq!(p.load(&a, true), Pass::Second);
            p.matmul();
        }
        // Other bytes, a matmul missing, or a second matmul in between: a first pass.
        assert_eq!(p.load(&a, true), Pass::First);
        assert_eq!(p.load(&a, true), Pass::First);
        p.matmul();
        assert_eq!(p.load(&b, true), Pass::First);
        p.matmul();
        p.matmul();
        assert_eq!(p.load(&b, true), Pass::First);
        p.matmul();
        p.other();
        assert_eq!(p.load(&b, true), Pass::First);
        p.matmul();
        assert_eq!(p.load(&b, false), Pass::First);
    }
}
