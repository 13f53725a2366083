//! Memberships: a product in further categories, besides its own category.
//!
//! A product and its categories are a many-to-many relation. One item, the list
//! [`ProductCategories`], names the further categories of a product. For each of them, an item
//! [`Membership`] copies the attributes that a category's list shows. A membership has a key in the
//! index of that list, so one Query lists a category's own products and the memberships in it. One
//! transaction changes a membership and the product's [`ProductCategories`], on the condition that
//! the `rev` of the latter is unchanged. So concurrent writes cannot exceed the limit of
//! memberships.
//!
//! # Why a membership eventually has the newest attributes
//!
//! A membership stores the `rev` of the product from which it was copied. The stream's consumer
//! refreshes the membership from the product's image in a record, if that image is newer. A request
//! creates a membership from a product that it has read, on the condition that the product's
//! `version` and first picture are unchanged. So every later visible change appears in the stream
//! after the membership exists, and the consumer finds the membership. The condition is not on
//! `rev`, because copies of stock and ratings also increase `rev`, and no membership shows them.

use crate::index::GSI2;
use std::collections::BTreeSet;

use item_model::prelude::*;
use serde_dynamo::AttributeValue;

use crate::change::{Change, IndexEntry};
use crate::expression::{Condition, number, value};
use crate::id::{Born, MediaId, ProductId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta, Stored};
use crate::key::{IndexKey, Key, KeyError, SortKey};
use crate::money::Money;
use crate::pattern::Consistency;
use crate::product::{self, CategoryIndexKey, CategoryPath, Product, THUMBNAIL};
use crate::request::{BatchGet, Guarded, Query, Range, Single, Transaction};

pub const MAX_MEMBERSHIPS: usize = 20;

entity! {
    /// A product in a further category. Its `version` is the product's version, because the list
    /// shows that version.
    Membership = "Membership" {
        fixed {
            id: ProductId,
            path: CategoryPath,
            /// Whether the product was taken out of the catalogue. No list contains a retired
            /// membership.
            #[serde(skip_serializing_if = "std::ops::Not::not", default)]
            retired: bool,
            /// The `rev` of the product from which this item was copied.
            source_rev: u64,
            /// The id of the product's first picture ([`Product::thumbnail`]).
            #[serde(rename = "reference", skip_serializing_if = "Option::is_none", default)]
            thumbnail: Option<MediaId>,
        }
        mutable by MembershipChanges {
            /// The product's own category.
            category_path: CategoryPath,
            name: String,
            brand: String,
            /// The size of the package, such as `22 LB`.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            package_size: Option<String>,
            price: Money,
        }
    }
}

impl Membership {
    fn of(product: &Stored<Product>, path: CategoryPath) -> Self {
        let Product { id, category_path, retired, thumbnail, name, brand, package_size, price, .. } =
            product.data.clone();
        let source_rev = product.meta.rev;
        Self { id, path, retired, source_rev, thumbnail, category_path, name, brand, package_size, price }
    }
}

impl Entity for Membership {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.id, &self.path)
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        if self.retired {
            return Ok(Vec::new());
        }
        Ok(vec![FurtherIndexKey { path: &self.path, id: &self.id }.category_index_key().key()?])
    }
}

fn key(product: &ProductId, path: &CategoryPath) -> Result<Key, KeyError> {
    Ok(Key { pk: product::partition(product)?, sk: SortKey::new(format!("IN#{}", path.key_text()))? })
}

#[derive(Debug, Clone, Copy)]
struct FurtherIndexKey<'a> {
    path: &'a CategoryPath,
    id: &'a ProductId,
}

impl FurtherIndexKey<'_> {
    const fn category_index_key(&self) -> CategoryIndexKey<'_> {
        CategoryIndexKey { category_path: self.path, id: self.id }
    }
}

impl IndexEntry for FurtherIndexKey<'_> {
    type Entity = Membership;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.category_index_key().key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        // Both fields are parts of the membership's own key and never change, so the entry changes
        // no field.
        Ok(Vec::new())
    }
}

entity! {
    ProductCategories = "ProductCategories" {
        fixed {
            product_id: ProductId,
            /// The further categories, at most [`MAX_MEMBERSHIPS`], in the order of their key text.
            paths: Vec<CategoryPath>,
        }
        mutable {}
    }
}

impl Entity for ProductCategories {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        product::categories_key(&self.product_id)
    }
}

impl ProductCategories {
    /// Returns the first further category at or below `category`. A list shows a product only once:
    /// under its own category or, if the list does not include that category, under the returned
    /// category.
    #[must_use]
    pub fn first_under(&self, category: &CategoryPath) -> Option<&CategoryPath> {
        self.paths.iter().find(|path| path.is_within(category))
    }
}

/// A refusal names the action whose condition failed. The variant says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MembershipAction {
    /// The product has changed since it was read.
    Product,
    /// The list of the product's further categories has changed since it was read.
    List,
    /// The membership to add already exists, or the membership to remove does not exist.
    Member,
}

patterns! {
    PREPARE {
        id: "memberships.prepare",
        purpose: "Read a product before its categories change",
        request: BatchGetItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT and PRODUCT#CATEGORIES",
        returns: "the product and its further categories",
        consistency: Consistency::Strong("the change is computed from them and conditional on them"),
        callers: "staff",
    }
    ADD {
        id: "memberships.add",
        purpose: "Put a product into a further category",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = IN#<path> and PRODUCT#CATEGORIES; SK = PRODUCT (check)",
        requires: "the list of further categories is unchanged; the product is in the catalogue, \
            at the version that was read, with the same first picture",
        callers: "staff",
    }
    REMOVE {
        id: "memberships.remove",
        purpose: "Take a product out of a further category",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = IN#<path> and PRODUCT#CATEGORIES",
        requires: "the list of further categories is unchanged",
        callers: "staff",
    }
    LISTS {
        id: "memberships.lists",
        purpose: "Find the further categories of listed products",
        request: BatchGetItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT#CATEGORIES, for each id",
        returns: "further categories",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    OF_PRODUCT {
        id: "memberships.of-product",
        purpose: "Find the copies of a changed product",
        request: Query,
        key: "PK = PRODUCT#<id>, SK under IN#",
        returns: "the product's memberships",
        consistency: Consistency::Strong("a missed membership would keep an old copy"),
        callers: "system",
    }
    REFRESH {
        id: "memberships.refresh",
        purpose: "Refresh the copy of a changed product",
        request: UpdateItem,
        key: "PK = PRODUCT#<id>, SK = IN#<path>",
        requires: "exists, with a copy of an older rev of the product",
        callers: "system",
    }
}

one_of! {
    pub enum CategorizedItem { Product ProductCategories }
}

/// Reads the product, retired or not, then its further categories.
pub fn prepare(id: &ProductId) -> Result<BatchGet<CategorizedItem>, KeyError> {
    Ok(BatchGet::new(&PREPARE, vec![product::key(id)?, product::categories_key(id)?]))
}

/// Puts a product into a further category. `product` is the product as it was read, and `known` is
/// the list as it was read, if there is one. The list must have room for the category and must not
/// contain it.
pub fn add(
    product: &Stored<Product>,
    path: &CategoryPath,
    known: Option<&Stored<ProductCategories>>,
    born: &Born,
    at: Instant,
) -> Result<Transaction<MembershipAction>, EncodeError> {
    let mut paths = known.map(|known| known.paths.clone()).unwrap_or_default();
    paths.push(path.clone());
    paths.sort_by_cached_key(CategoryPath::key_text);
    let member = member(product, path, born, at);
    Ok(Transaction::new(&ADD)
        .action(MembershipAction::Product, unchanged(product)?)
        .action(MembershipAction::List, list(&product.id, paths, known, born, at)?)
        .action(MembershipAction::Member, Guarded::put(&member, Condition::NotExists)?))
}

/// Takes a product out of a further category, which `known` must contain.
pub fn remove(
    known: &Stored<ProductCategories>,
    path: &CategoryPath,
    at: Instant,
) -> Result<Transaction<MembershipAction>, EncodeError> {
    let id = &known.product_id;
    let paths = known.paths.iter().filter(|known| *known != path).cloned().collect();
    Ok(Transaction::new(&REMOVE)
        .action(MembershipAction::List, list(id, paths, Some(known), &known.meta.born, at)?)
        .action(MembershipAction::Member, Guarded::delete(key(id, path)?, Condition::Exists)))
}

pub(crate) fn unchanged(product: &Stored<Product>) -> Result<Guarded, EncodeError> {
    let same_picture = match &product.thumbnail {
        Some(picture) => Condition::Is(THUMBNAIL, value(picture)?),
        None => Condition::Lacks(THUMBNAIL),
    };
    let same = product::in_catalogue().and(Condition::version(product.meta.version)).and(same_picture);
    Ok(Guarded::check(product::key(&product.id)?, same))
}

/// Takes a product out of some further categories and puts it into other categories. The product
/// may already be in some of the new categories. The caller's transaction must also check that the
/// product is [`unchanged`], or write `product` itself.
pub(crate) fn exchange(
    product: &Stored<Product>,
    known: &Stored<ProductCategories>,
    gone: &BTreeSet<&CategoryPath>,
    new: &BTreeSet<CategoryPath>,
    at: Instant,
) -> Result<Vec<Guarded>, EncodeError> {
    let id = &known.product_id;
    let mut paths: Vec<CategoryPath> = known.paths.iter().filter(|path| !gone.contains(path)).cloned().collect();
    let new: Vec<&CategoryPath> = new.iter().filter(|path| !paths.contains(path)).collect();
    paths.extend(new.iter().copied().cloned());
    paths.sort_by_cached_key(CategoryPath::key_text);
    let mut actions = vec![list(id, paths, Some(known), &known.meta.born, at)?];
    for path in gone {
        actions.push(Guarded::delete(key(id, path)?, Condition::Exists));
    }
    for path in new {
        actions.push(Guarded::put(&member(product, path, &known.meta.born, at), Condition::NotExists)?);
    }
    Ok(actions)
}

fn member(product: &Stored<Product>, path: &CategoryPath, born: &Born, at: Instant) -> Stored<Membership> {
    let mut member = Stored::new(Membership::of(product, path.clone()), born.clone(), at);
    member.meta.version = product.meta.version;
    member
}

/// Writes the new list over the list that was read, on the condition that the stored list is
/// unchanged.
fn list(
    product: &ProductId,
    paths: Vec<CategoryPath>,
    known: Option<&Stored<ProductCategories>>,
    born: &Born,
    at: Instant,
) -> Result<Guarded, EncodeError> {
    match known {
        Some(known) => {
            let change = Change::<ProductCategories>::visible(at).set("paths", paths)?;
            let unchanged = Condition::Is("rev", number(known.meta.rev));
            Ok(Guarded::update(product::categories_key(product)?, change, unchanged))
        }
        None => {
            let list = ProductCategories { product_id: product.clone(), paths };
            Guarded::put(&Stored::new(list, born.clone(), at), Condition::NotExists)
        }
    }
}

pub fn lists<'a>(
    products: impl IntoIterator<Item = &'a ProductId>,
) -> Result<BatchGet<Stored<ProductCategories>>, KeyError> {
    Ok(BatchGet::new(&LISTS, products.into_iter().map(product::categories_key).collect::<Result<_, _>>()?))
}

pub fn of_product(id: &ProductId) -> Result<Query<Stored<Membership>>, KeyError> {
    Ok(Query::new(&OF_PRODUCT, product::partition(id)?, Range::under("IN")).limit(MAX_MEMBERSHIPS))
}

/// Returns whether the change from `old` to `new` is visible in the product's memberships.
#[must_use]
pub fn shows(old: &Stored<Product>, new: &Stored<Product>) -> bool {
    let shown = |product: &Stored<Product>| {
        let mut copy = Membership::of(product, product.category_path.clone());
        copy.source_rev = 0;
        (product.meta.version, copy)
    };
    shown(old) != shown(new)
}

/// Refreshes a membership from its product. DynamoDB refuses the write if the membership is missing
/// or not older than `product`. The membership of a retired product leaves the category's list
/// until the product is revived.
pub fn refresh(product: &Stored<Product>, path: &CategoryPath) -> Result<Single<()>, EncodeError> {
    let rev = product.meta.rev;
    let change = Change::<Membership>::copied()
        .set("version", product.meta.version)?
        .set("source_rev", rev)?
        .set("retired", product.retired.then_some(true))?
        .set(THUMBNAIL, &product.thumbnail)?
        .category_path(&product.category_path)?
        .name(&product.name)?
        .brand(&product.brand)?
        .package_size(&product.package_size)?
        .price(&product.price)?;
    let change =
        if product.retired { change.leave(GSI2) } else { change.enter(&FurtherIndexKey { path, id: &product.id })? };
    let older = Condition::Exists.and(Condition::Below("source_rev", number(rev)));
    Ok(Single::new(&REFRESH, Guarded::update(key(&product.id, path)?, change, older)))
}
