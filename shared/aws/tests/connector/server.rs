//! A test server: the path of a request chooses its behaviour.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

pub struct Server {
    pub port: u16,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl Server {
    pub async fn plain() -> Self {
        Self::start(None).await
    }

    /// Starts a server with a certificate for this name. Returns the PEM of its issuer, too.
    pub async fn encrypted(name: &str) -> (Self, String) {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = config.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        (Self::start(Some(TlsAcceptor::from(Arc::new(config)))).await, issuer.pem())
    }

    async fn start(acceptor: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, connections) = (listener.local_addr().unwrap().port(), Arc::<AtomicUsize>::default());
        let requests = Arc::<AtomicUsize>::default();
        let (count, asked) = (Arc::clone(&connections), Arc::clone(&requests));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                let (acceptor, asked) = (acceptor.clone(), Arc::clone(&asked));
                tokio::spawn(async move {
                    match acceptor {
                        None => converse(stream, &asked).await,
                        // A client that does not trust the certificate closes the connection.
                        Some(acceptor) => match acceptor.accept(stream).await {
                            Ok(stream) => converse(stream, &asked).await,
                            Err(_) => None,
                        },
                    }
                });
            }
        });
        Self { port, connections, requests }
    }

    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin, asked: &AtomicUsize) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (Vec::new(), 0);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            if line == "\r\n" {
                break;
            }
            if let Some(bytes) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = bytes.trim().parse().ok()?;
            }
            head.push(line.trim().to_owned());
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.ok()?;
        let path = head.first()?.split(' ').nth(1)?.to_owned();
        let number = 1 + asked.fetch_add(1, Ordering::Relaxed);
        let ok = |headers: &str, body: &str| format!("HTTP/1.1 200 OK\r\n{headers}\r\n{body}");
        let sized = |body: &str| ok(&format!("content-length: {}\r\n", body.len()), body);
        let large = "x".repeat(100_000);
        let failing = |body: &str| sized(body).replace("200 OK", "503 Service Unavailable");
        let answer = match path.as_str() {
            "/third-time" if number < 3 => failing("later"),
            "/always-busy" => failing("later"),
            "/head" => ok("content-length: 100000\r\n", ""),
            "/large" => sized(&large),
            "/large-in-chunks" => ok("transfer-encoding: chunked\r\n", &format!("186a0\r\n{large}\r\n0\r\n\r\n")),
            "/large-error" => failing(&large),
            "/silent" => std::future::pending().await,
            // `/slow` waits half a second before each byte. `/stalls` never sends a byte.
            "/slow" | "/stalls" => {
                stream.write_all(ok("content-length: 5\r\n", "").as_bytes()).await.ok()?;
                for byte in [b'a'; 5] {
                    stream.flush().await.ok()?;
                    if path == "/stalls" {
                        std::future::pending::<()>().await;
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
                    stream.write_all(&[byte]).await.ok()?;
                }
                String::new()
            }
            "/chunked" => ok("transfer-encoding: chunked\r\n", "2\r\nok\r\n0\r\n\r\n"),
            "/empty" => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
            "/failing" => "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n".to_owned(),
            "/last" => ok("connection: close\r\ncontent-length: 2\r\n", "ok"),
            "/broken" => ok("content-length: 100\r\n", "ok"),
            "/body" => sized(&String::from_utf8(body).ok()?),
            "/unanswered" => return None,
            _ => sized(&head.join("\n")),
        };
        stream.write_all(answer.as_bytes()).await.ok()?;
        stream.flush().await.ok()?;
        if path == "/broken" || path == "/hangs-up" {
            return None;
        }
    }
}
