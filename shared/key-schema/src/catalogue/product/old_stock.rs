//! The stock of a product in a table of the form before the shards: one item in the partition of
//! its product, without `location` and `shard`.
//!
//! **Remove this module with the release after the first one**, together with the code that uses it
//! (`cargo check` names it), the defaults of [`Stock`]'s `location` and `shard`, and
//! `Stock` in [`super::PageItem`].
//!
//! A stock has exactly one place at each time: [`move_stock`] deletes the old item and writes the new
//! one in one transaction. A write of this release names the new key, and has a condition that fails
//! without an item. So a write before the move is refused. Its caller moves the stock and tries
//! again. A revival creates a missing stock, so its caller moves the stock first.

use item_model::prelude::*;

use super::{ProductAction, Stock, partition};
use crate::expression::{Condition, number, value};
use crate::id::ProductId;
use crate::item::{EncodeError, Stored};
use crate::key::{Key, KeyError, SortKey};
use crate::pattern::Consistency;
use crate::request::{Get, Guarded, Transaction};

patterns! {
    READ_OLD_STOCK {
        id: "stock.get-old",
        purpose: "Read a stock that is not moved yet",
        request: GetItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT#STOCK",
        returns: "the stock of a table of the earlier form",
        consistency: Consistency::Strong("the move is conditional on it"),
        callers: "any",
    }
    MOVE_STOCK {
        id: "stock.move",
        purpose: "Move the stock of a table of the earlier form to its partition",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = PRODUCT#STOCK; PK = STOCK#<id>#<location>#<shard>, SK = STOCK",
        requires: "the old stock is unchanged; the new stock does not exist",
        callers: "any",
    }
}

/// Returns the key of a product's stock before its move.
fn old_key(id: &ProductId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new("PRODUCT#STOCK")? })
}

/// Returns whether an item with this key is the stock before its move.
#[must_use]
pub fn is_old_stock(stock: &Stock, key: &Key) -> bool {
    old_key(&stock.product_id).is_ok_and(|old| old == *key)
}

/// Reads the stock of a product before its move, with strong consistency.
pub fn old_stock(id: &ProductId) -> Result<Get<Stored<Stock>>, KeyError> {
    Ok(Get::new(&READ_OLD_STOCK, old_key(id)?))
}

/// Moves a stock to the key of the first shard. `rev` and `version` stay, so the product's copy of the
/// availability is as new as before. DynamoDB refuses the move if the old stock has changed since it was
/// read, or if the new stock exists.
pub fn move_stock(old: &Stored<Stock>) -> Result<Transaction<ProductAction>, EncodeError> {
    let unchanged = Condition::Is("rev", number(old.meta.rev)).and(Condition::Is("born", value(&old.meta.born)?));
    Ok(Transaction::new(&MOVE_STOCK)
        .action(ProductAction::Stock, Guarded::delete(old_key(&old.product_id)?, unchanged))
        .action(ProductAction::Stock, Guarded::put(old, Condition::NotExists)?))
}
