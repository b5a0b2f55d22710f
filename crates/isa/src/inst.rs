//! Decoding: any word becomes an instruction and what is left over.

use crate::{Inst, Target, Word};

/// A decoded word: the instruction, and the bits that no field explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decoded {
    /// The instruction.
    pub inst: Inst,
    /// Exclusive or of the word with the instruction's own encoding: nonzero where a header byte is
    /// not the constant that an encoder writes, or a reserved byte is not 0.
    pub residue: Word,
}

impl Decoded {
    /// The word: for every word `w` and target `t`, `decode(&w, t).encode(t) == w`.
    #[must_use]
    pub fn encode(&self, target: Target) -> Word {
        self.inst.encode(target).xor(&self.residue)
    }
}

/// Reads a word. Never fails: an opcode that the target does not have gives [`Inst::Raw`], and
/// bits that no field covers are the residue.
#[must_use]
pub fn decode(word: &Word, target: Target) -> Decoded {
    let (inst, uncovered) = Inst::read(word, target);
    let mut residue = word.and(uncovered);
    if let Some(info) = inst.info() {
        // The header constants are what an encoder writes, so only a difference is residue.
        residue.0[0] ^= info.opcode;
        residue.0[1] ^= crate::table::LENGTH_WORDS & uncovered[1];
    }
    Decoded { inst, residue }
}

impl Inst {
    /// The bundle's name, or `.word` for a raw word.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self.info() {
            Some(info) => info.name,
            None => ".word",
        }
    }
}
