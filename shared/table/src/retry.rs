//! Retries that the SDK does not make:
//!
//! - the unprocessed part of a batch
//! - a transaction that conflicts with another transaction
//! - a caller's read and write, when another writer changed the item between them

use std::time::Duration;

use tokio::time::Instant;

use crate::error::TableError;

/// The upper bound of the first wait. Each later bound is twice as long, up to [`CAP`].
const BASE: Duration = Duration::from_millis(25);
/// The upper bound of every wait.
const CAP: Duration = Duration::from_millis(800);
/// No attempt begins after this time. If the function's deadline is earlier, `http_api::run`
/// responds at the deadline. An unoptimized build, as in tests, makes each attempt several times
/// slower, so its budget is longer. There the number of attempts is the effective limit.
const BUDGET: Duration = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 5 });
/// The maximum number of attempts, even if they are quick.
const MAX_ATTEMPTS: u32 = 30;

/// Full jitter within a time budget: each wait is random between zero and an exponentially growing
/// bound. That spreads contending writers better than a fixed schedule (AWS Architecture Blog,
/// "Exponential Backoff And Jitter").
#[derive(Debug)]
pub struct Backoff {
    until: Instant,
    attempt: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

impl Backoff {
    #[must_use]
    pub fn new() -> Self {
        Self { until: Instant::now() + BUDGET, attempt: 0 }
    }

    /// Waits before the next attempt. Returns `false` when the budget is used up.
    pub async fn wait(&mut self) -> bool {
        let bound = BASE.saturating_mul(1 << self.attempt.min(10)).min(CAP);
        self.attempt += 1;
        let wait = bound.mul_f64(fastrand::f64());
        if self.attempt >= MAX_ATTEMPTS || Instant::now() + wait >= self.until {
            return false;
        }
        tokio::time::sleep(wait).await;
        true
    }

    /// Waits after a conflict with another writer.
    ///
    /// # Errors
    /// [`TableError::Contended`] when the budget is used up.
    pub async fn after_conflict(&mut self) -> Result<(), TableError> {
        if self.wait().await { Ok(()) } else { Err(TableError::Contended) }
    }
}

/// Repeats an attempt until it returns a value, with a wait after each conflict. An attempt returns
/// [`None`] when another writer came first. Each attempt must read its items again.
///
/// If an attempt keeps data for the next attempt, write a loop with [`Backoff::after_conflict`]
/// instead. The future of an attempt cannot borrow mutable data of the closure.
///
/// # Errors
/// The error of an attempt, or [`TableError::Contended`] when the budget is used up.
pub async fn retry_on_conflict<T, E, F>(mut attempt: impl FnMut() -> F) -> Result<T, E>
where
    E: From<TableError>,
    F: Future<Output = Result<Option<T>, E>>,
{
    let mut backoff = Backoff::new();
    loop {
        if let Some(value) = attempt().await? {
            return Ok(value);
        }
        backoff.after_conflict().await?;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Makes attempts, of which attempt number `until` is the first that returns a value.
    async fn run(until: u32) -> (Result<u32, TableError>, u32) {
        let attempts = Cell::new(0);
        let result = retry_on_conflict(async || {
            attempts.set(attempts.get() + 1);
            Ok((attempts.get() == until).then_some(until))
        });
        (result.await, attempts.get())
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_with_waits_between_them_are_made_until_one_returns_a_value() {
        let begin = Instant::now();
        assert!(matches!(run(1).await, (Ok(1), 1)));
        assert_eq!(begin.elapsed(), Duration::ZERO);
        assert!(matches!(run(5).await, (Ok(5), 5)));
        assert!(begin.elapsed() > Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn endless_conflicts_are_an_error() {
        assert!(matches!(run(u32::MAX).await, (Err(TableError::Contended), MAX_ATTEMPTS)));
    }

    #[tokio::test]
    async fn an_error_ends_the_attempts() {
        let attempts = Cell::new(0);
        let result = retry_on_conflict(async || {
            attempts.set(attempts.get() + 1);
            Err::<Option<()>, _>(TableError::Throttled)
        });
        assert!(matches!(result.await, Err(TableError::Throttled)));
        assert_eq!(attempts.get(), 1);
    }
}
