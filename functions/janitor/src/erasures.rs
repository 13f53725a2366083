//! Erased customers: deletes their archived items, and items that were written during the erasure.
//!
//! [`key_schema::erasure`] explains why no item of an erased customer is archived later. This
//! requires that no consumer that has read the profile is still archiving. The janitor waits for
//! its grace, so that every such consumer has ended.

use futures::{StreamExt as _, TryStreamExt as _};
use key_schema::erasure::{self, Pending};
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::item::EncodeError;
use key_schema::key::KeyError;
use key_schema::{archive, cart, session};
use storage::objects::ObjectError;
use table::{Budget, TableError};
use tokio::time::{self, timeout_at};
use workflows::erasure::erase_belongings;
use workflows::removal::RemovalError;

use crate::round::{AT_ONCE, Janitor, ListError, PAGE, Round};

/// The maximum number of erasures in one round. The next round continues with the others.
const MOST: usize = 100;
/// The number of objects that one request lists and one request deletes: a limit of S3.
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
    /// Finishes the erasures that began at `before` or earlier. Stops at `stop`. If an erasure
    /// stays incomplete, the next round continues with the objects that still exist.
    pub(crate) async fn erase(&self, before: Instant, stop: time::Instant, round: &mut Round) -> Result<(), ListError> {
        // Erasures take at most half of the time, because a customer with many objects would leave
        // no time for the unreferenced objects.
        let started = time::Instant::now();
        let stop = started + stop.saturating_duration_since(started) / 2;
        let Ok(found) = timeout_at(stop, self.table.query(&erasure::pending(before)?.limit(MOST))).await else {
            tracing::warn!("no time was left for erasures");
            return Ok(());
        };
        for erasure in found?.items {
            // A timeout polls its future once even after `stop`, so the time is checked first.
            let finished = match time::Instant::now() < stop {
                true => timeout_at(stop, self.finish(&erasure)).await.ok(),
                false => None,
            };
            match finished {
                Some(Ok(())) => round.erased += 1,
                Some(Err(ErasureError::Removal(RemovalError::Table(TableError::OverBudget)))) => round.left += 1,
                Some(Err(error)) => {
                    tracing::error!(%error, "an erasure could not be finished");
                    round.failed += 1;
                }
                None => round.left += 1,
            }
        }
        Ok(())
    }

    async fn finish(&self, erasure: &Pending) -> Result<(), ErasureError> {
        let customer = &erasure.customer_id;
        // A customer who has signed up again keeps the newer items, so only older items are erased.
        // If the customer signs up after this read, sessions and the cart are newer than `now` and
        // stay. The erasure of belongings does not compare times, so it can remove new ones.
        let now = Instant::now();
        let back = self.table.get(&archive::owner(customer)?).await?;
        let until = back.map_or(now, |back| back.created_at);
        if back.is_none() {
            // The index may not have shown all items to the erasure, and the erasure may have
            // stopped after the profile. A customer who has signed up again keeps them.
            erase_belongings(&self.table, customer, &Budget::begin(&self.table)).await?;
        }
        self.end_sessions(customer, until).await?;
        let _ = self.table.write(&cart::discard_earlier(customer, until)?).await?;
        for collection in archive::belongings(customer)? {
            self.empty(&collection).await?;
        }
        telemetry::crash_point("janitor.archive.emptied");
        // A refusal means that another janitor has finished the erasure, or that there is a second
        // erasure of the same customer. A later round handles the second erasure.
        let _ = self.table.write(&erasure::done(erasure)?).await?;
        Ok(())
    }

    /// Ends sessions that began before `until`. The erasure itself has ended all sessions that the
    /// index showed, so there are few of them.
    async fn end_sessions(&self, customer: &CustomerId, until: Instant) -> Result<(), ErasureError> {
        let mut after = None;
        loop {
            let page = self.table.query(&session::of_customer(customer)?.limit(PAGE).after(after)).await?;
            let earlier: Vec<_> = page.items.iter().filter(|session| session.created_at < until).collect();
            if !earlier.is_empty() {
                let ids = || earlier.iter().map(|session| &session.id);
                let sessions = self.table.batch_get(&session::read_all(ids())?).await?;
                for writes in
                    [session::revoke_all(sessions.iter().flatten(), Instant::now())?, session::end_all(ids())?]
                {
                    let left = self.table.batch_write(&writes).await?;
                    if !left.is_empty() {
                        return Err(TableError::Unprocessed(left.len()).into());
                    }
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
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
