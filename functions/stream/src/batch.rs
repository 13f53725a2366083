//! What Lambda sends, decoded record by record.
//!
//! The typed event of `aws_lambda_events` fails as a whole when one record lacks a field or is malformed, and a batch that cannot be
//! deserialized is a batch that comes again until it is given up. So the event is read as raw records, and of each record only what is needed,
//! leniently: the time of writing and the event id may be missing or odd, further fields are ignored.
//!
//! What becomes of a record that is not one of ours:
//! - without a usable sequence number: the invocation fails ([`BatchError`]). An answer could not name it, and leaving it out would lose it;
//! - an item of an entity that this program does not know: ignored, and settled with that. Nobody delivers the record again, so a newer version
//!   of the shop that brings an entity and a sink for it begins with a backfill from the table;
//! - everything else (no `entity`, keys that are not our PK and SK, a malformed image, an unknown event name): quarantined, alone.
//!
//! As deployed, the mapping's filter in template.yaml lets only known entities through, so an item without `entity` is dropped before it comes here.
//! It is quarantined where no filter stands before: a replay, a redrive, a mapping of somebody else's.

use key_schema::entity::AnyEntity;
use key_schema::instant::Instant;
use key_schema::item::{DecodeError, FromItem, Item, key_of};
use key_schema::key::Key;
use serde::Deserialize;
use serde_json::value::RawValue;
use telemetry::correlation;

use crate::ledger::Reason;
use crate::sequence::SequenceNumber;

/// A DynamoDB Streams event as Lambda sends it, its records still unread.
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
    /// What cannot be read.
    pub malformed: Vec<Malformed<'e>>,
    /// How many items were of entities that this program does not know.
    pub foreign: usize,
}

/// One change of one item.
#[derive(Debug)]
pub struct Record<'e> {
    /// Where it comes from.
    pub origin: Origin<'e>,
    /// The item.
    pub key: Key,
    /// What happened to it.
    pub change: Change,
}

/// What happened to an item.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Change {
    /// It was created.
    Created {
        /// What it is.
        new: AnyEntity,
    },
    /// It was changed.
    Changed {
        /// What it is now.
        new: AnyEntity,
        /// What it was; `None` where the old image cannot be read: an item that was malformed and is repaired must not be stuck on what it
        /// was.
        old: Option<AnyEntity>,
    },
    /// It was removed.
    Removed {
        /// What it was.
        old: AnyEntity,
        /// By whom.
        by: Remover,
    },
}

impl Change {
    /// What the item is now, if it is there.
    #[must_use]
    pub const fn after(&self) -> Option<&AnyEntity> {
        match self {
            Self::Created { new } | Self::Changed { new, .. } => Some(new),
            Self::Removed { .. } => None,
        }
    }

    /// What the item was, if it was there and can be read.
    #[must_use]
    pub const fn before(&self) -> Option<&AnyEntity> {
        match self {
            Self::Created { .. } => None,
            Self::Changed { old, .. } => old.as_ref(),
            Self::Removed { old, .. } => Some(old),
        }
    }
}

/// Who removed an item, by the record's `userIdentity` (Developer Guide, "DynamoDB Streams and Time to Live").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remover {
    /// DynamoDB, because its time to live was over: type `Service`, principal `dynamodb.amazonaws.com`.
    Expiry,
    /// A caller: the record has no identity.
    Caller,
    /// An identity that is neither.
    Unknown,
}

/// A record that cannot be read.
#[derive(Debug)]
pub struct Malformed<'e> {
    /// Where it comes from.
    pub origin: Origin<'e>,
    /// What is wrong with it.
    pub reason: Reason,
}

/// Where a record comes from, whatever it says.
#[derive(Debug)]
pub struct Origin<'e> {
    /// Its place in the shard.
    pub sequence: SequenceNumber,
    /// The stream's id of the event, if there is a usable one.
    pub event_id: Option<String>,
    /// When the item was written, to the second, if that is known.
    pub written_at: Option<Instant>,
    /// The id of the request that made the change ([`key_schema::item::CAUSE`]): that of the new image. What the old image of a removed item has is the id of an earlier
    /// change, and who removed it is not known.
    pub cause: Option<String>,
    /// The record as it came: JSON.
    pub text: &'e str,
}

/// A batch that nothing can be answered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// A record has no usable sequence number, so a failure of it could not be reported.
    #[error("the record at position {position} of the batch has no sequence number")]
    NoSequenceNumber {
        /// From 0.
        position: usize,
    },
}

impl<'e> Batch<'e> {
    /// Decodes an event.
    ///
    /// # Errors
    /// [`BatchError`] when a record cannot even be named.
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
                Ok(Some((key, change))) => batch.records.push(Record { origin, key, change }),
                Ok(None) => batch.foreign += 1,
                Err(reason) => batch.malformed.push(Malformed { origin, reason }),
            }
        }
        Ok(batch)
    }
}

/// The parts of a record, none of them looked into: so one that is odd does not hide the others.
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
    /// The item's key and what happened to it; `None` for an entity that is not known.
    fn read(&self) -> Result<Option<(Key, Change)>, Reason> {
        let record = &self.dynamodb;
        let key = item(record.keys, "Keys")?;
        let key = key_of(&key).ok_or_else(|| Reason::new("foreign_key", "the item's key is not our PK and SK"))?;
        let change = match text(self.event_name).as_deref() {
            Some("INSERT") => entity(record.new_image, "NewImage")?.map(|new| Change::Created { new }),
            Some("MODIFY") => entity(record.new_image, "NewImage")?
                .map(|new| Change::Changed { new, old: entity(record.old_image, "OldImage").ok().flatten() }),
            Some("REMOVE") => entity(record.old_image, "OldImage")?
                .map(|old| Change::Removed { old, by: remover(self.user_identity) }),
            _ => return Err(Reason::new("malformed_record", "eventName is none of INSERT, MODIFY and REMOVE")),
        };
        Ok(change.map(|change| (key, change)))
    }
}

impl StreamRecord<'_> {
    fn sequence_number(&self) -> Option<SequenceNumber> {
        text(self.sequence_number)?.parse().ok()
    }

    /// Read beside the item, so that the record of one that is malformed has it as well.
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

    /// Seconds since the epoch, with or without a fraction or an exponent.
    fn written_at(&self) -> Option<Instant> {
        let seconds: f64 = serde_json::from_str(self.approximate_creation_date_time?.get()).ok()?;
        #[allow(clippy::cast_possible_truncation)] // Saturates; what is no instant is refused by `from_millis`.
        Instant::from_millis((seconds * 1000.0) as i64)
    }
}

/// DynamoDB writes the names of the identity's members with a capital, Lambda with a small letter.
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
