//! Writing documents until they are written.

use search_index::{BulkOperation, BulkOutcome, SearchClient};
use table::Backoff;

use crate::error::OpsError;

/// How many times documents that the engine cannot take at the moment are sent, each time with the client's own retries.
const ROUNDS: usize = 10;
/// There is no such index, or it is not written to.
const NO_INDEX: u16 = 404;

/// Where documents go.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<'a> {
    /// To every index that changes are written to.
    All,
    /// To one index alone.
    Index(&'a str),
}

/// A document that the engine will never take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) document_id: String,
    pub(crate) status: u16,
}

/// What came of writing documents. What is in neither list is in the index.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Those that the engine will never take.
    pub(crate) refused: Vec<Refused>,
    /// Those that it knows something newer of: a document, or for a minute one that was deleted.
    pub(crate) stale: Vec<BulkOperation>,
}

/// Writes documents.
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
                    return Err(OpsError::Failed("the index is not there, or no longer written to".to_owned()));
                }
                // Not the reason: it may quote the document.
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
    Err(OpsError::Unreachable { what: "the search engine", reason: format!("{} documents are not taken", open.len()) })
}
