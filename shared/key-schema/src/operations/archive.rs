//! The archive of expired items: the names of its objects, and how items are restored.
//!
//! ```text
//! expired/<hash of a partition>/<hash of PK and SK>-<sequence number>.json
//! ```
//!
//! The first hash groups the objects that belong together. An order's head, lines and history are
//! under the hash of the order's partition. A customer's carts are under the hash of the cart's
//! partition. Each session has a separate partition, so sessions are under the hash of the index
//! partition that lists the customer's sessions. The second hash identifies the item. The sequence
//! number distinguishes several removals of one key.
//!
//! A name contains hashes for two reasons. A key can be longer than an object name may be. It can
//! also contain ids of customers, which an operator who lists the names should not see.

use item_model::prelude::*;
use serde::Deserialize;

use crate::cart;
use crate::customer::{self, Customer};
use crate::entity::AnyEntity;
use crate::expression::Condition;
use crate::id::CustomerId;
use crate::instant::Instant;
use crate::item::{DecodeError, EncodeError, FromItem as _, Item, Stored};
use crate::key::{Key, KeyError, PartitionKey, hash};
use crate::pattern::Consistency;
use crate::request::{Get, Guarded, Single, Write};
use crate::session;

#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The item is not an item of this schema.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Items of this kind are never archived.
    #[error("items of this kind are never archived, so none can be restored")]
    NotArchived,
}

/// Returns the name prefix of all objects that are archived under a partition.
#[must_use]
pub fn collection(partition: &PartitionKey) -> String {
    format!("expired/{}/", hash(partition.as_str(), ""))
}

/// Returns the name prefix of an expired item's objects. Each expiration of an item with this key
/// adds one object.
pub fn objects(item: &AnyEntity, key: &Key) -> Result<String, KeyError> {
    match item {
        AnyEntity::Session(session) => Ok(under(&session::partition(&session.customer_id)?, key)),
        _ => Ok(under(&key.pk, key)),
    }
}

/// Returns the name prefix of a key's objects. `partition` is the key's own partition, or for a
/// session the index partition of the customer's sessions.
#[must_use]
pub fn under(partition: &PartitionKey, key: &Key) -> String {
    format!("{}{}-", collection(partition), hash(key.pk.as_str(), key.sk.as_str()))
}

/// Returns the name prefixes of the objects that an erasure deletes: the customer's sessions, then
/// the carts. Archived orders stay, because bookkeeping needs them.
pub fn belongings(customer: &CustomerId) -> Result<[String; 2], KeyError> {
    Ok([collection(&session::partition(customer)?), collection(&cart::key(customer)?.pk)])
}

/// The creation time of a customer's current profile. The stream's consumer archives a session or a
/// cart only if the session or cart is newer than the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Since {
    pub created_at: Instant,
}

view!(Since of Customer);

patterns! {
    OWNER {
        id: "archive.owner",
        purpose: "Read the creation time of a profile before a session or cart of the customer is \
            archived or removed",
        request: GetItem,
        key: "PK = CUSTOMER#<id>, SK = PROFILE",
        returns: "the profile",
        consistency: Consistency::Strong("no item of an erased customer may be archived"),
        callers: "system",
    }
    RESTORE {
        id: "archive.restore",
        purpose: "Restore an archived item",
        request: PutItem,
        key: "PK = SESSION#<id>, CART#<customer>, ORDER#<id> or CUSTOMER#<id>, SK as it was",
        requires: "no item has this key",
        callers: "system",
    }
}

/// Reads the creation time of a customer's profile with strong consistency. An erased customer has
/// no profile.
pub fn owner(customer: &CustomerId) -> Result<Get<Since>, KeyError> {
    Ok(Get::new(&OWNER, customer::key(customer)?))
}

/// Returns an archived item in the form in which it is restored at the instant `at`.
///
/// An order and its parts lose their time to live. A session or a cart must have a time to live, so
/// it expires at `until`.
///
/// The restored item keeps its `born`. The item's removal used the next `rev`, which the search
/// index may have stored. So the `rev` of the restored item grows by two. Its `version` grows by
/// one, so that clients see a new version.
pub fn restored(item: Item, at: Instant, until: Instant) -> Result<AnyEntity, RestoreError> {
    let mut entity = AnyEntity::from_item(item)?;
    let meta = match &mut entity {
        AnyEntity::Session(Stored { meta, data }) => {
            data.expires_at = until;
            meta
        }
        AnyEntity::Cart(Stored { meta, data }) => {
            data.expires_at = until;
            meta
        }
        AnyEntity::Order(Stored { meta, data }) => {
            data.expires_at = None;
            meta
        }
        AnyEntity::OrderLine(Stored { meta, data }) => {
            data.expires_at = None;
            meta
        }
        AnyEntity::OrderStatusEvent(Stored { meta, data }) => {
            data.expires_at = None;
            meta
        }
        AnyEntity::Payment(Stored { meta, data }) => {
            data.expires_at = None;
            meta
        }
        AnyEntity::PaymentOperation(Stored { meta, data }) => {
            data.expires_at = None;
            meta
        }
        AnyEntity::CustomerOrder(Stored { meta, data }) => {
            data.expires_at = None;
            meta
        }
        _ => return Err(RestoreError::NotArchived),
    };
    meta.rev = meta.rev.saturating_add(2);
    meta.version = meta.version.saturating_add(1);
    meta.updated_at = at;
    Ok(entity)
}

/// Writes a restored item, unless another item has the key by now.
pub fn restore(entity: &AnyEntity) -> Result<Single<()>, EncodeError> {
    Ok(Single::new(
        &RESTORE,
        Guarded { write: Write::Put { item: entity.to_item()? }, condition: Some(Condition::NotExists) },
    ))
}
