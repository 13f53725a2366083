use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::products::{GROUPS, PARENT};
use crate::query::SearchAfter;

#[derive(Debug, Clone, PartialEq)]
pub struct SearchPage<D> {
    /// The hits, in the query's sort order.
    pub hits: Vec<Hit<D>>,
    /// The number of hits of the query, on all pages. It is exact, except for a grouped search with
    /// more than about 40,000 groups.
    pub total: u64,
    /// The most frequent values of each facet, among the documents that match every filter except the
    /// facet's own.
    pub facets: BTreeMap<String, Vec<Facet>>,
}

impl<D> SearchPage<D> {
    /// Returns the position of the last hit, after which the next page starts. `None` on an empty
    /// page.
    pub fn end(&self) -> Option<&SearchAfter> {
        self.hits.last().map(|hit| &hit.sort)
    }

    /// Returns whether the hits of the query, on all pages, include variants of a product.
    pub fn has_variants(&self) -> bool {
        self.facets.get(PARENT).is_some_and(|parents| !parents.is_empty())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Hit<D> {
    pub document: D,
    /// The relevance score. `None` unless the hits are ordered by it.
    pub score: Option<f64>,
    /// The text of each field that matches. It is HTML with the matching words in `<em>`.
    pub highlights: BTreeMap<String, String>,
    /// The hit's position in the sort order.
    pub sort: SearchAfter,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facet {
    pub value: String,
    pub count: u64,
}

/// A page of the live documents of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivePage {
    /// The documents, ascending by id.
    pub items: Vec<LiveDocument>,
    /// The start of the next page, or `None` if this page is not full.
    pub next: Option<SearchAfter>,
}

/// The part of a document that a comparison of index and table needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveDocument {
    pub document_id: String,
    pub id: String,
    /// The item's `version` when it was indexed.
    pub version: u64,
    /// The item's `rev` when it was indexed.
    pub rev: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredDocument<D> {
    /// The item's `rev` when the document was written.
    pub rev: u64,
    /// `None` for a tombstone.
    pub document: Option<D>,
}

#[derive(Deserialize)]
pub(crate) struct SearchAnswer<D> {
    hits: AnsweredHits<D>,
    #[serde(default = "BTreeMap::new")]
    aggregations: BTreeMap<String, Aggregation>,
}

#[derive(Deserialize)]
struct AnsweredHits<D> {
    total: Option<Total>,
    hits: Vec<AnsweredHit<D>>,
}

#[derive(Deserialize)]
struct Total {
    value: u64,
}

#[derive(Deserialize)]
struct AnsweredHit<D> {
    #[serde(rename = "_id")]
    id: String,
    #[serde(rename = "_score")]
    score: Option<f64>,
    #[serde(rename = "_version")]
    version: Option<u64>,
    #[serde(rename = "_source")]
    source: D,
    #[serde(default)]
    highlight: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    sort: Vec<Value>,
}

/// A filtered aggregation. Its own count of documents is not needed.
#[derive(Deserialize)]
struct Aggregation {
    counted: Counted,
}

#[derive(Deserialize)]
struct Counted {
    #[serde(default)]
    buckets: Vec<Bucket>,
    value: Option<u64>,
}

#[derive(Deserialize)]
struct Bucket {
    key: String,
    doc_count: u64,
}

impl<D: DeserializeOwned> From<SearchAnswer<D>> for SearchPage<D> {
    fn from(mut answer: SearchAnswer<D>) -> Self {
        let groups = answer.aggregations.remove(GROUPS).and_then(|groups| groups.counted.value);
        let total = groups.or(answer.hits.total.map(|total| total.value)).unwrap_or(0);
        let hits = answer.hits.hits.into_iter().map(|hit| Hit {
            document: hit.source,
            score: hit.score,
            // Highlights are whole fields here, so each field has one fragment.
            highlights: hit
                .highlight
                .into_iter()
                .filter_map(|(field, fragments)| Some((field, fragments.into_iter().next()?)))
                .collect(),
            sort: SearchAfter(hit.sort),
        });
        let facets = answer.aggregations.into_iter().map(|(name, aggregation)| {
            let values = aggregation.counted.buckets.into_iter();
            (name, values.map(|bucket| Facet { value: bucket.key, count: bucket.doc_count }).collect())
        });
        Self { hits: hits.collect(), total, facets: facets.collect() }
    }
}

/// The fields of a document's source that [`LiveDocument`] contains.
#[derive(Deserialize)]
pub(crate) struct IdAndVersion {
    id: String,
    version: u64,
}

impl LivePage {
    /// Builds the page from the response to a request for `size` documents. Only a full page can
    /// be followed by another.
    pub(crate) fn new(answer: SearchAnswer<IdAndVersion>, size: u32) -> Self {
        let hits = answer.hits.hits;
        let full = hits.len() as u64 >= u64::from(size);
        let next = hits.last().filter(|_| full).map(|hit| SearchAfter(hit.sort.clone()));
        let items = hits.into_iter().map(|hit| LiveDocument {
            document_id: hit.id,
            id: hit.source.id,
            version: hit.source.version,
            rev: hit.version.unwrap_or_default(),
        });
        Self { items: items.collect(), next }
    }
}
