//! Idempotency keys: a record of the request and its first response, written in the transaction of
//! the request's effect.
//!
//! A record and the effect of its request exist together or not at all, until the record expires. A
//! second request with the same key finds the record and gets the first response. Two concurrent
//! requests race for the record inside their transactions. DynamoDB refuses one of the two
//! transactions as a whole.

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::expression::{Condition, first_alive};
use crate::id::{CheckoutId, EndpointId, OperationId, OrderId, PaymentId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::request::{Get, Guarded, Single};

/// How long a response is replayed.
pub const LIFETIME_SECONDS: i64 = 24 * 60 * 60;

/// An idempotency key and the caller to whom it belongs. The same key of another caller makes
/// another scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// The caller's `sub`, or empty for a caller without a `sub`.
    pub caller: String,
    /// The value of the Idempotency-Key header.
    pub key: String,
}

/// The data that gives the first response again, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredResponse {
    /// The response to a created order. It can be built again from the order's items, because only
    /// an invoice or an erasure changes the fields that it shows. So the record stays small for an
    /// order of any size.
    Order(OrderId),
    /// The response to a new payment. It shows the payment's present state.
    Payment { order_id: OrderId, payment_id: PaymentId },
    /// The response to a refund. It shows the present state of the operation.
    Operation { order_id: OrderId, operation_id: OperationId },
    /// The response to a new endpoint of webhooks. It shows the present state, and the secret, which no
    /// item holds.
    Endpoint(EndpointId),
    /// The response to a change of an agent's cart or checkout. It shows the present state.
    Checkout(CheckoutId),
    Body {
        status: u16,
        /// The response as JSON.
        body: String,
    },
}

entity! {
    IdempotencyRecord = "IdempotencyRecord" {
        fixed {
            scope: Scope,
            /// A hexadecimal SHA-256 of route, path, caller and body.
            request_hash: String,
            answer: StoredResponse,
            /// When the key may be used again. It is also the time to live.
            expires_at: Instant,
        }
        mutable {}
    }
}

impl Entity for IdempotencyRecord {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.scope)
    }

    fn expires(&self) -> Option<Instant> {
        Some(self.expires_at)
    }
}

pub(crate) fn key(scope: &Scope) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("IDEMPOTENCY", &[&scope.caller, &scope.key])?, sk: SortKey::new("IDEMPOTENCY")? })
}

patterns! {
    GET {
        id: "idempotency.get",
        purpose: "Find the stored response to a repeated request",
        request: GetItem,
        key: "PK = IDEMPOTENCY#<caller>#<key>, SK = IDEMPOTENCY",
        returns: "the record",
        consistency: Consistency::Strong("a retry must see the effect of the first attempt"),
        callers: "any",
    }
    KEEP {
        id: "idempotency.keep",
        purpose: "Store the response to a request that has changed nothing",
        request: PutItem,
        key: "PK = IDEMPOTENCY#<caller>#<key>, SK = IDEMPOTENCY",
        requires: "the key is free",
        callers: "any",
    }
}

/// Reads a record. The caller treats an expired record as absent.
pub fn get(scope: &Scope) -> Result<Get<Stored<IdempotencyRecord>>, KeyError> {
    Ok(Get::new(&GET, key(scope)?))
}

/// Writes the record of a request without an effect. DynamoDB refuses the write while the key is in use.
pub fn keep(record: &Stored<IdempotencyRecord>, now: Instant) -> Result<Single<()>, EncodeError> {
    Ok(Single::new(&KEEP, claim(record, now)?))
}

/// Writes a record inside the transaction of its effect. DynamoDB refuses the write while the key
/// is in use.
pub fn claim(record: &Stored<IdempotencyRecord>, now: Instant) -> Result<Guarded, EncodeError> {
    let free = Condition::NotExists.or(Condition::Below("expires_at", first_alive(now)));
    Guarded::put(record, free)
}
