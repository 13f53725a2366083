//! The world: all data that the consumer can change.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use bus::Event;
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Item};
use key_schema::key::Key;
use key_schema::mark::Mark;
use key_schema::request::Guarded;
use search_index::{BulkOperation, BulkOutcome};
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};
use storage::objects::Put;
use stream::batch;

use crate::memory::{MemoryTable, Refused, target};
use crate::process::digest;

/// A write to one item by a source: a function behind the API, or DynamoDB at an expiry.
#[derive(Clone)]
pub struct SourceWrite {
    pub key: Key,
    /// Returns the item's new state, or `None` if it is removed.
    pub becomes: fn(Option<&Item>) -> Option<Item>,
}

/// The table with its stream, the index, the bus and the archive.
#[derive(Debug, Clone, Default)]
pub struct World {
    pub table: MemoryTable,
    /// The stream's records by shard.
    pub stream: Vec<Vec<Arc<str>>>,
    /// The last operation on each document.
    pub index: BTreeMap<String, Arc<BulkOperation>>,
    /// The ids of the published events, in the order of their first publication.
    pub bus: Vec<String>,
    /// The number of publications of each event.
    pub times: BTreeMap<String, usize>,
    pub archive: BTreeMap<String, Vec<u8>>,
    /// Digests of the documents in the index.
    documents: BTreeMap<String, u64>,
    /// The number of changes outside the table.
    changes: usize,
}

impl World {
    /// Writes an item and adds the record to its shard.
    pub fn write(&mut self, write: &SourceWrite) {
        let old = self.table.get(&write.key).cloned();
        match (write.becomes)(old.as_ref()) {
            Some(new) => self.table.put(new),
            None => self.table.remove(&write.key),
        }
        self.record(&write.key, old.as_ref());
    }

    /// Applies writes of the consumer. Changes of source items are added to the stream.
    pub fn transact(&mut self, writes: &[&Guarded]) -> Refused {
        let olds: Vec<(Key, Option<Item>)> = writes
            .iter()
            .map(|guarded| target(&guarded.write))
            .map(|key| (key.clone(), self.table.get(&key).cloned()))
            .collect();
        self.table.transact(writes)?;
        for (key, old) in olds {
            self.record(&key, old.as_ref());
        }
        Ok(())
    }

    fn record(&mut self, key: &Key, old: Option<&Item>) {
        let new = self.table.get(key);
        let Some(AttributeValue::S(entity)) = new.or(old).and_then(|item| item.get("entity")) else { return };
        let Some(shard) = shard_of(entity) else { return };
        let sequence = format!("{}", self.stream[shard].len() + 1);
        self.stream[shard].push(raw(&sequence, key, old, new).to_string().into());
    }

    /// Applies an operation as the search engine does: the document with the highest external
    /// version stays. An equal version is written again.
    pub fn index(&mut self, operation: &BulkOperation) -> BulkOutcome {
        let id = operation.document_id();
        if self.index.get(id).is_some_and(|known| known.rev() > operation.rev()) {
            return BulkOutcome::Stale;
        }
        let digest = digest(operation);
        if self.documents.insert(id.to_owned(), digest) != Some(digest) {
            self.changes += 1;
            self.index.insert(id.to_owned(), Arc::new(operation.clone()));
        }
        BulkOutcome::Applied
    }

    pub fn publish(&mut self, event: &Event) {
        self.changes += 1;
        let id = event.id.to_string();
        assert!(!self.is_marked(&id), "a marked event is published again: {id}");
        if !self.bus.contains(&id) {
            self.bus.push(id.clone());
        }
        *self.times.entry(id).or_default() += 1;
    }

    fn is_marked(&self, id: &str) -> bool {
        let mark = Mark::new("bus", id, Instant::EPOCH).unwrap();
        self.table.get(&mark.data.key().unwrap()).is_some()
    }

    pub fn archive(&mut self, name: &str, body: Vec<u8>) -> Put {
        if self.archive.contains_key(name) {
            return Put::AlreadyThere;
        }
        self.changes += 1;
        self.archive.insert(name.to_owned(), body);
        Put::Created
    }

    /// Returns the number of changes anywhere.
    pub fn changes(&self) -> usize {
        self.changes + self.table.changes
    }

    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for stream in &self.stream {
            stream.len().hash(&mut hasher);
        }
        for (key, digest) in self.table.digests() {
            (key.pk.as_str(), key.sk.as_str(), digest).hash(&mut hasher);
        }
        // A marked event is not published again, so its count has no effect on later moves.
        let times: Vec<_> = self.times.iter().filter(|(id, _)| !self.is_marked(id)).collect();
        (&self.documents, &self.bus, times, &self.archive).hash(&mut hasher);
        hasher.finish()
    }
}

/// Attributes that differ between runs and have no effect: write times and generated ids.
const INCIDENTAL: [&str; 6] = ["at", "born", "created_at", "updated_at", "expires_at", "ttl"];
/// The entities that sources write. The consumer writes the other entities that change.
const SOURCES: [&str; 7] = ["Order", "OrderLine", "Product", "Session", "Stock", "ReviewStats", "Membership"];

/// Returns the shard of an entity's items, or `None` if the stream's filter drops their records.
fn shard_of(entity: &str) -> Option<usize> {
    match entity {
        "Order" | "Stock" => Some(0),
        "Product" | "ReviewStats" | "Session" => Some(1),
        _ => None,
    }
}

pub fn digest_item(item: &Item) -> u64 {
    let own = !matches!(item.get("entity"), Some(AttributeValue::S(name)) if SOURCES.contains(&name.as_str()));
    let mut attributes: Vec<_> = item.iter().filter(|(name, _)| !own || !INCIDENTAL.contains(&name.as_str())).collect();
    attributes.sort_by_key(|(name, _)| *name);
    let mut hasher = DefaultHasher::new();
    for (name, value) in attributes {
        name.hash(&mut hasher);
        hash_value(value, &mut hasher);
    }
    hasher.finish()
}

/// Hashes a value. Maps are sorted first, because they have no order.
fn hash_value(value: &AttributeValue, hasher: &mut DefaultHasher) {
    match value {
        AttributeValue::M(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(name, _)| *name);
            for (name, value) in entries {
                name.hash(hasher);
                hash_value(value, hasher);
            }
        }
        AttributeValue::L(list) => list.iter().for_each(|value| hash_value(value, hasher)),
        other => format!("{other:?}").hash(hasher),
    }
}

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
pub fn event(records: &[Arc<str>]) -> batch::Event {
    serde_json::from_str(&format!("{{\"Records\":[{}]}}", records.join(","))).unwrap()
}
