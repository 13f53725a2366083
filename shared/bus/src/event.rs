use std::str::FromStr;

use key_schema::instant::Instant;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Data, EventId, Kind};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The id, by which subscribers recognise a repeated event.
    pub id: EventId,
    /// The time of the change, from the changed item.
    pub occurred_at: Instant,
    /// The item's `rev` after the change. Among the events of one item, such as an order, a higher
    /// number is later.
    pub sequence: u64,
    /// The id of the request that made the change. The request's log lines contain the id, too. The
    /// id comes from the stream record, so it is the same in every publication of the event. It is
    /// `None` if the request is unknown, or if the event is older than this field.
    pub correlation_id: Option<String>,
    pub data: Data,
}

/// The reason why a detail is not a known event. The messages quote only the type and the version
/// of the event, but the source errors may quote its other fields.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The detail is not JSON, or has no envelope.
    #[error("not a domain event")]
    Envelope(#[source] serde_json::Error),
    /// The kind is unknown, so the event comes from a newer producer.
    #[error("unknown kind of event: {0}")]
    UnknownKind(String),
    /// The kind is known, but its version is not: the event comes from a newer producer, or is very
    /// old.
    #[error("{kind} has version {version}, but this program can only read version {}", .kind.version())]
    UnknownVersion {
        kind: Kind,
        /// The event's version.
        version: u32,
    },
    /// The version is known, but the data does not match it.
    #[error("malformed {kind}")]
    Malformed {
        kind: Kind,
        /// The decoding error.
        source: serde_json::Error,
    },
}

impl Event {
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.data.kind()
    }

    /// Decodes the `detail` of a bus event. Unknown fields are ignored. An event is refused if its
    /// version is not the current version of its kind ([`Kind::version`]).
    pub fn from_detail(detail: &Value) -> Result<Self, DecodeError> {
        let Header { kind, version } = Header::deserialize(detail).map_err(DecodeError::Envelope)?;
        let kind = Kind::named(&kind).ok_or(DecodeError::UnknownKind(kind))?;
        if version != kind.version() {
            return Err(DecodeError::UnknownVersion { kind, version });
        }
        let malformed = |source| DecodeError::Malformed { kind, source };
        let Envelope { id, occurred_at, sequence, correlation_id, data } =
            Envelope::deserialize(detail).map_err(malformed)?;
        // The correlation id is only for logs, so an event with a malformed correlation id is still
        // read.
        let correlation_id = correlation_id.as_str().map(str::to_owned);
        Ok(Self { id, occurred_at, sequence, correlation_id, data: kind.decode(&data).map_err(malformed)? })
    }

    /// Returns the `detail` of the event on the bus as JSON text. Equal events have equal texts.
    ///
    /// # Errors
    /// Never for the current kinds: all their fields can be encoded as JSON.
    pub fn to_detail(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

impl FromStr for Event {
    type Err = DecodeError;

    /// Decodes an event like [`Event::from_detail`], from JSON text.
    fn from_str(detail: &str) -> Result<Self, DecodeError> {
        Self::from_detail(&serde_json::from_str(detail).map_err(DecodeError::Envelope)?)
    }
}

impl Serialize for Event {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Written<'a> {
            id: &'a EventId,
            r#type: &'static str,
            version: u32,
            occurred_at: Instant,
            sequence: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            correlation_id: Option<&'a str>,
            data: &'a Data,
        }
        let kind = self.kind();
        let Self { id, occurred_at, sequence, correlation_id, data } = self;
        let (r#type, version, correlation_id) = (kind.as_str(), kind.version(), correlation_id.as_deref());
        let (occurred_at, sequence) = (*occurred_at, *sequence);
        Written { id, r#type, version, occurred_at, sequence, correlation_id, data }.serialize(serializer)
    }
}

/// The fields that determine how to read the rest of the event. They are decoded first, because the
/// content of an event of another version is unknown.
#[derive(Deserialize)]
struct Header {
    #[serde(rename = "type")]
    kind: String,
    version: u32,
}

#[derive(Deserialize)]
struct Envelope {
    id: EventId,
    occurred_at: Instant,
    sequence: u64,
    #[serde(default)]
    correlation_id: Value,
    data: Value,
}
