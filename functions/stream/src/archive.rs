//! The content of an archive object. [`key_schema::archive`] defines the names of the objects.

use key_schema::entity::AnyEntity;
use key_schema::expiration::RemovedBy;
use key_schema::instant::Instant;
use key_schema::item::Item;
use key_schema::key::{self, Key, KeyError};
use serde::{Deserialize, Serialize};

use crate::sequence::SequenceNumber;

/// An expired item, in the form of its archive object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Archived {
    pub entity: String,
    pub key: ItemKey,
    pub removed_at: Instant,
    pub removed_by: RemovedBy,
    /// The sequence number of the removal's stream record.
    pub sequence_number: String,
    /// The item in DynamoDB's JSON, with only the attributes that the schema knows.
    pub item: Item,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemKey {
    #[serde(rename = "PK")]
    pub pk: String,
    #[serde(rename = "SK")]
    pub sk: String,
}

impl From<&Key> for ItemKey {
    fn from(key: &Key) -> Self {
        Self { pk: key.pk.to_string(), sk: key.sk.to_string() }
    }
}

pub fn name(item: &AnyEntity, key: &Key, removal: &SequenceNumber) -> Result<String, KeyError> {
    Ok(format!("{}{}.json", key_schema::archive::objects(item, key)?, removal.as_str()))
}

/// Returns the hash of a key. The audit entry has this hash instead of the key.
#[must_use]
pub fn hash(key: &Key) -> String {
    key::hash(key.pk.as_str(), key.sk.as_str())
}
