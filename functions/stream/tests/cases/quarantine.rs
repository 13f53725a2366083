//! The quarantine in the table.

use std::collections::BTreeSet;
use std::sync::Arc;

use fixture::TestTable;
use key_schema::item::Stored;
use key_schema::quarantine::{Quarantined, list};
use serde_json::{Value, json};
use stream::quarantine::{InTable, MAX_RECORD_BYTES};
use stream::{Consumer, Settings};
use table::Table;

use crate::support::{Scripted, earliest, insert, product};

async fn set_up() -> (TestTable, Arc<Table>, Consumer) {
    let test = TestTable::create().await;
    let table = Arc::new(test.table());
    let sink = Scripted::failing("scripted", &[]);
    let consumer = Consumer::new(vec![sink.boxed()], Box::new(InTable(table.clone())), Settings::default());
    (test, table, consumer)
}

/// What was set aside today. The records are from 2017, and that is not believed.
async fn quarantined(table: &Table) -> Vec<Stored<Quarantined>> {
    let now = key_schema::instant::Instant::now();
    let mut found = Vec::new();
    // The test may run over midnight.
    for day in BTreeSet::from([now.plus_seconds(-3_600).day(), now.day()]) {
        found.extend(table.query(&list(&day).unwrap()).await.unwrap().items);
    }
    found
}

fn poison(sequence: &str) -> Value {
    let mut record = insert(sequence, &product("p1", 1));
    record["dynamodb"]["NewImage"]["price"] = json!({"M": {"amount": {"S": "cheap"}}});
    record
}

#[tokio::test]
async fn case_35_a_poison_record_is_kept_whole_with_the_reason_and_the_shard_moves_on() {
    let (_test, table, consumer) = set_up().await;
    assert_eq!(earliest(&consumer, &[poison("1"), insert("2", &product("p2", 1))]).await, None);
    let kept = quarantined(&table).await;
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].event_id, "event-1");
    assert_eq!(kept[0].consumer, "scripted");
    assert!(kept[0].reason.starts_with("malformed_item: NewImage: malformed Product"), "{}", kept[0].reason);
    assert_eq!(kept[0].record, poison("1").to_string());
}

#[tokio::test]
async fn case_11_a_poison_record_that_is_delivered_twice_is_one_entry() {
    let (_test, table, consumer) = set_up().await;
    for _ in 0..3 {
        assert_eq!(earliest(&consumer, &[poison("1")]).await, None);
    }
    assert_eq!(quarantined(&table).await.len(), 1);
}

#[tokio::test]
async fn a_record_too_large_for_an_item_is_kept_by_its_key_and_place() {
    let (_test, table, consumer) = set_up().await;
    let mut large = poison("1");
    large["dynamodb"]["NewImage"]["summary"] = json!({"S": "x".repeat(MAX_RECORD_BYTES)});
    assert_eq!(earliest(&consumer, &[large]).await, None);
    let kept = quarantined(&table).await;
    let record: Value = serde_json::from_str(&kept[0].record).unwrap();
    assert_eq!(record["truncated"], true);
    assert!(record["bytes"].as_u64().unwrap() > 350 * 1024);
    assert_eq!(record["eventName"], "INSERT");
    assert_eq!(
        record["dynamodb"],
        json!({"SequenceNumber": "1", "Keys": {"PK": {"S": "PRODUCT#p1"}, "SK": {"S": "PRODUCT"}}})
    );
}

#[tokio::test]
async fn a_record_just_small_enough_is_kept_whole() {
    let (_test, table, consumer) = set_up().await;
    let mut large = poison("1");
    large["dynamodb"]["NewImage"]["summary"] = json!({"S": ""});
    let room = MAX_RECORD_BYTES - large.to_string().len();
    large["dynamodb"]["NewImage"]["summary"] = json!({"S": "x".repeat(room)});
    assert_eq!(earliest(&consumer, std::slice::from_ref(&large)).await, None);
    assert_eq!(quarantined(&table).await[0].record, large.to_string());
}

#[tokio::test]
async fn records_of_equal_event_id_from_two_consumers_are_two_entries() {
    let (_test, table, one) = set_up().await;
    let other = Scripted::failing("other", &[]);
    let two = Consumer::new(vec![other.boxed()], Box::new(InTable(table.clone())), Settings::default());
    for consumer in [&one, &two] {
        assert_eq!(earliest(consumer, &[poison("1")]).await, None);
    }
    assert_eq!(quarantined(&table).await.len(), 2);
}
