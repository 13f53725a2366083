//! Objects in the media bucket: pictures, and texts that are too large for an item.
//!
//! A client uploads an object to `pending/`, with a URL that is valid only for this object. The
//! bucket deletes the object after a day. To use an upload, a Lambda function copies it to a name
//! under `kept/`. Clients cannot upload to `kept/`, and no lifecycle rule deletes from it. The
//! smaller copies of a picture ([`PictureSize`]) are beside it, and belong to it. Then an
//! item references the object: the list of a product's pictures ([`crate::picture`]) or the
//! product's content ([`crate::product::ProductContent`]).
//!
//! # How the janitor deletes every unreferenced object and no referenced object
//!
//! No transaction can include both the bucket and the table. Therefore the table records every
//! possible change of the bucket in advance: **an object under `kept/` is referenced, or it has an
//! [`UnsettledObject`], or both.**
//!
//! 1. Before a function copies an object, it writes the object's [`UnsettledObject`] ([`note`]).
//!    The transaction that references the object deletes this item. DynamoDB refuses the
//!    transaction if the item is missing ([`settled`]).
//! 2. The transaction that ends a reference writes an [`UnsettledObject`] again ([`unsettled`]).
//! 3. Only the janitor deletes objects. First it marks the [`UnsettledObject`] as *doomed*
//!    ([`doom`]). From then on, DynamoDB refuses steps 1 and 2. Then the janitor reads with strong
//!    consistency whether the object is referenced ([`references`]). If it is not referenced, no
//!    transaction can reference it any more, and the janitor deletes the object. In both cases, the
//!    janitor finally deletes the doomed item ([`forget`]), and the object may be copied again.
//!
//! So every referenced object had an [`UnsettledObject`] from before its copy until it was
//! referenced. This item was never doomed. So the janitor did not delete the object in that time,
//! however slow the copy was. If a copy starts before a deletion and ends after it, the copied
//! object has no [`UnsettledObject`] and would stay for ever. Therefore the janitor selects only
//! items that are older than any copy can last. It also waits that long before it takes over an
//! item that another janitor has doomed.
//!
//! A function that fails between two of these steps leaves an [`UnsettledObject`]. The janitor
//! finds this item through a sparse index. A referenced object may still have such an item, for
//! example when two requests use the same upload at the same time. It costs the janitor one read.

use crate::index::GSI1;
use item_model::prelude::*;
use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use crate::change::{Change, IndexEntry};
use crate::encoding::join;
use crate::expression::{Condition, number, value};
use crate::id::{MediaId, ProductId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta, Stored};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::picture::{PictureSize, ProductPictures};
use crate::product::{self, ProductContent, segment};
use crate::request::{BatchGet, Guarded, Query, Range, Single};
use crate::shard::Shards;

/// The shards of the list of [`UnsettledObject`] items.
pub const UNSETTLED_SHARDS: Shards = Shards(4);

/// The purpose of an upload. An upload for one purpose cannot be used for the other purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    Picture,
    Content,
}

impl MediaKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Picture => "picture",
            Self::Content => "content",
        }
    }

    /// Returns the object's name under `pending/`. The bucket deletes the object after a day.
    #[must_use]
    pub fn pending(self, product: &ProductId, id: &MediaId) -> String {
        self.object("pending", product, id)
    }

    /// Returns the object's name under `kept/`. The ids in the name are encoded, so two objects
    /// never share a name. It has only letters, digits and `-_~/`, so a URL can contain it without
    /// escaping.
    #[must_use]
    pub fn kept(self, product: &ProductId, id: &MediaId) -> String {
        self.object("kept", product, id)
    }

    /// Returns the name of a picture's smaller copy under `kept/`.
    #[must_use]
    pub fn copy(self, product: &ProductId, id: &MediaId, size: PictureSize) -> String {
        let names = segment::encode(&[product.to_string(), id.to_string(), size.name().to_owned()]);
        format!("kept/{}/{names}", self.name())
    }

    fn object(self, place: &str, product: &ProductId, id: &MediaId) -> String {
        let names = segment::encode(&[product.to_string(), id.to_string()]);
        format!("{place}/{}/{names}", self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaObject {
    /// The id of the upload from which the object was copied.
    pub id: MediaId,
    pub content_type: String,
    pub bytes: u64,
}

entity! {
    /// The record of an object that may be unreferenced: not referenced yet, or not any more.
    UnsettledObject = "UnsettledObject" {
        fixed {
            product_id: ProductId,
            /// The id of the upload from which the object was copied.
            id: MediaId,
            kind: MediaKind,
            /// When the record was written or doomed. It is part of the index key in the janitor's
            /// list.
            since: Instant,
            /// Whether the janitor deletes the object unless an item references it.
            #[serde(skip_serializing_if = "std::ops::Not::not", default)]
            doomed: bool,
        }
        mutable {}
    }
}

impl UnsettledObject {
    /// Creates the record of an object, written at `since`.
    #[must_use]
    pub const fn new(kind: MediaKind, product_id: ProductId, id: MediaId, since: Instant) -> Self {
        Self { product_id, id, kind, since, doomed: false }
    }

    /// Returns the names of the object and of the smaller copies that a picture may have.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let sizes: &[PictureSize] = if self.kind == MediaKind::Picture { &PictureSize::ALL } else { &[] };
        let copies = sizes.iter().map(|size| self.kind.copy(&self.product_id, &self.id, *size));
        std::iter::once(self.kind.kept(&self.product_id, &self.id)).chain(copies)
    }
}

impl Entity for UnsettledObject {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.product_id, &self.id)
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        Ok(vec![UnsettledIndexKey { since: self.since, product_id: &self.product_id, id: &self.id }.key()?])
    }
}

fn key(product: &ProductId, id: &MediaId) -> Result<Key, KeyError> {
    Ok(Key { pk: product::partition(product)?, sk: SortKey::of("OBJECT", &[id])? })
}

#[derive(Debug, Clone, Copy)]
struct UnsettledIndexKey<'a> {
    since: Instant,
    product_id: &'a ProductId,
    id: &'a MediaId,
}

impl UnsettledIndexKey<'_> {
    fn key(&self) -> Result<IndexKey, KeyError> {
        let sort = SortKey::new(join(&self.since.to_string(), &[self.product_id, self.id]))?;
        Ok(IndexKey { index: GSI1, partition: shard(UNSETTLED_SHARDS.of(self.id.as_str()))?, sort })
    }
}

impl IndexEntry for UnsettledIndexKey<'_> {
    type Entity = UnsettledObject;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        Ok(vec![("since", value(self.since)?)])
    }
}

fn shard(shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("UNSETTLED", &[&shard])
}

/// An [`UnsettledObject`] as the janitor's list returns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsettled {
    pub product_id: ProductId,
    /// The id of the upload from which the object was copied.
    pub id: MediaId,
}

view!(Unsettled of UnsettledObject);

patterns! {
    NOTE {
        id: "media.note",
        purpose: "Note an object before it is copied and referenced",
        request: PutItem,
        key: "PK = PRODUCT#<product>, SK = OBJECT#<id>",
        requires: "the object is not doomed",
        callers: "staff",
    }
    UNSETTLED {
        id: "media.unsettled",
        purpose: "Find the objects that may be unreferenced",
        request: ShardedQuery on GSI1,
        key: "GSI1PK = UNSETTLED#<shard>, GSI1SK up to <since>",
        returns: "items, oldest first",
        consistency: Consistency::Eventual,
        callers: "system",
    }
    DOOM {
        id: "media.doom",
        purpose: "Prevent new references to an object",
        request: UpdateItem,
        key: "PK = PRODUCT#<product>, SK = OBJECT#<id>",
        requires: "the `UnsettledObject` is from <since> or earlier",
        callers: "system",
    }
    REFERENCES {
        id: "media.references",
        purpose: "Check whether an object is referenced",
        request: BatchGetItem,
        key: "PK = PRODUCT#<product>, SK = MEDIA and CONTENT",
        returns: "the product's pictures and content",
        consistency: Consistency::Strong("a referenced object must not be deleted"),
        callers: "system",
    }
    FORGET {
        id: "media.forget",
        purpose: "Remove the doomed `UnsettledObject` after its object was deleted or found to be referenced",
        request: DeleteItem,
        key: "PK = PRODUCT#<product>, SK = OBJECT#<id>",
        requires: "the `UnsettledObject` is doomed and unchanged",
        callers: "system",
    }
}

/// Writes the [`UnsettledObject`] of an object before the object is copied. An existing item is
/// replaced. DynamoDB refuses the write while the existing item is doomed.
pub fn note(object: &Stored<UnsettledObject>) -> Result<Single<()>, EncodeError> {
    Ok(Single::new(&NOTE, unsettled(object)?))
}

/// Returns the action that writes an [`UnsettledObject`], for the transaction that ends a
/// reference.
pub(crate) fn unsettled(object: &Stored<UnsettledObject>) -> Result<Guarded, EncodeError> {
    Guarded::put(object, Condition::Lacks("doomed"))
}

/// Returns the action that deletes an object's [`UnsettledObject`], for the transaction that
/// references the object. The condition is that it is still the item that was written before the
/// copy. Then the janitor has not deleted the object since the copy.
pub(crate) fn settled(note: &Stored<UnsettledObject>) -> Result<Guarded, EncodeError> {
    let same = Condition::Is("born", value(&note.meta.born)?).and(Condition::Lacks("doomed"));
    Ok(Guarded::delete(note.key()?, same))
}

/// Lists the [`UnsettledObject`] items with a `since` of `before` or earlier, the oldest first.
pub fn unsettled_since(before: Instant) -> Result<Query<Unsettled>, KeyError> {
    let shards = UNSETTLED_SHARDS.all().map(shard).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&UNSETTLED, shards, Range::Between(Instant::MIN.to_string(), format!("{before}$"))))
}

/// Dooms an [`UnsettledObject`] with a `since` of `before` or earlier, and returns it. If another
/// janitor doomed it at `before` or earlier, that janitor must have failed, and the item is doomed
/// again.
pub fn doom(object: &Unsettled, before: Instant, now: Instant) -> Result<Single<Stored<UnsettledObject>>, EncodeError> {
    let (product_id, id) = (&object.product_id, &object.id);
    let index_key = UnsettledIndexKey { since: now, product_id, id };
    let change = Change::<UnsettledObject>::visible(now).enter(&index_key)?.set("doomed", true)?;
    let old = Condition::Below("since", value(before.plus_millis(1))?);
    Ok(Single::new(&DOOM, Guarded::update(key(product_id, id)?, change, Condition::Exists.and(old))))
}

one_of! {
    pub enum Reference { ProductContent ProductPictures }
}

/// Reads the two items that may reference an object: the product's pictures, then its content.
pub fn references(object: &UnsettledObject) -> Result<BatchGet<Reference>, KeyError> {
    let product = &object.product_id;
    Ok(BatchGet::new(&REFERENCES, vec![product::pictures_key(product)?, product::content_key(product)?]))
}

#[must_use]
pub fn is_reference(item: &Reference, object: &UnsettledObject) -> bool {
    match item {
        Reference::ProductPictures(list) => list.find(&object.id).is_some(),
        Reference::ProductContent(content) => content.file.as_ref().is_some_and(|file| file.id == object.id),
    }
}

/// Deletes a doomed [`UnsettledObject`] if it is unchanged since [`doom`].
pub fn forget(object: &Stored<UnsettledObject>) -> Result<Single<()>, KeyError> {
    let same = Condition::Has("doomed").and(Condition::Is("rev", number(object.meta.rev)));
    Ok(Single::new(&FORGET, Guarded::delete(key(&object.product_id, &object.id)?, same)))
}
