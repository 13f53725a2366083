//! Orders: head, lines and history in one partition; a copy for the customer's list; the lists by status.
//!
//! The partition `ORDER#<id>` holds `ITEM#<line>`, `ORDER` and `STATUS#<instant>#<status>`: head, lines and history in one Query, or either
//! of the ranges alone. The customer's partition holds a copy of what a list shows (`ORDER#<order id>`), moved in the same transaction as
//! the head.

mod requests;
mod retire;
pub mod staged;
mod status;
mod views;

use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use crate::change::{IndexEntry, entity};
use crate::customer;
use crate::encoding::join;
use crate::expression::value;
use crate::id::{CustomerId, LogId, OrderId, OrderReference, ProductId, StoreId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta};
use crate::key::{Index, IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::money::{Money, MoneyError};
use crate::shard::Shards;

pub use requests::*;
pub use retire::{Retirement, retire};
use staged::{Unfinished, UnfinishedPlace};
pub use status::{OrderStatus, UnknownStatus};
pub use views::{LogLine, Shipment, Summary};

/// The most lines that an order may have.
pub const MAX_LINES: usize = 500;
/// The most pieces in one line.
pub const MAX_QUANTITY: u64 = 1_000_000;
/// The most that an order may come to, in minor units. What orders come to is added up without a look at the sum; below this bound 900,000
/// orders at one shop on one day still fit the 64 bits of its total.
pub const MAX_TOTAL: i64 = 10_000_000_000_000;
/// The shards of each status's list.
pub const STATUS_SHARDS: Shards = Shards(4);

entity! {
    /// An order's head.
    Order = "Order" {
        keyed {
            /// The order; its time is that of `placed_at`.
            id: OrderId,
            /// Whose.
            customer_id: CustomerId,
            /// Where it stands; part of the status list's key.
            status: OrderStatus,
            /// When it was placed.
            placed_at: Instant,
            /// The client's own number for it, unique over all orders.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            reference: Option<OrderReference>,
            /// The shop where it was placed, if any.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            store_id: Option<StoreId>,
            /// The sum of its lines.
            total: Money,
            /// How many lines.
            line_count: u64,
            /// Of a retired order ([`retire`]): from when on it is gone; also the time to live.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            expires_at: Option<Instant>,
            /// What several transactions do with it, while that is not done.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            unfinished: Option<Unfinished>,
        }
        free {
            /// The invoice, once there is one.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            invoice_number: Option<u64>,
            /// Whether it was paid from its customer's wallet.
            #[serde(skip_serializing_if = "std::ops::Not::not", default)]
            paid_from_wallet: bool,
            /// What of its total was given back to the wallet, in minor units.
            #[serde(skip_serializing_if = "is_zero", default)]
            refunded: i64,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(amount: &i64) -> bool {
    *amount == 0
}

/// An order's place in the list of its status: by the instant it was placed.
#[derive(Debug, Clone, Copy)]
pub struct StatusPlace<'a> {
    /// The status.
    pub status: OrderStatus,
    /// When it was placed.
    pub placed_at: Instant,
    /// Which order.
    pub id: &'a OrderId,
}

impl StatusPlace<'_> {
    fn key(&self) -> Result<IndexKey, KeyError> {
        Ok(IndexKey {
            index: Index::Gsi2,
            partition: status_partition(self.status, STATUS_SHARDS.of(self.id.as_str()))?,
            sort: SortKey::new(join(&self.placed_at.to_string(), &[self.id]))?,
        })
    }
}

impl IndexEntry for StatusPlace<'_> {
    type Entity = Order;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        Ok(vec![("status", value(self.status)?)])
    }
}

fn status_partition(status: OrderStatus, shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("STATUS", &[&status.as_str(), &shard])
}

impl Entity for Order {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.id)
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        let unfinished = self.unfinished.as_ref().map(|unfinished| UnfinishedPlace { unfinished, id: &self.id }.key());
        // Nobody can see it yet, or it is retired: either way it is in no list that people read.
        let listed = self.status != OrderStatus::Placing && self.expires_at.is_none();
        let listed = listed.then(|| StatusPlace { status: self.status, placed_at: self.placed_at, id: &self.id }.key());
        unfinished.into_iter().chain(listed).collect()
    }

    fn expires(&self) -> Option<Instant> {
        self.expires_at
    }
}

entity! {
    /// One line, as sold: name and price are those of the moment and never follow the product.
    OrderLine = "OrderLine" {
        keyed {
            /// The order.
            order_id: OrderId,
            /// From 1.
            line: u64,
            /// What.
            product_id: ProductId,
            /// What it was called.
            name: String,
            /// How many pieces.
            quantity: u64,
            /// What one piece cost in the catalogue.
            unit_price: Money,
            /// What the line costs: quantity times price, or what was really paid where staff says so.
            total: Money,
            /// Of a retired order: the time to live.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            expires_at: Option<Instant>,
        }
        free {}
    }
}

impl Entity for OrderLine {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        Ok(Key { pk: partition(&self.order_id)?, sk: SortKey::of("ITEM", &[&self.line])? })
    }

    fn expires(&self) -> Option<Instant> {
        self.expires_at
    }
}

entity! {
    /// One step of an order's life.
    OrderStatusEvent = "OrderStatusEvent" {
        keyed {
            /// The order.
            order_id: OrderId,
            /// What it became.
            status: OrderStatus,
            /// When.
            at: Instant,
            /// Who took the step.
            by: String,
            /// Why, in the words of who took it.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            note: Option<String>,
            /// Of a retired order: the time to live.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            expires_at: Option<Instant>,
        }
        free {}
    }
}

impl Entity for OrderStatusEvent {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        Ok(Key { pk: partition(&self.order_id)?, sk: SortKey::of("STATUS", &[&self.at, &self.status.as_str()])? })
    }

    fn expires(&self) -> Option<Instant> {
        self.expires_at
    }
}

entity! {
    /// The customer's copy of an order: what lists and the overview show, and the shipment.
    CustomerOrder = "CustomerOrder" {
        keyed {
            /// The order.
            id: OrderId,
            /// Whose.
            customer_id: CustomerId,
            /// When it was placed.
            placed_at: Instant,
            /// The client's own number for it.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            reference: Option<OrderReference>,
            /// The sum of its lines.
            total: Money,
            /// How many lines.
            line_count: u64,
            /// When it was shipped; what is not shipped is not in the index of shipments.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            shipped_at: Option<Instant>,
            /// Of a retired order: from when on it is gone; also the time to live.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            expires_at: Option<Instant>,
        }
        free {
            /// Where it stands.
            status: OrderStatus,
            /// Who carries it.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            carrier: Option<String>,
            /// The carrier's number.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            tracking: Option<String>,
        }
    }
}

/// A shipped order's place among the customer's shipments.
#[derive(Debug, Clone, Copy)]
pub struct ShipmentPlace<'a> {
    /// Whose.
    pub customer_id: &'a CustomerId,
    /// When it was shipped.
    pub shipped_at: Instant,
    /// Which order.
    pub id: &'a OrderId,
}

impl ShipmentPlace<'_> {
    fn key(&self) -> Result<IndexKey, KeyError> {
        Ok(IndexKey {
            index: Index::Gsi3,
            partition: shipments_partition(self.customer_id)?,
            sort: SortKey::new(join(&self.shipped_at.to_string(), &[self.id]))?,
        })
    }
}

impl IndexEntry for ShipmentPlace<'_> {
    type Entity = CustomerOrder;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        Ok(vec![("shipped_at", value(self.shipped_at)?)])
    }
}

fn shipments_partition(customer: &CustomerId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("SHIPPED", &[customer])
}

impl Entity for CustomerOrder {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        copy_key(&self.customer_id, &self.id)
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        // A retired order is in no list.
        self.shipped_at
            .filter(|_| self.expires_at.is_none())
            .map(|shipped_at| ShipmentPlace { customer_id: &self.customer_id, shipped_at, id: &self.id }.key())
            .into_iter()
            .collect()
    }

    fn expires(&self) -> Option<Instant> {
        self.expires_at
    }
}

/// A sentinel: which order has a reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceClaim {
    /// The client's number.
    pub reference: OrderReference,
    /// The order that has it.
    pub order_id: OrderId,
}

impl Entity for ReferenceClaim {
    const NAME: &'static str = "ReferenceClaim";

    fn key(&self) -> Result<Key, KeyError> {
        Ok(Key { pk: PartitionKey::of("REFERENCE", &[&self.reference])?, sk: SortKey::new("REFERENCE")? })
    }
}

entity! {
    /// A line of the log that staff keeps about an order. It lies apart and is found through an index, so that a long log never
    /// burdens the order's own collection.
    OrderLog = "OrderLog" {
        keyed {
            /// The line.
            id: LogId,
            /// About which order.
            order_id: OrderId,
            /// When.
            at: Instant,
            /// By whom.
            by: String,
        }
        free {
            /// What there is to say.
            text: String,
        }
    }
}

impl Entity for OrderLog {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        Ok(Key { pk: PartitionKey::of("LOG", &[&self.id])?, sk: SortKey::new("LOG")? })
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        Ok(vec![IndexKey {
            index: Index::Gsi1,
            partition: log_partition(&self.order_id)?,
            sort: SortKey::new(join(&self.at.to_string(), &[&self.id]))?,
        }])
    }
}

fn log_partition(order: &OrderId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("ORDERLOG", &[order])
}

fn partition(id: &OrderId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("ORDER", &[id])
}

pub(crate) fn key(id: &OrderId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new("ORDER")? })
}

pub(crate) fn copy_key(customer: &CustomerId, order: &OrderId) -> Result<Key, KeyError> {
    Ok(Key { pk: customer::partition(customer)?, sk: SortKey::of("ORDER", &[order])? })
}

/// The sum of an order's lines.
///
/// # Errors
/// [`MoneyError`] when currencies differ or the sum does not fit. [`None`] for no lines.
pub fn total<'a>(lines: impl IntoIterator<Item = &'a Money>) -> Result<Option<Money>, MoneyError> {
    lines.into_iter().try_fold(None, |sum: Option<Money>, line| sum.map_or(Ok(*line), |sum| sum.plus(*line)).map(Some))
}
