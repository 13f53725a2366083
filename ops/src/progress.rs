use std::fmt::Write;
use std::io::{IsTerminal as _, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// The template of a bar. A bar has at most 80 columns for up to ten million steps.
const TEMPLATE: &str = "{prefix:>12} {bar:20} {human_pos}/{human_len} {speed} {eta}";
/// The highest speed that is shown. Right after the start, the estimate can be arbitrarily high.
const FASTEST: f64 = 9_999_999.0;

/// The time between two lines if standard error is not a terminal, such as the log of a scheduled
/// run.
const BETWEEN: Duration = Duration::from_secs(30);

/// A progress bar on standard error, which disappears at its end, so that only the summary remains.
/// If standard error is not a terminal, a long run prints a line from time to time instead.
#[derive(Debug)]
pub struct Progress(ProgressBar, Option<Lines>);

#[derive(Debug)]
struct Lines {
    what: &'static str,
    last: Mutex<Instant>,
}

impl Lines {
    /// Returns the line that is due, if the last one is old enough.
    fn due(&self, now: Instant, position: u64, length: Option<u64>) -> Option<String> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(*last) < BETWEEN {
            return None;
        }
        *last = now;
        let of = length.map(|length| format!(" of about {length}")).unwrap_or_default();
        Some(format!("{}: {position}{of}", self.what))
    }
}

impl Progress {
    /// Creates a bar named `what` with about `length` steps.
    #[must_use]
    pub fn new(what: &'static str, length: Option<u64>) -> Self {
        if !stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden());
            return Self(bar, Some(Lines { what, last: Mutex::new(Instant::now()) }));
        }
        Self(styled(length.map_or_else(ProgressBar::no_length, ProgressBar::new), what), None)
    }

    #[must_use]
    pub fn hidden() -> Self {
        Self(ProgressBar::hidden(), None)
    }

    /// Adds completed steps. The length is an estimate, so it grows when the steps exceed it.
    pub fn step(&self, steps: usize) {
        self.0.inc(u64::try_from(steps).unwrap_or_default());
        if self.0.length().is_some_and(|length| length < self.0.position()) {
            self.0.set_length(self.0.position());
        }
        let Some(lines) = &self.1 else { return };
        if let Some(line) = lines.due(Instant::now(), self.0.position(), self.0.length()) {
            eprintln!("{line}");
        }
    }
}

fn styled(bar: ProgressBar, what: &'static str) -> ProgressBar {
    // The template is constant. If it were invalid, the default bar would be shown.
    if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
        bar.set_style(style.with_key("speed", |state: &ProgressState, f: &mut dyn Write| {
            // The bar has no way to report a write error.
            let _ = write!(f, "{:.0}/s", state.per_sec().min(FASTEST));
        }));
    }
    bar.with_prefix(what)
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;

    /// A terminal that is wide enough for every line and records the lines.
    #[derive(Debug, Clone, Default)]
    struct Terminal(Arc<Mutex<Vec<String>>>);

    impl TermLike for Terminal {
        fn width(&self) -> u16 {
            1_000
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, line: &str) -> io::Result<()> {
            self.write_str(line)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push(text.trim().to_owned());
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_bar_fits_eighty_columns_and_has_whole_numbers() {
        let terminal = Terminal::default();
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(terminal.clone()), 255);
        let bar = styled(ProgressBar::with_draw_target(Some(10_000_000), target), "products");
        bar.inc(9_999_999);
        bar.tick();
        let lines = terminal.0.lock().unwrap().clone();
        let line = lines.iter().rfind(|line| line.starts_with("products")).unwrap();
        // The template right-aligns the prefix in 12 columns. The terminal has trimmed 4 leading
        // spaces.
        assert!(line.chars().count() + 4 <= 80, "{line}");
        assert!(line.contains("9,999,999/10,000,000 ") && line.contains("/s") && !line.contains('.'), "{line}");
    }

    #[test]
    fn a_long_run_without_a_terminal_prints_a_line_every_half_minute() {
        let began = Instant::now();
        let lines = Lines { what: "backfill", last: Mutex::new(began) };
        let mut printed = Vec::new();
        for second in 1..=100 {
            printed.extend(lines.due(began + Duration::from_secs(second), second * 10, Some(5_000)));
        }
        assert_eq!(
            printed,
            ["backfill: 300 of about 5000", "backfill: 600 of about 5000", "backfill: 900 of about 5000"]
        );
        assert_eq!(lines.due(began + Duration::from_secs(200), 7, None).as_deref(), Some("backfill: 7"));
    }
}
