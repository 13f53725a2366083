//! The sales rows of orders, and their sums: the counters of products and the totals of regions.
//!
//! # Why the rows converge
//!
//! The rows of an order depend only on its head and its lines ([`key_schema::sales::derive`]).
//! Lines never change, and a row has the values of its line. So the consumer reads the lines only
//! until each line has a row, and shares the read with the sink `bus`. The consumer does not take
//! the head from the record, but reads it with strong consistency. So a record that arrives twice,
//! late or out of order derives the order's *current* state.
//!
//! A row has the head's `rev` and replaces only an older row. If two consumers read different
//! heads, the newer head wins, whichever consumer writes last. Each relevant change of the head
//! has a record, which Lambda delivers after the change. So rows are derived at least once from the
//! newest relevant head. Rows are never deleted. The rows of a cancelled order remain and are
//! marked as reversed. Because of their `rev`, no older row replaces them.
//!
//! No function removes an order before it expires. After an order's expiry, or its removal by an
//! operator, the order has no head. The rows remain, because they are accounting records.
//!
//! # Why nothing is counted twice
//!
//! The consumer reads an order's rows with strong consistency. One transaction writes a row, on the
//! condition that it is unchanged, and adds the difference to the counters
//! ([`key_schema::sales::apply`]). If another consumer has changed the row, this consumer writes
//! nothing and reads again. So a counter is the sum of its rows at any moment and after any crash.
//! A large order takes several transactions.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use key_schema::entity::AnyEntity;
use key_schema::id::OrderId;
use key_schema::instant::Instant as Timestamp;
use key_schema::item::Stored;
use key_schema::key::Key;
use key_schema::order::{self, Order, OrderStatus};
use key_schema::region::{self, SaleRegion};
use key_schema::request::{Transaction, Write};
use key_schema::sales;
use table::TableError;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::DeriveError;
use crate::batch::Record;
use crate::order_lines;
use crate::ports::Items;

/// The maximum number of attempts for an order. Two consumers that conflict on one order's rows
/// need only two attempts. Conflicts on a popular product's counters may continue for as long as
/// customers order the product.
const ATTEMPTS: usize = 8;
/// The time after the first attempt within which another attempt may begin. A transaction waits up
/// to 5 s on conflicts, and its last call may take 8 s. So an order with endless conflicts fails,
/// and leaves enough of the function's 60 s to the later orders.
const BUDGET: Duration = Duration::from_secs(30);

/// Returns whether the change may have affected the order's sales. A change affects them if the
/// order became visible, if it began or ceased to count as sold or as shipped, or if a customer
/// claimed a guest's order.
pub(super) fn affects_sales(old: Option<&AnyEntity>, new: &Order) -> bool {
    match old {
        Some(AnyEntity::Order(old)) => {
            old.status.is_sale() != new.status.is_sale()
                || old.status.is_shipped() != new.status.is_shipped()
                || old.customer_id != new.customer_id
        }
        // The order is new, or its old image cannot be read.
        _ => new.status != OrderStatus::Placing,
    }
}

/// Derives an order's rows and counters from its head. An attempt that stopped at a conflict has
/// completed only whole transactions, and the next attempt reads again.
pub(super) async fn derive<I: Items>(
    table: &I,
    turns: &Turns,
    record: &Record<'_>,
    id: &OrderId,
) -> Result<(), DeriveError> {
    let (mut met, until) = (DeriveError::Overtaken, Instant::now() + BUDGET);
    for attempted in 0..ATTEMPTS {
        if attempted > 0 && Instant::now() >= until {
            break;
        }
        match attempt(table, turns, record, id).await {
            Ok(Attempt::Done) => return Ok(()),
            Ok(Attempt::Overtaken) => {}
            Err(error @ DeriveError::Table(TableError::Contended)) => met = error,
            Err(error) => return Err(error),
        }
    }
    Err(met)
}

#[derive(Debug, PartialEq, Eq)]
enum Attempt {
    /// The table holds all rows in the state of this head, or in a newer state.
    Done,
    /// Another consumer changed the rows after this consumer read them.
    Overtaken,
}

async fn attempt<I: Items>(
    table: &I,
    turns: &Turns,
    record: &Record<'_>,
    id: &OrderId,
) -> Result<Attempt, DeriveError> {
    let Some(head) = table.get(&order::head(id)?).await? else { return Ok(Attempt::Done) };
    let seen: sales::Derived = table.query(&sales::derived(id)?).await?.items.into_iter().collect();
    let lines = if seen.is_complete(&head) { &[] } else { order_lines::read(record, table, id).await? };
    let region = match &seen.region {
        Some(region) => region.data.clone(),
        None => counted_at(table, &head).await?,
    };
    for transaction in sales::apply(&head, lines, &seen, region, Timestamp::now())? {
        let _turn = turns.take(counters(&transaction)).await;
        match table.transact(&transaction).await? {
            Ok(()) => telemetry::crash_point("stream.derived.applied"),
            Err(_) => return Ok(Attempt::Overtaken),
        }
    }
    Ok(Attempt::Done)
}

/// Returns the region in which a new order is counted: the current country and city of its store.
async fn counted_at<I: Items>(table: &I, head: &Stored<Order>) -> Result<SaleRegion, DeriveError> {
    let store_id = region::store_of(head);
    let store = table.get(&region::read_for_update(&store_id)?).await?;
    Ok(SaleRegion::of(head, store.as_deref(), store_id))
}

/// Returns the keys of the transaction's counters. Different orders change the same counters.
fn counters(transaction: &Transaction<()>) -> impl Iterator<Item = &Key> {
    transaction.actions().iter().filter_map(|(_, guarded)| match &guarded.write {
        Write::Update { key, .. } => Some(key),
        _ => None,
    })
}

/// The number of locks. A hash maps each counter to a lock. If two counters share a lock, their
/// transactions wait for each other without need, but nothing else changes.
const SLOTS: usize = 64;

/// Locks that serialize transactions on the same counters inside one consumer.
///
/// Nearly every order changes the counter of a popular product. If two transactions update one item
/// at once, DynamoDB cancels one of them. Conflicts between consumers are resolved by retries.
/// Conflicts inside one consumer would delay every lane, and can be avoided. So a transaction waits
/// for this consumer's other transactions on the same counters.
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
