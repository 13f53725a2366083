//! Payments: how an order was paid, and how much of the money went back.
//!
//! A payment is an item of its order's partition, so the Query that reads an order reads its
//! payments, too. The transaction that changes the order's status to `paid` writes the payment. A
//! refund names the payment that it refunds, and changes it in the transaction that moves the money.
//! The order's head has the sum of the refunds, because reports read only the heads.
//!
//! The sort key `TENDER#<id>` is after the history. So neither the read of the lines nor the read of
//! the history contains the payments ([`crate::order::parts`]).

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::expression::Condition;
use crate::id::{CustomerId, OrderId, PaymentId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, SortKey};
use crate::money::Money;
use crate::order;
use crate::request::Guarded;

/// The maximum number of payments of one order. An order becomes `paid` only once.
pub const MAX_PAYMENTS: usize = 1;

/// How the customer paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaymentMethod {
    /// The money was taken from the customer's wallet.
    Wallet,
    /// Staff received the money outside of the system, and reported it.
    Manual,
}

impl PaymentMethod {
    /// Returns the name that clients see.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Wallet => "wallet",
            Self::Manual => "manual",
        }
    }
}

entity! {
    Payment = "Payment" {
        fixed {
            /// The id of the payment. The wallet's entry of a payment from the wallet has it, too.
            id: PaymentId,
            order_id: OrderId,
            customer_id: CustomerId,
            method: PaymentMethod,
            /// The attribute `amount` of other entities is a number, so this one has another name.
            #[serde(rename = "total")]
            amount: Money,
            at: Instant,
            /// The id of the caller who paid, or who reported the payment.
            by: String,
            /// The time to live of a retired order's payment.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            expires_at: Option<Instant>,
        }
        mutable by PaymentChanges {
            /// The part of the amount that was refunded to the wallet, in minor units.
            #[serde(skip_serializing_if = "is_zero", default)]
            refunded: i64,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(amount: &i64) -> bool {
    *amount == 0
}

impl Payment {
    /// Returns the amount that was not refunded yet, in minor units.
    #[must_use]
    pub fn refundable(&self) -> i64 {
        self.amount.amount.saturating_sub(self.refunded).max(0)
    }

    #[must_use]
    pub const fn refunded(&self) -> Money {
        Money::new(self.refunded, self.amount.currency)
    }
}

impl Entity for Payment {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        Ok(Key { pk: order::partition(&self.order_id)?, sk: SortKey::of("TENDER", &[&self.id])? })
    }

    fn expires(&self) -> Option<Instant> {
        self.expires_at
    }
}

/// Writes a new payment.
pub(crate) fn add(payment: &Payment) -> Result<Guarded, EncodeError> {
    let stored = Stored::new(payment.clone(), payment.id.born(), payment.at);
    Guarded::put(&stored, Condition::NotExists)
}

/// Adds a refund to the payment that was read, on the condition that it is unchanged.
pub(crate) fn refund(payment: &Stored<Payment>, amount: i64, at: Instant) -> Result<Guarded, EncodeError> {
    let change = Change::<Payment>::visible(at).refunded(&payment.refunded.saturating_add(amount))?;
    Ok(Guarded::update(payment.key()?, change, Condition::version(payment.meta.version)))
}
