//! Writing many documents in one request.

use serde::{Deserialize, Serialize};

use crate::document::{Collection, SearchDocument, Tombstone};
use crate::error::SearchError;
use crate::transport::is_transient;

/// A request is closed when the next operation would exceed this. OpenSearch Service refuses requests
/// over 10 MiB on its smaller instances, and recommends 3 to 5.
const MAX_REQUEST_BYTES: usize = 4 * 1024 * 1024;

/// A request is closed when it holds this many operations.
const MAX_REQUEST_OPERATIONS: usize = 1_000;

/// One document to be written, or to be marked as removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkOperation {
    collection: Collection,
    document_id: String,
    rev: u64,
    source: String,
}

impl BulkOperation {
    /// Writes `document` under `document_id` ([`crate::document_id`]), unless the index holds a
    /// write of a higher `rev`. The same `rev` is written again, so that a repair may land.
    pub fn index<D: SearchDocument>(document_id: String, rev: u64, document: &D) -> Result<Self, SearchError> {
        Self::new(D::COLLECTION, document_id, rev, document)
    }

    /// Replaces the document with a tombstone, unless the index holds a write of a higher `rev`.
    /// `deleted_at` is RFC 3339 UTC with milliseconds.
    pub fn tombstone(
        collection: Collection,
        document_id: String,
        rev: u64,
        deleted_at: &str,
    ) -> Result<Self, SearchError> {
        Self::new(collection, document_id, rev, &Tombstone::new(deleted_at))
    }

    fn new(
        collection: Collection,
        document_id: String,
        rev: u64,
        source: &impl Serialize,
    ) -> Result<Self, SearchError> {
        let source = serde_json::to_string(source).map_err(|error| SearchError::Request(error.to_string()))?;
        Ok(Self { collection, document_id, rev, source })
    }

    /// The collection that is written to.
    pub fn collection(&self) -> Collection {
        self.collection
    }

    /// The `_id` of the document.
    pub fn document_id(&self) -> &str {
        &self.document_id
    }

    /// The item's `rev`, the document's external version.
    pub fn rev(&self) -> u64 {
        self.rev
    }

    /// The operation as the two lines of the bulk format. `alias` is the collection's.
    fn lines(&self, alias: &str) -> Result<String, SearchError> {
        let action = Action {
            index: Target {
                index: alias,
                id: &self.document_id,
                version: self.rev,
                version_type: "external_gte",
                require_alias: true,
            },
        };
        let action = serde_json::to_string(&action).map_err(|error| SearchError::Request(error.to_string()))?;
        Ok(format!("{action}\n{}\n", self.source))
    }
}

#[derive(Serialize)]
struct Action<'a> {
    index: Target<'a>,
}

#[derive(Serialize)]
struct Target<'a> {
    #[serde(rename = "_index")]
    index: &'a str,
    #[serde(rename = "_id")]
    id: &'a str,
    version: u64,
    version_type: &'static str,
    // Without it a write that comes before the index exists would create one with a guessed mapping.
    require_alias: bool,
}

/// What became of one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BulkOutcome {
    /// The document is in the index.
    Applied,
    /// The index already holds a newer write of the document; nothing is left to do.
    Stale,
    /// The engine could not take it now: throttled, failing or unreachable. Send it again later.
    Retryable {
        /// Why, for operators.
        reason: String,
    },
    /// The engine will never take it.
    Rejected {
        /// The item's status.
        status: u16,
        /// The engine's explanation; it may quote a value of the document.
        reason: String,
    },
}

impl BulkOutcome {
    /// Whether the index now holds this write or a newer one.
    pub fn is_durable(&self) -> bool {
        matches!(self, Self::Applied | Self::Stale)
    }
}

/// A request's body, and the positions of its operations among all that were given.
pub(crate) struct BulkRequest {
    pub positions: Vec<usize>,
    pub body: Vec<u8>,
}

/// Splits operations, each given with its position, into requests of a size that the engine takes.
pub(crate) fn requests<'a>(
    operations: impl Iterator<Item = (usize, &'a BulkOperation)>,
    alias: impl Fn(Collection) -> String,
) -> Result<Vec<BulkRequest>, SearchError> {
    let mut requests: Vec<BulkRequest> = Vec::new();
    for (position, operation) in operations {
        let lines = operation.lines(&alias(operation.collection))?;
        match requests.last_mut() {
            Some(request)
                if request.body.len() + lines.len() <= MAX_REQUEST_BYTES
                    && request.positions.len() < MAX_REQUEST_OPERATIONS =>
            {
                request.positions.push(position);
                request.body.extend_from_slice(lines.as_bytes());
            }
            _ => requests.push(BulkRequest { positions: vec![position], body: lines.into_bytes() }),
        }
    }
    Ok(requests)
}

/// The outcomes in an answer to a request of `expected` operations, in their order.
pub(crate) fn outcomes(answer: &[u8], expected: usize) -> Result<Vec<BulkOutcome>, SearchError> {
    let answer: BulkAnswer = serde_json::from_slice(answer).map_err(|error| SearchError::Answer(error.to_string()))?;
    if answer.items.len() != expected {
        let got = answer.items.len();
        return Err(SearchError::Answer(format!("{got} outcomes for {expected} operations")));
    }
    Ok(answer.items.into_iter().map(|item| item.index.into()).collect())
}

#[derive(Deserialize)]
struct BulkAnswer {
    items: Vec<BulkItem>,
}

#[derive(Deserialize)]
struct BulkItem {
    index: ItemResult,
}

#[derive(Deserialize)]
struct ItemResult {
    status: u16,
    error: Option<ItemError>,
}

#[derive(Deserialize)]
struct ItemError {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    reason: String,
}

impl From<ItemResult> for BulkOutcome {
    fn from(item: ItemResult) -> Self {
        let reason = match &item.error {
            Some(error) => format!("{}: {}", error.kind, error.reason),
            None => format!("status {}", item.status),
        };
        match item.status {
            200..=299 => Self::Applied,
            409 => Self::Stale,
            status if is_transient(status) || status >= 500 => Self::Retryable { reason },
            status => Self::Rejected { status, reason },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    fn tombstone(id: &str) -> BulkOperation {
        BulkOperation::tombstone(Collection::Products, id.to_owned(), 7, "2017-01-01T11:53:26.000Z").unwrap()
    }

    #[test]
    fn an_operation_is_two_lines_with_its_rev_as_external_version() {
        assert_eq!(
            tombstone("0a").lines("bodega-products").unwrap(),
            concat!(
                r#"{"index":{"_index":"bodega-products","_id":"0a","version":7,"version_type":"external_gte","require_alias":true}}"#,
                "\n",
                r#"{"deleted":true,"deleted_at":"2017-01-01T11:53:26.000Z"}"#,
                "\n"
            )
        );
    }

    #[test]
    fn many_operations_are_split_into_requests_that_keep_their_order() {
        let operations: Vec<_> = (0..2_500).map(|n| tombstone(&n.to_string())).collect();
        let requests = requests(operations.iter().enumerate(), |_| "a".to_owned()).unwrap();
        let sizes: Vec<_> = requests.iter().map(|request| request.positions.len()).collect();
        assert_eq!(sizes, [1_000, 1_000, 500]);
        let positions: Vec<_> = requests.iter().flat_map(|request| request.positions.clone()).collect();
        assert_eq!(positions, (0..2_500).collect::<Vec<_>>());
    }

    #[test]
    fn large_operations_are_split_by_size() {
        let large = BulkOperation { source: "x".repeat(1_500_000), ..tombstone("1") };
        let operations = vec![large; 5];
        let requests = requests(operations.iter().enumerate(), |_| "a".to_owned()).unwrap();
        assert_eq!(requests.len(), 3);
        assert!(requests.iter().all(|request| request.body.len() <= MAX_REQUEST_BYTES));
    }

    #[test]
    fn each_status_of_an_item_has_its_outcome() {
        let item = |status: u16| {
            let error = if status < 300 { String::new() } else { r#","error":{"type":"t","reason":"r"}"#.to_owned() };
            format!(r#"{{"index":{{"_id":"1","status":{status}{error}}}}}"#)
        };
        let statuses = [200, 201, 409, 429, 500, 503, 400, 404];
        let items: Vec<_> = statuses.into_iter().map(item).collect();
        let answer = format!(r#"{{"took":1,"errors":true,"items":[{}]}}"#, items.join(","));
        let retryable = BulkOutcome::Retryable { reason: "t: r".to_owned() };
        let rejected = |status| BulkOutcome::Rejected { status, reason: "t: r".to_owned() };
        assert_eq!(
            outcomes(answer.as_bytes(), statuses.len()).unwrap(),
            [
                BulkOutcome::Applied,
                BulkOutcome::Applied,
                BulkOutcome::Stale,
                retryable.clone(),
                retryable.clone(),
                retryable,
                rejected(400),
                rejected(404),
            ]
        );
    }

    #[test]
    fn an_answer_with_too_few_outcomes_is_an_error() {
        assert!(outcomes(br#"{"items":[]}"#, 1).is_err());
        assert!(outcomes(b"<html>", 1).is_err());
    }
}
