//! The keys of the shop, and public keys as JSON Web Keys (RFC 7517).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use key_schema::webhook_secret::WebhookKeys;
use p256::ecdsa::{SigningKey, VerifyingKey};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::message::Refusal;

/// Makes these keys different from the secrets of endpoints.
const PURPOSE: &str = "bodega message signature, version 1";
const CURVE: &str = "P-256";
const ALGORITHM: &str = "ES256";
/// The first byte of a point with both coordinates.
const UNCOMPRESSED: u8 = 4;

/// The private keys of the shop. The first key signs, and all are published.
pub struct SigningKeys(Vec<(String, SigningKey)>);

impl std::fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl SigningKeys {
    /// Derives a key from each key of webhooks.
    #[must_use]
    pub fn of(keys: &WebhookKeys) -> Self {
        let derived = keys.derive(PURPOSE);
        // Nearly every number is a key. It fails only for zero and above the order of the curve.
        let key = |(name, bytes): (&str, [u8; 32])| Some((name.to_owned(), SigningKey::from_slice(&bytes).ok()?));
        Self(derived.into_iter().filter_map(key).collect())
    }

    pub(crate) fn newest(&self) -> Option<(&str, &SigningKey)> {
        self.0.first().map(|(name, key)| (name.as_str(), key))
    }

    /// Returns the public keys, the one that signs first.
    #[must_use]
    pub fn public(&self) -> Vec<Jwk> {
        let public = |(name, key): &(String, SigningKey)| {
            let point = key.verifying_key().to_sec1_point(false);
            let coordinate = |bytes: Option<&[u8]>| bytes.map(|bytes| URL_SAFE_NO_PAD.encode(bytes));
            let (x, y) = (point.x().map(|x| x.as_slice()), point.y().map(|y| y.as_slice()));
            Jwk {
                kid: name.clone(),
                kty: "EC".to_owned(),
                crv: Some(CURVE.to_owned()),
                x: coordinate(x),
                y: coordinate(y),
                r#use: Some("sig".to_owned()),
                alg: Some(ALGORITHM.to_owned()),
                key_ops: None,
            }
        };
        self.0.iter().map(public).collect()
    }
}

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jwk {
    pub kid: String,
    pub kty: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub crv: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub x: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub y: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub r#use: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub alg: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub key_ops: Option<Vec<String>>,
}

impl Jwk {
    /// Returns whether the key may check signatures.
    pub(crate) fn is_for_signatures(&self) -> bool {
        self.r#use.as_deref() != Some("enc")
            && self.key_ops.as_ref().is_none_or(|ops| ops.iter().any(|op| op == "verify"))
    }

    /// Returns the SHA-256 of the key (RFC 7638).
    pub(crate) fn thumbprint(&self) -> String {
        let [crv, x, y] = [&self.crv, &self.x, &self.y].map(|member| member.as_deref().unwrap_or_default());
        let members = format!(r#"{{"crv":"{crv}","kty":"{}","x":"{x}","y":"{y}"}}"#, self.kty);
        URL_SAFE_NO_PAD.encode(digest(&SHA256, members.as_bytes()))
    }

    pub(crate) fn read(&self) -> Result<VerifyingKey, Refusal> {
        let is_known = self.kty == "EC" && self.crv.as_deref() == Some(CURVE);
        if !is_known || self.alg.as_deref().is_some_and(|alg| alg != ALGORITHM) {
            return Err(Refusal::Algorithm);
        }
        let mut point = vec![UNCOMPRESSED];
        for coordinate in [&self.x, &self.y] {
            let text = coordinate.as_deref().unwrap_or_default().trim_end_matches('=');
            let bytes = URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| bytes.len() == 32);
            point.extend(bytes.ok_or(Refusal::Invalid("the signer's key is malformed"))?);
        }
        VerifyingKey::from_sec1_bytes(&point).map_err(|_| Refusal::Invalid("the signer's key is no point of its curve"))
    }
}
