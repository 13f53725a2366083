//! The work of moving a category: what a request begins, and the request or the janitor goes on with.
//!
//! The transactions are in [`key_schema::category::relocation`], and so is why they hold whatever breaks off between them. Two who work on the same move
//! at once do no harm: each looks at the table before each step, and is refused when the other has begun the next phase.

mod clear;
mod copy;
mod place;
mod walk;

use key_schema::category::relocation::{self, CategoryMove, Part, Phase, SETTLING_SECONDS};
use key_schema::instant::Instant;
use key_schema::item::{EncodeError, Stored};
use key_schema::key::KeyError;
use key_schema::request::Single;
use table::{Refusal, Table, TableError, TransactError, WriteError};
use tokio::time::{self, timeout_at};

pub use walk::Walk;

/// Work that stopped. Everything done so far stands, and whoever goes on finds the rest.
#[derive(Debug, thiserror::Error)]
pub enum RelocationError {
    /// The table did not take a request.
    #[error(transparent)]
    Table(#[from] TableError),
    /// An item has no DynamoDB form.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

impl From<KeyError> for RelocationError {
    fn from(error: KeyError) -> Self {
        Self::Encode(error.into())
    }
}

/// Why a phase did not come to its end.
enum Stop {
    /// Somebody else has begun the next one.
    Late,
    Failed(RelocationError),
}

impl<E: Into<RelocationError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Who moves categories.
#[derive(Debug, Clone, Copy)]
pub struct Mover<'a> {
    table: &'a Table,
    settling: i64,
}

impl<'a> Mover<'a> {
    /// Of the categories in this table.
    #[must_use]
    pub const fn new(table: &'a Table) -> Self {
        Self { table, settling: SETTLING_SECONDS }
    }

    /// Another time than [`SETTLING_SECONDS`] to wait for requests that are under way: for who knows that there are none, as a test does.
    #[must_use]
    pub const fn settling(mut self, seconds: i64) -> Self {
        self.settling = seconds;
        self
    }

    /// The move that is under way, or the last one.
    ///
    /// # Errors
    /// [`RelocationError`].
    pub async fn current(&self) -> Result<Option<Stored<CategoryMove>>, RelocationError> {
        Ok(self.table.get(&relocation::get()?).await?)
    }

    /// Goes on with the move that is under way until it is over, or has to wait, or the time is up; the move as it is then.
    ///
    /// # Errors
    /// [`RelocationError`].
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

    /// What is left of the phase, and the step to the next.
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
        match self.table.update(&update).await {
            Ok(_) => Ok(()),
            Err(WriteError::Refused(_)) => Err(Stop::Late),
            Err(WriteError::Table(error)) => Err(error.into()),
        }
    }
}

/// The refusals of a transaction that concern what it moves; none when it was done.
fn refusals(answer: Result<(), TransactError<Part>>) -> Result<Vec<Refusal<Part>>, Stop> {
    match answer {
        Ok(()) => Ok(Vec::new()),
        Err(TransactError::Refused(refusals)) if refusals.iter().any(|refusal| refusal.label == Part::Move) => {
            Err(Stop::Late)
        }
        Err(TransactError::Refused(refusals)) => Ok(refusals),
        Err(TransactError::Table(error)) => Err(error.into()),
    }
}
