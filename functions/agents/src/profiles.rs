//! The profiles of agents: what an agent can do, its public keys, and where it wants to hear of its
//! orders.
//!
//! A profile is read from the URL that staff have registered, and kept for a while, so that a request
//! rarely waits for it. If the agent's server does not answer, the last one counts.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use aws::{Call, Connector, Limits, Method, Reach, Response, Service, Target};
use key_schema::instant::Instant;
use serde::Deserialize;
use serde_json::Value;
use signatures::Jwk;
use tokio::time::timeout;

use crate::ucp::Version;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a request waits for a profile.
const LIMIT: Duration = Duration::from_secs(2);
/// The bounds of the time for which a profile is kept. The protocol wants a minute at least.
const FRESH_SECONDS: std::ops::RangeInclusive<i64> = 60..=3600;
/// The number of profiles that are kept: more than there are agents.
const MOST: usize = 64;
const MOST_KEYS: usize = 20;
const MAX_URL_BYTES: usize = 500;

/// What the shop uses of a profile.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    pub version: String,
    capabilities: BTreeMap<String, Vec<Capability>>,
    pub keys: Vec<Jwk>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Capability {
    version: String,
    config: Option<Config>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Config {
    webhook_url: Option<String>,
}

impl Profile {
    fn read(text: &[u8]) -> Result<Self, NoProfile> {
        #[derive(Deserialize)]
        struct Document {
            ucp: Described,
            #[serde(default)]
            signing_keys: Vec<Value>,
            #[serde(default)]
            keys: Vec<Value>,
        }
        #[derive(Deserialize)]
        struct Described {
            version: String,
            #[serde(default)]
            capabilities: BTreeMap<String, Vec<Capability>>,
        }
        let Document { ucp, signing_keys, keys } = serde_json::from_slice(text).map_err(|_| NoProfile::Malformed)?;
        // A key that an agent has removed from the one list must not count because of the other one.
        let keys = if ucp.version.as_str() < Version::August.name() { signing_keys } else { keys };
        let keys = keys.into_iter().take(MOST_KEYS).filter_map(|key| serde_json::from_value(key).ok());
        Ok(Self { version: ucp.version, capabilities: ucp.capabilities, keys: keys.collect() })
    }

    /// Returns whether the agent has a capability, in the version that it speaks.
    #[must_use]
    pub fn has(&self, capability: &str) -> bool {
        self.capability(capability).is_some()
    }

    /// Returns the URL of a capability at which the agent wants messages.
    #[must_use]
    pub fn webhook_url(&self, capability: &str) -> Option<&str> {
        let config = self.capability(capability)?.config.as_ref()?;
        config.webhook_url.as_deref().filter(|url| url.len() <= MAX_URL_BYTES)
    }

    fn capability(&self, name: &str) -> Option<&Capability> {
        self.capabilities.get(name)?.iter().find(|known| known.version == self.version)
    }
}

/// Why there is no profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoProfile {
    #[error("the profile cannot be read")]
    Unreachable,
    /// The agent's server says that there is none.
    #[error("there is no profile")]
    Absent,
    #[error("the profile is not as the protocol wants it")]
    Malformed,
}

/// The profiles that were read.
#[derive(Debug)]
pub struct Profiles {
    reach: Reach,
    connector: OnceLock<Connector>,
    known: Mutex<HashMap<String, Known>>,
}

#[derive(Debug, Clone)]
struct Known {
    profile: Result<Arc<Profile>, NoProfile>,
    read_at: Instant,
    /// When the profile is read again.
    until: Instant,
}

impl Profiles {
    #[must_use]
    pub fn new(reach: Reach) -> Self {
        Self { reach, connector: OnceLock::new(), known: Mutex::default() }
    }

    /// Returns the addresses at which profiles and webhooks may be.
    #[must_use]
    pub const fn reach(&self) -> Reach {
        self.reach
    }

    /// Returns a profile, if it was read before.
    #[must_use]
    pub fn known(&self, url: &str) -> Option<Arc<Profile>> {
        self.kept(url)?.profile.ok()
    }

    /// Returns a profile.
    ///
    /// # Errors
    /// [`NoProfile`], if it was never read, and cannot be read now or within the last minute.
    pub async fn read(&self, url: &str) -> Result<Arc<Profile>, NoProfile> {
        match self.kept(url) {
            Some(known) if Instant::now() < known.until => known.profile,
            before => self.read_again(url, before).await,
        }
    }

    /// Reads a profile again that was read more than a minute ago, because it may have a new key.
    pub async fn renew(&self, url: &str) -> Result<Arc<Profile>, NoProfile> {
        match self.kept(url) {
            Some(known) if Instant::now() < known.read_at.plus_seconds(*FRESH_SECONDS.start()) => known.profile,
            before => self.read_again(url, before).await,
        }
    }

    fn kept(&self, url: &str) -> Option<Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(url).cloned()
    }

    async fn read_again(&self, url: &str, before: Option<Known>) -> Result<Arc<Profile>, NoProfile> {
        let fetched = timeout(LIMIT, self.fetch(url)).await.unwrap_or(Err(NoProfile::Unreachable));
        let read_at = Instant::now();
        let (profile, seconds) = match fetched {
            Ok((profile, seconds)) => (Ok(Arc::new(profile)), seconds),
            Err(error) => {
                tracing::warn!(profile = url, %error, "the profile of an agent");
                // A profile that was withdrawn has no keys any more.
                let before = before.filter(|_| error == NoProfile::Unreachable).and_then(|known| known.profile.ok());
                (before.ok_or(error), *FRESH_SECONDS.start())
            }
        };
        let until = read_at.plus_seconds(seconds);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(url.to_owned(), Known { profile: profile.clone(), read_at, until });
        profile
    }

    /// Fetches a profile. Returns it with the seconds for which it is kept.
    async fn fetch(&self, url: &str) -> Result<(Profile, i64), NoProfile> {
        let unreachable = |_| NoProfile::Unreachable;
        let target = Target::new(url, self.reach).map_err(|_| NoProfile::Unreachable)?;
        let connector = match self.connector.get() {
            Some(connector) => connector.clone(),
            None => {
                let tls = aws::tls_of_internet().map_err(|_| NoProfile::Unreachable)?;
                let connector = Connector::new(tls, CONNECT_TIMEOUT).reaching(self.reach);
                self.connector.get_or_init(|| connector).clone()
            }
        };
        let service = Service::new(connector, &target.base, None).with_limits(Limits::once(LIMIT));
        let headers = [("accept", "application/json"), ("user-agent", "Bodega")];
        let call = Call { headers: &headers, ..Call::new(Method::GET, &target.path) };
        let response = service.call(&call, |_| false).await.map_err(unreachable)?;
        // A redirect is none, as the protocol wants.
        match response.status {
            200 => {}
            300..=407 | 409..=428 | 430..=499 => return Err(NoProfile::Absent),
            _ => return Err(NoProfile::Unreachable),
        }
        Ok((Profile::read(&response.body)?, seconds(&response)))
    }
}

/// Returns the seconds for which a response may be kept.
fn seconds(response: &Response) -> i64 {
    let control = response.header("cache-control").unwrap_or_default();
    let age = control.split(',').find_map(|part| part.trim().strip_prefix("max-age=")?.parse::<i64>().ok());
    age.unwrap_or_default().clamp(*FRESH_SECONDS.start(), *FRESH_SECONDS.end())
}
