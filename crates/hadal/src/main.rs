//! The `hadal` command.

mod cli;
mod cmd;
mod failure;
#[cfg(unix)]
mod signals;
mod term;

fn main() -> std::process::ExitCode {
    cli::main()
}
