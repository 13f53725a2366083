//! Turns: who may move which counter now.
//!
//! The counter of a popular product moves with nearly every order. Two transactions that move one item at once are a conflict, and DynamoDB cancels
//! one of them. Between consumers that is met by retries; inside one it would be of our own making, and cost every lane its time.
//! So the lanes of a consumer take turns: a transaction waits for those that move the same counters, and for no other.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use key_schema::key::Key;
use tokio::sync::{Mutex, MutexGuard};

/// Counters are told apart by a hash: so many turns can be taken at once. Two counters of one slot only wait for each other.
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
    /// Waits until nobody else moves any of these items. Slots are taken in their order, so nobody waits in a circle.
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
