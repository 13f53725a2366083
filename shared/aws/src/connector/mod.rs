//! An HTTP/1.1 client with a connection pool, for the SDK and for this crate's own calls. It uses
//! TLS for `https` addresses.
//!
//! The SDK's own connector includes HTTP/2, a second pool, proxies and the system's trust store.
//! They would be a quarter of a function's binary, and AWS endpoints do not need them. This module
//! opens a connection within a time limit and sends a request over it. When the response has been
//! read to the end, the connection returns to the pool. After a server error the connection is
//! closed instead.
//!
//! The connector retries in one case only: a pooled connection was already closed, and nothing of
//! the request was sent. The caller sets the timeouts of an attempt and of a call. If a caller
//! drops the future of a request, the request's connection is closed.

mod body;
mod pool;
mod reach;
mod stream;
mod target;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use http::header::HOST;
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

pub(crate) use body::Answer;
use pool::{Pool, Sender};
pub use reach::NoConnection;
pub use target::{BadTarget, Reach, Target};
pub use tls::Tls;

pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Sends requests. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Connector {
    tls: Tls,
    pool: Arc<Pool>,
    connect_timeout: Duration,
    reach: Reach,
}

impl Connector {
    /// Creates a connector that trusts the servers that `tls` trusts. Opening a connection may take
    /// at most `connect_timeout`.
    #[must_use]
    pub fn new(tls: Tls, connect_timeout: Duration) -> Self {
        Self { tls, pool: Arc::default(), connect_timeout, reach: Reach::Any }
    }

    /// Limits the addresses to which the connector connects. They are checked after a name was
    /// resolved, so no name leads to another address.
    #[must_use]
    pub fn reaching(self, reach: Reach) -> Self {
        Self { pool: Arc::default(), reach, ..self }
    }

    /// Sends one request. Returns when the response's head has arrived. The caller reads the body.
    pub(crate) async fn send(&self, mut request: Request<SdkBody>) -> Result<Response<Answer>, SendError> {
        let origin = Origin::of(&mut request).map_err(SendError::Invalid)?;
        while let Some(mut sender) = self.pool.take(&origin).await {
            match sender.try_send_request(request).await {
                Ok(response) => return Ok(self.answer(origin, sender, response)),
                Err(mut error) => match error.take_message() {
                    // The connection ended while it was idle.
                    Some(unsent) => request = unsent,
                    None => return Err(SendError::Broken(error.into_error().into())),
                },
            }
        }
        let mut sender = timeout(self.connect_timeout, self.connect(&origin))
            .await
            .unwrap_or(Err(NoConnection::Timeout))
            .map_err(SendError::Connect)?;
        let response = sender.send_request(request).await.map_err(|error| SendError::Broken(error.into()))?;
        Ok(self.answer(origin, sender, response))
    }

    async fn exchange(self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let request = request.try_into_http1x().map_err(|error| ConnectorError::user(error.into()))?;
        let response = self.send(request).await?.map(SdkBody::from_body_1_x);
        HttpResponse::try_from(response).map_err(|error| ConnectorError::other(error.into(), None))
    }

    async fn connect(&self, origin: &Origin) -> Result<Sender, NoConnection> {
        let host = origin.authority.host().trim_start_matches('[').trim_end_matches(']');
        let tls = origin.is_encrypted.then_some(&self.tls);
        let stream = reach::open(host, origin.port(), tls, self.reach).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|_| NoConnection::Network)?;
        // A connection error reaches the caller that is awaiting a response. If no caller is
        // waiting, the error is ignored.
        drop(tokio::spawn(connection));
        Ok(sender)
    }

    fn answer(&self, origin: Origin, sender: Sender, response: Response<Incoming>) -> Response<Answer> {
        // After a server error the connection is closed, because a new connection may reach
        // another, healthy server.
        let connection = (!response.status().is_server_error()).then(|| self.pool.lend(origin, sender));
        response.map(|body| Answer::new(body, connection))
    }
}

/// A reason why a request has no response.
#[derive(Debug)]
pub(crate) enum SendError {
    /// The request has no host, or a scheme other than `http` and `https`. Nothing was sent.
    Invalid(Cause),
    /// There is no connection to the host. Nothing was sent.
    Connect(NoConnection),
    /// The connection ended before the response began. The request may have arrived.
    Broken(Cause),
}

impl From<SendError> for ConnectorError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Invalid(cause) => Self::user(cause),
            SendError::Connect(cause @ NoConnection::Timeout) => Self::timeout(cause.into()).never_connected(),
            SendError::Connect(cause) => Self::io(cause.into()).never_connected(),
            SendError::Broken(cause) => Self::io(cause),
        }
    }
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::new(self.clone().exchange(request))
    }
}

impl HttpClient for Connector {
    fn http_connector(&self, settings: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        let connect_timeout = settings.connect_timeout().unwrap_or(self.connect_timeout);
        SharedHttpConnector::new(Self { connect_timeout, ..self.clone() })
    }
}

/// The server that a connection leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin {
    is_encrypted: bool,
    authority: Authority,
}

impl Origin {
    /// Removes the origin from the request's URI and returns it. Adds a `Host` header if the
    /// request has none.
    fn of(request: &mut Request<SdkBody>) -> Result<Self, Cause> {
        let parts = std::mem::take(request.uri_mut()).into_parts();
        let is_encrypted = match parts.scheme {
            Some(scheme) if scheme == Scheme::HTTPS => true,
            Some(scheme) if scheme == Scheme::HTTP => false,
            _ => return Err("neither https nor http".into()),
        };
        let origin = Self { is_encrypted, authority: parts.authority.ok_or("no host")? };
        *request.uri_mut() = parts.path_and_query.map_or_else(|| Uri::from_static("/"), Uri::from);
        if !request.headers().contains_key(HOST) {
            let (host, port) = (origin.authority.host(), origin.port());
            let is_usual = port == origin.usual_port();
            let host = if is_usual { host.to_owned() } else { format!("{host}:{port}") };
            request.headers_mut().insert(HOST, HeaderValue::try_from(host)?);
        }
        Ok(origin)
    }

    fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or_else(|| self.usual_port())
    }

    const fn usual_port(&self) -> u16 {
        if self.is_encrypted { 443 } else { 80 }
    }
}
