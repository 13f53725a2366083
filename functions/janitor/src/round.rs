//! One round of the janitor: the unfinished orders, and their outcomes.

use std::time::Duration;

use futures::StreamExt as _;
use key_schema::heartbeat;
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::key::KeyError;
use key_schema::order::staged::{self, Work};
use key_schema::order::{self, OrderStatus};
use serde::Serialize;
use storage::media::Media;
use storage::objects::ObjectStore;
use table::{Measured, Table, TableError};
use tokio::time::{self, timeout_at};
use workflows::staging::{self, StagingError, Undone};

use crate::{Grace, Moved};

/// The number of orders that are handled concurrently. It is low, because the orders change the
/// same stocks and customers' requests come first.
pub(crate) const AT_ONCE: usize = 4;
/// The number of orders on a page of the list.
pub(crate) const PAGE: usize = 100;
/// The maximum number of pages in one round. A later round finds the other orders.
const MAX_PAGES: usize = 50;

/// The results of a round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Round {
    /// Orders on the list. An order that another function finishes meanwhile is in no other count.
    pub found: u32,
    /// Orders that were not placed and have been removed completely.
    pub undone: u32,
    /// Cancelled or returned orders whose stock has been given back completely.
    pub finished: u32,
    /// Pending orders that had lapsed and have been cancelled.
    pub lapsed: u32,
    /// Unreferenced media objects that have been deleted.
    pub deleted: u32,
    /// Customers, documents and drafts whose interrupted removal has been finished.
    pub removed: u32,
    /// Completed erasures of customers.
    pub erased: u32,
    /// Orders, objects and erasures that failed, and a failed category move. The log has each of
    /// them.
    pub failed: u32,
    /// Orders, objects and erasures for which no time was left, and lapsed orders that another
    /// worker handles.
    pub left: u32,
    /// The outcome of the category move, if an abandoned move was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<Moved>,
    /// How long the oldest order had been unfinished.
    #[serde(skip)]
    pub oldest: Duration,
}

/// A list of work cannot be read: orders, erasures or objects.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The table cannot be read.
    #[error("the unfinished work cannot be listed: {0}")]
    Table(#[from] TableError),
    /// The key of the list is invalid.
    #[error("the unfinished work cannot be listed: {0}")]
    Key(#[from] KeyError),
    /// The list was not read in time.
    #[error("the unfinished work cannot be listed in time")]
    Time,
}

/// The outcome of one order.
enum Outcome {
    Undone,
    Finished,
    /// Another function finished the order first.
    Nothing,
    Failed,
    Left,
}

/// The janitor, which finishes or undoes abandoned work.
#[derive(Debug)]
pub struct Janitor {
    pub(crate) table: Table,
    pub(crate) media: Media,
    pub(crate) archive: ObjectStore,
    /// A settling time for category moves, in seconds, instead of the default.
    pub(crate) settling: Option<i64>,
}

impl Janitor {
    /// Creates a janitor for the orders in `table`, the objects in `media` and the items in
    /// `archive`.
    #[must_use]
    pub const fn new(table: Table, media: Media, archive: ObjectStore) -> Self {
        Self { table, media, archive, settling: None }
    }

    /// Sets the time for a category move to settle, in seconds:
    /// [`workflows::relocation::Mover::settling`].
    #[must_use]
    pub const fn settling(mut self, seconds: i64) -> Self {
        self.settling = Some(seconds);
        self
    }

    /// Returns the consumption of the access patterns since the last call.
    #[must_use]
    pub fn costs(&self) -> Vec<Measured> {
        self.table.meter().take()
    }

    /// Writes the heartbeat that the stream's consumers report. If the write fails, the consumers'
    /// alarm reports the failure, and the round continues.
    pub async fn beat(&self, now: Instant) {
        let written = match heartbeat::beat(now) {
            Ok(beat) => self.table.write(&beat).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(cause) = written {
            tracing::warn!(cause, "the heartbeat was not written");
        }
    }

    /// Handles the orders that have been unfinished for longer than the grace. Then handles lapsed
    /// orders, erasures and objects. All work ends at `stop`. If the list of unfinished orders
    /// cannot be read to its end, the janitor still handles the orders that it has read.
    pub async fn run_round(&self, now: Instant, grace: Grace, stop: time::Instant) -> (Round, Result<(), ListError>) {
        let mut found = Vec::new();
        // Listing takes at most half of the time. Otherwise a slow table or a long list would leave
        // no time for the work.
        let started = time::Instant::now();
        let half = started + stop.saturating_duration_since(started) / 2;
        let listed = match timeout_at(half, self.list(grace.before(now), &mut found)).await {
            Ok(listed) => listed,
            Err(_) if found.is_empty() => Err(ListError::Time),
            Err(_) => Ok(()),
        };
        let mut round = Round { found: u32::try_from(found.len()).unwrap_or(u32::MAX), ..Round::default() };
        let mut outcomes =
            futures::stream::iter(&found).map(|id| self.handle_order(id, now, stop)).buffer_unordered(AT_ONCE);
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
        let removed = self.remove(grace.before(now), stop, &mut round).await;
        let erased = self.erase(grace.twice_before(now), stop, &mut round).await;
        let cleared = self.clear(now, grace.before(now), stop, &mut round).await;
        (round, listed.and(lapsed).and(removed).and(erased).and(cleared))
    }

    /// Reads the whole list before any work, up to [`MAX_PAGES`]. So its length is the backlog, and
    /// an order that fails does not block the orders after it.
    async fn list(&self, before: Instant, found: &mut Vec<OrderId>) -> Result<(), ListError> {
        let mut after = None;
        for _ in 0..MAX_PAGES {
            let page = self.table.query(&staged::unfinished(before)?.limit(PAGE).after(after)).await?;
            found.extend(page.items.into_iter().map(|order| order.id));
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
        if head.status == OrderStatus::Placing {
            return Ok(match staging::undo(&self.table, id).await? {
                Undone::Gone => Outcome::Undone,
                Undone::Visible => Outcome::Nothing,
            });
        }
        if let Some(Work::Returning(_)) = head.unfinished.as_ref().map(|unfinished| &unfinished.work) {
            staging::give_back(&self.table, id).await?;
            return Ok(Outcome::Finished);
        }
        Ok(Outcome::Nothing)
    }
}

/// Returns a stable name for a failure in the log, independent of the message.
pub(crate) const fn reason(error: &StagingError) -> &'static str {
    match error {
        StagingError::Refused(_) => "refused",
        StagingError::Contended | StagingError::Table(TableError::Contended) => "contended",
        StagingError::Table(TableError::Throttled | TableError::OverBudget) => "throttled",
        StagingError::Table(TableError::Unavailable(_) | TableError::Unprocessed(_)) => "unavailable",
        StagingError::Table(TableError::Decode(_)) => "malformed",
        StagingError::Table(TableError::Rejected(_) | TableError::TooManyActions(_)) => "rejected",
        StagingError::Encode(_) => "not_encodable",
    }
}
