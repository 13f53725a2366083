//! The removal of a document with its history, and of the texts of a discarded draft.
//!
//! A history is unbounded, and the texts of a draft can be too large for one transaction. So the
//! first write only marks the head. From then on no caller sees the deleted document or the
//! discarded draft. The other steps remove items, within a [`Budget`]. A repeated request or the
//! janitor can run each step again.

use key_schema::customer::CustomerAction;
use key_schema::document::{self, Document, DocumentAction, DocumentVersion, REMOVED_AT_ONCE};
use key_schema::id::DocumentId;
use key_schema::item::Stored;
use key_schema::request::Transaction;
use table::{Budget, Page, Table, TableError};

use crate::engine::{self, Bound, ONCE, Standing, Stop, Worker, workflow};

/// The number of versions per round. Each version may have added up to 50 texts.
const ROUND: usize = 25;

/// An error that stopped a removal. [`WorkflowError::Refused`](crate::WorkflowError::Refused) means
/// that the table does not delete a profile.
pub type RemovalError = crate::WorkflowError<CustomerAction>;

impl RemovalError {
    /// Returns whether the request should end: its budget is used up, or the table is busy or
    /// unreachable. After other errors, other steps can still succeed.
    pub(crate) const fn ends_request(&self) -> bool {
        let Self::Table(error) = self else { return false };
        matches!(
            error,
            TableError::OverBudget | TableError::Throttled | TableError::Unavailable(_) | TableError::Unprocessed(_)
        )
    }
}

workflow! {
    /// Deletes a document with its history. Only the versions name the texts, so the texts are
    /// removed first.
    DeleteDocument of CustomerAction, by Deletion, begun ["documents.retired"];
    Texts => {
        run remove_texts, at most Bound::Budget, crash "documents.texts.removed";
        forward only;
    }
    Versions => {
        run remove_versions, at most Bound::Budget;
        forward only;
    }
    Head => {
        run remove_head, at most ONCE;
        forward only;
    }
}

struct Deletion<'a> {
    table: &'a Table,
    head: &'a Stored<Document>,
    budget: &'a Budget<'a>,
    versions: Option<Page<Stored<DocumentVersion>>>,
}

impl Worker for Deletion<'_> {
    type End = ();

    async fn stands(&mut self, done: Option<DeleteDocument>) -> Result<Standing<DeleteDocument, ()>, RemovalError> {
        Ok(match (done, &self.versions) {
            (None, None) => Standing::At(DeleteDocument::Texts),
            (Some(DeleteDocument::Texts), _) => Standing::At(DeleteDocument::Versions),
            (Some(DeleteDocument::Versions), Some(page)) if page.next.is_some() => Standing::At(DeleteDocument::Texts),
            (Some(DeleteDocument::Versions), _) => Standing::At(DeleteDocument::Head),
            // The head is removed. Or another worker has completed the deletion, and the remaining
            // items may belong to a new document with the same id.
            (Some(DeleteDocument::Head) | None, _) => Standing::Over(()),
        })
    }
}

impl Deletion<'_> {
    async fn remove_texts(&mut self) -> Result<(), Stop<CustomerAction>> {
        let page = self.table.query(&document::history(&self.head.id)?.limit(ROUND)).await?;
        let versions = self.versions.insert(page);
        sweep(self.table, document::sweep_texts(self.head, &versions.items)?, self.budget).await
    }

    async fn remove_versions(&mut self) -> Result<(), Stop<CustomerAction>> {
        let Some(versions) = &self.versions else { return Ok(()) };
        sweep(self.table, document::sweep_versions(self.head, &versions.items)?, self.budget).await
    }

    async fn remove_head(&mut self) -> Result<(), Stop<CustomerAction>> {
        for delete in document::delete(self.head)? {
            // A refusal means that a concurrent request has deleted the document.
            let _ = self.table.transact(&delete).await?;
        }
        Ok(())
    }
}

/// Removes items of a document that is being deleted.
async fn sweep(
    table: &Table,
    transactions: Vec<Transaction<DocumentAction>>,
    budget: &Budget<'_>,
) -> Result<(), Stop<CustomerAction>> {
    for transaction in transactions {
        table.transact(&transaction).await?.map_err(|_| Stop::Late)?;
        budget.pace().await?;
    }
    Ok(())
}

/// Removes a document that is being deleted.
///
/// # Errors
/// [`TableError::OverBudget`] when the history is too long for one request.
pub async fn delete(table: &Table, head: &Stored<Document>, budget: &Budget<'_>) -> Result<(), RemovalError> {
    engine::run(&mut Deletion { table, head, budget, versions: None }).await
}

workflow! {
    /// Removes the texts of a discarded draft.
    DiscardDraft of CustomerAction, by Discard, begun ["documents.draft.discarded"];
    Texts => {
        run remove_texts, at most Bound::Budget, crash "documents.draft.removed";
        forward only;
    }
}

struct Discard<'a> {
    table: &'a Table,
    id: &'a DocumentId,
    budget: &'a Budget<'a>,
    head: Option<Stored<Document>>,
    /// Whether a transaction did not remove the last texts.
    left: bool,
}

impl Worker for Discard<'_> {
    type End = Option<Stored<Document>>;

    async fn stands(&mut self, _: Option<DiscardDraft>) -> Result<Standing<DiscardDraft, Self::End>, RemovalError> {
        if self.left {
            self.budget.pace().await?;
        }
        let head = self.table.get(&document::read_for_update(self.id)?).await?;
        if !head.as_ref().is_some_and(|head| !head.deleting && !head.discarded.is_empty()) {
            return Ok(Standing::Over(head));
        }
        self.head = head;
        Ok(Standing::At(DiscardDraft::Texts))
    }
}

impl Discard<'_> {
    async fn remove_texts(&mut self) -> Result<(), Stop<CustomerAction>> {
        let Some(head) = &self.head else { return Ok(()) };
        self.left = true;
        self.table.transact(&document::discard_texts(head)?).await?.map_err(|_| Stop::Late)?;
        self.left = head.discarded.len() > REMOVED_AT_ONCE;
        Ok(())
    }
}

/// Removes the remaining texts of a discarded draft. Then returns the document's head, or `None`
/// if the document does not exist.
///
/// # Errors
/// [`TableError::OverBudget`] when the texts are too large for one request.
pub async fn discard(
    table: &Table,
    id: &DocumentId,
    budget: &Budget<'_>,
) -> Result<Option<Stored<Document>>, RemovalError> {
    engine::run(&mut Discard { table, id, budget, head: None, left: false }).await
}

/// Continues the removal of a document that is being deleted, or of the texts of a discarded draft.
/// Returns whether there was such a removal.
pub async fn go_on(table: &Table, id: &DocumentId, budget: &Budget<'_>) -> Result<bool, RemovalError> {
    match table.get(&document::read_for_update(id)?).await? {
        Some(head) if head.deleting => delete(table, &head, budget).await.map(|()| true),
        Some(head) if !head.discarded.is_empty() => discard(table, id, budget).await.map(|_| true),
        _ => Ok(false),
    }
}
