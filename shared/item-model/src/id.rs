//! Typed ids: an id of one kind does not compile where another kind is expected. [`crate::ids`]
//! declares the types.

use unicode_normalization::is_nfc;

use crate::characters::is_blank;
use crate::instant::Instant;

/// The maximum length of an id, in bytes of UTF-8. Escaping makes an id at most three times as
/// long, so two ids fit in one sort key.
pub const MAX_ID_BYTES: usize = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("must not be empty")]
    Empty,
    /// The text has more than [`MAX_ID_BYTES`] bytes.
    #[error("must have at most {MAX_ID_BYTES} bytes")]
    TooLong,
    #[error("must not contain control characters")]
    ControlCharacter,
    #[error("must not begin or end with a space")]
    SpaceAtEnd,
    #[error("must not contain two spaces in a row")]
    TwoSpaces,
    #[error("must not contain invisible characters, or white space other than the plain space")]
    Invisible,
    #[error("must be in the Unicode form NFC")]
    NotNfc,
    /// The text holds a character that cannot be in a path.
    #[error("must not contain `/`, `?`, `%` or `\\`")]
    NotInPaths,
    /// The text is `.` or `..`, which clients remove from a path.
    #[error("must not be `.` or `..`")]
    Dots,
    /// The text is [`ME`], which is not the id of a caller.
    #[error("must not be `{ME}`, which names the caller")]
    Reserved,
    /// The text is the id of a guest, and nobody can sign in with it.
    #[error("must not be the id of a guest")]
    Guest,
}

/// The word that names the caller in place of the caller's own id.
pub const ME: &str = "me";

/// The characters that join or separate letters, as in Persian words and in emoji of families.
const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];

/// Returns whether a joiner is where it changes nothing that a reader sees: at an end, beside
/// another joiner, or beside an ASCII character, which is never joined.
fn has_idle_joiner(text: &str) -> bool {
    let joins = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !JOINERS.contains(&c));
    text.match_indices(JOINERS).any(|(at, joiner)| {
        let (before, after) = (text.get(..at), text.get(at + joiner.len()..));
        !joins(before.and_then(|text| text.chars().next_back())) || !joins(after.and_then(|text| text.chars().next()))
    })
}

/// Checks an untrusted name: 1 to 128 bytes of UTF-8 without control characters, and without the
/// differences that a reader cannot see. Otherwise `SKU` and `SKU ` would be two names. A path
/// contains such a name only in an encoded form.
///
/// # Errors
/// [`IdError`] names the broken part of the rule.
pub fn check(text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        Err(IdError::Empty)
    } else if text.len() > MAX_ID_BYTES {
        Err(IdError::TooLong)
    } else if text.chars().any(char::is_control) {
        Err(IdError::ControlCharacter)
    } else if text.starts_with(' ') || text.ends_with(' ') {
        Err(IdError::SpaceAtEnd)
    } else if text.contains("  ") {
        Err(IdError::TwoSpaces)
    } else if text.is_ascii() {
        Ok(())
    } else if text.chars().any(|c| c != ' ' && !JOINERS.contains(&c) && is_blank(c)) || has_idle_joiner(text) {
        Err(IdError::Invisible)
    } else if !is_nfc(text) {
        Err(IdError::NotNfc)
    } else {
        Ok(())
    }
}

/// Checks an untrusted id: a name that can also be one segment of a path.
///
/// An HTTP API of API Gateway decodes a path twice before it looks for the route, and ends the path
/// at a decoded `?`. Recorded requests are in `vokerhttp/testdata/ingress-paths.json` of
/// <https://github.com/hotsock/voker/pull/8>. Clients remove the segments `.` and `..`, and some
/// turn `\` into `/` (<https://url.spec.whatwg.org/#path-state>).
///
/// # Errors
/// [`IdError`] names the broken part of the rule.
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

/// Checks the untrusted id of a caller: an id that is not [`ME`].
///
/// # Errors
/// [`IdError`] names the broken part of the rule.
pub fn check_caller_id(text: &str) -> Result<(), IdError> {
    if text == ME { Err(IdError::Reserved) } else { check_id(text) }
}

/// Returns a UUIDv7: 48 bits of milliseconds, then random bits, so that ids sort by creation time.
/// The caller passes the random bytes, because this crate does no I/O.
#[must_use]
pub fn time_ordered(at: Instant, random: [u8; 10]) -> String {
    let millis = u64::try_from(at.as_millis()).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid().to_string()
}

/// Returns the instant at which a [`time_ordered`] id was made. Returns `None` for an id that is
/// not a UUID with a time.
#[must_use]
pub fn time_of(id: &str) -> Option<Instant> {
    let (seconds, nanoseconds) = uuid::Uuid::try_parse(id).ok()?.get_timestamp()?.to_unix();
    Instant::from_millis(
        i64::try_from(seconds).ok()?.checked_mul(1_000)?.checked_add(i64::from(nanoseconds / 1_000_000))?,
    )
}

/// Returns the lower bound of the ids that are made at `at`. [`time_ordered`] ids of that
/// millisecond or later sort after this text, and earlier ids sort before it.
#[must_use]
pub fn time_ordered_floor(at: Instant) -> String {
    let millis = u64::try_from(at.as_millis()).unwrap_or(0) & 0xFFFF_FFFF_FFFF;
    format!("{:08x}-{:04x}", millis >> 16, millis & 0xFFFF)
}

/// A type that [`crate::ids`] declares.
pub trait Id {
    fn as_str(&self) -> &str;
}

crate::ids! { check:
    /// The time-ordered id that an item gets at its creation, in the attribute `born`. If the item
    /// is deleted and created again under the same key, the new item has another `born`.
    Born
}

impl Born {
    /// Returns the `born` of an item that is never created again, such as a counter.
    #[must_use]
    pub fn counter() -> Self {
        Self("counter".to_owned())
    }

    /// Returns the `born` of an item that this id identifies. Every write of the item stores the
    /// same `born`.
    #[must_use]
    pub fn of(id: &impl Id) -> Self {
        Self(id.as_str().to_owned())
    }
}

/// Declares types of ids. The rule, such as `check_id` or `check` of [`crate::id`], decides which
/// untrusted texts they accept.
///
/// ```
/// item_model::ids! { check_id:
///     /// The id of a book.
///     BookId
/// }
/// assert!(BookId::new("isbn-1").is_ok() && BookId::new("a/b").is_err());
/// ```
#[macro_export]
macro_rules! ids {
    ($rule:ident: $($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Creates an id from an untrusted text.
            ///
            /// # Errors
            #[doc = concat!("`IdError`, by the rule of `", stringify!($rule), "`.")]
            pub fn new(text: impl Into<String>) -> Result<Self, $crate::id::IdError> {
                let text = text.into();
                $crate::id::$rule(&text)?;
                Ok(Self(text))
            }

            /// Makes a time-ordered id (`time_ordered`).
            #[must_use]
            pub fn generate(at: $crate::instant::Instant, random: [u8; 10]) -> Self {
                Self($crate::id::time_ordered(at, random))
            }

            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl $crate::id::Id for $name {
            fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::id::IdError;

            fn from_str(text: &str) -> Result<Self, $crate::id::IdError> {
                Self::new(text)
            }
        }

        impl $crate::encoding::Part for $name {
            fn write(&self, out: &mut String) {
                $crate::encoding::encode_into(&self.0, out);
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text: String = serde::Deserialize::deserialize(deserializer)?;
                Self::new(text).map_err(serde::de::Error::custom)
            }
        }
    )*};
}
