//! Tests of the quarantine in the object store.

use emulators::faults::{Fault, FaultKind};
use serde_json::{Value, json};
use stream::quarantine::{InStore, Quarantined};
use stream::{Consumer, Settings};

use crate::store::Bucket;
use crate::support::{Scripted, earliest, insert, product};

async fn set_up() -> (Bucket, Consumer) {
    let bucket = Bucket::create().await;
    let consumer = consumer(&bucket, "scripted");
    (bucket, consumer)
}

fn consumer(bucket: &Bucket, name: &'static str) -> Consumer {
    let sink = Scripted::failing(name, &[]);
    Consumer::new(vec![sink.boxed()], Box::new(InStore(bucket.store.clone())), Settings::default())
}

fn poison(sequence: &str) -> Value {
    let mut record = insert(sequence, &product("p1", 1));
    record["dynamodb"]["NewImage"]["price"] = json!({"M": {"amount": {"S": "cheap"}}});
    record
}

#[tokio::test]
async fn case_35_a_record_that_cannot_be_read_is_kept_whole_with_the_reason_and_the_shard_continues() {
    let (bucket, consumer) = set_up().await;
    assert_eq!(earliest(&consumer, &[poison("1"), insert("2", &product("p2", 1))]).await, None);
    let names = bucket.names();
    let [name] = names.as_slice() else { panic!("{names:?}") };
    // The record's time is in 2017 and implausible, so the name has the day of the quarantine.
    let kept: Quarantined = serde_json::from_str(&bucket.text(name)).unwrap();
    assert_eq!(*name, format!("quarantine/{}/event-1-scripted.json", kept.at.day()));
    assert_eq!((kept.event_id.as_deref(), kept.sequence_number.as_str()), (Some("event-1"), "1"));
    assert_eq!((kept.consumer.as_str(), kept.kind.as_str()), ("scripted", "malformed_item"));
    assert!(kept.reason.starts_with("NewImage: malformed Product"), "{}", kept.reason);
    assert_eq!(kept.record.get(), poison("1").to_string());
}

#[tokio::test]
async fn case_11_a_poison_record_that_is_delivered_twice_is_stored_as_one_object() {
    let (bucket, consumer) = set_up().await;
    for _ in 0..3 {
        assert_eq!(earliest(&consumer, &[poison("1")]).await, None);
    }
    assert_eq!(bucket.names().len(), 1);
}

#[tokio::test]
async fn a_record_of_any_size_is_kept_whole() {
    let (bucket, consumer) = set_up().await;
    let mut large = poison("1");
    // The record fits into an invocation, but is larger than an item of the table can be.
    large["dynamodb"]["NewImage"]["summary"] = json!({"S": "x".repeat(5 << 20)});
    assert_eq!(earliest(&consumer, std::slice::from_ref(&large)).await, None);
    assert_eq!(bucket.all()[0]["record"], large);
}

#[tokio::test]
async fn a_record_that_two_consumers_quarantine_is_stored_as_two_objects() {
    let (bucket, one) = set_up().await;
    let two = consumer(&bucket, "other");
    for consumer in [&one, &two] {
        assert_eq!(earliest(consumer, &[poison("1")]).await, None);
    }
    assert_eq!(bucket.names().len(), 2);
}

#[tokio::test]
async fn a_record_that_cannot_be_quarantined_is_delivered_again_and_blocks_no_other_record() {
    let (bucket, consumer) = set_up().await;
    let throttled = Fault { kind: FaultKind::Throttle, rate: 1.0, count: None, seed: 0 };
    bucket.server.faults().add(throttled).unwrap();
    let batch = [insert("1", &product("p2", 1)), poison("2")];
    assert_eq!(earliest(&consumer, &batch).await.as_deref(), Some("2"));
    assert!(bucket.names().is_empty());
    bucket.server.faults().clear();
    assert_eq!(earliest(&consumer, &batch).await, None);
    assert_eq!(bucket.names().len(), 1);
}
