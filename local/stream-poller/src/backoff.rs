use std::time::Duration;

/// A series of waits. Each wait is twice as long as the wait before it, but not longer than `last`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    first: Duration,
    last: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(first: Duration, last: Duration) -> Self {
        Self { first, last, next: first }
    }

    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.next.min(self.last);
        self.next = wait.saturating_mul(2);
        wait
    }

    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_a_reset_returns_to_the_first() {
        let mut backoff = Backoff::new(Duration::from_millis(20), Duration::from_millis(70));
        let waits: Vec<u128> = (0..4).map(|_| backoff.next().as_millis()).collect();
        assert_eq!(waits, [20, 40, 70, 70]);
        backoff.reset();
        assert_eq!(backoff.next(), Duration::from_millis(20));
    }
}
