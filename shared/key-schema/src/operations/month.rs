//! Months of metrics, for deployments that have a table for each month of points.
//!
//! All points of a month are in one table: the table of the month or, if the month has no table,
//! the main table. So the table of a month must exist before the month begins
//! ([`CREATE_AHEAD_SECONDS`]).

use std::fmt;

use crate::instant::Instant;
use crate::metric::{LIFETIME_SECONDS, MAX_AHEAD_SECONDS};

/// A table is created at least this long before its month begins, or never. A Lambda function
/// remembers for some minutes that a table is missing, and the instants of points may be
/// [`MAX_AHEAD_SECONDS`] in the future.
pub const CREATE_AHEAD_SECONDS: i64 = 60 * 60;

/// A calendar month in UTC, as the number of months since the year 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month(i64);

impl Month {
    #[must_use]
    pub fn of(at: Instant) -> Self {
        Self(i64::from(at.year()) * 12 + i64::from(at.month()) - 1)
    }

    /// Returns the months of the points that are visible at `now`, oldest first, at most three.
    pub fn visible(now: Instant) -> impl Iterator<Item = Self> {
        let (first, last) = (now.plus_seconds(-LIFETIME_SECONDS), now.plus_seconds(MAX_AHEAD_SECONDS));
        (Self::of(first).0..=Self::of(last).0).map(Self)
    }

    /// Returns the month that is `months` later, or earlier if `months` is negative.
    #[must_use]
    pub const fn plus(self, months: i64) -> Self {
        Self(self.0.saturating_add(months))
    }

    /// Returns the first instant of the month.
    #[must_use]
    pub fn begins(self) -> Instant {
        let bound = if self.0 < 0 { Instant::MIN } else { Instant::MAX };
        format!("{self}-01T00:00:00.000Z").parse().unwrap_or(bound)
    }

    /// Returns the last instant of the month.
    #[must_use]
    pub fn ends(self) -> Instant {
        self.plus(1).begins().plus_millis(-1)
    }

    /// Returns the name of the month's table, such as `shop-metrics-2017-01` for the main table
    /// `shop`.
    #[must_use]
    pub fn table(self, main: &str) -> String {
        format!("{main}-metrics-{self}")
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.0.div_euclid(12), self.0.rem_euclid(12) + 1)
    }
}
