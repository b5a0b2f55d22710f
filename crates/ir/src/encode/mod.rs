//! Encoding: verified programs to bundles.
//!
//! [`lower`] walks a verified program once. Dense matmuls become a stationary load and a matmul, the
//! load elided when the array still holds the tile; float32 becomes two passes. Operators
//! without a known encoding stay in the stream as [`Item::Host`].

mod cache;
mod dense;
mod mx;
mod operand;
mod sparse;
mod stream;

use hadal_isa::Word;
use thiserror::Error;

use crate::program::{Access, Instr, Op, Program, Space};
use crate::verify::{LowerOptions, Verified};

use cache::WeightCache;
pub use stream::{Bundle, Item, Lowered, Side, Stream};

/// An operand that no bundle can express.
///
/// The verifier refuses such programs; this error is what is left if one of its rules falls short.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("E-ENCODE: {instr}, operand {operand}: {what}; this is a gap in the verifier, please report it")]
pub struct EncodeError {
    /// Instruction name.
    pub instr: String,
    /// Operand name.
    pub operand: &'static str,
    /// What does not fit.
    pub what: String,
}

/// Lowers every core of a verified module.
///
/// # Errors
/// [`EncodeError`] if an operand does not fit its descriptor although the verifier let it through.
pub fn lower(v: &Verified) -> Result<Lowered, EncodeError> {
    let options = v.options();
    let cores = v.module().cores.iter().map(|p| core(p, &options)).collect::<Result<_, _>>()?;
    Ok(Lowered { target: options.target, cores })
}

fn core(p: &Program, o: &LowerOptions) -> Result<Stream, EncodeError> {
    let mut s = Stream::default();
    let mut cache = WeightCache::new(o.weight_cache, o.target);
    for (i, instr) in p.instrs.iter().enumerate() {
        match &instr.op {
            Op::Matmult(mm) => dense::emit(p, (i, instr), mm, o, &mut cache, &mut s)?,
            Op::MatmultSparse(mm) => sparse::matmul(p, (i, instr), mm, o, &mut cache, &mut s)?,
            Op::MatmultMx(mm) => mx::matmul(p, (i, instr), mm, o, &mut cache, &mut s)?,
            Op::QuantizeMx { src, data, scale } => {
                forget_overwritten(p, instr, &mut cache);
                mx::quantize(p, (i, instr), (src, data, scale), o, &mut s)?;
            }
            _ => {
                forget_overwritten(p, instr, &mut cache);
                s.items.push(Item::Host(i));
            }
        }
    }
    s.loads_elided = cache.elided();
    Ok(s)
}

/// A write to the memory a cached tile was loaded from makes the cached tile stale.
fn forget_overwritten(p: &Program, instr: &Instr, cache: &mut WeightCache) {
    for (_, access, ap) in instr.op.operands() {
        if access == Access::Write
            && p.loc(ap.loc).is_some_and(|l| l.space() == Space::Sb)
            && let Some(area) = operand::placed_area(p, ap)
        {
            cache.written(&area);
        }
    }
}

impl Stream {
    fn bundle(&mut self, instr: usize, word: Word, side: Side) {
        self.items.push(Item::Bundle(Bundle { word, instr, side }));
    }
}
