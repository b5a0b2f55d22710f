//! The product as one program, and the arrays it takes.

use std::path::Path;

use hadal::gemm::{Plan, RunOptions, Side};
use hadal::ir::json;
use hadal::ir::program::{LocKind, Role};
use hadal::ir::verify;
use hadal::npy::{self, Kind, Npy};

use super::GemmArgs;
use super::matrix::Operand;
use crate::cmd::{compile, load};
use crate::failure::Failure;
use crate::term::Term;

/// Writes what `--emit` and `--emit-inputs` ask for.
pub(super) fn write(
    args: &GemmArgs,
    plan: &Plan,
    (a, b): (&Operand, &Operand),
    options: &RunOptions,
    term: Term,
) -> Result<(), Failure> {
    let Some(path) = &args.emit else { return Ok(()) };
    let module = plan.module();
    // The arrays first: a program without its inputs would be no use.
    if let Some(folder) = &args.emit_inputs {
        std::fs::create_dir_all(folder).map_err(|error| hadal::files::FileError::Unwritable {
            name: folder.display().to_string(),
            error,
        })?;
        let locs = module.cores.first().map_or(&[][..], |p| &p.locs);
        let shape_of = |name: &str| {
            locs.iter().find(|l| l.name == name).and_then(|l| match &l.kind {
                LocKind::Dram { role: Role::Input, dtype, shape } => {
                    Some((dtype.bytes(), shape.iter().map(|d| *d as usize).collect::<Vec<usize>>()))
                }
                _ => None,
            })
        };
        for (side, matrix) in [(Side::A, a), (Side::B, b)] {
            let tensors = plan.tensors(side, matrix, options)?;
            for (name, data) in [(side.tensor(), tensors.data), (side.scale_tensor(), tensors.scales)] {
                let Some((size, shape)) = shape_of(name) else { continue };
                let array = Npy { kind: Kind::Unsigned, size, shape, data };
                load::put(&folder.join(format!("{name}.npy")), &npy::write(&array), term)?;
            }
        }
    }
    let text = match path.extension().and_then(|e| e.to_str()) {
        Some(form @ ("bin" | "hex" | "asm" | "s")) => {
            let lower = plan.problem().lower;
            let verified = verify::verify(module, lower).map_err(Failure::Rules)?;
            let lowered = compile::lower(&verified)?;
            let Some(stream) = lowered.cores.first() else { return Ok(()) };
            let words = stream.bundles().map(|b| &b.word);
            match form {
                "bin" => load::to_bytes(words),
                "hex" => load::to_hex(words).into_bytes(),
                _ => compile::listing(stream, verified.core(0), lower.target).into_bytes(),
            }
        }
        _ => json::write(&module).into_bytes(),
    };
    load::put(Path::new(path), &text, term)
}
