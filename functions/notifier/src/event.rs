//! What EventBridge delivers, and which events a customer is told about.

use bus::{Data, DecodeError, Event, OrderPlaced, OrderStatusChanged};
use key_schema::id::{CustomerId, OrderId};
use key_schema::order::OrderStatus;
use serde::Deserialize;
use serde_json::Value;
use telemetry::correlation;

/// An event as EventBridge hands it to a function, as far as it matters here.
#[derive(Debug, Clone, Deserialize)]
pub struct Delivery {
    /// The domain event.
    pub detail: Value,
    /// Which replay of the archive it belongs to, if any.
    #[serde(rename = "replay-name", default)]
    pub replay: Option<String>,
}

impl Delivery {
    /// The domain event.
    ///
    /// # Errors
    /// [`DecodeError`] when it is none that this program knows.
    pub fn event(&self) -> Result<Event, DecodeError> {
        Event::from_detail(&self.detail)
    }

    /// What the event says that it is, and its id: for logs, also where it cannot be read.
    #[must_use]
    pub fn names(&self) -> (&str, &str) {
        let text = |name| self.detail.get(name).and_then(Value::as_str).unwrap_or("unknown");
        (text("type"), text("id"))
    }

    /// The id of the request that the event is a consequence of, if it says so.
    #[must_use]
    pub fn cause(&self) -> Option<&str> {
        self.detail.get("correlation_id").and_then(Value::as_str).and_then(correlation::id)
    }
}

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// The order was placed.
    Placed,
    /// It is paid.
    Paid,
    /// It is on its way.
    Shipped,
    /// It has arrived.
    Delivered,
    /// It was called off.
    Cancelled,
    /// It came back.
    Returned,
}

/// Whom to tell about what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News<'a> {
    /// What happened.
    pub occasion: Occasion,
    /// With which order.
    pub order: &'a OrderId,
    /// Whose.
    pub customer: &'a CustomerId,
}

impl<'a> News<'a> {
    /// What an event means to a customer. Nothing, if it is none of his business: that his order is being picked only matters in the warehouse.
    #[must_use]
    pub const fn of(event: &'a Event) -> Option<Self> {
        match &event.data {
            Data::OrderPlaced(OrderPlaced { order_id, customer_id, .. }) => {
                Some(Self { occasion: Occasion::Placed, order: order_id, customer: customer_id })
            }
            Data::OrderStatusChanged(OrderStatusChanged { order_id, customer_id, to, .. }) => {
                let occasion = match to {
                    OrderStatus::Paid => Occasion::Paid,
                    OrderStatus::Shipped => Occasion::Shipped,
                    OrderStatus::Delivered => Occasion::Delivered,
                    OrderStatus::Cancelled => Occasion::Cancelled,
                    OrderStatus::Returned => Occasion::Returned,
                    OrderStatus::Placing | OrderStatus::Pending | OrderStatus::Picking => return None,
                };
                Some(Self { occasion, order: order_id, customer: customer_id })
            }
            Data::StockLow(_) | Data::ReviewPosted(_) | Data::CustomerTierChanged(_) => None,
        }
    }
}
