//! Copies stock and rating from their own items to the product's item, because the product's search
//! document needs them. [`key_schema::product::copies`] explains why the copies converge, and why
//! most stream records cause no copy.

use key_schema::entity::AnyEntity;
use key_schema::item::Stored;
use key_schema::product::{self, ReviewStats, Stock};

use super::{DeriveError, copy};
use crate::batch::Change;
use crate::ports::Items;

/// Copies whether a product is in stock, if that changed.
pub(super) async fn stock<I: Items>(table: &I, change: &Change, new: &Stored<Stock>) -> Result<(), DeriveError> {
    let changed = match change {
        // A product is written together with its first stock and already has this value.
        Change::Created { .. } | Change::Removed { .. } => false,
        Change::Changed { old: Some(AnyEntity::Stock(old)), .. } => old.in_stock() != new.in_stock(),
        // The old image cannot be read, so the value is copied anyway. That costs only one write.
        Change::Changed { .. } => true,
    };
    if changed { copy(table, &product::copy_stock(new)?).await } else { Ok(()) }
}

/// Copies a product's rating count and sum, if they changed.
pub(super) async fn rating<I: Items>(table: &I, change: &Change, new: &Stored<ReviewStats>) -> Result<(), DeriveError> {
    let added_up = |stats: &ReviewStats| (stats.rating_count, stats.rating_sum);
    let changed = match change.before() {
        Some(AnyEntity::ReviewStats(old)) => added_up(old) != added_up(new),
        _ => true,
    };
    if changed { copy(table, &product::copy_rating(new)?).await } else { Ok(()) }
}
