//! Payments: how an order was paid, and how much of the money went back.
//!
//! A payment is an item of its order's partition, so the Query that reads an order reads its
//! payments and their operations, too. An operation is a call of the payment provider: it is written
//! before the call, and again with the call's result. [`Ledger`] has the rules, and makes the writes
//! of one transaction. Each of these transactions changes the order's head on the condition that the
//! head is unchanged. So the sums that a rule has seen still hold when its effect is written.
//!
//! Staff and wallets pay at once, so such a payment is `captured` from its beginning and needs no
//! operation. The order's head has the sum of the refunds, because reports read only the heads.
//!
//! The sort key `TENDER#<id>` is after the history. So neither the read of the lines nor the read of
//! the history contains the payments ([`crate::order::parts`]). The operations of a payment have the
//! sort keys `TENDER#<id>#<operation>`.

use std::str::FromStr;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use crate::change::IndexEntry;
use crate::encoding::join;
use crate::expression::value;
use crate::id::{CustomerId, OrderId, PaymentId};
use crate::index::GSI3;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::money::Money;
use crate::order;
use crate::pattern::Consistency;
use crate::request::{Query, Range};
use crate::shard::Shards;

pub use super::ledger::{Closing, Ledger, LedgerError, Present, UNSENT};
pub use super::operation::{OperationKind, OperationState, PaymentOperation, RefundedLine, UnsettledOperation};

/// The maximum number of payments of one order. A customer may try a card again without a new
/// payment.
pub const MAX_PAYMENTS: usize = 10;
/// The maximum number of operations that staff may begin on a payment.
pub const MAX_BY_STAFF: usize = 20;
/// The maximum number of operations of a payment, with those that the system begins.
pub(crate) const MAX_OPERATIONS: usize = MAX_BY_STAFF + 12;
const SHARDS: Shards = Shards(4);

/// How the customer pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaymentMethod {
    /// A card, at the payment provider.
    Card,
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
            Self::Card => "card",
            Self::Wallet => "wallet",
            Self::Manual => "manual",
        }
    }
}

/// An error for a text that names no method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be card, wallet or manual")]
pub struct UnknownMethod;

impl FromStr for PaymentMethod {
    type Err = UnknownMethod;

    fn from_str(text: &str) -> Result<Self, UnknownMethod> {
        [Self::Card, Self::Wallet, Self::Manual].into_iter().find(|known| known.as_str() == text).ok_or(UnknownMethod)
    }
}

/// When the money of an authorised card payment is captured: the setting `payments.capture`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureMode {
    #[default]
    AtOnce,
    AtShipping,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaymentStatus {
    /// The provider does not have the payment yet.
    Starting,
    /// The customer has not given a card yet, or the issuer declined it. The customer may try again.
    Pending,
    /// The customer has to do something, such as 3-D Secure.
    ActionRequired,
    /// The provider waits for the result.
    Processing,
    /// The amount is reserved on the card, and not captured yet.
    Authorised,
    /// The shop has the money.
    Captured,
    /// The payment was cancelled, or its authorisation expired.
    Cancelled,
    /// The provider refused to create the payment.
    Failed,
}

impl PaymentStatus {
    /// The names that clients see.
    pub const NAMES: &'static [&'static str] =
        &["starting", "pending", "action_required", "processing", "authorised", "captured", "cancelled", "failed"];

    /// Returns whether the customer may still pay.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Starting | Self::Pending | Self::ActionRequired | Self::Processing)
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
            /// The amount that the payment is for. The attribute `amount` of other entities is a
            /// number, so this one has another name.
            #[serde(rename = "total")]
            amount: Money,
            /// When a card payment is captured.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            capture: Option<CaptureMode>,
            at: Instant,
            /// The id of the caller who paid, or who reported the payment.
            by: String,
            status: PaymentStatus,
            /// The instant after which the authorisation expires. The index of expiring
            /// authorisations has it.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            capture_before: Option<Instant>,
            /// The time to live of a retired order's payment.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            expires_at: Option<Instant>,
        }
        mutable by PaymentChanges {
            /// The provider's id of a card payment.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            intent: Option<String>,
            /// The amounts in minor units. The captured amount is never more than the authorised
            /// amount, and the refunded amount is never more than the captured amount.
            #[serde(skip_serializing_if = "is_zero", default)]
            authorised: i64,
            #[serde(skip_serializing_if = "is_zero", default)]
            captured: i64,
            #[serde(skip_serializing_if = "is_zero", default)]
            refunded: i64,
            /// The amounts of the operations whose result is not known yet.
            #[serde(skip_serializing_if = "is_zero", default)]
            captured_pending: i64,
            #[serde(skip_serializing_if = "is_zero", default)]
            refunded_pending: i64,
            /// The code of the last refusal by the provider or by the card's issuer.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            declined: Option<String>,
            /// Whether all money of the card payment goes back. The ledger begins the operations for
            /// that as soon as none is in progress.
            #[serde(skip_serializing_if = "std::ops::Not::not", default)]
            releasing: bool,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(amount: &i64) -> bool {
    *amount == 0
}

impl Payment {
    /// Creates a payment whose money the shop has: from the customer's wallet, or reported by staff.
    #[must_use]
    pub fn received(
        id: PaymentId,
        order: &order::Order,
        method: PaymentMethod,
        amount: Money,
        at: Instant,
        by: &str,
    ) -> Self {
        let (status, captured) = (PaymentStatus::Captured, amount.amount);
        Self { status, authorised: captured, captured, ..Self::new(id, order, method, amount, at, by) }
    }

    /// Creates a card payment that the provider does not have yet.
    #[must_use]
    pub fn card(
        id: PaymentId,
        order: &order::Order,
        amount: Money,
        capture: CaptureMode,
        at: Instant,
        by: &str,
    ) -> Self {
        Self { capture: Some(capture), ..Self::new(id, order, PaymentMethod::Card, amount, at, by) }
    }

    fn new(id: PaymentId, order: &order::Order, method: PaymentMethod, amount: Money, at: Instant, by: &str) -> Self {
        Self {
            id,
            order_id: order.id.clone(),
            customer_id: order.customer_id.clone(),
            method,
            amount,
            capture: None,
            at,
            by: by.to_owned(),
            status: PaymentStatus::Starting,
            capture_before: None,
            expires_at: None,
            intent: None,
            authorised: 0,
            captured: 0,
            refunded: 0,
            captured_pending: 0,
            refunded_pending: 0,
            declined: None,
            releasing: false,
        }
    }

    /// Returns the amount that can still be refunded, in minor units.
    #[must_use]
    pub fn refundable(&self) -> i64 {
        self.captured.saturating_sub(self.refunded).saturating_sub(self.refunded_pending).max(0)
    }

    /// Returns the amount that can still be captured, in minor units.
    #[must_use]
    pub fn capturable(&self) -> i64 {
        match self.status {
            PaymentStatus::Authorised => {
                self.authorised.saturating_sub(self.captured).saturating_sub(self.captured_pending).max(0)
            }
            _ => 0,
        }
    }

    /// Returns the amount that counts for the order's total: authorised or captured, less refunds.
    #[must_use]
    pub fn secured(&self) -> i64 {
        match self.status {
            _ if self.releasing => 0,
            // A capture releases the rest.
            PaymentStatus::Authorised if self.captured_pending > 0 => self.captured_pending,
            _ => self.held().saturating_sub(self.refunded_pending).max(0),
        }
    }

    /// Returns the amount that the shop has, or that is reserved for it.
    #[must_use]
    pub fn held(&self) -> i64 {
        match self.status {
            PaymentStatus::Authorised => self.authorised,
            PaymentStatus::Captured => self.captured.saturating_sub(self.refunded),
            _ => 0,
        }
    }

    /// Returns an amount in minor units as money of this payment.
    #[must_use]
    pub const fn money(&self, amount: i64) -> Money {
        Money::new(amount, self.amount.currency)
    }

    fn expiring(&self) -> Option<ExpiringIndexKey<'_>> {
        let before = self.capture_before.filter(|_| self.status == PaymentStatus::Authorised)?;
        let is_kept = self.expires_at.is_none();
        is_kept.then_some(ExpiringIndexKey { status: self.status, capture_before: before, id: &self.id })
    }
}

impl Entity for Payment {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        Ok(Key { pk: order::partition(&self.order_id)?, sk: SortKey::of("TENDER", &[&self.id])? })
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        self.expiring().map(|entry| entry.key()).into_iter().collect()
    }

    fn expires(&self) -> Option<Instant> {
        self.expires_at
    }
}

/// The place of an authorised payment in the list of authorisations that expire.
#[derive(Debug, Clone, Copy)]
pub struct ExpiringIndexKey<'a> {
    pub status: PaymentStatus,
    pub capture_before: Instant,
    pub id: &'a PaymentId,
}

impl ExpiringIndexKey<'_> {
    fn key(&self) -> Result<IndexKey, KeyError> {
        let sort = join(&self.capture_before.to_string(), &[self.id]);
        let partition = expiring_shard(SHARDS.of(self.id.as_str()))?;
        Ok(IndexKey { index: GSI3, partition, sort: SortKey::new(sort)? })
    }
}

impl IndexEntry for ExpiringIndexKey<'_> {
    type Entity = Payment;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        Ok(vec![("status", value(self.status)?), ("capture_before", value(self.capture_before)?)])
    }
}

fn expiring_shard(shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("EXPIRING", &[&shard])
}

/// An authorised payment in the list of authorisations that expire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpiringPayment {
    pub id: PaymentId,
    pub order_id: OrderId,
}

view!(ExpiringPayment of Payment);

patterns! {
    CHANGE {
        id: "payments.change",
        purpose: "Begin a payment or an operation, or record the result of an operation",
        request: TransactWriteItems,
        key: "PK = ORDER#<id>, SK = ORDER, TENDER#<payment>, TENDER#<payment>#<operation>; PK = \
            WALLET#<customer>, SK = WALLET and ENTRY#<entry> when the wallet pays or gets a refund; PK = \
            IDEMPOTENCY#<caller>#<key> for a refund",
        requires: "the versions of the order, the payments and the operations = those that were read; the \
            wallet has enough money, or can hold the refund; the key is free",
        callers: "owner",
    }
    UNSETTLED {
        id: "payments.unsettled",
        purpose: "Find the operations whose result is not known",
        request: ShardedQuery on GSI3,
        key: "GSI3PK = UNSETTLED#<shard>, GSI3SK up to <instant>",
        returns: "operations, the oldest first",
        consistency: Consistency::Eventual,
        callers: "system",
    }
    EXPIRING {
        id: "payments.expiring",
        purpose: "Find the authorised payments whose authorisation expires soon",
        request: ShardedQuery on GSI3,
        key: "GSI3PK = EXPIRING#<shard>, GSI3SK up to <instant>",
        returns: "payments, the next expiry first",
        consistency: Consistency::Eventual,
        callers: "system",
    }
}

/// Lists the operations that began at `until` or earlier and whose result is not known, the oldest
/// first.
pub fn unsettled(until: Instant) -> Result<Query<UnsettledOperation>, KeyError> {
    let shards = SHARDS.all().map(unsettled_shard).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&UNSETTLED, shards, up_to(until)))
}

/// Lists the authorised payments whose authorisation expires at `until` or earlier.
pub fn expiring(until: Instant) -> Result<Query<ExpiringPayment>, KeyError> {
    let shards = SHARDS.all().map(expiring_shard).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&EXPIRING, shards, up_to(until)))
}

fn up_to(until: Instant) -> Range {
    Range::Between(Instant::MIN.to_string(), format!("{until}$"))
}

fn unsettled_shard(shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("UNSETTLED", &[&shard])
}

pub(crate) fn unsettled_of(operation: &crate::id::OperationId) -> Result<PartitionKey, KeyError> {
    unsettled_shard(SHARDS.of(operation.as_str()))
}

/// Sets the place of a payment in the list of expiring authorisations.
pub(crate) fn indexed(
    payment: &Payment,
    change: crate::change::Change<Payment>,
) -> Result<crate::change::Change<Payment>, EncodeError> {
    match payment.expiring() {
        Some(entry) => change.enter(&entry),
        None => Ok(change.leave(GSI3)),
    }
}
