//! Erased customers: what the archive has of them goes, and what came in the moment of the erasure.
//!
//! [`key_schema::erasure`] says why nothing comes after it. It takes one thing from here: that nobody is still archiving who has seen the profile.

use futures::{StreamExt as _, TryStreamExt as _};
use key_schema::erasure::{self, Pending};
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::item::EncodeError;
use key_schema::key::KeyError;
use key_schema::{archive, cart, session};
use objects::ObjectError;
use table::{TableError, WriteError};
use tokio::time::{self, timeout_at};

use crate::round::{AT_ONCE, Janitor, ListError, PAGE, Round};

/// Erasures that are finished in one round; those behind them are found in the next.
const MOST: usize = 100;
/// Objects that are listed at once, and deleted before the next are: a limit of S3.
const OBJECTS: u16 = 1000;

/// Why an erasure is not finished.
#[derive(Debug, thiserror::Error)]
enum ErasureError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Archive(#[from] ObjectError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl Janitor {
    /// Finishes the erasures up to `before`, until `stop`. What is left of one is found in the next round: what was deleted is not there any more.
    pub(crate) async fn erase(&self, before: Instant, stop: time::Instant, round: &mut Round) -> Result<(), ListError> {
        // Half of the time at most: somebody of whom there is much would leave none for the rest.
        let started = time::Instant::now();
        let stop = started + stop.saturating_duration_since(started) / 2;
        let Ok(found) = timeout_at(stop, self.table.query(&erasure::pending(before)?.limit(MOST))).await else {
            tracing::warn!("no time was left for erasures");
            return Ok(());
        };
        for erasure in found?.items {
            // A time that is up lets a future begin all the same.
            let finished = match time::Instant::now() < stop {
                true => timeout_at(stop, self.finish(&erasure)).await.ok(),
                false => None,
            };
            match finished {
                Some(Ok(())) => round.erased += 1,
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
        // Who came back has begun anew, and is erased of what is older only. Whoever comes back from here on begins later than this.
        let now = Instant::now();
        let back = self.table.get(&archive::owner(customer)?).await?;
        let until = back.map_or(now, |back| back.created_at);
        self.end_sessions(customer, until).await?;
        match self.table.write(&cart::discard_earlier(customer, until)?).await {
            Ok(()) | Err(WriteError::Refused(_)) => {}
            Err(WriteError::Table(error)) => return Err(error.into()),
        }
        for collection in archive::belongings(customer)? {
            self.empty(&collection).await?;
        }
        telemetry::crash_point("janitor.archive.emptied");
        match self.table.write(&erasure::done(erasure)?).await {
            // Refused: somebody else was faster, or the customer came back and was erased once more, which is another round's.
            Ok(()) | Err(WriteError::Refused(_)) => Ok(()),
            Err(WriteError::Table(error)) => Err(error.into()),
        }
    }

    /// Ends sessions that began before an instant and that the index did not show to the erasure. They are few.
    async fn end_sessions(&self, customer: &CustomerId, until: Instant) -> Result<(), ErasureError> {
        let mut after = None;
        loop {
            let page = self.table.query(&session::of_customer(customer)?.limit(PAGE).after(after)).await?;
            let earlier: Vec<_> = page.items.iter().filter(|session| session.created_at < until).collect();
            if !earlier.is_empty() {
                let end = session::end_all(earlier.iter().map(|session| &session.id))?;
                let left = self.table.batch_write(&end).await?;
                if !left.is_empty() {
                    return Err(TableError::Unprocessed(left.len()).into());
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Deletes every object whose name begins so.
    async fn empty(&self, prefix: &str) -> Result<(), ErasureError> {
        loop {
            // Always from the beginning, because S3 shows no object that was deleted.
            let page = self.archive.list(prefix, None, OBJECTS).await?;
            let deletions = page.items.iter().map(|object| self.archive.delete(&object.name));
            futures::stream::iter(deletions).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
            if page.next.is_none() {
                return Ok(());
            }
        }
    }
}
