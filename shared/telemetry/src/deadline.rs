use std::time::{Duration, SystemTime};

/// A deadline that passed longer ago than this counts as no deadline.
const LONG_AGO: Duration = Duration::from_secs(3600);
/// The remaining time of an invocation without a deadline: the longest timeout of a function in the
/// template.
const WITHOUT_DEADLINE: Duration = Duration::from_secs(60);

/// Returns the time until the deadline that Lambda gives with an invocation, or zero after that
/// deadline.
///
/// `cargo lambda watch` sends a deadline a few minutes after the Unix epoch, which means "no
/// deadline". The result is then 60 s. With zero, functions that check their remaining time would
/// do no work under `cargo lambda watch`.
#[must_use]
pub fn time_left(deadline: SystemTime) -> Duration {
    left(deadline, SystemTime::now())
}

fn left(deadline: SystemTime, now: SystemTime) -> Duration {
    match now.duration_since(deadline) {
        Ok(over) if over > LONG_AGO => WITHOUT_DEADLINE,
        Ok(_) => Duration::ZERO,
        Err(ahead) => ahead.duration(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_time_ends_at_the_deadline_and_is_never_negative() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        assert_eq!(left(now + Duration::from_secs(7), now), Duration::from_secs(7));
        assert_eq!(left(now, now), Duration::ZERO);
        assert_eq!(left(now - Duration::from_secs(7), now), Duration::ZERO);
    }

    #[test]
    fn a_deadline_of_1970_means_no_deadline() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        assert_eq!(left(SystemTime::UNIX_EPOCH + Duration::from_secs(600), now), WITHOUT_DEADLINE);
    }
}
