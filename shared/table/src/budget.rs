//! Limits the time and the write units of one HTTP request that removes long lists of items.

use std::time::{Duration, Instant};

use item_model::prelude::Request as _;
use item_model::request::BatchWrite;

use crate::Table;
use crate::error::TableError;

const TIME: Duration = Duration::from_secs(5);
/// The write units per second: a quarter of the template's default `MaxWriteUnits`.
const UNITS_PER_SECOND: f64 = 1_000.0;
/// The number of writes per batch. The deletion of an item of 100 KB costs 100 units, so a batch of
/// such items uses up the units of a second.
const BATCH: usize = 10;

/// Paces the writes of one request, and ends them after 5 seconds or 5,000 write units.
///
/// The budget counts all writes through its [`Table`], including the writes of concurrent requests.
/// On Lambda an execution environment processes one request at a time. Elsewhere concurrent
/// requests slow each other down.
#[derive(Debug)]
pub struct Budget<'t> {
    table: &'t Table,
    begun: Instant,
    units: f64,
    time: Duration,
}

impl<'t> Budget<'t> {
    #[must_use]
    pub fn begin(table: &'t Table) -> Self {
        Self::share(table, TIME)
    }

    /// Begins a budget of the given time, but at most 5 seconds, for one of several removals that
    /// share a worker's time.
    #[must_use]
    pub fn share(table: &'t Table, time: Duration) -> Self {
        Self { table, begun: Instant::now(), units: table.meter.written(), time: time.min(TIME) }
    }

    /// Returns the time that the writes so far take at the permitted rate.
    fn due(&self) -> Duration {
        Duration::try_from_secs_f64((self.table.meter.written() - self.units) / UNITS_PER_SECOND).unwrap_or(TIME)
    }

    /// Waits until the rate of the writes so far is at most the permitted rate. So the worker's
    /// next budget does not exceed the rate.
    pub async fn settle(&self) {
        tokio::time::sleep_until((self.begun + self.due()).into()).await;
    }

    /// Waits until the request may write again. Callers do one step of their work before they first
    /// call this method, so every request makes some progress.
    ///
    /// # Errors
    /// [`TableError::OverBudget`] when the budget is used up.
    pub async fn pace(&self) -> Result<(), TableError> {
        if self.due().max(self.begun.elapsed()) >= self.time {
            return Err(TableError::OverBudget);
        }
        self.settle().await;
        Ok(())
    }

    /// Writes items without conditions, in small batches one after the other.
    ///
    /// # Errors
    /// [`TableError::OverBudget`] when the budget is used up, possibly after some of the writes.
    /// [`TableError::Unprocessed`] when DynamoDB left writes unprocessed. Otherwise the errors of
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
