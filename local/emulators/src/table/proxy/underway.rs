//! Transactions that take their time, as DynamoDB's do: while one is under way its items are its own, and whoever else writes one of them is refused.
//!
//! An emulator does one request after the other, so that nobody ever meets anybody there.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::operation::Operation;

/// How long a transaction is under way.
#[derive(Debug, Clone)]
pub struct TransactionTime {
    /// The names of the table's key attributes.
    pub key: Vec<String>,
    /// How long at least.
    pub time: Duration,
}

/// The transactions under way.
#[derive(Debug, Default)]
pub(super) struct Underway {
    setting: OnceLock<TransactionTime>,
    taken: Mutex<HashSet<String>>,
    met: AtomicU64,
}

/// What a request finds.
#[derive(Debug)]
pub(super) enum Found<'u> {
    /// Nobody is there.
    Free,
    /// Its items are its own now, for at least so long.
    Taken(Hold<'u>, Duration),
    /// Of so many actions this one met a transaction.
    Met { actions: usize, culprit: usize },
}

/// The items of one transaction, until it is dropped.
#[derive(Debug)]
pub(super) struct Hold<'u> {
    underway: &'u Underway,
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

/// An item that a request names.
struct Named {
    item: String,
    is_written: bool,
}

impl Underway {
    /// From now on transactions take time. The first setting stays.
    pub(super) fn set(&self, setting: TransactionTime) {
        // Whoever sets it twice has it as it was.
        let _ = self.setting.set(setting);
    }

    /// How many requests met a transaction.
    pub(super) fn met(&self) -> u64 {
        self.met.load(Ordering::Relaxed)
    }

    pub(super) fn enter(&self, operation: Operation, body: &[u8]) -> Found<'_> {
        let Some(setting) = self.setting.get() else { return Found::Free };
        let Some(named) = named(operation, body, &setting.key) else { return Found::Free };
        let mut taken = self.taken();
        if let Some(culprit) = named.iter().position(|named| taken.contains(&named.item)) {
            self.met.fetch_add(1, Ordering::Relaxed);
            return Found::Met { actions: named.len(), culprit };
        }
        if operation == Operation::Write {
            return Found::Free;
        }
        let items: Vec<String> = named.into_iter().filter(|named| named.is_written).map(|named| named.item).collect();
        taken.extend(items.iter().cloned());
        Found::Taken(Hold { underway: self, items }, setting.time)
    }

    fn taken(&self) -> MutexGuard<'_, HashSet<String>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The items of a transaction or of a single write; `None` for other requests, and for what the table will refuse.
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

/// A name of the item whose `Key`, or whose whole, a request carries.
fn item(request: &Value, key: &[String]) -> Option<String> {
    let attributes = request.get("Key").or_else(|| request.get("Item"))?;
    let values: Option<Vec<&Value>> = key.iter().map(|name| attributes.get(name)).collect();
    serde_json::to_string(&(request.get("TableName")?, values?)).ok()
}
