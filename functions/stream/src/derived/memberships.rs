//! Copies of a product in the lists of further categories. [`key_schema::membership`] explains why
//! they converge to the newest state.
//!
//! The memberships are read with strong consistency after the record arrives. A membership that is
//! created later already contains the record's version of the product, or a newer version.

use key_schema::entity::AnyEntity;
use key_schema::item::Stored;
use key_schema::membership;
use key_schema::product::Product;

use super::{DeriveError, copy};
use crate::batch::Change;
use crate::ports::Items;

/// Refreshes the copies of a product, if the change affects them.
pub(super) async fn refresh<I: Items>(table: &I, change: &Change, new: &Stored<Product>) -> Result<(), DeriveError> {
    let shown = match change {
        // A new product is in no further category yet.
        Change::Created { .. } | Change::Removed { .. } => false,
        Change::Changed { old: Some(AnyEntity::Product(old)), .. } => membership::shows(old, new),
        Change::Changed { .. } => true,
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
