//! Issues and verifies tokens, as a Cognito user pool does for a deployed system.
//!
//! Tokens are JWTs signed with ECDSA on P-256 (ES256). The key is in a file, so that `bodega token`
//! uses the same key as a running system. The gateway verifies tokens like the JWT authorizer of an
//! HTTP API, with one difference. API Gateway accepts only RSA signatures, but creating an RSA key
//! takes too long for a local system.
//!
//! No deployed system accepts these tokens. API Gateway rejects their issuer and the type of their
//! signature. A function that verifies tokens itself accepts only the keys of its stack's issuer,
//! which do not include this key.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use ring::{digest, hmac};
use serde_json::{Value as Json, json};

/// The `iss` of every token. It contains no address, so a token stays valid when the system's port
/// changes.
pub const ISSUER: &str = "urn:bodega:local";
/// The `aud` of every token.
pub const AUDIENCE: &str = "bodega-local";

pub(crate) const LIFETIME_SECONDS: i64 = 12 * 60 * 60;
const FILE: &str = "bodega-signing-key.p8";
/// The folder for the key of a downloaded program. It is in the user's home folder.
const HOME_FOLDER: &str = ".bodega";
/// Bytes of one coordinate of a point on P-256.
const COORDINATE_BYTES: usize = 32;

/// A token's claims as the authorizer passes them to a function: every value as text.
pub type Claims = BTreeMap<String, String>;

#[derive(Clone)]
pub struct SigningKey {
    pair: Arc<EcdsaKeyPair>,
    /// The key from which other secrets are derived.
    secret: hmac::Key,
    /// The only JWT header that this key issues and accepts.
    header: String,
    id: String,
    audience: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("cannot use the signing key {}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The folder has no key, because no system has created one there.
    #[error("there is no signing key in {}: give the --data of the running system", .0.display())]
    Missing(PathBuf),
    /// The file is not a signing key.
    #[error("{} is not a signing key", .0.display())]
    Damaged(PathBuf),
    /// The operating system provides no random numbers for a key or a signature.
    #[error("the operating system provides no random numbers")]
    NoRandomness,
}

/// Returns whether a text can be a group's name.
///
/// The authorizer passes groups on as `[one two]`. A function could read a name with a space, a
/// comma or a bracket as several names.
#[must_use]
pub(crate) fn is_group(name: &str) -> bool {
    !name.is_empty() && !name.contains([' ', ',', '[', ']'])
}

/// A token's claims other than the subject and the groups.
#[derive(Debug, Clone, Copy, Default)]
pub struct MoreClaims<'a> {
    /// The sign-in that the token belongs to.
    pub sid: Option<&'a str>,
    pub email: Option<&'a str>,
}

impl SigningKey {
    /// Opens the key in the data folder, and creates it if it is missing.
    ///
    /// Without a data folder, the key of a program that Cargo built is in Cargo's target folder.
    /// The key of a downloaded program is in `.bodega` in the user's home folder. Several processes
    /// that create the key at the same time get the same key.
    pub fn open(data: Option<&Path>) -> Result<Self, KeyError> {
        let (folder, path) = Self::place(data);
        let failed = |source| KeyError::File { path: path.clone(), source };
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
                let made = made.map_err(|_| KeyError::NoRandomness)?;
                create(&folder, &path, made.as_ref()).map_err(failed)?;
                fs::read(&path).map_err(failed)?
            }
            Err(error) => return Err(failed(error)),
        };
        Self::from_pkcs8(&bytes).ok_or(KeyError::Damaged(path))
    }

    /// Opens the key of a system that runs, or has run, with this data folder.
    ///
    /// It does not create a key, because no system would accept tokens that a new key signed.
    /// Without a data folder it works as [`Self::open`].
    pub fn of_running(data: Option<&Path>) -> Result<Self, KeyError> {
        match data {
            Some(folder) if !folder.join(FILE).is_file() => Err(KeyError::Missing(folder.to_owned())),
            _ => Self::open(data),
        }
    }

    /// Returns the folder and the file of the key that [`SigningKey::open`] uses.
    fn place(data: Option<&Path>) -> (PathBuf, PathBuf) {
        let folder = match data {
            Some(folder) => folder.to_owned(),
            None => shared_folder(&std::env::current_exe().unwrap_or_default(), std::env::home_dir()),
        };
        let file = folder.join(FILE);
        (folder, file)
    }

    /// Returns the key file of a system without a data folder.
    pub fn file() -> PathBuf {
        Self::place(None).1
    }

    fn from_pkcs8(bytes: &[u8]) -> Option<Self> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, bytes, &SystemRandom::new()).ok()?;
        let id = URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, pair.public_key().as_ref()));
        let header = URL_SAFE_NO_PAD.encode(json!({ "alg": "ES256", "kid": id, "typ": "JWT" }).to_string());
        Some(Self {
            pair: Arc::new(pair),
            secret: hmac::Key::new(hmac::HMAC_SHA256, bytes),
            header,
            id,
            audience: vec![AUDIENCE.to_owned()],
        })
    }

    /// The token is valid for 12 hours from `now` (epoch seconds).
    pub fn issue(&self, subject: &str, groups: &[String], now: i64) -> Result<String, KeyError> {
        self.issue_with(subject, groups, MoreClaims::default(), now)
    }

    /// Issues a token like [`SigningKey::issue`], with more claims.
    pub fn issue_with(
        &self,
        subject: &str,
        groups: &[String],
        more: MoreClaims<'_>,
        now: i64,
    ) -> Result<String, KeyError> {
        let mut claims = json!({
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": subject,
            "iat": now,
            "exp": now + LIFETIME_SECONDS,
        });
        if let (false, Some(fields)) = (groups.is_empty(), claims.as_object_mut()) {
            fields.insert("cognito:groups".to_owned(), json!(groups));
        }
        if let (Some(sid), Some(fields)) = (more.sid, claims.as_object_mut()) {
            fields.insert("sid".to_owned(), json!(sid));
        }
        if let (Some(email), Some(fields)) = (more.email, claims.as_object_mut()) {
            fields.insert("email".to_owned(), json!(email));
            fields.insert("email_verified".to_owned(), json!(true));
        }
        self.sign(&self.header, &claims)
    }

    /// Returns the same key for an authorizer that accepts tokens for `audience`.
    #[must_use]
    pub fn for_audience(self, audience: Vec<String>) -> Self {
        Self { audience, ..self }
    }

    fn sign(&self, header: &str, claims: &Json) -> Result<String, KeyError> {
        let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).map_err(|_| KeyError::NoRandomness)?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// Returns the claims of a token if an authorizer would accept it at `now` (epoch seconds).
    #[must_use]
    pub fn verify(&self, token: &str, now: i64) -> Option<Claims> {
        let (signed, signature) = token.rsplit_once('.')?;
        let payload = signed.strip_prefix(self.header.as_str())?.strip_prefix('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key());
        public.verify(signed.as_bytes(), &signature).ok()?;
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        let Ok(Json::Object(claims)) = serde_json::from_slice(&payload) else {
            return None;
        };
        let instant = |name: &str| claims.get(name).map(|value| value.as_i64());
        let is_meant = |name: &Json| name.as_str().is_some_and(|name| self.audience.iter().any(|known| known == name));
        let meant = match claims.get("aud") {
            Some(Json::Array(several)) => several.iter().any(is_meant),
            Some(one) => is_meant(one),
            None => claims.get("client_id").is_some_and(is_meant),
        };
        let holds = claims.get("iss").and_then(Json::as_str) == Some(ISSUER)
            && meant
            && instant("exp").flatten().is_some_and(|end| now < end)
            && instant("nbf").is_none_or(|start| start.is_some_and(|start| start <= now))
            && instant("iat").is_none_or(|issued| issued.is_some_and(|issued| issued <= now));
        holds.then(|| {
            let text = claims.iter().map(|(name, value)| (name.clone(), as_text(value)));
            text.collect()
        })
    }

    /// Returns the public key as a JSON Web Key set (RFC 7517).
    #[must_use]
    pub fn key_set(&self) -> Json {
        // An uncompressed point is one constant byte and two coordinates.
        let point = self.pair.public_key().as_ref();
        let (x, y) = point.split_at(1).1.split_at(COORDINATE_BYTES);
        let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
        let key = json!({ "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id, "x": x, "y": y });
        json!({ "keys": [key] })
    }

    /// The same key and purpose always give the same secret.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> Vec<u8> {
        hmac::sign(&self.secret, purpose.as_bytes()).as_ref().to_vec()
    }
}

/// Formats a claim as the authorizer does: a list as `[staff other]`, other values as text.
fn as_text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(as_text).collect();
            format!("[{}]", items.join(" "))
        }
        other => other.to_string(),
    }
}

/// Writes the key to a draft file and hard-links it. So no process can read a partial key. If
/// several processes write at the same time, the first key stays.
fn create(folder: &Path, path: &Path, key: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let draft = folder.join(format!(".{FILE}-{}-{:x}", std::process::id(), fastrand::u64(..)));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&draft).and_then(|mut file| {
        file.write_all(key)?;
        file.sync_all()
    });
    let linked = written.and_then(|()| match fs::hard_link(&draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    });
    // Whether the link succeeded or not, the draft is no longer needed.
    let _ = fs::remove_file(&draft);
    linked
}

/// Returns the folder of the key that programs without a data folder share.
///
/// For a program that Cargo built, this is Cargo's target folder. The folder of a downloaded
/// program may be read-only for the user, so its key is in the home folder. Without a home folder
/// the key is next to the program.
fn shared_folder(executable: &Path, home: Option<PathBuf>) -> PathBuf {
    let folder = executable.parent().unwrap_or(Path::new("."));
    // Cargo writes the first of these files into target folders that it creates, and the second
    // into every target folder.
    let is_target =
        |folder: &&Path| ["CACHEDIR.TAG", ".rustc_info.json"].iter().any(|mark| folder.join(mark).is_file());
    match (folder.ancestors().find(is_target), home) {
        (Some(target), _) => target.to_owned(),
        (None, Some(home)) if !home.as_os_str().is_empty() => home.join(HOME_FOLDER),
        (None, _) => folder.to_owned(),
    }
}

#[cfg(test)]
mod tests;
