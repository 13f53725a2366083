//! Turns: locks that serialize transactions on the same counters inside one consumer.
//!
//! The counter of a popular product moves with nearly every order. Two transactions that update one
//! item at once are in conflict, and DynamoDB cancels one of them. Consumers resolve conflicts with
//! each other by retries. Inside one consumer, such conflicts are avoidable and would delay every
//! lane. So its lanes take turns: a transaction waits for the transactions on the same counters,
//! and for no other.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use key_schema::key::Key;
use tokio::sync::{Mutex, MutexGuard};

/// The number of locks. Counters map to locks by a hash. Two counters of one lock only wait for
/// each other.
const SLOTS: usize = 64;

/// The turns of one consumer.
#[derive(Debug)]
pub(super) struct Turns([Mutex<()>; SLOTS]);

impl Default for Turns {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(())))
    }
}

impl Turns {
    /// Waits until no other transaction holds any of these items. The slots are locked in ascending
    /// order, so there is no deadlock.
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
