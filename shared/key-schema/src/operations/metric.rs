//! Metrics: measurements by staff and machines, kept for 30 days.
//!
//! A metric has many writers and few readers, so its keys spread the writes. One day of a metric
//! uses [`SHARDS`] partitions, and a point's shard is computed from its id. The shard is not
//! random, because a point that is sent again must overwrite the first point. For the same reason a
//! point stores only data from its sender, so both writes have the same bytes.
//!
//! # Reading
//!
//! A reader queries a range day by day. It queries all shards of a day in parallel and merges them
//! by instant and id ([`of_name`] returns one query for each day). Readers query every day of the
//! range, at most [`MAX_DAYS`]. A directory of the days with points would save a few reads, but it
//! would cost one more write for every point.
//!
//! # 30 days
//!
//! DynamoDB removes a point some time after its `ttl`. No query reaches further back than 30 days.
//! So an expired point is invisible whether or not DynamoDB has removed it, and no page is filtered
//! after the read.

use std::fmt;
use std::str::FromStr;

use item_model::prelude::*;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::encoding::join;
use crate::id::{MetricName, PointId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::request::{BatchWrite, BatchWriteAction, Get, Query, Range};
use crate::shard::Shards;

/// The shards of one day of one metric, enough for about 4,000 points a second.
pub const SHARDS: Shards = Shards(4);
/// The lifetime of a point, from its own instant.
pub const LIFETIME_SECONDS: i64 = 30 * 24 * 60 * 60;
/// The maximum number of seconds by which a sender's clock may be ahead of the service's clock.
pub const MAX_AHEAD_SECONDS: i64 = 5 * 60;
/// The maximum number of days in one query. 30 days and 5 minutes touch at most 32 calendar days.
pub const MAX_DAYS: usize = 32;
pub const MAX_POINTS: usize = 500;

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// A decimal number that keeps the digits of its input: `1.50` stays `1.50`. It has at most
/// [`MAX_DIGITS`] digits, as DynamoDB's numbers have, and an exponent of at most three digits. It
/// is stored as text, because DynamoDB would normalise a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal(String);

/// The maximum number of digits of a [`Decimal`], leading and trailing zeros included.
pub const MAX_DIGITS: usize = 38;

/// An error for a text that is not a JSON number, or that has too many digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a number of at most {MAX_DIGITS} digits, with an exponent of at most three")]
pub struct DecimalError;

impl Decimal {
    /// Returns the number as it was given, which is valid JSON.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Decimal {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (mantissa, exponent) =
            unsigned.split_once(['e', 'E']).map_or((unsigned, None), |(number, power)| (number, Some(power)));
        let (whole, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(whole, part)| (whole, Some(part)));
        let is_whole = are_digits(whole) && (whole == "0" || !whole.starts_with('0'));
        let is_fraction = fraction.is_none_or(are_digits);
        let is_exponent = exponent.is_none_or(|power| {
            let power = power.strip_prefix(['+', '-']).unwrap_or(power);
            are_digits(power) && power.len() <= 3
        });
        let digits = whole.len() + fraction.map_or(0, str::len);
        let is_decimal = is_whole && is_fraction && is_exponent && digits <= MAX_DIGITS;
        if is_decimal { Ok(Self(text.to_owned())) } else { Err(DecimalError) }
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

entity! {
    /// A measurement at an instant. Name, instant and id identify a point. A point that is sent
    /// again with another value replaces the first value.
    MetricPoint = "MetricPoint" {
        fixed {
            name: MetricName,
            at: Instant,
            /// The id that distinguishes the points of one instant.
            id: PointId,
        }
        mutable by MetricPointChanges {
            value: Decimal,
        }
    }
}

impl Entity for MetricPoint {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.name, self.at, &self.id)
    }

    fn expires(&self) -> Option<Instant> {
        Some(self.at.plus_seconds(LIFETIME_SECONDS))
    }
}

impl MetricPoint {
    /// Returns the point as an item, which is the same each time the point is sent.
    #[must_use]
    pub fn stored(self) -> Stored<Self> {
        let (born, at) = (self.id.born(), self.at);
        Stored::new(self, born, at)
    }
}

fn key(name: &MetricName, at: Instant, id: &PointId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(name, &at.day(), SHARDS.of(id.as_str()))?, sk: SortKey::new(join(&at.to_string(), &[id]))? })
}

fn partition(name: &MetricName, day: &str, shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("METRIC", &[name, &day, &shard])
}

/// Checks that a point of this instant may be stored.
pub fn check_time(at: Instant, now: Instant) -> Result<(), Untimely> {
    if at < oldest(now) {
        Err(Untimely::TooOld)
    } else if at > newest(now) {
        Err(Untimely::InFuture)
    } else {
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Untimely {
    /// The point has already expired.
    #[error("must not be older than 30 days")]
    TooOld,
    /// The point is too far in the future, so the sender's clock is wrong.
    #[error("must not be more than 5 minutes in the future")]
    InFuture,
}

fn oldest(now: Instant) -> Instant {
    now.plus_seconds(-LIFETIME_SECONDS).plus_millis(1)
}

fn newest(now: Instant) -> Instant {
    now.plus_seconds(MAX_AHEAD_SECONDS)
}

patterns! {
    STORE {
        id: "metrics.store",
        purpose: "Store points of metrics",
        request: BatchWriteItem,
        key: "PK = METRIC#<name>#<day>#<shard>, SK = <at>#<id>, for each point",
        requires: "no condition; the shard is computed from the id",
        callers: "staff",
    }
    GET {
        id: "metrics.get",
        purpose: "Read one point of a metric",
        request: GetItem,
        key: "PK = METRIC#<name>#<day>#<shard of the id>, SK = <at>#<id>",
        returns: "the point",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    OF_NAME {
        id: "metrics.of-name",
        purpose: "List the points of a metric",
        request: ShardedQuery,
        key: "PK = METRIC#<name>#<day>#<shard> for each day, SK between two instants",
        returns: "points, oldest first",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
}

/// Writes points. An existing point is overwritten.
pub fn store<'a>(points: impl IntoIterator<Item = &'a Stored<MetricPoint>>) -> Result<BatchWrite, EncodeError> {
    let puts = points.into_iter().map(|point| point.to_item().map(BatchWriteAction::Put)).collect::<Result<_, _>>()?;
    Ok(BatchWrite::new(&STORE, puts))
}

/// Reads one point. The shard is computed from the point's id, so one request is enough, instead of
/// one request for each shard.
pub fn get(name: &MetricName, at: Instant, id: &PointId) -> Result<Get<Stored<MetricPoint>>, KeyError> {
    Ok(Get::new(&GET, key(name, at, id)?))
}

/// Lists the points of a metric between two instants, both included, oldest first. The result is
/// one query for each day, in order, at most [`MAX_DAYS`]. The queries leave out points that have
/// expired at `now` and points that are too far in the future.
pub fn of_name(
    name: &MetricName,
    from: Instant,
    to: Instant,
    now: Instant,
) -> Result<Vec<Query<Stored<MetricPoint>>>, KeyError> {
    let (from, to) = (from.max(oldest(now)), to.min(newest(now)));
    let (first, last) = (from.as_millis().div_euclid(DAY_MILLIS), to.as_millis().div_euclid(DAY_MILLIS));
    let days = (first..=last).filter_map(|day| Instant::from_millis(day * DAY_MILLIS));
    days.map(|midnight| {
        let (begin, end) = (from.max(midnight), to.min(midnight.plus_millis(DAY_MILLIS - 1)));
        let day = midnight.day();
        let shards = SHARDS.all().map(|shard| partition(name, &day, shard)).collect::<Result<_, _>>()?;
        Ok(Query::sharded(&OF_NAME, shards, Range::Between(begin.to_string(), format!("{end}$"))))
    })
    .collect()
}
