//! The copies of variants in the lists of their parents. [`key_schema::variant`] explains why they
//! converge to the newest state.

use key_schema::entity::AnyEntity;
use key_schema::item::Stored;
use key_schema::product::Product;
use key_schema::variant;

use super::{DeriveError, copy};
use crate::batch::Change;
use crate::ports::Items;

/// Refreshes the copy of a variant, if the change affects it.
pub(super) async fn refresh<I: Items>(table: &I, change: &Change, new: &Stored<Product>) -> Result<(), DeriveError> {
    let shown = match change {
        // The transaction that creates a variant also creates the copy.
        Change::Created { .. } | Change::Removed { .. } => false,
        // A revival may change every attribute of the variant.
        Change::Changed { old: Some(AnyEntity::Product(old)), .. } => old.retired || variant::shows(old, new),
        Change::Changed { .. } => true,
    };
    if shown && let Some(refresh) = variant::refresh(new)? {
        copy(table, &refresh).await?;
    }
    Ok(())
}
