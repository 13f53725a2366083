//! The issuer's public keys (RFC 7517), and how long they are cached.
//!
//! The wall clock measures the age of the keys. Lambda freezes an environment between requests, and
//! the monotonic clock does not count that time. If the clock was set back, the age is unknown and
//! the keys are fetched again.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use key_schema::instant::Instant;
use ring::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey};
use tokio::sync::Mutex;

use super::Issuer;
use super::source::{FetchError, Source};
use super::token::{Algorithm, Token};
use crate::json::{Members, Value};

const P256_COORDINATE_BYTES: usize = 32;
/// The first byte of an uncompressed point, before both coordinates (SEC 1, section 2.3.3).
const UNCOMPRESSED: u8 = 4;

/// A public key for one signature algorithm.
pub(super) struct Key {
    id: String,
    public: Public,
}

enum Public {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256 { point: Vec<u8> },
}

impl Key {
    /// Returns whether this key has signed the token. The key determines the algorithm, so the
    /// result is `false` for a token that names another algorithm.
    pub(super) fn has_signed(&self, token: &Token<'_>) -> bool {
        if token.algorithm() != self.public.algorithm() {
            return false;
        }
        let verified = match &self.public {
            Public::Rsa { modulus, exponent } => RsaPublicKeyComponents { n: modulus, e: exponent }.verify(
                &RSA_PKCS1_2048_8192_SHA256,
                token.signed(),
                token.signature(),
            ),
            Public::P256 { point } => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(token.signed(), token.signature())
            }
        };
        verified.is_ok()
    }

    /// Reads one key. Returns `None` for a key that is not for signatures, or that has an
    /// unsupported algorithm.
    fn read(members: &Members<'_>) -> Option<Self> {
        let text = |name: &str| match members.get(name) {
            Some(Value::Text(text)) => Some(text.as_ref()),
            _ => None,
        };
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
        let public = match text("kty")? {
            "RSA" => Public::Rsa { modulus: bytes("n")?, exponent: bytes("e")? },
            "EC" if text("crv") == Some("P-256") => {
                let (x, y) = (bytes("x")?, bytes("y")?);
                if (x.len(), y.len()) != (P256_COORDINATE_BYTES, P256_COORDINATE_BYTES) {
                    return None;
                }
                Public::P256 { point: [&[UNCOMPRESSED], x.as_slice(), &y].concat() }
            }
            _ => return None,
        };
        let is_for_this = members.get("use").is_none_or(|_| text("use") == Some("sig"))
            && members.get("alg").is_none_or(|_| text("alg").and_then(Algorithm::named) == Some(public.algorithm()));
        is_for_this.then_some(())?;
        Some(Self { id: text("kid")?.to_owned(), public })
    }

    /// Returns the usable keys of a key set, or `None` when the text is not a key set.
    pub(super) fn read_set(text: &str) -> Option<Vec<Arc<Self>>> {
        let mut set = Value::parse(text).ok()?.into_members();
        let Some(Value::Array(keys)) = set.remove("keys") else {
            return None;
        };
        Some(keys.into_iter().filter_map(|key| Self::read(&key.into_members())).map(Arc::new).collect())
    }
}

impl Public {
    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Rsa { .. } => Algorithm::Rs256,
            Self::P256 { .. } => Algorithm::Es256,
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("id", &self.id).field("algorithm", &self.public.algorithm()).finish()
    }
}

pub(super) struct Keys {
    source: Source,
    /// The lock is held while the keys are fetched, so concurrent requests wait for one fetch.
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    keys: Vec<Arc<Key>>,
    /// The time at which these keys were requested.
    since: Option<Instant>,
    /// The time of the last failed fetch, if no fetch has succeeded since.
    failed: Option<Instant>,
}

impl Keys {
    pub(super) fn new(source: Source) -> Self {
        Self { source, held: Mutex::default() }
    }

    /// Returns the key with this id, or `None` when the issuer has no such key.
    pub(super) async fn find(
        &self,
        id: &str,
        clock: &(dyn Fn() -> Instant + Send + Sync),
    ) -> Result<Option<Arc<Key>>, FetchError> {
        let mut held = self.held.lock().await;
        let now = clock();
        let (known, age) = (held.key(id), held.since.and_then(|since| between(since, now)));
        let current = |limit: Duration| age.is_some_and(|age| age < limit);
        if current(if known.is_some() { Issuer::MAX_AGE } else { Issuer::UNKNOWN_KEY_INTERVAL }) {
            return Ok(known);
        }
        let rests = held.failed.and_then(|failed| between(failed, now)).is_some_and(|age| age < Issuer::FAILURE_PAUSE);
        let error = if rests {
            FetchError::Resting
        } else {
            match self.source.keys().await {
                Ok(keys) => {
                    *held = Held { keys, since: Some(now), failed: None };
                    return Ok(held.key(id));
                }
                Err(error) => {
                    held.failed = Some(clock());
                    error
                }
            }
        };
        known.filter(|_| current(Issuer::MAX_STALE)).map(Some).ok_or(error)
    }
}

impl Held {
    fn key(&self, id: &str) -> Option<Arc<Key>> {
        self.keys.iter().find(|key| key.id == id).cloned()
    }
}

/// Returns the time between two instants, or `None` when the clock was set back.
fn between(earlier: Instant, later: Instant) -> Option<Duration> {
    u64::try_from(later.as_millis() - earlier.as_millis()).ok().map(Duration::from_millis)
}
