//! The secrets that sign webhooks, and their signatures.
//!
//! A secret is stored nowhere, like the codes of mails ([`crate::code`]). It is derived with
//! HMAC-SHA-256 from a key, the endpoint and a random nonce. The table holds the nonce. So a copy of
//! the table, such as a backup or an export, forges no webhook.
//!
//! Secrets and signatures have the form of Standard Webhooks
//! (<https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac::{HMAC_SHA256, Key, sign};
use serde::{Deserialize, Serialize};

use crate::code::labelled_keys;
use crate::cursor::CursorKeyError;
use crate::guest_cart::hexadecimal;
use crate::id::EndpointId;
use crate::instant::Instant;

/// Makes these keys different from others, even if an operator uses one value for several.
const LABEL: &[u8] = b"bodega webhook secret, version 1";
const PREFIX: &str = "whsec_";
const VERSION: &str = "v1";

/// What the table holds of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretSeed {
    /// The name of the key that derives the secret.
    pub key: String,
    pub nonce: String,
    pub created_at: Instant,
    /// The end of the secret, after a newer one was made.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ends_at: Option<Instant>,
}

impl SecretSeed {
    #[must_use]
    pub fn is_valid(&self, now: Instant) -> bool {
        self.ends_at.is_none_or(|end| end > now)
    }
}

/// The keys that derive secrets. The first key makes new secrets.
pub struct WebhookKeys {
    keys: Vec<(String, Key)>,
}

impl std::fmt::Debug for WebhookKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.keys.iter().map(|(name, _)| name).collect();
        f.debug_struct("WebhookKeys").field("keys", &names).finish_non_exhaustive()
    }
}

impl WebhookKeys {
    /// Reads keys in the form that [`crate::cursor::Cursors::new`] reads.
    pub fn new(keys: &str) -> Result<Self, CursorKeyError> {
        Ok(Self { keys: labelled_keys(keys, LABEL)? })
    }

    #[must_use]
    pub fn newest(&self) -> &str {
        self.keys.first().map_or("", |(name, _)| name)
    }

    /// Returns 32 bytes that follow from each key, the newest key first. `purpose` keeps them different from
    /// all secrets, whose texts begin with a length.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> Vec<(&str, [u8; 32])> {
        let derived = |key| sign(key, purpose.as_bytes()).as_ref().try_into().ok();
        self.keys.iter().filter_map(|(name, key)| Some((name.as_str(), derived(key)?))).collect()
    }

    /// Returns the secret of an endpoint, or `None` if its key is gone.
    #[must_use]
    pub fn secret(&self, endpoint: &EndpointId, seed: &SecretSeed) -> Option<WebhookSecret> {
        let (_, key) = self.keys.iter().find(|(name, _)| *name == seed.key)?;
        let mut text = Vec::new();
        for part in [endpoint.as_str(), &seed.nonce] {
            // The lengths distinguish ("ab", "c") from ("a", "bc").
            text.extend((part.len() as u64).to_be_bytes());
            text.extend(part.as_bytes());
        }
        Some(WebhookSecret(sign(key, &text).as_ref().to_vec()))
    }
}

/// A secret of an endpoint.
pub struct WebhookSecret(Vec<u8>);

impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSecret(..)")
    }
}

impl WebhookSecret {
    /// Returns the text that the receiver configures.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// Returns the signature of a message with this id, sent at this second.
    #[must_use]
    pub fn sign(&self, id: &str, seconds: i64, body: &str) -> String {
        let tag = sign(&Key::new(HMAC_SHA256, &self.0), format!("{id}.{seconds}.{body}").as_bytes());
        format!("{VERSION},{}", STANDARD.encode(tag.as_ref()))
    }

    /// Returns the header `Merchant-Signature` of the Agentic Commerce Protocol for a message sent at this
    /// second. Its key is the text of the secret, as it is with Stripe, whose form this is.
    #[must_use]
    pub fn merchant_signature(&self, seconds: i64, body: &str) -> String {
        let tag = sign(&Key::new(HMAC_SHA256, self.text().as_bytes()), format!("{seconds}.{body}").as_bytes());
        format!("t={seconds},v1={}", hexadecimal(tag.as_ref()))
    }
}
