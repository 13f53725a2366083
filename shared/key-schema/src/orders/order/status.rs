use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The status of an order.
///
/// placing → pending → paid → picking → shipped → delivered. A pending, paid or picking order can
/// be cancelled. A delivered order can be returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderStatus {
    /// The lines are being reserved. The order is invisible.
    Placing,
    /// The order is placed and not paid.
    Pending,
    Paid,
    Picking,
    /// The order is in transit.
    Shipped,
    /// The customer has received the order.
    Delivered,
    /// The order was cancelled, and its stock returns.
    Cancelled,
    /// The customer returned the order after delivery, and its stock returns.
    Returned,
}

impl OrderStatus {
    /// Every visible status, from the first to the last in an order's life.
    pub const VISIBLE: [Self; 7] =
        [Self::Pending, Self::Paid, Self::Picking, Self::Shipped, Self::Delivered, Self::Cancelled, Self::Returned];

    /// Returns the name in keys, JSON and attributes.
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

    /// Returns whether an order may change from this status to `to`.
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

    /// Returns the statuses to which staff may change an order from this status.
    pub fn next(self) -> impl Iterator<Item = Self> {
        Self::VISIBLE.into_iter().filter(move |to| self.may_become(*to))
    }

    /// Returns whether a change to this status gives the stock of the lines back.
    #[must_use]
    pub const fn returns_stock(self) -> bool {
        matches!(self, Self::Cancelled | Self::Returned)
    }

    /// Returns whether an order in this status counts as sold.
    #[must_use]
    pub const fn is_sale(self) -> bool {
        matches!(self, Self::Pending | Self::Paid | Self::Picking | Self::Shipped | Self::Delivered)
    }

    /// Returns whether an order in this status counts on the leaderboards of sales.
    #[must_use]
    pub const fn is_shipped(self) -> bool {
        matches!(self, Self::Shipped | Self::Delivered)
    }

    /// Returns whether an order in this status is closed and may be retired. A delivered order can
    /// still be returned, so a caller retires it only after the time for returns.
    #[must_use]
    pub const fn is_closed(self) -> bool {
        matches!(self, Self::Delivered | Self::Cancelled | Self::Returned)
    }

    /// Returns whether the order's owner may make this change. The owner may cancel an order that
    /// is not being picked yet. Payment from the wallet is checked separately. Only staff may make
    /// the other changes.
    #[must_use]
    pub const fn owner_may(self, to: Self) -> bool {
        matches!((self, to), (Self::Pending | Self::Paid, Self::Cancelled))
    }
}

/// An error for a text that names no visible status.
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
