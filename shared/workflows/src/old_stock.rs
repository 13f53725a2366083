//! Moves the stock of a table of the earlier form when a request needs it
//! ([`key_schema::product::old_stock`]).
//!
//! **Remove this module with the release after the first one**, and the code that uses it.
//! [`crate::stock::found`] and [`crate::stock::seen`] are then plain reads.

use std::fmt::Debug;

use key_schema::id::ProductId;
use key_schema::item::Stored;
use key_schema::order::{OrderAction, OrderLine};
use key_schema::product::{self, Stock};
use table::{Refusals, Table, TableError};

use crate::WorkflowError;

/// The maximum number of attempts to move a stock that functions of the earlier release change.
const ATTEMPTS: usize = 8;

/// Returns the stock of a product whose first shard was not found, after moving it to its partition.
/// Returns [`None`] if the product has no stock.
///
/// # Errors
/// [`WorkflowError::Table`], and [`WorkflowError::Contended`] if other writers kept changing the old
/// item.
pub(crate) async fn moved<A: Copy + Debug>(
    table: &Table,
    id: &ProductId,
) -> Result<Option<Stored<Stock>>, WorkflowError<A>> {
    for _ in 0..ATTEMPTS {
        let Some(old) = table.get(&product::old_stock(id)?).await? else {
            // Another writer has moved it meanwhile, or the product has no stock.
            return Ok(table.get(&product::stock(id)?).await?);
        };
        if table.transact(&product::move_stock(&old)?).await?.is_ok() {
            return Ok(Some(old));
        }
        if let Some(stock) = table.get(&product::stock(id)?).await? {
            return Ok(Some(stock));
        }
    }
    Err(WorkflowError::Contended)
}

/// Returns the stock of a product whose first shard was not found, without moving it.
///
/// # Errors
/// [`WorkflowError::Table`].
pub(crate) async fn seen<A: Copy + Debug>(
    table: &Table,
    id: &ProductId,
) -> Result<Option<Stored<Stock>>, WorkflowError<A>> {
    Ok(match table.get(&product::old_stock(id)?).await? {
        // Another writer has moved it meanwhile, or the product has no stock.
        None => table.get(&product::stock(id)?).await?,
        old => old,
    })
}

/// Returns [`None`] for a stock that cannot be decoded, because callers treat it as missing.
///
/// # Errors
/// Those of `stock` that are not of the decoding.
pub fn readable<A: Copy + Debug>(
    stock: Result<Option<Stored<Stock>>, WorkflowError<A>>,
) -> Result<Option<Stored<Stock>>, WorkflowError<A>> {
    match stock {
        Err(WorkflowError::Table(TableError::Decode(_))) => Ok(None),
        stock => stock,
    }
}

/// Moves the stocks to which lines could not return their pieces, because the stocks were missing.
/// Returns whether at least one was moved, so that another attempt may succeed.
pub(crate) async fn moved_for(
    table: &Table,
    lines: &[Stored<OrderLine>],
    refusals: &Refusals<OrderAction>,
) -> Result<bool, WorkflowError<OrderAction>> {
    let mut is_moved = false;
    for refusal in refusals.iter().filter(|refusal| refusal.item.is_none()) {
        let line = lines.iter().find(|line| OrderAction::Stock(line.line) == refusal.action);
        if let Some(line) = line {
            is_moved |= moved::<OrderAction>(table, &line.product_id).await?.is_some();
        }
    }
    Ok(is_moved)
}
