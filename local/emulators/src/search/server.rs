//! The HTTP server: connections, faults, routes.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path as Segment, State};
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, head, post, put};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet, spawn_blocking};
use tokio::time::sleep;

use super::cluster::Cluster;
use super::problem::Problem;
use super::{Error, FaultKind, Faults, bulk, execute};

/// OpenSearch's limit for a request, `http.max_content_length`.
const MAX_REQUEST_BYTES: usize = 100 * 1024 * 1024;

/// How late a slow answer is.
const SLOW: Duration = Duration::from_millis(300);

/// When a connection without an answer is closed.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long the server waits before it accepts again after it could not.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A search engine that answers as OpenSearch does, in this process. Dropping the value ends it.
pub struct SearchServer {
    url: String,
    faults: Faults,
    server: AbortHandle,
}

impl SearchServer {
    /// Opens a loopback port and answers there. Documents are kept in the folder, or without one in
    /// memory until the end. Needs a Tokio runtime; reading the folder blocks (100,000 documents: some seconds).
    ///
    /// # Errors
    /// [`Error::File`] and [`Error::Damaged`] for the folder, [`Error::Serve`] without a port.
    pub async fn start(data_dir: Option<&Path>) -> Result<Self, Error> {
        let cluster = Arc::new(Cluster::open(data_dir)?);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let faults = Faults::default();
        let engine = Engine { cluster, faults: faults.clone() };
        let server = tokio::spawn(serve(listener, router(engine), faults.clone())).abort_handle();
        Ok(Self { url, faults, server })
    }

    /// The endpoint to give to the functions: `http://127.0.0.1:<port>`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The faults in force, to add to and to clear.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }
}

impl Drop for SearchServer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Accepts connections until it is aborted, which ends the connections too.
async fn serve(listener: TcpListener, router: Router, faults: Faults) {
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
            Some(_) = connections.join_next() => continue,
        };
        let (router, faults) = (router.clone(), faults.clone());
        connections.spawn(async move {
            let service = service_fn(move |request| answer(request, router.clone(), faults.clone()));
            // An error is a client that went away, or a fault that closed the connection.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Answers one request, or does not, if a fault strikes it. An error closes the connection.
async fn answer(request: Request<Incoming>, router: Router, faults: Faults) -> io::Result<Response> {
    let possible = |kind| !matches!(kind, FaultKind::Partial | FaultKind::Conflict);
    let strike = faults.draw(possible).map(|strike| strike.kind);
    match strike {
        Some(FaultKind::Throttle) => return Ok(Problem::throttled().into_response()),
        Some(FaultKind::Error) => return Ok(Problem::unavailable().into_response()),
        Some(FaultKind::Reset) => return Err(io::ErrorKind::ConnectionReset.into()),
        _ => {}
    }
    let service = TowerToHyperService::new(router);
    let Ok(response) = service.call(request.map(Body::new)).await;
    match strike {
        Some(FaultKind::Timeout) => {
            sleep(TIMEOUT).await;
            Err(io::ErrorKind::TimedOut.into())
        }
        Some(FaultKind::Slow) => {
            sleep(SLOW).await;
            Ok(response)
        }
        _ => Ok(response),
    }
}

#[derive(Clone)]
struct Engine {
    cluster: Arc<Cluster>,
    faults: Faults,
}

type Answer = Result<Response, Problem>;

fn router(engine: Engine) -> Router {
    Router::new()
        .route("/", get(about))
        .route("/_cluster/health", get(health))
        .route("/_index_template/{name}", put(put_template).head(has_template))
        .route("/_alias/{name}", head(has_alias))
        .route("/_aliases", post(change_aliases))
        .route("/_bulk", post(bulk))
        .route("/{index}", put(create_index).head(has_index))
        .route("/{index}/_search", post(search).get(search))
        .route("/{index}/_count", post(count).get(count))
        .route("/{index}/_refresh", post(refresh))
        .route("/{index}/_doc/{id}", get(document))
        .fallback(no_handler)
        .method_not_allowed_fallback(no_handler)
        .layer(DefaultBodyLimit::max(MAX_REQUEST_BYTES))
        .with_state(engine)
}

async fn about() -> Response {
    json_answer(&json!({
        "name": "bodega",
        "cluster_name": "bodega",
        "version": {"distribution": "opensearch", "number": "2.19.0"},
        "tagline": "The OpenSearch Project: https://opensearch.org/",
    }))
}

async fn health() -> Response {
    json_answer(&json!({"cluster_name": "bodega", "status": "green", "timed_out": false, "number_of_nodes": 1}))
}

async fn put_template(State(engine): State<Engine>, Segment(name): Segment<String>, body: Bytes) -> Answer {
    blocking(move || engine.cluster.put_template(&name, &parse(&body)?).map(|()| acknowledged())).await
}

async fn has_template(State(engine): State<Engine>, Segment(name): Segment<String>) -> StatusCode {
    exists(engine.cluster.has_template(&name))
}

async fn has_alias(State(engine): State<Engine>, Segment(name): Segment<String>) -> StatusCode {
    exists(engine.cluster.has_alias(&name))
}

async fn change_aliases(State(engine): State<Engine>, body: Bytes) -> Answer {
    blocking(move || engine.cluster.change_aliases(&parse(&body)?).map(|()| acknowledged())).await
}

async fn create_index(State(engine): State<Engine>, Segment(name): Segment<String>, body: Bytes) -> Answer {
    blocking(move || {
        engine.cluster.create_index(&name, &parse(&body)?)?;
        Ok(json_answer(&json!({"acknowledged": true, "shards_acknowledged": true, "index": name})))
    })
    .await
}

async fn has_index(State(engine): State<Engine>, Segment(name): Segment<String>) -> StatusCode {
    exists(engine.cluster.target(&name).is_ok())
}

async fn bulk(State(engine): State<Engine>, body: Bytes) -> Answer {
    blocking(move || {
        let body = std::str::from_utf8(&body).map_err(|error| Problem::illegal(error.to_string()))?;
        let refuse = || engine.faults.draw(|kind| kind == FaultKind::Partial).is_some();
        bulk::run(&engine.cluster, &bulk::parse(body)?, refuse).map(|answer| json_answer(&answer))
    })
    .await
}

async fn search(State(engine): State<Engine>, Segment(name): Segment<String>, body: Bytes) -> Answer {
    blocking(move || {
        let target = engine.cluster.target(&name)?;
        let mut index = target.lock();
        index.refresh()?;
        let answer = execute::search(&target.name, &index, &parse(&body)?)?;
        Ok(([(header::CONTENT_TYPE, "application/json")], answer).into_response())
    })
    .await
}

async fn count(State(engine): State<Engine>, Segment(name): Segment<String>, body: Bytes) -> Answer {
    blocking(move || {
        let target = engine.cluster.target(&name)?;
        let mut index = target.lock();
        index.refresh()?;
        execute::count(&index, &parse(&body)?).map(|answer| json_answer(&answer))
    })
    .await
}

async fn refresh(State(engine): State<Engine>, Segment(name): Segment<String>) -> Answer {
    blocking(move || {
        engine.cluster.target(&name)?.lock().refresh()?;
        Ok(json_answer(&json!({"_shards": {"total": 1, "successful": 1, "failed": 0}})))
    })
    .await
}

async fn document(State(engine): State<Engine>, Segment((name, id)): Segment<(String, String)>) -> Answer {
    blocking(move || {
        let target = engine.cluster.target(&name)?;
        let index = target.lock();
        let Some(document) = index.get(&id) else {
            let body = axum::Json(json!({"_index": target.name, "_id": id, "found": false}));
            return Ok((StatusCode::NOT_FOUND, body).into_response());
        };
        let source: Value = serde_json::from_str(document.source.get()).map_err(Problem::internal)?;
        let version = document.version;
        Ok(json_answer(&json!({
            "_index": target.name, "_id": id, "_version": version, "found": true, "_source": source,
        })))
    })
    .await
}

async fn no_handler(request: Request<Body>) -> Problem {
    Problem::illegal(format!("no handler found for uri [{}] and method [{}]", request.uri(), request.method()))
}

/// Runs what may take long beside the tasks that serve connections.
async fn blocking(work: impl FnOnce() -> Answer + Send + 'static) -> Answer {
    spawn_blocking(work).await.map_err(Problem::internal)?
}

fn parse(body: &Bytes) -> Result<Value, Problem> {
    if body.is_empty() {
        return Ok(json!({}));
    }
    serde_json::from_slice(body).map_err(|error| Problem::parsing(error.to_string()))
}

fn acknowledged() -> Response {
    json_answer(&json!({"acknowledged": true}))
}

fn json_answer(value: &Value) -> Response {
    axum::Json(value).into_response()
}

fn exists(exists: bool) -> StatusCode {
    if exists { StatusCode::OK } else { StatusCode::NOT_FOUND }
}
