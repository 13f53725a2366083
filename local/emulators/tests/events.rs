//! The event bus, put to by the SDK.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::config::retry::RetryConfig;
use aws_sdk_eventbridge::config::{BehaviorVersion, Config, Credentials, Region};
use aws_sdk_eventbridge::error::ProvideErrorMetadata;
use aws_sdk_eventbridge::operation::put_events::PutEventsOutput;
use aws_sdk_eventbridge::primitives::DateTime;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use aws_sdk_eventbridge::types::builders::PutEventsRequestEntryBuilder;
use emulators::events::{EventBusServer, Published};
use emulators::faults::{Fault, FaultKind};
use serde_json::json;

async fn start() -> (EventBusServer, Client) {
    of(EventBusServer::start(&["bodega".to_owned()]).await.unwrap())
}

fn of(server: EventBusServer) -> (EventBusServer, Client) {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "test"))
        .endpoint_url(server.url())
        .retry_config(RetryConfig::standard().with_initial_backoff(std::time::Duration::from_millis(1)))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .build();
    (server, Client::from_conf(config))
}

fn entry(n: usize) -> PutEventsRequestEntryBuilder {
    let entry = PutEventsRequestEntry::builder().event_bus_name("bodega").source("bodega").detail_type("OrderPlaced");
    entry.detail(json!({"n": n}).to_string())
}

async fn put(
    client: &Client,
    entries: impl IntoIterator<Item = PutEventsRequestEntryBuilder>,
) -> Result<PutEventsOutput, String> {
    let entries = entries.into_iter().map(PutEventsRequestEntryBuilder::build).collect();
    let put = client.put_events().set_entries(Some(entries)).send().await;
    put.map_err(|error| error.into_service_error().code().unwrap_or("none").to_owned())
}

fn numbers(published: &[Published]) -> Vec<usize> {
    published.iter().map(|event| usize::try_from(event.detail["n"].as_u64().unwrap()).unwrap()).collect()
}

fn fail(server: &EventBusServer, kind: FaultKind, count: Option<u32>, seed: u64) {
    server.faults().add(Fault { kind, rate: 1.0, count, seed }).unwrap();
}

#[tokio::test]
async fn what_was_taken_is_there_again_and_what_cannot_be_kept_is_refused() {
    let file = std::env::temp_dir().join(format!("bodega-events-{:016x}", fastrand::u64(..)));
    for (run, before) in [(1, vec![]), (2, vec![1])] {
        let accept = move |event: &Published| match event.detail["n"].as_u64() {
            Some(7) => Err(std::io::Error::other("full")),
            _ => Ok(()),
        };
        let server = EventBusServer::open(&["bodega".to_owned()], &file, Box::new(accept)).await.unwrap();
        assert_eq!(numbers(&server.published(0, 10).items), before);
        let (server, client) = of(server);
        let mut subscriber = server.subscribe(10);
        let put = put(&client, [entry(7), entry(run)]).await.unwrap();
        let codes: Vec<_> = put.entries().iter().map(|entry| entry.error_code()).collect();
        assert_eq!(codes, [Some("InternalException"), None]);
        assert_eq!(numbers(&[subscriber.recv().await.unwrap()]), [run]);
    }
    std::fs::remove_file(file).unwrap();
}

#[tokio::test]
async fn an_event_is_kept_and_handed_to_every_subscriber_before_its_publisher_is_answered() {
    let (server, client) = start().await;
    let (mut first, mut second) = (server.subscribe(10), server.subscribe(10));
    let at = DateTime::from_secs_f64(1_785_000_000.75);
    let arn = "arn:aws:events:us-east-1:000000000000:event-bus/bodega";
    let put = put(&client, [entry(1), entry(2).time(at).resources("a").event_bus_name(arn)]).await.unwrap();
    assert_eq!(put.failed_entry_count(), 0);
    let page = server.published(0, 10);
    assert_eq!((numbers(&page.items), page.next, page.more), (vec![1, 2], 2, false));
    let ids: Vec<&str> = put.entries().iter().map(|entry| entry.event_id().unwrap()).collect();
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
async fn an_entry_that_is_none_fails_alone() {
    let (server, client) = start().await;
    let entries = [
        entry(0),
        entry(1).set_source(None),
        entry(2).detail_type(""),
        entry(3).set_detail(None),
        entry(4).detail("{"),
        entry(5).detail("[]"),
        entry(6).source("aws.s3"),
        entry(7).event_bus_name("elsewhere"),
        entry(8).set_event_bus_name(None),
        entry(9).detail_type("x".repeat(129)),
    ];
    let put = put(&client, entries).await.unwrap();
    let codes: Vec<&str> = put.entries().iter().map(|entry| entry.error_code().unwrap_or("taken")).collect();
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
    assert_eq!(put.failed_entry_count(), 9);
    assert_eq!(numbers(&server.published(0, 10).items), [0]);
}

#[tokio::test]
async fn a_request_over_a_limit_is_refused_whole() {
    let (server, client) = start().await;
    // Source and type count, too; the limit itself is too much.
    let filler = 256 * 1024 - "bodega".len() - "OrderPlaced".len() - r#"{"n":1,"filler":""}"#.len();
    let large = |filler: usize| entry(1).detail(format!(r#"{{"n":1,"filler":"{}"}}"#, "x".repeat(filler)));
    assert_eq!(put(&client, (0..11).map(entry)).await.unwrap_err(), "ValidationException");
    assert_eq!(put(&client, []).await.unwrap_err(), "ValidationException");
    assert_eq!(put(&client, [large(filler)]).await.unwrap_err(), "ValidationException");
    assert_eq!(put(&client, [large(filler / 2), large(filler / 2 + 1)]).await.unwrap_err(), "ValidationException");
    assert_eq!(server.published(0, 10).next, 0);
    assert_eq!(put(&client, [large(filler - 1)]).await.unwrap().failed_entry_count(), 0);
    assert_eq!(put(&client, (0..10).map(entry)).await.unwrap().failed_entry_count(), 0);
    assert_eq!(server.published(0, 100).next, 11);
}

#[tokio::test]
async fn another_call_and_what_is_no_json_are_refused() {
    let server = EventBusServer::start(&[]).await.unwrap();
    for (target, body, code) in [
        ("AWSEvents.PutRule", "{}", "UnknownOperationException"),
        ("AWSEvents.PutEvents", "{", "SerializationException"),
        ("AWSEvents.PutEvents", r#"{"Entries":[{"Surprise":1}]}"#, "SerializationException"),
    ] {
        let request = reqwest::Client::new().post(server.url()).header("x-amz-target", target).body(body);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 400);
        assert_eq!(answer.json::<serde_json::Value>().await.unwrap()["__type"], code);
    }
}

#[tokio::test]
async fn a_publisher_waits_for_a_subscriber_without_room_and_nothing_is_lost() {
    let (server, client) = start().await;
    let mut subscriber = server.subscribe(1);
    let putting = tokio::spawn(async move { put(&client, (0..3).map(entry)).await });
    assert_eq!(subscriber.recv().await.unwrap().detail["n"], 0);
    assert!(!putting.is_finished());
    assert_eq!(subscriber.recv().await.unwrap().detail["n"], 1);
    assert_eq!(subscriber.recv().await.unwrap().detail["n"], 2);
    assert_eq!(putting.await.unwrap().unwrap().failed_entry_count(), 0);
    assert_eq!(numbers(&server.published(0, 10).items), [0, 1, 2]);
}

#[tokio::test]
async fn a_publisher_that_left_while_it_waited_published_what_was_seen_and_no_more() {
    let (server, client) = start().await;
    let mut subscriber = server.subscribe(1);
    let putting = tokio::spawn(async move { put(&client, (0..3).map(entry)).await });
    assert_eq!(subscriber.recv().await.unwrap().detail["n"], 0);
    putting.abort();
    assert!(putting.await.unwrap_err().is_cancelled());
    let mut received = 1;
    // What was on its way when it left still arrives; then nothing does.
    while let Ok(Some(_)) = tokio::time::timeout(std::time::Duration::from_millis(200), subscriber.recv()).await {
        received += 1;
    }
    assert_eq!(server.published(0, 10).next, received);
}

#[tokio::test]
async fn a_subscriber_that_left_holds_nobody_up() {
    let (server, client) = start().await;
    drop(server.subscribe(1));
    let mut staying = server.subscribe(20);
    for _ in 0..2 {
        assert_eq!(put(&client, (0..5).map(entry)).await.unwrap().failed_entry_count(), 0);
    }
    assert_eq!((0..10).filter(|_| staying.try_recv().is_ok()).count(), 10);
}

#[tokio::test]
async fn a_partial_failure_throttles_some_entries_and_takes_the_others() {
    for (seed, entries) in (0..20).flat_map(|seed| [(seed, 10), (seed, 2)]) {
        let (server, client) = start().await;
        fail(&server, FaultKind::Partial, Some(1), seed);
        let put = put(&client, (0..entries).map(entry)).await.unwrap();
        let refused = |at: &usize| {
            let code = put.entries()[*at].error_code();
            assert!(matches!(code, None | Some("ThrottlingException")), "{code:?}");
            code.is_some()
        };
        let (failed, taken): (Vec<usize>, Vec<usize>) = (0..entries).partition(refused);
        assert!(!failed.is_empty() && !taken.is_empty(), "seed {seed}: {failed:?}");
        assert_eq!(put.failed_entry_count(), i32::try_from(failed.len()).unwrap());
        assert_eq!(numbers(&server.published(0, 10).items), taken);
    }
    let (server, client) = start().await;
    fail(&server, FaultKind::Partial, Some(1), 0);
    assert_eq!(put(&client, [entry(0)]).await.unwrap().failed_entry_count(), 1, "the only one");
    assert_eq!(put(&client, [entry(0)]).await.unwrap().failed_entry_count(), 0);
}

#[tokio::test]
async fn a_fault_does_what_it_says() {
    for (kind, code) in [
        (FaultKind::Throttle, "ThrottlingException"),
        (FaultKind::Error, "InternalException"),
        (FaultKind::Reset, "none"),
    ] {
        let (server, client) = start().await;
        fail(&server, kind, None, 0);
        assert_eq!(put(&client, [entry(0)]).await.unwrap_err(), code, "{kind:?}");
        assert_eq!(server.faults().counts()[0].fired, 3, "{kind:?}: the SDK's attempts");
        assert_eq!(server.published(0, 10).next, 0, "{kind:?}: nothing was done");
        server.faults().clear();
        fail(&server, FaultKind::Conflict, None, 0);
        fail(&server, FaultKind::Slow, Some(1), 0);
        assert_eq!(put(&client, [entry(0)]).await.unwrap().failed_entry_count(), 0, "{kind:?}");
        assert_eq!(server.published(0, 10).next, 1);
    }
    let (server, client) = start().await;
    fail(&server, FaultKind::Timeout, None, 0);
    let hasty = tokio::time::timeout(std::time::Duration::from_millis(300), put(&client, [entry(0)])).await;
    assert!(hasty.is_err());
    assert_eq!(server.published(0, 10).next, 1, "done, but never answered");
}
