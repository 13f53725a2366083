//! A model of DynamoDB's limits.
//!
//! [`Limits`] is a state machine: it gets the time, a request's items and their units, and decides
//! whether the request runs, conflicts with a transaction, or is throttled. It has no clock and
//! does no work. [`Clocked`] puts it in front of a table, with tokio's clock. So the same model
//! serves the proxy of the local system in real time, and a simulation with a paused clock.
//!
//! # Limits and their sources
//!
//! | limit | value | source |
//! | --- | --- | --- |
//! | a partition | 3,000 read units and 1,000 write units a second | [warm throughput] |
//! | an item | the same, because an item is in one partition | [adaptive capacity] |
//! | units of a request | 1 KB a write, 4 KB a read, half for eventual consistency | [units] |
//! | a transaction | two units for each: one to prepare and one to commit | [transactions] |
//! | a conflict | a transaction, or a single write, on an item of a transaction in progress | [transactions] |
//! | partitions at first | as many as the warm throughput needs: 4 for a new on-demand table | [warm throughput] |
//! | adaptive split | a hot partition splits by its traffic, down to one item, never further | [adaptive capacity] |
//! | back-pressure | a full partition of an index throttles the writes of the table | [back-pressure] |
//!
//! [warm throughput]: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput-scenarios.html
//! [adaptive capacity]: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/burst-adaptive-capacity.html
//! [units]: https://aws.amazon.com/dynamodb/pricing/on-demand/
//! [transactions]: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
//! [back-pressure]: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/gsi-throttling.html
//!
//! Burst capacity lets a table exceed its provisioned throughput, but [never a partition's
//! maximum](https://repost.aws/knowledge-center/dynamodb-spiky-workloads-short-intervals). The
//! model is of an on-demand table, whose partitions have their maximum from the start. So a
//! partition saves the units of one second ([`BURST`]).
//!
//! # Assumptions
//!
//! AWS publishes no figures for the following:
//!
//! - The durations of requests ([`Times`]). AWS promises single-digit milliseconds for single
//!   items. A transaction has two rounds ("[Distributed Transactions at Scale in Amazon
//!   DynamoDB][atc23]"). It holds its items for its whole duration.
//! - A hot partition splits after [`SPLIT_AFTER`].
//! - A transaction in conflict consumes the units of its prepare phase.
//! - An update writes 1 KB. A query reads one unit. An update that changes only projected
//!   attributes writes to no index.
//!
//! [atc23]: https://www.usenix.org/conference/atc23/presentation/idziorek

mod partitions;
mod request;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use tokio::time::Instant;

use self::partitions::Partitions;
pub use self::partitions::{BURST, SPLIT_AFTER, Throughput};
pub use self::request::Schema;
use self::request::{Access, Kind, Request};
use super::proxy::Operation;
use super::proxy::answer;

/// The settings of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Model {
    /// The warm throughput of the table and of each index. It determines the partitions at first.
    pub warm: Throughput,
    pub times: Times,
    /// The seed of the jitter.
    pub seed: u64,
}

/// The mean durations of requests. Each request takes three quarters of the mean, and an
/// exponentially distributed rest. So one request in a hundred takes almost twice the mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    pub read: Duration,
    pub write: Duration,
    pub transaction: Duration,
}

impl Default for Model {
    /// A new on-demand table.
    fn default() -> Self {
        Self { warm: Throughput::NEW, times: Times::default(), seed: 0 }
    }
}

impl Default for Times {
    fn default() -> Self {
        let [read, write, transaction] = [4, 5, 10].map(Duration::from_millis);
        Self { read, write, transaction }
    }
}

impl Times {
    /// Only transactions take time.
    #[must_use]
    pub const fn of_transactions(transaction: Duration) -> Self {
        Self { read: Duration::ZERO, write: Duration::ZERO, transaction }
    }

    const fn of(self, kind: Kind) -> Duration {
        match kind {
            Kind::Read => self.read,
            Kind::Write | Kind::BatchWrite => self.write,
            Kind::Transaction => self.transaction,
        }
    }
}

/// What the model has counted since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counts {
    pub conflicts: u64,
    pub throttles: u64,
    /// The write units of all requests, with those of transactions that conflicted.
    pub write_units: f64,
    pub read_units: f64,
    pub splits: u64,
}

/// The decision about a request.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// The request runs for this time. A transaction holds these items until [`Limits::end`].
    Runs { held: Vec<String>, time: Duration },
    /// The request's action at index `culprit` uses an item that a transaction holds.
    Conflicts { culprit: usize, time: Duration },
    /// A partition that the action at index `culprit` uses is at its maximum.
    Throttled { culprit: usize, time: Duration, reason: &'static str },
}

#[derive(Debug)]
struct Limits {
    times: Times,
    random: fastrand::Rng,
    /// The partitions of the table, and then of each index.
    places: Vec<Partitions>,
    /// The items of the transactions in progress.
    held: BTreeSet<String>,
    counts: Counts,
}

impl Limits {
    fn new(model: Model, indexes: usize) -> Self {
        Self {
            times: model.times,
            random: fastrand::Rng::with_seed(model.seed),
            places: (0..=indexes).map(|_| Partitions::new(model.warm)).collect(),
            held: BTreeSet::new(),
            counts: Counts::default(),
        }
    }

    /// Decides about a request that begins at `now`, and consumes its units.
    fn begin(&mut self, now: Duration, request: &Request) -> Verdict {
        let Request { kind, touches } = request;
        let full = touches.iter().find(|touch| {
            !self.places.get_mut(touch.place).is_some_and(|place| place.has_room(now, &touch.at, touch.access))
        });
        if let Some(full) = full {
            self.counts.throttles += 1;
            for touch in touches {
                let Some(place) = self.places.get_mut(touch.place) else { continue };
                let is_full = touch.place == full.place && touch.at == full.at;
                self.counts.splits += u64::from(place.heat(now, &touch.at, is_full));
            }
            let reason = match (full.is_of_table(), full.access) {
                (true, Access::Read) => "TableReadKeyRangeThroughputExceeded",
                (true, Access::Write) => "TableWriteKeyRangeThroughputExceeded",
                (false, Access::Read) => "IndexReadKeyRangeThroughputExceeded",
                (false, Access::Write) => "IndexWriteKeyRangeThroughputExceeded",
            };
            return Verdict::Throttled { culprit: full.action, time: self.time(Kind::Read), reason };
        }
        if matches!(kind, Kind::Write | Kind::Transaction)
            && let Some(met) = touches.iter().find(|touch| touch.is_of_table() && self.held.contains(&touch.item))
        {
            self.counts.conflicts += 1;
            let prepared = if *kind == Kind::Transaction { 0.5 } else { 1.0 };
            self.consume(now, request, prepared);
            return Verdict::Conflicts { culprit: met.action, time: self.time(Kind::Write) };
        }
        self.consume(now, request, 1.0);
        let held: Vec<String> = match kind {
            Kind::Transaction => {
                let held = touches.iter().filter(|touch| touch.is_of_table() && touch.access == Access::Write);
                held.map(|touch| touch.item.clone()).collect()
            }
            Kind::Read | Kind::Write | Kind::BatchWrite => Vec::new(),
        };
        self.held.extend(held.iter().cloned());
        Verdict::Runs { held, time: self.time(*kind) }
    }

    /// Ends a transaction.
    fn end(&mut self, held: &[String]) {
        for item in held {
            self.held.remove(item);
        }
    }

    /// Consumes this share of the request's units.
    fn consume(&mut self, now: Duration, request: &Request, share: f64) {
        for touch in &request.touches {
            let units = touch.units * share;
            match touch.access {
                Access::Read => self.counts.read_units += units,
                Access::Write => self.counts.write_units += units,
            }
            if let Some(place) = self.places.get_mut(touch.place) {
                place.consume(now, &touch.at, touch.access, units);
            }
        }
    }

    /// Returns a random duration in whole milliseconds, the resolution of tokio's timer.
    fn time(&mut self, kind: Kind) -> Duration {
        let mean = self.times.of(kind).as_secs_f64() * 1e3;
        let rest = -(1.0 - self.random.f64()).ln();
        Duration::from_millis(rounded(mean * (0.75 + 0.25 * rest)))
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the value is positive and small")]
fn rounded(millis: f64) -> u64 {
    millis.round() as u64
}

/// The model in front of a table, with tokio's clock.
#[derive(Debug)]
pub(super) struct Clocked {
    schema: Schema,
    limits: Mutex<Limits>,
    begun: Instant,
}

impl Clocked {
    pub(super) fn new(schema: Schema, model: Model) -> Self {
        let limits = Mutex::new(Limits::new(model, schema.indexes()));
        Self { schema, limits, begun: Instant::now() }
    }

    pub(super) fn counts(&self) -> Counts {
        self.limits().counts
    }

    fn limits(&self) -> MutexGuard<'_, Limits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a request to the table, unless a limit refuses it. Takes the time of the request.
    /// Returns the refusal as an error.
    pub(super) async fn pass<T>(
        &self,
        operation: Operation,
        body: &[u8],
        forward: impl Future<Output = T>,
    ) -> Result<T, Response<Full<Bytes>>> {
        let Some(request) = self.schema.request(operation, body) else { return Ok(forward.await) };
        let verdict = self.limits().begin(self.begun.elapsed(), &request);
        match verdict {
            Verdict::Runs { held, time } => {
                let _hold = Hold { clocked: self, held };
                // A transaction shows its writes at its end. The effect of another request is in
                // the middle of its duration.
                let before = if request.kind == Kind::Transaction { time } else { time / 2 };
                wait(before).await;
                let response = forward.await;
                wait(time.saturating_sub(before)).await;
                Ok(response)
            }
            Verdict::Conflicts { culprit, time } => {
                wait(time).await;
                Err(match operation {
                    Operation::Transact { .. } => answer::cancelled(request.actions(), culprit, answer::CONFLICT),
                    _ => answer::conflict(),
                })
            }
            Verdict::Throttled { culprit, time, reason } => {
                wait(time).await;
                Err(match operation {
                    Operation::Transact { .. } => answer::cancelled(request.actions(), culprit, answer::THROTTLED),
                    _ => answer::throttled(reason),
                })
            }
        }
    }
}

async fn wait(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

/// The items that one transaction holds. Dropping the value releases the items.
struct Hold<'c> {
    clocked: &'c Clocked,
    held: Vec<String>,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.clocked.limits().end(&self.held);
    }
}
