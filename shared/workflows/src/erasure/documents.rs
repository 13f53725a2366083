//! Removes an erased customer from documents. The customer's personal documents are deleted.
//! Documents of organizations and of other customers lose the customer as owner or editor.

use key_schema::document::{self, CustomerDocument, Document, Tie};
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use table::{Budget, Table};

use crate::removal::{self, RemovalError};

/// The documents per page.
const PAGE: usize = 25;

/// Removes a customer from every document, and deletes personal documents with their history. The
/// function can be called again after a failure.
///
/// # Errors
/// [`table::TableError::OverBudget`] when there are more documents than one request removes.
pub(super) async fn erase(table: &Table, customer: &CustomerId, budget: &Budget<'_>) -> Result<(), RemovalError> {
    loop {
        // Every read is strong and starts at the first page, because ended ties no longer exist. A
        // tie with a conflict is read again.
        let ties = table.query(&document::of_customer(customer)?.limit(PAGE)).await?.items;
        if ties.is_empty() {
            return Ok(());
        }
        for tie in &ties {
            settle(table, tie, budget).await?;
            budget.pace().await?;
        }
    }
}

/// Ends the customer's tie (owner or editor) to one document. A refusal means that another request
/// changed the item. Then the next read shows the new state.
async fn settle(table: &Table, tie: &Stored<CustomerDocument>, budget: &Budget<'_>) -> Result<(), RemovalError> {
    let customer = &tie.customer_id;
    let head = table.get(&document::read_for_update(&tie.document_id)?).await?;
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

/// Deletes a document as the function `documents` does for its owner, or continues a deletion.
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
