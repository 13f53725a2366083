//! What the search document of a product needs of other items, copied onto the product.
//!
//! # Why the copies converge
//!
//! Each copy carries the `rev` of the item that it was made from, and is written only over an older one. A source's rev grows with every
//! write and never restarts, so records that arrive twice, late or in another order end on the newest that was delivered. A copy moves the
//! product's `rev` alone, so no editor's If-Match breaks.
//!
//! # Why not every record is copied
//!
//! Stock moves with every sale, and whether there is any seldom changes. Only a record in which it changes is copied. That loses nothing: between
//! two such records every state of the stock has the value of the former, so the value of the newest state is that of the newest record
//! that was copied, or the one that the product was created with. The same holds for the ratings.
//!
//! A new product is written with the value of its first stock ([`Copied::of_new`]), so an import costs no second write; one that is revived
//! shows the value of its new stock at once, and its record confirms it. Retiring is a record in which the value changes.

use serde::{Deserialize, Serialize};

use super::{Product, ReviewStats, Stock, key};
use crate::change::Change;
use crate::expression::{Condition, number};
use crate::item::{EncodeError, Stored};
use crate::pattern::{Consistency, patterns};
use crate::request::{Guarded, Single};

/// The copies on a product. Each is written by the stream only; [`Product`] has no setter for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Copied {
    /// Whether somebody can buy a piece.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_stock: bool,
    /// The rev of the stock that says so.
    #[serde(skip_serializing_if = "is_zero")]
    pub stock_rev: u64,
    /// How many reviews.
    #[serde(skip_serializing_if = "is_zero")]
    pub rating_count: u64,
    /// The sum of their ratings.
    #[serde(skip_serializing_if = "is_zero")]
    pub rating_sum: u64,
    /// The rev of the statistics that say so; 0 before the first review.
    #[serde(skip_serializing_if = "is_zero")]
    pub rating_rev: u64,
}

const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The rev of the stock that a product is created with.
const FIRST_REV: u64 = 1;

impl Copied {
    /// Those of a product that is created together with its stock.
    #[must_use]
    pub const fn of_new(available: u64) -> Self {
        Self { in_stock: available > 0, stock_rev: FIRST_REV, rating_count: 0, rating_sum: 0, rating_rev: 0 }
    }
}

patterns! {
    COPY_STOCK = "products.copy-stock": UpdateItem, "PK = PRODUCT#<id>, SK = PRODUCT" => "exists, with a copy of an older rev of the stock", Consistency::Write, "system", "Copy onto a product whether it is in stock", ["stream"];
    COPY_RATING = "products.copy-rating": UpdateItem, "PK = PRODUCT#<id>, SK = PRODUCT" => "exists, with a copy of an older rev of the statistics", Consistency::Write, "system", "Copy onto a product what its reviews add up to", ["stream"];
}

/// Copies onto the product whether it is in stock, unless it has a newer copy or is not there.
///
/// # Errors
/// [`EncodeError`].
pub fn copy_stock(stock: &Stored<Stock>) -> Result<Single<()>, EncodeError> {
    let rev = stock.meta.rev;
    let change =
        Change::<Product>::copied().set("in_stock", stock.in_stock().then_some(true))?.set("stock_rev", rev)?;
    Ok(Single::new(&COPY_STOCK, Guarded::update(key(&stock.product_id)?, change, older("stock_rev", rev))))
}

/// Copies onto the product what its reviews add up to, unless it has a newer copy or is not there.
///
/// # Errors
/// [`EncodeError`].
pub fn copy_rating(stats: &Stored<ReviewStats>) -> Result<Single<()>, EncodeError> {
    let rev = stats.meta.rev;
    let change = Change::<Product>::copied()
        .set("rating_count", stats.rating_count)?
        .set("rating_sum", stats.rating_sum)?
        .set("rating_rev", rev)?;
    Ok(Single::new(&COPY_RATING, Guarded::update(key(&stats.product_id)?, change, older("rating_rev", rev))))
}

/// The product is there, and its copy is older than `rev` or was never made.
fn older(copy: &'static str, rev: u64) -> Condition {
    Condition::Exists.and(Condition::Lacks(copy).or(Condition::Below(copy, number(rev))))
}
