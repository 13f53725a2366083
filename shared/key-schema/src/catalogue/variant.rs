//! Variants: products that differ from their siblings in options, such as size and colour.
//!
//! A variant is an ordinary [`Product`] with its own stock, price and weight. It names its *parent*
//! and its [`Options`]. The first variant turns a product into a parent. From then on the parent's
//! stock is not for sale, and stays empty. The parent counts its variants in the catalogue.
//!
//! The partition of the parent has one item [`Variant`] for each variant. Its sort key has a hash
//! of the folded options ([`fold`]), so no two variants of a parent have the same options. The
//! Query of a product page ([`product::page`](crate::product::page)) also reads these items, so it
//! returns the complete list of the variants.
//!
//! # Why the copies converge
//!
//! A [`Variant`] copies the name, the prices, the first picture and the availability of the
//! variant's [`Product`], with the product's `rev`. The transaction that creates the variant also
//! creates the copy. So the record of every later change reaches the stream's consumer after the
//! copy exists. The consumer refreshes the copy if the record is newer.

use std::collections::{BTreeMap, BTreeSet};

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::category::CategoryNode;
use crate::change::Change;
use crate::encoding::{encode, join};
use crate::expression::{Condition, number, value};
use crate::id::{MediaId, ProductId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, SortKey, hash};
use crate::money::Money;
use crate::product::{self, Product, ProductAction, Stock};
use crate::request::{Guarded, Single, Transaction};
use crate::text::{fold, visible_name};

pub const MAX_VARIANTS: u32 = 100;
pub const MAX_OPTIONS: usize = 5;
/// The maximum length of an option's name, in bytes of UTF-8.
pub const MAX_OPTION_NAME_BYTES: usize = 32;
/// The maximum length of an option's value, in bytes of UTF-8.
pub const MAX_OPTION_VALUE_BYTES: usize = 64;

/// The options that distinguish a variant from its siblings, by name: `size` is `M`, `colour` is
/// `red`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Options(BTreeMap<String, String>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// There is no option, or there are too many.
    #[error("must have 1 to {MAX_OPTIONS} options")]
    Number,
    /// A name is empty, too long or without visible characters.
    #[error("must have names of 1 to {MAX_OPTION_NAME_BYTES} bytes of UTF-8 with a visible character")]
    Name,
    /// A value is empty, too long or without visible characters.
    #[error("must have values of 1 to {MAX_OPTION_VALUE_BYTES} bytes of UTF-8 with a visible character")]
    Value,
    /// Two names differ only in case, in white space or in invisible characters.
    #[error("must have names that differ in more than case and white space")]
    Twice,
}

impl Options {
    /// Brings names and values into their one spelling ([`visible_name`]).
    pub fn new(options: BTreeMap<String, String>) -> Result<Self, OptionsError> {
        if !(1..=MAX_OPTIONS).contains(&options.len()) {
            return Err(OptionsError::Number);
        }
        let number = options.len();
        let spelled = |text: &str, most: usize| visible_name(text).ok().filter(|name| name.len() <= most);
        let spelled = options.into_iter().map(|(name, value)| {
            let name = spelled(&name, MAX_OPTION_NAME_BYTES).ok_or(OptionsError::Name)?;
            Ok((name, spelled(&value, MAX_OPTION_VALUE_BYTES).ok_or(OptionsError::Value)?))
        });
        let options: BTreeMap<String, String> = spelled.collect::<Result<_, _>>()?;
        let names: BTreeSet<String> = options.keys().map(|name| fold(name)).collect();
        if names.len() < number {
            return Err(OptionsError::Twice);
        }
        Ok(Self(options))
    }

    /// Returns the options as pairs of name and value, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the hash of the folded options. Options that differ only in case have the same hash.
    fn hash(&self) -> String {
        let folded: BTreeMap<String, String> = self.iter().map(|(name, value)| (fold(name), fold(value))).collect();
        let pairs: Vec<String> =
            folded.iter().map(|(name, value)| format!("{}#{}", encode(name), encode(value))).collect();
        hash("options", &pairs.join("#"))
    }
}

entity! {
    /// A variant in the list of its parent. It also claims the options: its key has their hash.
    Variant = "Variant" {
        fixed {
            parent: ProductId,
            product_id: ProductId,
            options: Options,
            /// The hash of the folded options, which is a part of the key.
            options_hash: String,
            /// The `rev` of the variant's product from which this item was copied.
            source_rev: u64,
        }
        mutable by VariantChanges {
            name: String,
            price: Money,
            /// The former price of the variant.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            compare_at: Option<Money>,
            /// The id of the variant's first picture.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            thumbnail: Option<MediaId>,
            /// Whether customers can buy at least one piece.
            in_stock: bool,
        }
    }
}

impl Variant {
    /// Returns the item of a variant in the list of its parent, or [`None`] for a product that is
    /// no variant.
    #[must_use]
    pub fn of(product: &Stored<Product>) -> Option<Stored<Self>> {
        let Product { id, parent, options, name, price, compare_at, thumbnail, copied, .. } = &product.data;
        let (parent, options) = parent.as_ref().zip(options.as_ref())?;
        let variant = Self {
            parent: parent.clone(),
            product_id: id.clone(),
            options: options.clone(),
            options_hash: options.hash(),
            source_rev: product.meta.rev,
            name: name.clone(),
            price: *price,
            compare_at: *compare_at,
            thumbnail: thumbnail.clone(),
            in_stock: copied.in_stock,
        };
        Some(Stored::new(variant, product.meta.born.clone(), product.meta.created_at))
    }
}

impl Entity for Variant {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        let sk = SortKey::new(join("PRODUCT", &[&"VARIANT", &self.options_hash.as_str()]))?;
        Ok(Key { pk: product::partition(&self.parent)?, sk })
    }
}

patterns! {
    CREATE {
        id: "variants.create",
        purpose: "Create a variant of a product",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = PRODUCT; PK = STOCK#<id>#<location>#<shard>, SK = STOCK, also of the \
            parent for the first variant; PK = PRODUCT#<parent>, SK = PRODUCT and PRODUCT#VARIANT#<options_hash>; PK = \
            CATEGORY#<parent>, SK = CHILD#<name>, for each missing node",
        requires: "product and stock do not exist; the parent is in the catalogue, is no variant and \
            has fewer than 100 variants; its stock is empty; no variant has the options",
        callers: "staff",
    }
    REVIVE {
        id: "variants.revive",
        purpose: "Bring a retired product back as a variant",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = PRODUCT; PK = STOCK#<id>#<location>#<shard>, SK = STOCK, also of the \
            parent for the first variant; PK = PRODUCT#<parent>, SK = PRODUCT and PRODUCT#VARIANT#<options_hash>; PK = \
            CATEGORY#<parent>, SK = CHILD#<name>, for each missing node",
        requires: "the product is retired, at the version that was read; the parent is in the \
            catalogue, is no variant and has fewer than 100 variants; its stock is empty; no variant \
            has the options",
        callers: "staff",
    }
    RETIRE {
        id: "variants.retire",
        purpose: "Take a variant out of the catalogue and out of its parent's list",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = PRODUCT; PK = STOCK#<id>#<location>#<shard>, SK = STOCK; PK = \
            PRODUCT#<parent>, SK = PRODUCT and PRODUCT#VARIANT#<options_hash>",
        requires: "in the catalogue, version = the If-Match; the parent has a variant",
        callers: "staff",
    }
    REFRESH {
        id: "variants.refresh",
        purpose: "Refresh the copy of a changed variant in its parent's list",
        request: UpdateItem,
        key: "PK = PRODUCT#<parent>, SK = PRODUCT#VARIANT#<options_hash>",
        requires: "exists, with a copy of an older rev of the variant",
        callers: "system",
    }
}

/// Creates a variant with its stock and the missing nodes of its category path. `parent` is the
/// parent as it was read. `variant` names the parent and has options.
pub fn create(
    variant: &Stored<Product>,
    available: u64,
    parent: &Stored<Product>,
    nodes: &[Stored<CategoryNode>],
) -> Result<Transaction<ProductAction>, EncodeError> {
    let [product, stock] = product::new_items(variant, available)?;
    let transaction =
        Transaction::new(&CREATE).action(ProductAction::Product, product).action(ProductAction::Stock, stock);
    product::with_nodes(joined(transaction, variant, available, parent)?, nodes)
}

/// Revives a retired product as a variant ([`product::revive`]). `parent` is the parent as it was
/// read.
pub fn revive(
    retired: &Stored<Product>,
    variant: &Stored<Product>,
    available: u64,
    parent: &Stored<Product>,
    nodes: &[Stored<CategoryNode>],
) -> Result<Transaction<ProductAction>, EncodeError> {
    let [product, stock] = product::revived_items(retired, variant, available)?;
    let transaction =
        Transaction::new(&REVIVE).action(ProductAction::Product, product).action(ProductAction::Stock, stock);
    // The record of the revival has a higher `rev`, so the consumer refreshes the copy.
    let mut variant = variant.clone();
    variant.meta.rev = retired.meta.rev;
    product::with_nodes(joined(transaction, &variant, available, parent)?, nodes)
}

/// Adds the actions on the parent: the number and the list of its variants and, for the first
/// variant, its stock.
fn joined(
    transaction: Transaction<ProductAction>,
    variant: &Stored<Product>,
    available: u64,
    parent: &Stored<Product>,
) -> Result<Transaction<ProductAction>, EncodeError> {
    let mut able = product::in_catalogue()
        .and(Condition::Lacks("parent"))
        .and(Condition::count_below("variants", MAX_VARIANTS.into()));
    let stock = if parent.variants.is_some() {
        able = able.and(Condition::Has("variants"));
        None
    } else {
        // The new `product_born` keeps the stock empty: earlier orders return no pieces to it.
        let closed = Change::<Stock>::visible(variant.meta.created_at)
            .set("sellable", false)?
            .set("product_born", &variant.meta.born)?;
        let is_empty = Condition::Lacks("shards").and(Condition::Is("available", number(0)));
        Some(Guarded::update(product::stock_key(&parent.id)?, closed, is_empty))
    };
    let counted = Change::<Product>::copied().add("variants", 1);
    let mut listed = variant.clone();
    listed.data.copied.in_stock = available > 0;
    let claim = Variant::of(&listed).map(|claim| Guarded::put(&claim, Condition::NotExists)).transpose()?;
    Ok(transaction
        .action(ProductAction::Parent, Guarded::update(product::key(&parent.id)?, counted, able))
        .optional(ProductAction::ParentStock, stock)
        .optional(ProductAction::Options, claim))
}

/// Takes a variant at `version` out of the catalogue and out of its parent's list. Returns [`None`]
/// for a product that is no variant.
pub fn retire(
    variant: &Stored<Product>,
    version: u64,
    at: Instant,
) -> Result<Option<Transaction<ProductAction>>, EncodeError> {
    let Some(listed) = Variant::of(variant) else { return Ok(None) };
    let [product, stock] = product::retired_items(&variant.id, Condition::version(version), at)?;
    let counted = Change::<Product>::copied().add("variants", -1);
    let has_variants = Condition::AtLeast("variants", number(1));
    let own = Condition::NotExists.or(Condition::Is("product_id", value(&variant.id)?));
    Ok(Some(
        Transaction::new(&RETIRE)
            .action(ProductAction::Product, product)
            .action(ProductAction::Stock, stock)
            .action(ProductAction::Parent, Guarded::update(product::key(&listed.parent)?, counted, has_variants))
            .action(ProductAction::Options, Guarded::delete(listed.key()?, own)),
    ))
}

/// Returns whether the change from `old` to `new` is visible in the list of the parent.
#[must_use]
pub fn shows(old: &Product, new: &Product) -> bool {
    let shown = |product: &Product| {
        let Product { name, price, compare_at, thumbnail, copied, .. } = product.clone();
        (name, price, compare_at, thumbnail, copied.in_stock)
    };
    shown(old) != shown(new)
}

/// Refreshes the copy of a variant in its parent's list. DynamoDB refuses the write if the copy is
/// missing or not older than `product`. Returns [`None`] for a product that is no variant, or that
/// is retired.
pub fn refresh(product: &Stored<Product>) -> Result<Option<Single<()>>, EncodeError> {
    let Some(right) = Variant::of(product).filter(|_| !product.retired) else { return Ok(None) };
    let change = Change::<Variant>::copied()
        .set("source_rev", right.source_rev)?
        .name(&right.name)?
        .price(&right.price)?
        .compare_at(&right.compare_at)?
        .thumbnail(&right.thumbnail)?
        .in_stock(&right.in_stock)?;
    let older =
        Condition::Is("product_id", value(&product.id)?).and(Condition::Below("source_rev", number(right.source_rev)));
    Ok(Some(Single::new(&REFRESH, Guarded::update(right.key()?, change, older))))
}
