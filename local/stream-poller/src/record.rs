use std::cmp::Ordering;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

use crate::SourceError;

/// The position of a record in its shard: a decimal number of up to 40 digits, which no integer
/// type can hold. Numbers compare by value.
#[derive(Debug, Clone)]
pub struct SequenceNumber(Box<str>);

impl SequenceNumber {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn digits(&self) -> &str {
        self.0.trim_start_matches('0')
    }
}

impl From<&str> for SequenceNumber {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Ord for SequenceNumber {
    fn cmp(&self, other: &Self) -> Ordering {
        let (ours, theirs) = (self.digits(), other.digits());
        ours.len().cmp(&theirs.len()).then_with(|| ours.cmp(theirs))
    }
}

impl PartialOrd for SequenceNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SequenceNumber {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for SequenceNumber {}

/// One record of a stream, in the form that Lambda passes to a function.
#[derive(Debug)]
pub struct Record {
    sequence: SequenceNumber,
    key_hash: u64,
    created: SystemTime,
    unchanged: bool,
    event: Value,
    text: OnceLock<String>,
}

impl Record {
    /// Converts a record of a `GetRecords` response.
    ///
    /// It adds `eventSourceARN`. In the identity of a TTL deletion, it replaces the names of the
    /// API with the names of Lambda's events (`type`, `principalId`).
    ///
    /// # Errors
    /// [`SourceError::Malformed`] if the record has no sequence number or no keys. Real streams
    /// never return such a record.
    pub fn from_api(mut event: Value, stream_arn: &str) -> Result<Self, SourceError> {
        let malformed = || SourceError::Malformed("a record without sequence number or keys");
        let record = event.as_object_mut().ok_or_else(malformed)?;
        record.insert("eventSourceARN".to_owned(), stream_arn.into());
        if let Some(identity) = record.get_mut("userIdentity").and_then(Value::as_object_mut) {
            for (api, lambda) in [("Type", "type"), ("PrincipalId", "principalId")] {
                if let Some(value) = identity.remove(api) {
                    identity.insert(lambda.to_owned(), value);
                }
            }
        }
        let modified = record.get("eventName").is_some_and(|name| name == "MODIFY");
        let change = record.get_mut("dynamodb").and_then(Value::as_object_mut).ok_or_else(malformed)?;
        let sequence = change.get("SequenceNumber").and_then(Value::as_str).ok_or_else(malformed)?.into();
        let key_hash = change.get("Keys").and_then(Value::as_object).map(hash_of_key).ok_or_else(malformed)?;
        let created = creation(change);
        let unchanged =
            modified && change.get("NewImage").is_some() && change.get("NewImage") == change.get("OldImage");
        Ok(Self { sequence, key_hash, created, unchanged, event, text: OnceLock::new() })
    }

    #[must_use]
    pub fn sequence(&self) -> &SequenceNumber {
        &self.sequence
    }

    /// Returns the time of the write, in whole seconds.
    #[must_use]
    pub fn created(&self) -> SystemTime {
        self.created
    }

    /// Returns the record as a function and filter patterns see it.
    #[must_use]
    pub fn event(&self) -> &Value {
        &self.event
    }

    /// Returns a hash of the item's key. All records of one item have the same hash.
    pub(crate) fn key_hash(&self) -> u64 {
        self.key_hash
    }

    /// Returns whether the write changed nothing. AWS creates no record for such a write, but the
    /// embedded table does.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.unchanged
    }

    /// Returns the event as JSON text, created once for all mappings and retries.
    pub(crate) fn text(&self) -> &str {
        // `Display` is fast, because its code is in serde_json, which is optimized even in a
        // development build. The code of `to_vec` is generic, so it is compiled here without
        // optimization.
        self.text.get_or_init(|| self.event.to_string())
    }
}

/// Returns a hash that does not depend on the order of the key's attributes.
fn hash_of_key(keys: &Map<String, Value>) -> u64 {
    let mut parts: Vec<(&String, String)> = keys.iter().map(|(name, value)| (name, value.to_string())).collect();
    parts.sort();
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

/// Reads the time of creation. Also rewrites `1.7E9` as `1700000000`, the form in Lambda's events.
fn creation(change: &mut Map<String, Value>) -> SystemTime {
    let seconds = change
        .get("ApproximateCreationDateTime")
        .and_then(Value::as_f64)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .unwrap_or_default();
    if seconds.subsec_nanos() == 0 {
        change.insert("ApproximateCreationDateTime".to_owned(), seconds.as_secs().into());
    }
    SystemTime::UNIX_EPOCH.checked_add(seconds).unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use serde_json::json;

    fn record(name: &str, change: Value) -> Record {
        Record::from_api(json!({"eventName": name, "dynamodb": change}), "arn").unwrap()
    }

    #[test]
    fn sequence_numbers_are_ordered_as_numbers_of_any_length() {
        let ascending = ["9", "10", "0000000000011", "99999999999999999999999999999999999999999"];
        for pair in ascending.windows(2) {
            let [low, high] = pair else { continue };
            assert!(SequenceNumber::from(*low) < SequenceNumber::from(*high));
        }
        assert_eq!(SequenceNumber::from("007"), SequenceNumber::from("7"));
    }

    #[test]
    fn an_api_record_becomes_an_event_record() {
        let api = json!({
            "eventID": "e", "eventName": "REMOVE", "eventVersion": "1.1",
            "eventSource": "aws:dynamodb", "awsRegion": "eu-west-1",
            "userIdentity": {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"},
            "dynamodb": {
                "ApproximateCreationDateTime": 1.7e9, "Keys": {"PK": {"S": "a"}},
                "SequenceNumber": "7", "SizeBytes": 3, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        });
        let record = Record::from_api(api, "arn:s").unwrap();
        let expected = json!({
            "eventID": "e", "eventName": "REMOVE", "eventVersion": "1.1",
            "eventSource": "aws:dynamodb", "awsRegion": "eu-west-1", "eventSourceARN": "arn:s",
            "userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"},
            "dynamodb": {
                "ApproximateCreationDateTime": 1_700_000_000, "Keys": {"PK": {"S": "a"}},
                "SequenceNumber": "7", "SizeBytes": 3, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        });
        assert_eq!(record.event(), &expected);
        assert_eq!(record.text(), expected.to_string());
    }

    #[test]
    fn only_a_modification_with_equal_images_changes_nothing() {
        let change = |new: &str, old: Option<&str>| {
            let mut change = json!({"Keys": {}, "SequenceNumber": "1", "NewImage": {"a": {"S": new}}});
            if let Some(old) = old {
                change["OldImage"] = json!({"a": {"S": old}});
            }
            change
        };
        assert!(record("MODIFY", change("x", Some("x"))).is_unchanged());
        assert!(!record("MODIFY", change("x", Some("y"))).is_unchanged());
        assert!(!record("INSERT", change("x", None)).is_unchanged());
        // A keys-only stream has no images. So no record is known to be unchanged, and every record
        // is delivered.
        let keys_only = json!({"Keys": {}, "SequenceNumber": "1"});
        assert!(!record("MODIFY", keys_only).is_unchanged());
    }

    #[test]
    fn all_records_of_an_item_have_the_same_hash_in_any_order_of_the_key_attributes() {
        let hash = |keys: &str| {
            let keys: Value = keys.parse().unwrap();
            record("INSERT", json!({"SequenceNumber": "1", "Keys": keys})).key_hash()
        };
        let one = hash(r#"{"PK":{"S":"a"},"SK":{"S":"b"}}"#);
        assert_eq!(one, hash(r#"{"SK":{"S":"b"},"PK":{"S":"a"}}"#));
        assert_ne!(one, hash(r#"{"PK":{"S":"a"},"SK":{"S":"c"}}"#));
    }

    #[test]
    fn an_invalid_record_is_refused() {
        for event in
            [json!(null), json!({}), json!({"dynamodb": {"Keys": {}}}), json!({"dynamodb": {"SequenceNumber": "1"}})]
        {
            assert!(Record::from_api(event, "arn").is_err());
        }
    }
}
