//! Retirement of closed orders: every item of the order gets a time to live. The stream's consumer
//! archives the items when DynamoDB removes them.
//!
//! A retired order leaves the lists by status and the list of shipments. Until the order expires,
//! callers find it by its id and in its customer's list, and its status can no longer change. Its
//! sales and its log never expire. The claim on its reference never expires either, because a
//! reference is unique for ever.
//!
//! # How an interrupted retirement is completed
//!
//! The retirement of a large order takes several transactions. The first transaction sets the
//! head's `expires_at`, on the condition that the head is closed and unchanged since it was read.
//! From then on the status cannot change. So an item gets a time to live only if its whole order
//! will expire. The last transaction removes the head from its list by status and sets the head's
//! own time to live.
//!
//! So until the last transaction, the next run finds the head in that list, and DynamoDB does not
//! remove the head. If a run fails, a later run reads the order again and continues with the stored
//! `expires_at`. Every transaction has a condition on the head.

use item_model::prelude::*;

use super::{CustomerOrder, Order, OrderAction, OrderStatus, PlacedOrder, RETIRE, copy_key, key};
use crate::change::Change;
use crate::expression::{Condition, value};
use crate::index::{GSI2, GSI3};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::request::{Guarded, MAX_TRANSACTION_ACTIONS, Transaction};

/// The maximum number of items that a transaction takes in addition to the head.
const BESIDE_HEAD: usize = MAX_TRANSACTION_ACTIONS - 1;
/// The maximum number of items that the last transaction takes in addition to head and copy.
const AT_LAST: usize = MAX_TRANSACTION_ACTIONS - 2;

/// Retires an order that was read. The transactions must run in the sequence in which they are
/// returned (see the module). The order expires at `expires_at`, unless an earlier run has already
/// set the expiry.
///
/// After a failed run, the caller reads the order again and calls this function again. If the order
/// is already retired, DynamoDB refuses the last transaction.
pub fn retire(
    order: &PlacedOrder,
    expires_at: Instant,
    at: Instant,
) -> Result<Vec<Transaction<OrderAction>>, EncodeError> {
    let PlacedOrder { head: order, lines, history, payments, operations, addresses, uses: _ } = order;
    let begun = order.expires_at.is_some();
    let expires_at = order.expires_at.unwrap_or(expires_at);
    let mut parts = Vec::new();
    for event in history.iter().filter(|event| event.expires_at.is_none()) {
        parts.push((OrderAction::History, part(event, expires_at)?));
    }
    for payment in payments.iter().filter(|payment| payment.expires_at.is_none()) {
        parts.push((OrderAction::Payment, unlisted(payment, expires_at)?));
    }
    for operation in operations.iter().filter(|operation| operation.expires_at.is_none()) {
        parts.push((OrderAction::Operation, unlisted(operation, expires_at)?));
    }
    for line in lines.iter().filter(|line| line.expires_at.is_none()) {
        parts.push((OrderAction::Line(line.line), part(line, expires_at)?));
    }
    if let Some(addresses) = addresses.as_ref().filter(|addresses| addresses.expires_at.is_none()) {
        parts.push((OrderAction::Addresses, part(addresses, expires_at)?));
    }
    let head = key(&order.id)?;
    let dated = Condition::Is("expires_at", value(expires_at)?);
    let mut condition = if begun { dated.clone() } else { untouched(order)? };
    let mut transactions = Vec::new();
    while parts.len() > AT_LAST {
        let guard = if transactions.is_empty() && !begun {
            let date = Change::<Order>::visible(at).set("expires_at", expires_at)?;
            Guarded::update(head.clone(), date, condition)
        } else {
            Guarded::check(head.clone(), condition)
        };
        let some = parts.drain(..BESIDE_HEAD.min(parts.len()));
        transactions.push(all(some, Transaction::new(&RETIRE).action(OrderAction::Order, guard)));
        condition = dated.clone();
    }
    // The head is in its list by status until the last transaction has run.
    let listed = Condition::Has(GSI2.partition_attribute());
    let last = expiring(Change::<Order>::visible(at), expires_at)?.leave(GSI2);
    let copy = expiring(Change::<CustomerOrder>::visible(at), expires_at)?.leave(GSI3);
    let copied = copy_key(&order.customer_id, &order.id)?;
    let last = Transaction::new(&RETIRE)
        .action(OrderAction::Order, Guarded::update(head, last, condition.and(listed)))
        .action(OrderAction::Copy, Guarded::update(copied, copy, Condition::Exists));
    transactions.push(all(parts, last));
    Ok(transactions)
}

/// Returns the condition that the order is closed, has no unfinished work, and is unchanged since
/// it was read.
fn untouched(order: &Stored<Order>) -> Result<Condition, EncodeError> {
    let closed = OrderStatus::VISIBLE.into_iter().filter(|status| status.is_closed());
    let closed = closed.map(|status| Ok(Condition::Is("status", value(status)?)));
    let closed = Condition::Any(closed.collect::<Result<_, EncodeError>>()?);
    Ok(Condition::version(order.meta.version).and(closed).and(Condition::Lacks("unfinished")))
}

fn all(
    parts: impl IntoIterator<Item = (OrderAction, Guarded)>,
    first: Transaction<OrderAction>,
) -> Transaction<OrderAction> {
    parts.into_iter().fold(first, |all, (action, guarded)| all.action(action, guarded))
}

/// Sets the time to live of a line, an event or the addresses. Nothing else changes them
/// once the order is retired, and no response shows their expiry, so the change increases only `rev`.
fn part<T: Entity>(item: &Stored<T>, expires_at: Instant) -> Result<Guarded, EncodeError> {
    Ok(Guarded::update(item.key()?, expiring(Change::<T>::copied(), expires_at)?, Condition::Exists))
}

/// Sets the time to live of a payment or an operation, and removes it from its list.
fn unlisted<T: Entity>(item: &Stored<T>, expires_at: Instant) -> Result<Guarded, EncodeError> {
    let change = expiring(Change::<T>::copied(), expires_at)?.leave(GSI3);
    Ok(Guarded::update(item.key()?, change, Condition::Exists))
}

fn expiring<T: Entity>(change: Change<T>, at: Instant) -> Result<Change<T>, EncodeError> {
    Ok(change.set("expires_at", at)?.expire_at(at))
}
