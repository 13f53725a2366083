//! Tests of adding to, reading and splitting a counter, one request after another.

use emulators::table::FaultKind;
use http_api::sample::Call;
use key_schema::counter::{self, Reason};
use key_schema::id::CounterName;
use key_schema::invoice::InvoiceCounter;
use serde_json::json;

use crate::desk::{Desk, NAMES, add, in_seconds, read, split};

#[tokio::test]
async fn anybody_adds_to_a_counter_and_an_empty_body_adds_1() {
    let desk = Desk::open().await;
    let nothing_said = Call::new("POST /v1/counters/{name}").path("name", "views").json(&json!({}));
    let answer = desk.done(nothing_said.clone()).await;
    assert_eq!(answer.body, json!({ "name": "views", "added": 1 }));
    desk.done(nothing_said.customer("c1")).await;
    desk.done(add("views", 1000).staff("s1")).await;
    assert_eq!(desk.count("views").await, (1002, 1));
}

#[tokio::test]
async fn a_counter_does_not_exist_before_its_first_split_or_addition() {
    let desk = Desk::open().await;
    let answer = desk.send(read("views")).await;
    assert_eq!((answer.status, answer.code()), (404, Some("not_found")));
    desk.done(split("views")).await;
    assert_eq!(desk.count("views").await, (0, 2));
}

/// The counter of invoice numbers has the key of a counter with the name `invoices`.
#[tokio::test]
async fn no_caller_can_add_to_or_split_the_counter_of_invoices() {
    let desk = Desk::open().await;
    desk.put(&fixture::seed::stored(InvoiceCounter { last: 7 })).await;
    for call in [add("invoices", 1), read("invoices"), split("invoices")] {
        let refused = desk.send(call).await;
        assert_eq!((refused.status, refused.code()), (422, Some("invalid_id")), "{}", refused.body);
    }
    desk.done(add("invoices#", 1)).await;
    assert_eq!(desk.count("invoices#").await, (1, 1));
}

#[tokio::test]
async fn each_name_in_any_script_and_with_any_punctuation_is_a_separate_counter() {
    let desk = Desk::open().await;
    let longest = "#".repeat(128);
    for (n, name) in (1..).zip(NAMES.into_iter().chain([longest.as_str()])) {
        desk.done(add(name, n)).await;
        desk.done(split(name)).await;
        assert_eq!(desk.count(name).await, (n, 2), "{name}");
    }
}

#[tokio::test]
async fn an_addition_with_a_key_counts_once_and_has_one_response() {
    let desk = Desk::open().await;
    for caller in [None, Some("c1")] {
        let call = |amount| {
            let call = add("views", amount).header("idempotency-key", "k1");
            caller.iter().fold(call, |call, id| call.customer(id))
        };
        let first = desk.done(call(5)).await;
        for _ in 0..3 {
            let again = desk.done(call(5)).await;
            assert_eq!((&again.body, again.header("idempotency-replayed")), (&first.body, Some("true")));
        }
        let other = desk.send(call(6)).await;
        assert_eq!((other.status, other.code()), (422, Some("idempotency_key_reused")));
    }
    assert_eq!(desk.count("views").await.0, 10);
}

#[tokio::test]
async fn splits_double_the_shards_of_a_counter_up_to_64_and_keep_its_value() {
    let desk = Desk::open().await;
    let (mut expected, mut shards) = (0, 1);
    for _ in 0..7 {
        for _ in 0..10 {
            desk.done(add("views", 3)).await;
            expected += 3;
        }
        assert_eq!(desk.count("views").await, (expected, shards));
        let answer = desk.done(split("views")).await;
        shards = (shards * 2).min(64);
        assert_eq!(answer.body, json!({ "name": "views", "shards": shards }));
        assert_eq!(desk.count("views").await, (expected, shards));
    }
    assert_eq!(shards, 64);
    let _ = desk.app.table.meter().take();
    desk.count("views").await;
    let requests: u32 = desk.app.table.meter().take().iter().map(|measured| measured.requests).sum();
    assert_eq!(requests, 2, "the read of a counter with 64 shards takes two requests");
}

/// Covers a request that reads the head before a split and writes after the split.
#[tokio::test]
async fn an_addition_with_an_outdated_number_of_shards_is_counted() {
    let desk = Desk::open().await;
    let name = CounterName::new("views").unwrap();
    for seen in [1, 2, 4] {
        for shard in 0..seen {
            desk.own().transact(&counter::add(&name, shard, 10, None, in_seconds(0)).unwrap()).await.unwrap().unwrap();
        }
        desk.done(split("views")).await;
        for shard in 0..seen {
            desk.own().transact(&counter::add(&name, shard, 10, None, in_seconds(0)).unwrap()).await.unwrap().unwrap();
        }
    }
    assert_eq!(desk.count("views").await, (140, 8));
}

#[tokio::test]
async fn repeated_conflicts_between_additions_split_a_counter_once() {
    let desk = Desk::open().await;
    // Occasional conflicts do not make a counter hot.
    desk.break_with(FaultKind::Conflict, 1.0, Some(2), 0);
    desk.done(add("views", 1)).await;
    assert_eq!((desk.clear_faults(), desk.count("views").await), (2, (1, 1)));
    for _ in 0..3 {
        desk.break_with(FaultKind::Conflict, 1.0, Some(3), 0);
        desk.done(add("views", 1)).await;
        assert_eq!(desk.clear_faults(), 3);
    }
    assert_eq!(desk.count("views").await, (4, 2), "three conflicts within seconds cause one split");
    let name = CounterName::new("views").unwrap();
    let head = desk.own().get(&counter::head(&name).unwrap()).await.unwrap().unwrap();
    let again = |at| counter::split(&name, Some(&head), Reason::Hot, at).unwrap().unwrap();
    let since = head.meta.updated_at;
    assert!(desk.own().update(&again(since.plus_seconds(9))).await.unwrap().is_err());
    let after = desk.own().update(&again(since.plus_seconds(10))).await.unwrap().unwrap();
    assert_eq!((after.shards, desk.count("views").await), (4, (4, 4)));
}
