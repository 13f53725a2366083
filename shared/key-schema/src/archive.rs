//! Items brought back after they expired, from what the stream archived of them.

use crate::entity::AnyEntity;
use crate::expression::Condition;
use crate::instant::Instant;
use crate::item::{DecodeError, EncodeError, FromItem as _, Item, Stored};
use crate::pattern::{Consistency, patterns};
use crate::request::{Guarded, Single, Write};

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

patterns! {
    RESTORE = "archive.restore": PutItem, "PK = SESSION#<id>, CART#<customer>, ORDER#<id> or CUSTOMER#<id>, SK as it was" => "does not exist", Consistency::Write, "system", "Bring an expired item back", ["ops"];
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
