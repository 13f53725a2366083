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
use crate::query::{OrderQuery, ProductQuery, SearchAfter, set_after};
use crate::results::{LivePage, SearchAnswer, SearchPage, StoredDocument};
use crate::stored::{Kind, Stored, StoredSource};
use crate::transport::{Answer, Call, Transport};

const JSON: &str = "application/json";
pub(crate) const NDJSON: &str = "application/x-ndjson";

/// The engine's error type for an index that already exists.
pub(crate) const INDEX_EXISTS: &str = "resource_already_exists_exception";

/// A client of OpenSearch for Bodega's indices. Clones share connections.
///
/// Each method keeps within [`crate::Limits`], retries included.
#[derive(Debug, Clone)]
pub struct SearchClient {
    pub(crate) transport: Arc<Transport>,
    pub(crate) prefix: Arc<str>,
    /// Whether the engine is OpenSearch Serverless.
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

    /// Creates a client from the environment ([`SearchConfig::from_env`]).
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
                // An earlier version of Bodega wrote through the alias for readers, so this index
                // lacks a write alias.
                missing.push(add(&read.name, &index::write_alias(&self.prefix, collection, read.number)));
            }
        }
        // A rebuild writes to a second index, which has no alias for readers yet.
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
            // Another caller has created the index. Or an earlier version created it without a
            // write alias.
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
                tracing::warn!(index, reason, "the index has another mapping and should be rebuilt");
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

    /// Searches orders, without facets and highlights.
    pub async fn search_orders(&self, query: &OrderQuery) -> Result<SearchPage<OrderDocument>, SearchError> {
        self.search(&query.body()).await
    }

    /// The time limit of one attempt is also that of the whole search. So a failure is retried, but
    /// a search that took too long is not: the engine may still process it.
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

    /// Returns a document by its `_id` as last written, even if it is not yet visible to searches.
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

    /// Returns the alias for readers.
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

/// The response for a missing document. The response for a missing index has no such field.
#[derive(Deserialize)]
struct Missing {
    found: bool,
}

#[derive(Deserialize)]
struct Problem {
    error: ProblemDetail,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ProblemDetail {
    Typed {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        reason: Option<String>,
    },
    Text(String),
}

impl Answer {
    /// Returns the response if it is a success, and otherwise the engine's error.
    pub(crate) fn accepted(self) -> Result<Self, SearchError> {
        if self.status.is_success() {
            return Ok(self);
        }
        let (kind, reason) = match self.parse::<Problem>().map(|problem| problem.error) {
            Ok(ProblemDetail::Typed { kind, reason }) => (kind, reason.unwrap_or_default()),
            Ok(ProblemDetail::Text(text)) => ("an error without a type".to_owned(), text),
            // The body comes from a proxy. Or IAM refused the request before it reached the domain.
            Err(_) => ("a response that is not the engine's".to_owned(), "no explanation".to_owned()),
        };
        Err(SearchError::Rejected { status: self.status.as_u16(), kind, reason })
    }

    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, SearchError> {
        serde_json::from_slice(&self.body).map_err(unreadable)
    }
}

pub(crate) fn unreadable(error: serde_json::Error) -> SearchError {
    SearchError::Answer(error.to_string())
}
