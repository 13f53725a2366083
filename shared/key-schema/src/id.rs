//! Typed ids: an [`OrderId`] cannot stand where a [`CustomerId`] belongs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::encoding::{Part, encode_into};
use crate::instant::Instant;

/// The longest id that is taken from outside, in bytes of UTF-8. Escaped it is at most three times as long,
/// which leaves room for several in one sort key.
pub const MAX_ID_BYTES: usize = 128;

/// Why a text is not an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is empty.
    #[error("must not be empty")]
    Empty,
    /// The text has more than [`MAX_ID_BYTES`] bytes.
    #[error("must have at most {MAX_ID_BYTES} bytes")]
    TooLong,
    /// The text holds a control character.
    #[error("must not contain control characters")]
    ControlCharacter,
    /// The text holds a character that no path can carry.
    #[error("must not contain `/`, `?`, `%` or `\\`")]
    NotInPaths,
    /// The text is `.` or `..`, which a client removes from a path.
    #[error("must not be `.` or `..`")]
    Dots,
}

/// Checks a name from outside, which no path carries as it is: 1 to 128 bytes of UTF-8 without control characters.
///
/// # Errors
/// [`IdError`] says which part of the rule the text breaks.
pub fn check(text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        Err(IdError::Empty)
    } else if text.len() > MAX_ID_BYTES {
        Err(IdError::TooLong)
    } else if text.chars().any(char::is_control) {
        Err(IdError::ControlCharacter)
    } else {
        Ok(())
    }
}

/// Checks an id from outside: a name that can also be one segment of a path.
///
/// An HTTP API of API Gateway decodes a path twice before it looks for the route, and cuts it at a `?` that it decoded.
/// Live captures are in `vokerhttp/testdata/ingress-paths.json` of <https://github.com/hotsock/voker/pull/8>. Clients
/// remove the segments `.` and `..`, and some turn `\` into `/` (<https://url.spec.whatwg.org/#path-state>).
///
/// # Errors
/// [`IdError`] says which part of the rule the text breaks.
pub fn check_id(text: &str) -> Result<(), IdError> {
    check(text)?;
    if text.contains(['/', '?', '%', '\\']) {
        Err(IdError::NotInPaths)
    } else if matches!(text, "." | "..") {
        Err(IdError::Dots)
    } else {
        Ok(())
    }
}

/// A UUIDv7: 48 bits of milliseconds, then randomness, so that ids sort by the time of their making.
/// The random bytes come from the caller, because this crate does no I/O.
#[must_use]
pub fn time_ordered(at: Instant, random: [u8; 10]) -> String {
    let millis = u64::try_from(at.as_millis()).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid().to_string()
}

/// Where the ids made at `at` begin: every [`time_ordered`] id of that millisecond or later sorts after
/// this text, every earlier one before it.
#[must_use]
pub fn time_ordered_floor(at: Instant) -> String {
    let millis = u64::try_from(at.as_millis()).unwrap_or(0) & 0xFFFF_FFFF_FFFF;
    format!("{:08x}-{:04x}", millis >> 16, millis & 0xFFFF)
}

macro_rules! ids {
    ($rule:ident: $($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Takes an id from outside.
            ///
            /// # Errors
            #[doc = concat!("[`IdError`], by the rule of [`", stringify!($rule), "`].")]
            pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
                let text = text.into();
                $rule(&text)?;
                Ok(Self(text))
            }

            /// Takes an id that is stored. Versions before the rule of [`check_id`] took ids by that of [`check`].
            ///
            /// # Errors
            /// [`IdError`], by the rule of [`check`].
            pub fn stored(text: impl Into<String>) -> Result<Self, IdError> {
                let text = text.into();
                check(&text)?;
                Ok(Self(text))
            }

            /// Makes a time-ordered id ([`time_ordered`]).
            #[must_use]
            pub fn generate(at: Instant, random: [u8; 10]) -> Self {
                Self(time_ordered(at, random))
            }

            /// The id as text, as clients know it.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl Part for $name {
            fn write(&self, out: &mut String) {
                encode_into(&self.0, out);
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::stored(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    )*};
}

ids! { check_id:
    /// A customer: the `sub` of the caller's token, or an id that staff gave.
    CustomerId
    /// A product of the catalogue.
    ProductId
    /// An order; always time-ordered, so that a range of ids is a range of instants.
    OrderId
    /// A shop.
    StoreId
    /// A customer's signed-in device.
    SessionId
    /// A line of an order's staff log.
    LogId
    /// A movement of money: a wallet's entry, and a transfer with both its entries.
    EntryId
    /// A customer's question.
    QuestionId
    /// An answer to a question.
    AnswerId
    /// The name of one of a customer's addresses, "home".
    AddressName
    /// An organization of customers.
    OrganizationId
    /// A team of an organization.
    TeamId
    /// A document.
    DocumentId
    /// The name of a section of a document.
    SectionName
    /// What a metric is called.
    MetricName
    /// A point of a metric: a client's own id or a generated one, so that a point that is sent again is the same point.
    PointId
    /// What a counter is called, such as `product:1082185`.
    CounterName
    /// An upload, and the picture or text that becomes of it.
    MediaId
}

ids! { check:
    /// A client's own number for an order, unique over all orders. No path carries it.
    OrderReference
    /// One life of an item: given at creation, so that a key used again is another incarnation.
    Born
}

impl StoreId {
    /// The shop of orders that were placed in none, `online`. Staff may enter it like any other, to say which country and city its sales are
    /// counted under.
    #[must_use]
    pub fn online() -> Self {
        Self("online".to_owned())
    }
}

impl Born {
    /// The birth mark of a counter, which has one life.
    pub(crate) fn counter() -> Self {
        Self("counter".to_owned())
    }
}

impl PointId {
    /// The birth mark of the point, which is written whole each time it is sent.
    #[must_use]
    pub fn born(&self) -> Born {
        Born(self.0.clone())
    }
}

impl EntryId {
    /// The birth mark of what this movement creates: as unique as the movement.
    #[must_use]
    pub fn born(&self) -> Born {
        Born(self.0.clone())
    }
}
