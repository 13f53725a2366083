//! The calls.

use std::sync::Arc;

use http::{Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::bulk::{self, BulkOperation, BulkOutcome, BulkRequest};
use crate::config::{ConfigError, SearchConfig};
use crate::document::{Collection, OrderDocument, ProductDocument, SearchDocument};
use crate::error::SearchError;
use crate::index;
use crate::query::{self, OrderQuery, ProductQuery, SearchAfter};
use crate::results::{LivePage, SearchAnswer, SearchPage, StoredDocument};
use crate::transport::{Answer, Call, Transport};

const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";

/// A client of OpenSearch for Bodega's indices. Clones share connections.
///
/// Each method keeps within [`crate::Limits`], retries included.
#[derive(Debug, Clone)]
pub struct SearchClient {
    transport: Arc<Transport>,
    prefix: Arc<str>,
}

impl SearchClient {
    /// A client; nothing is connected yet.
    pub fn new(config: &SearchConfig) -> Self {
        Self { transport: Arc::new(Transport::new(config)), prefix: config.index_prefix.as_str().into() }
    }

    /// A client as the environment says ([`SearchConfig::from_env`]).
    pub fn from_env() -> Result<Self, ConfigError> {
        Ok(Self::new(&SearchConfig::from_env()?))
    }

    /// Makes sure that every collection has its template, an index and an alias; it may be called any number
    /// of times, also by several callers at once. A mapping that changed takes effect with the next new index.
    pub async fn ensure_indices(&self) -> Result<(), SearchError> {
        for collection in Collection::ALL {
            self.ensure_index(collection).await?;
        }
        Ok(())
    }

    async fn ensure_index(&self, collection: Collection) -> Result<(), SearchError> {
        let alias = self.alias(collection);
        let template = index::template(&self.prefix, collection)?;
        self.json(Method::PUT, &format!("/_index_template/{alias}"), Some(&template)).await?.accepted()?;
        let exists = self.json(Method::HEAD, &format!("/_alias/{alias}"), None).await?;
        if exists.status != StatusCode::NOT_FOUND {
            exists.accepted()?;
            return Ok(());
        }
        let first = index::first_index(&self.prefix, collection);
        match self.json(Method::PUT, &format!("/{first}"), None).await?.accepted() {
            // Another caller was faster, or an earlier one did not come as far as the alias.
            Err(SearchError::Rejected { kind, .. }) if kind == "resource_already_exists_exception" => {}
            other => drop(other?),
        }
        let actions = json!({"actions": [{"add": {"index": first, "alias": alias}}]});
        self.json(Method::POST, "/_aliases", Some(&actions)).await?.accepted()?;
        Ok(())
    }

    /// Writes documents and tombstones and says of each, in the order given, what became of it.
    ///
    /// Operations that the engine cannot take at the moment are sent again while the limits allow. An error
    /// means that the engine refuses such calls altogether; operations may have been applied nonetheless,
    /// and all may be sent again.
    pub async fn bulk(&self, operations: &[BulkOperation]) -> Result<Vec<BulkOutcome>, SearchError> {
        let deadline = self.transport.deadline();
        let unsent = BulkOutcome::Retryable { reason: "not sent".to_owned() };
        let mut outcomes = vec![unsent; operations.len()];
        for round in 1.. {
            let open = operations.iter().enumerate().zip(&outcomes);
            let open = open.filter(|(_, outcome)| matches!(outcome, BulkOutcome::Retryable { .. }));
            let requests = bulk::requests(open.map(|(operation, _)| operation), |collection| self.alias(collection))?;
            for request in &requests {
                let settled = self.bulk_request(request, deadline).await?;
                for (position, outcome) in request.positions.iter().zip(settled) {
                    if let Some(slot) = outcomes.get_mut(*position) {
                        *slot = outcome;
                    }
                }
            }
            let all_settled = !outcomes.iter().any(|outcome| matches!(outcome, BulkOutcome::Retryable { .. }));
            if all_settled || !self.transport.pause(round, deadline).await {
                break;
            }
        }
        Ok(outcomes)
    }

    async fn bulk_request(&self, request: &BulkRequest, deadline: Instant) -> Result<Vec<BulkOutcome>, SearchError> {
        let count = request.positions.len();
        let call = Call { method: Method::POST, path: "/_bulk", content_type: NDJSON, body: request.body.clone() };
        match self.transport.call(&call, deadline).await {
            Ok(answer) => bulk::outcomes(&answer.accepted()?.body, count),
            Err(SearchError::Unavailable { reason, .. }) => Ok(vec![BulkOutcome::Retryable { reason }; count]),
            Err(error) => Err(error),
        }
    }

    /// Searches products. Facets are `category` and `brand`; highlighted are `name` and `summary`.
    pub async fn search_products(&self, query: &ProductQuery) -> Result<SearchPage<ProductDocument>, SearchError> {
        self.search(&query.body()).await
    }

    /// Searches orders. There are no facets and no highlights.
    pub async fn search_orders(&self, query: &OrderQuery) -> Result<SearchPage<OrderDocument>, SearchError> {
        self.search(&query.body()).await
    }

    async fn search<D: SearchDocument>(&self, body: &Value) -> Result<SearchPage<D>, SearchError> {
        let answer: SearchAnswer<D> = self.read(D::COLLECTION, "_search", Some(body)).await?;
        Ok(answer.into())
    }

    /// The number of live documents that a search would see.
    pub async fn count(&self, collection: Collection) -> Result<u64, SearchError> {
        let answer: CountAnswer = self.read(collection, "_count", Some(&query::live_count())).await?;
        Ok(answer.count)
    }

    /// The live documents that a search would see, ascending by id; `size` (at most 10,000, the engine's
    /// limit) of them, beginning after the end of another page.
    pub async fn list(
        &self,
        collection: Collection,
        size: u32,
        after: Option<&SearchAfter>,
    ) -> Result<LivePage, SearchError> {
        let body = query::live_documents(size, after);
        Ok(LivePage::new(self.read(collection, "_search", Some(&body)).await?, size))
    }

    /// A document by its `_id`, as last written, whether or not a search sees it already.
    pub async fn get<D: SearchDocument>(&self, document_id: &str) -> Result<Option<StoredDocument<D>>, SearchError> {
        let path = format!("/{}/_doc/{document_id}", self.alias(D::COLLECTION));
        let answer = self.json(Method::GET, &path, None).await?;
        if answer.status == StatusCode::NOT_FOUND && answer.parse::<Missing>().is_ok_and(|missing| !missing.found) {
            return Ok(None);
        }
        let stored: Stored = answer.accepted()?.parse()?;
        let deleted = stored.source.get("deleted").and_then(Value::as_bool).unwrap_or_default();
        let document = if deleted { None } else { Some(serde_json::from_value(stored.source).map_err(unreadable)?) };
        Ok(Some(StoredDocument { rev: stored.version, document }))
    }

    /// Makes everything that was written so far visible to searches, which otherwise takes about a second.
    /// Expensive: for tests and for whoever must see the whole index at once.
    pub async fn refresh(&self) -> Result<(), SearchError> {
        for collection in Collection::ALL {
            let path = format!("/{}/_refresh", self.alias(collection));
            self.json(Method::POST, &path, None).await?.accepted()?;
        }
        Ok(())
    }

    fn alias(&self, collection: Collection) -> String {
        index::alias(&self.prefix, collection)
    }

    async fn read<T: DeserializeOwned>(
        &self,
        collection: Collection,
        operation: &str,
        body: Option<&Value>,
    ) -> Result<T, SearchError> {
        let path = format!("/{}/{operation}", self.alias(collection));
        self.json(Method::POST, &path, body).await?.accepted()?.parse()
    }

    async fn json(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer, SearchError> {
        let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
        let call = Call { method, path, content_type: JSON, body };
        self.transport.call(&call, self.transport.deadline()).await
    }
}

#[derive(Deserialize)]
struct CountAnswer {
    count: u64,
}

/// The answer when a document is missing, which unlike that of a missing index says so.
#[derive(Deserialize)]
struct Missing {
    found: bool,
}

#[derive(Deserialize)]
struct Stored {
    #[serde(rename = "_version")]
    version: u64,
    #[serde(rename = "_source")]
    source: Value,
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
    /// The answer if it is a success, else what the engine says is wrong.
    fn accepted(self) -> Result<Self, SearchError> {
        if self.status.is_success() {
            return Ok(self);
        }
        let (kind, reason) = match self.parse::<Problem>().map(|problem| problem.error) {
            Ok(ProblemDetail::Typed { kind, reason }) => (kind, reason.unwrap_or_default()),
            Ok(ProblemDetail::Text(text)) => ("unknown".to_owned(), text),
            Err(_) => ("unknown".to_owned(), "no explanation".to_owned()),
        };
        Err(SearchError::Rejected { status: self.status.as_u16(), kind, reason })
    }

    fn parse<T: DeserializeOwned>(&self) -> Result<T, SearchError> {
        serde_json::from_slice(&self.body).map_err(unreadable)
    }
}

fn unreadable(error: serde_json::Error) -> SearchError {
    SearchError::Answer(error.to_string())
}
