//! A bar for long products on a terminal.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::term::Term;

/// Work shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_secs(2);

/// How far a product is.
pub(super) struct Progress {
    what: String,
    begin: Instant,
    bar: Option<ProgressBar>,
    may_show: bool,
}

impl Progress {
    pub(super) fn new(what: String, term: Term) -> Self {
        let may_show = !term.quiet && std::io::stderr().is_terminal();
        Progress { what, begin: Instant::now(), bar: None, may_show }
    }

    /// `done` of `all` steps are done.
    pub(super) fn at(&mut self, done: u64, all: u64) {
        if !self.may_show {
            return;
        }
        if self.bar.is_none() && self.begin.elapsed() >= PATIENCE {
            let bar = ProgressBar::with_draw_target(Some(all), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{msg} [{bar:40}] {percent} %, {eta} left");
            if let Ok(style) = style {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_message(self.what.clone());
            // The estimate counts from the beginning, not from when the bar came up.
            self.bar = Some(bar.with_elapsed(self.begin.elapsed()));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(done);
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
