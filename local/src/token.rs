//! The local issuer of tokens: what a Cognito user pool is to a deployed system.
//!
//! Tokens are JWTs signed with HMAC-SHA256 and a key that lies on this machine, so that
//! `bodega token` in another process agrees with a running system. The gateway checks them as the
//! JWT authorizer of an HTTP API does. Nothing deployed takes such a token: an authorizer of API
//! Gateway accepts RSA signatures only.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value as Json, json};

/// The `iss` of every token.
pub const ISSUER: &str = "urn:bodega:local";
/// The `aud` of every token.
pub const AUDIENCE: &str = "bodega-local";

const LIFETIME_SECONDS: i64 = 12 * 60 * 60;
const KEY_BYTES: usize = 32;
const FILE: &str = "bodega-signing-key";
/// `{"alg":"HS256","typ":"JWT"}`: the one header that is issued, and the one that is taken.
const HEADER: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";

/// A token's claims as the authorizer hands them to a function: every value as text.
pub type Claims = BTreeMap<String, String>;

/// The key that tokens are signed with.
#[derive(Clone)]
pub struct SigningKey(hmac::Key);

/// Why there is no signing key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or made.
    #[error("cannot use the signing key {}: {source}", path.display())]
    File {
        /// The file in question.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{} is not a signing key of {KEY_BYTES} bytes", .0.display())]
    Damaged(PathBuf),
    /// The system has no random numbers to make a key from.
    #[error("the system gives no random numbers")]
    NoRandomness,
}

impl SigningKey {
    /// The key in the data folder, or without one in the build's target folder. It is created when
    /// it is not there; of several processes that do so at once, all end up with the same one.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn open(data: Option<&Path>) -> Result<Self, KeyError> {
        let folder = match data {
            Some(folder) => folder.to_owned(),
            None => target_folder(),
        };
        let path = folder.join(FILE);
        let failed = |source| KeyError::File { path: path.clone(), source };
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut key = [0; KEY_BYTES];
                let filled = SystemRandom::new().fill(&mut key);
                filled.map_err(|_| KeyError::NoRandomness)?;
                create(&folder, &path, &key).map_err(failed)?;
                fs::read(&path).map_err(failed)?
            }
            Err(error) => return Err(failed(error)),
        };
        if bytes.len() == KEY_BYTES {
            Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
        } else {
            Err(KeyError::Damaged(path))
        }
    }

    /// A token for the customer `subject`, a member of `groups`, that holds for 12 hours from `now`
    /// (epoch seconds).
    #[must_use]
    pub fn issue(&self, subject: &str, groups: &[String], now: i64) -> String {
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
        let payload = URL_SAFE_NO_PAD.encode(claims.to_string());
        let signed = format!("{HEADER}.{payload}");
        let tag = hmac::sign(&self.0, signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()))
    }

    /// The claims of a token that an authorizer would let pass at `now` (epoch seconds).
    #[must_use]
    pub fn verify(&self, token: &str, now: i64) -> Option<Claims> {
        let (signed, tag) = token.rsplit_once('.')?;
        let payload = signed.strip_prefix(HEADER)?.strip_prefix('.')?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        hmac::verify(&self.0, signed.as_bytes(), &tag).ok()?;
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        let Ok(Json::Object(claims)) = serde_json::from_slice(&payload) else {
            return None;
        };
        let instant = |name: &str| claims.get(name).map(|value| value.as_i64());
        let holds = claims.get("iss").and_then(Json::as_str) == Some(ISSUER)
            && claims.get("aud").and_then(Json::as_str) == Some(AUDIENCE)
            && instant("exp").flatten().is_some_and(|end| now < end)
            && instant("nbf").is_none_or(|start| start.is_some_and(|start| start <= now))
            && instant("iat").is_none_or(|issued| issued.is_some_and(|issued| issued <= now));
        holds.then(|| {
            let text = claims.iter().map(|(name, value)| (name.clone(), as_text(value)));
            text.collect()
        })
    }

    /// 32 bytes for another purpose, always the same for the same key.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> Vec<u8> {
        hmac::sign(&self.0, purpose.as_bytes()).as_ref().to_vec()
    }
}

/// How the authorizer writes a claim: a list as `[staff other]`, all else as its text.
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

/// Writes the key under another name first and links it, so that nobody reads half a key, and the
/// first of several writers wins.
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
    // Whether or not the link was made, the draft is of no more use.
    let _ = fs::remove_file(&draft);
    linked
}

/// The build's target folder, which cargo marks, found from the executable's place; the folder of
/// the executable when it lies elsewhere.
fn target_folder() -> PathBuf {
    let executable = std::env::current_exe().unwrap_or_default();
    let folder = executable.parent().unwrap_or(Path::new("."));
    folder.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file()).unwrap_or(folder).to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn key(seed: u8) -> SigningKey {
        SigningKey(hmac::Key::new(hmac::HMAC_SHA256, &[seed; KEY_BYTES]))
    }

    /// A token with these claims in place of the usual ones, correctly signed.
    fn signed(key: &SigningKey, header: &str, changes: &Json) -> String {
        let mut claims = json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "c", "exp": NOW + 1});
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let payload = URL_SAFE_NO_PAD.encode(claims.to_string());
        let text = format!("{header}.{payload}");
        let tag = hmac::sign(&key.0, text.as_bytes());
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()))
    }

    fn scratch(name: &str) -> PathBuf {
        let unique = format!("bodega-key-{name}-{}", std::process::id());
        std::env::temp_dir().join(unique)
    }

    #[test]
    fn an_issued_token_passes_and_its_claims_are_text() {
        let groups = ["staff".to_owned(), "other".to_owned()];
        let token = key(1).issue("customer #1", &groups, NOW);
        let claims = key(1).verify(&token, NOW).unwrap();
        assert_eq!(claims["sub"], "customer #1");
        assert_eq!(claims["cognito:groups"], "[staff other]");
        assert_eq!(claims["iss"], ISSUER);
        assert_eq!(claims["exp"], (NOW + 43_200).to_string());
        assert!(!key(1).verify(&key(1).issue("c", &[], NOW), NOW).unwrap().contains_key("cognito:groups"));
    }

    #[test]
    fn a_token_that_is_not_ours_or_not_now_is_refused() {
        let key = key(1);
        assert!(key.verify(&signed(&key, HEADER, &json!({})), NOW).is_some());
        let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"JWT"}"#);
        for token in [
            signed(&key, HEADER, &json!({"exp": NOW})),
            signed(&key, HEADER, &json!({"exp": "9999999999"})),
            signed(&key, HEADER, &json!({"exp": null})),
            signed(&key, HEADER, &json!({"nbf": NOW + 1})),
            signed(&key, HEADER, &json!({"nbf": "soon"})),
            signed(&key, HEADER, &json!({"iat": NOW + 1})),
            signed(&key, HEADER, &json!({"iss": "urn:other"})),
            signed(&key, HEADER, &json!({"aud": "other"})),
            signed(&key, HEADER, &json!({"aud": [AUDIENCE]})),
            signed(&key, &none, &json!({})),
            signed(&self::key(2), HEADER, &json!({})),
            String::new(),
            "a.b.c".to_owned(),
            HEADER.to_owned(),
        ] {
            assert!(key.verify(&token, NOW).is_none(), "{token}");
        }
    }

    #[test]
    fn an_altered_token_is_refused() {
        let token = key(1).issue("c", &[], NOW);
        for at in 0..token.len() {
            let mut altered = token.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();
            // The last character of a signature carries two bits that stand for nothing.
            if altered != token {
                assert!(key(1).verify(&altered, NOW).is_none(), "{at}");
            }
        }
    }

    #[test]
    fn the_key_is_made_once_and_is_the_owners_alone() {
        let folder = scratch("once");
        let first = SigningKey::open(Some(&folder)).unwrap();
        let second = SigningKey::open(Some(&folder)).unwrap();
        let token = first.issue("c", &[], NOW);
        assert!(second.verify(&token, NOW).is_some());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(folder.join(FILE)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn processes_that_make_the_key_at_once_agree() {
        let folder = scratch("race");
        let open = || SigningKey::open(Some(&folder)).unwrap().derive("x");
        let keys: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_that_is_no_key_is_refused() {
        let folder = scratch("damaged");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(FILE), "short").unwrap();
        assert!(matches!(SigningKey::open(Some(&folder)), Err(KeyError::Damaged(_))));
        fs::remove_dir_all(&folder).unwrap();
    }
}
