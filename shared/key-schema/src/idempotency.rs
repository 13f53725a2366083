//! Idempotency keys: what a request was and what it was answered, written in the transaction of its effect.
//!
//! A record exists exactly when the effect does. A second request with the same key finds the record and gets the first answer;
//! two at the same time race for the record inside their transactions, and one of them is refused with everything it wanted to do.

use serde::{Deserialize, Serialize};

use crate::change::entity;
use crate::expression::{Condition, first_alive};
use crate::id::OrderId;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::{Consistency, patterns};
use crate::request::{Get, Guarded};

/// How long an answer is replayed.
pub const LIFETIME_SECONDS: i64 = 24 * 60 * 60;

/// Whose key, and which: one caller's key means nothing to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// The caller's `sub`.
    pub caller: String,
    /// The header's value.
    pub key: String,
}

/// What is needed to give the first answer again, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// An order was created: its items do not change in what the answer showed, so the answer is made from them again and the record
    /// stays small whatever the order's size.
    Order(OrderId),
    /// The answer itself.
    Body {
        /// HTTP status.
        status: u16,
        /// JSON.
        body: String,
    },
}

entity! {
    /// One used key.
    IdempotencyRecord = "IdempotencyRecord" {
        keyed {
            /// Whose key, and which.
            scope: Scope,
            /// SHA-256 of method, path and body, hexadecimal.
            request_hash: String,
            /// The first answer.
            answer: Answer,
            /// When the key may be used anew; also the time to live.
            expires_at: Instant,
        }
        free {}
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
    GET = "idempotency.get": GetItem, "PK = IDEMPOTENCY#<caller>#<key>, SK = IDEMPOTENCY" => "the record", Consistency::Strong("a retry must see what its first attempt did"), "any", "Find the first answer to a repeated request", ["POST /v1/products/{id}/stock/adjustments", "POST /v1/orders", "POST /v1/customers/{id}/cart/checkout", "POST /v1/customers/{id}/wallet/deposits", "POST /v1/transfers", "POST /v1/orders/{id}/refunds", "POST /v1/customers/{id}/questions", "POST /v1/questions/{id}/answers", "POST /v1/counters/{name}"];
}

/// Reads a record; the caller treats an expired one as absent.
///
/// # Errors
/// [`KeyError`].
pub fn get(scope: &Scope) -> Result<Get<Stored<IdempotencyRecord>>, KeyError> {
    Ok(Get::new(&GET, key(scope)?))
}

/// Writes a record inside the transaction of its effect, unless the key is in use.
///
/// # Errors
/// [`EncodeError`].
pub fn claim(record: &Stored<IdempotencyRecord>, now: Instant) -> Result<Guarded, EncodeError> {
    let free = Condition::NotExists.or(Condition::Below("expires_at", first_alive(now)));
    Guarded::put(record, free)
}
