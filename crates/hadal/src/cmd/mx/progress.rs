//! A bar for long work on a terminal.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::term::Term;

/// Work shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_secs(2);

/// How far work on so many bytes is.
pub(super) struct Progress {
    total: u64,
    done: u64,
    begin: Instant,
    bar: Option<ProgressBar>,
    may_show: bool,
}

impl Progress {
    pub(super) fn new(total: u64, term: Term) -> Self {
        let may_show = !term.quiet && std::io::stderr().is_terminal();
        Progress { total, done: 0, begin: Instant::now(), bar: None, may_show }
    }

    /// More bytes are done.
    pub(super) fn advance(&mut self, bytes: u64) {
        self.done += bytes;
        if !self.may_show {
            return;
        }
        if self.bar.is_none() && self.begin.elapsed() >= PATIENCE {
            let bar = ProgressBar::with_draw_target(Some(self.total), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("[{bar:40}] {bytes} of {total_bytes}, {eta} left");
            if let Ok(style) = style {
                bar.set_style(style.progress_chars("=> "));
            }
            // The estimate counts from the beginning, not from when the bar came up.
            self.bar = Some(bar.with_elapsed(self.begin.elapsed()));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
