//! Tests `SearchClient` with simulated engines: OpenSearch Serverless, and engines that ignore
//! versions.

use std::time::Duration;

use aws::{Credentials, SharedCredentialsProvider};
use axum::extract::Path;
use axum::routing::{get, post, put};
use axum::{Json, Router};
use emulators::search::SearchServer;
use search_index::{BulkOutcome, Collection, Kind, Limits, SearchClient, SearchConfig, SearchError, Signing};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::engine::{shop, write};

fn client(endpoint: &str) -> SearchClient {
    let credentials = SharedCredentialsProvider::new(Credentials::new("AKID", "secret", None, None, "test"));
    let signing = Signing::new("aoss", "eu-central-1", credentials);
    let limits = Limits { attempts: 2, backoff: Duration::ZERO, ..Limits::default() };
    SearchClient::new(&SearchConfig::new(endpoint, "bodega").unwrap().with_signing(signing).with_limits(limits))
}

#[tokio::test]
async fn a_serverless_engine_is_probed_before_it_is_used() {
    let server = SearchServer::start(None).await.unwrap();
    let client = client(server.url());
    client.ensure_indices().await.unwrap();
    client.ensure_indices().await.unwrap();
    assert_eq!(client.bulk(&[write(&shop()[0], 1)]).await.unwrap(), [BulkOutcome::Applied]);
    client.refresh().await.unwrap();
    assert_eq!(client.documents(Collection::Products, Kind::Tombstones, 10, None).await.unwrap().items, []);
}

/// Starts an engine that returns these statuses for the first operations of a bulk request, and 404
/// for all further operations.
async fn answering(statuses: &'static [u16]) -> SearchClient {
    let acknowledged = async || Json(json!({"acknowledged": true}));
    let aliases = async |Path(pattern): Path<String>| {
        let alias = pattern.trim_end_matches('*').to_owned();
        Json(json!({format!("{alias}-v1"): {"aliases": {&alias: {}, format!("{alias}-write-v1"): {}}}}))
    };
    let bulk = async |body: String| {
        let actions = body.lines().filter_map(|line| {
            let line: Value = serde_json::from_str(line).ok()?;
            ["index", "delete"].into_iter().find(|kind| line.get(kind).is_some())
        });
        let item = |(kind, status): (&str, &u16)| json!({kind: {"status": status, "_seq_no": 1, "_primary_term": 1}});
        let items: Vec<_> = actions.zip(statuses.iter().chain(std::iter::repeat(&404))).map(item).collect();
        Json(json!({"took": 1, "errors": true, "items": items}))
    };
    let router = Router::new()
        .route("/_index_template/{name}", put(acknowledged))
        .route("/{index}/_mapping", put(acknowledged))
        .route("/_alias/{pattern}", get(aliases))
        .route("/_bulk", post(bulk));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async { axum::serve(listener, router).await });
    client(&endpoint)
}

#[tokio::test]
async fn an_engine_that_ignores_versions_is_not_used() {
    for (statuses, part) in [
        (&[201, 200, 200][..], "an older version was accepted"),
        (&[201, 409, 409], "the same version was refused"),
        (&[400, 400, 400], "a write with a version had status 400"),
    ] {
        let error = answering(statuses).await.ensure_indices().await.unwrap_err();
        assert!(matches!(&error, SearchError::Unsupported(what) if what.contains(part)), "{error}");
    }
}

#[tokio::test]
async fn a_probe_that_always_conflicts_fails_with_a_retryable_error() {
    let error = answering(&[409, 409, 409]).await.probe().await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
}
