use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// The maximum number of digits of a sequence number (API reference, `StreamRecord`: 21 to 40).
pub const MAX_DIGITS: usize = 40;

/// A stream's sequence number: 1 to 40 decimal digits, which may exceed every integer type. It is
/// ordered as a number. It is kept as text, because Lambda compares the exact text.
///
/// It orders the records of one shard. It cannot be the version of a document, because shards split
/// and the numbers of a restored table start again.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct SequenceNumber(Box<str>);

/// The text is not 1 to 40 decimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a sequence number has 1 to {MAX_DIGITS} decimal digits")]
pub struct NotASequenceNumber;

impl SequenceNumber {
    /// Returns the digits as the stream sent them.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn significant(&self) -> &str {
        self.0.trim_start_matches('0')
    }
}

impl FromStr for SequenceNumber {
    type Err = NotASequenceNumber;

    fn from_str(text: &str) -> Result<Self, NotASequenceNumber> {
        let digits = (1..=MAX_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        if digits { Ok(Self(text.into())) } else { Err(NotASequenceNumber) }
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Ord for SequenceNumber {
    fn cmp(&self, other: &Self) -> Ordering {
        // Without leading zeros a longer number is larger. Numbers of equal length compare as text.
        let (ours, theirs) = (self.significant(), other.significant());
        ours.len().cmp(&theirs.len()).then_with(|| ours.cmp(theirs))
    }
}

impl PartialOrd for SequenceNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SequenceNumber {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for SequenceNumber {}
