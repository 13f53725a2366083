//! Moves a category. A request begins the move, and that request or the janitor continues it.
//!
//! [`key_schema::category::relocation`] contains the transactions and explains why an interruption
//! between them is harmless. The table refuses the step of a worker when another worker has begun the
//! next phase.

mod clear;
mod copy;
mod products;
mod walk;

use key_schema::category::relocation::{self, CategoryMove, CategoryMoveAction, Phase, SETTLING_SECONDS};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::request::{Single, Transaction};
use table::{Refusals, Table};
use tokio::time;

use crate::engine::{self, Bound, Standing, Worker, workflow};
pub use walk::Walk;

/// An error that stopped the move. Another worker can continue it.
pub type RelocationError = crate::WorkflowError<CategoryMoveAction>;

type Stop = engine::Stop<CategoryMoveAction>;

workflow! {
    /// Moves a category with its products. The move's item has the phase. A worker completes the
    /// phase, and then advances the item to the next one.
    MoveCategory of CategoryMoveAction, by Moving, begun ["catalog.move.begun"];
    Copying => {
        run copy_all, at most Bound::Deadline, within "catalog.move.copied";
        forward only;
    }
    Placing => {
        run move_all, at most Bound::Deadline, within "catalog.move.placed", within "catalog.move.transferred";
        forward only;
    }
    Settling => {
        run move_all, at most Bound::Deadline;
        forward only;
    }
    Clearing => {
        run clear_all, at most Bound::Deadline, within "catalog.move.cleared";
        forward only;
    }
    Checking => {
        run check_all, at most Bound::Deadline;
        forward only;
    }
    Advance => {
        run advance, at most Bound::Deadline, crash "catalog.move.advanced";
        forward only;
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
        let Some(moving) = self.current().await? else { return Ok(None) };
        let mut moving = Moving { table: self.table, settling: self.settling, until, moving, is_current: true };
        engine::run(&mut moving).await
    }
}

/// A worker on a move.
struct Moving<'a> {
    table: &'a Table,
    settling: i64,
    until: time::Instant,
    moving: Stored<CategoryMove>,
    /// Whether `moving` was read after the last step.
    is_current: bool,
}

impl Worker for Moving<'_> {
    type End = Option<Stored<CategoryMove>>;

    async fn stands(
        &mut self,
        done: Option<MoveCategory>,
    ) -> Result<Standing<MoveCategory, Self::End>, RelocationError> {
        if done.is_some_and(|done| done != MoveCategory::Advance) {
            return Ok(Standing::At(MoveCategory::Advance));
        }
        if !std::mem::take(&mut self.is_current) {
            match self.table.get(&relocation::get()?).await? {
                Some(moving) => self.moving = moving,
                None => return Ok(Standing::Over(None)),
            }
        }
        let step = match self.moving.phase {
            _ if time::Instant::now() >= self.until => None,
            Phase::Copying => Some(MoveCategory::Copying),
            Phase::Placing => Some(MoveCategory::Placing),
            Phase::Settling if Instant::now() < self.moving.since.plus_seconds(self.settling) => None,
            Phase::Settling => Some(MoveCategory::Settling),
            Phase::Clearing => Some(MoveCategory::Clearing),
            Phase::Checking => Some(MoveCategory::Checking),
            Phase::Done => None,
        };
        Ok(step.map_or_else(|| Standing::Over(Some(self.moving.clone())), Standing::At))
    }

    fn deadline(&self) -> Option<time::Instant> {
        Some(self.until)
    }
}

impl Moving<'_> {
    /// Advances the move to its next phase.
    async fn advance(&mut self) -> Result<(), Stop> {
        self.update(relocation::next_phase(&self.moving, Instant::now())?).await
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
