//! Retries that the SDK does not make:
//!
//! - the unprocessed part of a batch
//! - a transaction that conflicts with another transaction
//! - a caller's read and write, when another writer changed the item between them

use std::sync::{Mutex, PoisonError};
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
    begun: Instant,
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
        Self { begun: Instant::now(), attempt: 0 }
    }

    /// Returns the time since the first attempt, if there were several.
    pub(crate) fn contended_for(&self) -> Option<Duration> {
        (self.attempt > 0).then(|| self.begun.elapsed())
    }

    /// Waits before the next attempt. Returns `false` when the budget is used up.
    pub async fn wait(&mut self) -> bool {
        let bound = BASE.saturating_mul(1 << self.attempt.min(10)).min(CAP);
        self.attempt += 1;
        let wait = bound.mul_f64(fastrand::f64());
        if self.attempt >= MAX_ATTEMPTS || self.begun.elapsed() + wait >= BUDGET {
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

/// The shortest and the longest pause that a client is asked to make, in seconds.
const PAUSE: std::ops::RangeInclusive<f64> = 1.0..=30.0;
/// What was measured longer ago says nothing about the present.
const FORGOTTEN: Duration = Duration::from_secs(60);
/// The weight of what was measured before, at each new measurement. About the last ten count.
const MEMORY: f64 = 0.9;

/// Measures how long requests wait for items that other requests keep busy.
///
/// The mean time for one write is the time that all such requests took, with those that gave up,
/// divided by the number of those that succeeded. A client that comes again after this time finds the
/// item as busy as now, or less.
#[derive(Debug, Default)]
pub struct Pressure {
    measured: Mutex<Waits>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Waits {
    seconds: f64,
    succeeded: f64,
    at: Option<Instant>,
}

impl Pressure {
    /// Records a write that succeeded after several attempts.
    pub(crate) fn succeeded(&self, after: Duration) {
        self.record(after, 1.0);
    }

    /// Records a request that gave up, and returns the pause after which its client should repeat it,
    /// in seconds. The pause is random, between half and one and a half times the mean time for one
    /// write. So clients that were refused together do not come again together.
    #[must_use]
    pub fn gave_up(&self, after: Duration) -> i64 {
        let Waits { seconds, succeeded, .. } = self.record(after, 0.0);
        let mean = seconds / succeeded.max(1.0);
        let pause = (mean * (0.5 + fastrand::f64())).clamp(*PAUSE.start(), *PAUSE.end());
        // The value is at most 30.
        #[allow(clippy::cast_possible_truncation)]
        let pause = pause.round() as i64;
        pause
    }

    fn record(&self, after: Duration, success: f64) -> Waits {
        let (mut measured, now) = (self.measured.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        if measured.at.is_some_and(|at| now.duration_since(at) > FORGOTTEN) {
            *measured = Waits::default();
        }
        *measured = Waits {
            seconds: measured.seconds.mul_add(MEMORY, after.as_secs_f64()),
            succeeded: measured.succeeded.mul_add(MEMORY, success),
            at: Some(now),
        };
        *measured
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
    #![allow(clippy::unwrap_used)]

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

    /// Returns the shortest and the longest of many pauses after such a history.
    fn pauses(succeeded: &[f64], gave_up: f64) -> (i64, i64) {
        let pauses = (0..200).map(|_| {
            let pressure = Pressure::default();
            for seconds in succeeded {
                pressure.succeeded(Duration::from_secs_f64(*seconds));
            }
            pressure.gave_up(Duration::from_secs_f64(gave_up))
        });
        let pauses: Vec<i64> = pauses.collect();
        (*pauses.iter().min().unwrap(), *pauses.iter().max().unwrap())
    }

    #[test]
    fn a_pause_follows_from_the_time_that_a_write_takes_and_is_random() {
        // One of eleven gives up: about a second for each success.
        assert_eq!(pauses(&[0.5; 10], 5.0), (1, 2));
        // Nothing succeeds: the time that was waited in vain.
        assert_eq!(pauses(&[], 6.0), (3, 9));
        // Each success takes longer, so clients wait longer.
        let (shortest, longest) = pauses(&[4.0; 10], 5.0);
        assert!(shortest >= 2 && longest > 5, "{shortest} {longest}");
        assert_eq!(pauses(&[], 1_000.0), (30, 30));
        assert_eq!(pauses(&[0.01; 10], 0.01), (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_grows_while_every_request_gives_up_and_old_waits_are_forgotten() {
        let pressure = Pressure::default();
        let last = (0..20).map(|_| pressure.gave_up(Duration::from_secs(5))).last();
        assert!(last > Some(20), "{last:?}");
        tokio::time::advance(Duration::from_secs(61)).await;
        assert!(pressure.gave_up(Duration::from_secs(2)) <= 3);
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
