//! The pictures of a product: one list, in the order in which the pictures were added.
//!
//! The list is one item with a bounded size, because readers read it as a whole. Every change is
//! conditional on the `rev` that was read, so the bound holds under concurrent writes. A change of
//! the first picture also writes the picture's id to the product ([`Product::thumbnail`]), because
//! lists of products show it. The picture files are in a bucket ([`crate::media`]). A retired
//! product keeps its pictures, as it keeps its reviews.

use std::str::FromStr;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::expression::{Condition, number};
use crate::id::{MediaId, ProductId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError};
use crate::media::{self, MediaObject, UnsettledObject};
use crate::pattern::Consistency;
use crate::product::{self, Product, THUMBNAIL};
use crate::request::{BatchGet, Guarded, Single, Transaction};

pub const MAX_PICTURES: usize = 20;

/// A smaller copy of a picture that a page can show instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PictureSize {
    Small,
    Medium,
    Large,
}

impl PictureSize {
    pub const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Large];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }

    /// Returns the length of the copy's longer side in pixels.
    #[must_use]
    pub const fn pixels(self) -> u32 {
        match self {
            Self::Small => 320,
            Self::Medium => 800,
            Self::Large => 1600,
        }
    }
}

/// An error for a text that names no size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be small, medium or large")]
pub struct UnknownSize;

impl FromStr for PictureSize {
    type Err = UnknownSize;

    fn from_str(text: &str) -> Result<Self, UnknownSize> {
        Self::ALL.into_iter().find(|size| size.name() == text).ok_or(UnknownSize)
    }
}

/// The dimensions of a picture in pixels, and its smaller copies. A picture has no copy of a size that
/// it does not exceed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    pub width: u32,
    pub height: u32,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub copies: Vec<PictureCopy>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PictureCopy {
    pub size: PictureSize,
    pub width: u32,
    pub height: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    #[serde(flatten)]
    pub object: MediaObject,
    /// The alternative text, for readers who cannot see the picture.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub alt: Option<String>,
    /// Absent if the picture was not decoded, such as one in AVIF.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shape: Option<Shape>,
    pub added_at: Instant,
}

impl Picture {
    #[must_use]
    pub fn has(&self, size: PictureSize) -> bool {
        self.shape.iter().flat_map(|shape| &shape.copies).any(|copy| copy.size == size)
    }
}

entity! {
    ProductPictures = "ProductPictures" {
        fixed {
            product_id: ProductId,
            /// The pictures, at most [`MAX_PICTURES`], in the order in which they were added.
            pictures: Vec<Picture>,
        }
        mutable {}
    }
}

impl ProductPictures {
    #[must_use]
    pub fn find(&self, id: &MediaId) -> Option<&Picture> {
        self.pictures.iter().find(|picture| picture.object.id == *id)
    }
}

impl Entity for ProductPictures {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        product::pictures_key(&self.product_id)
    }
}

/// A refusal names the action whose condition failed. The variant says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureAction {
    /// The product is missing. When a picture is added, the product may also be retired.
    Product,
    /// The list has changed since it was read.
    List,
    /// The object's [`UnsettledObject`] is missing or doomed.
    Object,
}

patterns! {
    LIST {
        id: "pictures.list",
        purpose: "List the pictures of a product",
        request: BatchGetItem,
        key: "PK = PRODUCT#<product>, SK = PRODUCT and MEDIA",
        returns: "the product, which may be retired, and its pictures",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    PREPARE {
        id: "pictures.prepare",
        purpose: "Read a product's pictures before they change",
        request: BatchGetItem,
        key: "PK = PRODUCT#<product>, SK = PRODUCT and MEDIA",
        returns: "the product, which may be retired, and its pictures",
        consistency: Consistency::Strong("the change is computed from them and conditional on them"),
        callers: "staff",
    }
    ADD {
        id: "pictures.add",
        purpose: "Add a picture that was uploaded",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<product>, SK = MEDIA and OBJECT#<id>; SK = PRODUCT (check, or update with \
            the first picture)",
        requires: "the list is unchanged; the object has an `UnsettledObject`; the product is in the catalogue",
        callers: "staff",
    }
    DESCRIBE {
        id: "pictures.describe",
        purpose: "Change a picture's alternative text",
        request: UpdateItem,
        key: "PK = PRODUCT#<product>, SK = MEDIA",
        requires: "the list is unchanged",
        callers: "staff",
    }
    REMOVE {
        id: "pictures.remove",
        purpose: "Remove a picture, and write an `UnsettledObject`",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<product>, SK = MEDIA and OBJECT#<id>; SK = PRODUCT if the first picture \
            changes",
        requires: "the list is unchanged; the object is not doomed; the product exists",
        callers: "staff",
    }
}

one_of! {
    pub enum PicturesItem { Product ProductPictures }
}

/// Reads the product, retired or not, then its pictures.
pub fn list(product: &ProductId) -> Result<BatchGet<PicturesItem>, KeyError> {
    Ok(BatchGet::new(&LIST, vec![product::key(product)?, product::pictures_key(product)?]))
}

/// Reads the same items as [`list`], with strong consistency.
pub fn prepare(product: &ProductId) -> Result<BatchGet<PicturesItem>, KeyError> {
    Ok(BatchGet::new(&PREPARE, vec![product::key(product)?, product::pictures_key(product)?]))
}

/// Adds a picture, after [`media::note`] and the copy of its object. `known` is the list that was
/// read, if there is one. The list must have room and must not contain the picture.
pub fn add(
    picture: &Picture,
    note: &Stored<UnsettledObject>,
    known: Option<&Stored<ProductPictures>>,
    at: Instant,
) -> Result<Transaction<PictureAction>, EncodeError> {
    let product = &note.product_id;
    let list = match known {
        Some(known) => {
            let pictures: Vec<&Picture> = known.pictures.iter().chain([picture]).collect();
            changed(known, &pictures, at)?
        }
        None => {
            let list = ProductPictures { product_id: product.clone(), pictures: vec![picture.clone()] };
            Guarded::put(&Stored::new(list, note.meta.born.clone(), at), Condition::NotExists)?
        }
    };
    let is_first = known.is_none_or(|known| known.pictures.is_empty());
    let on_product = if is_first {
        Guarded::update(product::key(product)?, thumbnail(Some(picture))?, product::in_catalogue())
    } else {
        Guarded::check(product::key(product)?, product::in_catalogue())
    };
    Ok(Transaction::new(&ADD)
        .action(PictureAction::Product, on_product)
        .action(PictureAction::List, list)
        .action(PictureAction::Object, media::settled(note)?))
}

/// Changes the alternative text of a picture, which `known` must contain.
pub fn describe(
    known: &Stored<ProductPictures>,
    id: &MediaId,
    alt: Option<&str>,
    at: Instant,
) -> Result<Single<Stored<ProductPictures>>, EncodeError> {
    let mut pictures = known.pictures.clone();
    for picture in pictures.iter_mut().filter(|picture| picture.object.id == *id) {
        picture.alt = alt.map(str::to_owned);
    }
    Ok(Single::new(&DESCRIBE, changed(known, &pictures.iter().collect::<Vec<_>>(), at)?))
}

/// Removes a picture from the list that was read. `object` records that the picture's object is now
/// unreferenced.
pub fn remove(
    known: &Stored<ProductPictures>,
    object: &Stored<UnsettledObject>,
    at: Instant,
) -> Result<Transaction<PictureAction>, EncodeError> {
    let left: Vec<&Picture> = known.pictures.iter().filter(|picture| picture.object.id != object.id).collect();
    let first = left.first().copied();
    let on_product = if first == known.pictures.first() {
        None
    } else {
        Some(Guarded::update(product::key(&known.product_id)?, thumbnail(first)?, Condition::Exists))
    };
    Ok(Transaction::new(&REMOVE)
        .action(PictureAction::List, changed(known, &left, at)?)
        .action(PictureAction::Object, media::unsettled(object)?)
        .optional(PictureAction::Product, on_product))
}

/// Returns the change of a product whose first picture is now `first`.
fn thumbnail(first: Option<&Picture>) -> Result<Change<Product>, EncodeError> {
    Change::<Product>::copied().set(THUMBNAIL, first.map(|picture| &picture.object.id))
}

/// Writes the new list over the list that was read, on the condition that the stored list is
/// unchanged.
fn changed(known: &Stored<ProductPictures>, pictures: &[&Picture], at: Instant) -> Result<Guarded, EncodeError> {
    let change = Change::<ProductPictures>::visible(at).set("pictures", pictures)?;
    Ok(Guarded::update(product::pictures_key(&known.product_id)?, change, Condition::Is("rev", number(known.meta.rev))))
}
