//! The client's search calls, and the helpers of all calls.

use std::sync::Arc;

use http::{Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::config::{ConfigError, SearchConfig};
use crate::document::{Collection, OrderDocument, ProductDocument, SearchDocument};
use crate::error::SearchError;
use crate::index;
use crate::probe::EngineSupport;
use crate::products::{ProductQuery, SuggestionQuery};
use crate::query::{OrderQuery, SearchAfter, set_after};
use crate::results::{LivePage, SearchAnswer, SearchPage, StoredDocument};
use crate::stored::{Kind, Stored, StoredSource};
use crate::transport::{Answer, Call, Transport};

const JSON: &str = "application/json";
pub(crate) const NDJSON: &str = "application/x-ndjson";

/// The engine's error type for an index that already exists.
pub(crate) const INDEX_EXISTS: &str = "resource_already_exists_exception";

/// A client of OpenSearch for Bodega's indices. Clones share connections.
///
/// Each call to the engine, with all its retries, ends within [`crate::Limits`].
#[derive(Debug, Clone)]
pub struct SearchClient {
    pub(crate) transport: Arc<Transport>,
    pub(crate) prefix: Arc<str>,
    pub(crate) serverless: bool,
    /// The result of the probe, which runs once for each client.
    probed: Arc<OnceCell<EngineSupport>>,
}

impl SearchClient {
    /// Creates a client. No connection is opened yet.
    pub fn new(config: &SearchConfig) -> Self {
        Self {
            transport: Arc::new(Transport::new(config)),
            prefix: config.index_prefix.as_str().into(),
            serverless: config.is_serverless(),
            probed: Arc::default(),
        }
    }

    pub fn from_env() -> Result<Self, ConfigError> {
        Ok(Self::new(&SearchConfig::from_env()?))
    }

    /// Ensures that every collection has its template, an index and its aliases. It is idempotent
    /// and may run concurrently.
    ///
    /// It adds new fields of the mapping to every index that is read or written. Other changes of
    /// the mapping need a rebuild.
    ///
    /// On OpenSearch Serverless the first call also ensures that the engine respects versions
    /// ([`SearchClient::probe`]).
    pub async fn ensure_indices(&self) -> Result<(), SearchError> {
        for collection in Collection::ALL {
            self.ensure_index(collection).await?;
        }
        if self.serverless {
            let support = self.probed.get_or_try_init(|| self.probe()).await?;
            tracing::info!(?support, "the search engine was probed");
        }
        Ok(())
    }

    pub(crate) async fn ensure_index(&self, collection: Collection) -> Result<(), SearchError> {
        let alias = self.alias(collection);
        let template = index::template(&self.prefix, collection)?;
        self.json(Method::PUT, &format!("/_index_template/{alias}"), Some(&template)).await?.accepted()?;
        let indices = self.layout_of(collection).await?;
        let mut missing = Vec::new();
        for read in indices.iter().filter(|index| index.read) {
            if !read.written {
                // Somebody has removed the write alias.
                missing.push(add(&read.name, &index::write_alias(&self.prefix, collection, read.number)));
            }
        }
        // During a rebuild, writes also go to a second index, which searches do not read yet. That
        // index gets the new fields, too.
        for used in indices.iter().filter(|index| index.read || index.written) {
            self.add_fields(collection, &used.name).await?;
        }
        if !indices.iter().any(|index| index.read) {
            missing = self.create_first(collection).await?;
        }
        if missing.is_empty() {
            return Ok(());
        }
        self.json(Method::POST, "/_aliases", Some(&json!({"actions": missing}))).await?.accepted()?;
        Ok(())
    }

    /// Creates the first index together with its aliases. If the index already exists, returns the
    /// actions that add its aliases.
    async fn create_first(&self, collection: Collection) -> Result<Vec<Value>, SearchError> {
        let first = index::name(&self.prefix, collection, 1);
        let aliases = [self.alias(collection), index::write_alias(&self.prefix, collection, 1)];
        let body = json!({"aliases": aliases.iter().map(|alias| (alias.clone(), json!({}))).collect::<Map<_, _>>()});
        match self.json(Method::PUT, &format!("/{first}"), Some(&body)).await?.accepted() {
            Ok(_) => Ok(Vec::new()),
            // Either another caller has just created the index, or somebody has removed its
            // aliases.
            Err(SearchError::Rejected { kind, .. }) if kind == INDEX_EXISTS => {
                Ok(aliases.iter().map(|alias| add(&first, alias)).collect())
            }
            Err(error) => Err(error),
        }
    }

    /// Adds the fields that the index lacks. Other changes of the mapping need a rebuild. Until
    /// then the index refuses documents that do not fit the old mapping.
    async fn add_fields(&self, collection: Collection, index: &str) -> Result<(), SearchError> {
        let mapping = index::mapping(collection)?;
        match self.json(Method::PUT, &format!("/{index}/_mapping"), Some(&mapping)).await?.accepted() {
            Err(SearchError::Rejected { status: 400, reason, .. }) => {
                tracing::warn!(index, reason, "the index does not have the current mapping and should be rebuilt");
                Ok(())
            }
            other => other.map(drop),
        }
    }

    /// Searches products. The facets are `category` and `brand`. The highlighted fields are `name`
    /// and `summary`.
    pub async fn search_products(&self, query: &ProductQuery) -> Result<SearchPage<ProductDocument>, SearchError> {
        self.search(&query.body()).await
    }

    /// Searches products while their name is being typed. The facets are `category` and `brand`.
    pub async fn suggest_products(&self, query: &SuggestionQuery) -> Result<SearchPage<ProductDocument>, SearchError> {
        self.search(&query.body()).await
    }

    /// Searches orders, without facets and highlights.
    pub async fn search_orders(&self, query: &OrderQuery) -> Result<SearchPage<OrderDocument>, SearchError> {
        self.search(&query.body()).await
    }

    /// All attempts of a search share the time limit of one attempt. So a search that fails early
    /// is retried. A search that takes too long is not, because the engine may still process it.
    async fn search<D: SearchDocument>(&self, body: &Value) -> Result<SearchPage<D>, SearchError> {
        let path = format!("/{}/_search", self.alias(D::COLLECTION));
        let answer = self.json_by(Method::POST, &path, Some(body), self.transport.attempt_deadline()).await?;
        Ok(answer.accepted()?.parse::<SearchAnswer<D>>()?.into())
    }

    /// Returns the number of live documents that are visible to searches.
    pub async fn count(&self, collection: Collection) -> Result<u64, SearchError> {
        self.count_of(&self.alias(collection), Kind::Live).await
    }

    /// Returns a page of the live documents that are visible to searches, ascending by id. It has
    /// at most `size` documents (the engine's limit is 10,000) and starts after the page that ended
    /// at `after`.
    pub async fn list(
        &self,
        collection: Collection,
        size: u32,
        after: Option<&SearchAfter>,
    ) -> Result<LivePage, SearchError> {
        let mut body = json!({
            "query": Kind::Live.query(),
            "sort": [{"id": "asc"}],
            "size": size,
            "version": true,
            "_source": ["id", "version"],
        });
        set_after(&mut body, after);
        Ok(LivePage::new(self.read(&self.alias(collection), "_search", &body).await?, size))
    }

    /// Returns the last written version of a document, even if searches do not find it yet.
    pub async fn get<D: SearchDocument>(&self, document_id: &str) -> Result<Option<StoredDocument<D>>, SearchError> {
        let path = format!("/{}/_doc/{document_id}", self.alias(D::COLLECTION));
        let answer = self.json(Method::GET, &path, None).await?;
        if answer.status == StatusCode::NOT_FOUND && answer.parse::<Missing>().is_ok_and(|missing| !missing.found) {
            return Ok(None);
        }
        let stored: Stored = answer.accepted()?.parse()?;
        StoredSource::from(stored).document().map(Some)
    }

    /// Makes all earlier writes visible to searches, which otherwise takes about a second.
    ///
    /// It is expensive, and meant for tests and for callers that need the complete index now. On
    /// OpenSearch Serverless it does nothing, because Serverless has no such call.
    pub async fn refresh(&self) -> Result<(), SearchError> {
        for collection in Collection::ALL {
            self.refresh_of(&index::pattern(&self.prefix, collection)).await?;
        }
        Ok(())
    }

    pub(crate) async fn refresh_of(&self, indices: &str) -> Result<(), SearchError> {
        if !self.serverless {
            self.json(Method::POST, &format!("/{indices}/_refresh"), None).await?.accepted()?;
        }
        Ok(())
    }

    pub(crate) fn alias(&self, collection: Collection) -> String {
        index::alias(&self.prefix, collection)
    }

    pub(crate) async fn count_of(&self, index: &str, kind: Kind) -> Result<u64, SearchError> {
        let answer: CountAnswer = self.read(index, "_count", &json!({"query": kind.query()})).await?;
        Ok(answer.count)
    }

    /// Sends a read to an index, or to the index behind an alias.
    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        index: &str,
        operation: &str,
        body: &Value,
    ) -> Result<T, SearchError> {
        self.json(Method::POST, &format!("/{index}/{operation}"), Some(body)).await?.accepted()?.parse()
    }

    pub(crate) async fn json(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer, SearchError> {
        self.json_by(method, path, body, self.transport.deadline()).await
    }

    pub(crate) async fn json_by(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        deadline: Instant,
    ) -> Result<Answer, SearchError> {
        let body = body.map(Value::to_string).unwrap_or_default().into();
        let call = Call { method, path, content_type: JSON, body };
        self.transport.call(&call, deadline).await
    }
}

fn add(index: &str, alias: &str) -> Value {
    json!({"add": {"index": index, "alias": alias}})
}

#[derive(Deserialize)]
struct CountAnswer {
    count: u64,
}

/// The response for a missing document. The response for a missing index lacks the field `found`.
#[derive(Deserialize)]
struct Missing {
    found: bool,
}

pub(crate) fn unreadable(error: serde_json::Error) -> SearchError {
    SearchError::Answer(error.to_string())
}
