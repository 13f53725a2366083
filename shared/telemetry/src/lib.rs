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

use std::str::FromStr as _;
use std::sync::OnceLock;

use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

pub use crash::{CRASH_POINTS, crash_point};
pub use deadline::time_left;

/// The shared crates to which [`init`] applies the level, too.
const SHARED: [&str; 3] = ["http_api", "table", "search_index"];

static FUNCTION: OnceLock<&'static str> = OnceLock::new();

/// Sends log events to standard output, one JSON object on each line, and sets the function's name
/// for the metrics.
///
/// `function` is the name of the function's crate. The level comes from `RUST_LOG`, otherwise from
/// `AWS_LAMBDA_LOG_LEVEL` (which the function's logging configuration sets), and is `info` by
/// default. The level applies to the function's crate and to `http_api`, `table` and
/// `search_index`. All other crates log at `info` at most. At finer levels the runtime and the SDK
/// log whole events and requests, with tokens and bodies.
///
/// A second call changes nothing, so that tests may call it repeatedly.
pub fn init(function: &'static str) {
    let _ = FUNCTION.set(function);
    let level = level(|name| std::env::var(name).ok());
    let format = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false)
        .with_writer(std::io::stdout);
    // The only error is that a subscriber is already installed, by an earlier call.
    let _ = tracing_subscriber::registry().with(targets(function, level)).with(format).try_init();
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

fn level(variable: impl Fn(&str) -> Option<String>) -> LevelFilter {
    ["RUST_LOG", "AWS_LAMBDA_LOG_LEVEL"]
        .into_iter()
        .filter_map(variable)
        .find_map(|value| match value.trim() {
            // Lambda has this level above ERROR, and `tracing` does not.
            "FATAL" => Some(LevelFilter::ERROR),
            "" => None,
            name => LevelFilter::from_str(name).ok(),
        })
        .unwrap_or(LevelFilter::INFO)
}

fn targets(function: &'static str, level: LevelFilter) -> Targets {
    let others = level.min(LevelFilter::from_level(Level::INFO));
    SHARED
        .into_iter()
        .chain([function])
        .fold(Targets::new().with_default(others), |all, ours| all.with_target(ours, level))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &'static [(&str, &str)]) -> LevelFilter {
        level(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn the_level_comes_from_the_first_variable_with_a_valid_level() {
        assert_eq!(with(&[]), LevelFilter::INFO);
        assert_eq!(with(&[("AWS_LAMBDA_LOG_LEVEL", "DEBUG")]), LevelFilter::DEBUG);
        assert_eq!(with(&[("AWS_LAMBDA_LOG_LEVEL", "FATAL")]), LevelFilter::ERROR);
        assert_eq!(with(&[("RUST_LOG", "warn"), ("AWS_LAMBDA_LOG_LEVEL", "DEBUG")]), LevelFilter::WARN);
        assert_eq!(with(&[("RUST_LOG", "table=debug"), ("AWS_LAMBDA_LOG_LEVEL", "WARN")]), LevelFilter::WARN);
    }

    #[test]
    fn a_detailed_log_level_applies_to_our_crates_but_not_to_crates_that_log_whole_events() {
        let targets = targets("customers", LevelFilter::TRACE);
        assert!(targets.would_enable("customers::create", &Level::TRACE));
        assert!(targets.would_enable("table", &Level::DEBUG));
        assert!(!targets.would_enable("lambda_runtime::layers::api_response", &Level::TRACE));
        assert!(!targets.would_enable("aws_smithy_runtime", &Level::DEBUG));
        assert!(targets.would_enable("aws_smithy_runtime", &Level::INFO));
    }

    #[test]
    fn a_coarse_level_applies_to_every_crate() {
        let targets = targets("customers", LevelFilter::ERROR);
        assert!(!targets.would_enable("customers", &Level::WARN));
        assert!(!targets.would_enable("lambda_runtime", &Level::WARN));
    }

    #[test]
    fn a_second_init_changes_nothing() {
        init("customers");
        init("orders");
        assert_eq!(function(), "customers");
    }
}
