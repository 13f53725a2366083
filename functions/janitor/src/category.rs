//! The move of a category.

use key_schema::category::relocation::{CategoryMove, Phase};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use relocation::{Mover, RelocationError};
use serde::Serialize;
use tokio::time::{self, timeout_at};

use crate::Grace;
use crate::round::Janitor;

/// What became of the move of a category.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Moved {
    /// It is over.
    Done,
    /// Some of it was done. It waits, or there was no time for more.
    Continued,
    /// It could not be gone on with, which is logged.
    Failed,
}

impl Moved {
    /// What it is called in the log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Continued => "continued",
            Self::Failed => "failed",
        }
    }
}

impl Janitor {
    /// Goes on with the move of a category that nobody has worked on for longer than the grace, until `stop`; `None` when there is none.
    pub async fn go_on(&self, now: Instant, grace: Grace, stop: time::Instant) -> Option<Moved> {
        let mover = Mover::new(&self.table);
        let mover = self.settling.map_or(mover, |seconds| mover.settling(seconds));
        match timeout_at(stop, attempt(&mover, grace.before(now), stop)).await {
            Ok(Ok(moved)) => moved,
            Ok(Err(error)) => {
                tracing::error!(%error, "the move of a category failed");
                Some(Moved::Failed)
            }
            Err(_) => Some(Moved::Continued),
        }
    }
}

async fn attempt(mover: &Mover<'_>, before: Instant, stop: time::Instant) -> Result<Option<Moved>, RelocationError> {
    let left = |moving: &Stored<CategoryMove>| moving.phase != Phase::Done && moving.meta.updated_at <= before;
    if !mover.current().await?.as_ref().is_some_and(left) {
        return Ok(None);
    }
    let over = mover.go_on(stop).await?.is_none_or(|moving| moving.phase == Phase::Done);
    Ok(Some(if over { Moved::Done } else { Moved::Continued }))
}
