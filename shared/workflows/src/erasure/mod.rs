//! The erasure of a customer.
//!
//! The request first marks the profile. From then on the table refuses transactions that need the
//! customer, so the customer gets no further items. The profile is deleted after the belongings, so
//! that another worker can continue an interrupted erasure. Every step can run again.
//!
//! The function `customers` does this work within the budget of its request. The janitor finishes
//! the erasures that no client repeats.

mod documents;
mod edges;
mod memberships;
mod questions;

use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::{cart, customer};
use table::{Budget, Table, TableError};

use crate::removal::RemovalError;

/// Removes the items that the customer or others may add while the profile exists: the cart,
/// questions, follows, likes, invitations, memberships and documents.
///
/// # Errors
/// [`TableError::OverBudget`] when there are more items than one request removes.
pub async fn erase_belongings(table: &Table, customer: &CustomerId, budget: &Budget<'_>) -> Result<(), RemovalError> {
    // The write has no condition that could refuse it.
    let _ = table.write(&cart::discard(customer)?).await?;
    questions::erase(table, customer, budget).await?;
    edges::erase(table, customer, budget).await?;
    memberships::erase_invitations(table, customer, budget).await?;
    memberships::erase(table, customer, budget).await?;
    documents::erase(table, customer, budget).await
}

/// Continues an erasure that has begun, until the profile is deleted. Returns whether this call
/// deleted it. The transaction that deletes the profile notes the erasure. The janitor's work on
/// the note is the rest of the erasure.
///
/// # Errors
/// As [`erase_belongings`].
pub async fn go_on(table: &Table, customer: &CustomerId, budget: &Budget<'_>) -> Result<bool, RemovalError> {
    let read = async || table.get(&customer::read_for_update(customer)?).await.map_err(RemovalError::from);
    if read().await?.is_none_or(|profile| profile.erasing_since.is_none()) {
        return Ok(false);
    }
    erase_belongings(table, customer, budget).await?;
    // The list may be outdated, so the current profile decides. Its version cannot have changed.
    let Some(profile) = read().await?.filter(|profile| profile.erasing_since.is_some()) else { return Ok(false) };
    match table.transact(&customer::delete(&profile, Instant::now())?).await? {
        Ok(()) => Ok(true),
        Err(_) => Err(TableError::Contended.into()),
    }
}
