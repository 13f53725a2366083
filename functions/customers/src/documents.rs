//! Removes an erased customer from documents. The customer's personal documents are deleted.
//! Documents of organizations and of other customers lose the customer as owner or editor.

use http_api::{Problem, Services};
use key_schema::document::{self, CustomerDocument, Document, Tie};
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use table::Budget;

/// The documents per page.
const PAGE: usize = 25;
/// The number of versions that one step removes. Each version may have added 50 texts.
const VERSIONS: usize = 25;

/// Removes a customer from every document, and deletes personal documents with their history. The
/// function can be called again after a failure.
///
/// # Errors
/// 503 `throttled` when there are more documents than one request removes.
pub async fn erase(services: &Services, customer: &CustomerId, budget: &Budget<'_>) -> Result<(), Problem> {
    loop {
        // Every read is strong and starts at the first page, because ended ties no longer exist. If
        // a conflict prevented the end of a tie, the next read finds it again.
        let ties = services.table.query(&document::of_customer(customer)?.limit(PAGE)).await?.items;
        if ties.is_empty() {
            return Ok(());
        }
        for tie in &ties {
            settle(services, tie, budget).await?;
            budget.pace().await?;
        }
    }
}

/// Ends the customer's tie (owner or editor) to one document. A refusal means that another request
/// changed the item. Then the next read shows the new state.
async fn settle(services: &Services, tie: &Stored<CustomerDocument>, budget: &Budget<'_>) -> Result<(), Problem> {
    let customer = &tie.customer_id;
    let head = services.table.get(&document::read_for_update(&tie.document_id)?).await?;
    match head {
        Some(head) if tie.tie == Tie::Editor || (head.is_owner(customer) && head.organization_id.is_some()) => {
            let _ = services.table.transact(&document::release(&head, customer, tie.tie)?).await?;
        }
        Some(head) if head.is_owner(customer) => delete(services, head, customer, budget).await?,
        _ => {
            let _ = services.table.write(&document::forget(tie)?).await?;
        }
    }
    Ok(())
}

/// Deletes a document as the function `documents` does for its owner, or continues a deletion. It
/// first hides the document, and it removes the head last.
async fn delete(
    services: &Services,
    head: Stored<Document>,
    customer: &CustomerId,
    budget: &Budget<'_>,
) -> Result<(), Problem> {
    let head = if head.deleting {
        head
    } else {
        let retire = document::retire(&head.id, head.meta.version, Some(customer), Instant::now())?;
        let Ok(head) = services.table.update(&retire).await? else { return Ok(()) };
        head
    };
    loop {
        let page = services.table.query(&document::history(&head.id)?.limit(VERSIONS)).await?;
        // The texts are removed first, because only the versions name them.
        budget.write(&document::sweep_texts(&head, &page.items)?).await?;
        budget.write(&document::sweep_versions(&page.items)?).await?;
        if page.next.is_none() {
            break;
        }
    }
    for delete in document::delete(&head)? {
        let _ = services.table.transact(&delete).await?;
    }
    Ok(())
}
