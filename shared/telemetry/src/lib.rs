//! Logs and metrics for CloudWatch, on a function's standard output: one JSON object on each line.
//!
//! There are two kinds of lines. Log events go through `tracing` and the formatter that [`init`]
//! installs. Measurements are [`emf::Line`]s, such as the line of each request. CloudWatch extracts
//! the metrics from such a line without a call from the function, and keeps the line as a log
//! entry.
//!
//! Neither kind may contain bodies, tokens, query values or personal data.

pub mod correlation;
pub mod crash;
mod deadline;
pub mod emf;

use std::sync::OnceLock;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

pub use crash::{CRASH_POINTS, crash_point};
pub use deadline::time_left;

static FUNCTION: OnceLock<&'static str> = OnceLock::new();

/// Sends log events to standard output, one JSON object on each line, and sets the function's name
/// for the metrics.
///
/// `function` is the name of the function's crate. The level is INFO. At finer levels the runtime
/// and the SDK would log whole events and requests, with tokens and bodies, so a release build does
/// not even contain these lines.
///
/// A second call changes nothing, so that tests may call it repeatedly.
pub fn init(function: &'static str) {
    let _ = FUNCTION.set(function);
    let format = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false)
        .with_writer(std::io::stdout);
    // The only error is that a subscriber is already installed, by an earlier call.
    let _ = tracing_subscriber::registry().with(LevelFilter::INFO).with(format).try_init();
}

/// Returns whether [`init`] was called. Only functions call [`init`].
#[must_use]
pub fn is_initialized() -> bool {
    FUNCTION.get().is_some()
}

/// Returns the name that [`init`] got, or `unknown` before its call.
#[must_use]
pub fn function() -> &'static str {
    FUNCTION.get().copied().unwrap_or("unknown")
}

/// Returns the name of the deployment from the environment variable `STAGE`, or an empty text.
#[must_use]
pub fn stage() -> &'static str {
    static STAGE: OnceLock<String> = OnceLock::new();
    STAGE.get_or_init(|| std::env::var("STAGE").unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_below_info_are_not_written_because_they_contain_tokens() {
        init("customers");
        assert!(tracing::enabled!(tracing::Level::INFO));
        assert!(!tracing::enabled!(tracing::Level::DEBUG));
    }

    #[test]
    fn a_second_init_changes_nothing() {
        init("customers");
        init("orders");
        assert_eq!(function(), "customers");
    }
}
