//! Copies on a product: the attributes of other items that its search document needs.
//!
//! # Why the copies converge
//!
//! Each copy stores the `rev` of its source item, and overwrites only an older copy. A source's
//! `rev` grows with every write and never restarts. So even if stream records arrive twice, late or
//! out of order, the newest delivered record determines the copy. A copy increases the product's
//! `rev`, but not its `version`, which If-Match compares. So a copy does not make an editor's
//! request fail.
//!
//! # Why not every record is copied
//!
//! Each sale changes the stock, but seldom its availability. The stream's consumer copies the
//! availability only from records that change it. Between two such records, the availability stays
//! the same. So the newest state of the stock agrees with the newest copied record. If no record
//! was copied yet, the newest state agrees with the value at the product's creation. Likewise, the
//! consumer copies the ratings only from records that change them.
//!
//! A stock in shards has no single `rev`. When a shard becomes empty or is no longer empty, the consumer
//! reads the product and then all shards, and writes the copy on the condition that the product is
//! unchanged. Each such record writes the product, also with the same value. So of two consumers, the
//! one that read first is refused, and reads again. The copy takes the `rev` of the first shard, so that
//! a late record from before the split changes nothing.
//!
//! A new product starts with the availability of its first stock ([`Copied::of_new`]), so an import
//! needs no second write. A revived product gets the availability of its new stock immediately, and
//! the consumer copies the same value later. The retirement of a product changes the availability
//! of its stock, so the consumer copies that record too.

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Product, ReviewStats, Stock, key};
use crate::change::Change;
use crate::expression::{Condition, number};
use crate::item::{EncodeError, Stored};
use crate::request::{Guarded, Single};

/// The copies on a product. A new or revived product gets them with its stock. Later, only the
/// stream's consumer updates them, so [`Product`] has no setter for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Copied {
    /// Whether customers can buy at least one piece.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_stock: bool,
    /// The `rev` of the stock from which `in_stock` was copied.
    #[serde(skip_serializing_if = "is_zero")]
    pub stock_rev: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub rating_count: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub rating_sum: u64,
    /// The `rev` of the statistics from which the ratings were copied, or 0 before the first
    /// review.
    #[serde(skip_serializing_if = "is_zero")]
    pub rating_rev: u64,
}

const fn is_zero(number: &u64) -> bool {
    *number == 0
}

const FIRST_REV: u64 = 1;

impl Copied {
    /// Returns the copies of a product that is created together with its stock.
    #[must_use]
    pub const fn of_new(available: u64) -> Self {
        Self { in_stock: available > 0, stock_rev: FIRST_REV, rating_count: 0, rating_sum: 0, rating_rev: 0 }
    }
}

patterns! {
    COPY_STOCK {
        id: "products.copy-stock",
        purpose: "Copy the availability of a stock onto its product",
        request: UpdateItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT",
        requires: "exists, with no copy or a copy of an older rev of the stock",
        callers: "system",
    }
    COPY_SHARDS {
        id: "products.copy-shards",
        purpose: "Copy the availability of a stock in shards onto its product",
        request: UpdateItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT",
        requires: "unchanged since it was read, before the shards",
        callers: "system",
    }
    COPY_RATING {
        id: "products.copy-rating",
        purpose: "Copy the review statistics onto their product",
        request: UpdateItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT",
        requires: "exists, with no copy or a copy of an older rev of the statistics",
        callers: "system",
    }
}

/// Copies the availability of a stock onto its product. DynamoDB refuses the write if the product
/// is missing, or if its copy is not older.
pub fn copy_stock(stock: &Stored<Stock>) -> Result<Single<()>, EncodeError> {
    let rev = stock.meta.rev;
    let change =
        Change::<Product>::copied().set("in_stock", stock.in_stock().then_some(true))?.set("stock_rev", rev)?;
    Ok(Single::new(&COPY_STOCK, Guarded::update(key(&stock.product_id)?, change, older("stock_rev", rev))))
}

/// Copies the availability of a stock in shards onto its product. `whole` is the first shard with the
/// pieces of all shards, which were read after `product`. DynamoDB refuses the write if the product has
/// changed since.
pub fn copy_shards(product: &Stored<Product>, whole: &Stored<Stock>) -> Result<Single<()>, EncodeError> {
    let change = Change::<Product>::copied()
        .set("in_stock", whole.in_stock().then_some(true))?
        .set("stock_rev", whole.meta.rev)?;
    let unchanged = Condition::Is("rev", number(product.meta.rev));
    Ok(Single::new(&COPY_SHARDS, Guarded::update(key(&product.id)?, change, unchanged)))
}

/// Copies the review statistics onto their product. DynamoDB refuses the write if the product is
/// missing, or if its copy is not older.
pub fn copy_rating(stats: &Stored<ReviewStats>) -> Result<Single<()>, EncodeError> {
    let rev = stats.meta.rev;
    let change = Change::<Product>::copied()
        .set("rating_count", stats.rating_count)?
        .set("rating_sum", stats.rating_sum)?
        .set("rating_rev", rev)?;
    Ok(Single::new(&COPY_RATING, Guarded::update(key(&stats.product_id)?, change, older("rating_rev", rev))))
}

/// Returns the condition that the product exists, and that its copy is older than `rev` or missing.
fn older(copy: &'static str, rev: u64) -> Condition {
    Condition::Exists.and(Condition::Lacks(copy).or(Condition::Below(copy, number(rev))))
}
