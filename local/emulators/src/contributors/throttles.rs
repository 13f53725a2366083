use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use time::OffsetDateTime;

/// Number of minutes for which counts are kept. CloudWatch keeps 15 days.
const KEPT_MINUTES: i64 = 180;
/// Maximum number of keys per minute. CloudWatch keeps the same number of contributors for a rule.
const KEPT_KEYS: usize = 500;
const MINUTE: i64 = 60;

/// Clones share the counts: the table's proxy writes them, and the report reads them.
#[derive(Debug, Clone)]
pub struct Throttles {
    minutes: Arc<Mutex<BTreeMap<i64, BTreeMap<String, u64>>>>,
    /// Time at which the counting began, in milliseconds. It is a part of the name from
    /// [`Throttles::rule`].
    began: i128,
}

/// A key with its counts per minute. The map's key is the start of the minute in seconds since
/// 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Throttled {
    pub(super) key: String,
    pub(super) minutes: BTreeMap<i64, u64>,
}

impl Throttled {
    pub(super) fn total(&self) -> u64 {
        self.minutes.values().sum()
    }
}

impl Default for Throttles {
    fn default() -> Self {
        Self { minutes: Arc::default(), began: OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000 }
    }
}

impl Throttles {
    /// Returns the name of the rule that counts the throttled partition keys of a table.
    #[must_use]
    pub fn rule(&self, table: &str) -> String {
        format!("DynamoDBContributorInsights-PKT-{table}-{}", self.began)
    }

    pub(crate) fn record(&self, key: &str) {
        self.record_at(key, OffsetDateTime::now_utc().unix_timestamp());
    }

    /// Counts a request that was throttled at this time, in seconds since 1970.
    pub fn record_at(&self, key: &str, at: i64) {
        let minute = at.div_euclid(MINUTE) * MINUTE;
        let mut minutes = self.minutes();
        let keys = minutes.entry(minute).or_default();
        if let Some(count) = keys.get_mut(key) {
            *count += 1;
        } else if keys.len() < KEPT_KEYS {
            keys.insert(key.to_owned(), 1);
        }
        if let Some(newest) = minutes.last_key_value().map(|(minute, _)| *minute) {
            minutes.retain(|minute, _| *minute > newest - KEPT_MINUTES * MINUTE);
        }
    }

    /// Returns the keys that were throttled in minutes that begin at or after `from` and before
    /// `to`. The most throttled keys come first.
    pub(super) fn most(&self, from: i64, to: i64, most: usize) -> Vec<Throttled> {
        let mut found: BTreeMap<String, BTreeMap<i64, u64>> = BTreeMap::new();
        if from < to {
            for (minute, keys) in self.minutes().range(from..to) {
                for (key, count) in keys {
                    found.entry(key.clone()).or_default().insert(*minute, *count);
                }
            }
        }
        let mut found: Vec<Throttled> = found.into_iter().map(|(key, minutes)| Throttled { key, minutes }).collect();
        found.sort_by_key(|throttled| std::cmp::Reverse(throttled.total()));
        found.truncate(most);
        found
    }

    fn minutes(&self) -> MutexGuard<'_, BTreeMap<i64, BTreeMap<String, u64>>> {
        self.minutes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_counted_by_the_minute_and_the_most_throttled_come_first() {
        let throttles = Throttles::default();
        for (key, at) in [("a", 60), ("b", 61), ("b", 119), ("b", 120), ("c", 180)] {
            throttles.record_at(key, at);
        }
        let throttled = |key: &str, minutes: &[(i64, u64)]| Throttled {
            key: key.to_owned(),
            minutes: minutes.iter().copied().collect(),
        };
        let (b, a) = (throttled("b", &[(60, 2), (120, 1)]), throttled("a", &[(60, 1)]));
        assert_eq!(throttles.most(60, 180, 100), [b.clone(), a]);
        assert_eq!(throttles.most(60, 180, 1), [b]);
        assert_eq!(throttles.most(61, 121, 100), [throttled("b", &[(120, 1)])]);
        assert_eq!(throttles.most(180, 60, 100), []);
    }

    #[test]
    fn the_numbers_of_keys_and_minutes_are_limited() {
        let throttles = Throttles::default();
        for number in 0..2 * KEPT_KEYS {
            throttles.record_at(&format!("key {number}"), 0);
        }
        assert_eq!(throttles.most(0, 60, usize::MAX).len(), KEPT_KEYS);
        throttles.record_at("late", KEPT_MINUTES * MINUTE);
        assert_eq!(throttles.most(0, i64::MAX, usize::MAX).len(), 1);
    }
}
