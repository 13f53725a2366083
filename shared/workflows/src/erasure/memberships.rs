//! Ends the memberships and the invitations of an erased customer.
//!
//! The index of memberships is eventually consistent, so the erasure may miss a membership. Such a
//! membership grants nothing, because a change of an organization is refused if the caller has no
//! profile.

use key_schema::id::{CustomerId, OrganizationId};
use key_schema::instant::Instant;
use key_schema::organization::{self, invitation};
use table::{Budget, Table, retry_on_conflict};

use crate::removal::RemovalError;

const PAGE: usize = 25;

/// Ends every membership of a customer, even if the customer is an organization's last admin. The
/// function can be called again after a failure.
///
/// # Errors
/// [`table::TableError::OverBudget`] when one call cannot end all memberships of the customer.
pub(super) async fn erase(
    table: &Table,
    customer: &CustomerId,
    until: Instant,
    budget: &Budget<'_>,
) -> Result<(), RemovalError> {
    let mut after = None;
    loop {
        // The index may still show ended memberships. So the loop reads each page only once, and
        // does not wait for an empty page.
        let page = table.query(&organization::of_customer(customer)?.limit(PAGE).after(after)).await?;
        for membership in &page.items {
            end(table, &membership.id, customer, until).await?;
            budget.pace().await?;
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Removes every invitation of a customer. The function can be called again after a failure.
///
/// # Errors
/// [`table::TableError::Contended`] when other requests keep changing the invitations.
pub(super) async fn erase_invitations(
    table: &Table,
    customer: &CustomerId,
    until: Instant,
    budget: &Budget<'_>,
) -> Result<(), RemovalError> {
    retry_on_conflict(async || {
        let roster = table.get(&invitation::roster(customer)?).await?;
        let Some(roster) = roster.filter(|roster| roster.meta.created_at < until) else { return Ok(Some(())) };
        budget.write(&invitation::erase(&roster)?).await?;
        Ok(table.write(&invitation::forget(&roster)?).await?.ok())
    })
    .await
}

/// Ends a membership. It reads the current item first, because the organization's counters depend
/// on the member's role and team.
async fn end(
    table: &Table,
    organization: &OrganizationId,
    customer: &CustomerId,
    until: Instant,
) -> Result<(), RemovalError> {
    retry_on_conflict(async || {
        let member = table.get(&organization::erasable(organization, customer)?).await?;
        let Some(member) = member.filter(|member| member.meta.created_at < until) else { return Ok(Some(())) };
        Ok(table.transact(&organization::erase_member(&member)?).await?.ok())
    })
    .await
}
