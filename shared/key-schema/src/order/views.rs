//! Orders as lists show them.

use serde::{Deserialize, Serialize};

use super::{CustomerOrder, Order, OrderLog, OrderStatus};
use crate::id::{CustomerId, LogId, OrderId, OrderReference};
use crate::instant::Instant;
use crate::money::Money;

/// An order as every list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The order.
    pub id: OrderId,
    /// The client's own number for it.
    #[serde(default)]
    pub reference: Option<OrderReference>,
    /// Whose.
    pub customer_id: CustomerId,
    /// Where it stands.
    pub status: OrderStatus,
    /// The sum of its lines.
    pub total: Money,
    /// When it was placed.
    pub placed_at: Instant,
    /// How many lines.
    pub line_count: u64,
}

impl From<CustomerOrder> for Summary {
    fn from(copy: CustomerOrder) -> Self {
        let CustomerOrder { id, customer_id, placed_at, reference, total, line_count, status, .. } = copy;
        Self { id, reference, customer_id, status, total, placed_at, line_count }
    }
}

crate::item::view!(Summary of Order);

/// An order that was shipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shipment {
    /// The order as every list shows it.
    #[serde(flatten)]
    pub order: Summary,
    /// When it was shipped.
    pub shipped_at: Instant,
    /// Who carries it.
    #[serde(default)]
    pub carrier: Option<String>,
    /// The carrier's number.
    #[serde(default)]
    pub tracking: Option<String>,
}

crate::item::view!(Shipment of CustomerOrder);

/// A log line as the index shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The line.
    pub id: LogId,
    /// About which order.
    pub order_id: OrderId,
    /// When.
    pub at: Instant,
    /// By whom.
    pub by: String,
    /// What there is to say.
    pub text: String,
}

crate::item::view!(LogLine of OrderLog);
