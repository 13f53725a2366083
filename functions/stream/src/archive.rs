//! What the archive of expired items holds, and how it is named.
//!
//! ```text
//! expired/<hash of PK>/<hash of PK and SK>-<sequence number>.json
//! ```
//!
//! The first part finds an item collection (an order's head, lines and history), the second an item, the last tells the removals of one key apart.
//! Hashes, because a key is longer than a name may be, and may hold what an operator's list of names should not show.

use key_schema::expiration::RemovedBy;
use key_schema::instant::Instant;
use key_schema::item::Item;
use key_schema::key::{Key, PartitionKey};
use search_index::document_id;
use serde::{Deserialize, Serialize};

use crate::sequence::SequenceNumber;

/// An expired item, as its object has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Archived {
    /// The name of its entity.
    pub entity: String,
    /// Where it lay.
    pub key: Place,
    /// When it was removed.
    pub removed_at: Instant,
    /// Who removed it.
    pub removed_by: RemovedBy,
    /// The stream record of the removal.
    pub sequence_number: String,
    /// The item in DynamoDB's JSON. Only what the schema knows of it.
    pub item: Item,
}

/// A key of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The partition key.
    #[serde(rename = "PK")]
    pub pk: String,
    /// The sort key.
    #[serde(rename = "SK")]
    pub sk: String,
}

impl From<&Key> for Place {
    fn from(key: &Key) -> Self {
        Self { pk: key.pk.to_string(), sk: key.sk.to_string() }
    }
}

/// What the names of all objects of an item collection begin with.
#[must_use]
pub fn collection(partition: &PartitionKey) -> String {
    format!("expired/{}/", document_id(partition.as_str(), ""))
}

/// What the names of all objects of a key begin with: one for each time that it expired.
#[must_use]
pub fn item(key: &Key) -> String {
    format!("{}{}-", collection(&key.pk), hash(key))
}

/// The object of one removal.
#[must_use]
pub fn name(key: &Key, removal: &SequenceNumber) -> String {
    format!("{}{}.json", item(key), removal.as_str())
}

/// The hash of a key, by which the audit names an item.
#[must_use]
pub fn hash(key: &Key) -> String {
    document_id(key.pk.as_str(), key.sk.as_str())
}
