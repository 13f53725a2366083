use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// A limit on the number of items, or of capacity units, that a command uses per second. All
/// parallel work of the command shares it.
///
/// Unused capacity is not saved for later, because a burst would disturb the shop's own traffic.
#[derive(Debug)]
pub struct Pace {
    each: Duration,
    free: Mutex<Instant>,
}

impl Pace {
    /// Creates a limit of `rate` items or units per second, or no limit without a rate.
    #[must_use]
    pub fn new(rate: Option<u32>) -> Self {
        let each = rate.map_or(Duration::ZERO, |rate| Duration::from_secs(1) / rate.max(1));
        Self { each, free: Mutex::new(Instant::now()) }
    }

    pub async fn admit(&self, items: usize) {
        let cost = self.each.saturating_mul(u32::try_from(items).unwrap_or(u32::MAX));
        let begin = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            let begin = (*free).max(Instant::now());
            *free = begin + cost;
            begin
        };
        sleep_until(begin).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pace_limits_all_tasks_that_share_it() {
        let (pace, started) = (Pace::new(Some(100)), Instant::now());
        tokio::join!(pace.admit(100), pace.admit(100), pace.admit(1));
        let took = started.elapsed();
        assert!(took >= Duration::from_secs(2) && took < Duration::from_millis(2_100), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_rate_no_task_waits() {
        let (pace, started) = (Pace::new(None), Instant::now());
        pace.admit(usize::MAX).await;
        pace.admit(usize::MAX).await;
        assert_eq!(started.elapsed(), Duration::ZERO);
    }
}
