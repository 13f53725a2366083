//! The search engine of a test: embedded, scripted, or the OpenSearch at `SEARCH_ENDPOINT`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use emulators::search::SearchServer;
use key_schema::item::{Entity, Stored};
use search_index::{Collection, Limits, SearchClient, SearchConfig, SearchDocument, StoredDocument, document_id};
use serde_json::{Value, json};
use stream::search::Search;
use stream::sink::Sink;
use tokio::net::TcpListener;

/// An engine with separate indices for this test.
pub struct Engine {
    pub client: SearchClient,
    pub server: Option<SearchServer>,
}

impl Engine {
    /// Starts the embedded engine, or connects to the engine in the environment.
    pub async fn start() -> Self {
        match std::env::var("SEARCH_ENDPOINT") {
            Ok(endpoint) => Self { client: client(&endpoint), server: None },
            Err(_) => Self::embedded().await,
        }
    }

    /// Starts the embedded engine, which can be made to fail.
    pub async fn embedded() -> Self {
        let server = SearchServer::start(None).await.unwrap();
        Self { client: client(server.url()), server: Some(server) }
    }

    pub async fn sink(&self) -> Box<dyn Sink> {
        Box::new(Search::open(self.client.clone()).await)
    }

    /// Returns the document of an item, or its tombstone.
    pub async fn document<D: SearchDocument, T: Entity>(&self, item: &Stored<T>) -> Option<StoredDocument<D>> {
        let key = item.data.key().unwrap();
        self.client.get(&document_id(key.pk.as_str(), key.sk.as_str())).await.unwrap()
    }

    /// Returns the id and rev of every product that can be found.
    pub async fn products(&self) -> Vec<(String, u64)> {
        self.client.refresh().await.unwrap();
        let page = self.client.list(Collection::Products, 1_000, None).await.unwrap();
        page.items.into_iter().map(|document| (document.id, document.rev)).collect()
    }
}

/// Returns a client that makes only two attempts.
fn client(endpoint: &str) -> SearchClient {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let prefix = format!("stream-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let mut limits = Limits { attempts: 2, backoff: Duration::from_millis(1), ..Limits::default() };
    if std::env::var_os("SEARCH_ENDPOINT").is_some() {
        // A real engine may be slow on the test machine.
        (limits.attempt, limits.total) = (Duration::from_secs(30), Duration::from_secs(60));
    }
    SearchClient::new(&SearchConfig::new(endpoint, &prefix).unwrap().with_limits(limits))
}

/// An engine that answers each bulk request with scripted statuses and records the requests.
#[derive(Clone, Default)]
pub struct ScriptedEngine(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    /// The statuses of each response, the last response first.
    statuses: Vec<Vec<u16>>,
    /// The revs of the operations in each request.
    requested_revs: Vec<Vec<u64>>,
    templates: usize,
}

impl ScriptedEngine {
    /// Creates an engine that answers the first request with the first statuses, and so on.
    pub fn answering(statuses: &[&[u16]]) -> Self {
        let script =
            Script { statuses: statuses.iter().rev().map(|request| request.to_vec()).collect(), ..Script::default() };
        Self(Arc::new(Mutex::new(script)))
    }

    pub async fn sink(&self) -> Box<dyn Sink> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new()
            .route("/_index_template/{name}", put(template))
            .route("/_alias/{patterns}", get(aliases))
            .route("/{index}/_mapping", put(async || Json(json!({"acknowledged": true}))))
            .route("/_bulk", post(bulk))
            .with_state(self.clone());
        tokio::spawn(async { axum::serve(listener, router).await });
        Box::new(Search::open(client(&endpoint)).await)
    }

    /// Returns the revs of the operations of each bulk request.
    pub fn requested_revs(&self) -> Vec<Vec<u64>> {
        self.0.lock().unwrap().requested_revs.clone()
    }

    /// Returns how often the sink created missing indices.
    pub fn ensured(&self) -> usize {
        self.0.lock().unwrap().templates / Collection::ALL.len()
    }
}

async fn template(State(engine): State<ScriptedEngine>) -> Json<Value> {
    engine.0.lock().unwrap().templates += 1;
    Json(json!({"acknowledged": true}))
}

/// Returns one index per collection, for reads and writes. The requested pattern is
/// `<prefix>-<collection>*`.
async fn aliases(Path(patterns): Path<String>) -> Json<Value> {
    let indices = patterns.split(',').map(|pattern| {
        let alias = pattern.trim_end_matches('*');
        (format!("{alias}-v1"), json!({"aliases": {alias: {}, format!("{alias}-write-v1"): {}}}))
    });
    Json(Value::Object(indices.collect()))
}

async fn bulk(State(engine): State<ScriptedEngine>, body: String) -> Json<Value> {
    let actions = body.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()?.get("index").cloned());
    let revs: Vec<u64> = actions.map(|action| action["version"].as_u64().unwrap()).collect();
    let mut script = engine.0.lock().unwrap();
    let statuses = script.statuses.pop().unwrap();
    assert_eq!(statuses.len(), revs.len());
    script.requested_revs.push(revs);
    let items: Vec<Value> = statuses
        .into_iter()
        .map(|status| match status {
            200..=299 => json!({"index": {"status": status}}),
            _ => json!({"index": {"status": status, "error": {"type": "scripted", "reason": "injected"}}}),
        })
        .collect();
    Json(json!({"took": 1, "errors": true, "items": items}))
}
