//! What a verified program does that its author may not expect.

use hadal_isa::{Gen, Target};
use hadal_num::Dtype;

use crate::program::{Module, Note, Op};

/// Adds the remarks of a module that broke no rule.
pub(super) fn add(module: &mut Module, target: Target) {
    if target.generation != Gen::Gen4 {
        return;
    }
    let mut found = Vec::new();
    for instr in module.cores.iter().flat_map(|c| &c.instrs) {
        let Op::Matmult(mm) = &instr.op else { continue };
        if [mm.ifmap.dtype, mm.weights.dtype].contains(&Dtype::Float8E4m3) {
            found.push(Note {
                code: "N-E4M3",
                text: format!(
                    "{}: legacy float8_e4m3 on {target}, whose hardware reads its tag 0E as float8_e4m3fn: codes 78..7F and F8..FF change meaning",
                    instr.name
                ),
                pos: instr.pos.clone(),
            });
        }
    }
    module.notes.extend(found);
}
