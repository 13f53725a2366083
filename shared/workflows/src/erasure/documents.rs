//! Removes an erased customer from documents. The customer's personal documents are deleted.
//! Documents of organizations and of other customers lose the customer as owner or editor.

use key_schema::document::{self, CustomerDocument, Document, Tie};
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use table::{Budget, Table};

use crate::removal::{self, RemovalError};

const PAGE: usize = 25;

/// Removes a customer from every document, and deletes the customer's personal documents with their
/// history. The function can be called again after a failure.
///
/// # Errors
/// [`table::TableError::OverBudget`] when there are more documents than one request removes.
pub(super) async fn erase(
    table: &Table,
    customer: &CustomerId,
    until: Instant,
    budget: &Budget<'_>,
) -> Result<(), RemovalError> {
    let (mut after, mut found) = (None, false);
    loop {
        let page = table.query(&document::of_customer(customer)?.limit(PAGE).after(after)).await?;
        for tie in page.items.iter().filter(|tie| tie.meta.created_at < until) {
            settle(table, tie, until, budget).await?;
            budget.pace().await?;
            found = true;
        }
        after = page.next;
        // Every read is strong. The loop reads the list again until it finds no entry from before
        // `until`, because an entry remains after a conflict.
        if after.is_none() && !std::mem::take(&mut found) {
            return Ok(());
        }
    }
}

/// Ends the customer's role (owner or editor) in one document. A refusal means that another request
/// changed the item. Then the next read shows the new state.
async fn settle(
    table: &Table,
    tie: &Stored<CustomerDocument>,
    until: Instant,
    budget: &Budget<'_>,
) -> Result<(), RemovalError> {
    let customer = &tie.customer_id;
    let head = table.get(&document::read_for_update(&tie.document_id)?).await?;
    // A head from after `until` belongs to a new document with the same id. The
    // [`CustomerDocument`] belongs to the earlier document.
    let head = head.filter(|head| head.meta.created_at < until);
    match head {
        Some(head) if tie.tie == Tie::Editor || (head.is_owner(customer) && head.organization_id.is_some()) => {
            let _ = table.transact(&document::release(&head, customer, tie.tie)?).await?;
        }
        Some(head) if head.is_owner(customer) => delete(table, head, customer, budget).await?,
        _ => {
            let _ = table.write(&document::forget(tie)?).await?;
        }
    }
    Ok(())
}

/// Deletes a document, or continues its deletion. The owner's request to the function `documents`
/// has the same effect.
async fn delete(
    table: &Table,
    head: Stored<Document>,
    customer: &CustomerId,
    budget: &Budget<'_>,
) -> Result<(), RemovalError> {
    let head = if head.deleting {
        head
    } else {
        let retire = document::retire(&head.id, head.meta.version, Some(customer), Instant::now())?;
        let Ok(head) = table.update(&retire).await? else { return Ok(()) };
        head
    };
    removal::delete(table, &head, budget).await
}
