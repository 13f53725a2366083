use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use super::addresses::Destination;
use super::{CustomerOrder, Order, OrderLog, OrderStatus};
use crate::id::{CustomerId, LogId, OrderId, OrderReference};
use crate::instant::Instant;
use crate::item::Stored;
use crate::money::Money;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderSummary {
    pub id: OrderId,
    /// The client's own number for the order.
    #[serde(default)]
    pub reference: Option<OrderReference>,
    pub customer_id: CustomerId,
    pub status: OrderStatus,
    /// The amount that is charged: the sum of the lines, and the price of shipping.
    pub total: Money,
    pub placed_at: Instant,
    pub line_count: u64,
    /// The country and city to which the order is sent. The indexes do not project them, so only
    /// the list of a customer's orders has them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub destination: Option<Destination>,
}

impl From<CustomerOrder> for OrderSummary {
    fn from(copy: CustomerOrder) -> Self {
        let CustomerOrder { id, customer_id, placed_at, reference, total, line_count, status, destination, .. } = copy;
        Self { id, reference, customer_id, status, total, placed_at, line_count, destination }
    }
}

/// An order in the list by status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedOrder {
    #[serde(flatten)]
    pub order: OrderSummary,
    /// The version of the head, for If-Match. The customer's copy has another version, because a
    /// refund or an invoice changes only the head.
    pub version: u64,
}

view!(ListedOrder of Order);

impl From<&Stored<Order>> for ListedOrder {
    fn from(head: &Stored<Order>) -> Self {
        Self { order: CustomerOrder::of(head).into(), version: head.meta.version }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shipment {
    #[serde(flatten)]
    pub order: OrderSummary,
    pub shipped_at: Instant,
    #[serde(default)]
    pub carrier: Option<String>,
    /// The carrier's tracking number.
    #[serde(default)]
    pub tracking: Option<String>,
}

view!(Shipment of CustomerOrder);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    pub id: LogId,
    pub order_id: OrderId,
    pub at: Instant,
    /// The member of staff who wrote the line.
    pub by: String,
    pub text: String,
}

view!(LogLine of OrderLog);

impl From<OrderLog> for LogLine {
    fn from(OrderLog { id, order_id, at, by, text, list_shards: _ }: OrderLog) -> Self {
        Self { id, order_id, at, by, text }
    }
}
