use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path as Segment, State};
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::cluster::{Cluster, Target};
use super::problem::Problem;
use super::strict::Strict;
use super::{FaultKind, Faults, bulk, execute};

/// OpenSearch's limit for a request, `http.max_content_length`.
const MAX_REQUEST_BYTES: usize = 100 * 1024 * 1024;

#[derive(Clone)]
pub(super) struct Engine {
    pub cluster: Arc<Cluster>,
    pub faults: Faults,
}

type Answer = Result<Response, Problem>;

pub(super) fn router(engine: Engine) -> Router {
    Router::new()
        .route("/", get(about))
        .route("/_cluster/health", get(health))
        .route("/_index_template/{name}", put(put_template).head(has_template))
        .route("/_alias/{name}", get(aliases))
        .route("/_aliases", post(change_aliases))
        .route("/_bulk", post(bulk))
        .route("/{index}", get(describe).put(create_index).delete(delete_index))
        .route("/{index}/_mapping", put(add_fields))
        .route("/{index}/_mget", post(documents))
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

async fn aliases(State(engine): State<Engine>, Segment(name): Segment<String>) -> Answer {
    let (mut aliases, missing) = engine.cluster.aliases(&name)?;
    if missing.is_empty() {
        return Ok(json_answer(&aliases));
    }
    let (noun, missing_names) = (if missing.len() == 1 { "alias" } else { "aliases" }, missing.join(","));
    if let Some(answer) = aliases.as_object_mut() {
        answer.insert("error".to_owned(), format!("{noun} [{missing_names}] missing").into());
        answer.insert("status".to_owned(), StatusCode::NOT_FOUND.as_u16().into());
    }
    Ok((StatusCode::NOT_FOUND, axum::Json(aliases)).into_response())
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

async fn describe(State(engine): State<Engine>, Segment(name): Segment<String>) -> Answer {
    Ok(json_answer(&engine.cluster.describe(&name)?))
}

async fn delete_index(State(engine): State<Engine>, Segment(name): Segment<String>) -> Answer {
    blocking(move || engine.cluster.delete_index(&name).map(|()| acknowledged())).await
}

async fn add_fields(State(engine): State<Engine>, Segment(name): Segment<String>, body: Bytes) -> Answer {
    blocking(move || engine.cluster.add_fields(&name, &parse(&body)?).map(|()| acknowledged())).await
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
        let targets = engine.cluster.targets(&name)?;
        for target in &targets {
            target.lock().refresh()?;
        }
        let count = targets.len();
        Ok(json_answer(&json!({"_shards": {"total": count, "successful": count, "failed": 0}})))
    })
    .await
}

async fn document(State(engine): State<Engine>, Segment((name, id)): Segment<(String, String)>) -> Answer {
    blocking(move || {
        let target = engine.cluster.target(&name)?;
        let (found, answer) = one_document(&target, &id)?;
        let status = if found { StatusCode::OK } else { StatusCode::NOT_FOUND };
        Ok((status, axum::Json(answer)).into_response())
    })
    .await
}

/// `_mget`: returns several documents of one index by their ids. If the index is missing, each
/// entry of the response has the error.
async fn documents(State(engine): State<Engine>, Segment(name): Segment<String>, body: Bytes) -> Answer {
    blocking(move || {
        let body = parse(&body)?;
        let mut object = Strict::new("mget", &body)?;
        let ids = object.list("ids")?.ok_or_else(|| Problem::illegal("[ids] must be given"))?;
        object.finish()?;
        let target = engine.cluster.target(&name);
        let documents = ids.iter().map(|id| {
            let id = id.as_str().ok_or_else(|| Problem::illegal("[ids] must be texts"))?;
            match &target {
                Ok(target) => one_document(target, id).map(|(_, answer)| answer),
                Err(problem) => Ok(json!({"_index": name, "_id": id, "error": problem.to_json()})),
            }
        });
        Ok(json_answer(&json!({"docs": documents.collect::<Result<Vec<_>, Problem>>()?})))
    })
    .await
}

/// Returns a document as it was last written, and whether it exists.
fn one_document(target: &Target, id: &str) -> Result<(bool, Value), Problem> {
    let index = target.lock();
    let Some(document) = index.get(id) else {
        return Ok((false, json!({"_index": target.name, "_id": id, "found": false})));
    };
    let source: Value = serde_json::from_str(document.source.get()).map_err(Problem::internal)?;
    let answer = json!({
        "_index": target.name, "_id": id, "_version": document.version, "_seq_no": document.seq_no,
        "_primary_term": index.primary_term(), "found": true, "_source": source,
    });
    Ok((true, answer))
}

async fn no_handler(request: Request<Body>) -> Problem {
    Problem::illegal(format!("no handler found for uri [{}] and method [{}]", request.uri(), request.method()))
}

/// Runs slow work on a separate thread, so that connections are still served.
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
