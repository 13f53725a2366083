use std::fmt;
use std::str::FromStr;

use key_schema::id::Born;
use key_schema::key::Key;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use crate::Kind;

/// The length of an id in hexadecimal digits: 128 bits, so two events practically never have the
/// same id by chance.
const DIGITS: usize = 32;

/// The id that identifies an event. It is the same for every publication and every delivery.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct EventId(String);

/// The error for a text that is not 32 lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event's id has {DIGITS} lower-case hexadecimal digits")]
pub struct NotAnEventId;

/// The change of an item that causes an event.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    pub table: &'a str,
    pub key: &'a Key,
    /// The item's incarnation. It differs if the item was deleted and created again with the same
    /// key.
    pub born: &'a Born,
    /// The item's `rev` after the change.
    pub rev: u64,
}

impl EventId {
    /// Derives the id of an event of this kind from the change that causes it. A change causes at
    /// most one event of a kind.
    ///
    /// The id is the first half of a SHA-256 over the values of `origin` and `kind`. The hash
    /// input has each value's length before the value. So different values never give the same
    /// input.
    #[must_use]
    pub fn derive(origin: Origin<'_>, kind: Kind) -> Self {
        let Origin { table, key, born, rev } = origin;
        let rev = rev.to_string();
        let mut hash = Context::new(&SHA256);
        for part in [table, key.pk.as_str(), key.sk.as_str(), born.as_str(), rev.as_str(), kind.as_str()] {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        Self(hash.finish().as_ref().iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for EventId {
    type Err = NotAnEventId;

    fn from_str(text: &str) -> Result<Self, NotAnEventId> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for EventId {
    type Error = NotAnEventId;

    fn try_from(text: String) -> Result<Self, NotAnEventId> {
        let digits = text.len() == DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if digits { Ok(Self(text)) } else { Err(NotAnEventId) }
    }
}

impl From<EventId> for String {
    fn from(id: EventId) -> Self {
        id.0
    }
}
