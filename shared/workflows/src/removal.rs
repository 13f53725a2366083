//! The removal of a document with its history, and of the texts of a discarded draft.
//!
//! A history is unbounded, and the texts of a draft can be too large for one transaction. So the
//! first write only marks the head. From then on no caller sees the deleted document or the
//! discarded draft. The other steps remove items, within a [`Budget`]. A repeated request or the
//! janitor can run each step again.

use key_schema::document::{self, Document, DocumentAction, REMOVED_AT_ONCE};
use key_schema::id::DocumentId;
use key_schema::item::{EncodeError, Stored};
use key_schema::key::KeyError;
use key_schema::request::Transaction;
use table::{Budget, Table, TableError};

/// The number of versions per round. Each version may have added up to 50 texts.
const ROUND: usize = 25;

/// An error that stopped a removal. The steps so far remain, and another worker can continue.
#[derive(Debug, thiserror::Error)]
pub enum RemovalError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

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

impl From<KeyError> for RemovalError {
    fn from(error: KeyError) -> Self {
        Self::Encode(error.into())
    }
}

/// Removes a document that is being deleted: first its texts, then the versions that name them, and
/// last the head.
///
/// # Errors
/// [`TableError::OverBudget`] when the history is too long for one request.
pub async fn delete(table: &Table, head: &Stored<Document>, budget: &Budget<'_>) -> Result<(), RemovalError> {
    loop {
        let page = table.query(&document::history(&head.id)?.limit(ROUND)).await?;
        // The texts are removed first, because only the versions name them.
        let texts = sweep(table, document::sweep_texts(head, &page.items)?, budget).await?;
        telemetry::crash_point("documents.texts.removed");
        if !texts || !sweep(table, document::sweep_versions(head, &page.items)?, budget).await? {
            return Ok(());
        }
        if page.next.is_none() {
            break;
        }
    }
    for delete in document::delete(head)? {
        // A refusal means that a concurrent request has deleted the document.
        let _ = table.transact(&delete).await?;
    }
    Ok(())
}

/// Removes items of a document that is being deleted. Returns false if another worker has completed
/// the deletion. The remaining items may then belong to a new document with the same id.
async fn sweep(
    table: &Table,
    transactions: Vec<Transaction<DocumentAction>>,
    budget: &Budget<'_>,
) -> Result<bool, RemovalError> {
    for transaction in transactions {
        if table.transact(&transaction).await?.is_err() {
            return Ok(false);
        }
        budget.pace().await?;
    }
    Ok(true)
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
    loop {
        let head = match table.get(&document::read_for_update(id)?).await? {
            Some(head) if !head.deleting && !head.discarded.is_empty() => head,
            other => return Ok(other),
        };
        // A refusal means that another worker has taken this step, or that the document changed.
        let taken = table.transact(&document::discard_texts(&head)?).await?.is_ok();
        telemetry::crash_point("documents.draft.removed");
        if !taken || head.discarded.len() > REMOVED_AT_ONCE {
            budget.pace().await?;
        }
    }
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
