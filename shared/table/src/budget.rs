//! Limits the time and the write units of one HTTP request that removes long lists of items.

use std::time::{Duration, Instant};

use item_model::prelude::Request as _;
use item_model::request::BatchWrite;

use crate::Table;
use crate::error::TableError;

/// The time that one request spends at most.
const TIME: Duration = Duration::from_secs(5);
/// The write units per second: a quarter of the template's default `MaxWriteUnits`.
const UNITS_PER_SECOND: f64 = 1_000.0;
/// The writes per batch. The deletion of a large item costs 100 units.
const BATCH: usize = 10;

/// Paces the writes of one request, and ends them after 5 seconds or 5,000 write units.
///
/// The budget counts all writes through its [`Table`], also those of concurrent requests. On Lambda
/// an execution environment processes one request at a time. Elsewhere concurrent requests slow
/// each other down.
#[derive(Debug)]
pub struct Budget<'t> {
    table: &'t Table,
    begun: Instant,
    units: f64,
}

impl<'t> Budget<'t> {
    /// Begins the budget of a request.
    #[must_use]
    pub fn begin(table: &'t Table) -> Self {
        Self { table, begun: Instant::now(), units: table.meter.written() }
    }

    /// Waits until the request may write again. Callers do one step of their work before the first
    /// call, so every request makes some progress.
    ///
    /// # Errors
    /// [`TableError::OverBudget`] when the budget is used up.
    pub async fn pace(&self) -> Result<(), TableError> {
        let units = self.table.meter.written() - self.units;
        let due = Duration::try_from_secs_f64(units / UNITS_PER_SECOND).unwrap_or(TIME);
        if due.max(self.begun.elapsed()) >= TIME {
            return Err(TableError::OverBudget);
        }
        tokio::time::sleep_until((self.begun + due).into()).await;
        Ok(())
    }

    /// Writes items without conditions, in small batches one after the other.
    ///
    /// # Errors
    /// [`TableError::OverBudget`] after some of the writes, [`TableError::Unprocessed`], or as
    /// [`Table::batch_write`].
    pub async fn write(&self, batch: &BatchWrite) -> Result<(), TableError> {
        for writes in batch.writes().chunks(BATCH) {
            let left = self.table.batch_write(&BatchWrite::new(batch.pattern(), writes.to_vec())).await?.len();
            if left > 0 {
                return Err(TableError::Unprocessed(left));
            }
            self.pace().await?;
        }
        Ok(())
    }
}
