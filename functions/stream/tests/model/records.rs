//! Stream records in the form in which Lambda delivers them.

use std::sync::Arc;

use key_schema::item::Item;
use key_schema::key::Key;
use serde_json::{Value, json};
use stream::batch::Event;

/// Returns the record of an item's change. Every removal in these tests is an expiry.
pub fn raw(sequence: &str, key: &Key, old: Option<&Item>, new: Option<&Item>) -> Value {
    let name = match (old, new) {
        (None, _) => "INSERT",
        (Some(_), Some(_)) => "MODIFY",
        (Some(_), None) => "REMOVE",
    };
    let mut record = json!({
        "eventID": format!("event-{sequence}"), "eventName": name, "eventSource": "aws:dynamodb",
        "dynamodb": {
            "SequenceNumber": sequence, "ApproximateCreationDateTime": 1_483_271_606,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
            "Keys": {"PK": {"S": key.pk.as_str()}, "SK": {"S": key.sk.as_str()}},
        },
    });
    for (name, image) in [("OldImage", old), ("NewImage", new)] {
        if let Some(image) = image {
            record["dynamodb"][name] = serde_json::to_value(image).unwrap();
        }
    }
    if new.is_none() {
        record["userIdentity"] = json!({"type": "Service", "principalId": "dynamodb.amazonaws.com"});
    }
    record
}

/// Returns a batch.
pub fn event(records: &[Arc<str>]) -> Event {
    serde_json::from_str(&format!("{{\"Records\":[{}]}}", records.join(","))).unwrap()
}
