//! From a kernel to a program: one [`Program`] a core, everything that stands in the way reported at once.

use std::collections::HashSet;
use std::sync::Arc;

use super::ast::{Block, File, Kernel, Pos, Stmt};
use super::buffers::{Buffers, is_hbm_view};
use super::fault::{self, Fault};
use super::statement::Statement;
use super::tensor::TensorRef;
use crate::diag::Violation;
use crate::program::{self, Module, Note, Program, Role};

/// What becomes of KLR's own form of a transpose, identity stationary and data moving, which is not
/// `stationary.T @ moving` (D-31).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KlrTranspose {
    /// Kept and marked, so that the verifier refuses it.
    #[default]
    Refuse,
    /// Read as the transpose of the moving operand: the operands change places.
    Moving,
}

/// Lowers a kernel.
///
/// Each core becomes a program with the kernel's arguments first among its locations. Instructions keep the
/// order of the statements and are numbered by one counter a program (`matmult_<id>`, `MatmulMx-<id>`,
/// `QuantizeMX-<id>`; others by the name of their operator).
///
/// # Errors
/// Every statement that cannot be lowered, with its operator, operand and source position.
pub fn lower(file: &File, transpose: KlrTranspose) -> Result<Module, Vec<Violation>> {
    let kernel = &file.kernel;
    let mut lowering =
        Lowering { kernel, transpose, violations: Vec::new(), notes: Vec::new(), file_names: Vec::new() };
    lowering.check_edges();
    lowering.note_constants();
    let mut cores: Vec<Program> =
        kernel.cores.iter().enumerate().map(|(core, blocks)| lowering.core(core, blocks)).collect();
    if cores.is_empty() {
        cores.push(lowering.core(0, &[]));
    }
    let Lowering { violations, notes, .. } = lowering;
    if violations.is_empty() {
        Ok(Module { name: kernel.name.clone(), cores, notes })
    } else {
        Err(violations)
    }
}

struct Lowering<'k> {
    kernel: &'k Kernel,
    transpose: KlrTranspose,
    violations: Vec<Violation>,
    notes: Vec<Note>,
    file_names: Vec<Arc<str>>,
}

impl Lowering<'_> {
    fn fault(&mut self, core: usize, fault: Fault) {
        self.violations.push(fault.at(core, self.kernel.name.clone(), None, None));
    }

    /// Blocks run one after the other, so every edge must lead to the next block.
    fn check_edges(&mut self) {
        let next = |from: &str, to: &str| {
            let follows = |pair: &[Block]| matches!(pair, [a, b] if a.label == from && b.label == to);
            self.kernel.cores.iter().any(|blocks| blocks.windows(2).any(follows))
        };
        let branches = self.kernel.edges.iter().filter(|edge| match edge.to.as_slice() {
            [] => false,
            [to] => !next(&edge.from, to),
            _ => true,
        });
        let faults: Vec<Fault> = branches
            .map(|edge| {
                let text = format!("block {} branches to {}", edge.from, edge.to.join(", "));
                Fault::new(fault::CONTROL, text, "unroll the kernel: blocks run in order, once each")
            })
            .collect();
        faults.into_iter().for_each(|fault| self.fault(0, fault));
    }

    fn note_constants(&mut self) {
        for constant in &self.kernel.shared_constants {
            self.notes.push(Note {
                code: "N-SHARED-CONSTANT",
                text: format!(
                    "tensor {} is a constant from file {}; bind it as an input",
                    constant.name, constant.file_name
                ),
                pos: None,
            });
        }
    }

    fn pos(&mut self, pos: &Pos) -> program::Pos {
        let name = pos.filename.as_deref().unwrap_or("<kernel>");
        let file = match self.file_names.iter().find(|known| ***known == *name) {
            Some(known) => known.clone(),
            None => {
                self.file_names.push(Arc::from(name));
                Arc::from(name)
            }
        };
        let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        program::Pos { file, line: small(pos.line), column: small(pos.column) }
    }

    fn core(&mut self, core: usize, blocks: &[Block]) -> Program {
        let kernel = self.kernel;
        let constants: HashSet<String> =
            kernel.shared_constants.iter().map(|constant| constant.name.clone()).collect();
        let mut buffers = Buffers::new(constants, (kernel.cores.len() > 1).then_some(core));
        let inputs = kernel.inputs.iter().map(|tensor| (tensor, Role::Input));
        let outputs = kernel.outputs.iter().map(|tensor| (tensor, Role::Output));
        for (tensor, role) in inputs.chain(outputs) {
            if let Err(fault) = buffers.argument(tensor, role) {
                self.fault(core, fault);
            }
        }
        let mut statements: Vec<(&Stmt, program::Pos, bool)> = blocks
            .iter()
            .flat_map(|block| &block.body)
            .map(|stmt| (stmt, self.pos(&stmt.pos), true))
            .collect();
        // Views come second: whether one lies in a tensor's buffer shows when all tensors are known.
        for views in [false, true] {
            for (stmt, pos, sound) in &mut statements {
                *sound &= self.gather(core, &mut buffers, stmt, pos, views);
            }
        }
        let locs = match buffers.finish() {
            Ok(locs) => locs,
            Err(fault) => {
                self.fault(core, fault);
                Vec::new()
            }
        };
        let mut program = Program { locs, ..Program::default() };
        for (id, (stmt, pos, sound)) in statements.into_iter().enumerate() {
            if !sound {
                continue;
            }
            let mut statement = Statement {
                buffers: &buffers,
                transpose: self.transpose,
                core,
                stmt,
                pos,
                violations: &mut self.violations,
                notes: &mut self.notes,
            };
            program.instrs.extend(statement.lower(id));
        }
        program
    }

    /// Adds the buffers of a statement's tensors or of its views; false if one is refused.
    fn gather(
        &mut self,
        core: usize,
        buffers: &mut Buffers,
        stmt: &Stmt,
        pos: &program::Pos,
        views: bool,
    ) -> bool {
        let mut sound = true;
        for (name, operand) in stmt.op.operands() {
            if matches!(operand, TensorRef::Abstract(_)) == views {
                continue;
            }
            if let Err(fault) = buffers.add(operand, pos) {
                self.violations.push(fault.at(core, subject(stmt), Some(name), Some(pos.clone())));
                sound = false;
            } else if let Some(view) = is_hbm_view(operand) {
                self.notes.push(Note {
                    code: "N-HBM-ADDRESS",
                    text: format!(
                        "view {} at device address {} is kept as a tensor of its name",
                        view.name, view.address
                    ),
                    pos: Some(pos.clone()),
                });
            }
        }
        sound
    }
}

/// A statement in words: its operator, and its name if it has one.
pub(super) fn subject(stmt: &Stmt) -> String {
    match &stmt.name {
        Some(name) => format!("{} {name}", stmt.op.name()),
        None => stmt.op.name().to_owned(),
    }
}
