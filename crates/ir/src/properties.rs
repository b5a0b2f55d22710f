//! What must hold for every input of the front ends: one place for tests and fuzz targets.

use hadal_isa::Target;
use thiserror::Error;

use crate::encode::{self, EncodeError};
use crate::json;
use crate::klr::{self, KlrTranspose};
use crate::program::Module;
use crate::verify::{LowerOptions, verify};

/// A property that failed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Broken {
    /// What was written does not read back.
    #[error("written JSON does not read back: {0}")]
    Unreadable(String),
    /// What reads back differs.
    #[error("written JSON reads back differently:\n{0}")]
    Different(String),
    /// A verified program does not encode.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// Any text: what parses, writes and parses to the same module; what verifies, encodes.
///
/// # Errors
/// The first property that fails.
pub fn json(text: &str) -> Result<(), Broken> {
    let Ok(module) = json::parse(text, "f") else { return Ok(()) };
    let written = json::write(&module);
    let again = json::parse(&written, "f").map_err(|e| Broken::Unreadable(e.to_string()))?;
    if json::write(&again) != written {
        return Err(Broken::Different(written));
    }
    lowers(&module)
}

/// Any bytes: what parses as a kernel and lowers to a program, verifies or is refused, and encodes.
///
/// # Errors
/// The first property that fails.
pub fn klr(bytes: &[u8]) -> Result<(), Broken> {
    let Ok(file) = klr::File::parse(bytes) else { return Ok(()) };
    for mode in [KlrTranspose::Refuse, KlrTranspose::Moving] {
        if let Ok(module) = klr::lower(&file, mode) {
            lowers(&module)?;
        }
    }
    Ok(())
}

fn lowers(module: &Module) -> Result<(), Broken> {
    for target in [Target::TRN1, Target::TRN2, Target::TRN3] {
        if let Ok(verified) = verify(module.clone(), LowerOptions::new(target)) {
            encode::lower(&verified)?;
        }
    }
    Ok(())
}
