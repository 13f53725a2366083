//! The stock of a product at a further location ([`crate::location`]).
//!
//! Orders take pieces only from the location `main`, and `in_stock` shows only that location. So the
//! stock of a further location has one shard, and no request but those of staff writes it. It needs no
//! `sellable` and no `product_born`: its writes check the product instead, and no order returns pieces
//! to it. The pieces stay when the product is retired and revived. No write checks the location, because
//! a location is never deleted, and all stocks of a location would conflict on it.

use item_model::prelude::*;

use super::stock::shard_key;
use super::{
    ADJUST_STOCK_AT, Adjustment, Product, ProductAction, READ_STOCK_AT, SET_STOCK_AT, Stock, in_catalogue, key,
};
use crate::change::Change;
use crate::expression::Condition;
use crate::id::{Born, LocationId, ProductId};
use crate::instant::Instant;
use crate::item::{EncodeError, Stored};
use crate::key::KeyError;
use crate::location::{self, StockLocation};
use crate::request::{BatchGet, Guarded, Transaction};

one_of! {
    pub enum StockAtItem { Product Stock StockLocation }
}

/// Reads the product, the location and the stock there, in this order.
pub fn stock_at(id: &ProductId, location: &LocationId) -> Result<BatchGet<StockAtItem>, KeyError> {
    Ok(BatchGet::new(&READ_STOCK_AT, vec![key(id)?, location::key(location)?, shard_key(id, location, 0)?]))
}

/// Sets the stock of a product at a further location, which must exist. `born` is that of the stock, if
/// it does not exist yet.
pub fn set_stock_at(
    id: &ProductId,
    location: &LocationId,
    available: u64,
    born: &Born,
    at: Instant,
) -> Result<Transaction<ProductAction>, EncodeError> {
    let stock = Guarded::modify(shard_key(id, location, 0)?, changed(id, location, available, born, at)?);
    Ok(checked(Transaction::new(&SET_STOCK_AT), id, available == 0)?.action(ProductAction::Stock, stock))
}

/// Sets the stock of a product at a further location to `available`, on the condition that it is as it
/// was read. `claim` writes the idempotency record ([`crate::idempotency::claim`]).
pub fn adjust_stock_at(
    (id, location): (&ProductId, &LocationId),
    seen: Option<&Stored<Stock>>,
    available: u64,
    adjustment: &Adjustment,
    born: &Born,
    claim: Guarded,
) -> Result<Transaction<ProductAction>, EncodeError> {
    let unchanged = match seen {
        Some(seen) => Condition::unchanged(&seen.meta)?,
        None => Condition::NotExists,
    };
    let change = changed(id, location, available, born, adjustment.at)?;
    let change = change.set("last_adjustment", Some(adjustment))?;
    let stock = Guarded::update(shard_key(id, location, 0)?, change, unchanged);
    Ok(checked(Transaction::new(&ADJUST_STOCK_AT), id, adjustment.by < 0)?
        .action(ProductAction::Stock, stock)
        .action(ProductAction::Idempotency, claim))
}

fn changed(
    id: &ProductId,
    location: &LocationId,
    available: u64,
    born: &Born,
    at: Instant,
) -> Result<Change<Stock>, EncodeError> {
    let change = Change::<Stock>::visible(at).or_create(born, at).set("product_id", id)?.set("location", location)?;
    change.set("shard", 0_u32)?.set("available", available)?.set("sellable", true)
}

/// Adds the check of the product. A parent of variants may only lose pieces, which its stock may have
/// from before its first variant.
fn checked(
    transaction: Transaction<ProductAction>,
    id: &ProductId,
    is_removal: bool,
) -> Result<Transaction<ProductAction>, EncodeError> {
    let able = if is_removal { in_catalogue() } else { in_catalogue().and(Condition::Lacks("variants")) };
    Ok(transaction.action(ProductAction::Product, Guarded::check(key(id)?, able)))
}
