//! The `hadal` command.

mod cli;
mod cmd;
mod failure;
mod term;

fn main() -> std::process::ExitCode {
    cli::main()
}
