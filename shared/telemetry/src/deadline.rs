//! How long an invocation may take.

use std::time::{Duration, SystemTime};

/// What Lambda never does: hand out an invocation whose time was over so long ago.
const LONG_AGO: Duration = Duration::from_secs(3600);
/// What an invocation has whose deadline is none. The longest timeout of a function in the template.
const UNSAID: Duration = Duration::from_secs(60);

/// What is left until the deadline that Lambda names with an invocation; nothing once it is over.
///
/// `cargo lambda watch` names one a few minutes after the beginning of 1970, which stands for none: 60 s are left then, or every function that
/// watches its time would do nothing there.
#[must_use]
pub fn time_left(deadline: SystemTime) -> Duration {
    left(deadline, SystemTime::now())
}

fn left(deadline: SystemTime, now: SystemTime) -> Duration {
    match now.duration_since(deadline) {
        Ok(over) if over > LONG_AGO => UNSAID,
        Ok(_) => Duration::ZERO,
        Err(ahead) => ahead.duration(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_the_time_until_the_deadline_or_nothing() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        assert_eq!(left(now + Duration::from_secs(7), now), Duration::from_secs(7));
        assert_eq!(left(now, now), Duration::ZERO);
        assert_eq!(left(now - Duration::from_secs(7), now), Duration::ZERO);
    }

    #[test]
    fn a_deadline_of_1970_is_none() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        assert_eq!(left(SystemTime::UNIX_EPOCH + Duration::from_secs(600), now), UNSAID);
    }
}
