//! The life of an order.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Where an order stands.
///
/// placing → pending → paid → picking → shipped → delivered; pending, paid or picking → cancelled; delivered → returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderStatus {
    /// Its lines are being reserved; nobody can see it yet.
    Placing,
    /// Placed, not paid.
    Pending,
    /// Paid.
    Paid,
    /// In the warehouse's hands.
    Picking,
    /// On its way.
    Shipped,
    /// With the customer.
    Delivered,
    /// Called off; its stock went back.
    Cancelled,
    /// Came back after delivery; its stock went back.
    Returned,
}

impl OrderStatus {
    /// Every status that somebody can see, in the order of an order's life.
    pub const VISIBLE: [Self; 7] =
        [Self::Pending, Self::Paid, Self::Picking, Self::Shipped, Self::Delivered, Self::Cancelled, Self::Returned];

    /// The name in keys, JSON and attributes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Placing => "placing",
            Self::Pending => "pending",
            Self::Paid => "paid",
            Self::Picking => "picking",
            Self::Shipped => "shipped",
            Self::Delivered => "delivered",
            Self::Cancelled => "cancelled",
            Self::Returned => "returned",
        }
    }

    /// Whether an order may go from here to there.
    #[must_use]
    pub const fn may_become(self, to: Self) -> bool {
        matches!(
            (self, to),
            (Self::Placing, Self::Pending)
                | (Self::Pending, Self::Paid)
                | (Self::Paid, Self::Picking)
                | (Self::Picking, Self::Shipped)
                | (Self::Shipped, Self::Delivered)
                | (Self::Delivered, Self::Returned)
                | (Self::Pending | Self::Paid | Self::Picking, Self::Cancelled)
        )
    }

    /// Whether the step to this status gives the lines' stock back.
    #[must_use]
    pub const fn returns_stock(self) -> bool {
        matches!(self, Self::Cancelled | Self::Returned)
    }

    /// Whether an order in this status counts as sold.
    #[must_use]
    pub const fn is_sale(self) -> bool {
        matches!(self, Self::Pending | Self::Paid | Self::Picking | Self::Shipped | Self::Delivered)
    }

    /// Whether an order in this status has come to its end and may be retired. A delivered one can still be returned, so whoever retires
    /// delivered orders waits until none of them will be.
    #[must_use]
    pub const fn is_closed(self) -> bool {
        matches!(self, Self::Delivered | Self::Cancelled | Self::Returned)
    }

    /// Whether the order's owner may take the step himself: pay, and cancel what is not yet picked. Every other step is staff's.
    #[must_use]
    pub const fn owner_may(self, to: Self) -> bool {
        matches!((self, to), (Self::Pending | Self::Paid, Self::Cancelled))
    }
}

/// The text names no status that an order can visibly have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be pending, paid, picking, shipped, delivered, cancelled or returned")]
pub struct UnknownStatus;

impl FromStr for OrderStatus {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        Self::VISIBLE.into_iter().find(|status| status.as_str() == text).ok_or(UnknownStatus)
    }
}

impl fmt::Display for OrderStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
