//! One round: what is unfinished, and what becomes of it.

use std::time::Duration;

use futures::StreamExt as _;
use key_schema::heartbeat;
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::key::KeyError;
use key_schema::order::staged::{self, Work};
use key_schema::order::{self, OrderStatus};
use media::Media;
use objects::ObjectStore;
use serde::Serialize;
use staging::{StagingError, Undone};
use table::{Measured, Table, TableError};
use tokio::time::{self, timeout_at};

use crate::{Grace, Moved};

/// Orders that are worked on at once. Few: they meet at the same stocks, and customers come first.
pub(crate) const AT_ONCE: usize = 4;
/// Orders on a page of the list.
pub(crate) const PAGE: usize = 100;
/// Pages that are read at most; what is behind them is found when these orders are gone.
const MAX_PAGES: usize = 50;

/// What was found and done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Round {
    /// Orders on the list. One of them may have been finished by somebody else meanwhile, and counts nowhere else.
    pub found: u32,
    /// Orders that were not placed, and of which nothing is left now.
    pub undone: u32,
    /// Cancelled or returned orders all of whose stock is given back now.
    pub finished: u32,
    /// Objects of the bucket that nothing references, and that are deleted now.
    pub deleted: u32,
    /// Erased customers of whom the archive holds nothing any more.
    pub erased: u32,
    /// Orders, objects and erasures that nothing could be done with, and the category if nothing could be done with it; each is logged.
    pub failed: u32,
    /// Those for which no time was left.
    pub left: u32,
    /// What became of the category that was being moved, if one was and was left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<Moved>,
    /// For how long the one that has waited longest had been unfinished.
    #[serde(skip)]
    pub oldest: Duration,
}

/// The list of unfinished orders, of objects that may not be referenced, or of erasures cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The table does not give it.
    #[error("what is unfinished cannot be listed: {0}")]
    Table(#[from] TableError),
    /// Its key is none.
    #[error("what is unfinished cannot be listed: {0}")]
    Key(#[from] KeyError),
    /// It was not given in time.
    #[error("what is unfinished cannot be listed in time")]
    Time,
}

/// What became of one order.
enum Outcome {
    Undone,
    Finished,
    /// Somebody else was faster.
    Nothing,
    Failed,
    Left,
}

/// Who looks after what others have left.
#[derive(Debug)]
pub struct Janitor {
    pub(crate) table: Table,
    pub(crate) media: Media,
    pub(crate) archive: ObjectStore,
    /// Another time for a move to settle than the usual one.
    pub(crate) settling: Option<i64>,
}

impl Janitor {
    /// Of the orders in this table, the objects in this bucket, and what expired in this archive.
    #[must_use]
    pub const fn new(table: Table, media: Media, archive: ObjectStore) -> Self {
        Self { table, media, archive, settling: None }
    }

    /// Another time than the usual one for the move of a category to settle: [`relocation::Mover::settling`].
    #[must_use]
    pub const fn settling(mut self, seconds: i64) -> Self {
        self.settling = Some(seconds);
        self
    }

    /// What the access patterns have consumed since the last look.
    #[must_use]
    pub fn costs(&self) -> Vec<Measured> {
        self.table.meter().take()
    }

    /// Writes the heartbeat that the stream's consumers answer. A round does its work all the same
    /// when that fails: the alarm of the consumers says so.
    pub async fn beat(&self, now: Instant) {
        let written = match heartbeat::beat(now) {
            Ok(beat) => self.table.write(&beat).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(cause) = written {
            tracing::warn!(cause, "the heartbeat was not written");
        }
    }

    /// Looks after all orders that have been unfinished for longer than the grace, until `stop`, then after erasures and objects. When the list breaks off, what was
    /// read of it is looked after all the same.
    pub async fn come_by(&self, now: Instant, grace: Grace, stop: time::Instant) -> (Round, Result<(), ListError>) {
        let mut found = Vec::new();
        // Half of the time at most: a slow table and a long list would leave none for the work.
        let started = time::Instant::now();
        let half = started + stop.saturating_duration_since(started) / 2;
        let listed = match timeout_at(half, self.list(grace.before(now), &mut found)).await {
            Ok(listed) => listed,
            Err(_) if found.is_empty() => Err(ListError::Time),
            Err(_) => Ok(()),
        };
        let mut round = Round { found: u32::try_from(found.len()).unwrap_or(u32::MAX), ..Round::default() };
        let mut outcomes =
            futures::stream::iter(&found).map(|id| self.look_after(id, now, stop)).buffer_unordered(AT_ONCE);
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
        let erased = self.erase(grace.twice_before(now), stop, &mut round).await;
        let cleared = self.clear(now, grace.before(now), stop, &mut round).await;
        (round, listed.and(erased).and(cleared))
    }

    /// The whole list first: its length is the backlog, and an order that fails does not stand in the way of those behind it.
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

    /// What became of an order, and for how long it had been unfinished.
    async fn look_after(&self, id: &OrderId, now: Instant, stop: time::Instant) -> (Outcome, Duration) {
        let mut age = Duration::ZERO;
        // A time that is up lets a future begin all the same.
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

    /// Undoes or finishes an order. The index may be behind: the head says what is to be done.
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

/// By which failures are told apart in the log, whatever their messages say.
const fn reason(error: &StagingError) -> &'static str {
    match error {
        StagingError::Refused(_) => "refused",
        StagingError::Contended | StagingError::Table(TableError::Contended) => "contended",
        StagingError::Table(TableError::Throttled) => "throttled",
        StagingError::Table(TableError::Unavailable(_) | TableError::Unprocessed(_)) => "unavailable",
        StagingError::Table(TableError::Decode(_)) => "malformed",
        StagingError::Table(TableError::Rejected(_) | TableError::TooManyActions(_)) => "rejected",
        StagingError::Encode(_) => "not_encodable",
    }
}
