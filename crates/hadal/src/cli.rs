//! The command line.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::cmd;
use crate::failure::Failure;
use crate::term::Term;

const EXAMPLES: &str = "\
Examples:
  hadal run kernel.klr --target trn2            execute a kernel on inputs from seed 0
  hadal verify program.bir.json --target trn1   every broken rule, with what to do
  hadal compile kernel.klr --target trn2 -o kernel.bin
  hadal dis kernel.bin --target trn2 --fields   every byte with its name and meaning

Exit codes: 0 done; 2 usage; 3 input unreadable or malformed; 4 verification failed;
5 execution failed; 6 two results that must agree differ; 1 anything else.";

/// Programs for the tensor engine of AWS Trainium: verify, lower to 64-byte bundles, disassemble, and
/// execute to the bit.
#[derive(Debug, Parser)]
#[command(name = "hadal", version, after_help = EXAMPLES, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
struct Common {
    /// Print the result as JSON; diagnostics stay on standard error.
    #[arg(long, global = true, help_heading = "Common options")]
    json: bool,
    /// When to colour.
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Common options"
    )]
    color: Color,
    /// Print errors and asked-for results only.
    #[arg(short, long, global = true, help_heading = "Common options")]
    quiet: bool,
    /// Threads to use; results never depend on it [default: all cores].
    #[arg(long, global = true, value_name = "N", help_heading = "Common options")]
    threads: Option<NonZeroUsize>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(cmd::run::RunArgs),
    Compile(cmd::compile::CompileArgs),
    Dis(cmd::dis::DisArgs),
    Asm(cmd::asm::AsmArgs),
    Verify(cmd::verify::VerifyArgs),
    Isa(cmd::isa::IsaArgs),
    Cast(cmd::cast::CastArgs),
    Mx(cmd::mx::MxArgs),
    Probe(cmd::probe::ProbeArgs),
    Gemm(cmd::gemm::GemmArgs),
}

/// Parses the command line, runs the command, reports.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    #[cfg(unix)]
    crate::signals::tidy();
    let choice = match cli.common.color {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
    let term = Term { quiet: cli.common.quiet, json: cli.common.json };
    let result = threads(cli.common.threads).and_then(|()| match &cli.command {
        Command::Run(args) => cmd::run::run(args, term),
        Command::Compile(args) => cmd::compile::run(args, term),
        Command::Dis(args) => cmd::dis::run(args, term),
        Command::Asm(args) => cmd::asm::run(args, term),
        Command::Verify(args) => cmd::verify::run(args, term),
        Command::Isa(args) => cmd::isa::run(args, term),
        Command::Cast(args) => cmd::cast::run(args, term),
        Command::Mx(args) => cmd::mx::run(args, term),
        Command::Probe(args) => cmd::probe::run(args, term),
        Command::Gemm(args) => cmd::gemm::run(args, term),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let text = failure.to_string();
            if !text.is_empty() {
                term.complain(&text);
            }
            ExitCode::from(failure.exit_code())
        }
    }
}

fn threads(n: Option<NonZeroUsize>) -> Result<(), Failure> {
    let Some(n) = n else { return Ok(()) };
    // Threads beyond the cores only cost; a few are allowed, to show that results do not depend on them.
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    rayon::ThreadPoolBuilder::new()
        .num_threads(n.get().min(cores.max(16)))
        .build_global()
        .map_err(|e| Failure::System { text: format!("cannot start {n} threads: {e}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
