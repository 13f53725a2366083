//! The access patterns of orders.

use item_model::prelude::*;

use super::open;
use super::staged::{self, Unfinished, UnfinishedIndexKey, Work};
use super::{
    CustomerOrder, CustomerOrderChanges as _, LogLine, Order, OrderChanges as _, OrderLine, OrderLog, OrderStatus,
    OrderStatusEvent, OrderSummary, ReferenceClaim, STATUS_SHARDS, Shipment, ShipmentIndexKey, StatusIndexKey,
    copy_key, key, log_partition, partition, shipments_partition, status_partition,
};
use crate::change::Change;
use crate::customer;
use crate::entity::AnyEntity;
use crate::expression::{Condition, first_alive, value};
use crate::id::{CustomerId, EntryId, OrderId, ProductId, time_ordered_floor};
use crate::idempotency;
use crate::index::{GSI1, GSI2, GSI3};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::KeyError;
use crate::money::Money;
use crate::pattern::{Consistency, Pattern};
use crate::product;
use crate::request::{BatchGet, Get, Guarded, MAX_TRANSACTION_ACTIONS, Query, Range, Transaction};
use crate::wallet;

patterns! {
    PREPARE {
        id: "orders.prepare",
        purpose: "Read everything that placing an order needs",
        request: BatchGetItem,
        key: "PK = CUSTOMER#<id>, SK = PROFILE; for a customer's order PK = CUSTOMER#<id>, SK = \
            OPEN; PK = IDEMPOTENCY#<caller>#<key>; PK = PRODUCT#<id>, SK = PRODUCT, for each line",
        returns: "customer, open orders, stored response, products",
        consistency: Consistency::Strong("a retry must see the effect of the first attempt"),
        callers: "owner",
    }
    PLACE {
        id: "orders.place",
        purpose: "Place an order: head, lines, history, copy, stock, all or nothing",
        request: TransactWriteItems,
        key: "PK = ORDER#<id>, SK = ORDER, STATUS#…, ITEM#<line>; PK = CUSTOMER#<id>, SK = \
            ORDER#<id>; PK = PRODUCT#<id>, SK = PRODUCT#STOCK; PK = REFERENCE#…; PK = \
            IDEMPOTENCY#…; PK = CUSTOMER#<id>, SK = PROFILE (check) and, for a customer's order, \
            OPEN; PK = CART#<id>",
        requires: "every stock has enough, is for sale and belongs to the product that was read; \
            reference and idempotency key are free; the customer exists and no erasure has begun; \
            open orders and cart are those that were read",
        callers: "owner",
    }
    GET {
        id: "orders.get",
        purpose: "Read an order with its lines and history in one request",
        request: Query,
        key: "PK = ORDER#<id>",
        returns: "lines, head, history",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    EDIT {
        id: "orders.edit",
        purpose: "Read an order before moving it, or to answer a repeated request",
        request: Query,
        key: "PK = ORDER#<id>",
        returns: "lines, head, history",
        consistency: Consistency::Strong("the next step depends on it"),
        callers: "owner",
    }
    LINES {
        id: "orders.lines",
        purpose: "Read an order's lines alone",
        request: Query,
        key: "PK = ORDER#<id>, SK under ITEM#",
        returns: "lines",
        consistency: Consistency::Strong("what is derived from them is written once"),
        callers: "owner",
    }
    HEAD {
        id: "orders.head",
        purpose: "Read an order's head",
        request: GetItem,
        key: "PK = ORDER#<id>, SK = ORDER",
        returns: "the head",
        consistency: Consistency::Strong("a stream record may be older than the stored head"),
        callers: "owner",
    }
    MOVE {
        id: "orders.move",
        purpose: "Move an order: head, list, history, copy, stock, money",
        request: TransactWriteItems,
        key: "PK = ORDER#<id>, SK = ORDER, STATUS#…; PK = CUSTOMER#<id>, SK = ORDER#<id>; PK = \
            PRODUCT#<id>, SK = PRODUCT#STOCK when stock returns; PK = CUSTOMER#<id>, SK = OPEN \
            when a customer's order leaves pending; PK = WALLET#<customer>, SK = WALLET and \
            ENTRY#<entry> when money moves",
        requires: "version = the If-Match; the wallet has enough; stock returns only to the \
            product that was ordered (same born)",
        callers: "owner",
    }
    LAPSE {
        id: "orders.lapse",
        purpose: "Cancel a pending order that has lapsed",
        request: TransactWriteItems,
        key: "PK = ORDER#<id>, SK = ORDER, STATUS#…; PK = CUSTOMER#<id>, SK = ORDER#<id> and, for \
            a customer's order, OPEN; PK = PRODUCT#<id>, SK = PRODUCT#STOCK",
        requires: "version = the one that was read; pending and due; stock returns only to the \
            product that was ordered (same born)",
        callers: "system",
    }
    OF_CUSTOMER {
        id: "orders.of-customer",
        purpose: "List a customer's orders by date",
        request: Query,
        key: "PK = CUSTOMER#<id>, SK between ORDER#<from> and ORDER#<to>, backward",
        returns: "order copies, newest first",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    BY_STATUS {
        id: "orders.by-status",
        purpose: "List orders by status and date",
        request: ShardedQuery on GSI2,
        key: "GSI2PK = STATUS#<status>#<shard>, GSI2SK between <from> and <to>$, backward",
        returns: "order summaries, newest first",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    SHIPMENTS {
        id: "orders.shipments",
        purpose: "List a customer's shipments",
        request: Query on GSI3,
        key: "GSI3PK = SHIPPED#<customer>, GSI3SK between <since> and the end, backward",
        returns: "shipped orders, newest shipment first",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    REFERENCE {
        id: "orders.reference",
        purpose: "Find the order that has a reference, when a customer may place no further one",
        request: GetItem,
        key: "PK = REFERENCE#<reference>#<customer>, SK = REFERENCE",
        returns: "the claim on the reference",
        consistency: Consistency::Strong("a repeated request must find the first one's order"),
        callers: "owner",
    }
    REFUND {
        id: "orders.refund",
        purpose: "Refund a part of an order's payment",
        request: TransactWriteItems,
        key: "PK = ORDER#<id>, SK = ORDER; PK = WALLET#<customer>, SK = WALLET and ENTRY#<entry>; \
            PK = IDEMPOTENCY#<caller>#<key>",
        requires: "version = the one that was read; the wallet has room; the key is free",
        callers: "staff",
    }
    RETIRE {
        id: "orders.retire",
        purpose: "Retire a closed order: head, lines, history and copy get a time to live",
        request: TransactWriteItems,
        key: "PK = ORDER#<id>, SK = ORDER, STATUS#…, ITEM#<line>; PK = CUSTOMER#<id>, SK = \
            ORDER#<id>",
        requires: "version = the one that was read; the order is closed",
        callers: "system",
    }
    ADD_LOG {
        id: "orders.add-log",
        purpose: "Add to an order's log",
        request: TransactWriteItems,
        key: "PK = LOG#<id>, SK = LOG; PK = ORDER#<order>, SK = ORDER (check)",
        requires: "does not exist; the order exists, is not placing and has not expired",
        callers: "staff",
    }
    LOG {
        id: "orders.log",
        purpose: "Read an order's log",
        request: Query on GSI1,
        key: "GSI1PK = ORDERLOG#<order>, GSI1SK = <at>#<id>",
        returns: "log lines, oldest first",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
}

/// Reads the customer, the customer's open orders if they are wanted, the idempotency record if
/// `scope` is given, and the products, in this order.
///
/// # Errors
/// [`KeyError`].
pub fn prepare<'a>(
    customer: &CustomerId,
    open_orders: bool,
    scope: Option<&idempotency::Scope>,
    products: impl IntoIterator<Item = &'a ProductId>,
) -> Result<BatchGet<AnyEntity>, KeyError> {
    let mut keys = vec![customer::key(customer)?];
    if open_orders {
        keys.push(open::key(customer)?);
    }
    keys.extend(scope.map(idempotency::key).transpose()?);
    for product in products {
        keys.push(product::key(product)?);
    }
    Ok(BatchGet::new(&PREPARE, keys))
}

/// An action of an order transaction. It labels the refusal of that action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderAction {
    /// The head already exists, or it is not at the version that the caller saw.
    Order,
    /// The customer's copy of the order.
    Copy,
    /// The history event, or the line of the log.
    History,
    /// Another order has the reference.
    Reference,
    /// The idempotency key is in use.
    Idempotency,
    /// The customer does not exist.
    Customer,
    /// The cart changed since it was read.
    Cart,
    /// The customer's open orders changed since they were read, or have no entry of the order.
    Open,
    /// The item of a line.
    Line(u64),
    /// The stock of a line's product is too small, not for sale, or of another incarnation of the
    /// product.
    Stock(u64),
    /// The wallet has too little money, has no room, or has another currency.
    Wallet,
    /// A wallet entry with the same id already exists.
    Entry,
}

/// The items of an order that is placed in one transaction.
#[derive(Debug)]
pub struct Placement<'a> {
    /// The head, in status `pending`.
    pub order: &'a Stored<Order>,
    /// The lines of the order.
    pub lines: &'a [Stored<OrderLine>],
    /// The id of the caller who places the order.
    pub by: &'a str,
    /// The idempotency record ([`idempotency::claim`]), if the request has a key.
    pub claim: Option<Guarded>,
    /// The order's entry in its customer's open orders ([`open::enter`]), if the customer places
    /// it.
    pub open: Option<Guarded>,
    /// The deletion of the cart from which the order is placed ([`crate::cart::check_out`]), if
    /// any.
    pub cart: Option<Guarded>,
}

/// Returns the number of actions that an order with this many lines takes at most. The executor
/// checks the size of the transaction again before it sends it.
#[must_use]
pub const fn actions(lines: usize, reference: bool, idempotent: bool, open: bool, cart: bool) -> usize {
    // Head, history, copy and customer check are 4 actions. Each line takes 2.
    4 + 2 * lines + reference as usize + idempotent as usize + open as usize + cart as usize
}

/// Places an order in one transaction.
///
/// # Errors
/// [`EncodeError`].
pub fn place(placement: Placement<'_>) -> Result<Transaction<OrderAction>, EncodeError> {
    let Placement { order, lines, by, claim, open, cart } = placement;
    let at = order.meta.created_at;
    let event = history(order, order.status, order.placed_at, by, None);
    let mut transaction = Transaction::new(&PLACE)
        .action(OrderAction::Order, Guarded::put(order, Condition::NotExists)?)
        .action(OrderAction::Copy, Guarded::put(&stored(order, CustomerOrder::of(order)), Condition::NotExists)?)
        .action(OrderAction::History, Guarded::put(&stored(order, event), Condition::NotExists)?)
        .action(OrderAction::Customer, customer::check(&order.customer_id)?);
    if let Some(reference) = staged::claim_of_reference(order)? {
        transaction = transaction.action(OrderAction::Reference, reference);
    }
    for (action, guarded) in [(OrderAction::Idempotency, claim), (OrderAction::Open, open), (OrderAction::Cart, cart)] {
        if let Some(guarded) = guarded {
            transaction = transaction.action(action, guarded);
        }
    }
    for line in lines {
        transaction = transaction
            .action(OrderAction::Line(line.line), Guarded::put(line, Condition::NotExists)?)
            .action(OrderAction::Stock(line.line), product::take(line, at)?);
    }
    Ok(transaction)
}

/// Makes an item that is created together with the order.
pub(super) fn stored<T: Entity>(order: &Stored<Order>, data: T) -> Stored<T> {
    Stored::new(data, order.meta.born.clone(), order.meta.created_at)
}

/// Makes the history event of a status change.
#[must_use]
pub fn history(order: &Order, status: OrderStatus, at: Instant, by: &str, note: Option<String>) -> OrderStatusEvent {
    OrderStatusEvent { order_id: order.id.clone(), status, at, by: by.to_owned(), note, expires_at: None }
}

/// Reads an order's lines, head and history, in this order.
///
/// # Errors
/// [`KeyError`].
pub fn get(id: &OrderId) -> Result<Query<AnyEntity>, KeyError> {
    Ok(Query::new(&GET, partition(id)?, Range::All).limit(COLLECTION))
}

/// Reads an order's lines, head and history with strong consistency.
///
/// # Errors
/// [`KeyError`].
pub fn read_for_update(id: &OrderId) -> Result<Query<AnyEntity>, KeyError> {
    Ok(Query::new(&EDIT, partition(id)?, Range::All).limit(COLLECTION))
}

/// The maximum number of items in an order's collection: the lines, the head, and more events than
/// an order can have.
const COLLECTION: usize = super::MAX_LINES + 1 + 16;

/// Reads an order's lines.
///
/// # Errors
/// [`KeyError`].
pub fn lines(id: &OrderId) -> Result<Query<Stored<OrderLine>>, KeyError> {
    Ok(Query::new(&LINES, partition(id)?, Range::under("ITEM")).limit(super::MAX_LINES))
}

/// Reads an order's head.
///
/// # Errors
/// [`KeyError`].
pub fn head(id: &OrderId) -> Result<Get<Stored<Order>>, KeyError> {
    Ok(Get::new(&HEAD, key(id)?))
}

/// Reads the present claim on a reference.
///
/// # Errors
/// [`KeyError`].
pub fn reference(claim: &ReferenceClaim) -> Result<Get<Stored<ReferenceClaim>>, KeyError> {
    Ok(Get::new(&REFERENCE, claim.key()?))
}

/// One status change of an order, for [`advance`].
#[derive(Debug)]
pub struct Step<'a> {
    /// The head as it was read.
    pub order: &'a Stored<Order>,
    /// The lines of the order. Their stock returns if [`OrderStatus::returns_stock`] says so for
    /// `to`.
    pub lines: &'a [OrderLine],
    /// The new status. The caller has checked it with [`OrderStatus::may_become`].
    pub to: OrderStatus,
    /// The instant of the change.
    pub at: Instant,
    /// The id of the caller who makes the change.
    pub by: &'a str,
    /// The reason of the change.
    pub note: Option<String>,
    /// The carrier, for a change to shipped.
    pub carrier: Option<String>,
    /// The carrier's tracking number, for a change to shipped.
    pub tracking: Option<String>,
    /// The money that moves in the same transaction.
    pub money: Option<Movement<'a>>,
}

/// Money that moves between an order and its customer's wallet. For an amount of zero,
/// [`Step::money`] is [`None`].
#[derive(Debug, Clone, Copy)]
pub enum Movement<'a> {
    /// The wallet pays for the order, with this entry.
    Payment(&'a EntryId),
    /// The wallet gets this amount back, in minor units, with this entry. The amount is at most the
    /// part of the payment that was not refunded yet.
    Refund(&'a EntryId, i64),
}

/// The maximum number of lines whose stock returns in the transaction that cancels or returns an
/// order. Later transactions return the rest ([`staged::give_back`]). The 8 actions in reserve
/// cover head, copy, history, open orders, and the wallet actions of a payment or refund.
pub const RETURNED_AT_ONCE: usize = MAX_TRANSACTION_ACTIONS - 8;

/// Changes the status of the order that was read. The transaction also writes the status list,
/// history, copy and stock, and moves the money.
///
/// # Errors
/// [`EncodeError`].
pub fn advance(step: Step<'_>) -> Result<Transaction<OrderAction>, EncodeError> {
    let (head, condition) = (Change::<Order>::visible(step.at), unmoved(step.order)?);
    transition(&MOVE, step, head, condition)
}

/// The `by` of a change that no caller makes.
pub const SYSTEM: &str = "system";
/// The note of an order that lapsed.
pub const LAPSED: &str = "lapsed";

/// Cancels an order that is still pending at `at`, although it has lapsed: [`advance`] by the
/// system.
///
/// # Errors
/// [`EncodeError`].
pub fn lapse(order: &Stored<Order>, lines: &[OrderLine], at: Instant) -> Result<Transaction<OrderAction>, EncodeError> {
    let head = Change::<Order>::visible(at).lapsed(&true)?;
    let due = unmoved(order)?.and(Condition::Below("lapses_at", first_alive(at)));
    let (to, note) = (OrderStatus::Cancelled, Some(LAPSED.to_owned()));
    let step = Step { order, lines, to, at, by: SYSTEM, note, carrier: None, tracking: None, money: None };
    transition(&LAPSE, step, head, due)
}

/// Returns the condition that the order is unchanged since it was read. The version implies the
/// status. The condition checks both.
fn unmoved(order: &Stored<Order>) -> Result<Condition, EncodeError> {
    Ok(Condition::version(order.meta.version).and(Condition::Is("status", value(order.status)?)))
}

fn transition(
    pattern: &'static Pattern,
    step: Step<'_>,
    head: Change<Order>,
    condition: Condition,
) -> Result<Transaction<OrderAction>, EncodeError> {
    let Step { order, lines, to, at, by, note, carrier, tracking, money } = step;
    let mut head = head.enter(&StatusIndexKey { status: to, placed_at: order.placed_at, id: &order.id })?;
    if order.status == OrderStatus::Pending {
        // An order that is no longer pending never lapses.
        head = head.leave(GSI3);
    }
    let going_back = if to.returns_stock() { lines } else { &[] };
    let (at_once, later) = going_back.split_at(going_back.len().min(RETURNED_AT_ONCE));
    if !later.is_empty() {
        let done = u64::try_from(at_once.len()).map_err(|_| EncodeError::TooLarge(at_once.len()))?;
        let unfinished = Unfinished { since: at, work: Work::Returning(done) };
        head = head.enter(&UnfinishedIndexKey { unfinished: &unfinished, id: &order.id })?;
    }
    let mut copied = Change::<CustomerOrder>::visible(at).status(&to)?;
    if to == OrderStatus::Shipped {
        let shipment = ShipmentIndexKey { customer_id: &order.customer_id, shipped_at: at, id: &order.id };
        copied = copied.carrier(&carrier)?.tracking(&tracking)?.enter(&shipment)?;
    }
    let mut money_moved = Vec::new();
    if let Some(movement) = money {
        head = marked(order, head, movement)?;
        money_moved = moved(order, movement, at)?;
    }
    let event = Stored::new(history(order, to, at, by, note), order.meta.born.clone(), at);
    let mut transaction = Transaction::new(pattern)
        .action(OrderAction::Order, Guarded::update(key(&order.id)?, head, condition))
        .action(OrderAction::Copy, Guarded::update(copy_key(&order.customer_id, &order.id)?, copied, Condition::Exists))
        .action(OrderAction::History, Guarded::put(&event, Condition::NotExists)?);
    if order.is_open() {
        transaction = transaction.action(OrderAction::Open, open::leave(order)?);
    }
    for (action, guarded) in money_moved {
        transaction = transaction.action(action, guarded);
    }
    for line in at_once {
        transaction = transaction.action(OrderAction::Stock(line.line), product::give_back(line, at)?);
    }
    Ok(transaction)
}

/// Adds the effect of a movement to the change of the head.
fn marked(order: &Order, head: Change<Order>, movement: Movement<'_>) -> Result<Change<Order>, EncodeError> {
    match movement {
        Movement::Payment(_) => head.paid_from_wallet(&true),
        Movement::Refund(_, amount) => head.refunded(&order.refunded.saturating_add(amount)),
    }
}

/// Returns the wallet actions of a movement.
fn moved(order: &Order, movement: Movement<'_>, at: Instant) -> Result<Vec<(OrderAction, Guarded)>, EncodeError> {
    let Order { id: order_id, customer_id, total, .. } = order;
    let actions = match movement {
        Movement::Payment(id) => wallet::debit(customer_id, *total, order_id, id, at)?,
        Movement::Refund(id, amount) => {
            wallet::credit(customer_id, Money::new(amount, total.currency), order_id, id, at)?
        }
    };
    let action = |action| {
        if matches!(action, wallet::WalletAction::Wallet(_)) { OrderAction::Wallet } else { OrderAction::Entry }
    };
    Ok(actions.into_iter().map(|(label, guarded)| (action(label), guarded)).collect())
}

/// Refunds part of the payment for the order that was read. `claim` is the idempotency record.
///
/// # Errors
/// [`EncodeError`].
pub fn refund(
    order: &Stored<Order>,
    id: &EntryId,
    amount: i64,
    claim: Guarded,
    at: Instant,
) -> Result<Transaction<OrderAction>, EncodeError> {
    let movement = Movement::Refund(id, amount);
    let head = marked(order, Change::<Order>::visible(at), movement)?;
    let unchanged = Condition::version(order.meta.version);
    let transaction = Transaction::new(&REFUND)
        .action(OrderAction::Order, Guarded::update(key(&order.id)?, head, unchanged))
        .action(OrderAction::Idempotency, claim);
    Ok(moved(order, movement, at)?.into_iter().fold(transaction, |all, (action, guarded)| all.action(action, guarded)))
}

/// Lists a customer's orders placed between two instants, both included, newest first.
///
/// # Errors
/// [`KeyError`].
pub fn of_customer(
    customer: &CustomerId,
    from: Option<Instant>,
    to: Option<Instant>,
) -> Result<Query<Stored<CustomerOrder>>, KeyError> {
    // Ids start with their millisecond, so the range of instants is a range of ids.
    let low = from.map_or_else(String::new, time_ordered_floor);
    let high = to.map_or_else(|| "ORDER$".into(), |to| format!("ORDER#{}", time_ordered_floor(to.plus_millis(1))));
    let range = Range::Between(format!("ORDER#{low}"), high);
    Ok(Query::new(&OF_CUSTOMER, customer::partition(customer)?, range).descending())
}

/// Lists the orders of a status placed between two instants, both included, newest first.
///
/// # Errors
/// [`KeyError`].
pub fn by_status(
    status: OrderStatus,
    from: Option<Instant>,
    to: Option<Instant>,
) -> Result<Query<OrderSummary>, KeyError> {
    let shards = STATUS_SHARDS.all().map(|shard| status_partition(status, shard)).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&BY_STATUS, shards, between(from, to)).descending())
}

fn between(from: Option<Instant>, to: Option<Instant>) -> Range {
    Range::Between(from.unwrap_or(Instant::MIN).to_string(), format!("{}$", to.unwrap_or(Instant::MAX)))
}

/// Lists a customer's orders that were shipped since an instant, newest shipment first.
///
/// # Errors
/// [`KeyError`].
pub fn shipments(customer: &CustomerId, since: Option<Instant>) -> Result<Query<Shipment>, KeyError> {
    Ok(Query::new(&SHIPMENTS, shipments_partition(customer)?, between(since, None)).descending())
}

/// Returns the condition that the order is not retired, or has not expired at `now`.
fn alive(now: Instant) -> Condition {
    Condition::Lacks("expires_at").or(Condition::AtLeast("expires_at", first_alive(now)))
}

/// Adds a line to an order's log. An order in status `placing` is invisible, so it has no log.
///
/// # Errors
/// [`EncodeError`].
pub fn add_log(line: &Stored<OrderLog>) -> Result<Transaction<OrderAction>, EncodeError> {
    let placed = Condition::IsNot("status", value(OrderStatus::Placing)?);
    let visible = Condition::Exists.and(alive(line.at)).and(placed);
    Ok(Transaction::new(&ADD_LOG)
        .action(OrderAction::History, Guarded::put(line, Condition::NotExists)?)
        .action(OrderAction::Order, Guarded::check(key(&line.order_id)?, visible)))
}

/// Lists an order's log, oldest line first.
///
/// # Errors
/// [`KeyError`].
pub fn log(order: &OrderId) -> Result<Query<LogLine>, KeyError> {
    Ok(Query::new(&LOG, log_partition(order)?, Range::All))
}
