//! Memberships: a product in further categories, besides the one in which it stands.
//!
//! A product and its categories are a many-to-many relation. One direction is the list [`ProductCategories`] beside the product, the other
//! an item a category, [`Membership`], with a copy of what a category's list shows and a place in that list's index: so one Query lists
//! those that stand in a category and those that are in it as well. Both are written in one transaction. The list has a `rev` that
//! every such transaction is conditional on, so the number of memberships is bounded whoever writes at once.
//!
//! # Why the copies end on the newest
//!
//! A membership carries the `rev` of the product that its copy was made from, and the stream refreshes it from a record's own image over an
//! older one only. It is created from a product that was read, on the condition that the product's `version` still is what was read:
//! so every later change that people see is in the stream behind the membership, and finds it. Not on the condition of its `rev`:
//! that moves with the copies of stock and ratings too, which no membership shows.

use std::collections::BTreeSet;

use serde_dynamo::AttributeValue;

use crate::change::{Change, IndexEntry, entity};
use crate::entity::AnyEntity;
use crate::expression::{Condition, number};
use crate::id::{Born, ProductId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta, Stored};
use crate::key::{Index, IndexKey, Key, KeyError, SortKey};
use crate::money::Money;
use crate::pattern::{Consistency, patterns};
use crate::product::{self, CategoryPath, CategoryPlace, Product};
use crate::request::{BatchGet, Guarded, Query, Range, Single, Transaction};

/// In how many further categories a product may be.
pub const MAX_MEMBERSHIPS: usize = 20;

entity! {
    /// A product in a further category. Its `version` is the product's, because that is what the list shows.
    Membership = "Membership" {
        keyed {
            /// The product.
            id: ProductId,
            /// The further category.
            path: CategoryPath,
            /// Whether the product was taken out of the catalogue; such a membership is in no list.
            #[serde(skip_serializing_if = "std::ops::Not::not", default)]
            retired: bool,
            /// The rev of the product that this was copied from.
            source_rev: u64,
        }
        free {
            /// Where the product stands.
            category_path: CategoryPath,
            /// Its name.
            name: String,
            /// Its brand.
            brand: String,
            /// Such as `22 LB`.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            package_size: Option<String>,
            /// What one piece costs.
            price: Money,
        }
    }
}

impl Membership {
    fn of(product: &Stored<Product>, path: CategoryPath) -> Self {
        let Product { id, category_path, retired, name, brand, package_size, price, copied: _, summary: _ } =
            product.data.clone();
        Self { id, path, retired, source_rev: product.meta.rev, category_path, name, brand, package_size, price }
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
        Ok(vec![FurtherPlace { path: &self.path, id: &self.id }.place().key()?])
    }
}

fn key(product: &ProductId, path: &CategoryPath) -> Result<Key, KeyError> {
    Ok(Key { pk: product::partition(product)?, sk: SortKey::new(format!("IN#{}", path.key_text()))? })
}

/// A product's place in the list of a further category.
#[derive(Debug, Clone, Copy)]
struct FurtherPlace<'a> {
    path: &'a CategoryPath,
    id: &'a ProductId,
}

impl FurtherPlace<'_> {
    const fn place(&self) -> CategoryPlace<'_> {
        CategoryPlace { category_path: self.path, id: self.id }
    }
}

impl IndexEntry for FurtherPlace<'_> {
    type Entity = Membership;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.place().key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        // A membership stays where it is: both are parts of its own key.
        Ok(Vec::new())
    }
}

entity! {
    /// The further categories of a product.
    ProductCategories = "ProductCategories" {
        keyed {
            /// Whose.
            product_id: ProductId,
            /// At most [`MAX_MEMBERSHIPS`], in the order of their key text.
            paths: Vec<CategoryPath>,
        }
        free {}
    }
}

impl Entity for ProductCategories {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        product::categories_key(&self.product_id)
    }
}

impl ProductCategories {
    /// Under which of its further categories the product is listed in `category` and all below it: the first, for in one list it stands once.
    #[must_use]
    pub fn first_under(&self, category: &CategoryPath) -> Option<&CategoryPath> {
        self.paths.iter().find(|path| path.is_within(category))
    }
}

/// Which part of a membership's transaction was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The product is not what was read.
    Product,
    /// The list of its categories is not what was read.
    List,
    /// The membership itself.
    Member,
}

patterns! {
    PREPARE = "memberships.prepare": BatchGetItem, "PK = PRODUCT#<id>, SK = PRODUCT and PRODUCT#CATEGORIES" => "the product, its further categories", Consistency::Strong("the change is computed from them and conditional on them"), "staff", "Read a product before its categories change", ["PUT /v1/products/{id}/categories/{path}", "DELETE /v1/products/{id}/categories/{path}"];
    ADD = "memberships.add": TransactWriteItems, "PK = PRODUCT#<id>, SK = IN#<path> and PRODUCT#CATEGORIES; SK = PRODUCT (check)" => "the list is what was read; the product is in the catalogue, at the version that was read", Consistency::Write, "staff", "Put a product into a further category", ["PUT /v1/products/{id}/categories/{path}"];
    REMOVE = "memberships.remove": TransactWriteItems, "PK = PRODUCT#<id>, SK = IN#<path> and PRODUCT#CATEGORIES" => "the list is what was read", Consistency::Write, "staff", "Take a product out of a further category", ["DELETE /v1/products/{id}/categories/{path}"];
    LISTS = "memberships.lists": BatchGetItem, "PK = PRODUCT#<id>, SK = PRODUCT#CATEGORIES, for each id" => "further categories", Consistency::Eventual, "any", "Find under which of its further categories a product is listed", ["GET /v1/categories/{path}/products"];
    OF_PRODUCT = "memberships.of-product": Query, "PK = PRODUCT#<id>, SK under IN#" => "its memberships", Consistency::Strong("one that is not seen would keep an old copy"), "system", "Find the copies of a product that changed", ["stream"];
    REFRESH = "memberships.refresh": UpdateItem, "PK = PRODUCT#<id>, SK = IN#<path>" => "exists, with a copy of an older rev of the product", Consistency::Write, "system", "Refresh the copy of a product that changed", ["stream"];
}

/// The product, retired or not, then its further categories.
///
/// # Errors
/// [`KeyError`].
pub fn prepare(id: &ProductId) -> Result<BatchGet<AnyEntity>, KeyError> {
    Ok(BatchGet::new(&PREPARE, vec![product::key(id)?, product::categories_key(id)?]))
}

/// Puts the product that was read into a further category. `known` is the list that was read, if there was one; it must have room, and not
/// have the category.
///
/// # Errors
/// [`EncodeError`].
pub fn add(
    product: &Stored<Product>,
    path: &CategoryPath,
    known: Option<&Stored<ProductCategories>>,
    born: &Born,
    at: Instant,
) -> Result<Transaction<Part>, EncodeError> {
    let mut paths = known.map(|known| known.paths.clone()).unwrap_or_default();
    paths.push(path.clone());
    paths.sort_by_cached_key(CategoryPath::key_text);
    let member = member(product, path, born, at);
    Ok(Transaction::new(&ADD)
        .action(Part::Product, unchanged(product)?)
        .action(Part::List, list(&product.id, paths, known, born, at)?)
        .action(Part::Member, Guarded::put(&member, Condition::NotExists)?))
}

/// Takes a product out of a further category that the list which was read has.
///
/// # Errors
/// [`EncodeError`].
pub fn remove(
    known: &Stored<ProductCategories>,
    path: &CategoryPath,
    at: Instant,
) -> Result<Transaction<Part>, EncodeError> {
    let id = &known.product_id;
    let paths = known.paths.iter().filter(|known| *known != path).cloned().collect();
    Ok(Transaction::new(&REMOVE)
        .action(Part::List, list(id, paths, Some(known), &known.meta.born, at)?)
        .action(Part::Member, Guarded::delete(key(id, path)?, Condition::Exists)))
}

/// The product that was read is in the catalogue, at the version that was read.
pub(crate) fn unchanged(product: &Stored<Product>) -> Result<Guarded, KeyError> {
    let same = product::in_catalogue().and(Condition::version(product.meta.version));
    Ok(Guarded::check(product::key(&product.id)?, same))
}

/// Takes a product out of some of its further categories and puts it into others, in which it may be already. The same transaction says that it is
/// [`unchanged`], or makes it what is given.
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

/// The product's entry in a further category.
fn member(product: &Stored<Product>, path: &CategoryPath, born: &Born, at: Instant) -> Stored<Membership> {
    let mut member = Stored::new(Membership::of(product, path.clone()), born.clone(), at);
    member.meta.version = product.meta.version;
    member
}

/// The list as it shall be, over the one that was read.
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

/// The further categories of products.
///
/// # Errors
/// [`KeyError`].
pub fn lists<'a>(
    products: impl IntoIterator<Item = &'a ProductId>,
) -> Result<BatchGet<Stored<ProductCategories>>, KeyError> {
    Ok(BatchGet::new(&LISTS, products.into_iter().map(product::categories_key).collect::<Result<_, _>>()?))
}

/// A product's memberships.
///
/// # Errors
/// [`KeyError`].
pub fn of_product(id: &ProductId) -> Result<Query<Stored<Membership>>, KeyError> {
    Ok(Query::new(&OF_PRODUCT, product::partition(id)?, Range::under("IN")).limit(MAX_MEMBERSHIPS))
}

/// Whether memberships of the product show the change.
#[must_use]
pub fn shows(old: &Stored<Product>, new: &Stored<Product>) -> bool {
    let shown = |product: &Stored<Product>| {
        let mut copy = Membership::of(product, product.category_path.clone());
        copy.source_rev = 0;
        (product.meta.version, copy)
    };
    shown(old) != shown(new)
}

/// Makes a membership show what the product is, unless it shows a newer state or is not there any more. That of a retired product leaves
/// the list, and comes back with the product.
///
/// # Errors
/// [`EncodeError`].
pub fn refresh(product: &Stored<Product>, path: &CategoryPath) -> Result<Single<()>, EncodeError> {
    let rev = product.meta.rev;
    let change = Change::<Membership>::copied()
        .set("version", product.meta.version)?
        .set("source_rev", rev)?
        .set("retired", product.retired.then_some(true))?
        .category_path(&product.category_path)?
        .name(&product.name)?
        .brand(&product.brand)?
        .package_size(&product.package_size)?
        .price(&product.price)?;
    let change = if product.retired {
        change.leave(Index::Gsi2)
    } else {
        change.enter(&FurtherPlace { path, id: &product.id })?
    };
    let older = Condition::Exists.and(Condition::Below("source_rev", number(rev)));
    Ok(Single::new(&REFRESH, Guarded::update(key(&product.id, path)?, change, older)))
}
