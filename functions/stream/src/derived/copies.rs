//! Copies of a product's data, which follow their sources.
//!
//! - Stock and rating have their own items. The product's item has copies of both, because the
//!   product's search document needs them. [`key_schema::product::copies`] explains why the copies
//!   converge, and why most stream records cause no copy.
//! - The list of a parent has copies of its variants ([`key_schema::variant`]), and the list of a
//!   further category has copies of its products ([`key_schema::membership`]).

use key_schema::entity::AnyEntity;
use key_schema::id::LocationId;
use key_schema::item::Stored;
use key_schema::product::{self, Product, ReviewStats, Stock};
use key_schema::{membership, variant};

use super::{DeriveError, copy};
use crate::batch::Mutation;
use crate::ports::Items;

/// Copies whether a product is in stock, if that changed.
pub(super) async fn stock<I: Items>(table: &I, change: &Mutation, new: &Stored<Stock>) -> Result<(), DeriveError> {
    // Customers buy only from `main`.
    if new.location != LocationId::main() {
        return Ok(());
    }
    let (changed, in_shards) = match change {
        // A product is written together with its first stock and already has this value. A new shard
        // has pieces of the others.
        Mutation::Created { .. } | Mutation::Removed { .. } => (false, false),
        Mutation::Changed { old: Some(AnyEntity::Stock(old)), .. } => {
            let in_shards = new.shard > 0 || old.shards.or(new.shards).is_some();
            (old.in_stock() != new.in_stock() || old.shards != new.shards, in_shards)
        }
        // The old image cannot be read, so the value is copied anyway. That costs only one write.
        Mutation::Changed { .. } => (true, true),
    };
    match (changed, in_shards) {
        (false, _) => Ok(()),
        (true, false) => copy(table, &product::copy_stock(new)?).await,
        (true, true) => shards(table, new).await,
    }
}

/// The maximum number of attempts while other consumers write the product or orders write the stock.
const ATTEMPTS: usize = 8;

/// Copies whether a product with a stock in shards is in stock.
async fn shards<I: Items>(table: &I, new: &Stored<Stock>) -> Result<(), DeriveError> {
    let id = &new.product_id;
    for _ in 0..ATTEMPTS {
        let Some(product) = table.get(&product::read_for_update(id)?).await? else { return Ok(()) };
        // A stock without a first shard is not moved yet, and is not in shards.
        let Some(mut whole) = table.get(&product::stock(id)?).await? else {
            return copy(table, &product::copy_stock(new)?).await;
        };
        if let Some(further) = product::further_shards(&whole)? {
            let further = table.batch_get(&further).await?;
            // A shard that is missing was merged after the first shard was read.
            let Some(further) = further.into_iter().collect::<Option<Vec<_>>>() else { continue };
            whole.data.available += further.iter().map(|shard| shard.available).sum::<u64>();
        }
        if table.write(&product::copy_shards(&product, &whole)?).await?.is_ok() {
            telemetry::crash_point("stream.derived.applied");
            return Ok(());
        }
    }
    Err(DeriveError::Overtaken)
}

/// Copies a product's rating count and sum, if they changed.
pub(super) async fn rating<I: Items>(
    table: &I,
    change: &Mutation,
    new: &Stored<ReviewStats>,
) -> Result<(), DeriveError> {
    let added_up = |stats: &ReviewStats| (stats.rating_count, stats.rating_sum);
    let changed = match change.before() {
        Some(AnyEntity::ReviewStats(old)) => added_up(old) != added_up(new),
        _ => true,
    };
    if changed { copy(table, &product::copy_rating(new)?).await } else { Ok(()) }
}

/// Refreshes the copy of a variant in the list of its parent, if the change affects it.
pub(super) async fn variant<I: Items>(table: &I, change: &Mutation, new: &Stored<Product>) -> Result<(), DeriveError> {
    let shown = match change {
        // The transaction that creates a variant also creates the copy.
        Mutation::Created { .. } | Mutation::Removed { .. } => false,
        // A revival may change every attribute of the variant.
        Mutation::Changed { old: Some(AnyEntity::Product(old)), .. } => old.retired || variant::shows(old, new),
        Mutation::Changed { .. } => true,
    };
    if shown && let Some(refresh) = variant::refresh(new)? {
        copy(table, &refresh).await?;
    }
    Ok(())
}

/// Refreshes the copies of a product in the lists of further categories, if the change affects them.
///
/// The memberships are read with strong consistency after the record arrives. A membership that is
/// created later already contains the record's version of the product, or a newer version.
pub(super) async fn memberships<I: Items>(
    table: &I,
    change: &Mutation,
    new: &Stored<Product>,
) -> Result<(), DeriveError> {
    let shown = match change {
        // A new product is in no further category yet.
        Mutation::Created { .. } | Mutation::Removed { .. } => false,
        Mutation::Changed { old: Some(AnyEntity::Product(old)), .. } => membership::shows(old, new),
        Mutation::Changed { .. } => true,
    };
    if !shown {
        return Ok(());
    }
    for member in table.query(&membership::of_product(&new.id)?).await?.items {
        if member.source_rev < new.meta.rev {
            copy(table, &membership::refresh(new, &member.path)?).await?;
        }
    }
    Ok(())
}
