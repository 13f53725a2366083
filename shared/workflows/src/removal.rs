//! The removal of a document with its history, and of the texts of a discarded draft.
//!
//! A history is unbounded, and the texts of a draft can be too large for one transaction. So the
//! first write only marks the head, and decides: from then on no caller sees the document, or the
//! draft. The other steps remove items, within a [`Budget`]. Each step can run again, by a
//! repetition of the request or by the janitor.

use key_schema::document::{self, DISCARDED_AT_ONCE, Document};
use key_schema::id::DocumentId;
use key_schema::item::{EncodeError, Stored};
use key_schema::key::KeyError;
use table::{Budget, Table, TableError};

/// The versions per round. Each may have added 50 texts.
const ROUND: usize = 25;

/// An error that stopped a removal. The steps so far remain, and another worker can continue.
#[derive(Debug, thiserror::Error)]
pub enum RemovalError {
    /// The table did not execute a request, or the budget is used up.
    #[error(transparent)]
    Table(#[from] TableError),
    /// An item cannot be encoded for DynamoDB.
    #[error(transparent)]
    Encode(#[from] EncodeError),
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
        budget.write(&document::sweep_texts(head, &page.items)?).await?;
        telemetry::crash_point("documents.texts.removed");
        budget.write(&document::sweep_versions(&page.items)?).await?;
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

/// Removes the remaining texts of a discarded draft. Returns the head afterwards, if the document
/// exists.
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
        if !taken || head.discarded.len() > DISCARDED_AT_ONCE {
            budget.pace().await?;
        }
    }
}

/// Continues the removal of a document or of a discarded draft, in whichever state the document is.
/// Returns whether there was such a removal.
///
/// # Errors
/// As [`delete`].
pub async fn go_on(table: &Table, id: &DocumentId, budget: &Budget<'_>) -> Result<bool, RemovalError> {
    match table.get(&document::read_for_update(id)?).await? {
        Some(head) if head.deleting => delete(table, &head, budget).await.map(|()| true),
        Some(head) if !head.discarded.is_empty() => discard(table, id, budget).await.map(|_| true),
        _ => Ok(false),
    }
}
