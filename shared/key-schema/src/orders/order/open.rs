//! Open orders, which reserve stock. The module decides when they lapse, how many of them a
//! customer may have, and how many orders a customer may place on a day.
//!
//! No other customer can buy the pieces of a pending order. So the order has an instant at which it
//! lapses ([`Order::lapses_at`]). An order that staff place lapses only if the request sets
//! `lapses`. A sparse index ([`LapseIndexKey`]) holds the order until it leaves the status
//! `pending`. The janitor lists the due orders in this index, and cancels each of them with
//! [`lapse`](super::lapse). The condition of a payment, a cancellation and a lapse is that the
//! head's version and status are unchanged. So only one of them succeeds.
//!
//! # The item of a customer
//! The item `CUSTOMER#<id>`, `OPEN` has an entry for each order of the customer in status `placing`
//! or `pending`, except orders by staff. The transaction that places an order adds its entry, on
//! the condition that the item has not changed since it was read. The limits were checked on that
//! item, so concurrent requests cannot exceed them. The transaction that gives the order any other
//! status removes the entry.
//!
//! The item also counts the orders of one UTC day: the newest day on which the customer placed an
//! order. The count includes cancelled orders, so a customer cannot place and cancel an unlimited
//! number of orders.
//!
//! # Why an entry names no product
//! The product ids of 20 orders with 500 lines each can take 1.3 MB, but an item has at most 400
//! KB. So an entry has the largest quantity of a line instead. The sum over all entries is an upper
//! bound for the pieces of each product. It is usually below [`Limits::max_pending_quantity`]. If
//! it is above, the Lambda function that places the order also reads the lines of these orders.
//! Lines never change, so the transaction needs no condition on them. An item with [`MAX_ORDERS`]
//! entries has less than 100 KB.
//!
//! # When the item expires
//! The item expires a week after the last of its orders was due to lapse. So an order may have no
//! entry any more. The transaction that changes that order's status is then sent without the
//! removal of the entry ([`Transaction::without`](crate::request::Transaction::without)).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use super::placed::stored;
use super::{MAX_LINES, Order, OrderStatus, ShippingTax, TaxRounding};
use crate::change::{Change, IndexEntry};
use crate::customer;
use crate::encoding::join;
use crate::expression::{Condition, number, value};
use crate::id::{CustomerId, OrderId};
use crate::index::GSI3;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::request::{Get, Guarded, Query, Range};
use crate::shard::Shards;

pub const LAPSE_SHARDS: Shards = Shards(4);
/// The permitted values of [`Limits::pending_minutes`]: up to 30 days.
pub const PENDING_MINUTES: RangeInclusive<u64> = 1..=43_200;
/// The permitted values of [`Limits::max_pending_orders`].
pub const MAX_PENDING_ORDERS: RangeInclusive<u64> = 1..=MAX_ORDERS;
/// The permitted values of [`Limits::max_pending_quantity`].
pub const MAX_PENDING_QUANTITY: RangeInclusive<u64> = 1..=1_000_000_000;
/// The permitted values of [`Limits::max_pending_lines`]. Every permitted value allows the largest
/// order.
pub const MAX_PENDING_LINES: RangeInclusive<u64> = MAX_LINES as u64..=MAX_ORDERS * MAX_LINES as u64;
/// The permitted values of [`Limits::max_orders_per_day`].
pub const MAX_ORDERS_PER_DAY: RangeInclusive<u64> = 1..=1_000_000;
/// The largest number of open orders that the settings allow a customer.
pub const MAX_ORDERS: u64 = 1_000;
/// How long a customer's item stays after its last order was due to lapse.
const KEPT_SECONDS: i64 = 7 * 24 * 60 * 60;

/// The limits of open orders, and the other settings for new orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub pending_minutes: u64,
    pub max_pending_orders: u64,
    /// The largest number of pieces of one product in a customer's open orders.
    pub max_pending_quantity: u64,
    /// The largest number of lines in a customer's open orders. It limits how many lines the Lambda
    /// function reads when it places an order.
    pub max_pending_lines: u64,
    /// The largest number of orders that a customer may place on one UTC day.
    pub max_orders_per_day: u64,
    pub shipping_address_required: bool,
    pub tax_rounding: TaxRounding,
    pub shipping_tax: ShippingTax,
    /// Whether a customer may order without a quote although there are pricing rules.
    pub quote_optional: bool,
    /// Whether guests may order.
    pub guest_orders: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pending_minutes: 60,
            max_pending_orders: 20,
            max_pending_quantity: 1_000,
            max_pending_lines: 1_000,
            max_orders_per_day: 1_000,
            shipping_address_required: false,
            tax_rounding: TaxRounding::Line,
            shipping_tax: ShippingTax::Rule,
            quote_optional: false,
            guest_orders: true,
        }
    }
}

impl Limits {
    /// Returns the instant at which an order that is placed now lapses.
    #[must_use]
    pub fn lapse_of(&self, now: Instant) -> Instant {
        now.plus_seconds(i64::try_from(self.pending_minutes).unwrap_or(i64::MAX).saturating_mul(60))
    }
}

#[derive(Debug, Clone, Copy)]
pub struct LapseIndexKey<'a> {
    pub lapses_at: Instant,
    pub id: &'a OrderId,
}

impl LapseIndexKey<'_> {
    pub(super) fn key(&self) -> Result<IndexKey, KeyError> {
        Ok(IndexKey {
            index: GSI3,
            partition: shard(LAPSE_SHARDS.of(self.id.as_str()))?,
            sort: SortKey::new(join(&self.lapses_at.to_string(), &[self.id]))?,
        })
    }
}

impl IndexEntry for LapseIndexKey<'_> {
    type Entity = Order;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        Ok(vec![("lapses_at", value(self.lapses_at)?)])
    }
}

fn shard(shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("LAPSING", &[&shard])
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LapsingOrder {
    pub id: OrderId,
}

view!(LapsingOrder of Order);

/// One entry of a customer's open orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenOrder {
    /// The largest number of pieces in one line.
    pub most: u64,
    /// The number of lines. A reader that finds fewer lines has not read the whole order.
    pub lines: u64,
}

entity! {
    OpenOrders = "OpenOrders" {
        fixed {
            customer_id: CustomerId,
            /// The instant at which the item expires, which is also its time to live.
            expires_at: Instant,
        }
        mutable by OpenOrdersChanges {
            entries: BTreeMap<OrderId, OpenOrder>,
            /// The newest UTC day on which the customer placed an order.
            day: String,
            /// The number of orders that the customer placed on that day.
            placed: u64,
        }
    }
}

impl Entity for OpenOrders {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.customer_id)
    }

    fn expires(&self) -> Option<Instant> {
        Some(self.expires_at)
    }
}

impl OpenOrders {
    /// Returns the number of orders that the customer placed on the day of `at`.
    #[must_use]
    pub fn placed_on_day(&self, at: Instant) -> u64 {
        // `at` may be on an earlier day than the count, because clocks differ and a request may
        // wait past midnight. Then the count of the later day applies.
        if self.day >= at.day() { self.placed } else { 0 }
    }
}

pub(super) fn key(customer: &CustomerId) -> Result<Key, KeyError> {
    Ok(Key { pk: customer::partition(customer)?, sk: SortKey::new("OPEN")? })
}

patterns! {
    OPEN {
        id: "orders.open",
        purpose: "Read a customer's open orders once more, after another request has changed them",
        request: GetItem,
        key: "PK = CUSTOMER#<id>, SK = OPEN",
        returns: "the customer's open orders",
        consistency: Consistency::Strong("an order is placed on condition that the open orders are \
            unchanged"),
        callers: "owner",
    }
    LAPSING {
        id: "orders.lapsing",
        purpose: "Find the pending orders that have lapsed",
        request: ShardedQuery on GSI3,
        key: "GSI3PK = LAPSING#<shard>, GSI3SK up to <instant>",
        returns: "pending orders, the earliest lapse first",
        consistency: Consistency::Eventual,
        callers: "system",
    }
}

pub fn get(customer: &CustomerId) -> Result<Get<Stored<OpenOrders>>, KeyError> {
    Ok(Get::new(&OPEN, key(customer)?))
}

/// Lists the pending orders that lapse at `until` or earlier, the earliest lapse first.
pub fn lapsing(until: Instant) -> Result<Query<LapsingOrder>, KeyError> {
    let shards = LAPSE_SHARDS.all().map(shard).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&LAPSING, shards, Range::Between(Instant::MIN.to_string(), format!("{until}$"))))
}

/// Adds an order to its customer's open orders, as an action of the transaction that places the
/// order or begins its placement. `known` has the open orders that were read. DynamoDB refuses the
/// write if they have changed since.
pub fn enter(
    order: &Stored<Order>,
    entry: OpenOrder,
    known: Option<&Stored<OpenOrders>>,
) -> Result<Guarded, EncodeError> {
    let at = order.meta.created_at;
    let expires_at = order.lapses_at.unwrap_or(at).plus_seconds(KEPT_SECONDS);
    let Some(known) = known else {
        let (entries, day) = (BTreeMap::from([(order.id.clone(), entry)]), at.day());
        let first = OpenOrders { customer_id: order.customer_id.clone(), expires_at, entries, day, placed: 1 };
        return Guarded::put(&stored(order, first), Condition::NotExists);
    };
    let expires_at = expires_at.max(known.expires_at);
    let change = Change::<OpenOrders>::copied()
        .set_entry("entries", order.id.as_str(), entry)?
        .set("expires_at", expires_at)?
        .day(&known.day.clone().max(at.day()))?
        .placed(&known.placed_on_day(at).saturating_add(1))?
        .expire_at(expires_at);
    let unchanged = Condition::Is("born", value(&known.meta.born)?).and(Condition::Is("rev", number(known.meta.rev)));
    Ok(Guarded::update(key(&order.customer_id)?, change, unchanged))
}

/// Removes an order from its customer's open orders. DynamoDB refuses the write if the order is not
/// among them.
pub(super) fn leave(order: &Order) -> Result<Guarded, KeyError> {
    let change = Change::<OpenOrders>::copied().remove_entry("entries", order.id.as_str());
    let listed = Condition::HasEntry("entries", order.id.to_string());
    Ok(Guarded::update(key(&order.customer_id)?, change, listed))
}

impl Order {
    /// Returns whether the order is among its customer's open orders.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.by_customer && matches!(self.status, OrderStatus::Placing | OrderStatus::Pending)
    }
}
