//! Retiring an order that has come to its end: everything of it gets a time to live, and the stream archives what DynamoDB then removes.
//!
//! A retired order leaves the lists. Until it expires it is found by its id and in its customer's list, and cannot be moved any more.
//! Its sales and its log stay, and so does the claim of its reference, which is unique for ever.
//!
//! # Why a large order is retired whole or found again
//!
//! An order of more parts than one transaction takes needs several. The first dates the head (`expires_at`), on the condition that it is as it was
//! read and closed: from then on nobody can move the order, so no part of an order that lives on ever gets a time to live. The last takes the head
//! out of its list and gives it its own time to live. So until everything is done the head is in the list by which orders to be retired are found, and
//! DynamoDB does not remove it; whoever reads the order again goes on where another broke off, at whatever time, with the date that it has. Every
//! transaction has a condition on the head.

use super::{CustomerOrder, Order, OrderLine, OrderStatus, OrderStatusEvent, Part, RETIRE, copy_key, key};
use crate::change::Change;
use crate::expression::{Condition, value};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::Index;
use crate::request::{Guarded, MAX_TRANSACTION_ACTIONS, Transaction};

/// Parts in a transaction that has the head as well.
const BESIDE_HEAD: usize = MAX_TRANSACTION_ACTIONS - 1;
/// Parts in the last transaction, which has the head and the copy as well.
const AT_LAST: usize = MAX_TRANSACTION_ACTIONS - 2;

/// An order to be retired, as it was read.
#[derive(Debug)]
pub struct Retirement<'a> {
    /// The head.
    pub order: &'a Stored<Order>,
    /// Its lines.
    pub lines: &'a [Stored<OrderLine>],
    /// Its history.
    pub history: &'a [Stored<OrderStatusEvent>],
    /// From when on it is gone, unless it was dated before.
    pub expires_at: Instant,
    /// When it is retired.
    pub at: Instant,
}

/// Retires an order, by as many transactions as its parts need, in this order; the module says why so.
///
/// A run that broke off is taken up by reading the order again. Of an order that is retired already the last transaction is refused.
///
/// # Errors
/// [`EncodeError`].
pub fn retire(retirement: Retirement<'_>) -> Result<Vec<Transaction<Part>>, EncodeError> {
    let Retirement { order, lines, history, expires_at, at } = retirement;
    let begun = order.expires_at.is_some();
    let expires_at = order.expires_at.unwrap_or(expires_at);
    let mut parts = Vec::new();
    for event in history.iter().filter(|event| event.expires_at.is_none()) {
        parts.push((Part::History, part(event, expires_at)?));
    }
    for line in lines.iter().filter(|line| line.expires_at.is_none()) {
        parts.push((Part::Line(line.line), part(line, expires_at)?));
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
        transactions.push(all(some, Transaction::new(&RETIRE).action(Part::Order, guard)));
        condition = dated.clone();
    }
    // Of an order that was only dated it is still in its list.
    let listed = Condition::Has(Index::Gsi2.partition_attribute());
    let last = expiring(Change::<Order>::visible(at), expires_at)?.leave(Index::Gsi2);
    let copy = expiring(Change::<CustomerOrder>::visible(at), expires_at)?.leave(Index::Gsi3);
    let copied = copy_key(&order.customer_id, &order.id)?;
    let last = Transaction::new(&RETIRE)
        .action(Part::Order, Guarded::update(head, last, condition.and(listed)))
        .action(Part::Copy, Guarded::update(copied, copy, Condition::Exists));
    transactions.push(all(parts, last));
    Ok(transactions)
}

/// The order is as it was read, closed, and nothing is left to do with it.
fn untouched(order: &Stored<Order>) -> Result<Condition, EncodeError> {
    let closed = OrderStatus::VISIBLE.into_iter().filter(|status| status.is_closed());
    let closed = closed.map(|status| Ok(Condition::Is("status", value(status)?)));
    let closed = Condition::Any(closed.collect::<Result<_, EncodeError>>()?);
    Ok(Condition::version(order.meta.version).and(closed).and(Condition::Lacks("unfinished")))
}

fn all(parts: impl IntoIterator<Item = (Part, Guarded)>, first: Transaction<Part>) -> Transaction<Part> {
    parts.into_iter().fold(first, |all, (part, guarded)| all.action(part, guarded))
}

/// Lines and steps never change otherwise, and nobody sees when they expire.
fn part<T: Entity>(item: &Stored<T>, expires_at: Instant) -> Result<Guarded, EncodeError> {
    Ok(Guarded::update(item.key()?, expiring(Change::<T>::copied(), expires_at)?, Condition::Exists))
}

fn expiring<T: Entity>(change: Change<T>, at: Instant) -> Result<Change<T>, EncodeError> {
    Ok(change.set("expires_at", at)?.expire_at(at))
}
