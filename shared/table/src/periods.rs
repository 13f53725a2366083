//! A table for each period of a time series, beside the main table.
//!
//! The table of a period is created before the period begins, or never. So all items of a period
//! are in one table. This is the table of the period, or the main table if the period has none.
//!
//! If DynamoDB refuses a request because a table is missing, [`Periods::attempt`] repeats the
//! request with the main table. The [`Periods`] of an execution environment remember the missing
//! table for [`MISSING_FOR`]. This time must be shorter than the time between the creation of a
//! table and the start of its period.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use crate::Table;
use crate::error::{TableError, classify};

/// How long an execution environment remembers that a table is missing.
pub const MISSING_FOR: Duration = Duration::from_secs(5 * 60);

/// The maximum number of missing tables that one request may find.
const MAX_MISSING: usize = 4;

/// The tables of the periods of a time series.
#[derive(Debug, Default)]
pub struct Periods {
    is_split: bool,
    /// The missing tables, each with the time of the last refusal.
    missing: Mutex<BTreeMap<String, Instant>>,
}

impl Periods {
    /// Creates the state without a missing table. Unless `is_split`, the main table has all items.
    #[must_use]
    pub fn new(is_split: bool) -> Self {
        Self { is_split, missing: Mutex::default() }
    }

    /// Returns the table of a period by its name, or `main` if that table is known to be missing.
    #[must_use]
    pub fn table(&self, main: &Table, name: String) -> Table {
        let is_missing = || self.missing().get(&name).is_some_and(|since| since.elapsed() < MISSING_FOR);
        if !self.is_split || is_missing() {
            return main.clone();
        }
        Table { name, is_of_period: true, ..main.clone() }
    }

    /// Sends a request to tables of [`Periods::table`], and repeats it if such a table is missing.
    pub async fn attempt<T, F>(&self, request: impl Fn() -> F) -> Result<T, TableError>
    where
        F: Future<Output = Result<T, TableError>>,
    {
        for _ in 0..MAX_MISSING {
            match request().await {
                Err(TableError::NoTable(name)) => {
                    tracing::info!(table = name, "the table of a period is missing: the main table has its items");
                    self.missing().insert(name, Instant::now());
                }
                answer => return answer,
            }
        }
        request().await
    }

    fn missing(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Classifies a failed call of a request that may be sent to the table of a period.
    pub(crate) fn failure<E>(&self, error: &SdkError<E, HttpResponse>) -> TableError
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let code = error.as_service_error().and_then(ProvideErrorMetadata::code);
        if self.is_of_period && code == Some("ResourceNotFoundException") {
            return TableError::NoTable(self.name.clone());
        }
        classify(error)
    }
}
