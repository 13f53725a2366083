//! Which counters a report of the most throttled keys shows as hot.

use std::collections::BTreeMap;

use key_schema::counter::{self, THROTTLED_A_MINUTE};
use key_schema::id::CounterName;
use key_schema::instant::Instant;
use serde::Deserialize;
use serde_json::Value;

/// Contributors in a report at most (CloudWatch API reference, `GetInsightRuleReport`), and so the most counters that one round splits.
pub const MAX_CONTRIBUTORS: u32 = 100;
/// How far a report goes back: what one round could not do, or CloudWatch had not heard of yet, the next few still see.
pub const WINDOW_SECONDS: i64 = 5 * 60;
/// The shortest period that a rule is counted in.
pub const PERIOD_SECONDS: i64 = 60;

/// What CloudWatch answers, of which only the keys and when they were throttled matter. One that cannot be read does not hide the others.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Report {
    #[serde(default)]
    contributors: Vec<Value>,
}

/// A partition key, and how often it was throttled in which minutes.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Contributor {
    keys: Vec<String>,
    #[serde(default)]
    datapoints: Vec<Datapoint>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Datapoint {
    /// Seconds since 1970, where the minute begins.
    timestamp: f64,
    approximate_value: f64,
}

/// A time as CloudWatch writes it: whole seconds since 1970.
#[must_use]
pub fn window(now: Instant) -> (i64, i64) {
    let minute = now.as_seconds().div_euclid(PERIOD_SECONDS) * PERIOD_SECONDS;
    // The minute that is not over counts already.
    (minute - WINDOW_SECONDS, now.as_seconds())
}

impl Report {
    /// How many keys it names.
    #[must_use]
    pub fn keys(&self) -> u32 {
        u32::try_from(self.contributors.len()).unwrap_or(u32::MAX)
    }

    /// The counters that were hot, each with the last minute in which they were. A counter's shards are counted together; orders, products and all
    /// else that cannot be split are passed over, as is what lies outside of the window that was asked for.
    #[must_use]
    pub fn hot(&self, now: Instant) -> BTreeMap<CounterName, Instant> {
        let mut throttled: BTreeMap<CounterName, BTreeMap<Instant, f64>> = BTreeMap::new();
        for contributor in &self.contributors {
            let Ok(contributor) = Contributor::deserialize(contributor) else { continue };
            let [partition] = contributor.keys.as_slice() else { continue };
            let Some(name) = counter::counter_of(partition) else { continue };
            let minutes = throttled.entry(name).or_default();
            for point in contributor.datapoints {
                if let Some(minute) = point.minute(now) {
                    *minutes.entry(minute).or_default() += point.approximate_value;
                }
            }
        }
        let hot = |minutes: BTreeMap<Instant, f64>| {
            minutes.into_iter().rev().find(|(_, requests)| *requests >= THROTTLED_A_MINUTE).map(|(minute, _)| minute)
        };
        throttled.into_iter().filter_map(|(name, minutes)| Some((name, hot(minutes)?))).collect()
    }
}

impl Datapoint {
    /// Where its minute begins, if that is inside the window: one from the future would be younger than every split.
    fn minute(&self, now: Instant) -> Option<Instant> {
        let (from, to) = window(now);
        // A number is cut to the range of an integer, and one that is none is 0: neither is inside.
        let seconds = self.timestamp as i64;
        let inside = (from..=to).contains(&seconds) && self.approximate_value > 0.0;
        inside.then(|| Instant::EPOCH.plus_seconds(seconds))
    }
}
