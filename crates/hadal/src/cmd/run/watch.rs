//! What is seen of a run while it goes on: the trace and the progress bar.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use hadal::ir::encode::{Item, Lowered};
use hadal::isa::text;
use hadal::sim::Observer;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::term::Term;

/// Work shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_secs(2);

/// Watches a run.
pub(super) struct Watch<'a> {
    trace: Option<String>,
    /// Present when the steps are those of the streams.
    streams: Option<&'a Lowered>,
    core: usize,
    steps: u64,
    /// Steps of the core so far; counts bundles and operators without one alike.
    position: usize,
    begin: Instant,
    bar: Option<ProgressBar>,
    may_show: bool,
}

impl<'a> Watch<'a> {
    pub(super) fn new(trace: bool, lowered: &'a Lowered, bundles: bool, term: Term) -> Self {
        Watch {
            trace: trace.then(String::new),
            streams: bundles.then_some(lowered),
            core: 0,
            steps: 0,
            position: 0,
            begin: Instant::now(),
            bar: None,
            may_show: !term.quiet && std::io::stderr().is_terminal(),
        }
    }

    /// Ends the watch; the trace, if one was asked for.
    pub(super) fn finish(self) -> Option<String> {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
        self.trace
    }

    fn progress(&mut self) {
        if !self.may_show {
            return;
        }
        if self.bar.is_none() && self.begin.elapsed() >= PATIENCE {
            let bar = ProgressBar::with_draw_target(Some(self.steps), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("core {msg} [{bar:40}] {pos}/{len} steps, {eta} left");
            if let Ok(style) = style {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_message(self.core.to_string());
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.position as u64);
        }
    }
}

impl Observer for Watch<'_> {
    fn step(&mut self, index: usize, name: &str) {
        if let Some(trace) = &mut self.trace {
            trace.push_str(&format!("{}\t{index}\t{name}", self.core));
            let item = self
                .streams
                .and_then(|l| Some((l.target, l.cores.get(self.core)?.items.get(self.position)?)));
            if let Some((target, Item::Bundle(b))) = item {
                trace.push('\t');
                text::print_into(trace, &b.word, target);
            }
            trace.push('\n');
        }
        self.position += 1;
        self.progress();
    }

    fn core(&mut self, core: usize, steps: usize) {
        self.core = core;
        self.position = 0;
        self.steps = steps as u64;
        if let Some(bar) = &self.bar {
            bar.set_length(self.steps);
            bar.set_message(core.to_string());
        }
    }
}
