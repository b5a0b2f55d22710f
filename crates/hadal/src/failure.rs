//! Everything that ends a command early, with its exit code.

use std::io;

use hadal::files::FileError;
use hadal::gemm::GemmError;
use hadal::input::Form;
use hadal::ir::diag::Violation;
use hadal::ir::json::JsonError;
use hadal::ir::klr::KlrError;
use hadal::isa::WordError;
use hadal::isa::text::AsmError;
use hadal::npy::NpyError;
use hadal::safetensors::SafetensorsError;
use hadal::sim::ExecError;
use hadal::sim::bind::BindError;
use thiserror::Error;

/// Why a command did not finish. One exit code each:
/// 2 usage, 3 input, 4 verification, 5 execution, 6 difference, 1 anything else.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// Options that do not go together.
    #[error("error[CLI-201]: {text}\n  = help: {remedy}")]
    Usage { text: String, remedy: String },
    /// A file.
    #[error("{}", coded(&.0.to_string(), None))]
    File(#[from] FileError),
    /// A JSON program.
    #[error("{0}")]
    Json(#[from] JsonError),
    /// A KLR file.
    #[error("{}", coded(&.error.to_string(), Some(.name)))]
    Klr { name: String, error: KlrError },
    /// Assembly text.
    #[error("{}", coded(&format!("{}: {}", .error.kind.code(), .error.kind), Some(&format!("{}:{}:{}", .name, .error.line, .error.column))))]
    Asm { name: String, error: AsmError },
    /// Hex text or a byte file.
    #[error("{}", coded(&.error.to_string(), Some(.name)))]
    Word { name: String, error: WordError },
    /// An array.
    #[error("{}", coded(&.error.to_string(), Some(.name)))]
    Npy { name: String, error: NpyError },
    /// A file of tensors.
    #[error("{}", coded(&.error.to_string(), Some(.name)))]
    Safetensors { name: String, error: SafetensorsError },
    /// Bytes of no known form.
    #[error(
        "error[CLI-301]: {name} ({bytes} bytes) is neither a program nor bundles\n  = help: give a .klr kernel, a .bir.json program, assembly text, hex text, or a .bin of whole 64-byte bundles"
    )]
    Unrecognised { name: String, bytes: usize },
    /// A known form in the wrong place.
    #[error("error[CLI-302]: {name} holds {form}, this command takes {wanted}\n  = help: {remedy}")]
    WrongForm { name: String, form: Form, wanted: &'static str, remedy: &'static str },
    /// An array given for a location that cannot take it, or a name that no location has.
    #[error("{}", coded(&.0.to_string(), None))]
    Binding(#[from] BindError),
    /// A cast that has no answer.
    #[error("error[CLI-304]: {name}: {text}\n  = help: {remedy}")]
    Cast { name: String, text: String, remedy: &'static str },
    /// Broken rules of a program.
    #[error("{}", .0.iter().map(Violation::to_string).collect::<Vec<_>>().join("\n\n"))]
    Rules(Vec<Violation>),
    /// Broken rules of bundles, already rendered.
    #[error("{}", .0.join("\n"))]
    Checks(Vec<String>),
    /// A run that stopped.
    #[error("error[{}]: {}\n  --> {}\n  = help: {}", .0.code(), .0.fault, .0.place(), .0.remedy())]
    Execution(#[from] ExecError),
    /// A product that was not planned or not computed.
    #[error("{}", coded(&.0.to_string(), None))]
    Gemm(GemmError),
    /// Two results that must agree.
    #[error("error[CLI-601]: {text}\n  --> {place}\n  = help: {remedy}")]
    Differ { text: String, place: String, remedy: String },
    /// Standard output cannot be written.
    #[error("error[CLI-101]: cannot write to standard output: {error}")]
    Stdout { error: io::Error },
    /// Already reported.
    #[error("")]
    Reported { exit: u8 },
    /// The reader of standard output is gone; nothing more is wanted.
    #[error("")]
    ReaderGone,
    /// The system refused something else.
    #[error("error[CLI-102]: {text}")]
    System { text: String },
}

impl Failure {
    /// Options that do not go together.
    pub(crate) fn usage(text: impl Into<String>, remedy: impl Into<String>) -> Failure {
        Failure::Usage { text: text.into(), remedy: remedy.into() }
    }

    /// The process's exit code.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Reported { exit } => *exit,
            Failure::ReaderGone => 0,
            Failure::Stdout { .. } | Failure::System { .. } => 1,
            Failure::Usage { .. } => 2,
            Failure::File(_)
            | Failure::Json(_)
            | Failure::Klr { .. }
            | Failure::Asm { .. }
            | Failure::Word { .. }
            | Failure::Npy { .. }
            | Failure::Safetensors { .. }
            | Failure::Unrecognised { .. }
            | Failure::WrongForm { .. }
            | Failure::Cast { .. }
            | Failure::Binding(_) => 3,
            Failure::Rules(_) | Failure::Checks(_) => 4,
            Failure::Execution(_) => 5,
            Failure::Gemm(e) => gemm_code(e),
            Failure::Differ { .. } => 6,
        }
    }
}

impl From<GemmError> for Failure {
    /// Broken rules and stopped runs are shown as those of any program.
    fn from(error: GemmError) -> Self {
        match error {
            GemmError::Rules { found, .. } => Failure::Rules(found),
            GemmError::Exec(e) => Failure::Execution(e),
            other => Failure::Gemm(other),
        }
    }
}

fn gemm_code(error: &GemmError) -> u8 {
    match error {
        GemmError::UnknownFormat { .. } | GemmError::FormatNotOnTarget { .. } => 2,
        GemmError::Extent { .. } | GemmError::Shape { .. } | GemmError::Read { .. } => 3,
        _ => 1,
    }
}

/// `CODE: text` as one line, `error[CODE]: place: text`.
fn coded(message: &str, place: Option<&str>) -> String {
    let (code, text) = message.split_once(": ").unwrap_or(("CLI-100", message));
    match place {
        Some(place) => format!("error[{code}]: {place}: {text}"),
        None => format!("error[{code}]: {text}"),
    }
}
