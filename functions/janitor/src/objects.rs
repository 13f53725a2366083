//! Deletes unreferenced objects of the bucket: unused copies of uploads, and removed pictures and
//! texts.
//!
//! [`key_schema::media`] explains why a referenced object is never deleted. The explanation assumes
//! that no function is still copying an object whose `UnsettledObject` is older than the grace
//! period. The grace period is longer than a function can run, so the assumption holds.

use futures::StreamExt as _;
use key_schema::instant::Instant;
use key_schema::item::EncodeError;
use key_schema::key::KeyError;
use key_schema::media::{self, Unsettled};
use storage::media::MediaError;
use table::{Refusal, TableError};
use tokio::time::{self, timeout_at};

use crate::round::{AT_ONCE, Janitor, ListError, PAGE, Round};

/// The maximum number of objects in one round. The next round handles the other objects.
const MOST: usize = 1000;

#[derive(Debug, thiserror::Error)]
enum ObjectError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Media(#[from] MediaError),
}

impl From<Refusal> for NotDeleted {
    /// Converts a refusal, which means that another function has referenced the object or is
    /// handling it.
    fn from(_: Refusal) -> Self {
        Self::Settled
    }
}

macro_rules! failures {
    ($($error:ty)*) => {$(
        impl From<$error> for NotDeleted {
            fn from(error: $error) -> Self {
                Self::Failed(error.into())
            }
        }
    )*};
}
failures!(TableError EncodeError KeyError MediaError);

enum NotDeleted {
    /// The object is referenced, or another function is handling it.
    Settled,
    Failed(ObjectError),
}

impl Janitor {
    /// Deletes unreferenced objects whose `UnsettledObject` is from `before` or earlier. Stops at
    /// `stop`.
    pub(crate) async fn clear(
        &self,
        now: Instant,
        before: Instant,
        stop: time::Instant,
        round: &mut Round,
    ) -> Result<(), ListError> {
        let (mut found, mut after) = (Vec::new(), None);
        while found.len() < MOST {
            let query = media::unsettled_since(before)?.limit(PAGE).after(after);
            // Orders and erasures come first. Unreferenced objects are invisible and can wait.
            let Ok(page) = timeout_at(stop, self.table.query(&query)).await else {
                tracing::warn!("no time was left for unreferenced objects");
                return Ok(());
            };
            let page = page?;
            found.extend(page.items);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let each = found.iter().map(|object| async move {
            match time::Instant::now() < stop {
                true => timeout_at(stop, self.settle(object, now, before)).await.ok(),
                false => None,
            }
        });
        let mut outcomes = futures::stream::iter(each).buffer_unordered(AT_ONCE);
        while let Some(outcome) = outcomes.next().await {
            match outcome {
                Some(Ok(())) => round.deleted += 1,
                Some(Err(NotDeleted::Settled)) => {}
                Some(Err(NotDeleted::Failed(error))) => {
                    tracing::error!(%error, "an unreferenced object could not be deleted");
                    round.failed += 1;
                }
                None => round.left += 1,
            }
        }
        Ok(())
    }

    async fn settle(&self, object: &Unsettled, now: Instant, before: Instant) -> Result<(), NotDeleted> {
        let doomed = self.table.update(&media::doom(object, before, now)?).await??;
        let references = self.table.batch_get(&media::references(&doomed)?).await?;
        let referenced = references.iter().flatten().any(|item| media::is_reference(item, &doomed));
        if !referenced {
            for name in doomed.names() {
                self.media.delete(&name).await?;
            }
        }
        self.table.write(&media::forget(&doomed)?).await??;
        if referenced { Err(NotDeleted::Settled) } else { Ok(()) }
    }
}
