//! Everything that the consumer can change.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use key_schema::item::Item;
use key_schema::key::Key;
use key_schema::request::Guarded;
use search_index::{BulkOperation, BulkOutcome};
use serde_dynamo::AttributeValue;
use serde_json::Value;

use crate::memory::{MemoryTable, Refused, target};
use crate::process::digest;
use crate::records::raw;

/// What the shop, or DynamoDB, does to one item.
#[derive(Clone)]
pub struct SourceWrite {
    pub key: Key,
    /// What the item becomes; `None` if it is removed.
    pub becomes: fn(Option<&Item>) -> Option<Item>,
}

/// The table with its stream, the index, the bus, the archive.
#[derive(Debug, Clone, Default)]
pub struct World {
    pub table: MemoryTable,
    /// The stream's records by shard.
    pub stream: Vec<Vec<Value>>,
    /// What each document was last written with.
    pub index: BTreeMap<String, BulkOperation>,
    /// Ids of the published events, in order.
    pub bus: Vec<String>,
    pub archive: BTreeMap<String, Vec<u8>>,
}

impl World {
    /// Writes an item; its shard has the record then.
    pub fn write(&mut self, write: &SourceWrite) {
        let old = self.table.get(&write.key).cloned();
        match (write.becomes)(old.as_ref()) {
            Some(new) => self.table.put(new),
            None => self.table.remove(&write.key),
        }
        self.record(&write.key, old.as_ref());
    }

    /// Does writes of the consumer. What it changes of a source is in the stream as well.
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
        self.stream[shard].push(raw(&sequence, key, old, new));
    }

    /// The engine's external versions: the highest stays, an equal one is written again.
    pub fn index(&mut self, operation: &BulkOperation) -> BulkOutcome {
        let id = operation.document_id();
        match self.index.get(id) {
            Some(known) if known.rev() > operation.rev() => BulkOutcome::Stale,
            _ => {
                self.index.insert(id.to_owned(), operation.clone());
                BulkOutcome::Applied
            }
        }
    }

    pub fn digest(&self) -> u64 {
        let items: Vec<(&Key, u64)> = self.table.items().map(|(key, item)| (key, digest_item(item))).collect();
        let streams: Vec<usize> = self.stream.iter().map(Vec::len).collect();
        digest(&(items, streams, &self.index, &self.bus, &self.archive))
    }
}

/// What differs from run to run without meaning anything: when the consumer wrote, and the ids that it made up.
const INCIDENTAL: [&str; 6] = ["at", "born", "created_at", "updated_at", "expires_at", "ttl"];
/// What the shop writes; everything else is the consumer's own.
const SOURCES: [&str; 7] = ["Order", "OrderLine", "Product", "Session", "Stock", "ReviewStats", "Membership"];

/// In which of the two shards the items of an entity lie; the consumer's own are filtered out before they are delivered.
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

/// Maps have no order of their own.
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
