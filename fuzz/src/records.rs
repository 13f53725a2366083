//! Stream records: an unreadable record of a batch is reported unchanged, and all other records are
//! read. A whole batch fails only if an unreadable record has no sequence number.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

// The target includes only the consumer's reader, because the rest takes minutes to build.
#[allow(dead_code)]
#[path = "../../functions/stream/src/batch.rs"]
mod batch;
#[allow(dead_code)]
#[path = "../../functions/stream/src/sequence.rs"]
mod sequence;
#[allow(dead_code)]
#[path = "../../functions/stream/src/verdict.rs"]
mod verdict;

use batch::{Batch, BatchError, Event, Origin};

/// A valid record. The target puts it before and after the records of the input.
const NEIGHBOUR: &str = r#"{"eventName":"INSERT","dynamodb":{"SequenceNumber":"7",
"Keys":{"PK":{"S":"REFERENCE#r"},"SK":{"S":"REFERENCE"}},
"NewImage":{"entity":{"S":"ReferenceClaim"},"reference":{"S":"r"},"order_id":{"S":"o1"},"version":{"N":"1"},
"rev":{"N":"1"},"born":{"S":"b"},"created_at":{"S":"2017-01-01T00:00:00.000Z"},"updated_at":{"S":"2017-01-01T00:00:00.000Z"}}}}"#;

/// An event with its records.
#[derive(Deserialize)]
struct BatchEvent {
    #[serde(rename = "Records")]
    records: Vec<Box<RawValue>>,
}

pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let records = match serde_json::from_str::<BatchEvent>(text) {
        Ok(event) => event.records,
        Err(_) => match serde_json::from_str(text) {
            Ok(record) => vec![record],
            // Lambda sends only valid JSON, so the target skips other inputs.
            Err(_) => return,
        },
    };
    let between: Vec<&str> = records.iter().map(|record| record.get()).collect();
    let all = [&[NEIGHBOUR][..], &between, &[NEIGHBOUR]].concat();
    let event: Event =
        serde_json::from_str(&format!(r#"{{"Records":[{}]}}"#, all.join(","))).expect("records are JSON");
    match Batch::decode(&event) {
        Ok(batch) => read(&batch, &all),
        Err(BatchError::NoSequenceNumber { position }) => nameless(all[position]),
    }
}

fn read(batch: &Batch<'_>, all: &[&str]) {
    let read = batch.records.iter().map(|record| &record.origin);
    let origins: Vec<&Origin<'_>> = read.chain(batch.malformed.iter().map(|malformed| &malformed.origin)).collect();
    assert_eq!(origins.len() + batch.foreign, all.len());
    assert!(
        batch.records.iter().filter(|record| record.origin.text == NEIGHBOUR).count() >= 2,
        "a valid record of the batch is not decoded"
    );
    for origin in origins {
        assert!(all.contains(&origin.text), "a quarantined record differs from the received record");
        assert!((1..=sequence::MAX_DIGITS).contains(&origin.sequence.as_str().len()));
        assert!(origin.cause.as_deref().is_none_or(|cause| !cause.is_empty() && !cause.contains(char::is_control)));
    }
    for malformed in &batch.malformed {
        let kind = malformed.reason.kind;
        assert!(["foreign_key", "malformed_record", "malformed_item"].contains(&kind), "{kind}");
    }
    for record in &batch.records {
        let (before, after) = (record.change.before(), record.change.after());
        assert!(before.or(after).is_some(), "the record has no item: {record:?}");
    }
}

/// Checks that only a record without a sequence number fails a whole batch. A response can report
/// any other record by its sequence number.
fn nameless(record: &str) {
    let Ok(value) = serde_json::from_str::<Value>(record) else { return };
    let number = value.pointer("/dynamodb/SequenceNumber").and_then(Value::as_str);
    let digits = |number: &str| (1..=40).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    // Parsing to a value removes duplicate members, which parsers could read in two ways.
    let event: Event = serde_json::from_value(json!({"Records": [value]})).expect("a record is JSON");
    assert!(!number.is_some_and(digits) || Batch::decode(&event).is_ok(), "{record}");
}
