//! The sales rows of orders, and what they prove: the counters of products and the totals of places.
//!
//! # Why the rows converge
//!
//! The rows of an order are a function of its head and its lines ([`key_schema::sales::derive`]). Lines never change. The head is not taken
//! from the record but read, strongly, when the rows are written: so a record that arrives twice, late or out of order derives what the
//! order is *now*. A row carries the head's `rev` and is written only over an older one, so that of two consumers which read different heads the
//! one with the newer head wins, whichever writes last. And the record of each change of the head that matters is delivered until it
//! was taken, after the change, so the newest such head is derived at least once. Rows are never deleted: those of a cancelled order stay
//! behind as reversed, with a `rev` that keeps older ones out.
//!
//! An order is never removed by the shop before its time to live is over. Then, or when an operator removes one, there is no head to derive from,
//! and its rows, which the books rest on, stay.
//!
//! # Why nothing is counted twice
//!
//! What is in the table of an order's rows is read, strongly, and each row is written on the condition that it still is what was read, together
//! with the difference that this makes to its product's counter ([`key_schema::sales::apply`]). Who meets a row that somebody else has
//! written in between writes nothing, and reads again. So the sum of what was ever added to a counter is what its rows say, at any moment and
//! after any crash: a large order's transactions each stand for themselves.

use std::time::Duration;

use key_schema::entity::AnyEntity;
use key_schema::id::OrderId;
use key_schema::item::Stored;
use key_schema::key::Key;
use key_schema::order::{self, Order, OrderStatus};
use key_schema::place::{self, SalePlace};
use key_schema::request::{Transaction, Write};
use key_schema::sales;
use table::{TableError, TransactError};
use tokio::time::Instant;

use super::DeriveError;
use super::turns::Turns;
use crate::ports::Items;

/// How often an order is tried. Two consumers that meet on one order finish in two, for nobody goes on writing the rows of one order. At the
/// counters of a popular product consumers may meet for as long as there are orders for it.
const ATTEMPTS: usize = 8;
/// No attempt begins later than this after the first. A transaction that meets others waits up to 5 s, and its last call may take 8 s; so an order
/// that meets others again and again fails by itself, and leaves the rest of the function's 60 s to the orders behind it.
const BUDGET: Duration = Duration::from_secs(30);

/// Whether the change may have altered the order's sales: it became visible, or it began or ceased to count as sold.
pub(super) fn moved(old: Option<&AnyEntity>, new: &Order) -> bool {
    match old {
        Some(AnyEntity::Order(old)) => old.status.is_sale() != new.status.is_sale(),
        // A new order, or one whose former state cannot be read.
        _ => new.status != OrderStatus::Placing,
    }
}

/// Brings an order's rows, and what they prove, up to its head. An attempt that met others has done whole transactions or nothing, and the next goes
/// on from what it reads.
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
    /// The table holds all of it, or newer.
    Done,
    /// Somebody else wrote what was to be written.
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
        match table.transact(&transaction).await {
            Ok(()) => telemetry::crash_point("stream.derived.applied"),
            Err(TransactError::Refused(_)) => return Ok(Attempt::Overtaken),
            Err(TransactError::Table(error)) => return Err(error.into()),
        }
    }
    Ok(Attempt::Done)
}

/// Where an order that was not counted yet is counted: where its shop is now.
async fn counted_at<I: Items>(table: &I, head: &Stored<Order>) -> Result<SalePlace, DeriveError> {
    let store_id = place::store_of(head);
    let store = table.get(&place::edit(&store_id)?).await?;
    Ok(SalePlace::of(head, store.as_deref(), store_id))
}

/// The items that orders share.
fn counters(transaction: &Transaction<()>) -> impl Iterator<Item = &Key> {
    transaction.actions().iter().filter_map(|(_, guarded)| match &guarded.write {
        Write::Update { key, .. } => Some(key),
        _ => None,
    })
}
