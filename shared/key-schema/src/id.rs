//! Typed ids: an [`OrderId`] does not compile where a [`CustomerId`] is expected.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::encoding::{Part, encode_into};
use crate::instant::Instant;

/// The maximum length of an id from outside, in bytes of UTF-8. Escaping makes it at most three
/// times as long, so one sort key has room for two.
pub const MAX_ID_BYTES: usize = 128;

/// The reason why a text is not an id.
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
    /// The text holds a character that a path cannot carry.
    #[error("must not contain `/`, `?`, `%` or `\\`")]
    NotInPaths,
    /// The text is `.` or `..`, which clients remove from a path.
    #[error("must not be `.` or `..`")]
    Dots,
}

/// Checks a name from outside that no path carries unencoded: 1 to 128 bytes of UTF-8 without
/// control characters.
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
/// An HTTP API of API Gateway decodes a path twice before it looks for the route, and cuts the path
/// at a decoded `?`. Live captures are in `vokerhttp/testdata/ingress-paths.json` of
/// <https://github.com/hotsock/voker/pull/8>. Clients remove the segments `.` and `..`, and some
/// turn `\` into `/` (<https://url.spec.whatwg.org/#path-state>).
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

/// Returns a UUIDv7: 48 bits of milliseconds, then random bits, so that ids sort by creation time.
/// The caller gives the random bytes, because this crate does no I/O.
#[must_use]
pub fn time_ordered(at: Instant, random: [u8; 10]) -> String {
    let millis = u64::try_from(at.as_millis()).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid().to_string()
}

/// Returns the lower bound of the ids that are made at `at`. Every [`time_ordered`] id of that
/// millisecond or later sorts after this text, and every earlier id before it.
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

            /// Takes an id that is stored. Earlier releases accepted ids by the rule of [`check`]
            /// instead of [`check_id`].
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

            /// Returns the id as text, as clients know it.
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
    /// The id of a customer: the `sub` of the caller's token, or an id that staff gave.
    CustomerId
    /// The id of a product in the catalogue.
    ProductId
    /// The id of an order. It is always time-ordered, so that a range of ids is a range of
    /// instants.
    OrderId
    /// The id of a shop.
    StoreId
    /// The id of a customer's session on one device.
    SessionId
    /// The id of a line in an order's staff log.
    LogId
    /// The id of a movement of money: a wallet's entry, or a transfer with both its entries.
    EntryId
    /// The id of a customer's question.
    QuestionId
    /// The id of an answer to a question.
    AnswerId
    /// The name of a customer's address, such as "home".
    AddressName
    /// The id of an organization of customers.
    OrganizationId
    /// The id of a team of an organization.
    TeamId
    /// The id of a document.
    DocumentId
    /// The name of a section of a document.
    SectionName
    /// The name of a metric.
    MetricName
    /// The id of a metric's point, given by the client or generated. A point that the client sends
    /// again under its id is the same point.
    PointId
    /// The name of a counter, such as `product:1082185`.
    CounterName
    /// The id of an upload, and of the picture or text made from it.
    MediaId
}

ids! { check:
    /// A client's own number for an order, unique across all orders. No path carries it.
    OrderReference
    /// The birth mark of one incarnation of an item, given at creation. A key that is used again
    /// gets another one.
    Born
}

impl StoreId {
    /// Returns `online`, the shop of all orders that were placed in no shop. Staff may enter it
    /// like any other shop, to set the country and city under which its sales count.
    #[must_use]
    pub fn online() -> Self {
        Self("online".to_owned())
    }
}

impl Born {
    /// Returns the birth mark of a counter, which has only one incarnation.
    pub(crate) fn counter() -> Self {
        Self("counter".to_owned())
    }
}

impl PointId {
    /// Returns the birth mark of the point. Sending the point again writes it whole, with the same
    /// birth mark.
    #[must_use]
    pub fn born(&self) -> Born {
        Born(self.0.clone())
    }
}

impl EntryId {
    /// Returns the birth mark of the items that this movement creates. It is as unique as the
    /// movement.
    #[must_use]
    pub fn born(&self) -> Born {
        Born(self.0.clone())
    }
}
