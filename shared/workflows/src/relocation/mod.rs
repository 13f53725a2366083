//! Moves a category. A request begins the move, and that request or the janitor continues it.
//!
//! [`key_schema::category::relocation`] contains the transactions and explains why an interruption
//! between them is harmless. Two workers may work on one move at the same time. Each worker reads
//! the table before every step. The table refuses the step when the other worker has begun the next
//! phase.

mod clear;
mod copy;
mod place;
mod walk;

use key_schema::category::relocation::{self, CategoryMove, CategoryMoveAction, Phase, SETTLING_SECONDS};
use key_schema::instant::Instant;
use key_schema::item::{EncodeError, Stored};
use key_schema::key::KeyError;
use key_schema::request::{Single, Transaction};
use table::{Refusals, Table, TableError};
use tokio::time::{self, timeout_at};

pub use walk::Walk;

/// An error that stopped the work. The steps so far remain, and the next call continues after them.
#[derive(Debug, thiserror::Error)]
pub enum RelocationError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

impl From<KeyError> for RelocationError {
    fn from(error: KeyError) -> Self {
        Self::Encode(error.into())
    }
}

/// A reason why a phase was not completed.
enum Stop {
    /// Another worker has begun the next phase.
    Late,
    Failed(RelocationError),
}

impl<E: Into<RelocationError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Mover<'a> {
    table: &'a Table,
    settling: i64,
}

impl<'a> Mover<'a> {
    #[must_use]
    pub const fn new(table: &'a Table) -> Self {
        Self { table, settling: SETTLING_SECONDS }
    }

    /// Replaces [`SETTLING_SECONDS`], the wait for requests in progress. Use it only when no
    /// request is in progress, as in tests.
    #[must_use]
    pub const fn settling(mut self, seconds: i64) -> Self {
        self.settling = seconds;
        self
    }

    /// Returns the current move, or the previous move if no move is in progress.
    pub async fn current(&self) -> Result<Option<Stored<CategoryMove>>, RelocationError> {
        Ok(self.table.get(&relocation::get()?).await?)
    }

    /// Continues the current move until it is done or must wait, or until the time `until` has
    /// come. Returns the move in its current state.
    pub async fn go_on(&self, until: time::Instant) -> Result<Option<Stored<CategoryMove>>, RelocationError> {
        loop {
            let Some(moving) = self.current().await? else { return Ok(None) };
            if moving.phase == Phase::Done || self.must_wait(&moving) || time::Instant::now() >= until {
                return Ok(Some(moving));
            }
            match timeout_at(until, self.phase(&moving)).await {
                Ok(Err(Stop::Failed(error))) => return Err(error),
                Ok(Ok(()) | Err(Stop::Late)) | Err(_) => {}
            }
        }
    }

    fn must_wait(&self, moving: &CategoryMove) -> bool {
        moving.phase == Phase::Settling && Instant::now() < moving.since.plus_seconds(self.settling)
    }

    /// Completes the current phase, and advances to the next one.
    async fn phase(&self, moving: &Stored<CategoryMove>) -> Result<(), Stop> {
        match moving.phase {
            Phase::Copying => self.copy_all(moving).await?,
            Phase::Placing | Phase::Settling => self.place_all(moving).await?,
            Phase::Clearing => self.clear_all(moving).await?,
            Phase::Checking => self.check_all(moving).await?,
            Phase::Done => return Ok(()),
        }
        self.update(relocation::advance(moving, Instant::now())?).await?;
        telemetry::crash_point("catalog.move.advanced");
        Ok(())
    }

    async fn update(&self, update: Single<Stored<CategoryMove>>) -> Result<(), Stop> {
        self.table.update(&update).await?.map(drop).map_err(|_| Stop::Late)
    }

    /// Executes a transaction of the move. Returns [`Stop::Late`] if the action on the move's own
    /// item is refused.
    async fn transact(
        &self,
        transaction: &Transaction<CategoryMoveAction>,
    ) -> Result<Result<(), Refusals<CategoryMoveAction>>, Stop> {
        match self.table.transact(transaction).await? {
            Err(refusals) if refusals.names(CategoryMoveAction::Move) => Err(Stop::Late),
            answer => Ok(answer),
        }
    }
}
