//! The grace period: how long the janitor leaves work to the function that began it.

use key_schema::instant::Instant;

const DEFAULT_SECONDS: u32 = 60;
/// The longest grace period: a day. During the grace period, the stock of an abandoned order stays
/// reserved.
const MOST_SECONDS: u32 = 24 * 60 * 60;

/// A grace period in seconds: how long the janitor leaves work to the function that began it.
///
/// The environment sets it as `JANITOR_GRACE_SECONDS` (1 to 86,400, default 60). It must exceed the
/// timeout of every function whose work the janitor continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace(u32);

/// `JANITOR_GRACE_SECONDS` is not a valid number of seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable JANITOR_GRACE_SECONDS must be a number from 1 to {MOST_SECONDS}")]
pub struct GraceError;

impl Grace {
    /// Creates a grace period of this many seconds, independent of the environment.
    #[must_use]
    pub const fn seconds(seconds: u32) -> Self {
        Self(seconds)
    }

    pub fn from_variable(given: Option<&str>) -> Result<Self, GraceError> {
        let Some(text) = given.map(str::trim).filter(|text| !text.is_empty()) else {
            return Ok(Self(DEFAULT_SECONDS));
        };
        let number = text.parse().ok().filter(|number| (1..=MOST_SECONDS).contains(number));
        number.map(Self).ok_or(GraceError)
    }

    /// Returns the start of the grace period that ends at `now`. The janitor handles work that
    /// began then or earlier.
    pub(crate) fn before(self, now: Instant) -> Instant {
        now.plus_seconds(-i64::from(self.0))
    }

    /// Returns the instant two grace periods ago. The janitor finishes erasures that deleted the
    /// profile then or earlier. A stream consumer that read the profile before its deletion may
    /// archive items until the consumer's timeout. A test checks that twice the grace period is
    /// longer than that timeout.
    pub(crate) fn twice_before(self, now: Instant) -> Instant {
        self.before(self.before(now))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_grace_is_a_minute_by_default_and_a_day_at_most() {
        assert_eq!(Grace::from_variable(None), Ok(Grace(60)));
        assert_eq!(Grace::from_variable(Some("")), Ok(Grace(60)));
        assert_eq!(Grace::from_variable(Some(" 90 ")), Ok(Grace(90)));
        for bad in ["0", "86401", "-1", "a minute", "1.5"] {
            assert_eq!(Grace::from_variable(Some(bad)), Err(GraceError), "{bad}");
        }
    }

    #[test]
    fn work_that_began_within_the_grace_is_left_alone() {
        let now: Instant = "2026-11-20T12:00:00.000Z".parse().unwrap();
        assert_eq!(Grace::seconds(0).before(now), now);
        assert_eq!(Grace::seconds(90).before(now).to_string(), "2026-11-20T11:58:30.000Z");
        assert_eq!(Grace::seconds(90).twice_before(now).to_string(), "2026-11-20T11:57:00.000Z");
        assert_eq!(Grace::seconds(u32::MAX).before(Instant::MIN), Instant::MIN);
    }
}
