//! The sales rows of orders, with the counters of products and the totals of places that they
//! prove.
//!
//! # Why the rows converge
//!
//! The rows of an order are a function of its head and its lines ([`key_schema::sales::derive`]).
//! Lines never change. The head does not come from the record: it is read strongly when the rows
//! are written. So a record that arrives twice, late or out of order derives the order's *current*
//! state.
//!
//! A row carries the head's `rev` and replaces only an older one. If two consumers read different
//! heads, the newer head wins, whichever writes last. Each relevant change of the head has a
//! record, which is delivered after the change until it is taken. So the newest relevant head is
//! derived at least once. Rows are never deleted: the rows of a cancelled order remain as reversed,
//! and their `rev` keeps older ones out.
//!
//! The shop never removes an order before it expires. After its expiry, or its removal by an
//! operator, there is no head to derive from. Its rows are part of the books and remain.
//!
//! # Why nothing is counted twice
//!
//! The consumer reads an order's rows strongly. It writes each row on the condition that the row is
//! unchanged, together with the difference for its product's counter
//! ([`key_schema::sales::apply`]). A consumer that finds the row changed by another writes nothing
//! and reads again. So a counter is the sum of its rows at any moment and after any crash. Each
//! transaction of a large order is complete in itself.

use std::time::Duration;

use key_schema::entity::AnyEntity;
use key_schema::id::OrderId;
use key_schema::item::Stored;
use key_schema::key::Key;
use key_schema::order::{self, Order, OrderStatus};
use key_schema::place::{self, SalePlace};
use key_schema::request::{Transaction, Write};
use key_schema::sales;
use table::TableError;
use tokio::time::Instant;

use super::DeriveError;
use super::turns::Turns;
use crate::ports::Items;

/// The number of attempts for an order. Two consumers that conflict on one order's rows finish in
/// two, because no writer keeps changing those rows. On the counters of a popular product,
/// conflicts may go on for as long as there are orders for it.
const ATTEMPTS: usize = 8;
/// No attempt begins later than this after the first. A transaction waits up to 5 s on conflicts,
/// and its last call may take 8 s. So an order with endless conflicts fails by itself, and leaves
/// the rest of the function's 60 s to the orders behind it.
const BUDGET: Duration = Duration::from_secs(30);

/// Returns whether the change may have altered the order's sales: the order became visible, or it
/// began or ceased to count as sold.
pub(super) fn moved(old: Option<&AnyEntity>, new: &Order) -> bool {
    match old {
        Some(AnyEntity::Order(old)) => old.status.is_sale() != new.status.is_sale(),
        // A new order, or one with an unreadable old image.
        _ => new.status != OrderStatus::Placing,
    }
}

/// Updates an order's rows and counters to its head. An attempt that stopped at a conflict has
/// completed whole transactions or nothing, and the next one continues from a new read.
pub(super) async fn derive<I: Items>(table: &I, turns: &Turns, id: &OrderId) -> Result<(), DeriveError> {
    let (mut met, until) = (DeriveError::Overtaken, Instant::now() + BUDGET);
    for attempted in 0..ATTEMPTS {
        if attempted > 0 && Instant::now() >= until {
            break;
        }
        match attempt(table, turns, id).await {
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
    /// The table holds all rows, at this state or a newer one.
    Done,
    /// Another consumer wrote the rows in between.
    Overtaken,
}

async fn attempt<I: Items>(table: &I, turns: &Turns, id: &OrderId) -> Result<Attempt, DeriveError> {
    let Some(head) = table.get(&order::head(id)?).await? else { return Ok(Attempt::Done) };
    let lines = table.query(&order::lines(id)?).await?.items;
    let seen: sales::Derived = table.query(&sales::derived(id)?).await?.items.into_iter().collect();
    let place = match &seen.place {
        Some(place) => place.data.clone(),
        None => counted_at(table, &head).await?,
    };
    for transaction in sales::apply(&head, &lines, &seen, place)? {
        let _turn = turns.take(counters(&transaction)).await;
        match table.transact(&transaction).await? {
            Ok(()) => telemetry::crash_point("stream.derived.applied"),
            Err(_) => return Ok(Attempt::Overtaken),
        }
    }
    Ok(Attempt::Done)
}

/// Returns the place that counts an order which is not counted yet: the current place of its shop.
async fn counted_at<I: Items>(table: &I, head: &Stored<Order>) -> Result<SalePlace, DeriveError> {
    let store_id = place::store_of(head);
    let store = table.get(&place::read_for_update(&store_id)?).await?;
    Ok(SalePlace::of(head, store.as_deref(), store_id))
}

/// Returns the keys of the counters, which orders share.
fn counters(transaction: &Transaction<()>) -> impl Iterator<Item = &Key> {
    transaction.actions().iter().filter_map(|(_, guarded)| match &guarded.write {
        Write::Update { key, .. } => Some(key),
        _ => None,
    })
}
