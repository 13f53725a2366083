//! One round of the janitor. This module handles the unfinished orders, and other modules do the
//! other work.

use std::time::Duration;

use futures::StreamExt as _;
use key_schema::heartbeat;
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::item::FromItem;
use key_schema::key::KeyError;
use key_schema::order::{self, Order, staged};
use key_schema::request::Query;
use serde::Serialize;
use storage::media::Media;
use storage::objects::ObjectStore;
use table::{Measured, Table, TableError};
use tokio::time::{self, timeout_at};
use workflows::staging::{self, Resumed, StagingError};

use crate::{Grace, Moved, turns};

/// The number of orders or objects that are handled concurrently. It is low, because the orders
/// change the same stocks as customers' requests, which take precedence.
pub(crate) const AT_ONCE: usize = 4;
pub(crate) const PAGE: usize = 100;
/// The age at which an order that other requests keep busy counts as failed.
const OVERDUE: Duration = Duration::from_secs(24 * 60 * 60);
/// The maximum number of pages of one list in a round. A later round finds the other entries.
const MAX_PAGES: usize = 50;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Round {
    /// Unfinished orders in the index. An order that another function finishes meanwhile is in no
    /// other count.
    pub found: u32,
    /// Orders that were not placed and have been removed completely.
    pub undone: u32,
    /// Cancelled or returned orders whose stock has been given back completely.
    pub finished: u32,
    /// Pending orders that were not paid in time and have been cancelled.
    pub lapsed: u32,
    /// Unreferenced media objects that have been deleted.
    pub deleted: u32,
    /// Customers, documents and drafts whose interrupted removal has been finished.
    pub removed: u32,
    /// Completed erasures of customers.
    pub erased: u32,
    /// Orders, objects, erasures and removals that failed, removals that have been unfinished for
    /// more than a day, and a failed category move. The log has each of them.
    pub failed: u32,
    /// Orders, objects, erasures and removals that a later round continues. No time was left for
    /// them, or they conflict with other requests.
    pub left: u32,
    /// The outcome of the category move, if an abandoned move was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<Moved>,
    /// How long the oldest order had been unfinished.
    #[serde(skip)]
    pub oldest: Duration,
}

/// A list of work cannot be read: orders, removals, erasures or objects.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    #[error("the unfinished work cannot be listed: {0}")]
    Table(#[from] TableError),
    #[error("the unfinished work cannot be listed: {0}")]
    Key(#[from] KeyError),
    /// The list was not read in time.
    #[error("the unfinished work cannot be listed in time")]
    Time,
}

enum Outcome {
    Undone,
    Finished,
    /// Another function finished the order first.
    Nothing,
    Failed,
    Left,
}

#[derive(Debug)]
pub struct Janitor {
    pub(crate) table: Table,
    pub(crate) media: Media,
    pub(crate) archive: ObjectStore,
    /// How many seconds a category move waits for requests in progress. `None` means the default.
    pub(crate) settling: Option<i64>,
}

impl Janitor {
    /// Creates a janitor for the orders in `table`, the objects in `media` and the items in
    /// `archive`.
    #[must_use]
    pub const fn new(table: Table, media: Media, archive: ObjectStore) -> Self {
        Self { table, media, archive, settling: None }
    }

    /// Sets how many seconds a category move waits for requests in progress
    /// ([`workflows::relocation::Mover::settling`]).
    #[must_use]
    pub const fn settling(mut self, seconds: i64) -> Self {
        self.settling = Some(seconds);
        self
    }

    /// Returns the capacity that each access pattern has consumed since the last call.
    #[must_use]
    pub fn costs(&self) -> Vec<Measured> {
        self.table.meter().take()
    }

    /// Writes the heartbeat, so that each consumer of the stream emits its metric. If the write
    /// fails, the alarm on that metric fires, and the round continues.
    pub async fn beat(&self, now: Instant) {
        let written = match heartbeat::beat(now) {
            Ok(beat) => self.table.write(&beat).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(cause) = written {
            tracing::warn!(cause, "the heartbeat was not written");
        }
    }

    /// Handles the orders that have been unfinished for longer than the grace period. Then handles
    /// orders that were not paid in time, removals, erasures and objects. All work ends at `stop`.
    /// If the list of unfinished orders cannot be read to its end, the janitor still handles the
    /// orders that it has read.
    pub async fn run_round(&self, now: Instant, grace: Grace, stop: time::Instant) -> (Round, Result<(), ListError>) {
        let mut found = Vec::new();
        // Listing takes at most half of the remaining time. Otherwise a slow table or a long list
        // would leave no time for the work.
        let started = time::Instant::now();
        let half = started + stop.saturating_duration_since(started) / 2;
        let list = self.list(|| staged::unfinished(grace.before(now)), &mut found);
        let listed = match timeout_at(half, list).await {
            Ok(listed) => listed,
            Err(_) if found.is_empty() => Err(ListError::Time),
            Err(_) => Ok(()),
        };
        // An order with conflicts can take seconds. So the unfinished orders also take at most half
        // of the remaining time, and each round begins at another order.
        let started = time::Instant::now();
        let half = started + stop.saturating_duration_since(started) / 2;
        let found = turns::order(found, now);
        let mut round = Round { found: u32::try_from(found.len()).unwrap_or(u32::MAX), ..Round::default() };
        let mut outcomes = futures::stream::iter(&found)
            .map(|order| self.handle_order(&order.id, now, half))
            .buffer_unordered(AT_ONCE);
        while let Some((outcome, age)) = outcomes.next().await {
            round.oldest = round.oldest.max(age);
            match outcome {
                Outcome::Undone => round.undone += 1,
                Outcome::Finished => round.finished += 1,
                Outcome::Nothing => {}
                Outcome::Failed => round.failed += 1,
                Outcome::Left => round.left += 1,
            }
        }
        drop(outcomes);
        let lapsed = self.lapse(now, stop, &mut round).await;
        let removed = self.remove(now, grace.before(now), stop, &mut round).await;
        let erased = self.erase(now, grace.twice_before(now), stop, &mut round).await;
        let cleared = self.clear(now, grace.before(now), stop, &mut round).await;
        (round, listed.and(lapsed).and(removed).and(erased).and(cleared))
    }

    /// Reads a whole list before any work, up to [`MAX_PAGES`]. So the list's length is the
    /// backlog, and an entry that fails does not block the entries after it. Adds the entries of
    /// each page to `found`, so that a timeout keeps them.
    pub(crate) async fn list<T: FromItem>(
        &self,
        query: impl Fn() -> Result<Query<T>, KeyError>,
        found: &mut Vec<T>,
    ) -> Result<(), ListError> {
        let mut after = None;
        for _ in 0..MAX_PAGES {
            let page = self.table.query(&query()?.limit(PAGE).after(after)).await?;
            found.extend(page.items);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the outcome of an order, and how long the order had been unfinished.
    async fn handle_order(&self, id: &OrderId, now: Instant, stop: time::Instant) -> (Outcome, Duration) {
        let mut age = Duration::ZERO;
        // A timeout polls its future once even after `stop`, so the time is checked first.
        if time::Instant::now() >= stop {
            return (Outcome::Left, age);
        }
        let outcome = match timeout_at(stop, self.end(id, now, &mut age)).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) if is_busy(&error) && age < OVERDUE => {
                tracing::warn!(order = %id, reason = reason(&error), %error, "an unfinished order is left");
                Outcome::Left
            }
            Ok(Err(error)) => {
                tracing::error!(order = %id, reason = reason(&error), %error, "an unfinished order failed");
                Outcome::Failed
            }
            Err(_) => Outcome::Left,
        };
        (outcome, age)
    }

    /// Undoes or finishes an order. The index may be outdated, so the head decides.
    async fn end(&self, id: &OrderId, now: Instant, age: &mut Duration) -> Result<Outcome, StagingError> {
        let Some(head) = self.table.get(&order::head(id)?).await? else { return Ok(Outcome::Nothing) };
        if let Some(unfinished) = &head.unfinished {
            let millis = now.as_millis().saturating_sub(unfinished.since.as_millis());
            *age = Duration::from_millis(u64::try_from(millis).unwrap_or(0));
        }
        let (reason, done, outcome) = match staging::resume(&self.table, &head).await? {
            Resumed::Undone => ("placing_interrupted", "undone", Outcome::Undone),
            Resumed::Finished => ("return_of_stock_interrupted", "finished", Outcome::Finished),
            Resumed::Nothing => return Ok(Outcome::Nothing),
        };
        tracing::info!(order = %id, reason, since = since(&head), "an unfinished order was {done}");
        Ok(outcome)
    }
}

/// Returns the instant at which the unfinished work began.
fn since(head: &Order) -> Option<String> {
    head.unfinished.as_ref().map(|unfinished| unfinished.since.to_string())
}

/// Returns whether other requests or the capacity of the table prevented the work. Customers can
/// cause this at any time, so it is no failure of the janitor.
pub(crate) const fn is_busy(error: &StagingError) -> bool {
    matches!(error, StagingError::Contended | StagingError::Table(TableError::Contended | TableError::Throttled))
}

/// Returns a stable name for a failure in the log, independent of the message.
pub(crate) const fn reason(error: &StagingError) -> &'static str {
    match error {
        StagingError::Refused(_) => "refused",
        StagingError::Contended | StagingError::Table(TableError::Contended) => "contended",
        StagingError::Table(TableError::Throttled | TableError::OverBudget) => "throttled",
        StagingError::Table(TableError::Unavailable(_) | TableError::Unprocessed(_)) => "unavailable",
        StagingError::Table(TableError::Decode(_)) => "malformed",
        StagingError::Table(TableError::Rejected(_) | TableError::NoTable(_) | TableError::TooManyActions(_)) => {
            "rejected"
        }
        StagingError::Encode(_) => "not_encodable",
    }
}
