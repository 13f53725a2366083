//! Retries that the SDK does not make. They concern unprocessed parts of a batch, transactions that
//! conflict with another one, and a caller's own read-then-write after a conflict.

use std::time::{Duration, Instant};

/// The upper bound of the first wait. Each later bound is twice as long.
const BASE: Duration = Duration::from_millis(25);
/// The upper bound of every wait.
const CAP: Duration = Duration::from_millis(800);
/// No attempt begins after this time. A function's own deadline may come earlier (`http_api::run`
/// then responds).
const BUDGET: Duration = Duration::from_secs(5);
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
    /// Starts a new budget.
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
}
