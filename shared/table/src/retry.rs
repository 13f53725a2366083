//! Retries of what the SDK does not retry: unprocessed parts, transactions that met another, and a caller's own read-and-write that met one.

use std::time::{Duration, Instant};

/// The first wait is at most this long; each later one may be twice as long.
const BASE: Duration = Duration::from_millis(25);
/// No wait is longer.
const CAP: Duration = Duration::from_millis(800);
/// No new attempt begins after this; a function's own deadline may come earlier ([`http_api::run`] answers then).
const BUDGET: Duration = Duration::from_secs(5);
/// No more attempts than this, however quick they are.
const MAX_ATTEMPTS: u32 = 30;

/// Full jitter inside a budget: each wait is anything from nothing to an exponentially growing bound, which spreads contenders
/// better than any fixed schedule. (AWS Architecture Blog, "Exponential Backoff And Jitter".)
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
    /// A fresh budget.
    #[must_use]
    pub fn new() -> Self {
        Self { until: Instant::now() + BUDGET, attempt: 0 }
    }

    /// Waits before the next attempt; false when the budget is used up.
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
