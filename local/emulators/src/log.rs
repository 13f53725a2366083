//! What an endpoint has taken, kept to be looked at: the newest, up to a bound.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A part of what was taken, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The part.
    pub items: Vec<T>,
    /// How many there were up to its end since the start: where the next part begins.
    pub next: u64,
    /// Whether there are later ones.
    pub more: bool,
}

/// The newest of what was taken.
#[derive(Debug)]
pub(crate) struct Log<T> {
    kept: Mutex<Kept<T>>,
    capacity: usize,
}

#[derive(Debug)]
struct Kept<T> {
    items: VecDeque<T>,
    dropped: u64,
}

impl<T: Clone> Log<T> {
    pub(crate) const fn new(capacity: usize) -> Self {
        Self { kept: Mutex::new(Kept { items: VecDeque::new(), dropped: 0 }), capacity }
    }

    pub(crate) fn push(&self, item: T) {
        let mut kept = self.lock();
        if kept.items.len() == self.capacity {
            kept.items.pop_front();
            kept.dropped += 1;
        }
        kept.items.push_back(item);
    }

    /// At most `limit` of them, without the first `after` since the start.
    pub(crate) fn page(&self, after: u64, limit: usize) -> Page<T> {
        let kept = self.lock();
        let skipped = after.max(kept.dropped);
        let start = usize::try_from(skipped - kept.dropped).unwrap_or(usize::MAX);
        let items: Vec<T> = kept.items.iter().skip(start).take(limit).cloned().collect();
        let next = skipped.min(kept.total()).saturating_add(length(items.len()));
        Page { items, next, more: next < kept.total() }
    }

    /// How many are no longer kept.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    fn lock(&self) -> MutexGuard<'_, Kept<T>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Kept<T> {
    fn total(&self) -> u64 {
        self.dropped.saturating_add(length(self.items.len()))
    }
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_read_in_pages_and_the_others_are_counted() {
        let log = Log::new(3);
        assert_eq!(log.page(0, 10), Page { items: vec![], next: 0, more: false });
        (1..=5).for_each(|n| log.push(n));
        assert_eq!(log.dropped(), 2);
        assert_eq!(log.page(0, 2), Page { items: vec![3, 4], next: 4, more: true });
        assert_eq!(log.page(4, 2), Page { items: vec![5], next: 5, more: false });
        assert_eq!(log.page(5, 2), Page { items: vec![], next: 5, more: false });
        assert_eq!(log.page(u64::MAX, 2), Page { items: vec![], next: 5, more: false });
    }
}
