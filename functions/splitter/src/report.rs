//! The report of the most throttled keys, and the hot counters and stocks in it. A counter or a stock
//! is hot if it had at least [`THROTTLED_A_MINUTE`] throttles within one minute.

use std::collections::BTreeMap;

use aws::{CloudWatch, CloudWatchError};
use key_schema::counter::{self, THROTTLED_A_MINUTE};
use key_schema::id::{CounterName, ProductId};
use key_schema::instant::Instant;
use key_schema::product;
use serde::Deserialize;
use serde_json::{Value, json};

/// The maximum number of contributors in a report (CloudWatch API reference,
/// `GetInsightRuleReport`). So one round splits at most so many counters and stocks.
pub const MAX_CONTRIBUTORS: u32 = 100;
/// The length of a report's window before the current minute, in seconds. It is several minutes,
/// because a round may fail and CloudWatch may be late.
pub const WINDOW_SECONDS: i64 = 5 * 60;
/// The shortest period of a rule, in seconds.
pub const PERIOD_SECONDS: i64 = 60;

/// CloudWatch's response, without the members that the splitter does not need. A malformed
/// contributor does not hide the others.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Report {
    #[serde(default)]
    contributors: Vec<Value>,
}

/// What the splitter spreads over more shards.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hot {
    Counter(CounterName),
    Stock(ProductId),
}

impl Hot {
    fn of(partition: &str) -> Option<Self> {
        let counter = counter::counter_of(partition).map(Self::Counter);
        counter.or_else(|| product::product_of_stock(partition).map(Self::Stock))
    }
}

/// A partition key with the number of its throttles in each minute.
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
    /// The beginning of the minute, in seconds since 1970.
    timestamp: f64,
    approximate_value: f64,
}

/// Returns the start and the end of a report's window in CloudWatch's form: seconds since 1970.
#[must_use]
pub fn window(now: Instant) -> (i64, i64) {
    let minute = now.as_seconds().div_euclid(PERIOD_SECONDS) * PERIOD_SECONDS;
    // The window includes the current minute, although it has not ended.
    (minute - WINDOW_SECONDS, now.as_seconds())
}

impl Report {
    /// Reads a rule's largest contributors in each minute between two times, in seconds since 1970.
    pub async fn fetch(cloudwatch: &CloudWatch, rule: &str, (from, to): (i64, i64)) -> Result<Self, CloudWatchError> {
        let request = json!({
            "RuleName": rule,
            "StartTime": from,
            "EndTime": to,
            "Period": PERIOD_SECONDS,
            "MaxContributorCount": MAX_CONTRIBUTORS,
        });
        cloudwatch.read("GetInsightRuleReport", &request).await
    }

    #[must_use]
    pub fn keys(&self) -> u32 {
        u32::try_from(self.contributors.len()).unwrap_or(u32::MAX)
    }

    /// Returns the hot counters and stocks, each with its last hot minute. The throttles of all shards
    /// are added up. Other keys (orders, products …) and points outside of the window are ignored.
    #[must_use]
    pub fn hot(&self, now: Instant) -> BTreeMap<Hot, Instant> {
        let mut throttled: BTreeMap<Hot, BTreeMap<Instant, f64>> = BTreeMap::new();
        for contributor in &self.contributors {
            let Ok(contributor) = Contributor::deserialize(contributor) else { continue };
            let [partition] = contributor.keys.as_slice() else { continue };
            let Some(hot) = Hot::of(partition) else { continue };
            let minutes = throttled.entry(hot).or_default();
            for point in contributor.datapoints {
                if let Some(minute) = point.minute(now) {
                    *minutes.entry(minute).or_default() += point.approximate_value;
                }
            }
        }
        let hot = |minutes: BTreeMap<Instant, f64>| {
            minutes.into_iter().rev().find(|(_, requests)| *requests >= THROTTLED_A_MINUTE).map(|(minute, _)| minute)
        };
        throttled.into_iter().filter_map(|(of, minutes)| Some((of, hot(minutes)?))).collect()
    }
}

impl Datapoint {
    /// Returns the beginning of the point's minute, if it is inside the window. A minute in the
    /// future would be later than every split, and the counter would be split in every round.
    fn minute(&self, now: Instant) -> Option<Instant> {
        let (from, to) = window(now);
        // The cast saturates and turns NaN into 0. Both results are outside the window.
        let seconds = self.timestamp as i64;
        let inside = (from..=to).contains(&seconds) && self.approximate_value > 0.0;
        inside.then(|| Instant::EPOCH.plus_seconds(seconds))
    }
}
