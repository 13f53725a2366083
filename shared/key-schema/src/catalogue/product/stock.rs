//! The stock of a product, and the requests that read and change it.

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use super::{ADJUST_STOCK, ProductAction, READ_STOCK, SET_STOCK, SHOW_STOCK};
use crate::change::Change;
use crate::expression::{Condition, number, value};
use crate::id::{Born, CustomerId, LocationId, ProductId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::order::OrderLine;
use crate::request::{Get, Guarded, Single, Transaction};

/// The maximum number of pieces in a stock, and in one adjustment.
pub const MAX_STOCK: u64 = 1_000_000_000_000;
/// The number of pieces below which a stock is low, unless the deployment sets another threshold.
pub const STOCK_LOW: u64 = 10;

entity! {
    /// The number of a product's pieces for sale at a location. The item stays when the product is
    /// retired, so that a cancelled order can return its pieces until the product is revived.
    ///
    /// Each shard is a partition of its own. So the orders of a product share no partition with its
    /// readers, its sales and its reviews, and DynamoDB's limit of a partition holds for each shard.
    Stock = "Stock" {
        fixed {
            product_id: ProductId,
            location: LocationId,
            /// The number of the shard, from 0.
            shard: u32,
            /// The number of available pieces. It is never negative, because every write that takes
            /// pieces is conditional. Only functions of [`crate::product`] change it.
            available: u64,
            /// Whether orders may take pieces from the stock. It is false for a retired product and
            /// for a parent of variants.
            sellable: bool,
            /// The `born` of the product to which the pieces belong. For a parent of variants, it
            /// is the `born` of the first variant. It is absent if the product was never revived
            /// and never had a variant.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            product_born: Option<Born>,
        }
        mutable by StockChanges {
            /// The last adjustment by hand, with its author and reason, for consumers of the
            /// stream.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            last_adjustment: Option<Adjustment>,
        }
    }
}

impl Stock {
    /// Creates a product's first stock, from which orders may take pieces.
    #[must_use]
    pub fn new(product_id: ProductId, available: u64) -> Self {
        Self {
            product_id,
            location: LocationId::main(),
            shard: 0,
            available,
            sellable: true,
            product_born: None,
            last_adjustment: None,
        }
    }

    /// Returns whether an order line of the product with this `born` took its pieces from this
    /// stock. A revival gives the product a new `born`.
    #[must_use]
    pub fn is_of(&self, born: &Born) -> bool {
        self.product_born.as_ref().is_none_or(|own| own == born)
    }
}

/// The level of a stock, without the exact number of pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Availability {
    /// No pieces.
    None,
    /// At least one piece, but fewer than the threshold.
    Low,
    /// At least the threshold.
    Plenty,
}

impl Availability {
    /// Returns the level of this many pieces. `threshold` is the number below which a stock is low.
    #[must_use]
    pub const fn of(pieces: u64, threshold: u64) -> Self {
        match pieces {
            0 => Self::None,
            few if few < threshold => Self::Low,
            _ => Self::Plenty,
        }
    }
}

/// An adjustment of a stock by hand, for example after a delivery, a breakage or a recount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adjustment {
    /// The change in pieces, negative for a removal.
    pub by: i64,
    pub reason: String,
    pub staff: CustomerId,
    pub at: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StockError {
    /// The stock would become negative.
    #[error("would make the stock negative")]
    Insufficient,
    /// The stock would exceed [`MAX_STOCK`].
    #[error("would make the stock larger than {MAX_STOCK}")]
    TooLarge,
}

impl Stock {
    /// Returns whether customers can buy at least one piece now.
    #[must_use]
    pub const fn in_stock(&self) -> bool {
        self.sellable && self.available > 0
    }

    /// Returns whether an order of the product with this `born` can take so many pieces now.
    #[must_use]
    pub fn can_supply(&self, quantity: u64, born: &Born) -> bool {
        self.sellable && self.available >= quantity && self.is_of(born)
    }

    /// Returns the number of pieces after an adjustment.
    pub fn moved(&self, by: i64) -> Result<u64, StockError> {
        match self.available.checked_add_signed(by) {
            Some(pieces) if pieces <= MAX_STOCK => Ok(pieces),
            None if by < 0 => Err(StockError::Insufficient),
            _ => Err(StockError::TooLarge),
        }
    }
}

impl Entity for Stock {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        shard_key(&self.product_id, &self.location, self.shard)
    }
}

fn shard_key(id: &ProductId, location: &LocationId, shard: u32) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("STOCK", &[id, location, &shard])?, sk: SortKey::new("STOCK")? })
}

/// Returns the key of a product's first stock.
pub(crate) fn stock_key(id: &ProductId) -> Result<Key, KeyError> {
    shard_key(id, &LocationId::main(), 0)
}

/// Sets the stock of a product in the catalogue, and returns the stock.
pub fn set_stock(id: &ProductId, available: u64, at: Instant) -> Result<Single<Stored<Stock>>, EncodeError> {
    let change = Change::<Stock>::visible(at).set("available", available)?;
    Ok(Single::new(&SET_STOCK, Guarded::update(stock_key(id)?, change, Condition::Is("sellable", value(true)?))))
}

/// Sets the stock to `available`. DynamoDB refuses the write if the number of pieces differs from
/// that of `seen`, or if the stock is not sellable. So no concurrent change is lost, and the
/// response reports the stock right after this adjustment. `claim` writes the idempotency record
/// ([`crate::idempotency::claim`]).
pub fn adjust_stock(
    seen: &Stored<Stock>,
    available: u64,
    adjustment: Adjustment,
    claim: Guarded,
) -> Result<Transaction<ProductAction>, EncodeError> {
    let unchanged = Condition::Is("sellable", value(true)?).and(Condition::Is("available", number(seen.available)));
    let change =
        Change::<Stock>::visible(adjustment.at).set("available", available)?.last_adjustment(&Some(adjustment))?;
    Ok(Transaction::new(&ADJUST_STOCK)
        .action(ProductAction::Stock, Guarded::update(stock_key(&seen.product_id)?, change, unchanged))
        .action(ProductAction::Idempotency, claim))
}

/// Returns the action that takes the pieces of an order line, for the order's transaction. Its
/// condition fails if the stock is too small, not sellable, or not the stock that the line sells
/// ([`Stock::is_of`]).
pub(crate) fn take(line: &OrderLine, at: Instant) -> Result<Guarded, EncodeError> {
    let quantity = pieces(line)?;
    let enough = Condition::Is("sellable", value(true)?).and(Condition::AtLeast("available", number(quantity)));
    let change = Change::<Stock>::visible(at).add("available", -quantity);
    Ok(Guarded::update(stock_key(&line.product_id)?, change, enough.and(of_incarnation(line)?)))
}

fn pieces(line: &OrderLine) -> Result<i64, EncodeError> {
    i64::try_from(line.quantity).map_err(|_| EncodeError::Overflow)
}

/// Returns the condition that the stock is the one that the line sold ([`Stock::is_of`]).
fn of_incarnation(line: &OrderLine) -> Result<Condition, EncodeError> {
    Ok(Condition::Lacks("product_born").or(Condition::Is("product_born", value(&line.product_born)?)))
}

/// Gives the pieces of a cancelled or returned order line back to the stock. The action is part of
/// the order's transaction. The stock of a retired product takes pieces back too. The condition
/// fails if the product was revived or got its first variant since the sale, because the new stock
/// does not include these pieces.
pub(crate) fn give_back(line: &OrderLine, at: Instant) -> Result<Guarded, EncodeError> {
    let change = Change::<Stock>::visible(at).add("available", pieces(line)?);
    Ok(Guarded::update(stock_key(&line.product_id)?, change, Condition::Exists.and(of_incarnation(line)?)))
}

/// Reads the stock for a product page.
pub fn shown_stock(id: &ProductId) -> Result<Get<Stored<Stock>>, KeyError> {
    Ok(Get::new(&SHOW_STOCK, stock_key(id)?))
}

/// Reads a stock with strong consistency.
pub fn stock(id: &ProductId) -> Result<Get<Stored<Stock>>, KeyError> {
    Ok(Get::new(&READ_STOCK, stock_key(id)?))
}
