//! The reads of orders: one order, the lists, and the items that placing an order needs.

use item_model::prelude::*;

use super::index_keys::{shipments_partition, status_partition};
use super::{
    BY_STATUS, CustomerOrder, EARLIER, EDIT, GET, HEAD, LINES, ListedOrder, NUMBER, NumberClaim, OF_CUSTOMER, Order,
    OrderLine, OrderNumber, OrderStatus, OrderStatusEvent, PREPARE, REFERENCE, ReferenceClaim, SHIPMENTS, Shipment,
    key, number,
    open::{self, OpenOrders},
    partition,
};
use crate::customer::{self, Customer};
use crate::id::{CustomerId, OrderId, ProductId, time_ordered_floor};
use crate::idempotency::{self, IdempotencyRecord};
use crate::instant::Instant;
use crate::item::{Entity, Stored};
use crate::key::KeyError;
use crate::payment::{MAX_OPERATIONS, MAX_PAYMENTS, Payment, PaymentOperation};
use crate::pricing::{self, Pricing};
use crate::product::{self, Product};
use crate::request::{BatchGet, Get, Query, Range};
use crate::shard::Layout;

one_of! {
    pub enum PreparedItem { Customer OpenOrders Pricing IdempotencyRecord Product }
}

/// Reads the items that placing an order needs: the customer unless it is a guest, if `of_customer` the open orders and
/// the head of the pricing rules, if `scope` is given the idempotency record, and last the products.
pub fn prepare<'a>(
    customer: &CustomerId,
    of_customer: bool,
    scope: Option<&idempotency::Scope>,
    products: impl IntoIterator<Item = &'a ProductId>,
) -> Result<BatchGet<PreparedItem>, KeyError> {
    let mut keys = Vec::new();
    if !customer.is_guest() {
        keys.push(customer::key(customer)?);
    }
    if of_customer {
        keys.extend([open::key(customer)?, pricing::head_key()?]);
    }
    keys.extend(scope.map(idempotency::key).transpose()?);
    for product in products {
        keys.push(product::key(product)?);
    }
    Ok(BatchGet::new(&PREPARE, keys))
}

/// An action of an order transaction. A refusal names the action whose condition failed. Most
/// variants say why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderAction {
    /// The head already exists, or it is not at the version that the caller has read.
    Order,
    /// The customer's copy of the order.
    Copy,
    /// The history event, or the line of the log.
    History,
    /// Another order has the number.
    Number,
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
    /// The addresses already exist, or an erasure has removed them.
    Addresses,
    /// The item of a line.
    Line(u64),
    /// The product of a line has too little stock, is not for sale, or was revived since it was
    /// read.
    Stock(u64),
    /// The uses of a promotion have reached their limit, or staff have changed the limit. The
    /// number is the promotion's position among the promotions of the order.
    Uses(u64),
    /// The customer's uses of a promotion have reached their limit.
    CustomerUses(u64),
    /// The wallet has too little money, or would hold too much.
    Wallet,
    /// A wallet entry with the same id already exists.
    Entry,
    /// The payment already exists, or changed since it was read.
    Payment,
    /// The operation of a payment already exists, or changed since it was read.
    Operation,
    /// The invoice does not exist.
    Invoice,
}

one_of! {
    /// An item of the collection of an order.
    pub enum OrderItem { OrderLine Order OrderStatusEvent Payment PaymentOperation }
}

/// Reads an order's lines, head, history and payments, in this order. The operations of a payment
/// follow the payment.
pub fn get(id: &OrderId) -> Result<Query<OrderItem>, KeyError> {
    Ok(Query::new(&GET, partition(id)?, Range::All).limit(COLLECTION))
}

/// Reads an order's lines, head, history and payments with strong consistency.
pub fn read_for_update(id: &OrderId) -> Result<Query<OrderItem>, KeyError> {
    Ok(Query::new(&EDIT, partition(id)?, Range::All).limit(COLLECTION))
}

/// The maximum number of items in an order's collection: the lines, the head, 16 events, and the
/// payments with their operations. No order can have more events than that.
pub(super) const COLLECTION: usize = super::MAX_LINES + 1 + 16 + MAX_PAYMENTS * (1 + MAX_OPERATIONS);

pub fn lines(id: &OrderId) -> Result<Query<Stored<OrderLine>>, KeyError> {
    Ok(Query::new(&LINES, partition(id)?, Range::under("ITEM")).limit(super::MAX_LINES))
}

pub fn head(id: &OrderId) -> Result<Get<Stored<Order>>, KeyError> {
    Ok(Get::new(&HEAD, key(id)?))
}

pub fn reference(claim: &ReferenceClaim) -> Result<Get<Stored<ReferenceClaim>>, KeyError> {
    Ok(Get::new(&REFERENCE, claim.key()?))
}

pub fn numbered(number: OrderNumber) -> Result<Get<Stored<NumberClaim>>, KeyError> {
    Ok(Get::new(&NUMBER, number::claim_key(number)?))
}

/// Lists a customer's orders placed between two instants, both included, newest first.
pub fn of_customer(
    customer: &CustomerId,
    from: Option<Instant>,
    to: Option<Instant>,
) -> Result<Query<Stored<CustomerOrder>>, KeyError> {
    // An id starts with the millisecond of the placement, so a range of instants is a range of ids.
    let low = from.map_or_else(String::new, time_ordered_floor);
    let high = to.map_or_else(|| "ORDER$".into(), |to| format!("ORDER#{}", time_ordered_floor(to.plus_millis(1))));
    let range = Range::Between(format!("ORDER#{low}"), high);
    Ok(Query::new(&OF_CUSTOMER, customer::partition(customer)?, range).descending())
}

/// Lists a customer's orders with strong consistency, newest first.
pub fn earlier(customer: &CustomerId) -> Result<Query<Stored<CustomerOrder>>, KeyError> {
    Ok(Query::new(&EARLIER, customer::partition(customer)?, Range::under("ORDER")).descending())
}

/// Lists the orders in a status that were placed between two instants, both included, newest first.
/// `layout` is the list's present layout.
pub fn by_status(
    status: OrderStatus,
    from: Option<Instant>,
    to: Option<Instant>,
    layout: Layout,
) -> Result<Query<ListedOrder>, KeyError> {
    let partitions = |shard| Ok(vec![status_partition(status, shard)?]);
    Ok(Query::in_layout(&BY_STATUS, layout, partitions, between(from, to))?.descending())
}

fn between(from: Option<Instant>, to: Option<Instant>) -> Range {
    Range::Between(from.unwrap_or(Instant::MIN).to_string(), format!("{}$", to.unwrap_or(Instant::MAX)))
}

/// Lists a customer's orders that were shipped since an instant, newest shipment first.
pub fn shipments(customer: &CustomerId, since: Option<Instant>) -> Result<Query<Shipment>, KeyError> {
    Ok(Query::new(&SHIPMENTS, shipments_partition(customer)?, between(since, None)).descending())
}
