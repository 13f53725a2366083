use key_schema::category::relocation::{CategoryMove, Phase};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use serde::Serialize;
use tokio::time::{self, timeout_at};
use workflows::relocation::{Mover, RelocationError};

use crate::Grace;
use crate::round::Janitor;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Moved {
    Done,
    /// The move is not complete. It must wait, or time ran out.
    Continued,
    Failed,
}

impl Moved {
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
    /// Continues a category move that has not advanced for longer than the grace period. Stops at
    /// `stop`. Returns `None` if there is no such move. If the time runs out before this is known,
    /// returns [`Moved::Continued`].
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
