//! The archive of expired items: how its objects are named, whose they are, and how items are brought back.
//!
//! ```text
//! expired/<hash of a partition>/<hash of PK and SK>-<sequence number>.json
//! ```
//!
//! The first part finds what belongs together: an order's head, lines and history by their own partition, and so a customer's carts; a customer's sessions, whose
//! partitions are their own, by that of the index that lists them. The second part finds an item, the last tells the removals of one key apart.
//! Hashes, because a key is longer than a name may be, and may hold what an operator's list of names should not show.

use serde::Deserialize;

use crate::cart;
use crate::customer::{self, Customer};
use crate::entity::AnyEntity;
use crate::expression::Condition;
use crate::id::CustomerId;
use crate::instant::Instant;
use crate::item::{DecodeError, EncodeError, FromItem as _, Item, Stored};
use crate::key::{Key, KeyError, PartitionKey, hash};
use crate::pattern::{Consistency, patterns};
use crate::request::{Get, Guarded, Single, Write};
use crate::session;

/// An archived item that cannot be brought back.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// It is not an item of ours.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Its kind is never archived.
    #[error("an item of this kind does not expire, so it cannot be restored")]
    NotArchived,
}

/// What the names of all objects begin with that are archived under a partition.
#[must_use]
pub fn collection(partition: &PartitionKey) -> String {
    format!("expired/{}/", hash(partition.as_str(), ""))
}

/// What the names of all objects of an expired item begin with: one for each time that its key expired.
///
/// # Errors
/// [`KeyError`] when it is a session whose customer's id is too long for a key.
pub fn objects(item: &AnyEntity, key: &Key) -> Result<String, KeyError> {
    match item {
        AnyEntity::Session(session) => Ok(under(&session::partition(&session.customer_id)?, key)),
        _ => Ok(under(&key.pk, key)),
    }
}

/// The same of a key that is archived under this partition: its own, but for a session's.
#[must_use]
pub fn under(partition: &PartitionKey, key: &Key) -> String {
    format!("{}{}-", collection(partition), hash(key.pk.as_str(), key.sk.as_str()))
}

/// What the names of all objects begin with that go with a customer who is erased: those of sessions, then of carts. Orders are the books.
///
/// # Errors
/// [`KeyError`].
pub fn belongings(customer: &CustomerId) -> Result<[String; 2], KeyError> {
    Ok([collection(&session::partition(customer)?), collection(&cart::key(customer)?.pk)])
}

/// Since when there is a customer: what is archived must have begun under the profile that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Since {
    /// When the profile was created.
    pub created_at: Instant,
}

crate::item::view!(Since of Customer);

patterns! {
    OWNER = "archive.owner": GetItem, "PK = CUSTOMER#<id>, SK = PROFILE" => "the profile", Consistency::Strong("of who was erased nothing more is archived"), "system", "See whether somebody's expired session or cart may be archived, and what of an erased customer is not that of one who came back", ["stream", "janitor"];
    RESTORE = "archive.restore": PutItem, "PK = SESSION#<id>, CART#<customer>, ORDER#<id> or CUSTOMER#<id>, SK as it was" => "does not exist", Consistency::Write, "system", "Bring an expired item back", ["ops"];
}

/// Reads since when there is a customer, strongly: whoever is erased has no profile from then on.
///
/// # Errors
/// [`KeyError`].
pub fn owner(customer: &CustomerId) -> Result<Get<Since>, KeyError> {
    Ok(Get::new(&OWNER, customer::key(customer)?))
}

/// The item as it lives on when it is restored `at` an instant: an order and its parts without a time to live, a session or a cart, which
/// must have one, `until` another.
///
/// It is the same incarnation, and what happened to it since it was archived counts: the removal took the `rev` after the item's own (the
/// search index knows it by that), so it goes on with the one after; and people who remember it see a new version.
///
/// # Errors
/// [`RestoreError`].
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

/// Writes a restored item where there is none: whoever used the key since then keeps it.
///
/// # Errors
/// [`EncodeError`].
pub fn restore(entity: &AnyEntity) -> Result<Single<()>, EncodeError> {
    Ok(Single::new(
        &RESTORE,
        Guarded { write: Write::Put { item: entity.to_item()? }, condition: Some(Condition::NotExists) },
    ))
}
