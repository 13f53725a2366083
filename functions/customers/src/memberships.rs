//! What an erased customer was a member of.
//!
//! The index that has the memberships follows by a moment. One that it does not show yet stays behind, and allows nothing: whoever changes an organization
//! needs a profile, too.

use http_api::{Problem, Store};
use key_schema::id::{CustomerId, OrganizationId};
use key_schema::organization;
use table::{Backoff, TableError, TransactError};

use crate::erase::Budget;

/// Memberships that are looked at together.
const PAGE: usize = 25;

/// Ends every membership of a customer, also that of the last admin of an organization. Done twice it does no harm.
///
/// # Errors
/// 503 `throttled` when there are more than one request ends.
pub async fn erase(store: &Store, customer: &CustomerId, budget: Budget) -> Result<(), Problem> {
    let mut after = None;
    loop {
        // What was ended may be read again, so the list is gone through once.
        let page = store.table.query(&organization::of_customer(customer)?.limit(PAGE).after(after)).await?;
        for (number, membership) in page.items.iter().enumerate() {
            if number > 0 {
                budget.is_left()?;
            }
            end(store, &membership.id, customer).await?;
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
        budget.is_left()?;
    }
}

/// Ends a membership as it is now: its organization counts by its role and team.
async fn end(store: &Store, organization: &OrganizationId, customer: &CustomerId) -> Result<(), Problem> {
    let mut backoff = Backoff::new();
    loop {
        let Some(member) = store.table.get(&organization::erasable(organization, customer)?).await? else {
            return Ok(());
        };
        match store.table.transact(&organization::erase_member(&member)?).await {
            Ok(()) => return Ok(()),
            // Somebody changed it after it was read.
            Err(TransactError::Refused(_)) => {}
            Err(TransactError::Table(error)) => return Err(error.into()),
        }
        if !backoff.wait().await {
            return Err(TableError::Contended.into());
        }
    }
}
