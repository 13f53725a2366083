//! TLS 1.3 and 1.2 with the algorithms of `ring`, and whom it trusts.

use std::fmt;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{CipherSuite, ClientConfig, RootCertStore};

use super::Cause;
use super::stream::Stream;
use crate::SetupError;

/// How servers prove who they are. Clones share the sessions that can be resumed.
#[derive(Clone)]
pub struct Tls(TlsConnector);

impl Tls {
    /// Trusts who is certified by one of these, in PEM.
    ///
    /// # Errors
    /// [`SetupError::Roots`] when there is something else among them, or nothing.
    pub fn trusting(roots: &[u8]) -> Result<Self, SetupError> {
        let mut store = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(roots) {
            store.add(root.map_err(|_| SetupError::Roots)?).map_err(|_| SetupError::Roots)?;
        }
        Self::new(store)
    }

    /// Trusts whom the system trusts. Reading its hundred and more certificates takes longer than all else at a start.
    ///
    /// # Errors
    /// [`SetupError::Roots`] when there are none.
    #[cfg(feature = "system-roots")]
    pub fn of_system() -> Result<Self, SetupError> {
        let mut store = RootCertStore::empty();
        // What cannot be used is not trusted; that there are some that cannot is usual.
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Self::new(store)
    }

    fn new(store: RootCertStore) -> Result<Self, SetupError> {
        if store.is_empty() {
            return Err(SetupError::Roots);
        }
        let mut provider = ring::default_provider();
        // AES-256 comes first otherwise, and with it a handshake that hashes with SHA-384. Processors have instructions for SHA-256, and a server that has no
        // preference of its own takes what is offered first.
        provider.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
        let config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(store)
            .with_no_client_auth();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// An open connection to the host of this name or address.
    pub(super) async fn over(&self, tcp: TcpStream, host: &str) -> Result<Stream, Cause> {
        let name = ServerName::try_from(host.to_owned())?;
        Ok(Stream::Encrypted(Box::new(self.0.connect(name, tcp).await?)))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}
