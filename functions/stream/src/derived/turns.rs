//! Turns: locks that serialize transactions on the same counters inside one consumer.
//!
//! Nearly every order changes the counter of a popular product. If two transactions update one item
//! at once, DynamoDB cancels one of them. Conflicts between consumers are resolved by retries.
//! Conflicts inside one consumer would delay every lane, and can be avoided. So a transaction waits
//! for this consumer's other transactions on the same counters.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use key_schema::key::Key;
use tokio::sync::{Mutex, MutexGuard};

/// The number of locks. A hash maps each counter to a lock. If two counters share a lock, their
/// transactions wait for each other without need, but nothing else changes.
const SLOTS: usize = 64;

#[derive(Debug)]
pub(super) struct Turns([Mutex<()>; SLOTS]);

impl Default for Turns {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(())))
    }
}

impl Turns {
    /// Waits until no other transaction holds the locks of these items. The locks are taken in
    /// ascending order, so there is no deadlock.
    pub(super) async fn take<'k>(&self, keys: impl IntoIterator<Item = &'k Key>) -> Vec<MutexGuard<'_, ()>> {
        let slots: BTreeSet<usize> = keys.into_iter().map(slot).collect();
        let mut turns = Vec::with_capacity(slots.len());
        for slot in slots {
            if let Some(slot) = self.0.get(slot) {
                turns.push(slot.lock().await);
            }
        }
        turns
    }
}

fn slot(key: &Key) -> usize {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let slots = u64::try_from(SLOTS).unwrap_or(1);
    usize::try_from(hasher.finish() % slots).unwrap_or(0)
}
