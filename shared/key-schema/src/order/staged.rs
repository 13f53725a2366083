//! Orders that are too large for one transaction.
//!
//! DynamoDB takes 100 actions at once, and a line takes two: its own item and its product's stock. An order of more lines is *staged*: the first
//! transaction ([`begin`]) puts a head that is `placing`, which nobody can see, and claims what only one order can have; some more ([`reserve`]) put the
//! lines and take their stock; the last ([`commit`]) makes the order visible. What was refused or broke off is undone ([`undo`]) in the same way. Every
//! one of them moves the head's `rev` on the condition that it still is what its writer saw, so that of two who work on one order, such as a slow
//! function and the janitor, one stops at its next step; and the head counts the lines that are reserved, so that nobody takes a part of them, read
//! while a transaction was at work, for all. Nothing is taken twice, nothing given back twice, and nothing forgotten.
//!
//! A large order that is cancelled or returned changes its status at once, with as much stock as fits; the rest follows ([`give_back`]), and the
//! head says how far that has come.
//!
//! Whatever is unfinished is found through a sparse index ([`unfinished`]) and finished or undone by the janitor.

use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use super::requests::{copy, stored};
use super::{Order, OrderLine, OrderStatus, Part, ReferenceClaim, StatusPlace, history, key};
use crate::change::{Change, IndexEntry};
use crate::customer;
use crate::encoding::join;
use crate::entity::AnyEntity;
use crate::expression::{Condition, number, value};
use crate::id::{OrderId, ProductId};
use crate::idempotency::{self, Answer, Scope};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity as _, Stored};
use crate::key::{Index, IndexKey, KeyError, PartitionKey, SortKey};
use crate::pattern::{Consistency, patterns};
use crate::product;
use crate::request::{BatchGet, Guarded, MAX_TRANSACTION_ACTIONS, Query, Range, Transaction};
use crate::shard::Shards;

/// The shards of the list of unfinished orders.
pub const UNFINISHED_SHARDS: Shards = Shards(4);
/// Lines that are reserved in one transaction: two actions each, and the head.
pub const RESERVED_AT_ONCE: usize = (MAX_TRANSACTION_ACTIONS - 1) / 2;
/// Lines that are undone in one transaction: two actions each, the head, and what it had claimed.
pub const UNDONE_AT_ONCE: usize = (MAX_TRANSACTION_ACTIONS - 3) / 2;
/// Lines whose stock goes back in one transaction, beside the head.
pub const GIVEN_BACK_AT_ONCE: usize = MAX_TRANSACTION_ACTIONS - 1;

patterns! {
    AVAILABLE = "orders.available": BatchGetItem, "PK = PRODUCT#<id>, SK = PRODUCT#STOCK, for each line" => "stocks", Consistency::Strong("a refusal names every line that is short, not only those of one transaction"), "owner", "See which lines of a large order can be served", ["POST /v1/orders", "POST /v1/customers/{id}/cart/checkout"];
    BEGIN = "orders.begin": TransactWriteItems, "PK = ORDER#<id>, SK = ORDER; PK = REFERENCE#…; PK = IDEMPOTENCY#…; PK = CUSTOMER#<id>, SK = PROFILE (check)" => "reference and idempotency key are free; the customer exists", Consistency::Write, "owner", "Begin a large order: a head that nobody can see, and its claims", ["POST /v1/orders", "POST /v1/customers/{id}/cart/checkout"];
    RESERVE = "orders.reserve": TransactWriteItems, "PK = ORDER#<id>, SK = ORDER, ITEM#<line>; PK = PRODUCT#<id>, SK = PRODUCT#STOCK" => "the head is placing, at the rev that was seen; every stock has enough", Consistency::Write, "owner", "Reserve some lines of a large order", ["POST /v1/orders", "POST /v1/customers/{id}/cart/checkout"];
    COMMIT = "orders.commit": TransactWriteItems, "PK = ORDER#<id>, SK = ORDER, STATUS#…; PK = CUSTOMER#<id>, SK = ORDER#<id>, PROFILE (check); PK = CART#<id>" => "the head is placing, at the rev that was seen; the customer exists; the cart is the one that was read", Consistency::Write, "owner", "Make a large order visible", ["POST /v1/orders", "POST /v1/customers/{id}/cart/checkout"];
    UNDO = "orders.undo": TransactWriteItems, "PK = ORDER#<id>, SK = ORDER, ITEM#<line>; PK = PRODUCT#<id>, SK = PRODUCT#STOCK; at last PK = REFERENCE#…; PK = IDEMPOTENCY#…" => "the head is placing, at the rev that was seen; the claims are this order's", Consistency::Write, "owner", "Undo a large order that could not be placed", ["POST /v1/orders", "POST /v1/customers/{id}/cart/checkout", "janitor"];
    GIVE_BACK = "orders.give-back": TransactWriteItems, "PK = ORDER#<id>, SK = ORDER; PK = PRODUCT#<id>, SK = PRODUCT#STOCK" => "so many lines were given back as was seen", Consistency::Write, "owner", "Return the rest of a large order's stock", ["POST /v1/orders/{id}/status", "janitor"];
    UNFINISHED = "orders.unfinished": ShardedQuery on Gsi1, "GSI1PK = UNFINISHED#<shard>, GSI1SK up to <since>" => "orders, the longest waiting first", Consistency::Eventual, "system", "Find the orders whose work broke off", ["janitor"];
}

/// Work on an order that takes several transactions and is not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    /// Since when.
    pub since: Instant,
    /// What work.
    pub work: Work,
}

/// What is being done with an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// It is being placed.
    Placing {
        /// The idempotency key that it holds.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        key: Option<Scope>,
        /// So many lines are reserved. Who reads an order while it is being written may see a part of it: a Query is not isolated from transactions,
        /// however strongly it reads. This says whether that is all.
        lines: u64,
    },
    /// Its stock is being given back; so many of its lines, in their order, are done.
    Returning(u64),
}

/// An unfinished order's place in the janitor's list.
#[derive(Debug, Clone, Copy)]
pub struct UnfinishedPlace<'a> {
    /// What is unfinished.
    pub unfinished: &'a Unfinished,
    /// Of which order.
    pub id: &'a OrderId,
}

impl UnfinishedPlace<'_> {
    pub(super) fn key(&self) -> Result<IndexKey, KeyError> {
        Ok(IndexKey {
            index: Index::Gsi1,
            partition: shard(UNFINISHED_SHARDS.of(self.id.as_str()))?,
            sort: SortKey::new(join(&self.unfinished.since.to_string(), &[self.id]))?,
        })
    }
}

impl IndexEntry for UnfinishedPlace<'_> {
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

/// An unfinished order as the janitor's list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedOrder {
    /// The order.
    pub id: OrderId,
}

crate::item::view!(UnfinishedOrder of Order);

/// The orders that have been unfinished since `before` or longer, the longest waiting first.
///
/// # Errors
/// [`KeyError`].
pub fn unfinished(before: Instant) -> Result<Query<UnfinishedOrder>, KeyError> {
    let shards = UNFINISHED_SHARDS.all().map(shard).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&UNFINISHED, shards, Range::Between(Instant::MIN.to_string(), format!("{before}$"))))
}

/// The stocks of some products, in their order.
///
/// # Errors
/// [`KeyError`].
pub fn available<'a>(products: impl IntoIterator<Item = &'a ProductId>) -> Result<BatchGet<AnyEntity>, KeyError> {
    let keys = products.into_iter().map(product::stock_key).collect::<Result<_, _>>()?;
    Ok(BatchGet::new(&AVAILABLE, keys))
}

/// Begins to place an order, whose head is `placing`.
///
/// # Errors
/// [`EncodeError`].
pub fn begin(order: &Stored<Order>, claim: Option<Guarded>) -> Result<Transaction<Part>, EncodeError> {
    let mut transaction = Transaction::new(&BEGIN)
        .action(Part::Order, Guarded::put(order, Condition::NotExists)?)
        .action(Part::Customer, Guarded::check(customer::key(&order.customer_id)?, Condition::Exists));
    if let Some(reference) = claim_of_reference(order)? {
        transaction = transaction.action(Part::Reference, reference);
    }
    Ok(match claim {
        Some(claim) => transaction.action(Part::Idempotency, claim),
        None => transaction,
    })
}

/// The claim on an order's reference, if it has one.
pub(super) fn claim_of_reference(order: &Stored<Order>) -> Result<Option<Guarded>, EncodeError> {
    let Some(reference) = &order.reference else { return Ok(None) };
    let claim = ReferenceClaim { reference: reference.clone(), order_id: order.id.clone() };
    Guarded::put(&stored(order, claim), Condition::NotExists).map(Some)
}

/// Nobody else has worked on the order that is being placed since it was seen.
fn untouched(order: &Stored<Order>) -> Result<Condition, EncodeError> {
    Ok(Condition::Is("status", value(OrderStatus::Placing)?).and(Condition::Is("rev", number(order.meta.rev))))
}

/// The head of an order that is being placed, after so many lines were reserved, or given back again.
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

/// The change that makes the head so. The place in the janitor's list stays.
fn moved(order: &Stored<Order>, lines: usize, reserved: bool) -> Result<Change<Order>, EncodeError> {
    let change = Change::<Order>::copied();
    match &counted(order, lines, reserved).unfinished {
        Some(unfinished) => change.enter(&UnfinishedPlace { unfinished, id: &order.id }),
        None => Ok(change),
    }
}

/// Reserves some lines, at most [`RESERVED_AT_ONCE`]. The head is then as [`counted`] says.
///
/// # Errors
/// [`EncodeError`].
pub fn reserve(order: &Stored<Order>, lines: &[Stored<OrderLine>]) -> Result<Transaction<Part>, EncodeError> {
    let head = Guarded::update(key(&order.id)?, moved(order, lines.len(), true)?, untouched(order)?);
    let mut transaction = Transaction::new(&RESERVE).action(Part::Order, head);
    for line in lines {
        transaction = transaction
            .action(Part::Line(line.line), Guarded::put(line, Condition::NotExists)?)
            .action(Part::Stock(line.line), product::take(&line.product_id, line.quantity, line.meta.created_at)?);
    }
    Ok(transaction)
}

/// Makes an order visible all of whose lines are reserved. `cart` is the removal of the cart that it was made from, if any.
///
/// # Errors
/// [`EncodeError`].
pub fn commit(order: &Stored<Order>, by: &str, cart: Option<Guarded>) -> Result<Transaction<Part>, EncodeError> {
    let status = OrderStatus::Pending;
    let head = Change::<Order>::copied()
        .enter(&StatusPlace { status, placed_at: order.placed_at, id: &order.id })?
        .leave(Index::Gsi1)
        .set("unfinished", None::<Unfinished>)?;
    let event = history(order, status, order.placed_at, by, None);
    let mut copied = copy(order);
    copied.status = status;
    let transaction = Transaction::new(&COMMIT)
        .action(Part::Order, Guarded::update(key(&order.id)?, head, untouched(order)?))
        .action(Part::Copy, Guarded::put(&stored(order, copied), Condition::NotExists)?)
        .action(Part::History, Guarded::put(&stored(order, event), Condition::NotExists)?)
        .action(Part::Customer, Guarded::check(customer::key(&order.customer_id)?, Condition::Exists));
    Ok(match cart {
        Some(cart) => transaction.action(Part::Cart, cart),
        None => transaction,
    })
}

/// Gives back some lines of an order that was not committed, at most [`UNDONE_AT_ONCE`]. The head is then as [`counted`] says.
///
/// # Errors
/// [`EncodeError`].
pub fn undo(
    order: &Stored<Order>,
    lines: &[&Stored<OrderLine>],
    at: Instant,
) -> Result<Transaction<Part>, EncodeError> {
    let head = Guarded::update(key(&order.id)?, moved(order, lines.len(), false)?, untouched(order)?);
    undone(Transaction::new(&UNDO).action(Part::Order, head), lines, at)
}

/// Gives back the last lines of an order that was not committed, at most [`UNDONE_AT_ONCE`], and removes it with the claims that are still its own.
///
/// # Errors
/// [`EncodeError`].
pub fn undo_last(
    order: &Stored<Order>,
    lines: &[&Stored<OrderLine>],
    claims: Claims,
    at: Instant,
) -> Result<Transaction<Part>, EncodeError> {
    let head = Guarded::delete(key(&order.id)?, untouched(order)?);
    let mut transaction = undone(Transaction::new(&UNDO).action(Part::Order, head), lines, at)?;
    if let Some(reference) = order.reference.as_ref().filter(|_| claims.reference) {
        let claim = ReferenceClaim { reference: reference.clone(), order_id: order.id.clone() };
        let own = Condition::NotExists.or(Condition::Is("order_id", value(&order.id)?));
        transaction = transaction.action(Part::Reference, Guarded::delete(claim.key()?, own));
    }
    if let Some(Unfinished { work: Work::Placing { key: Some(scope), .. }, .. }) = &order.unfinished
        && claims.idempotency
    {
        let own = Condition::NotExists.or(Condition::Is("answer", value(Answer::Order(order.id.clone()))?));
        transaction = transaction.action(Part::Idempotency, Guarded::delete(idempotency::key(scope)?, own));
    }
    Ok(transaction)
}

/// Which claims an order may still have. A key that has expired may be another's meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claims {
    /// That on its reference.
    pub reference: bool,
    /// That on its idempotency key.
    pub idempotency: bool,
}

fn undone(
    mut transaction: Transaction<Part>,
    lines: &[&Stored<OrderLine>],
    at: Instant,
) -> Result<Transaction<Part>, EncodeError> {
    for line in lines {
        transaction = transaction
            .action(Part::Line(line.line), Guarded::delete(line.key()?, Condition::Exists))
            .action(Part::Stock(line.line), product::give_back(&line.product_id, line.quantity, at)?);
    }
    Ok(transaction)
}

/// Gives back the stock of the next lines of an order that was cancelled or returned, at most [`GIVEN_BACK_AT_ONCE`], on the condition that so many
/// were given back as the head says. [`None`] when there is nothing to give back.
///
/// # Errors
/// [`EncodeError`].
pub fn give_back(
    order: &Stored<Order>,
    lines: &[OrderLine],
    at: Instant,
) -> Result<Option<Transaction<Part>>, EncodeError> {
    let Some(unfinished @ Unfinished { since, work: Work::Returning(done) }) = &order.unfinished else {
        return Ok(None);
    };
    let before = usize::try_from(*done).map_err(|_| EncodeError::TooLarge(usize::MAX))?;
    let next = lines.iter().skip(before).take(GIVEN_BACK_AT_ONCE);
    let after = before + next.len();
    let all = u64::try_from(after).is_ok_and(|after| after >= order.line_count);
    let head = if all {
        Change::<Order>::copied().leave(Index::Gsi1).set("unfinished", None::<Unfinished>)?
    } else {
        let work = Work::Returning(u64::try_from(after).map_err(|_| EncodeError::TooLarge(after))?);
        Change::<Order>::copied()
            .enter(&UnfinishedPlace { unfinished: &Unfinished { since: *since, work }, id: &order.id })?
    };
    let seen = Condition::Is("unfinished", value(unfinished)?);
    let mut transaction =
        Transaction::new(&GIVE_BACK).action(Part::Order, Guarded::update(key(&order.id)?, head, seen));
    for line in next {
        transaction =
            transaction.action(Part::Stock(line.line), product::give_back(&line.product_id, line.quantity, at)?);
    }
    Ok(Some(transaction))
}
