//! What the archive of expired items holds. How its objects are named says [`key_schema::archive`].

use key_schema::entity::AnyEntity;
use key_schema::expiration::RemovedBy;
use key_schema::instant::Instant;
use key_schema::item::Item;
use key_schema::key::{self, Key, KeyError};
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

/// The object of one removal.
///
/// # Errors
/// [`KeyError`] of [`key_schema::archive::objects`].
pub fn name(item: &AnyEntity, key: &Key, removal: &SequenceNumber) -> Result<String, KeyError> {
    Ok(format!("{}{}.json", key_schema::archive::objects(item, key)?, removal.as_str()))
}

/// The hash of a key, by which the audit names an item.
#[must_use]
pub fn hash(key: &Key) -> String {
    key::hash(key.pk.as_str(), key.sk.as_str())
}
