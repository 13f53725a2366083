//! Operations: the calls of the payment provider that change a payment.

use item_model::prelude::*;
use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use crate::change::IndexEntry;
use crate::encoding::join;
use crate::expression::value;
use crate::id::{OperationId, OrderId, PaymentId};
use crate::index::GSI3;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta};
use crate::key::{IndexKey, Key, KeyError, SortKey};
use crate::order;
use crate::payment::unsettled_of;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    Create,
    Capture,
    Cancel,
    Refund,
}

impl OperationKind {
    /// The names that clients see.
    pub const NAMES: &'static [&'static str] = &["create", "capture", "cancel", "refund"];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationState {
    /// The operation was begun. Its call may have been sent.
    Sending,
    /// A call had no usable response. It may have had its effect.
    Unknown,
    Done,
    /// The provider refused the call, and nothing changed.
    Refused,
}

impl OperationState {
    /// The names that clients see.
    pub const NAMES: &'static [&'static str] = &["sending", "unknown", "done", "refused"];

    /// Returns whether the result is not known yet.
    #[must_use]
    pub const fn is_unsettled(self) -> bool {
        matches!(self, Self::Sending | Self::Unknown)
    }
}

/// A part of a refund: pieces of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefundedLine {
    pub line: u64,
    pub quantity: u64,
}

entity! {
    PaymentOperation = "PaymentOperation" {
        fixed {
            /// The id, which is the key of the provider's call in every attempt.
            id: OperationId,
            payment_id: PaymentId,
            order_id: OrderId,
            kind: OperationKind,
            /// The amount in minor units of the payment's currency. The amount of a cancellation is
            /// 0.
            amount: i64,
            at: Instant,
            /// The id of the caller who began the operation, or [`order::SYSTEM`].
            by: String,
            /// The reason of a refund, in the words of staff.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            reason: Option<String>,
            /// The lines that a refund is for.
            #[serde(skip_serializing_if = "Vec::is_empty", default)]
            refund_lines: Vec<RefundedLine>,
            state: OperationState,
            /// The time to live of a retired order's operation.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            expires_at: Option<Instant>,
        }
        mutable by PaymentOperationChanges {
            /// The provider's code of the refusal.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            declined: Option<String>,
        }
    }
}

impl PaymentOperation {
    pub(crate) fn unsettled(&self) -> Option<UnsettledIndexKey<'_>> {
        let is_unsettled = self.state.is_unsettled() && self.expires_at.is_none();
        is_unsettled.then_some(UnsettledIndexKey { state: self.state, at: self.at, id: &self.id })
    }
}

impl PaymentOperation {
    /// Returns the key of the operation's payment.
    pub fn payment_key(&self) -> Result<Key, KeyError> {
        Ok(Key { pk: order::partition(&self.order_id)?, sk: SortKey::of("TENDER", &[&self.payment_id])? })
    }
}

impl Entity for PaymentOperation {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        let sk = SortKey::of("TENDER", &[&self.payment_id, &self.id])?;
        Ok(Key { pk: order::partition(&self.order_id)?, sk })
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        self.unsettled().map(|entry| entry.key()).into_iter().collect()
    }

    fn expires(&self) -> Option<Instant> {
        self.expires_at
    }
}

/// The place of an operation in the list of operations whose result is not known.
#[derive(Debug, Clone, Copy)]
pub struct UnsettledIndexKey<'a> {
    pub state: OperationState,
    pub at: Instant,
    pub id: &'a OperationId,
}

impl UnsettledIndexKey<'_> {
    fn key(&self) -> Result<IndexKey, KeyError> {
        let sort = SortKey::new(join(&self.at.to_string(), &[self.id]))?;
        Ok(IndexKey { index: GSI3, partition: unsettled_of(self.id)?, sort })
    }
}

impl IndexEntry for UnsettledIndexKey<'_> {
    type Entity = PaymentOperation;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        Ok(vec![("state", value(self.state)?)])
    }
}

/// An operation in the list of operations whose result is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsettledOperation {
    pub id: OperationId,
    pub order_id: OrderId,
    pub created_at: Instant,
}

view!(UnsettledOperation of PaymentOperation);
