//! A TLS endpoint in front of the table or the search engine, because the endpoints of AWS use TLS.
//!
//! The endpoint caches the responses of the embedded table or engine. The measurement therefore
//! excludes the time of the table or engine.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::server::TlsStream;

use crate::BenchError;
use crate::loaded::CURSOR_KEYS;

/// Headers of AWS's responses that the SDKs read.
const PASSED_ON: [&str; 3] = ["content-type", "x-amz-crc32", "x-amzn-requestid"];

pub(super) struct Endpoint {
    pub address: SocketAddr,
    pub issuer: PathBuf,
    server: JoinHandle<()>,
}

type Remembered = HashMap<(Method, Uri, String, Bytes), (StatusCode, HeaderMap, Bytes)>;

#[derive(Clone)]
struct Shared {
    upstream: String,
    client: reqwest::Client,
    remembered: Arc<Mutex<Remembered>>,
}

impl Endpoint {
    /// Starts an endpoint in front of `upstream`, the address of the table or engine. Writes the
    /// issuer's certificate to the folder.
    pub async fn start(name: &str, upstream: &str, folder: &Path) -> Result<Self, BenchError> {
        let issuer = issuer(name)?;
        let issuer_path = folder.join(format!("{name}.pem"));
        std::fs::write(&issuer_path, issuer.pem())?;
        let key = KeyPair::generate()?;
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let certificate = CertificateParams::new(names).and_then(|params| params.signed_by(&key, &issuer));
        let certificate = certificate?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config =
            ServerConfig::builder_with_provider(Arc::new(tokio_rustls::rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()?
                .with_no_client_auth()
                .with_single_cert(vec![certificate.der().clone(), issuer.der().clone()], key)?;
        let tcp = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = tcp.local_addr()?;
        let shared = Shared {
            upstream: upstream.trim_end_matches('/').to_owned(),
            client: reqwest::Client::new(),
            remembered: Arc::default(),
        };
        let routes = Router::new().fallback(answer).with_state(shared);
        let listener = Tls { tcp, acceptor: TlsAcceptor::from(Arc::new(config)) };
        let server = tokio::spawn(async move {
            // The server runs until the measurement ends, so its result does not matter.
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self { address, issuer: issuer_path, server })
    }

    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn issuer(name: &str) -> Result<CertifiedIssuer<'static, KeyPair>, BenchError> {
    let mut params = CertificateParams::default();
    // The issuer needs a unique name. OpenSSL treats a certificate as self-signed when its subject
    // and its issuer have the same name.
    params.distinguished_name.push(DnType::CommonName, format!("issuer of the endpoint {name}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    CertifiedIssuer::self_signed(params, key).map_err(BenchError::from)
}

struct Tls {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            // Ignore a client that disconnects during the handshake.
            if let Ok((stream, address)) = self.tcp.accept().await
                && stream.set_nodelay(true).is_ok()
                && let Ok(stream) = self.acceptor.accept(stream).await
            {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}

async fn answer(State(shared): State<Shared>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default().to_owned();
    if target == "secretsmanager.GetSecretValue" {
        return axum::Json(serde_json::json!({ "SecretString": CURSOR_KEYS })).into_response();
    }
    let key = (method, uri, target, body);
    let known = shared.remembered.lock().ok().and_then(|remembered| remembered.get(&key).cloned());
    if let Some(known) = known {
        return known.into_response();
    }
    let place = format!("{}{}", shared.upstream, key.1.path_and_query().map_or("/", |path| path.as_str()));
    let mut request = shared.client.request(key.0.clone(), place).body(key.3.clone());
    for name in ["x-amz-target", "content-type", "authorization", "x-amz-date"] {
        if let Some(value) = headers.get(name) {
            request = request.header(name, value);
        }
    }
    match ask(request).await {
        Ok(answer) => {
            if let Ok(mut remembered) = shared.remembered.lock() {
                remembered.insert(key, answer.clone());
            }
            answer.into_response()
        }
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

async fn ask(request: reqwest::RequestBuilder) -> Result<(StatusCode, HeaderMap, Bytes), reqwest::Error> {
    let answer = request.send().await?;
    let (status, mut headers) = (answer.status(), HeaderMap::new());
    for name in PASSED_ON {
        if let Some(value) = answer.headers().get(name) {
            headers.insert(name, value.clone());
        }
    }
    Ok((status, headers, answer.bytes().await?))
}
