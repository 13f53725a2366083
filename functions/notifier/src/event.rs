//! The events from EventBridge, and the news that they contain for customers.

use bus::{
    Data, DecodeError, EmailVerificationRequested, Event, OrderPlaced, OrderStatusChanged, PaymentReversed, Reason,
    Reversal,
};
use key_schema::id::{CustomerId, OrderId};
use key_schema::instant::Instant;
use key_schema::money::Money;
use key_schema::order::OrderStatus;
use key_schema::payment::PaymentMethod;
use serde::Deserialize;
use serde_json::Value;
use telemetry::correlation;

/// The parts of an EventBridge event that the function needs.
#[derive(Debug, Clone, Deserialize)]
pub struct Delivery {
    #[serde(default)]
    pub source: String,
    /// The domain event, or SES's report.
    pub detail: Value,
    /// The name of the archive replay that the event belongs to, if any.
    #[serde(rename = "replay-name", default)]
    pub replay: Option<String>,
}

impl Delivery {
    pub fn event(&self) -> Result<Event, DecodeError> {
        Event::from_detail(&self.detail)
    }

    /// Returns the event's type and id for logs, even if the event cannot be decoded.
    #[must_use]
    pub fn names(&self) -> (&str, &str) {
        let text = |name| self.detail.get(name).and_then(Value::as_str).unwrap_or("unknown");
        (text("type"), text("id"))
    }

    /// Returns the id of the request that caused the event, if the event has a valid correlation
    /// id.
    #[must_use]
    pub fn cause(&self) -> Option<&str> {
        self.detail.get("correlation_id").and_then(Value::as_str).and_then(correlation::id)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    Placed,
    Paid,
    Shipped,
    Delivered,
    Cancelled,
    /// The order was cancelled, because it was not paid in time.
    Lapsed,
    Returned,
    /// The provider gives this amount back to the customer's card.
    Refunded(Money),
    /// This amount is no longer reserved on the customer's card.
    Released(Money),
}

impl Occasion {
    /// Returns the order's new status, if the order has one.
    #[must_use]
    pub const fn status(self) -> Option<OrderStatus> {
        match self {
            Self::Placed | Self::Refunded(_) | Self::Released(_) => None,
            Self::Paid => Some(OrderStatus::Paid),
            Self::Shipped => Some(OrderStatus::Shipped),
            Self::Delivered => Some(OrderStatus::Delivered),
            Self::Cancelled | Self::Lapsed => Some(OrderStatus::Cancelled),
            Self::Returned => Some(OrderStatus::Returned),
        }
    }

    /// Returns the amount that goes back to the customer.
    #[must_use]
    pub const fn moved(self) -> Option<Money> {
        match self {
            Self::Refunded(amount) | Self::Released(amount) => Some(amount),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News<'a> {
    Placed(&'a OrderPlaced),
    Changed {
        /// The occasion.
        occasion: Occasion,
        order: &'a OrderId,
        customer: &'a CustomerId,
    },
    Code {
        customer: &'a CustomerId,
        /// When the code expires.
        expires_at: Instant,
    },
}

impl<'a> News<'a> {
    /// Returns the news in an event, or `None` if it does not concern customers. For example,
    /// picking matters only in the warehouse.
    #[must_use]
    pub const fn of(event: &'a Event) -> Option<Self> {
        match &event.data {
            Data::OrderPlaced(placed) => Some(Self::Placed(placed)),
            Data::OrderStatusChanged(OrderStatusChanged { order_id, customer_id, to, reason, .. }) => {
                let occasion = match to {
                    OrderStatus::Paid => Occasion::Paid,
                    OrderStatus::Shipped => Occasion::Shipped,
                    OrderStatus::Delivered => Occasion::Delivered,
                    OrderStatus::Cancelled => match reason {
                        Some(Reason::Lapsed) => Occasion::Lapsed,
                        None => Occasion::Cancelled,
                    },
                    OrderStatus::Returned => Occasion::Returned,
                    OrderStatus::Placing | OrderStatus::Pending | OrderStatus::Picking => return None,
                };
                Some(Self::Changed { occasion, order: order_id, customer: customer_id })
            }
            Data::EmailVerificationRequested(EmailVerificationRequested { customer_id, expires_at }) => {
                Some(Self::Code { customer: customer_id, expires_at: *expires_at })
            }
            Data::PaymentReversed(PaymentReversed { order_id, customer_id, method, reversal, amount, .. }) => {
                let occasion = match (method, reversal) {
                    (PaymentMethod::Card, Reversal::Refund) => Occasion::Refunded(*amount),
                    (PaymentMethod::Card, Reversal::Release) => Occasion::Released(*amount),
                    // A refund to the wallet is in the wallet's history, and staff pay other money out.
                    (PaymentMethod::Wallet | PaymentMethod::Manual, _) => return None,
                };
                Some(Self::Changed { occasion, order: order_id, customer: customer_id })
            }
            Data::StockLow(_) | Data::ReviewPosted(_) | Data::CustomerTierChanged(_) | Data::PaymentNotified(_) => None,
        }
    }
}
