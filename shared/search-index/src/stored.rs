//! The complete content of an index, for a comparison with the table.

use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::bulk::BulkOperation;
use crate::client::{SearchClient, unreadable};
use crate::document::{Collection, SearchDocument};
use crate::error::SearchError;
use crate::query::{SearchAfter, is_deleted, set_after};
use crate::results::StoredDocument;

/// The maximum number of documents in one request. At a few kilobytes each, the response stays far
/// below its size limit.
const MAX_IDS: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Documents that searches find.
    Live,
    /// Tombstones of removed documents.
    Tombstones,
}

impl Kind {
    pub(crate) fn query(self) -> Value {
        let clause = match self {
            Self::Live => "must_not",
            Self::Tombstones => "filter",
        };
        json!({"bool": {clause: [is_deleted()]}})
    }

    /// Returns a sort order that gives each document its own position, so that pages lose no
    /// document. Tombstones are ordered oldest first.
    fn sort(self) -> Value {
        match self {
            Self::Live => json!([{"document_id": "asc"}]),
            Self::Tombstones => json!([{"deleted_at": "asc"}, {"document_id": "asc"}]),
        }
    }
}

/// A document or tombstone as stored: its fields and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSource {
    /// The item's `rev` when the document was written.
    pub rev: u64,
    fields: Map<String, Value>,
}

impl StoredSource {
    pub fn is_tombstone(&self) -> bool {
        self.fields.get("deleted").and_then(Value::as_bool).unwrap_or_default()
    }

    /// Returns the time of the removal if this is a tombstone that records it.
    pub fn deleted_at(&self) -> Option<&str> {
        self.fields.get("deleted_at").and_then(Value::as_str)
    }

    /// Converts the fields to a document. Returns [`SearchError::Answer`] if they do not fit the
    /// type, for example because a field is missing.
    pub fn document<D: SearchDocument>(self) -> Result<StoredDocument<D>, SearchError> {
        let rev = self.rev;
        let document = if self.is_tombstone() { None } else { Some(self.fields) };
        let document = document.map(|fields| serde_json::from_value(Value::Object(fields)).map_err(unreadable));
        Ok(StoredDocument { rev, document: document.transpose()? })
    }

    /// Returns the names of the fields that differ between this document and the operation. If the
    /// `rev` differs, its name comes first. The `deleted_at` and `document_id` of a tombstone are
    /// not compared, because searches and writes do not depend on them.
    pub fn differences(&self, expected: &BulkOperation) -> Result<Vec<String>, SearchError> {
        let fields = expected.fields()?;
        let mut names: Vec<&String> = fields.keys().chain(self.fields.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let informative = |name: &str| self.is_tombstone() && matches!(name, "deleted_at" | "document_id");
        let differing =
            names.into_iter().filter(|name| !informative(name) && fields.get(*name) != self.fields.get(*name));
        let rev = (self.rev != expected.rev()).then(|| "rev".to_owned());
        Ok(rev.into_iter().chain(differing.cloned()).collect())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedDocument {
    pub document_id: String,
    pub stored: StoredSource,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentPage {
    pub items: Vec<IndexedDocument>,
    /// The start of the next page, or `None` if this page is not full.
    pub next: Option<SearchAfter>,
}

impl SearchClient {
    /// Returns the stored documents with these ids from the index that searches read. The result
    /// has the last written state, even if searches do not show it yet. The result is in the order
    /// of the ids, with `None` for missing documents.
    pub async fn stored(
        &self,
        collection: Collection,
        document_ids: &[String],
    ) -> Result<Vec<Option<StoredSource>>, SearchError> {
        self.stored_of(&self.alias(collection), document_ids).await
    }

    /// Returns stored documents like [`SearchClient::stored`], from one index, such as the index
    /// that a rebuild fills.
    pub async fn stored_in(
        &self,
        index: &str,
        document_ids: &[String],
    ) -> Result<Vec<Option<StoredSource>>, SearchError> {
        self.write_alias(index)?;
        self.stored_of(index, document_ids).await
    }

    async fn stored_of(&self, index: &str, ids: &[String]) -> Result<Vec<Option<StoredSource>>, SearchError> {
        let mut found = Vec::with_capacity(ids.len());
        for ids in ids.chunks(MAX_IDS) {
            let answer = self.json(Method::POST, &format!("/{index}/_mget"), Some(&json!({"ids": ids}))).await?;
            let answer: ManyAnswer = answer.accepted()?.parse()?;
            if answer.docs.len() != ids.len() {
                return Err(SearchError::Answer(format!("{} documents for {} ids", answer.docs.len(), ids.len())));
            }
            for document in answer.docs {
                found.push(document.into_stored()?);
            }
        }
        Ok(found)
    }

    /// Returns a page of the documents or tombstones that are visible to searches. It has at most
    /// `size` entries (the engine's limit is 10,000) and starts after the page that ended at
    /// `after`. Live documents are ordered by `_id`, and tombstones by the time of the removal.
    pub async fn documents(
        &self,
        collection: Collection,
        kind: Kind,
        size: u32,
        after: Option<&SearchAfter>,
    ) -> Result<DocumentPage, SearchError> {
        self.documents_of(&self.alias(collection), kind, size, after).await
    }

    /// Returns a page like [`SearchClient::documents`], from one index.
    pub async fn documents_in(
        &self,
        index: &str,
        kind: Kind,
        size: u32,
        after: Option<&SearchAfter>,
    ) -> Result<DocumentPage, SearchError> {
        self.write_alias(index)?;
        self.documents_of(index, kind, size, after).await
    }

    async fn documents_of(
        &self,
        index: &str,
        kind: Kind,
        size: u32,
        after: Option<&SearchAfter>,
    ) -> Result<DocumentPage, SearchError> {
        let mut body = json!({"query": kind.query(), "sort": kind.sort(), "size": size, "version": true});
        set_after(&mut body, after);
        let answer: PageAnswer = self.read(index, "_search", &body).await?;
        let hits = answer.hits.hits;
        let full = hits.len() as u64 >= u64::from(size);
        let end = hits.last().filter(|_| full).map(|hit| hit.sort.clone());
        let items = hits.into_iter().map(|hit| IndexedDocument { document_id: hit.id, stored: hit.stored.into() });
        Ok(DocumentPage { items: items.collect(), next: end.map(SearchAfter) })
    }

    /// Returns the number of documents or tombstones of one index that are visible to searches.
    pub async fn count_in(&self, index: &str, kind: Kind) -> Result<u64, SearchError> {
        self.write_alias(index)?;
        self.count_of(index, kind).await
    }

    /// Refreshes one index, like [`SearchClient::refresh`].
    pub async fn refresh_in(&self, index: &str) -> Result<(), SearchError> {
        self.write_alias(index)?;
        self.refresh_of(index).await
    }
}

#[derive(Deserialize)]
pub(crate) struct Stored {
    #[serde(rename = "_version")]
    version: u64,
    #[serde(rename = "_source")]
    source: Map<String, Value>,
}

impl From<Stored> for StoredSource {
    fn from(stored: Stored) -> Self {
        Self { rev: stored.version, fields: stored.source }
    }
}

#[derive(Deserialize)]
struct ManyAnswer {
    docs: Vec<OneOfMany>,
}

#[derive(Deserialize)]
struct OneOfMany {
    #[serde(default)]
    found: bool,
    #[serde(flatten)]
    stored: Option<Stored>,
    error: Option<OneError>,
}

impl OneOfMany {
    fn into_stored(self) -> Result<Option<StoredSource>, SearchError> {
        match self {
            Self { error: Some(error), .. } => {
                Err(SearchError::Rejected { status: 404, kind: error.kind, reason: error.reason })
            }
            Self { found: false, .. } => Ok(None),
            Self { stored: Some(stored), .. } => Ok(Some(stored.into())),
            Self { stored: None, .. } => Err(SearchError::Answer("a document without version or source".to_owned())),
        }
    }
}

#[derive(Deserialize)]
struct OneError {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
struct PageAnswer {
    hits: PageHits,
}

#[derive(Deserialize)]
struct PageHits {
    hits: Vec<PageHit>,
}

#[derive(Deserialize)]
struct PageHit {
    #[serde(rename = "_id")]
    id: String,
    #[serde(flatten)]
    stored: Stored,
    sort: Vec<Value>,
}
