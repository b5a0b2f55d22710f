//! What the command prints: results on standard output, everything else on standard error.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use crate::failure::Failure;

/// `1 bundle`, `2 bundles`.
pub(crate) fn counted(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// How to print.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Term {
    /// Leave out everything that is neither a result asked for nor an error.
    pub(crate) quiet: bool,
    /// Results as JSON.
    pub(crate) json: bool,
}

impl Term {
    /// Prints a result.
    pub(crate) fn out(self, text: &str) -> Result<(), Failure> {
        let mut stdout = anstream::stdout().lock();
        written(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
    }

    /// Prints a JSON result, indented, with a line end.
    pub(crate) fn out_json(self, value: &serde_json::Value) -> Result<(), Failure> {
        self.out(&format!("{value:#}\n"))
    }

    /// Writes bytes as a result.
    pub(crate) fn out_bytes(self, bytes: &[u8]) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        written(stdout.write_all(bytes).and_then(|()| stdout.flush()))
    }

    /// Says something that is no result, unless quiet.
    pub(crate) fn say(self, text: &str) {
        if !self.quiet {
            self.complain(text);
        }
    }

    /// Prints a diagnostic. Nothing can be done if standard error is closed.
    pub(crate) fn complain(self, text: &str) {
        let mut stderr = anstream::stderr().lock();
        let _ = writeln!(stderr, "{}", paint(text));
    }
}

/// A reader that has seen enough (`| head`) is not a failure of ours.
fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Failure::ReaderGone),
        Err(error) => Err(Failure::Stdout { error }),
    }
}

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const PLACE: Style = AnsiColor::Blue.on_default();
const HELP: Style = AnsiColor::Cyan.on_default();

/// Colours the parts of a diagnostic; the stream drops the colours where they are not wanted.
pub(crate) fn paint(text: &str) -> String {
    let paint_line = |line: &str| {
        let head = |style: Style| {
            let (head, rest) = line.split_once(": ").unwrap_or((line, ""));
            let colon = if rest.is_empty() { "" } else { ": " };
            format!("{style}{head}{style:#}{colon}{rest}")
        };
        let marker = |mark: &str, style: Style| {
            line.strip_prefix(mark).map(|rest| format!("{style}{mark}{style:#}{rest}"))
        };
        if line.starts_with("error") {
            return head(ERROR);
        }
        if line.starts_with("warning") || line.starts_with("note") {
            return head(WARNING);
        }
        marker("  -->", PLACE)
            .or_else(|| marker("  = help:", HELP))
            .or_else(|| marker("  = note:", HELP))
            .unwrap_or_else(|| line.to_owned())
    };
    text.lines().map(paint_line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_do_not_change_the_text() {
        let text = "error[V-211]: a: b\n  --> f:1: x\n  = help: do\nplain";
        let painted = paint(text);
        assert_ne!(painted, text);
        assert_eq!(anstream::adapter::strip_str(&painted).to_string(), text);
    }
}
