//! Writes documents, and retries until the engine has accepted or refused each document.

use search_index::{BulkOperation, BulkOutcome, SearchClient};
use table::Backoff;

use crate::error::OpsError;

/// Each attempt includes the client's own retries.
const ROUNDS: usize = 10;
/// The status when the index or the write alias does not exist.
const NO_INDEX: u16 = 404;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<'a> {
    /// Every index that receives changes.
    All,
    Index(&'a str),
}

/// A document that the engine will never accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) document_id: String,
    pub(crate) status: u16,
}

/// The result of writing documents. A document that is in neither list is in the index.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) refused: Vec<Refused>,
    /// The operations that the engine rejected because it knows a newer version. The engine also
    /// remembers the version of a deleted document for a minute.
    pub(crate) stale: Vec<BulkOperation>,
}

pub(crate) async fn write(
    client: &SearchClient,
    target: Target<'_>,
    operations: Vec<BulkOperation>,
) -> Result<Written, OpsError> {
    let mut written = Written::default();
    let mut open = operations;
    let mut backoff = Backoff::new();
    for _ in 0..ROUNDS {
        if open.is_empty() {
            return Ok(written);
        }
        let outcomes = match target {
            Target::All => client.bulk(&open).await?,
            Target::Index(index) => client.bulk_into(index, &open).await?,
        };
        let mut again = Vec::new();
        for (operation, outcome) in open.into_iter().zip(outcomes) {
            match outcome {
                BulkOutcome::Applied => {}
                BulkOutcome::Stale => written.stale.push(operation),
                BulkOutcome::Retryable { .. } => again.push(operation),
                BulkOutcome::Rejected { status: NO_INDEX, .. } => {
                    return Err(OpsError::Failed("the index does not exist, or is no longer written to".to_owned()));
                }
                // The result does not keep the engine's reason, because it may quote the document.
                BulkOutcome::Rejected { status, .. } => {
                    written.refused.push(Refused { document_id: operation.document_id().to_owned(), status });
                }
            }
        }
        open = again;
        if !open.is_empty() && !backoff.wait().await {
            backoff = Backoff::new();
        }
    }
    if open.is_empty() {
        return Ok(written);
    }
    Err(OpsError::Unreachable { what: "the search engine", reason: format!("{} documents were rejected", open.len()) })
}
