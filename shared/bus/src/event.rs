//! The envelope.

use std::str::FromStr;

use key_schema::instant::Instant;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Data, EventId, Kind};

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What it is recognised by when it comes again.
    pub id: EventId,
    /// When the change was made: the changed item's own time.
    pub occurred_at: Instant,
    /// The id of the request that made the change, as its log lines have it. A part of the record that the event is derived from, so every attempt to
    /// publish it says the same. Missing where no request is known, and in events of before there was one.
    pub correlation_id: Option<String>,
    /// What happened.
    pub data: Data,
}

/// Why a detail is not an event that this program knows. No message quotes the event; the sources may.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON, or no envelope around it.
    #[error("not a domain event")]
    Envelope(#[source] serde_json::Error),
    /// No such kind of event: a newer producer's.
    #[error("unknown kind of event: {0}")]
    UnknownKind(String),
    /// The kind is known and the version is not: a newer producer's, or a very old one's.
    #[error("{kind} of version {version} cannot be read by this program, which knows version {}", .kind.version())]
    UnknownVersion {
        /// The kind.
        kind: Kind,
        /// The event's version.
        version: u32,
    },
    /// The version is known, and the data are not what it says.
    #[error("malformed {kind}")]
    Malformed {
        /// The kind.
        kind: Kind,
        /// What is wrong.
        source: serde_json::Error,
    },
}

impl Event {
    /// Which kind of event it is.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.data.kind()
    }

    /// Reads the `detail` of an event of the bus. Unknown fields are passed over, another version is refused.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn from_detail(detail: &Value) -> Result<Self, DecodeError> {
        let Header { kind, version } = Header::deserialize(detail).map_err(DecodeError::Envelope)?;
        let kind = Kind::named(&kind).ok_or(DecodeError::UnknownKind(kind))?;
        if version != kind.version() {
            return Err(DecodeError::UnknownVersion { kind, version });
        }
        let malformed = |source| DecodeError::Malformed { kind, source };
        let Envelope { id, occurred_at, correlation_id, data } = Envelope::deserialize(detail).map_err(malformed)?;
        // It is for the log alone: an event is not refused for it.
        let correlation_id = correlation_id.as_str().map(str::to_owned);
        Ok(Self { id, occurred_at, correlation_id, data: kind.decode(&data).map_err(malformed)? })
    }

    /// The `detail` of the event on the bus, JSON text. The same event has the same text.
    ///
    /// # Errors
    /// Never with the kinds that there are: all their fields have a form in JSON.
    pub fn to_detail(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

impl FromStr for Event {
    type Err = DecodeError;

    /// As [`Event::from_detail`], from JSON text.
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
            #[serde(skip_serializing_if = "Option::is_none")]
            correlation_id: Option<&'a str>,
            data: &'a Data,
        }
        let kind = self.kind();
        let Self { id, occurred_at, correlation_id, data } = self;
        let (r#type, version, correlation_id) = (kind.as_str(), kind.version(), correlation_id.as_deref());
        Written { id, r#type, version, occurred_at: *occurred_at, correlation_id, data }.serialize(serializer)
    }
}

/// What says how to read the rest: looked at first, because the rest of another version may be anything.
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
    #[serde(default)]
    correlation_id: Value,
    data: Value,
}
