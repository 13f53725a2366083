//! Progress bars, where somebody looks at them.

use std::io::{IsTerminal as _, stderr};

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on standard error if that is a terminal, and nothing at all otherwise. It disappears at its end: what remains is the summary.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar for `what`, of about so many steps.
    #[must_use]
    pub fn new(what: &'static str, length: Option<u64>) -> Self {
        if !stderr().is_terminal() {
            return Self::hidden();
        }
        let bar = length.map_or_else(ProgressBar::no_length, ProgressBar::new);
        // The template is a constant; were it wrong, the default bar would do.
        if let Ok(style) = ProgressStyle::with_template("{prefix:>12} {bar:40} {human_pos}/{human_len} {per_sec} {eta}")
        {
            bar.set_style(style);
        }
        bar.set_prefix(what);
        Self(bar)
    }

    /// No bar.
    #[must_use]
    pub fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    /// So many steps more are done. The length was a guess: it grows with what is done.
    pub fn step(&self, steps: usize) {
        self.0.inc(u64::try_from(steps).unwrap_or_default());
        if self.0.length().is_some_and(|length| length < self.0.position()) {
            self.0.set_length(self.0.position());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
