//! Cursors: sealed positions at which a page of a list ended.
//!
//! A cursor contains a sort key, and a sort key may contain ids that the client must not see. So
//! the cursor is encrypted and authenticated (AES-256-GCM). Its scope (list, parameters, caller) is
//! authenticated, too. A cursor does not open if it is altered, expired, or used for another list
//! or by another caller.
//!
//! # Layout
//!
//! A cursor is the unpadded base64url of:
//!
//! - the version, one byte;
//! - the length of the key's name, one byte, and the name;
//! - the nonce, 12 bytes;
//! - the ciphertext with its 16-byte tag.
//!
//! The plaintext is the expiry in seconds (8 bytes, big endian), followed by the sort key's
//! unescaped parts. NUL joins the parts, and no part can contain it.
//!
//! A random 96-bit nonce is safe for 2^32 cursors per key. Replace a key well before that number.
//!
//! # Example
//!
//! ```
//! use item_model::cursor::{Cursors, Scope};
//! use item_model::instant::Instant;
//!
//! let cursors = Cursors::new("2026:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
//! let (books, now) = (Scope { list: "books.list", parameters: &[], caller: "" }, Instant::now());
//! let cursor = cursors.seal(&books, "TITLE#emma#b1", now).unwrap();
//! assert_eq!(cursors.open(&books, &cursor, now).unwrap(), "TITLE#emma#b1");
//!
//! let loans = Scope { list: "loans.overdue", ..books };
//! assert!(cursors.open(&loans, &cursor, now).is_err());
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::encoding;
use crate::instant::Instant;

/// How long a cursor is valid.
pub const LIFETIME_SECONDS: i64 = 24 * 60 * 60;
/// The maximum length of a cursor, in characters.
pub const MAX_CURSOR_BYTES: usize = 1024;
/// The maximum length of any sealed text, in characters.
pub const MAX_SEALED_BYTES: usize = 64 * 1024;

const VERSION: u8 = 1;
const MAX_KEY_NAME_BYTES: usize = 16;
const KEY_BYTES: usize = 32;

/// The list, parameters and caller of a cursor. The cursor does not contain them, but it opens only
/// with equal values.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The list: its access pattern's id, or another stable name.
    pub list: &'a str,
    /// The parameters that select and order the list, but not the page size.
    pub parameters: &'a [(&'a str, &'a str)],
    /// The caller's id, empty for an anonymous caller.
    pub caller: &'a str,
}

impl Scope<'_> {
    fn authenticated(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        let parameters = self.parameters.iter().flat_map(|(name, value)| [*name, *value]);
        for text in [self.list, self.caller].into_iter().chain(parameters) {
            // The lengths make ("ab", "c") differ from ("a", "bc").
            bytes.extend(text.len().to_be_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes
    }
}

/// The cursor is altered, expired, or made for another scope. The error does not say which, so that
/// a client learns nothing from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cursor is not valid for this list")]
pub struct CursorInvalid;

/// The reason why cursor keys are unusable, or why a cursor cannot be sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CursorKeyError {
    /// The text is not a comma-separated list of `name:base64`. It must have at least one key, and
    /// a name has 1 to 16 bytes.
    #[error("cursor keys must be a comma-separated list of name:base64")]
    Malformed,
    /// A key does not have exactly 32 bytes.
    #[error("a cursor key must have 32 bytes")]
    Length,
    /// The sealed text would be too long, the sort key is malformed, or the system provides no
    /// randomness.
    #[error("the cursor could not be sealed")]
    Seal,
}

/// Reads keys in the form `name:base64(32 bytes)`, separated by commas.
///
/// # Errors
/// [`CursorKeyError`] when the text is not a list of usable keys.
pub fn named_keys(keys: &str) -> Result<Vec<(String, [u8; KEY_BYTES])>, CursorKeyError> {
    let read = |entry: &str| {
        let (name, key) = entry.trim().split_once(':').ok_or(CursorKeyError::Malformed)?;
        if name.is_empty() || name.len() > MAX_KEY_NAME_BYTES {
            return Err(CursorKeyError::Malformed);
        }
        let key = STANDARD.decode(key).map_err(|_| CursorKeyError::Malformed)?;
        Ok((name.to_owned(), key.try_into().map_err(|_| CursorKeyError::Length)?))
    };
    keys.split(',').map(read).collect()
}

/// The keys that seal and open cursors. The first key seals, and every key opens. So after an
/// operator adds a new first key, clients can still use the cursors that they have.
pub struct Cursors {
    keys: Vec<(String, LessSafeKey)>,
    random: SystemRandom,
}

impl std::fmt::Debug for Cursors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursors")
            .field("keys", &self.keys.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Cursors {
    /// Reads keys in the form `name:base64(32 bytes)`, separated by commas. The first key seals.
    ///
    /// # Errors
    /// [`CursorKeyError`] when the text is not a list of usable keys.
    pub fn new(keys: &str) -> Result<Self, CursorKeyError> {
        let keys = named_keys(keys)?
            .into_iter()
            .map(|(name, key)| {
                let key = UnboundKey::new(&AES_256_GCM, &key).map_err(|_| CursorKeyError::Length)?;
                Ok((name, LessSafeKey::new(key)))
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self { keys, random: SystemRandom::new() })
    }

    /// Seals the sort key at which a page ended.
    ///
    /// # Errors
    /// [`CursorKeyError::Seal`] when the sort key is not valid key text or contains NUL, or when
    /// the cursor would be longer than [`MAX_CURSOR_BYTES`].
    pub fn seal(&self, scope: &Scope<'_>, sort_key: &str, now: Instant) -> Result<String, CursorKeyError> {
        let parts = encoding::split(sort_key).ok_or(CursorKeyError::Seal)?;
        if parts.iter().any(|part| part.contains('\0')) {
            return Err(CursorKeyError::Seal);
        }
        let text = self.seal_text(scope, &parts.join("\0"), now)?;
        if text.len() > MAX_CURSOR_BYTES { Err(CursorKeyError::Seal) } else { Ok(text) }
    }

    /// Seals any text for a client that must neither read nor change it. `scope` names the purpose
    /// of the text.
    ///
    /// # Errors
    /// [`CursorKeyError::Seal`] when the sealed text would be longer than [`MAX_SEALED_BYTES`].
    pub fn seal_text(&self, scope: &Scope<'_>, text: &str, now: Instant) -> Result<String, CursorKeyError> {
        let (name, key) = self.keys.first().ok_or(CursorKeyError::Seal)?;
        let mut sealed = now.plus_seconds(LIFETIME_SECONDS).as_seconds().to_be_bytes().to_vec();
        sealed.extend(text.as_bytes());
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_| CursorKeyError::Seal)?;
        key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(scope.authenticated()),
            &mut sealed,
        )
        .map_err(|_| CursorKeyError::Seal)?;
        let mut bytes = vec![VERSION, u8::try_from(name.len()).map_err(|_| CursorKeyError::Seal)?];
        bytes.extend(name.as_bytes());
        bytes.extend(nonce);
        bytes.extend(sealed);
        let text = URL_SAFE_NO_PAD.encode(bytes);
        if text.len() > MAX_SEALED_BYTES { Err(CursorKeyError::Seal) } else { Ok(text) }
    }

    /// Returns the sort key at which a page ended.
    ///
    /// # Errors
    /// [`CursorInvalid`] for anything but an unexpired cursor of this scope.
    pub fn open(&self, scope: &Scope<'_>, cursor: &str, now: Instant) -> Result<String, CursorInvalid> {
        if cursor.len() > MAX_CURSOR_BYTES {
            return Err(CursorInvalid);
        }
        let parts = self.open_text(scope, cursor, now)?;
        Ok(parts.split('\0').map(encoding::encode).collect::<Vec<_>>().join("#"))
    }

    /// Returns the text that [`Self::seal_text`] has sealed.
    ///
    /// # Errors
    /// [`CursorInvalid`] for anything but an unexpired text of this scope.
    pub fn open_text(&self, scope: &Scope<'_>, sealed: &str, now: Instant) -> Result<String, CursorInvalid> {
        if sealed.len() > MAX_SEALED_BYTES {
            return Err(CursorInvalid);
        }
        let bytes = URL_SAFE_NO_PAD.decode(sealed).map_err(|_| CursorInvalid)?;
        let (version, rest) = bytes.split_first().ok_or(CursorInvalid)?;
        let (length, rest) = rest.split_first().ok_or(CursorInvalid)?;
        let (name, rest) = rest.split_at_checked(usize::from(*length)).ok_or(CursorInvalid)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN).ok_or(CursorInvalid)?;
        if *version != VERSION {
            return Err(CursorInvalid);
        }
        let (_, key) = self.keys.iter().find(|(known, _)| known.as_bytes() == name).ok_or(CursorInvalid)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| CursorInvalid)?;
        let mut sealed = sealed.to_vec();
        let opened =
            key.open_in_place(nonce, Aad::from(scope.authenticated()), &mut sealed).map_err(|_| CursorInvalid)?;
        let (expires, text) = opened.split_first_chunk::<8>().ok_or(CursorInvalid)?;
        if i64::from_be_bytes(*expires) <= now.as_seconds() {
            return Err(CursorInvalid);
        }
        Ok(std::str::from_utf8(text).map_err(|_| CursorInvalid)?.to_owned())
    }
}
