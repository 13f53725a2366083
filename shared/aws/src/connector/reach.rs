use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::rustls::{CertificateError, Error as TlsError};

use super::stream::Stream;
use super::target::Reach;
use super::tls::Tls;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoConnection {
    /// The host's name has no address.
    #[error("the host's name cannot be resolved")]
    Name,
    /// The host has only addresses that the connector may not reach.
    #[error("the host has no address that may be reached")]
    Private,
    /// No server listens at the address.
    #[error("the connection was refused")]
    Refused,
    /// The connection was not open in time.
    #[error("the connection was not open in time")]
    Timeout,
    /// The issuer of the server's certificate is not among the trusted roots.
    #[error("the server's certificate has an unknown issuer")]
    UnknownIssuer,
    /// The server's certificate is for another host or another time, or is damaged.
    #[error("the server's certificate is not valid for this host at this time")]
    Certificate,
    /// The server and this client have no version or algorithm in common, or the server speaks no
    /// TLS.
    #[error("the TLS handshake failed")]
    Handshake,
    /// Everything else: no route, or a connection that ended while it was opened.
    #[error("the network failed")]
    Network,
}

impl From<io::Error> for NoConnection {
    fn from(error: io::Error) -> Self {
        match error.get_ref().and_then(|cause| cause.downcast_ref::<TlsError>()) {
            // A bad signature also means an unknown issuer: a renewed root may have the trusted
            // root's name, but another key.
            Some(TlsError::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature)) => {
                Self::UnknownIssuer
            }
            Some(TlsError::InvalidCertificate(_)) => Self::Certificate,
            Some(_) => Self::Handshake,
            None => match error.kind() {
                io::ErrorKind::ConnectionRefused => Self::Refused,
                io::ErrorKind::TimedOut => Self::Timeout,
                _ => Self::Network,
            },
        }
    }
}

/// Opens a connection to a host, encrypted if `tls` is given.
pub(super) async fn open(host: &str, port: u16, tls: Option<&Tls>, reach: Reach) -> Result<Stream, NoConnection> {
    let found = lookup_host((host, port)).await.map_err(|_| NoConnection::Name)?;
    let addresses: Vec<SocketAddr> = found.filter(|address| reach.allows(address.ip())).collect();
    if addresses.is_empty() {
        return Err(NoConnection::Private);
    }
    match tls {
        Some(tls) => tls.open(host, &addresses).await,
        None => Ok(Stream::Plain(tcp(&addresses).await?)),
    }
}

/// Opens a TCP connection to the first address that accepts a connection.
pub(super) async fn tcp(addresses: &[SocketAddr]) -> Result<TcpStream, NoConnection> {
    let tcp = TcpStream::connect(addresses).await?;
    // Without this option, the system may delay a small request to combine it with a later request.
    tcp.set_nodelay(true)?;
    Ok(tcp)
}
