//! Tests the event bus with requests in AWS JSON 1.1. `.ci/wire` sends them with AWS's client.

use emulators::events::{EventBusServer, Published};
use emulators::faults::{Fault, FaultKind};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    failed_entry_count: usize,
    entries: Vec<Outcome>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Outcome {
    event_id: Option<String>,
    error_code: Option<String>,
}

async fn start() -> (EventBusServer, String) {
    of(EventBusServer::start(&["bodega".to_owned()]).await.unwrap())
}

fn of(server: EventBusServer) -> (EventBusServer, String) {
    let url = server.url().to_owned();
    (server, url)
}

fn entry(n: usize) -> Value {
    let detail = json!({"n": n}).to_string();
    json!({"EventBusName": "bodega", "Source": "bodega", "DetailType": "OrderPlaced", "Detail": detail})
}

/// Returns entry `n` with this value for the member.
fn with(n: usize, member: &str, value: Value) -> Value {
    let mut entry = entry(n);
    entry[member] = value;
    entry
}

/// Sends entries. Returns the response, or else the error code. The code is `none` if there is no
/// response.
async fn put(url: &str, entries: impl IntoIterator<Item = Value>) -> Result<Answer, String> {
    let entries = json!({"Entries": entries.into_iter().collect::<Vec<_>>()});
    let request = reqwest::Client::new().post(url).header("x-amz-target", "AWSEvents.PutEvents");
    let request = request.header("content-type", "application/x-amz-json-1.1").body(entries.to_string());
    let Ok(response) = request.send().await else { return Err("none".to_owned()) };
    let body: Value = response.json().await.unwrap();
    match body["__type"].as_str() {
        Some(code) => Err(code.to_owned()),
        None => Ok(serde_json::from_value(body).unwrap()),
    }
}

fn numbers(published: &[Published]) -> Vec<usize> {
    published.iter().map(|event| usize::try_from(event.detail["n"].as_u64().unwrap()).unwrap()).collect()
}

fn fail(server: &EventBusServer, kind: FaultKind, count: Option<u32>, seed: u64) {
    server.faults().add(Fault { kind, rate: 1.0, count, seed }).unwrap();
}

#[tokio::test]
async fn an_accepted_event_survives_a_restart_and_an_event_that_cannot_be_kept_is_refused() {
    let file = std::env::temp_dir().join(format!("bodega-events-{:016x}", fastrand::u64(..)));
    for (run, before) in [(1, vec![]), (2, vec![1])] {
        let accept = move |event: &Published| match event.detail["n"].as_u64() {
            Some(7) => Err(std::io::Error::other("full")),
            _ => Ok(()),
        };
        let server = EventBusServer::open(&["bodega".to_owned()], &file, Box::new(accept)).await.unwrap();
        assert_eq!(numbers(&server.published(0, 10).items), before);
        let (server, url) = of(server);
        let mut subscriber = server.subscribe(10);
        let put = put(&url, [entry(7), entry(run)]).await.unwrap();
        let codes: Vec<_> = put.entries.iter().map(|entry| entry.error_code.as_deref()).collect();
        assert_eq!(codes, [Some("InternalException"), None]);
        assert_eq!(numbers(&[subscriber.recv().await.unwrap()]), [run]);
    }
    std::fs::remove_file(file).unwrap();
}

#[tokio::test]
async fn an_event_is_kept_and_handed_to_every_subscriber_before_its_publisher_is_answered() {
    let (server, url) = start().await;
    let (mut first, mut second) = (server.subscribe(10), server.subscribe(10));
    let mut later = with(2, "EventBusName", json!("arn:aws:events:us-east-1:000000000000:event-bus/bodega"));
    (later["Time"], later["Resources"]) = (json!(1_785_000_000.75), json!(["a"]));
    let put = put(&url, [entry(1), later]).await.unwrap();
    assert_eq!(put.failed_entry_count, 0);
    let page = server.published(0, 10);
    assert_eq!((numbers(&page.items), page.next, page.more), (vec![1, 2], 2, false));
    let ids: Vec<&str> = put.entries.iter().map(|entry| entry.event_id.as_deref().unwrap()).collect();
    let published: Vec<&str> = page.items.iter().map(|event| event.event_id.as_str()).collect();
    assert_eq!(ids, published);
    for subscriber in [&mut first, &mut second] {
        assert_eq!(subscriber.try_recv().unwrap(), page.items[0]);
        assert_eq!(subscriber.try_recv().unwrap(), page.items[1]);
        assert!(subscriber.try_recv().is_err());
    }
    let expected = json!({
        "version": "0", "id": ids[1], "detail-type": "OrderPlaced", "source": "bodega", "account": "000000000000",
        "time": "2026-07-25T17:20:00Z", "region": "us-east-1", "resources": ["a"], "detail": {"n": 2},
    });
    assert_eq!(page.items[1].envelope(), expected);
    assert_eq!(server.published(1, 10).items, page.items[1..]);
}

#[tokio::test]
async fn an_invalid_entry_fails_alone() {
    let (server, url) = start().await;
    let entries = [
        entry(0),
        with(1, "Source", Value::Null),
        with(2, "DetailType", json!("")),
        with(3, "Detail", Value::Null),
        with(4, "Detail", json!("{")),
        with(5, "Detail", json!("[]")),
        with(6, "Source", json!("aws.s3")),
        with(7, "EventBusName", json!("elsewhere")),
        with(8, "EventBusName", Value::Null),
        with(9, "DetailType", json!("x".repeat(129))),
    ];
    let put = put(&url, entries).await.unwrap();
    let codes: Vec<&str> = put.entries.iter().map(|entry| entry.error_code.as_deref().unwrap_or("taken")).collect();
    let expected = [
        "taken",
        "InvalidArgument",
        "InvalidArgument",
        "InvalidArgument",
        "MalformedDetail",
        "MalformedDetail",
        "NotAuthorizedForSourceException",
        "ResourceNotFoundException",
        "ResourceNotFoundException",
        "InvalidArgument",
    ];
    assert_eq!(codes, expected);
    assert_eq!(put.failed_entry_count, 9);
    assert_eq!(numbers(&server.published(0, 10).items), [0]);
}

#[tokio::test]
async fn a_request_over_a_limit_is_refused_as_a_whole() {
    let (server, url) = start().await;
    // The size of an entry includes its source and its type. An entry that is exactly as large as
    // the limit is refused.
    let filler = 256 * 1024 - "bodega".len() - "OrderPlaced".len() - r#"{"n":1,"filler":""}"#.len();
    let large = |filler: usize| with(1, "Detail", json!(format!(r#"{{"n":1,"filler":"{}"}}"#, "x".repeat(filler))));
    assert_eq!(put(&url, (0..11).map(entry)).await.unwrap_err(), "ValidationException");
    assert_eq!(put(&url, []).await.unwrap_err(), "ValidationException");
    assert_eq!(put(&url, [large(filler)]).await.unwrap_err(), "ValidationException");
    assert_eq!(put(&url, [large(filler / 2), large(filler / 2 + 1)]).await.unwrap_err(), "ValidationException");
    assert_eq!(server.published(0, 10).next, 0);
    assert_eq!(put(&url, [large(filler - 1)]).await.unwrap().failed_entry_count, 0);
    assert_eq!(put(&url, (0..10).map(entry)).await.unwrap().failed_entry_count, 0);
    assert_eq!(server.published(0, 100).next, 11);
}

#[tokio::test]
async fn an_unsupported_operation_and_invalid_json_are_refused() {
    let server = EventBusServer::start(&[]).await.unwrap();
    for (target, body, code) in [
        ("AWSEvents.PutRule", "{}", "UnknownOperationException"),
        ("AWSEvents.PutEvents", "{", "SerializationException"),
        ("AWSEvents.PutEvents", r#"{"Entries":[{"Surprise":1}]}"#, "SerializationException"),
    ] {
        let request = reqwest::Client::new().post(server.url()).header("x-amz-target", target).body(body);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 400);
        assert_eq!(answer.json::<Value>().await.unwrap()["__type"], code);
    }
}

#[tokio::test]
async fn a_publisher_waits_for_a_subscriber_whose_queue_is_full_and_no_event_is_lost() {
    let (server, url) = start().await;
    let mut subscriber = server.subscribe(1);
    let putting = tokio::spawn(async move { put(&url, (0..3).map(entry)).await });
    assert_eq!(subscriber.recv().await.unwrap().detail["n"], 0);
    assert!(!putting.is_finished());
    assert_eq!(subscriber.recv().await.unwrap().detail["n"], 1);
    assert_eq!(subscriber.recv().await.unwrap().detail["n"], 2);
    assert_eq!(putting.await.unwrap().unwrap().failed_entry_count, 0);
    assert_eq!(numbers(&server.published(0, 10).items), [0, 1, 2]);
}

#[tokio::test]
async fn after_a_publisher_disconnects_only_events_that_the_subscriber_received_are_published() {
    let (server, url) = start().await;
    let mut subscriber = server.subscribe(1);
    let putting = tokio::spawn(async move { put(&url, (0..3).map(entry)).await });
    assert_eq!(subscriber.recv().await.unwrap().detail["n"], 0);
    putting.abort();
    assert!(putting.await.unwrap_err().is_cancelled());
    let mut received = 1;
    // Only events that were in transit at the abort may still arrive.
    while let Ok(Some(_)) = tokio::time::timeout(std::time::Duration::from_millis(200), subscriber.recv()).await {
        received += 1;
    }
    assert_eq!(server.published(0, 10).next, received);
}

#[tokio::test]
async fn a_dropped_subscriber_does_not_block_the_others() {
    let (server, url) = start().await;
    drop(server.subscribe(1));
    let mut staying = server.subscribe(20);
    for _ in 0..2 {
        assert_eq!(put(&url, (0..5).map(entry)).await.unwrap().failed_entry_count, 0);
    }
    assert_eq!((0..10).filter(|_| staying.try_recv().is_ok()).count(), 10);
}

#[tokio::test]
async fn a_partial_failure_throttles_some_entries_and_accepts_the_others() {
    for (seed, entries) in (0..20).flat_map(|seed| [(seed, 10), (seed, 2)]) {
        let (server, url) = start().await;
        fail(&server, FaultKind::Partial, Some(1), seed);
        let put = put(&url, (0..entries).map(entry)).await.unwrap();
        let refused = |at: &usize| {
            let code = put.entries[*at].error_code.as_deref();
            assert!(matches!(code, None | Some("ThrottlingException")), "{code:?}");
            code.is_some()
        };
        let (failed, taken): (Vec<usize>, Vec<usize>) = (0..entries).partition(refused);
        assert!(!failed.is_empty() && !taken.is_empty(), "seed {seed}: {failed:?}");
        assert_eq!(put.failed_entry_count, failed.len());
        assert_eq!(numbers(&server.published(0, 10).items), taken);
    }
    let (server, url) = start().await;
    fail(&server, FaultKind::Partial, Some(1), 0);
    assert_eq!(put(&url, [entry(0)]).await.unwrap().failed_entry_count, 1, "the only entry fails");
    assert_eq!(put(&url, [entry(0)]).await.unwrap().failed_entry_count, 0);
}

#[tokio::test]
async fn each_kind_of_fault_has_its_documented_effect() {
    for (kind, code) in [
        (FaultKind::Throttle, "ThrottlingException"),
        (FaultKind::Error, "InternalException"),
        (FaultKind::Reset, "none"),
    ] {
        let (server, url) = start().await;
        fail(&server, kind, None, 0);
        assert_eq!(put(&url, [entry(0)]).await.unwrap_err(), code, "{kind:?}");
        assert!(server.faults().counts()[0].fired > 0, "{kind:?}");
        assert_eq!(server.published(0, 10).next, 0, "{kind:?}: the request must not be executed");
        server.faults().clear();
        fail(&server, FaultKind::Conflict, None, 0);
        fail(&server, FaultKind::Slow, Some(1), 0);
        assert_eq!(put(&url, [entry(0)]).await.unwrap().failed_entry_count, 0, "{kind:?}");
        assert_eq!(server.published(0, 10).next, 1);
    }
    let (server, url) = start().await;
    fail(&server, FaultKind::Timeout, None, 0);
    let hasty = tokio::time::timeout(std::time::Duration::from_millis(300), put(&url, [entry(0)])).await;
    assert!(hasty.is_err());
    assert_eq!(server.published(0, 10).next, 1, "the request must be executed although no response comes");
}
