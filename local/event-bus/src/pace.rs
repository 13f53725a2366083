use std::time::Duration;

/// The waits between retries. The default suits one machine. On AWS, the waits are much longer.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// The first wait. Each further wait is twice as long, up to `most`.
    pub first: Duration,
    pub most: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { first: Duration::from_millis(100), most: Duration::from_secs(5) }
    }
}

impl Pace {
    /// Returns the wait after this many failures. The number is at least 1.
    pub(crate) fn after(self, failures: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_is_twice_the_previous_one_up_to_the_maximum() {
        let pace = Pace { first: Duration::from_millis(20), most: Duration::from_millis(70) };
        let waits: Vec<u128> = [1, 2, 3, 4, 40].map(|failures| pace.after(failures).as_millis()).into();
        assert_eq!(waits, [20, 40, 70, 70, 70]);
    }
}
