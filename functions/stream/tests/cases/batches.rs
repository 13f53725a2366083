//! Tests of batches: the response, the attempted records and the unfinished records.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use key_schema::order::OrderStatus;
use serde_json::{Value, json};
use stream::batch::{Batch, BatchError, Event};
use stream::lane;
use stream::sequence::{MAX_DIGITS, NotASequenceNumber, SequenceNumber};
use stream::verdict::{Verdict, Verdicts};
use tokio::time::Instant;

use crate::support::{
    Scripted, consumer, earliest, event, image, insert, modify, order, product, remove, retired, run,
};

/// Returns records of five different products.
fn five() -> Vec<Value> {
    (1..=5).map(|n| insert(&n.to_string(), &product(&format!("p{n}"), 1))).collect()
}

#[tokio::test]
async fn case_01_when_one_record_fails_the_answer_is_its_sequence_number_alone() {
    let sink = Scripted::failing("scripted", &["3"]);
    let taken = run(&consumer([sink.boxed()]).0, &five()).await;
    assert_eq!(serde_json::to_value(&taken.answer).unwrap(), json!({"batchItemFailures": [{"itemIdentifier": "3"}]}));
    assert_eq!(sink.attempted(), ["1", "2", "3", "4", "5"]);
}

#[tokio::test]
async fn case_02_after_a_failure_later_records_of_the_same_item_are_not_attempted() {
    let sink = Scripted::failing("scripted", &["1"]);
    let records = [
        insert("1", &product("a", 1)),
        modify("2", &product("a", 1), &product("a", 2)),
        insert("3", &product("b", 1)),
        modify("4", &product("a", 2), &product("a", 3)),
    ];
    let taken = run(&consumer([sink.boxed()]).0, &records).await;
    assert_eq!(taken.answer.earliest().unwrap().as_str(), "1");
    assert_eq!(sink.attempted(), ["1", "3"]);
    let counts = taken.report.counts("scripted").unwrap();
    assert_eq!((counts.done, counts.failed, counts.unfinished), (1, 1, 2));
}

#[tokio::test]
async fn case_04_when_all_records_fail_the_answer_is_the_first_sequence_number_and_no_error() {
    let sink = Scripted::failing("scripted", &["1", "2", "3", "4", "5"]);
    assert_eq!(earliest(&consumer([sink.boxed()]).0, &five()).await.as_deref(), Some("1"));
}

#[tokio::test]
async fn case_05_when_two_sinks_fail_the_answer_names_the_earlier_failed_record() {
    let sinks = [Scripted::failing("one", &["4"]), Scripted::failing("two", &["2"])];
    let (consumer, _) = consumer(sinks.iter().map(Scripted::boxed));
    assert_eq!(earliest(&consumer, &five()).await.as_deref(), Some("2"));
    sinks[1].recover();
    assert_eq!(earliest(&consumer, &five()).await.as_deref(), Some("4"));
    sinks[0].recover();
    assert_eq!(earliest(&consumer, &five()).await, None);
}

#[tokio::test]
async fn case_06_a_number_of_22_digits_is_earlier_than_one_of_23_digits() {
    let (short, long) = ("9999999999999999999999", "10000000000000000000000");
    let sink = Scripted::failing("scripted", &[short, long]);
    let records = [insert(short, &product("a", 1)), insert(long, &product("b", 1))];
    assert_eq!(earliest(&consumer([sink.boxed()]).0, &records).await.as_deref(), Some(short));
}

#[tokio::test]
async fn case_07_a_sequence_number_of_40_digits_comes_back_digit_by_digit() {
    let longest = "1234567890123456789012345678901234567890";
    let sink = Scripted::failing("scripted", &[longest]);
    let records = [insert(longest, &product("a", 1))];
    assert_eq!(earliest(&consumer([sink.boxed()]).0, &records).await.as_deref(), Some(longest));
}

#[tokio::test]
async fn case_08_a_record_without_a_sequence_number_fails_the_invocation_before_any_work() {
    let without = |change: &dyn Fn(&mut Value)| {
        let mut record = insert("2", &product("b", 1));
        change(&mut record);
        record
    };
    for nameless in [
        without(&|record| drop(record["dynamodb"].as_object_mut().unwrap().remove("SequenceNumber"))),
        without(&|record| record["dynamodb"]["SequenceNumber"] = Value::Null),
        without(&|record| record["dynamodb"]["SequenceNumber"] = "".into()),
        without(&|record| record["dynamodb"]["SequenceNumber"] = 2.into()),
        without(&|record| record["dynamodb"] = Value::Null),
        json!(null),
        json!("2"),
        json!({}),
    ] {
        let sink = Scripted::failing("scripted", &[]);
        let (consumer, shelf) = consumer([sink.boxed()]);
        let event = event(&[insert("1", &product("a", 1)), nameless.clone()]);
        let failed = consumer.take(&event, Instant::now() + Duration::from_secs(60)).await;
        assert_eq!(failed.unwrap_err(), BatchError::NoSequenceNumber { position: 1 }, "{nameless}");
        assert!(sink.attempted().is_empty() && shelf.kept().is_empty());
    }
}

#[test]
fn an_invalid_stream_event_is_not_an_empty_batch() {
    for payload in ["{}", "[]", "null", r#"{"Records":null}"#, r#"{"records":[]}"#] {
        assert!(serde_json::from_str::<Event>(payload).is_err(), "{payload}");
    }
}

#[tokio::test]
async fn case_09_a_malformed_record_is_quarantined_alone() {
    let spoilt = |change: &dyn Fn(&mut Value)| {
        let mut record = modify("3", &product("c", 1), &product("c", 2));
        change(&mut record);
        record
    };
    for (kind, poison) in [
        ("malformed_item", spoilt(&|record| record["dynamodb"]["NewImage"]["rev"] = json!({"S": "two"}))),
        ("malformed_item", spoilt(&|record| record["dynamodb"]["NewImage"] = json!({}))),
        ("malformed_item", spoilt(&|record| record["dynamodb"]["NewImage"]["entity"] = json!({"N": "1"}))),
        ("malformed_record", spoilt(&|record| record["dynamodb"]["NewImage"]["rev"] = json!({"N": 2}))),
        ("malformed_record", spoilt(&|record| record["dynamodb"]["NewImage"] = Value::Null)),
        ("malformed_record", spoilt(&|record| record["dynamodb"]["Keys"] = json!("c"))),
        ("malformed_record", spoilt(&|record| record["eventName"] = "TRUNCATE".into())),
        ("malformed_record", spoilt(&|record| record["eventName"] = 7.into())),
        ("foreign_key", spoilt(&|record| record["dynamodb"]["Keys"] = json!({"Id": {"N": "101"}}))),
    ] {
        let sink = Scripted::failing("scripted", &[]);
        let (consumer, shelf) = consumer([sink.boxed()]);
        let mut records = five();
        records[2] = poison.clone();
        let taken = run(&consumer, &records).await;
        assert_eq!(taken.answer.earliest(), None, "{poison}");
        assert_eq!(sink.attempted(), ["1", "2", "4", "5"]);
        let kept = shelf.kept();
        assert_eq!(kept.len(), 1);
        assert_eq!((kept[0].sequence.as_str(), kept[0].consumer.as_str(), kept[0].kind), ("3", "scripted", kind));
        assert_eq!(serde_json::from_str::<Value>(&kept[0].text).unwrap(), poison);
        assert_eq!(taken.report.malformed().quarantined, 1);
    }
}

#[tokio::test]
async fn a_malformed_record_that_cannot_be_quarantined_is_delivered_again() {
    let sink = Scripted::failing("scripted", &["5"]);
    let (consumer, shelf) = consumer([sink.boxed()]);
    let mut records = five();
    records[3]["dynamodb"]["NewImage"] = json!({});
    shelf.set_broken(true);
    assert_eq!(earliest(&consumer, &records).await.as_deref(), Some("4"));
    shelf.set_broken(false);
    assert_eq!(earliest(&consumer, &records).await.as_deref(), Some("5"));
    assert_eq!(shelf.sequences(), ["4"]);
}

#[tokio::test(start_paused = true)]
async fn case_10_near_the_deadline_the_consumer_stops_and_names_the_first_unfinished_record() {
    let (slow, quick) = (Scripted::hanging("3"), Scripted::failing("quick", &[]));
    let (consumer, _) = consumer([slow.boxed(), quick.boxed()]);
    let stop = Instant::now() + Duration::from_secs(59);
    let taken = consumer.take(&event(&five()), stop).await.unwrap();
    assert_eq!(Instant::now(), stop);
    assert_eq!(taken.answer.earliest().unwrap().as_str(), "3");
    assert_eq!(slow.attempted(), ["1", "2", "3"]);
    let counts = taken.report.counts("scripted").unwrap();
    assert_eq!((counts.done, counts.unfinished), (2, 3));
    assert_eq!(taken.report.counts("quick").unwrap().done, 5);
}

#[tokio::test(start_paused = true)]
async fn a_malformed_record_is_quarantined_even_while_a_sink_hangs() {
    let slow = Scripted::hanging("1");
    let (consumer, shelf) = consumer([slow.boxed()]);
    let mut records = five();
    records[1]["dynamodb"]["NewImage"] = json!({});
    let taken = consumer.take(&event(&records), Instant::now() + Duration::from_secs(1)).await.unwrap();
    assert_eq!(taken.answer.earliest().unwrap().as_str(), "1");
    assert_eq!(shelf.sequences(), ["2"]);
}

#[tokio::test]
async fn items_are_processed_concurrently_up_to_the_bound_but_an_items_records_one_after_the_other() {
    let records: Vec<Value> = (0..30)
        .map(|n| {
            let id = format!("p{}", n % 10);
            modify(&format!("{n:02}"), &product(&id, n / 10 + 1), &product(&id, n / 10 + 2))
        })
        .collect();
    let event = event(&records);
    let batch = Batch::decode(&event).unwrap();
    let verdicts = Verdicts::new(batch.records.len());
    let (active, most, order) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    lane::each(&batch.records, 3, &verdicts, |record| {
        let (active, most, order) = (&active, &most, &order);
        async move {
            most.fetch_max(active.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            order.lock().unwrap().push((record.key.clone(), record.origin.sequence.clone()));
            active.fetch_sub(1, Ordering::Relaxed);
            Verdict::Done
        }
    })
    .await;
    assert_eq!(most.into_inner(), 3);
    let mut order = order.into_inner().unwrap();
    // The sort is stable: the records of one item keep the order in which they were taken.
    order.sort_by(|(a, _), (b, _)| a.cmp(b));
    assert!(order.windows(2).all(|pair| pair[0].0 != pair[1].0 || pair[0].1 < pair[1].1));
    assert!(verdicts.to_vec().iter().all(|verdict| *verdict == Some(Verdict::Done)));
}

#[tokio::test]
async fn an_empty_batch_is_done() {
    let sink = Scripted::failing("scripted", &[]);
    assert_eq!(earliest(&consumer([sink.boxed()]).0, &[]).await, None);
}

#[tokio::test]
async fn missing_and_additional_fields_of_a_record_do_not_matter() {
    let mut record = insert("1", &product("a", 1));
    record["userIdentity"] = json!({"type": "Service", "principalId": "dynamodb.amazonaws.com"});
    record["novelty"] = json!([1, {"a": null}]);
    record["eventID"] = json!(7);
    for time in [None, Some(json!(1.4795e9)), Some(json!("yesterday")), Some(json!(-1e300))] {
        let change = record["dynamodb"].as_object_mut().unwrap();
        change.remove("SizeBytes");
        match time {
            None => drop(change.remove("ApproximateCreationDateTime")),
            Some(time) => drop(change.insert("ApproximateCreationDateTime".into(), time)),
        }
        let event = event(std::slice::from_ref(&record));
        let batch = Batch::decode(&event).unwrap();
        assert_eq!((batch.records.len(), batch.malformed.len()), (1, 0));
        assert_eq!(batch.records[0].origin.event_id, None);
    }
}

#[tokio::test]
async fn a_record_of_an_unknown_entity_is_ignored() {
    let sink = Scripted::failing("scripted", &[]);
    let (consumer, shelf) = consumer([sink.boxed()]);
    let mut newer = insert("1", &product("a", 1));
    newer["dynamodb"]["NewImage"]["entity"] = json!({"S": "Hologram"});
    assert_eq!(earliest(&consumer, &[newer]).await, None);
    assert!(sink.attempted().is_empty() && shelf.kept().is_empty());
}

#[tokio::test]
async fn an_item_that_was_malformed_can_be_repaired() {
    let sink = Scripted::failing("scripted", &[]);
    let (consumer, shelf) = consumer([sink.boxed()]);
    let mut repair = modify("1", &product("a", 1), &product("a", 2));
    repair["dynamodb"]["OldImage"]["price"] = json!({"S": "cheap"});
    assert_eq!(earliest(&consumer, &[repair]).await, None);
    assert_eq!((sink.attempted(), shelf.kept()), (vec!["1".to_owned()], vec![]));
}

#[tokio::test]
async fn the_consumer_handles_the_sample_event_of_the_sam_tool() {
    // This is the output of `sam local generate-event dynamodb update`, without unused members.
    let change = |sequence: &str, name: &str| {
        json!({
            "eventID": sequence, "eventVersion": "1.0", "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
            "eventName": name,
            "eventSourceARN": "arn:aws:dynamodb:us-east-1:account-id:table/ExampleTableWithStream/stream/\
                2015-06-27T00:48:05.899",
            "dynamodb": {
                "Keys": {"Id": {"N": "101"}},
                "NewImage": {"Message": {"S": "New item!"}, "Id": {"N": "101"}},
                "StreamViewType": "NEW_AND_OLD_IMAGES", "SequenceNumber": sequence, "SizeBytes": 26,
            },
        })
    };
    let sink = Scripted::failing("scripted", &[]);
    let (consumer, shelf) = consumer([sink.boxed()]);
    assert_eq!(
        earliest(&consumer, &[change("111", "INSERT"), change("222", "MODIFY"), change("333", "REMOVE")]).await,
        None
    );
    assert!(sink.attempted().is_empty());
    assert_eq!(shelf.sequences(), ["111", "222", "333"]);
}

#[test]
fn every_kind_of_change_is_decoded() {
    let event = event(&[
        insert("1", &product("a", 1)),
        modify("2", &product("a", 1), &retired("a", 2)),
        insert("3", &order("o1", OrderStatus::Pending, 1, 1)),
        remove("4", &retired("a", 2)),
    ]);
    let batch = Batch::decode(&event).unwrap();
    assert_eq!((batch.records.len(), batch.malformed.len(), batch.foreign), (4, 0, 0));
    assert_eq!(batch.records[0].key, batch.records[3].key);
    assert_ne!(batch.records[0].key, batch.records[2].key);
    assert_eq!(image(&product("a", 1))["rev"], json!({"N": "1"}));
}

fn number(text: &str) -> SequenceNumber {
    text.parse().unwrap()
}

#[test]
fn case_06_numbers_of_22_and_23_digits_are_ordered_as_numbers() {
    let (short, long) = (number("9999999999999999999999"), number("10000000000000000000000"));
    assert_eq!((short.as_str().len(), long.as_str().len()), (22, 23));
    assert!(short < long);
    assert!(number("0007") < number("10"));
    assert_eq!(number("007"), number("7"));
    assert!(number("0") < number("1"));
}

#[test]
fn case_07_a_number_of_40_digits_keeps_all_its_digits() {
    let largest = "9".repeat(MAX_DIGITS);
    assert_eq!(number(&largest).as_str(), largest);
    assert!(number(&largest) > number(&"8".repeat(MAX_DIGITS)));
    assert_eq!(serde_json::to_string(&number("0042")).unwrap(), r#""0042""#);
}

#[test]
fn a_sequence_number_has_1_to_40_digits() {
    for text in ["", " 1", "-1", "+1", "1e3", "0x1", "١", &"9".repeat(41)] {
        assert_eq!(text.parse::<SequenceNumber>(), Err(NotASequenceNumber), "{text}");
    }
}
