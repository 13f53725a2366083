//! What lies in the bucket beside the table: pictures, and texts that are too large for an item.
//!
//! A client uploads by a URL that is good for one object under `pending/`, which the bucket forgets after a day. What is put into use is copied to a
//! name under `kept/`, which nobody can upload to and the bucket never forgets, and is then referenced by an item: by the list of a product's pictures
//! ([`crate::picture`]) or by its content ([`crate::product::ProductContent`]).
//!
//! # Why nothing referenced is deleted, and nothing else stays
//!
//! Bucket and table have no common transaction. So the table says first what may become of the bucket: **an object under `kept/` is referenced, or there is
//! an [`UnsettledObject`] for it, or both.**
//!
//! 1. Before an object is copied it is noted as unsettled ([`note`]). The transaction that references it takes that note away, and is refused without
//!    it ([`settled`]).
//! 2. The transaction that ends a reference puts a note in its place ([`unsettled`]).
//! 3. Only the janitor deletes objects. It dooms the note ([`doom`]), which from then on refuses 1 and 2; then it reads strongly whether the object is
//!    referenced ([`references`]); if it is not, nobody can reference it any more, and it is deleted; at last the doomed note is taken away
//!    ([`forget`]), and the object may come again.
//!
//! So what is referenced was copied after a note that nobody has doomed, and no deletion came in between, however slow who copied it was. That what is not
//! referenced goes takes time as well: a copy that is asked for before the object is deleted, and done after it, would stay. Therefore the janitor takes
//! only what has been noted for longer than anybody can still be copying, and leaves as much time to another janitor.
//!
//! Whoever breaks off between two of these steps leaves a note, which the janitor finds through a sparse index. A note of an object that is
//! referenced, as one of two who put the same upload into use at once may leave, costs the janitor a look.

use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use crate::change::{Change, IndexEntry, entity};
use crate::encoding::join;
use crate::entity::AnyEntity;
use crate::expression::{Condition, number, value};
use crate::id::{MediaId, ProductId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta, Stored};
use crate::key::{Index, IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::pattern::{Consistency, patterns};
use crate::product::{self, segment};
use crate::request::{BatchGet, Guarded, Query, Range, Single};
use crate::shard::Shards;

/// The shards of the list of notes.
pub const UNSETTLED_SHARDS: Shards = Shards(4);

/// What an upload is for; one for the one is none for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    /// A picture of a product.
    Picture,
    /// A product's long description.
    Content,
}

impl MediaKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Picture => "picture",
            Self::Content => "content",
        }
    }

    /// What an upload is called in the bucket until it is forgotten.
    #[must_use]
    pub fn pending(self, product: &ProductId, id: &MediaId) -> String {
        self.object("pending", product, id)
    }

    /// What an object is called that is in use. Of letters, digits and `-_~/` alone, whatever the ids have: so it cannot be another's, and a URL
    /// has it as it is.
    #[must_use]
    pub fn kept(self, product: &ProductId, id: &MediaId) -> String {
        self.object("kept", product, id)
    }

    fn object(self, place: &str, product: &ProductId, id: &MediaId) -> String {
        let names = segment::encode(&[product.to_string(), id.to_string()]);
        format!("{place}/{}/{names}", self.name())
    }
}

/// An object that an item references.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaObject {
    /// The upload that it was.
    pub id: MediaId,
    /// Its media type.
    pub content_type: String,
    /// How many bytes it has.
    pub bytes: u64,
}

entity! {
    /// A note that an object may not be referenced: not yet, or not any more.
    UnsettledObject = "UnsettledObject" {
        keyed {
            /// Of which product.
            product_id: ProductId,
            /// The upload that the object was.
            id: MediaId,
            /// What for.
            kind: MediaKind,
            /// Since when; part of the key of the janitor's list.
            since: Instant,
            /// Whether the janitor is about to delete the object.
            #[serde(skip_serializing_if = "std::ops::Not::not", default)]
            doomed: bool,
        }
        free {}
    }
}

impl UnsettledObject {
    /// A note from now on.
    #[must_use]
    pub const fn new(kind: MediaKind, product_id: ProductId, id: MediaId, since: Instant) -> Self {
        Self { product_id, id, kind, since, doomed: false }
    }

    /// What the object is called.
    #[must_use]
    pub fn name(&self) -> String {
        self.kind.kept(&self.product_id, &self.id)
    }
}

impl Entity for UnsettledObject {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.product_id, &self.id)
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        Ok(vec![UnsettledPlace { since: self.since, product_id: &self.product_id, id: &self.id }.key()?])
    }
}

fn key(product: &ProductId, id: &MediaId) -> Result<Key, KeyError> {
    Ok(Key { pk: product::partition(product)?, sk: SortKey::of("OBJECT", &[id])? })
}

/// A note's place in the janitor's list.
#[derive(Debug, Clone, Copy)]
struct UnsettledPlace<'a> {
    since: Instant,
    product_id: &'a ProductId,
    id: &'a MediaId,
}

impl UnsettledPlace<'_> {
    fn key(&self) -> Result<IndexKey, KeyError> {
        let sort = SortKey::new(join(&self.since.to_string(), &[self.product_id, self.id]))?;
        Ok(IndexKey { index: Index::Gsi1, partition: shard(UNSETTLED_SHARDS.of(self.id.as_str()))?, sort })
    }
}

impl IndexEntry for UnsettledPlace<'_> {
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

/// A note as the janitor's list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsettled {
    /// Of which product.
    pub product_id: ProductId,
    /// The upload that the object was.
    pub id: MediaId,
}

crate::item::view!(Unsettled of UnsettledObject);

patterns! {
    NOTE = "media.note": PutItem, "PK = PRODUCT#<product>, SK = OBJECT#<id>" => "not doomed", Consistency::Write, "staff", "Note an object that is about to be copied and referenced", ["PUT /v1/products/{id}/pictures/{picture}", "PUT /v1/products/{id}/content/uploads/{upload}"];
    UNSETTLED = "media.unsettled": ShardedQuery on Gsi1, "GSI1PK = UNSETTLED#<shard>, GSI1SK up to <since>" => "notes, the oldest first", Consistency::Eventual, "system", "Find the objects that may not be referenced", ["janitor"];
    DOOM = "media.doom": UpdateItem, "PK = PRODUCT#<product>, SK = OBJECT#<id>" => "noted before <since>", Consistency::Write, "system", "Keep an object from being referenced", ["janitor"];
    REFERENCES = "media.references": BatchGetItem, "PK = PRODUCT#<product>, SK = MEDIA and CONTENT" => "what the product references", Consistency::Strong("what is referenced must not be deleted"), "system", "See whether an object is referenced", ["janitor"];
    FORGET = "media.forget": DeleteItem, "PK = PRODUCT#<product>, SK = OBJECT#<id>" => "doomed, and as it was left", Consistency::Write, "system", "Forget an object that was deleted, or is referenced", ["janitor"];
}

/// Notes an object before it is copied; again if it is noted. Refused while the janitor is about to delete it.
///
/// # Errors
/// [`EncodeError`].
pub fn note(object: &Stored<UnsettledObject>) -> Result<Single<()>, EncodeError> {
    Ok(Single::new(&NOTE, unsettled(object)?))
}

/// The note that a transaction puts which ends a reference.
pub(crate) fn unsettled(object: &Stored<UnsettledObject>) -> Result<Guarded, EncodeError> {
    Guarded::put(object, Condition::Lacks("doomed"))
}

/// Takes away the note of an object in the transaction that references it: the very note that was written before it was copied, so that nobody has deleted it
/// since.
pub(crate) fn settled(note: &Stored<UnsettledObject>) -> Result<Guarded, EncodeError> {
    let same = Condition::Is("born", value(&note.meta.born)?).and(Condition::Lacks("doomed"));
    Ok(Guarded::delete(note.key()?, same))
}

/// The objects that have been noted since `before` or longer, the oldest note first.
///
/// # Errors
/// [`KeyError`].
pub fn unsettled_since(before: Instant) -> Result<Query<Unsettled>, KeyError> {
    let shards = UNSETTLED_SHARDS.all().map(shard).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&UNSETTLED, shards, Range::Between(Instant::MIN.to_string(), format!("{before}$"))))
}

/// Dooms an object that has been noted since `before` or longer; gives its note back. One that is doomed can be doomed again as much later:
/// whoever did it first has broken off.
///
/// # Errors
/// [`EncodeError`].
pub fn doom(object: &Unsettled, before: Instant, now: Instant) -> Result<Single<Stored<UnsettledObject>>, EncodeError> {
    let (product_id, id) = (&object.product_id, &object.id);
    let place = UnsettledPlace { since: now, product_id, id };
    let change = Change::<UnsettledObject>::visible(now).enter(&place)?.set("doomed", true)?;
    let old = Condition::Below("since", value(before.plus_millis(1))?);
    Ok(Single::new(&DOOM, Guarded::update(key(product_id, id)?, change, Condition::Exists.and(old))))
}

/// What may reference an object: the product's pictures, then its content.
///
/// # Errors
/// [`KeyError`].
pub fn references(object: &UnsettledObject) -> Result<BatchGet<AnyEntity>, KeyError> {
    let product = &object.product_id;
    Ok(BatchGet::new(&REFERENCES, vec![product::pictures_key(product)?, product::content_key(product)?]))
}

/// Whether an item references an object.
#[must_use]
pub fn is_reference(item: &AnyEntity, object: &UnsettledObject) -> bool {
    match item {
        AnyEntity::ProductPictures(list) => list.find(&object.id).is_some(),
        AnyEntity::ProductContent(content) => content.file.as_ref().is_some_and(|file| file.id == object.id),
        _ => false,
    }
}

/// Takes a doomed note away that is as [`doom`] left it.
///
/// # Errors
/// [`KeyError`].
pub fn forget(object: &Stored<UnsettledObject>) -> Result<Single<()>, KeyError> {
    let same = Condition::Has("doomed").and(Condition::Is("rev", number(object.meta.rev)));
    Ok(Single::new(&FORGET, Guarded::delete(key(&object.product_id, &object.id)?, same)))
}
