use std::time::{Duration, SystemTime};

use key_schema::product::{MAX_STOCK, STOCK_LOW};
use tokio::time::Instant;

#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The maximum number of concurrent lanes, and of concurrent writes to the quarantine.
    pub concurrency: usize,
    /// How long before the deadline the consumer stops, so that it can still respond.
    pub margin: Duration,
    /// A stock below this number of units is low ([`crate::transitions`]).
    pub stock_low: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// `SINKS` is missing or empty.
    #[error("the environment variable SINKS names no sink")]
    NoSinks,
    #[error("SINKS names an unknown sink: {0}")]
    UnknownSink(String),
    #[error("SINKS names a sink twice: {0}")]
    RepeatedSink(String),
    /// A variable is not a number, or is out of range.
    #[error("the environment variable {name} must be a number from {low} to {high}")]
    Number {
        name: &'static str,
        /// The smallest value.
        low: u64,
        high: u64,
    },
    #[error(transparent)]
    Table(#[from] table::SetupError),
    #[error(transparent)]
    Search(#[from] search_index::ConfigError),
    /// The event bus's client cannot be set up: `BUS_NAME` is missing, or TLS fails.
    #[error(transparent)]
    Bus(bus::SetupError),
    /// A bucket's client cannot be set up: its variable is missing, or TLS cannot be initialised.
    #[error(transparent)]
    Objects(storage::SetupError),
}

impl Default for Settings {
    fn default() -> Self {
        Self { concurrency: 8, margin: Duration::from_millis(1000), stock_low: STOCK_LOW }
    }
}

impl Settings {
    /// Reads `STREAM_CONCURRENCY` (1 to 64, default 8), `STREAM_DEADLINE_MARGIN_MS` (50 to 60,000,
    /// default 1,000) and `STOCK_LOW_THRESHOLD` (0 to 1,000,000,000,000, default 10).
    pub fn from_env() -> Result<Self, StartError> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&'static str) -> Option<String>) -> Result<Self, StartError> {
        let number = |name, low: u64, high: u64| {
            let parse = |text: String| {
                let number = text.trim().parse().ok().filter(|number| (low..=high).contains(number));
                number.ok_or(StartError::Number { name, low, high })
            };
            variable(name).filter(|text| !text.is_empty()).map(parse).transpose()
        };
        let default = Self::default();
        let concurrency = number("STREAM_CONCURRENCY", 1, 64)?;
        let margin = number("STREAM_DEADLINE_MARGIN_MS", 50, 60_000)?;
        let stock_low = number("STOCK_LOW_THRESHOLD", 0, MAX_STOCK)?;
        Ok(Self {
            concurrency: concurrency.and_then(|number| usize::try_from(number).ok()).unwrap_or(default.concurrency),
            margin: margin.map_or(default.margin, Duration::from_millis),
            stock_low: stock_low.unwrap_or(default.stock_low),
        })
    }

    /// Returns when to stop, for an invocation that Lambda ends at `deadline`.
    #[must_use]
    pub fn stop(&self, deadline: SystemTime) -> Instant {
        Instant::now() + telemetry::time_left(deadline).saturating_sub(self.margin)
    }
}

/// Returns the names in `SINKS`, and refuses a repeated name.
pub(crate) fn sinks(names: Option<&str>) -> Result<Vec<&str>, StartError> {
    let mut sinks: Vec<&str> = Vec::new();
    for name in names.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if sinks.contains(&name) {
            return Err(StartError::RepeatedSink(name.to_owned()));
        }
        sinks.push(name);
    }
    if sinks.is_empty() { Err(StartError::NoSinks) } else { Ok(sinks) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn settings_have_defaults_and_bounds() {
        let with = |value: &'static str| Settings::from_variables(move |_| Some(value.to_owned()));
        assert_eq!(with("").unwrap().concurrency, 8);
        assert_eq!(with("60").unwrap().concurrency, 60);
        assert_eq!(with("60").unwrap().margin, Duration::from_millis(60));
        assert_eq!((with("").unwrap().stock_low, with("60").unwrap().stock_low), (10, 60));
        for bad in ["0", "-1", "65", "many", "1e3", "99999999999999999999"] {
            assert!(matches!(with(bad), Err(StartError::Number { name: "STREAM_CONCURRENCY", .. })), "{bad}");
        }
    }

    #[test]
    fn each_sink_is_named_once_and_at_least_one_is_required() {
        assert_eq!(sinks(Some("search, derived")).unwrap(), ["search", "derived"]);
        assert!(matches!(sinks(None), Err(StartError::NoSinks)));
        assert!(matches!(sinks(Some(" , ")), Err(StartError::NoSinks)));
        assert!(matches!(sinks(Some("search,search")), Err(StartError::RepeatedSink(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn the_consumer_stops_before_the_deadline_with_the_margin_left() {
        let settings = Settings { margin: Duration::from_secs(3600), ..Settings::default() };
        let in_two_hours = SystemTime::now() + Duration::from_secs(7200);
        assert!(settings.stop(in_two_hours) <= Instant::now() + Duration::from_secs(3600));
        assert!(settings.stop(in_two_hours) > Instant::now() + Duration::from_secs(3500));
        assert_eq!(settings.stop(SystemTime::UNIX_EPOCH), Instant::now());
    }
}
