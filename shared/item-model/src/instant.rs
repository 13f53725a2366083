//! Points in time: UTC with millisecond precision and one spelling.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// An instant: milliseconds since 1970-01-01T00:00:00Z, between the years 0000 and 9999.
///
/// Its text is RFC 3339 in UTC with exactly three decimals, `2017-01-01T11:53:26.000Z`. So text
/// order is time order, and equal instants have equal text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(i64);

/// The function that returns the clock error of this process in seconds.
#[cfg(feature = "clock-steps")]
static STEP: std::sync::OnceLock<fn() -> i64> = std::sync::OnceLock::new();

/// The error for a text that is not an RFC 3339 instant between the years 0000 and 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 instant between the years 0000 and 9999")]
pub struct InstantError;

impl Instant {
    /// 1970-01-01T00:00:00.000Z.
    pub const EPOCH: Self = Self(0);
    /// 0000-01-01T00:00:00.000Z, the smallest.
    pub const MIN: Self = Self(-62_167_219_200_000);
    /// 9999-12-31T23:59:59.999Z, the largest.
    pub const MAX: Self = Self(253_402_300_799_999);

    /// Converts milliseconds since the epoch. Returns `None` outside the years 0000 to 9999.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Option<Self> {
        if millis < Self::MIN.0 || millis > Self::MAX.0 { None } else { Some(Self(millis)) }
    }

    /// Returns the system clock's time.
    #[must_use]
    pub fn now() -> Self {
        let now = Self::from_datetime(OffsetDateTime::now_utc()).unwrap_or(Self::EPOCH);
        #[cfg(feature = "clock-steps")]
        let now = now.plus_seconds(STEP.get().map_or(0, |step| step()));
        now
    }

    /// Sets the clock error of this process, for tests. At each reading, `step` returns the error
    /// in seconds. Only the first call has an effect.
    #[cfg(feature = "clock-steps")]
    pub fn step_clock(step: fn() -> i64) {
        let _ = STEP.set(step);
    }

    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the whole seconds since the epoch, the unit of DynamoDB's time to live.
    #[must_use]
    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Returns this instant moved by some seconds, kept within [`Instant::MIN`] and
    /// [`Instant::MAX`].
    #[must_use]
    pub fn plus_seconds(self, seconds: i64) -> Self {
        self.plus_millis(seconds.saturating_mul(1000))
    }

    /// Returns this instant moved by some milliseconds, kept within [`Instant::MIN`] and
    /// [`Instant::MAX`].
    #[must_use]
    pub fn plus_millis(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis).clamp(Self::MIN.0, Self::MAX.0))
    }

    /// Returns the calendar year in UTC.
    #[must_use]
    pub fn year(self) -> i32 {
        self.datetime().year()
    }

    /// Returns the calendar month in UTC, from 1 to 12.
    #[must_use]
    pub fn month(self) -> u8 {
        u8::from(self.datetime().month())
    }

    /// Returns the day in UTC, such as `2017-01-01`.
    #[must_use]
    pub fn day(self) -> String {
        self.to_string().chars().take(10).collect()
    }

    /// Returns the seconds until the next day begins in UTC, from 1 to 86,400.
    #[must_use]
    pub const fn seconds_left_of_day(self) -> i64 {
        const DAY: i64 = 24 * 60 * 60;
        DAY - self.as_seconds().rem_euclid(DAY)
    }

    fn from_datetime(at: OffsetDateTime) -> Option<Self> {
        i64::try_from(at.unix_timestamp_nanos().div_euclid(1_000_000)).ok().and_then(Self::from_millis)
    }

    fn datetime(self) -> OffsetDateTime {
        // Every instant is in range, so the fallback is never used.
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000).unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.datetime();
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            at.year(),
            u8::from(at.month()),
            at.day(),
            at.hour(),
            at.minute(),
            at.second(),
            at.millisecond()
        )
    }
}

impl FromStr for Instant {
    type Err = InstantError;

    /// Parses any RFC 3339 instant, and drops digits beyond the millisecond.
    fn from_str(text: &str) -> Result<Self, InstantError> {
        let at = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| InstantError)?;
        Self::from_datetime(at).ok_or(InstantError)
    }
}

impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
