//! Tests the search client with a failing engine. Also tests features of the in-process engine that
//! OpenSearch lacks: faults, stored data and the rejection of unknown requests.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use emulators::search::{Error, Fault, FaultKind, SearchServer};
use search_index::{
    BulkOperation, BulkOutcome, Collection, Limits, ProductDocument, ProductQuery, SearchClient, SearchConfig,
    SearchError, document_id,
};
use serde_json::{Value, json};

const PREFIX: &str = "bodega";

/// The deployed limits, but without pauses, so that tests do not wait.
const LIMITS: Limits =
    Limits { attempt: Duration::from_secs(3), total: Duration::from_secs(5), attempts: 4, backoff: Duration::ZERO };

async fn start(data_dir: Option<&Path>) -> (SearchServer, SearchClient) {
    let server = SearchServer::start(data_dir).await.unwrap();
    let client = client(&server, LIMITS);
    client.ensure_indices().await.unwrap();
    (server, client)
}

fn client(server: &SearchServer, limits: Limits) -> SearchClient {
    SearchClient::new(&SearchConfig::new(server.url(), PREFIX).unwrap().with_limits(limits))
}

fn fail(server: &SearchServer, kind: FaultKind, rate: f64, count: Option<u32>) {
    server.faults().add(Fault { kind, rate, count, seed: 7 }).unwrap();
}

fn write(n: u32, rev: u64) -> BulkOperation {
    let category_path = vec!["GROCERY".to_owned()];
    let product = ProductDocument {
        id: n.to_string(),
        name: format!("Product {n}"),
        brand: "National".to_owned(),
        package_size: None,
        thumbnail: None,
        category: category_path.clone(),
        category_path,
        price_amount: 100,
        price_currency: "USD".to_owned(),
        compare_at_amount: None,
        summary: String::new(),
        in_stock: true,
        rating_sum: 0,
        rating_count: 0,
        created_at: "2017-01-01T11:53:26.000Z".to_owned(),
        parent: None,
        options: Vec::new(),
        group: n.to_string(),
        has_variants: false,
        version: rev,
        deleted: false,
    };
    BulkOperation::index(document_id(&product.id, "PRODUCT"), rev, &product).unwrap()
}

fn writes(count: u32) -> Vec<BulkOperation> {
    (0..count).map(|n| write(n, 1)).collect()
}

async fn live(client: &SearchClient) -> u64 {
    client.count(Collection::Products).await.unwrap()
}

/// A folder. Dropping the value removes it.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bodega-search-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn a_call_succeeds_after_the_engine_recovers() {
    for kind in [FaultKind::Throttle, FaultKind::Error, FaultKind::Reset] {
        let (server, client) = start(None).await;
        fail(&server, kind, 1.0, Some(3));
        assert_eq!(client.bulk(&writes(2)).await.unwrap(), vec![BulkOutcome::Applied; 2], "{kind:?}");
        assert_eq!(server.faults().counts()[0].fired, 3, "{kind:?}");
        fail(&server, kind, 1.0, Some(3));
        assert_eq!(live(&client).await, 2, "{kind:?}");
    }
}

#[tokio::test]
async fn a_call_gives_up_when_its_attempts_are_used_up() {
    for kind in [FaultKind::Throttle, FaultKind::Error, FaultKind::Reset] {
        let (server, client) = start(None).await;
        fail(&server, kind, 1.0, None);
        let error = client.search_products(&ProductQuery::default()).await.unwrap_err();
        assert!(matches!(error, SearchError::Unavailable { attempts: 4, .. }), "{kind:?}: {error:?}");
        assert!(error.is_retryable());
        let outcomes = client.bulk(&writes(2)).await.unwrap();
        assert!(outcomes.iter().all(|outcome| matches!(outcome, BulkOutcome::Retryable { .. })), "{outcomes:?}");
        server.faults().clear();
        assert_eq!(live(&client).await, 0, "the request must not be executed");
    }
}

#[tokio::test]
async fn a_call_to_an_engine_that_does_not_answer_fails_after_its_time_limit() {
    let server = SearchServer::start(None).await.unwrap();
    let limits = Limits { attempt: Duration::from_millis(50), total: Duration::from_millis(120), ..LIMITS };
    let client = client(&server, limits);
    fail(&server, FaultKind::Timeout, 1.0, None);
    let error = client.ensure_indices().await.unwrap_err();
    assert!(matches!(error, SearchError::Unavailable { .. }), "{error:?}");
}

#[tokio::test]
async fn a_call_to_an_unreachable_engine_fails_as_unavailable() {
    let server = SearchServer::start(None).await.unwrap();
    let client = client(&server, LIMITS);
    drop(server);
    tokio::task::yield_now().await;
    let error = client.count(Collection::Products).await.unwrap_err();
    assert!(matches!(error, SearchError::Unavailable { attempts: 4, .. }), "{error:?}");
}

#[tokio::test]
async fn a_truncated_response_is_retried() {
    let (server, client) = start(None).await;
    fail(&server, FaultKind::Truncate, 1.0, Some(1));
    assert_eq!(live(&client).await, 0);
    assert_eq!(server.faults().counts()[0].fired, 1);
}

#[tokio::test]
async fn a_call_waits_for_a_slow_response() {
    let (server, client) = start(None).await;
    fail(&server, FaultKind::Slow, 1.0, Some(1));
    assert_eq!(live(&client).await, 0);
    assert_eq!(server.faults().counts()[0].fired, 1);
}

#[tokio::test]
async fn only_the_refused_operations_of_a_call_are_sent_again() {
    let (server, client) = start(None).await;
    fail(&server, FaultKind::Partial, 0.5, None);
    let outcomes = client.bulk(&writes(200)).await.unwrap();
    let refused: Vec<_> =
        outcomes.iter().enumerate().filter(|(_, outcome)| !outcome.is_durable()).map(|(n, _)| n).collect();
    // Each write has four attempts, and each attempt fails with a probability of 50%.
    assert!((1..50).contains(&refused.len()), "{} refused", refused.len());
    server.faults().clear();
    assert_eq!(live(&client).await, 200 - refused.len() as u64);
    for (n, outcome) in outcomes.iter().enumerate() {
        let stored = client.get::<ProductDocument>(&document_id(&n.to_string(), "PRODUCT")).await.unwrap();
        assert_eq!(stored.is_some(), outcome.is_durable(), "{n}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_can_be_sent_again() {
    let server = SearchServer::start(None).await.unwrap();
    let patient = client(&server, LIMITS);
    patient.ensure_indices().await.unwrap();
    let limits = Limits { attempt: Duration::from_millis(500), attempts: 2, ..LIMITS };
    fail(&server, FaultKind::Timeout, 1.0, Some(1));
    let hurried = client(&server, limits);
    assert_eq!(hurried.bulk_into("bodega-products-v1", &writes(1)).await.unwrap(), [BulkOutcome::Applied]);
    assert_eq!(live(&patient).await, 1);
}

#[tokio::test]
async fn indices_and_documents_in_a_data_folder_survive_a_restart() {
    let folder = Folder::new("outlive");
    let (server, client) = start(Some(&folder.0)).await;
    client.bulk(&writes(10)).await.unwrap();
    client.bulk(&[write(3, 5)]).await.unwrap();
    drop((server, client));

    let (server, client) = start(Some(&folder.0)).await;
    assert_eq!(live(&client).await, 10);
    assert_eq!(client.bulk(&[write(3, 4)]).await.unwrap(), [BulkOutcome::Stale]);
    let page = client.search_products(&ProductQuery { size: 20, ..ProductQuery::default() }).await.unwrap();
    assert_eq!(page.hits.len(), 10);
    drop((server, client));
}

#[tokio::test]
async fn a_file_of_many_old_versions_is_compacted_at_the_start() {
    let folder = Folder::new("compact");
    let (server, client) = start(Some(&folder.0)).await;
    for rev in 1..=10 {
        client.bulk(&[write(1, rev), write(2, rev)]).await.unwrap();
    }
    drop((server, client));
    let lines = || fs::read_to_string(folder.0.join("bodega-products-v1.ndjson")).unwrap().lines().count();
    assert_eq!(lines(), 20);

    let (server, client) = start(Some(&folder.0)).await;
    assert_eq!(lines(), 2);
    client.bulk(&[write(3, 1)]).await.unwrap();
    assert_eq!((lines(), live(&client).await), (3, 3));
    drop((server, client));
    let (_server, client) = start(Some(&folder.0)).await;
    assert_eq!(client.bulk(&[write(1, 9), write(1, 10)]).await.unwrap(), [BulkOutcome::Stale, BulkOutcome::Applied]);
}

#[tokio::test]
async fn an_incomplete_write_is_dropped_and_a_damaged_file_is_refused() {
    let folder = Folder::new("damaged");
    let (server, client) = start(Some(&folder.0)).await;
    client.bulk(&writes(3)).await.unwrap();
    drop((server, client));
    let file = folder.0.join("bodega-products-v1.ndjson");
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{whole}{{\"id\":\"x\",\"ver")).unwrap();

    let (server, client) = start(Some(&folder.0)).await;
    assert_eq!(live(&client).await, 3);
    assert_eq!(fs::read_to_string(&file).unwrap(), whole);
    drop((server, client));

    fs::write(&file, format!("rubbish\n{whole}")).unwrap();
    let error = SearchServer::start(Some(&folder.0)).await.err().unwrap();
    assert!(matches!(error, Error::Damaged { .. }), "{error:?}");
}

async fn send(server: &SearchServer, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let request = reqwest::Client::new().request(method.parse().unwrap(), format!("{}{path}", server.url()));
    let answer = request.json(body).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

#[tokio::test]
async fn the_engine_refuses_requests_that_it_does_not_know() {
    let (server, client) = start(None).await;
    client.bulk(&writes(3)).await.unwrap();
    for body in [
        json!({"query": {"query_string": {"query": "*"}}}),
        json!({"query": {"match_all": {"boost": 2}}}),
        json!({"query": {"bool": {"must": [], "boost": 2}}}),
        json!({"query": {"multi_match": {"query": "x", "fields": ["name"], "type": "phrase"}}}),
        json!({"query": {"multi_match": {"query": "x", "fields": ["name"], "fuzziness": "1"}}}),
        json!({"query": {"term": {"unknown": {"value": "x"}}}}),
        json!({"query": {"term": {"package_size": {"value": "not indexed"}}}}),
        json!({"query": {"range": {"price_amount": {"gte": 1, "format": "x"}}}}),
        json!({"query": {"match_all": {}, "term": {}}}),
        json!({"explain": true}),
        json!({"from": 9_991}),
        json!({"from": 1, "sort": [{"id": "asc"}], "search_after": ["a"]}),
        json!({"collapse": {"field": "name"}}),
        json!({"collapse": {"field": "group", "inner_hits": {}}}),
        json!({"aggs": {"a": {"cardinality": {"field": "price_amount"}}}}),
        json!({"size": 10_001}),
        json!({"sort": [{"name": "asc"}]}),
        json!({"sort": [{"id": "asc"}], "search_after": [1]}),
        json!({"sort": [{"id": "asc"}], "search_after": ["a", "b"]}),
        json!({"aggs": {"a": {"avg": {"field": "price_amount"}}}}),
        json!({"highlight": {"fields": {"name": {}}}}),
    ] {
        let (status, answer) = send(&server, "POST", "/bodega-products/_search", &body).await;
        assert_eq!((status, &answer["status"]), (400, &json!(400)), "{body}");
    }
    for (method, path) in
        [("POST", "/bodega-products/_update/1"), ("DELETE", "/bodega-products"), ("GET", "/_cat/indices")]
    {
        assert_eq!(send(&server, method, path, &json!({})).await.0, 400, "{method} {path}");
    }
}

#[tokio::test]
async fn every_supported_query_finds_the_expected_documents() {
    let (server, client) = start(None).await;
    client.bulk(&writes(5)).await.unwrap();
    for (query, count) in [
        (json!({"match_all": {}}), 5),
        (json!({"terms": {"id": ["1", "3", "7"]}}), 2),
        (json!({"prefix": {"brand": "Nat"}}), 5),
        (json!({"range": {"created_at": {"gt": "2017-01-01T00:00:00.000Z", "lt": "2017-01-02T00:00:00.000Z"}}}), 5),
        (json!({"range": {"price_amount": {"gt": 100}}}), 0),
        (json!({"bool": {"should": [{"term": {"id": "1"}}, {"term": {"id": "2"}}]}}), 2),
        (json!({"bool": {"must": {"term": {"id": "1"}}, "should": {"term": {"id": "2"}}}}), 1),
        (json!({"bool": {"must_not": {"term": {"id": "1"}}}}), 4),
        (json!({"multi_match": {"query": "product nothing", "fields": ["name"], "operator": "or"}}), 5),
    ] {
        let (status, answer) = send(&server, "POST", "/bodega-products/_count", &json!({"query": query})).await;
        assert_eq!((status, &answer["count"]), (200, &json!(count)), "{query}: {answer}");
    }
}

#[tokio::test]
async fn an_alias_is_moved_in_one_step() {
    let (server, client) = start(None).await;
    client.bulk(&writes(5)).await.unwrap();
    assert_eq!(send(&server, "PUT", "/bodega-products-v2", &json!({})).await.0, 200);
    let moved = json!({"actions": [
        {"remove": {"index": "bodega-products-v1", "alias": "bodega-products"}},
        {"add": {"index": "bodega-products-v2", "alias": "bodega-products"}},
    ]});
    assert_eq!(send(&server, "POST", "/_aliases", &moved).await.0, 200);
    assert_eq!(live(&client).await, 0);
    assert_eq!(send(&server, "POST", "/_aliases", &moved).await.0, 404, "the first index no longer has the alias");
    client.ensure_indices().await.unwrap();
    assert_eq!(client.bulk(&[write(1, 1)]).await.unwrap(), [BulkOutcome::Applied]);
    assert_eq!(live(&client).await, 1);
}

/// Waits until a fault has hit a request.
async fn struck(server: &SearchServer) {
    while server.faults().counts()[0].fired == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_write_that_looked_up_its_index_before_a_rebuild_goes_to_the_new_index() {
    let (server, client) = start(None).await;
    let late = {
        let client = client.clone();
        fail(&server, FaultKind::Slow, 1.0, Some(1));
        tokio::spawn(async move { client.bulk(&[write(1, 2)]).await })
    };
    // The call has looked up its target index, but has not written yet.
    struck(&server).await;
    let rebuild = client.begin_rebuild(Collection::Products).await.unwrap();
    client.bulk_into(rebuild.new_index(), &[write(1, 2)]).await.unwrap();
    client.finish_rebuild(&rebuild).await.unwrap();
    client.delete_index(rebuild.old()).await.unwrap();
    assert_eq!(late.await.unwrap().unwrap(), [BulkOutcome::Applied]);
    assert_eq!(client.indices(Collection::Products).await.unwrap().len(), 1);
    assert_eq!(live(&client).await, 1);
}

#[tokio::test]
async fn a_document_that_is_written_again_during_the_purge_of_its_tombstone_survives() {
    let (server, client) = start(None).await;
    let id = document_id("1", "PRODUCT");
    let gone = BulkOperation::tombstone(Collection::Products, id.clone(), 2, "2017-01-01T00:00:00.000Z").unwrap();
    for rev in [2, 3] {
        client.bulk(std::slice::from_ref(&gone)).await.unwrap();
        let purge = {
            let client = client.clone();
            fail(&server, FaultKind::Slow, 1.0, Some(1));
            tokio::spawn(async move {
                client.purge_tombstones(Collection::Products, "2018-01-01T00:00:00.000Z", 10, None).await
            })
        };
        struck(&server).await;
        client.bulk(&[write(1, rev)]).await.unwrap();
        let page = purge.await.unwrap().unwrap();
        assert_eq!((page.purged, page.found), (0, page.replaced), "{page:?}");
        let stored = client.get::<ProductDocument>(&id).await.unwrap().unwrap();
        assert!(stored.document.is_some(), "the document with version {rev} is missing");
        server.faults().clear();
    }
}
