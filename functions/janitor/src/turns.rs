//! The order in which a round handles the entries of a list, and the time for each entry.
//!
//! A list can be longer than a round has time for, and its first entries can need many rounds. So a
//! round divides its time among all entries, and each round begins at another entry.

use std::time::Duration;

use key_schema::instant::Instant;
use tokio::time;

/// 2^32 divided by the golden ratio. The multiples of this number are spread evenly modulo 2^32, so
/// the rounds of consecutive minutes begin at entries that are far apart.
const GOLDEN: u64 = 0x9E37_79B9;

/// Rotates a list. With `n` entries and time for `k` of them in a round, each entry is handled
/// within about `3n / k` minutes.
pub(crate) fn order<T>(mut entries: Vec<T>, now: Instant) -> Vec<T> {
    let minute = u64::try_from(now.as_millis() / 60_000).unwrap_or(0);
    let place = (minute.wrapping_mul(GOLDEN) & 0xFFFF_FFFF).saturating_mul(entries.len() as u64) >> 32;
    entries.rotate_left(usize::try_from(place).unwrap_or(0));
    entries
}

/// Takes entries from both lists in turn, and then the rest of the longer list.
pub(crate) fn alternate<T>(first: Vec<T>, second: Vec<T>) -> Vec<T> {
    let mut second = second.into_iter();
    let mut entries = Vec::new();
    for one in first {
        entries.push(one);
        entries.extend(second.next());
    }
    entries.extend(second);
    entries
}

/// Returns the time for the next entry, if `left` entries share the time until `stop`.
pub(crate) fn share(stop: time::Instant, left: usize) -> Duration {
    stop.saturating_duration_since(time::Instant::now()) / u32::try_from(left.max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::{alternate, order};
    use key_schema::instant::Instant;

    #[test]
    fn lists_take_turns_until_both_end() {
        assert_eq!(alternate(vec![1, 2, 3], vec![10]), [1, 10, 2, 3]);
        assert_eq!(alternate(vec![1], vec![10, 20, 30]), [1, 10, 20, 30]);
        assert_eq!(alternate(vec![], vec![10, 20]), [10, 20]);
    }

    #[test]
    fn every_entry_of_a_long_list_soon_has_its_turn() {
        for (entries, handled) in [(1, 1), (7, 1), (7, 2), (100, 10), (240, 24)] {
            let mut last = vec![0; entries];
            for minute in 1..4 * entries {
                let now = Instant::EPOCH.plus_seconds(60 * i64::try_from(minute).unwrap());
                for entry in order((0..entries).collect(), now).into_iter().take(handled) {
                    last[entry] = minute;
                }
                let waits = last.iter().map(|last| minute - last).max().unwrap();
                assert!(waits <= 3 * entries / handled + 1, "{waits} minutes for {entries} entries");
            }
        }
    }
}
