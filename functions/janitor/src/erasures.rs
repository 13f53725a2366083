//! Finishes erasures: deletes the customer's archived items, and other items that the erasure's
//! request did not delete.
//!
//! [`key_schema::erasure`] explains why no item of an erased customer is archived later. This holds
//! only if no consumer that has read the profile is still archiving. The janitor waits for twice
//! its grace period, so that every such consumer has ended.

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use key_schema::archive;
use key_schema::erasure::{self, Pending};
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::item::EncodeError;
use key_schema::key::KeyError;
use storage::objects::ObjectError;
use table::{Budget, TableError};
use tokio::time::{self, timeout_at};
use workflows::erasure::{end_sessions, erase_belongings};
use workflows::removal::RemovalError;

use crate::removals::overdue_before;
use crate::round::{AT_ONCE, Janitor, ListError, Round};
use crate::turns;

/// The least time that one erasure gets. A shorter time could end before the first object is
/// deleted.
const LEAST: Duration = Duration::from_secs(1);
/// The number of objects that one request lists: the maximum of S3.
const OBJECTS: u16 = 1000;

/// The reason why an erasure is not finished.
#[derive(Debug, thiserror::Error)]
enum ErasureError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Removal(#[from] RemovalError),
    #[error(transparent)]
    Archive(#[from] ObjectError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl Janitor {
    /// Finishes the erasures that deleted the profile at `before` or earlier. Uses at most half of
    /// the time until `stop`. If an erasure stays incomplete, a later round continues with the
    /// objects that still exist.
    pub(crate) async fn erase(
        &self,
        now: Instant,
        before: Instant,
        stop: time::Instant,
        round: &mut Round,
    ) -> Result<(), ListError> {
        // Erasures take at most half of the remaining time. Otherwise a customer with many objects
        // would leave no time for the unreferenced objects.
        let started = time::Instant::now();
        let stop = started + stop.saturating_duration_since(started) / 2;
        let mut found = Vec::new();
        match timeout_at(stop, self.list(|| erasure::pending(before), &mut found)).await {
            Ok(listed) => listed?,
            Err(_) => tracing::warn!("no time was left to list all erasures"),
        }
        let erasures = turns::order(found, now);
        for (left, erasure) in (1..=erasures.len()).rev().zip(&erasures) {
            // A timeout polls its future once even after `stop`, so the time is checked first.
            let started = time::Instant::now();
            let time = turns::share(stop, left).max(LEAST);
            let budget = Budget::share(&self.table, time);
            let finished = match started < stop {
                true => timeout_at(stop.min(started + time), self.finish(erasure, &budget)).await.ok(),
                false => None,
            };
            match finished {
                Some(Ok(())) => round.erased += 1,
                Some(Err(
                    ErasureError::Table(TableError::OverBudget)
                    | ErasureError::Removal(RemovalError::Table(TableError::OverBudget)),
                ))
                | None
                    if erasure.created_at > overdue_before(now) =>
                {
                    round.left += 1;
                }
                unfinished => {
                    let error = unfinished.and_then(Result::err).map(|error| error.to_string());
                    tracing::error!(error, "an erasure could not be finished");
                    round.failed += 1;
                }
            }
            // After a timeout, `stop` has passed, so this round begins no further erasure.
            let _ = timeout_at(stop, budget.settle()).await;
        }
        Ok(())
    }

    async fn finish(&self, erasure: &Pending, budget: &Budget<'_>) -> Result<(), ErasureError> {
        let customer = &erasure.customer_id;
        // A customer who has signed up again keeps the newer items, so only older items are erased.
        // If the customer signs up after the read, the new items are newer than `now` and stay.
        let now = Instant::now();
        let back = self.table.get(&archive::owner(customer)?).await?;
        let until = back.map_or(now, |back| back.created_at);
        // An error in one step does not stop the others. The `Erasure` item stays until all steps
        // succeed. The request may have left belongings: the index did not show them, or the
        // request stopped right after it deleted the profile.
        let ended = end_sessions(&self.table, customer, until, budget, |_| {}).await;
        let emptied = self.empty_archive(customer).await;
        let erased = erase_belongings(&self.table, customer, until, budget).await;
        emptied?;
        ended.and(erased)?;
        telemetry::crash_point("janitor.archive.emptied");
        // A refusal means that another janitor has finished the erasure, or that there is a second
        // erasure of the same customer. A later round handles the second erasure.
        let _ = self.table.write(&erasure::done(erasure)?).await?;
        Ok(())
    }

    async fn empty_archive(&self, customer: &CustomerId) -> Result<(), ErasureError> {
        for collection in archive::belongings(customer)? {
            self.empty(&collection).await?;
        }
        Ok(())
    }

    /// Deletes every object whose name has this prefix.
    async fn empty(&self, prefix: &str) -> Result<(), ErasureError> {
        loop {
            // Each list begins at the start, because deleted objects are no longer in it.
            let page = self.archive.list(prefix, None, OBJECTS).await?;
            let deletions = page.items.iter().map(|object| self.archive.delete(&object.name));
            futures::stream::iter(deletions).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
            if page.next.is_none() {
                return Ok(());
            }
        }
    }
}
