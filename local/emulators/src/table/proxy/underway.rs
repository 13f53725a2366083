//! Makes transactions take time, as in DynamoDB. While a transaction is in progress, single writes
//! and other transactions that use its items conflict.
//!
//! An emulator processes one request after the other, so its requests never conflict.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::operation::Operation;

#[derive(Debug, Clone)]
pub struct TransactionTime {
    pub key: Vec<String>,
    pub time: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Transactions {
    setting: OnceLock<TransactionTime>,
    taken: Mutex<HashSet<String>>,
    met: AtomicU64,
}

#[derive(Debug)]
pub(super) enum ConflictCheck<'u> {
    /// The request conflicts with no transaction, and begins none.
    Free,
    /// A transaction begins. It holds its items for at least this duration.
    Acquired(Hold<'u>, Duration),
    /// The request has `actions` actions. The action at index `culprit` uses an item that a
    /// transaction holds.
    Met { actions: usize, culprit: usize },
}

/// The items that one transaction holds. Dropping the value releases the items.
#[derive(Debug)]
pub(super) struct Hold<'u> {
    underway: &'u Transactions,
    items: Vec<String>,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let mut taken = self.underway.taken();
        for item in &self.items {
            taken.remove(item);
        }
    }
}

struct Named {
    item: String,
    is_written: bool,
}

impl Transactions {
    /// Makes transactions take time from now on. Only the first call has an effect.
    pub(super) fn set(&self, setting: TransactionTime) {
        let _ = self.setting.set(setting);
    }

    pub(super) fn conflicts(&self) -> u64 {
        self.met.load(Ordering::Relaxed)
    }

    pub(super) fn enter(&self, operation: Operation, body: &[u8]) -> ConflictCheck<'_> {
        let Some(setting) = self.setting.get() else { return ConflictCheck::Free };
        let Some(named) = named(operation, body, &setting.key) else { return ConflictCheck::Free };
        let mut taken = self.taken();
        if let Some(culprit) = named.iter().position(|named| taken.contains(&named.item)) {
            self.met.fetch_add(1, Ordering::Relaxed);
            return ConflictCheck::Met { actions: named.len(), culprit };
        }
        if operation == Operation::Write {
            return ConflictCheck::Free;
        }
        let items: Vec<String> = named.into_iter().filter(|named| named.is_written).map(|named| named.item).collect();
        taken.extend(items.iter().cloned());
        ConflictCheck::Acquired(Hold { underway: self, items }, setting.time)
    }

    fn taken(&self) -> MutexGuard<'_, HashSet<String>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the items of a transaction or of a single write. Returns `None` for other operations and
/// for invalid requests.
fn named(operation: Operation, body: &[u8], key: &[String]) -> Option<Vec<Named>> {
    match operation {
        Operation::Transact { actions } => {
            let request: Value = serde_json::from_slice(body).ok()?;
            let actions = request.get(actions)?.as_array()?;
            actions.iter().map(|action| of_action(action.as_object()?.iter().next()?, key)).collect()
        }
        Operation::Write => {
            let request: Value = serde_json::from_slice(body).ok()?;
            Some(vec![Named { item: item(&request, key)?, is_written: true }])
        }
        _ => None,
    }
}

fn of_action((kind, action): (&String, &Value), key: &[String]) -> Option<Named> {
    Some(Named { item: item(action, key)?, is_written: kind != "Get" })
}

/// Returns an identifier of the item in a request's `Key` or `Item`.
fn item(request: &Value, key: &[String]) -> Option<String> {
    let attributes = request.get("Key").or_else(|| request.get("Item"))?;
    let values: Option<Vec<&Value>> = key.iter().map(|name| attributes.get(name)).collect();
    serde_json::to_string(&(request.get("TableName")?, values?)).ok()
}
