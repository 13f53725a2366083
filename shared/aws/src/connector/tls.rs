//! TLS 1.3 and 1.2 with the algorithms of `ring`, and the trusted root certificates.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use telemetry::emf::{Line, Unit};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{CipherSuite, ClientConfig, RootCertStore};

use super::reach::{self, NoConnection};
use super::stream::Stream;
use crate::SetupError;
use crate::service::is_of_aws;

/// The maximum number of remembered hosts that need the fallback roots. A function connects to
/// fewer hosts.
const MAX_HOSTS: usize = 16;

/// A TLS client with its trusted roots. Clones share the sessions that can be resumed.
#[derive(Clone)]
pub struct Tls {
    roots: Roots,
    fallback: Option<Arc<Fallback>>,
}

#[derive(Clone)]
struct Roots {
    connector: TlsConnector,
    count: usize,
}

/// The second set of roots, for servers with a certificate that does not chain to the first set.
struct Fallback {
    load: Box<dyn Fn() -> Result<Tls, SetupError> + Send + Sync>,
    /// Empty before the first attempt to load the roots. `Some(None)` if that attempt failed.
    loaded: OnceLock<Option<Roots>>,
    hosts: Mutex<Vec<String>>,
}

impl Tls {
    /// Trusts servers with a certificate that chains to one of these roots, given in PEM.
    ///
    /// # Errors
    /// [`SetupError::Roots`] when the input contains no certificate, or something other than
    /// certificates.
    pub fn trusting(roots: &[u8]) -> Result<Self, SetupError> {
        Self::new(store(roots)?)
    }

    /// Trusts the system's roots. These are more than a hundred certificates. Reading them takes
    /// longer than the rest of a cold start.
    ///
    /// # Errors
    /// [`SetupError::Roots`] when the system has no roots.
    pub fn of_system() -> Result<Self, SetupError> {
        Self::of_system_and(&[])
    }

    /// Trusts the system's roots and the given roots in PEM.
    pub fn of_system_and(roots: &[u8]) -> Result<Self, SetupError> {
        let mut store = store(roots)?;
        // Unusable system roots are skipped. It is normal that a few cannot be parsed.
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Self::new(store)
    }

    /// Adds fallback roots. They are loaded when a server's certificate first has an unknown
    /// issuer.
    ///
    /// Each host that needs the fallback roots is logged, and the metric `UnknownIssuers` counts
    /// it.
    #[must_use]
    pub fn falling_back(self, load: impl Fn() -> Result<Self, SetupError> + Send + Sync + 'static) -> Self {
        let fallback = Fallback { load: Box::new(load), loaded: OnceLock::new(), hosts: Mutex::default() };
        Self { fallback: Some(Arc::new(fallback)), ..self }
    }

    fn new(store: RootCertStore) -> Result<Self, SetupError> {
        if store.is_empty() {
            return Err(SetupError::Roots);
        }
        let count = store.len();
        let mut provider = ring::default_provider();
        // AES-128 comes first, because its handshake hashes with SHA-256, for which processors have
        // instructions. AES-256, the default, hashes with SHA-384. A server without a preference
        // takes the client's first offer.
        provider.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
        let config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(store)
            .with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Self { roots: Roots { connector, count }, fallback: None })
    }

    pub(super) async fn open(&self, host: &str, addresses: &[SocketAddr]) -> Result<Stream, NoConnection> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| NoConnection::Name)?;
        let Some(fallback) = &self.fallback else { return self.roots.open(name, addresses).await };
        if fallback.is_for(host)
            && let Some(roots) = fallback.roots()
        {
            return roots.open(name, addresses).await;
        }
        let opened = self.roots.open(name.clone(), addresses).await;
        if let Err(NoConnection::UnknownIssuer) = opened
            && let Some(roots) = fallback.roots()
        {
            let stream = roots.open(name, addresses).await?;
            fallback.remember(host);
            return Ok(stream);
        }
        opened
    }
}

fn store(roots: &[u8]) -> Result<RootCertStore, SetupError> {
    let mut store = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(roots) {
        store.add(root.map_err(|_| SetupError::Roots)?).map_err(|_| SetupError::Roots)?;
    }
    Ok(store)
}

impl Roots {
    async fn open(&self, name: ServerName<'static>, addresses: &[SocketAddr]) -> Result<Stream, NoConnection> {
        let tcp = reach::tcp(addresses).await?;
        Ok(Stream::Encrypted(Box::new(self.connector.connect(name, tcp).await?)))
    }
}

impl Fallback {
    fn roots(&self) -> Option<&Roots> {
        let load = || match (self.load)() {
            Ok(tls) => Some(tls.roots),
            Err(error) => {
                tracing::error!(cause = %error, "the system's roots cannot be loaded");
                None
            }
        };
        self.loaded.get_or_init(load).as_ref()
    }

    fn is_for(&self, host: &str) -> bool {
        self.hosts().iter().any(|known| known == host)
    }

    /// Makes later connections to the host use the fallback roots at once. Reports a new host to
    /// operators.
    fn remember(&self, host: &str) {
        let mut hosts = self.hosts();
        if hosts.len() < MAX_HOSTS && !hosts.iter().any(|known| known == host) {
            hosts.push(host.to_owned());
            report(host);
        }
    }

    fn hosts(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells operators that a host's certificate does not chain to the embedded roots. It prints the
/// metric only after [`telemetry::init`], because only Lambda functions send metrics to standard
/// output.
fn report(host: &str) {
    tracing::warn!(
        host,
        "the host's certificate chains to a root of the system, and to no embedded root: deploy a new version"
    );
    if telemetry::is_initialized() {
        line(host).print();
    }
}

/// Builds one metric for all functions, so that one alarm covers them all.
fn line(host: &str) -> Line {
    Line::default()
        .dimension("Stage", telemetry::stage())
        .dimension("Host", if is_of_aws(host) { "aws" } else { "other" })
        .metric("UnknownIssuers", Unit::Count, 1.0)
        .property("function", telemetry::function())
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("roots", &self.roots.count).field("falls_back", &self.fallback.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use std::time::UNIX_EPOCH;

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn hosts_of_aws_and_other_hosts_are_counted_separately() {
        for (host, kind) in [("dynamodb.eu-central-1.amazonaws.com", "aws"), ("search.example", "other")] {
            let line: Value = serde_json::from_str(&line(host).to_json(UNIX_EPOCH)).unwrap();
            assert_eq!((&line["Host"], &line["UnknownIssuers"]), (&json!(kind), &json!(1.0)), "{host}");
        }
    }

    #[test]
    fn a_function_trusts_five_embedded_roots_and_falls_back_to_the_systems_roots() {
        let tls = crate::embedded().unwrap();
        assert_eq!(format!("{tls:?}"), "Tls { roots: 5, falls_back: true }");
        // A system without any roots must not cause a panic.
        assert!(matches!(Tls::of_system(), Ok(_) | Err(SetupError::Roots)));
        assert!(
            tls.fallback.is_some_and(|fallback| fallback.loaded.get().is_none()),
            "the fallback roots were loaded too early"
        );
    }
}
