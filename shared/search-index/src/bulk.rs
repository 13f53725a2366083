//! Writes many documents in one request.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::document::{Collection, SearchDocument, Tombstone};
use crate::error::SearchError;

/// The maximum size of a request's body in bytes. OpenSearch Service refuses requests over 10 MiB
/// on its smaller instances, and recommends 3 to 5 MiB.
const MAX_REQUEST_BYTES: usize = 4 * 1024 * 1024;

const MAX_REQUEST_OPERATIONS: usize = 1_000;

/// A write of one document or tombstone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkOperation {
    collection: Collection,
    document_id: String,
    rev: u64,
    source: String,
}

impl BulkOperation {
    /// Creates a write of `document` under `document_id` ([`crate::document_id`]). It has no effect
    /// if the index contains a write with a higher `rev`. It replaces a document with the same
    /// `rev`, so that a repair takes effect.
    pub fn index<D: SearchDocument>(document_id: String, rev: u64, document: &D) -> Result<Self, SearchError> {
        Self::new(D::COLLECTION, document_id, rev, document)
    }

    /// Creates a write that replaces the document with a tombstone. It has no effect if the index
    /// contains a write with a higher `rev`. `deleted_at` is RFC 3339 UTC with milliseconds.
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
        document: &impl Serialize,
    ) -> Result<Self, SearchError> {
        let source = Source { document_id: &document_id, document };
        let source = serde_json::to_string(&source).map_err(|error| SearchError::Request(error.to_string()))?;
        Ok(Self { collection, document_id, rev, source })
    }

    pub fn collection(&self) -> Collection {
        self.collection
    }

    pub fn document_id(&self) -> &str {
        &self.document_id
    }

    /// Returns the item's `rev`, which is the document's external version.
    pub fn rev(&self) -> u64 {
        self.rev
    }

    pub fn is_tombstone(&self) -> bool {
        self.fields().is_ok_and(|fields| fields.get("deleted").and_then(Value::as_bool).unwrap_or_default())
    }

    pub(crate) fn fields(&self) -> Result<Map<String, Value>, SearchError> {
        serde_json::from_str(&self.source).map_err(|error| SearchError::Request(error.to_string()))
    }

    /// Returns the operation as two lines of the bulk format. `alias` is the write alias of an
    /// index.
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

/// A document in its stored form. It repeats the `_id` as a field. The engine sorts hits only by
/// fields, and the next page of a list starts after the field values of the last hit.
#[derive(Serialize)]
struct Source<'a, D> {
    document_id: &'a str,
    #[serde(flatten)]
    document: &'a D,
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
    // Without this, a write to a missing index would create the index with a guessed mapping.
    require_alias: bool,
}

/// A request's body, and the positions of its operations in the list of all given operations.
pub(crate) struct BulkRequest {
    pub positions: Vec<usize>,
    pub body: Vec<u8>,
}

/// Splits operations into requests of a size that the engine accepts. Each operation comes with its
/// position and its target alias.
pub(crate) fn requests<'a>(
    operations: impl Iterator<Item = (usize, &'a BulkOperation, &'a str)>,
) -> Result<Vec<BulkRequest>, SearchError> {
    let mut requests: Vec<BulkRequest> = Vec::new();
    for (position, operation, alias) in operations {
        let lines = operation.lines(alias)?;
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    fn tombstone(id: &str) -> BulkOperation {
        BulkOperation::tombstone(Collection::Products, id.to_owned(), 7, "2017-01-01T11:53:26.000Z").unwrap()
    }

    fn to_one_alias(operations: &[BulkOperation]) -> impl Iterator<Item = (usize, &BulkOperation, &str)> {
        operations.iter().enumerate().map(|(position, operation)| (position, operation, "a"))
    }

    #[test]
    fn an_operation_is_two_lines_with_its_rev_as_external_version() {
        assert_eq!(
            tombstone("0a").lines("bodega-products-write-v1").unwrap(),
            concat!(
                r#"{"index":{"_index":"bodega-products-write-v1","_id":"0a","version":7,"#,
                r#""version_type":"external_gte","require_alias":true}}"#,
                "\n",
                r#"{"document_id":"0a","deleted":true,"deleted_at":"2017-01-01T11:53:26.000Z"}"#,
                "\n"
            )
        );
    }

    #[test]
    fn many_operations_are_split_into_requests_that_keep_their_order() {
        let operations: Vec<_> = (0..2_500).map(|n| tombstone(&n.to_string())).collect();
        let requests = requests(to_one_alias(&operations)).unwrap();
        let sizes: Vec<_> = requests.iter().map(|request| request.positions.len()).collect();
        assert_eq!(sizes, [1_000, 1_000, 500]);
        let positions: Vec<_> = requests.iter().flat_map(|request| request.positions.clone()).collect();
        assert_eq!(positions, (0..2_500).collect::<Vec<_>>());
    }

    #[test]
    fn large_operations_are_split_by_size() {
        let large = BulkOperation { source: "x".repeat(1_500_000), ..tombstone("1") };
        let operations = vec![large; 5];
        let requests = requests(to_one_alias(&operations)).unwrap();
        assert_eq!(requests.len(), 3);
        assert!(requests.iter().all(|request| request.body.len() <= MAX_REQUEST_BYTES));
    }
}
