//! How long caches may keep public pages.
//!
//! A public page is the same for every caller, so caches may keep it. `Routes` adds the headers to
//! the response of each public GET route. The public setting `caching` has the times. An
//! environment reads the settings at most once every 30 seconds. If it cannot read them, the
//! defaults apply, because a page is more useful than an error.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Deserialize;

pub const NAME: &str = "caching";
/// The valid times in seconds.
pub const SECONDS: RangeInclusive<u64> = 0..=86_400;

/// The times of a public page in caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caching {
    /// The time for which a cache may use a page without asking again.
    pub max_age: Duration,
    /// The time after that, in which a cache may still use the page while it asks again.
    pub stale_while_revalidate: Duration,
}

impl Default for Caching {
    fn default() -> Self {
        Self { max_age: Duration::from_secs(5), stale_while_revalidate: Duration::from_secs(30) }
    }
}

impl Caching {
    /// Returns the times that the public values of the settings contain. A time that is missing has
    /// its default.
    #[must_use]
    pub fn of(values: &str) -> Self {
        #[derive(Deserialize)]
        struct Values {
            caching: Option<Times>,
        }
        #[derive(Deserialize)]
        struct Times {
            max_age_seconds: Option<u64>,
            stale_while_revalidate_seconds: Option<u64>,
        }
        let default = Self::default();
        let Ok(Values { caching: Some(times) }) = serde_json::from_str(values) else { return default };
        let time = |seconds: Option<u64>, otherwise| seconds.map_or(otherwise, Duration::from_secs);
        Self {
            max_age: time(times.max_age_seconds, default.max_age),
            stale_while_revalidate: time(times.stale_while_revalidate_seconds, default.stale_while_revalidate),
        }
    }

    /// Returns the header. Both times together are at most `limit`.
    pub(crate) fn header(self, limit: Option<Duration>) -> String {
        let limit = limit.unwrap_or(Duration::MAX);
        let max_age = self.max_age.min(limit);
        let stale = self.stale_while_revalidate.min(limit.saturating_sub(max_age));
        format!("public, max-age={}, stale-while-revalidate={}", max_age.as_secs(), stale.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_and_the_limit_of_a_page_determine_the_times() {
        let header = |values: &str, limit: Option<u64>| Caching::of(values).header(limit.map(Duration::from_secs));
        let defaults = "public, max-age=5, stale-while-revalidate=30";
        for values in
            ["{}", r#"{"caching":null}"#, r#"{"caching":{}}"#, "", r#"{"a":{"caching":{"max_age_seconds":1}}}"#]
        {
            assert_eq!(header(values, None), defaults, "{values}");
        }
        let hour = r#"{"caching":{"max_age_seconds":3600,"stale_while_revalidate_seconds":60}}"#;
        assert_eq!(header(hour, None), "public, max-age=3600, stale-while-revalidate=60");
        assert_eq!(header(hour, Some(3610)), "public, max-age=3600, stale-while-revalidate=10");
        assert_eq!(header(hour, Some(900)), "public, max-age=900, stale-while-revalidate=0");
    }
}
