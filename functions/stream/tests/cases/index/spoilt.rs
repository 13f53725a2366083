//! Tests of documents that the engine does not accept.

use serde_json::Value;

use crate::engine::Engine;
use crate::support::{consumer, earliest, insert, product, remove};

/// One more than the engine's highest version.
const BEYOND: u64 = 1 << 63;

#[tokio::test]
async fn case_35_an_item_with_a_rev_that_no_engine_accepts_is_quarantined_alone() {
    let engine = Engine::start().await;
    let (consumer, shelf) = consumer([engine.sink().await]);
    let mut version = product("poison2", 1);
    version.meta.version = BEYOND;
    let batch = [
        insert("1", &product("a", 1)),
        insert("2", &product("poison", BEYOND)),
        insert("3", &version),
        insert("4", &product("b", 1)),
    ];
    assert_eq!(earliest(&consumer, &batch).await, None);
    assert_eq!(engine.products().await, [("a".to_owned(), 1), ("b".to_owned(), 1)]);
    assert_eq!(shelf.sequences(), ["2", "3"]);
    assert!(shelf.kept().iter().all(|kept| kept.kind == "malformed_item"), "{:?}", shelf.kept());
}

/// Returns the record of a removal whose tombstone is invalid. The engine refuses the whole call
/// that contains the tombstone.
fn spoils(sequence: u64) -> Value {
    remove(&sequence.to_string(), &product(&format!("poison{sequence}"), BEYOND - 1))
}

#[tokio::test]
async fn case_35_a_document_that_fails_the_whole_call_is_quarantined_and_others_are_written() {
    let engine = Engine::start().await;
    let mut batch: Vec<Value> = (1..=20).map(|n| insert(&n.to_string(), &product(&format!("p{n:02}"), n))).collect();
    batch[4] = spoils(5);
    batch[16] = spoils(17);
    let written: Vec<(String, u64)> =
        (1..=20).filter(|n| ![5, 17].contains(n)).map(|n| (format!("p{n:02}"), n)).collect();
    let (consumer, shelf) = consumer([engine.sink().await]);
    assert_eq!(earliest(&consumer, &batch).await, None);
    assert_eq!(engine.products().await, written);
    assert_eq!(shelf.sequences(), ["5", "17"]);
    assert!(shelf.kept().iter().all(|kept| kept.kind == "index_rejects"), "{:?}", shelf.kept());
    // The engine also refuses a call that contains only such a tombstone.
    assert_eq!(earliest(&consumer, &[spoils(21)]).await, None);
    assert_eq!(shelf.sequences(), ["5", "17", "21"]);
}

#[tokio::test]
async fn a_batch_of_documents_that_fail_the_whole_call_is_done_after_several_deliveries() {
    let engine = Engine::start().await;
    let batch: Vec<Value> = (1..=300).map(spoils).collect();
    let (consumer, shelf) = consumer([engine.sink().await]);
    let first: usize = earliest(&consumer, &batch).await.unwrap().parse().unwrap();
    assert!(first > 100, "{first}");
    assert_eq!(earliest(&consumer, &batch[first - 1..]).await, None);
    assert_eq!(shelf.sequences().len(), 300);
}
