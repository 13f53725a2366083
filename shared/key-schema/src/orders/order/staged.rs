//! Orders that are too large for one transaction.
//!
//! A DynamoDB transaction takes 100 actions, and a line takes two: its own item and its product's
//! stock. A larger order is *staged* over several transactions:
//!
//! 1. [`begin`] writes the order's main item, the head, in status `placing`, which no list shows.
//!    It also claims the number, the reference and the idempotency key, and counts the uses of
//!    promotions.
//! 2. [`reserve`], several times, writes lines and takes their stock.
//! 3. [`commit`] makes the order visible.
//!
//! If the order is refused or interrupted, [`undo`] reverses these steps, also in several
//! transactions.
//!
//! After [`begin`], each of these transactions increases the head's `rev`. Its condition is that
//! the head still has the `rev` that the writer has read. If two writers work on one order, such as
//! a slow function and the janitor, one of them stops at its next step. The head also counts the
//! reserved lines. A reader that reads during a transaction may see only some of the lines. The
//! count shows the reader that lines are missing. Because of the `rev` and the count, no stock is
//! taken twice, given back twice, or lost.
//!
//! A large order that is cancelled or returned changes its status immediately. The same transaction
//! returns as much stock as fits. Later transactions return the rest ([`give_back`]), and the head
//! counts the lines whose stock has returned.
//!
//! The janitor finds unfinished orders through a sparse index ([`unfinished`]) and finishes or
//! undoes them.

mod patterns;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use super::addresses;
use super::open::{self, LapseIndexKey};
use super::placed::stored;
use super::{
    CustomerOrder, Order, OrderAction, OrderLine, OrderNumber, OrderStatus, PlacedOrder, ReferenceClaim,
    StatusIndexKey, key, number,
};
use crate::change::{Change, IndexEntry};
use crate::customer;
use crate::encoding::join;
use crate::expression::{Condition, number, value};
use crate::id::{OrderId, ProductId};
use crate::idempotency::{self, Scope, StoredResponse};
use crate::index::GSI1;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity as _, Stored};
use crate::key::{IndexKey, KeyError, PartitionKey, SortKey};
use crate::product::{self, Stock};
use crate::promotion::{self, MAX_APPLIED};
use crate::request::{BatchGet, Guarded, MAX_TRANSACTION_ACTIONS, Query, Range, Transaction};
use crate::shard::Shards;

pub use patterns::*;

pub const UNFINISHED_SHARDS: Shards = Shards(4);
/// The maximum number of lines reserved in one transaction: two actions each, plus the head.
pub const RESERVED_AT_ONCE: usize = (MAX_TRANSACTION_ACTIONS - 1) / 2;
/// The maximum number of lines undone in one transaction. Each line takes two actions, and each
/// promotion has two counts. The other actions are the head, its three claims, and the customer's
/// open orders.
pub const UNDONE_AT_ONCE: usize = (MAX_TRANSACTION_ACTIONS - 5 - 2 * MAX_APPLIED) / 2;
/// The maximum number of lines whose stock returns in one transaction of [`give_back`]. The
/// transaction also writes the head.
pub const GIVEN_BACK_AT_ONCE: usize = MAX_TRANSACTION_ACTIONS - 1;

/// Work on an order that takes several transactions and is not finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    pub since: Instant,
    pub work: Work,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    Placing {
        #[serde(skip_serializing_if = "Option::is_none", default)]
        key: Option<Scope>,
        /// The number of reserved lines. A Query is not isolated from transactions, even with
        /// strong consistency, so a reader may see only some of the lines. This count shows the
        /// reader whether lines are missing.
        lines: u64,
    },
    /// The stock of the order is being returned, in line order. The value is the number of lines
    /// whose stock has returned.
    Returning(u64),
}

/// The key of an unfinished order in the janitor's list.
#[derive(Debug, Clone, Copy)]
pub struct UnfinishedIndexKey<'a> {
    pub unfinished: &'a Unfinished,
    pub id: &'a OrderId,
}

impl UnfinishedIndexKey<'_> {
    pub(super) fn key(&self) -> Result<IndexKey, KeyError> {
        Ok(IndexKey {
            index: GSI1,
            partition: shard(UNFINISHED_SHARDS.of(self.id.as_str()))?,
            sort: SortKey::new(join(&self.unfinished.since.to_string(), &[self.id]))?,
        })
    }
}

impl IndexEntry for UnfinishedIndexKey<'_> {
    type Entity = Order;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        Ok(vec![("unfinished", value(self.unfinished)?)])
    }
}

fn shard(shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("UNFINISHED", &[&shard])
}

/// An unfinished order as the janitor's list returns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedOrder {
    pub id: OrderId,
}

view!(UnfinishedOrder of Order);

/// Lists the orders whose work began at `before` or earlier and is unfinished, the oldest work
/// first.
pub fn unfinished(before: Instant) -> Result<Query<UnfinishedOrder>, KeyError> {
    let shards = UNFINISHED_SHARDS.all().map(shard).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&UNFINISHED, shards, Range::Between(Instant::MIN.to_string(), format!("{before}$"))))
}

/// Reads the stocks of products, in the order of `products`.
pub fn available<'a>(products: impl IntoIterator<Item = &'a ProductId>) -> Result<BatchGet<Stored<Stock>>, KeyError> {
    let keys = products.into_iter().map(product::stock_key).collect::<Result<_, _>>()?;
    Ok(BatchGet::new(&AVAILABLE, keys))
}

/// Begins to place an order. Its head must be in status `placing`. `with` are the writes of
/// [`super::place`], and the uses of promotions. The cart is deleted by [`commit`] only.
pub fn begin(order: &Stored<Order>, with: &[(OrderAction, Guarded)]) -> Result<Transaction<OrderAction>, EncodeError> {
    let begun = Transaction::new(&BEGIN)
        .action(OrderAction::Order, Guarded::put(order, Condition::NotExists)?)
        .optional(OrderAction::Customer, customer::check_profile(&order.customer_id)?)
        .action(OrderAction::Number, number::claim(order)?)
        .optional(OrderAction::Reference, claim_of_reference(order)?);
    let with = with.iter().filter(|(action, _)| *action != OrderAction::Cart);
    Ok(with.fold(begun, |begun, (action, guarded)| begun.action(*action, guarded.clone())))
}

/// Returns the claim on the order's reference, if the order has one.
pub(super) fn claim_of_reference(order: &Stored<Order>) -> Result<Option<Guarded>, EncodeError> {
    let Some(claim) = ReferenceClaim::of(order) else { return Ok(None) };
    Guarded::put(&stored(order, claim), Condition::NotExists).map(Some)
}

/// Returns the condition that the order is being placed, and that no other writer has changed it
/// since it was read.
fn untouched(order: &Stored<Order>) -> Result<Condition, EncodeError> {
    Ok(Condition::Is("status", value(OrderStatus::Placing)?).and(Condition::Is("rev", number(order.meta.rev))))
}

/// Returns the head after a transaction that reserved `lines` lines, or gave them back.
#[must_use]
pub fn counted(order: &Stored<Order>, lines: usize, reserved: bool) -> Stored<Order> {
    let mut order = order.clone();
    order.meta.rev += 1;
    if let Some(Unfinished { work: Work::Placing { lines: count, .. }, .. }) = &mut order.data.unfinished {
        let lines = u64::try_from(lines).unwrap_or(u64::MAX);
        *count = if reserved { count.saturating_add(lines) } else { count.saturating_sub(lines) };
    }
    order
}

/// Returns the change that turns the head into [`counted`]. The key in the janitor's list stays the
/// same.
fn moved(order: &Stored<Order>, lines: usize, reserved: bool) -> Result<Change<Order>, EncodeError> {
    let change = Change::<Order>::copied();
    match &counted(order, lines, reserved).unfinished {
        Some(unfinished) => change.enter(&UnfinishedIndexKey { unfinished, id: &order.id }),
        None => Ok(change),
    }
}

/// Reserves some lines, at most [`RESERVED_AT_ONCE`]. [`counted`] returns the head as it is
/// afterwards.
pub fn reserve(order: &Stored<Order>, lines: &[Stored<OrderLine>]) -> Result<Transaction<OrderAction>, EncodeError> {
    let head = Guarded::update(key(&order.id)?, moved(order, lines.len(), true)?, untouched(order)?);
    let mut transaction = Transaction::new(&RESERVE).action(OrderAction::Order, head);
    for line in lines {
        transaction = transaction.action(OrderAction::Line(line.line), Guarded::put(line, Condition::NotExists)?);
        transaction =
            line.take(line.meta.created_at)?.fold(transaction, |all, (action, take)| all.action(action, take));
    }
    Ok(transaction)
}

/// Makes an order visible after all of its lines are reserved. `with` are the writes of
/// [`super::place`], of which [`begin`] has sent all but the deletion of the cart.
pub fn commit(order: &PlacedOrder, with: &[(OrderAction, Guarded)]) -> Result<Transaction<OrderAction>, EncodeError> {
    let PlacedOrder { head, history, addresses, .. } = order;
    let status = OrderStatus::Pending;
    let mut change = Change::<Order>::copied()
        .enter(&StatusIndexKey::of(head, status))?
        .leave(GSI1)
        .set("unfinished", None::<Unfinished>)?;
    if let Some(lapses_at) = head.lapses_at {
        change = change.enter(&LapseIndexKey { lapses_at, id: &head.id })?;
    }
    let copied = CustomerOrder { status, ..CustomerOrder::of(head) };
    let mut transaction = Transaction::new(&COMMIT)
        .action(OrderAction::Order, Guarded::update(key(&head.id)?, change, untouched(head)?))
        .action(OrderAction::Copy, Guarded::put(&stored(head, copied), Condition::NotExists)?)
        .optional(OrderAction::Customer, customer::check_profile(&head.customer_id)?)
        .optional(OrderAction::Addresses, addresses.as_ref().map(addresses::add).transpose()?);
    for step in history {
        transaction = transaction.action(OrderAction::History, Guarded::put(step, Condition::NotExists)?);
    }
    let cart = with.iter().filter(|(action, _)| *action == OrderAction::Cart);
    Ok(cart.fold(transaction, |all, (action, guarded)| all.action(*action, guarded.clone())))
}

/// Deletes some lines of an order that was not committed, at most [`UNDONE_AT_ONCE`], and returns
/// their stock. [`counted`] returns the head as it is afterwards.
pub fn undo(
    order: &Stored<Order>,
    lines: &[Stored<OrderLine>],
    at: Instant,
) -> Result<Transaction<OrderAction>, EncodeError> {
    let head = Guarded::update(key(&order.id)?, moved(order, lines.len(), false)?, untouched(order)?);
    undone(Transaction::new(&UNDO).action(OrderAction::Order, head), lines, at)
}

/// Deletes the last lines of an order that was not committed, at most [`UNDONE_AT_ONCE`], and
/// returns their stock. Also deletes the order and the claims that still belong to it, and gives
/// back the uses of its promotions.
pub fn undo_last(
    order: &Stored<Order>,
    lines: &[Stored<OrderLine>],
    claims: Claims,
    at: Instant,
) -> Result<Transaction<OrderAction>, EncodeError> {
    let head = Guarded::delete(key(&order.id)?, untouched(order)?);
    let own = Condition::NotExists.or(Condition::Is("order_id", value(&order.id)?));
    let mut transaction = undone(Transaction::new(&UNDO).action(OrderAction::Order, head), lines, at)?;
    if claims.number {
        let claim = number::claim_key(OrderNumber::of(&order.id))?;
        transaction = transaction.action(OrderAction::Number, Guarded::delete(claim, own.clone()));
    }
    if let Some(claim) = ReferenceClaim::of(order).filter(|_| claims.reference) {
        transaction = transaction.action(OrderAction::Reference, Guarded::delete(claim.key()?, own));
    }
    if let Some(Unfinished { work: Work::Placing { key: Some(scope), .. }, .. }) = &order.unfinished
        && claims.idempotency
    {
        let own = Condition::NotExists.or(Condition::Is("answer", value(StoredResponse::Order(order.id.clone()))?));
        transaction = transaction.action(OrderAction::Idempotency, Guarded::delete(idempotency::key(scope)?, own));
    }
    if claims.open && order.is_open() {
        transaction = transaction.action(OrderAction::Open, open::leave(order)?);
    }
    for (action, guarded) in promotion::give_back(order.promotions(), &order.customer_id)? {
        transaction = transaction.action(action, guarded);
    }
    Ok(transaction)
}

/// The claims that an order may still hold. After an idempotency key has expired, another order may
/// have claimed it. Then the undone order no longer holds that claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claims {
    /// Whether the order may hold the claim on its number.
    pub number: bool,
    /// Whether the order may hold the claim on its reference.
    pub reference: bool,
    /// Whether the order may hold the claim on its idempotency key.
    pub idempotency: bool,
    /// Whether the customer's open orders may have an entry for the order.
    pub open: bool,
}

fn undone(
    mut transaction: Transaction<OrderAction>,
    lines: &[Stored<OrderLine>],
    at: Instant,
) -> Result<Transaction<OrderAction>, EncodeError> {
    for line in lines {
        transaction = transaction
            .action(OrderAction::Line(line.line), Guarded::delete(line.key()?, Condition::Exists))
            .action(OrderAction::Stock(line.line), product::give_back(line, at)?);
    }
    Ok(transaction)
}

/// Gives back the stock of the next lines of a cancelled or returned order, at most
/// [`GIVEN_BACK_AT_ONCE`]. `lines` must be in line order. DynamoDB refuses the write if the head's
/// count of returned lines has changed. Returns [`None`] if no stock remains to return.
pub fn give_back(
    order: &Stored<Order>,
    lines: &[Stored<OrderLine>],
    at: Instant,
) -> Result<Option<Transaction<OrderAction>>, EncodeError> {
    let Some(unfinished @ Unfinished { since, work: Work::Returning(done) }) = &order.unfinished else {
        return Ok(None);
    };
    let before = usize::try_from(*done).map_err(|_| EncodeError::Overflow)?;
    let next = lines.iter().skip(before).take(GIVEN_BACK_AT_ONCE);
    let after = before + next.len();
    let all = u64::try_from(after).is_ok_and(|after| after >= order.line_count);
    let head = if all {
        Change::<Order>::copied().leave(GSI1).set("unfinished", None::<Unfinished>)?
    } else {
        let work = Work::Returning(u64::try_from(after).map_err(|_| EncodeError::Overflow)?);
        Change::<Order>::copied()
            .enter(&UnfinishedIndexKey { unfinished: &Unfinished { since: *since, work }, id: &order.id })?
    };
    let seen = Condition::Is("unfinished", value(unfinished)?);
    let mut transaction =
        Transaction::new(&GIVE_BACK).action(OrderAction::Order, Guarded::update(key(&order.id)?, head, seen));
    for line in next {
        transaction = transaction.action(OrderAction::Stock(line.line), product::give_back(line, at)?);
    }
    Ok(Some(transaction))
}
