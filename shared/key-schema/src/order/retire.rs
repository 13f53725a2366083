//! Retiring an order that has come to its end: everything of it gets a time to live, and the stream archives what DynamoDB then removes.
//!
//! A retired order leaves the lists at once. Until it expires it is found by its id and in its customer's list, and cannot be moved any more.
//! Its sales and its log stay, and so does the claim of its reference, which is unique for ever.

use super::{CustomerOrder, Order, OrderLine, OrderStatus, OrderStatusEvent, Part, RETIRE, copy_key, key};
use crate::change::Change;
use crate::expression::{Condition, value};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::Index;
use crate::request::{Guarded, MAX_TRANSACTION_ACTIONS, Transaction};

/// An order to be retired, as it was read.
#[derive(Debug)]
pub struct Retirement<'a> {
    /// The head.
    pub order: &'a Stored<Order>,
    /// Its lines.
    pub lines: &'a [Stored<OrderLine>],
    /// Its history.
    pub history: &'a [Stored<OrderStatusEvent>],
    /// From when on it is gone. Late enough for all transactions to be through by then.
    pub expires_at: Instant,
    /// When it is retired.
    pub at: Instant,
}

/// Retires an order, by as many transactions as its lines need, in this order.
///
/// The first has the head, on the condition that it is as it was read and closed, so that nothing can move the order behind it; a run that broke off after
/// it is taken up by reading the order again, and ends with the same time to live. Nothing is left to do when there is no transaction.
///
/// # Errors
/// [`EncodeError`].
pub fn retire(retirement: Retirement<'_>) -> Result<Vec<Transaction<Part>>, EncodeError> {
    let Retirement { order, lines, history, expires_at, at } = retirement;
    let expires_at = order.expires_at.unwrap_or(expires_at);
    let mut actions = Vec::new();
    if order.expires_at.is_none() {
        let closed = OrderStatus::VISIBLE.into_iter().filter(|status| status.is_closed());
        let closed = closed.map(|status| Ok(Condition::Is("status", value(status)?)));
        let closed = Condition::Any(closed.collect::<Result<_, EncodeError>>()?);
        let head = expiring(Change::<Order>::visible(at), expires_at)?.leave(Index::Gsi2);
        let unchanged = Condition::version(order.meta.version).and(closed);
        actions.push((Part::Order, Guarded::update(key(&order.id)?, head, unchanged)));
        let copy = expiring(Change::<CustomerOrder>::visible(at), expires_at)?.leave(Index::Gsi3);
        let copied = copy_key(&order.customer_id, &order.id)?;
        actions.push((Part::Copy, Guarded::update(copied, copy, Condition::Exists)));
    }
    for event in history.iter().filter(|event| event.expires_at.is_none()) {
        actions.push((Part::History, part(event, expires_at)?));
    }
    for line in lines.iter().filter(|line| line.expires_at.is_none()) {
        actions.push((Part::Line(line.line), part(line, expires_at)?));
    }
    let mut transactions = Vec::new();
    let mut actions = actions.into_iter().peekable();
    while actions.peek().is_some() {
        let some = actions.by_ref().take(MAX_TRANSACTION_ACTIONS);
        transactions.push(some.fold(Transaction::new(&RETIRE), |all, (part, guarded)| all.action(part, guarded)));
    }
    Ok(transactions)
}

/// Lines and steps never change otherwise, and nobody sees when they expire.
fn part<T: Entity>(item: &Stored<T>, expires_at: Instant) -> Result<Guarded, EncodeError> {
    Ok(Guarded::update(item.key()?, expiring(Change::<T>::copied(), expires_at)?, Condition::Exists))
}

fn expiring<T: Entity>(change: Change<T>, at: Instant) -> Result<Change<T>, EncodeError> {
    Ok(change.set("expires_at", at)?.expire_at(at))
}
