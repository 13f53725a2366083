//! Lambda's event, decoded record by record.
//!
//! The typed event of `aws_lambda_events` fails as a whole if one record is malformed. If a
//! function cannot deserialize a batch, Lambda delivers the batch again until it gives up. So this
//! module keeps the records raw and reads only the parts that it needs. The time of the write and
//! the event id may be missing or malformed. Other fields are ignored.
//!
//! These records reach no sink:
//! - A record without a usable sequence number fails the invocation ([`BatchError`]), because a
//!   response could not name it.
//! - A record of an entity that this program does not know is ignored and settled. Lambda does not
//!   deliver it again, so a release with a new entity and sink starts with a backfill from the
//!   table.
//! - A record is quarantined if `entity` is missing, its keys are not PK and SK, its image is
//!   malformed, or its event name is unknown. The other records of its batch are processed.
//!
//! The filter of the event source mapping in template.yaml passes only known entities, so it drops
//! an item without `entity`. Such an item reaches the quarantine only by a path without the filter:
//! a replay, a redrive or another mapping.

use key_schema::entity::AnyEntity;
use key_schema::instant::Instant;
use key_schema::item::{DecodeError, FromItem, IMPORTED, Item, Stored, key_of};
use key_schema::key::Key;
use key_schema::order::OrderLine;
use serde::Deserialize;
use serde_json::value::RawValue;
use telemetry::correlation;
use tokio::sync::OnceCell;

use super::sequence::SequenceNumber;
use super::verdict::Reason;

/// A DynamoDB Streams event as Lambda sends it, with undecoded records.
#[derive(Debug, Deserialize)]
pub struct Event {
    #[serde(rename = "Records")]
    records: Vec<Box<RawValue>>,
}

/// The records of an event.
#[derive(Debug, Default)]
pub struct Batch<'e> {
    /// Changes of known entities, in the order of the batch.
    pub records: Vec<Record<'e>>,
    pub malformed: Vec<Malformed<'e>>,
    /// The number of records of entities that this program does not know.
    pub foreign: usize,
}

/// One change of one item.
#[derive(Debug)]
pub struct Record<'e> {
    pub origin: Origin<'e>,
    pub key: Key,
    pub change: Mutation,
    /// The lines of the order whose head changed ([`crate::order_lines`]). The sinks share one
    /// read, because the lines of a visible order never change.
    pub lines: OnceCell<Vec<Stored<OrderLine>>>,
}

impl Record<'_> {
    /// Returns whether the record is the creation of an item that an operator imported. Such a
    /// record causes no events and no sales: the events were published before, and the import
    /// contains the sales.
    #[must_use]
    pub fn is_import(&self) -> bool {
        matches!(self.change, Mutation::Created { .. }) && self.origin.cause.as_deref() == Some(IMPORTED)
    }
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Mutation {
    Created {
        new: AnyEntity,
    },
    Changed {
        new: AnyEntity,
        /// The item's former state, or `None` if the old image cannot be read. So the repair of a
        /// malformed item does not fail because of its old image.
        old: Option<AnyEntity>,
    },
    Removed {
        old: AnyEntity,
        by: Remover,
    },
}

impl Mutation {
    /// Returns the item's state after the change, or `None` if it was removed.
    #[must_use]
    pub const fn after(&self) -> Option<&AnyEntity> {
        match self {
            Self::Created { new } | Self::Changed { new, .. } => Some(new),
            Self::Removed { .. } => None,
        }
    }

    /// Returns the item's state before the change, if it existed and can be read.
    #[must_use]
    pub const fn before(&self) -> Option<&AnyEntity> {
        match self {
            Self::Created { .. } => None,
            Self::Changed { old, .. } => old.as_ref(),
            Self::Removed { old, .. } => Some(old),
        }
    }
}

/// The actor that removed an item, from the record's `userIdentity` (Developer Guide, "DynamoDB
/// Streams and Time to Live").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remover {
    /// DynamoDB, because the item expired: type `Service`, principal `dynamodb.amazonaws.com`.
    Expiry,
    /// A caller of DynamoDB. The record has no identity.
    Caller,
    /// Any other identity.
    Unknown,
}

#[derive(Debug)]
pub struct Malformed<'e> {
    pub origin: Origin<'e>,
    pub reason: Reason,
}

/// The position and metadata of a record. They are known even if the rest of the record is
/// malformed.
#[derive(Debug)]
pub struct Origin<'e> {
    pub sequence: SequenceNumber,
    /// The stream's event id, if it is usable.
    pub event_id: Option<String>,
    /// The approximate time of the write, if the record has a valid time.
    pub written_at: Option<Instant>,
    /// The id of the request that made the change ([`key_schema::item::CAUSE`]), from the new
    /// image. It is `None` for a removal, because the old image has the id of an earlier request.
    pub cause: Option<String>,
    /// The record's JSON, unchanged.
    pub text: &'e str,
}

/// The reason why there is no response to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// A record has no usable sequence number, so a response could not name it.
    #[error("the record at position {position} of the batch has no sequence number")]
    NoSequenceNumber {
        /// The record's position in the batch, from 0.
        position: usize,
    },
}

impl<'e> Batch<'e> {
    /// Decodes an event.
    ///
    /// # Errors
    /// [`BatchError`] if a record has no usable sequence number.
    pub fn decode(event: &'e Event) -> Result<Self, BatchError> {
        let mut batch = Self::default();
        for (position, raw) in event.records.iter().enumerate() {
            let header = serde_json::from_str::<Header<'_>>(raw.get()).ok();
            let named = header.as_ref().and_then(|header| Some((header, header.dynamodb.sequence_number()?)));
            let (header, sequence) = named.ok_or(BatchError::NoSequenceNumber { position })?;
            let origin = Origin {
                sequence,
                event_id: text(header.event_id),
                written_at: header.dynamodb.written_at(),
                cause: header.dynamodb.cause(),
                text: raw.get(),
            };
            match header.read() {
                Ok(Some((key, change))) => batch.records.push(Record { origin, key, change, lines: OnceCell::new() }),
                Ok(None) => batch.foreign += 1,
                Err(reason) => batch.malformed.push(Malformed { origin, reason }),
            }
        }
        Ok(batch)
    }
}

/// The undecoded parts of a record. They are decoded separately, so a malformed part does not hide
/// the others.
#[derive(Deserialize)]
struct Header<'e> {
    #[serde(rename = "eventID", borrow)]
    event_id: Option<&'e RawValue>,
    #[serde(rename = "eventName", borrow)]
    event_name: Option<&'e RawValue>,
    #[serde(rename = "userIdentity", borrow)]
    user_identity: Option<&'e RawValue>,
    #[serde(borrow)]
    dynamodb: StreamRecord<'e>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StreamRecord<'e> {
    #[serde(borrow)]
    sequence_number: Option<&'e RawValue>,
    #[serde(borrow)]
    approximate_creation_date_time: Option<&'e RawValue>,
    #[serde(borrow)]
    keys: Option<&'e RawValue>,
    #[serde(borrow)]
    new_image: Option<&'e RawValue>,
    #[serde(borrow)]
    old_image: Option<&'e RawValue>,
}

impl Header<'_> {
    /// Returns the item's key and the change, or `None` if the entity is not known.
    fn read(&self) -> Result<Option<(Key, Mutation)>, Reason> {
        let record = &self.dynamodb;
        let key = item(record.keys, "Keys")?;
        let key = key_of(&key).ok_or_else(|| Reason::new("foreign_key", "the item's key is not our PK and SK"))?;
        let change = match text(self.event_name).as_deref() {
            Some("INSERT") => entity(record.new_image, "NewImage")?.map(|new| Mutation::Created { new }),
            Some("MODIFY") => entity(record.new_image, "NewImage")?
                .map(|new| Mutation::Changed { new, old: entity(record.old_image, "OldImage").ok().flatten() }),
            Some("REMOVE") => entity(record.old_image, "OldImage")?
                .map(|old| Mutation::Removed { old, by: remover(self.user_identity) }),
            _ => return Err(Reason::new("malformed_record", "eventName is not INSERT, MODIFY or REMOVE")),
        };
        Ok(change.map(|change| (key, change)))
    }
}

impl StreamRecord<'_> {
    fn sequence_number(&self) -> Option<SequenceNumber> {
        text(self.sequence_number)?.parse().ok()
    }

    /// Returns the request id without decoding the item, so a malformed item does not hide the id.
    fn cause(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Image<'e> {
            #[serde(borrow)]
            req: Option<&'e RawValue>,
        }
        #[derive(Deserialize)]
        struct Text {
            #[serde(rename = "S")]
            text: String,
        }
        let image: Image<'_> = serde_json::from_str(self.new_image?.get()).ok()?;
        let Text { text } = serde_json::from_str(image.req?.get()).ok()?;
        correlation::id(&text).map(str::to_owned)
    }

    /// Parses seconds since the epoch, with or without a fraction or an exponent.
    fn written_at(&self) -> Option<Instant> {
        let seconds: f64 = serde_json::from_str(self.approximate_creation_date_time?.get()).ok()?;
        // The cast saturates, and `from_millis` refuses an invalid instant.
        #[allow(clippy::cast_possible_truncation)]
        Instant::from_millis((seconds * 1000.0) as i64)
    }
}

/// Returns the actor that removed an item. DynamoDB capitalizes the names of the identity's
/// members, and Lambda does not.
fn remover(identity: Option<&RawValue>) -> Remover {
    #[derive(Deserialize)]
    struct Identity {
        #[serde(rename = "type", alias = "Type")]
        kind: String,
        #[serde(rename = "principalId", alias = "PrincipalId")]
        principal: String,
    }
    match identity.map(|identity| serde_json::from_str::<Option<Identity>>(identity.get())) {
        None | Some(Ok(None)) => Remover::Caller,
        Some(Ok(Some(Identity { kind, principal }))) if kind == "Service" && principal == "dynamodb.amazonaws.com" => {
            Remover::Expiry
        }
        Some(_) => Remover::Unknown,
    }
}

fn text(raw: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(raw?.get()).ok()
}

fn item(raw: Option<&RawValue>, name: &str) -> Result<Item, Reason> {
    let raw = raw.ok_or_else(|| Reason::new("malformed_record", format!("there is no {name}")))?;
    serde_json::from_str(raw.get()).map_err(|error| Reason::new("malformed_record", format!("{name}: {error}")))
}

fn entity(raw: Option<&RawValue>, name: &str) -> Result<Option<AnyEntity>, Reason> {
    match AnyEntity::from_item(item(raw, name)?) {
        Ok(entity) => Ok(Some(entity)),
        Err(DecodeError::UnknownEntity(_)) => Ok(None),
        Err(error) => Err(Reason::new("malformed_item", format!("{name}: {error}"))),
    }
}
