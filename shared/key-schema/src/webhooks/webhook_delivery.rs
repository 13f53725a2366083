//! Deliveries: events on their way to an endpoint, with what came of each attempt.
//!
//! A delivery is one item with a time to live, in the partition of its endpoint. Its key follows from
//! the event, so a repeated event makes no second delivery. A sparse index lists the deliveries of an
//! endpoint whose next attempt is due.
//!
//! An attempt begins with a lease: it sets `due_at` to the end of the lease. So nobody else attempts
//! the delivery, and a crash delays it only until the lease ends.

use std::collections::BTreeMap;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use crate::change::{Change, IndexEntry};
use crate::encoding::join;
use crate::expression::{Condition, first_alive, value};
use crate::id::{DeliveryId, EndpointId};
use crate::index::GSI3;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta, Stored};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::request::{Get, Guarded, Query, Range, Single};

/// How long a delivery stays in the log.
pub const LIFETIME_SECONDS: i64 = 30 * 24 * 60 * 60;
/// The pauses after the failed attempts of a delivery: together more than three days. They are those
/// of Standard Webhooks.
pub const PAUSES_SECONDS: [i64; 9] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
/// The number of attempts, the first one included.
pub const MAX_TRIES: u64 = PAUSES_SECONDS.len() as u64 + 1;
/// The maximum number of attempts in the log of a delivery. The oldest ones are dropped.
pub const MAX_ATTEMPTS: usize = 20;
/// The maximum size of the text that is sent. Only a long order of an agent comes near it. Each attempt
/// writes the item twice, and DynamoDB charges its whole size.
pub const MAX_BODY_BYTES: usize = 128 * 1024;

const DELIVERY: &str = "DELIVERY";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// A further attempt follows.
    Pending,
    Delivered,
    /// All attempts have failed.
    Failed,
}

impl DeliveryState {
    /// The names that clients see.
    pub const NAMES: &'static [&'static str] = &["pending", "delivered", "failed"];
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub at: Instant,
    pub milliseconds: u64,
    /// The status of the response, if there was one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub status: Option<u16>,
    /// Why there was no response.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
}

impl Attempt {
    /// Returns whether the endpoint has taken the event.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

entity! {
    WebhookDelivery = "WebhookDelivery" {
        fixed {
            id: DeliveryId,
            endpoint_id: EndpointId,
            event_id: String,
            /// The kind of the event, such as `order.placed`.
            kind: String,
            /// The JSON text that is sent.
            body: String,
            /// Headers that a key of the shop signs together with the body, as the protocol of an agent wants.
            /// Other deliveries have none, and the secrets of their endpoint sign them.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            signed_headers: Option<BTreeMap<String, String>>,
            state: DeliveryState,
            /// When the next attempt may begin. Absent if no attempt follows.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            due_at: Option<Instant>,
            /// How many attempts have begun, since staff asked for the last redelivery.
            tries: u64,
            /// When the delivery leaves the log. It is also the time to live.
            expires_at: Instant,
        }
        mutable by WebhookDeliveryChanges {
            attempts: Vec<Attempt>,
        }
    }
}

impl WebhookDelivery {
    /// Returns the delivery with a further attempt in its log.
    #[must_use]
    pub fn with(mut self, attempt: Attempt) -> Self {
        self.attempts.push(attempt);
        let superfluous = self.attempts.len().saturating_sub(MAX_ATTEMPTS);
        self.attempts.drain(..superfluous);
        self
    }

    /// Returns when the next attempt follows a failed one, or `None` if it was the last.
    #[must_use]
    pub fn next(&self, now: Instant) -> Option<Instant> {
        let failed = usize::try_from(self.tries).unwrap_or(usize::MAX);
        PAUSES_SECONDS.get(failed.saturating_sub(1)).map(|pause| now.plus_seconds(*pause))
    }
}

impl Entity for WebhookDelivery {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.endpoint_id, &self.id)
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        let entry = self.due_at.map(|due_at| DueIndexKey { endpoint: &self.endpoint_id, due_at, id: &self.id });
        entry.map(|entry| entry.key()).into_iter().collect()
    }

    fn expires(&self) -> Option<Instant> {
        Some(self.expires_at)
    }
}

/// The place of a delivery among those of its endpoint whose next attempt is due.
#[derive(Debug, Clone, Copy)]
pub struct DueIndexKey<'a> {
    pub endpoint: &'a EndpointId,
    pub due_at: Instant,
    pub id: &'a DeliveryId,
}

impl DueIndexKey<'_> {
    fn key(&self) -> Result<IndexKey, KeyError> {
        let sort = SortKey::new(join(&self.due_at.to_string(), &[self.id]))?;
        Ok(IndexKey { index: GSI3, partition: partition(self.endpoint)?, sort })
    }
}

impl IndexEntry for DueIndexKey<'_> {
    type Entity = WebhookDelivery;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        Ok(vec![("due_at", value(self.due_at)?), ("state", value(DeliveryState::Pending)?)])
    }
}

/// A delivery in the list of those that are due.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct DueDelivery {
    pub id: DeliveryId,
}

view!(DueDelivery of WebhookDelivery);

fn partition(endpoint: &EndpointId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("ENDPOINT", &[endpoint])
}

fn key(endpoint: &EndpointId, id: &DeliveryId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(endpoint)?, sk: SortKey::of(DELIVERY, &[id])? })
}

patterns! {
    GET {
        id: "deliveries.get",
        purpose: "Read a delivery",
        request: GetItem,
        key: "PK = ENDPOINT#<endpoint>, SK = DELIVERY#<id>",
        returns: "the delivery",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    LIST {
        id: "deliveries.list",
        purpose: "List the deliveries to an endpoint",
        request: Query,
        key: "PK = ENDPOINT#<endpoint>, SK under DELIVERY#",
        returns: "the deliveries, newest first",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    ADD {
        id: "deliveries.add",
        purpose: "Keep an event for an endpoint, with the lease of the first attempt",
        request: PutItem,
        key: "PK = ENDPOINT#<endpoint>, SK = DELIVERY#<id>",
        requires: "the delivery does not exist",
        callers: "system",
    }
    DUE {
        id: "deliveries.due",
        purpose: "List the deliveries to an endpoint whose next attempt is due",
        request: Query on GSI3,
        key: "GSI3PK = ENDPOINT#<endpoint>, GSI3SK up to <instant>",
        returns: "the deliveries, the longest due first",
        consistency: Consistency::Eventual,
        callers: "system",
    }
    CLAIM {
        id: "deliveries.claim",
        purpose: "Begin an attempt of a delivery",
        request: UpdateItem,
        key: "PK = ENDPOINT#<endpoint>, SK = DELIVERY#<id>",
        requires: "the delivery is due",
        callers: "system",
    }
    SETTLE {
        id: "deliveries.settle",
        purpose: "Record what came of an attempt",
        request: UpdateItem,
        key: "PK = ENDPOINT#<endpoint>, SK = DELIVERY#<id>",
        requires: "the attempt still has its lease",
        callers: "system",
    }
    REDELIVER {
        id: "deliveries.redeliver",
        purpose: "Send a delivery again",
        request: UpdateItem,
        key: "PK = ENDPOINT#<endpoint>, SK = DELIVERY#<id>",
        requires: "the delivery exists and has not expired",
        callers: "staff",
    }
}

pub fn get(endpoint: &EndpointId, id: &DeliveryId) -> Result<Get<Stored<WebhookDelivery>>, KeyError> {
    Ok(Get::new(&GET, key(endpoint, id)?))
}

/// Lists the deliveries to an endpoint, newest first.
pub fn list(endpoint: &EndpointId) -> Result<Query<Stored<WebhookDelivery>>, KeyError> {
    Ok(Query::new(&LIST, partition(endpoint)?, Range::under(DELIVERY)).descending())
}

/// Returns the id of an event's deliveries. The event's id has 32 hexadecimal digits, of which the last
/// ones count.
#[must_use]
pub fn id_of(event: &str, occurred_at: Instant) -> DeliveryId {
    let mut bytes = [0; 10];
    for (byte, digits) in bytes.iter_mut().rev().zip(event.as_bytes().rchunks(2)) {
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
    }
    DeliveryId::generate(occurred_at, bytes)
}

/// Keeps a new delivery.
pub fn add(delivery: &Stored<WebhookDelivery>) -> Result<Single<()>, EncodeError> {
    Ok(Single::new(&ADD, Guarded::put(delivery, Condition::NotExists)?))
}

/// Lists the deliveries to an endpoint that are due at `until`.
pub fn due(endpoint: &EndpointId, until: Instant) -> Result<Query<DueDelivery>, KeyError> {
    let range = Range::Between(Instant::MIN.to_string(), format!("{until}$"));
    Ok(Query::new(&DUE, partition(endpoint)?, range))
}

/// Begins an attempt of a delivery that is due, with a lease until `until`, and returns the delivery.
pub fn claim(
    endpoint: &EndpointId,
    id: &DeliveryId,
    now: Instant,
    until: Instant,
) -> Result<Single<Stored<WebhookDelivery>>, EncodeError> {
    let change = Change::<WebhookDelivery>::visible(now).enter(&DueIndexKey { endpoint, due_at: until, id })?;
    let due = Condition::Below("due_at", value(now.plus_millis(1))?);
    Ok(Single::new(&CLAIM, Guarded::update(key(endpoint, id)?, change.add("tries", 1), due)))
}

/// Records the attempts of a delivery whose lease ends at `lease`. `next` is when a further attempt
/// follows. Otherwise the delivery ends in `state`.
pub fn settle(
    delivery: &WebhookDelivery,
    lease: Instant,
    next: Option<Instant>,
    state: DeliveryState,
    now: Instant,
) -> Result<Single<()>, EncodeError> {
    let WebhookDelivery { endpoint_id, id, attempts, .. } = delivery;
    let change = Change::<WebhookDelivery>::visible(now).attempts(attempts)?;
    let change = match next {
        Some(due_at) => change.enter(&DueIndexKey { endpoint: endpoint_id, due_at, id })?,
        None => change.set("state", state)?.set("due_at", None::<Instant>)?.leave(GSI3),
    };
    let own = Condition::Is("due_at", value(lease)?);
    Ok(Single::new(&SETTLE, Guarded::update(key(endpoint_id, id)?, change, own)))
}

/// Makes a delivery due now, with all its attempts and its whole time in the log, and returns it.
pub fn redeliver(
    endpoint: &EndpointId,
    id: &DeliveryId,
    now: Instant,
) -> Result<Single<Stored<WebhookDelivery>>, EncodeError> {
    let change = Change::<WebhookDelivery>::visible(now).enter(&DueIndexKey { endpoint, due_at: now, id })?;
    let alive = Condition::AtLeast("expires_at", first_alive(now));
    let expires_at = now.plus_seconds(LIFETIME_SECONDS);
    let change = change.set("tries", 0)?.set("expires_at", expires_at)?.expire_at(expires_at);
    Ok(Single::new(&REDELIVER, Guarded::update(key(endpoint, id)?, change, alive)))
}
