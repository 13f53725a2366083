//! The codes that verify an email address.
//!
//! A code is stored nowhere. It is derived with HMAC-SHA-256 from a key, the customer, the address
//! and a random nonce. The table holds the nonce. The Lambda function that checks a code and the
//! Lambda function that mails it derive the same code. So neither the table, its stream, the bus,
//! an archive nor a log contains a code.
//!
//! The keys of codes have a secret of their own, in the form of the keys of cursors
//! ([`crate::cursor`]). Only the two functions above can read it. A label makes the keys different
//! from those of cursors, even if an operator uses one value for both.

use ring::hmac::{HMAC_SHA256, Key, sign, verify};

use crate::cursor::{CursorKeyError, named_keys};
use crate::id::CustomerId;
use crate::text::Email;

pub const DIGITS: usize = 6;
const CODES: u64 = 1_000_000;
/// Makes the keys of codes different from the keys of cursors.
const LABEL: &[u8] = b"bodega email verification code, version 1";

/// Reads keys, and makes them different from the keys with another label.
pub(crate) fn labelled_keys(keys: &str, label: &[u8]) -> Result<Vec<(String, Key)>, CursorKeyError> {
    let derive = |(name, key): (String, [u8; 32])| {
        let derived = sign(&Key::new(HMAC_SHA256, &key), label);
        (name, Key::new(HMAC_SHA256, derived.as_ref()))
    };
    Ok(named_keys(keys)?.into_iter().map(derive).collect())
}

/// The values from which a key derives a code.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    pub customer: &'a CustomerId,
    /// The address as the profile holds it.
    pub email: &'a Email,
    /// The random text of the request.
    pub nonce: &'a str,
}

impl Subject<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for text in [self.customer.as_str(), self.email.as_str(), self.nonce] {
            // The lengths distinguish ("ab", "c") from ("a", "bc").
            bytes.extend((text.len() as u64).to_be_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes
    }
}

/// The keys of codes. The first key makes new codes. A code of any of the keys is valid.
pub struct CodeKeys {
    keys: Vec<(String, Key)>,
}

impl std::fmt::Debug for CodeKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeKeys").field("keys", &self.names()).finish_non_exhaustive()
    }
}

impl CodeKeys {
    /// Reads keys in the form that [`crate::cursor::Cursors::new`] reads.
    pub fn new(keys: &str) -> Result<Self, CursorKeyError> {
        Ok(Self { keys: labelled_keys(keys, LABEL)? })
    }

    #[must_use]
    pub fn newest(&self) -> &str {
        self.keys.first().map_or("", |(name, _)| name)
    }

    /// Returns the code of a subject under the key with this name, or `None` if no key has this
    /// name.
    #[must_use]
    pub fn code(&self, key: &str, subject: &Subject<'_>) -> Option<String> {
        let (_, key) = self.keys.iter().find(|(name, _)| name == key)?;
        let tag = sign(key, &subject.bytes());
        // With a 64-bit number modulo a million, the bias is below 2^-44.
        let number = tag.as_ref().first_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes) % CODES)?;
        Some(format!("{number:0width$}", width = DIGITS))
    }

    /// Returns whether a text is the code. The time of the comparison does not depend on the texts:
    /// the function compares their tags under the same key.
    #[must_use]
    pub fn is_code(&self, key: &str, subject: &Subject<'_>, entered: &str) -> bool {
        let Some((_, secret)) = self.keys.iter().find(|(name, _)| name == key) else { return false };
        let Some(code) = self.code(key, subject) else { return false };
        verify(secret, entered.as_bytes(), sign(secret, code.as_bytes()).as_ref()).is_ok()
    }

    fn names(&self) -> Vec<&str> {
        self.keys.iter().map(|(name, _)| name.as_str()).collect()
    }
}
