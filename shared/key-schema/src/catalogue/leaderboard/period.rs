use std::fmt;

use serde::{Deserialize, Serialize};

use crate::instant::Instant;

/// The number of days from the end of a week until the counts of the week's days expire.
pub const DAYS_KEPT: i64 = 35;
/// The number of days from the Monday of a week until the week's board expires: about 15 months.
pub const WEEK_KEPT: i64 = 455;

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// The time that a count covers, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Period {
    All,
    /// The day that begins at this instant.
    Day(Instant),
    /// The week of ISO 8601 whose Monday begins at this instant.
    Week(Instant),
}

/// An error for a text that is not a stored period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not ALL, a day such as 2017-01-01, or a Monday such as W2017-01-02")]
pub struct PeriodError;

impl Period {
    #[must_use]
    pub fn day(at: Instant) -> Self {
        Self::Day(midnight(at))
    }

    #[must_use]
    pub fn week(at: Instant) -> Self {
        Self::Week(monday(at))
    }

    /// Returns the first and the last day, or `None` for all time.
    #[must_use]
    pub fn days(self) -> Option<(Instant, Instant)> {
        match self {
            Self::All => None,
            Self::Day(day) => Some((day, day)),
            Self::Week(monday) => Some((monday, monday.plus_seconds(6 * DAY_SECONDS))),
        }
    }

    /// Returns when the counts of this period expire. All days of a week expire together.
    #[must_use]
    pub fn expires(self) -> Option<Instant> {
        match self {
            Self::All => None,
            Self::Day(day) => Some(monday(day).plus_seconds((7 + DAYS_KEPT) * DAY_SECONDS)),
            Self::Week(monday) => Some(monday.plus_seconds(WEEK_KEPT * DAY_SECONDS)),
        }
    }

    #[must_use]
    pub fn is_expired(self, now: Instant) -> bool {
        self.expires().is_some_and(|at| at <= now)
    }
}

fn midnight(at: Instant) -> Instant {
    at.plus_millis(-at.as_millis().rem_euclid(DAY_SECONDS * 1000))
}

fn monday(at: Instant) -> Instant {
    // Day 0, 1970-01-01, was a Thursday.
    let since_monday = (at.as_seconds().div_euclid(DAY_SECONDS) + 3).rem_euclid(7);
    midnight(at).plus_seconds(-since_monday * DAY_SECONDS)
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("ALL"),
            Self::Day(day) => f.write_str(&day.day()),
            Self::Week(monday) => write!(f, "W{}", monday.day()),
        }
    }
}

impl From<Period> for String {
    fn from(period: Period) -> Self {
        period.to_string()
    }
}

impl TryFrom<String> for Period {
    type Error = PeriodError;

    fn try_from(text: String) -> Result<Self, PeriodError> {
        let day = |text: &str| format!("{text}T00:00:00Z").parse().map_err(|_| PeriodError);
        let period = match text.strip_prefix('W') {
            _ if text == "ALL" => Self::All,
            Some(monday) => Self::week(day(monday)?),
            None => Self::day(day(&text)?),
        };
        if period.to_string() == text { Ok(period) } else { Err(PeriodError) }
    }
}
