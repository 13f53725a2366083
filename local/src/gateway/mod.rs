//! Emulates an HTTP API of API Gateway on one machine.
//!
//! It applies the template's routes and authorizers, and calls the functions. It also returns API
//! Gateway's own error responses and CORS headers.

mod answer;
mod causes;
pub(crate) mod cors;
mod event;
mod path;
mod routes;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode};
use runtime_api::{Functions, InvokeError, Trace};
use serde_json::json;
use template::{Cors, Route};
use time::OffsetDateTime;
use tokio::time::Instant;

pub use self::causes::{Cause, Causes};
use self::event::Context;
use self::routes::{Match, RouteTable};
use crate::site::Site;
use crate::token::{Claims, SigningKey};

/// Maximum request body in bytes (quota of HTTP APIs: 10 MB).
const MAX_BODY: usize = 10 * 1024 * 1024;
/// Maximum size of the request line and the headers in bytes (quota of HTTP APIs: 10,240 bytes).
const MAX_HEAD: usize = 10_240;
/// Maximum wait for a function's response (quota of HTTP APIs: 30 s).
const INTEGRATION_TIMEOUT: Duration = Duration::from_secs(30);
const REQUEST_ID: HeaderName = HeaderName::from_static("apigw-requestid");

pub struct Gateway {
    routes: RouteTable,
    functions: Arc<Functions>,
    key: SigningKey,
    cors: Option<Cors>,
    /// Host and port of the listener.
    host: String,
    site: Site,
    causes: Causes,
}

/// An error response of API Gateway itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    BadRequest,
    Unauthorized,
    NotFound,
    HeadersTooLarge,
    TooLarge,
    InternalServerError,
    ServiceUnavailable,
}

impl Gateway {
    /// Creates a gateway for `routes` at `address`. It accepts tokens signed with `key`, and allows
    /// web pages of the origins in `cors`. It notes each request in `causes`.
    pub(crate) fn new(
        routes: Vec<Route>,
        cors: Option<Cors>,
        functions: Arc<Functions>,
        key: SigningKey,
        address: SocketAddr,
        site: Site,
        causes: Causes,
    ) -> Self {
        Self { routes: RouteTable::new(routes), functions, key, cors, host: address.to_string(), site, causes }
    }

    /// Responds to any request, with a file of the site or from the API. Use it as a router's fallback.
    pub async fn handle(
        State(gateway): State<Arc<Self>>,
        ConnectInfo(client): ConnectInfo<SocketAddr>,
        request: Request,
    ) -> Response {
        if let Some(file) = gateway.site.answer(&request) {
            return file;
        }
        let request_id = STANDARD.encode(random_bytes());
        let mut response = match &gateway.cors {
            Some(cors) => gateway.answer_to_pages(cors, client, request, &request_id).await,
            None => gateway.answer(client, request, &request_id).await.unwrap_or_else(Refusal::response),
        };
        if let Ok(value) = HeaderValue::from_str(&request_id) {
            response.headers_mut().insert(REQUEST_ID, value);
        }
        response
    }

    async fn answer_to_pages(&self, cors: &Cors, client: SocketAddr, request: Request, request_id: &str) -> Response {
        if let Some(answer) = cors::preflight(cors, request.method(), request.headers()) {
            return answer;
        }
        let asked = request.headers().clone();
        let mut response = self.answer(client, request, request_id).await.unwrap_or_else(Refusal::response);
        cors::share(cors, &asked, response.headers_mut());
        response
    }

    async fn answer(&self, client: SocketAddr, request: Request, request_id: &str) -> Result<Response, Refusal> {
        let at = OffsetDateTime::now_utc();
        let (head, body) = request.into_parts();
        if head_bytes(&head) > MAX_HEAD {
            return Err(Refusal::HeadersTooLarge);
        }
        let path = path::routed(head.uri.path()).ok_or(Refusal::BadRequest)?;
        let found = self.routes.find(head.method.as_str(), &path).ok_or(Refusal::NotFound)?;
        let claims = self.authorize(&found, &head, at)?;
        let body = read_body(&head, body).await?;
        let context = Context {
            path: &path,
            found: &found,
            claims: claims.as_ref(),
            request_id,
            source: client.ip(),
            host: &self.host,
            at,
        };
        let event = event::build(&head, &body, &context).ok_or(Refusal::BadRequest)?;
        let deadline = Instant::now() + INTEGRATION_TIMEOUT;
        let payload = Bytes::from(event.to_string());
        let trace = Trace::begin();
        self.causes.note(&trace, request_id, found.route.key());
        let answer = self.functions.invoke_in(trace, &found.route.function, payload, deadline).await?;
        answer::read(&answer).ok_or(Refusal::InternalServerError)
    }

    fn authorize(&self, found: &Match<'_>, head: &Parts, at: OffsetDateTime) -> Result<Option<Claims>, Refusal> {
        if found.route.authorizer.is_none() {
            return Ok(None);
        }
        let header = event::header(&head.headers, &AUTHORIZATION).ok_or(Refusal::Unauthorized)?;
        // AWS also accepts a token without the scheme `Bearer`.
        let token = match header.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
            _ => &header,
        };
        let claims = self.key.verify(token, at.unix_timestamp());
        claims.map(Some).ok_or(Refusal::Unauthorized)
    }
}

/// Returns the event that a function gets for a request on 20 November 2026 at noon, or `None` if no
/// route takes the request. The sample events in `events` are made so.
#[must_use]
pub fn sample_event(
    routes: &[Route],
    request: http::Request<Bytes>,
    claims: Option<&BTreeMap<String, String>>,
    request_id: &str,
) -> Option<serde_json::Value> {
    let (head, body) = request.into_parts();
    let (path, routes) = (path::routed(head.uri.path())?, RouteTable::new(routes.to_vec()));
    let context = Context {
        path: &path,
        found: &routes.find(head.method.as_str(), &path)?,
        claims,
        request_id,
        source: IpAddr::from([192, 0, 2, 1]),
        host: "a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com:443",
        at: OffsetDateTime::from_unix_timestamp(1_795_176_000).ok()?,
    };
    event::build(&head, &body, &context)
}

/// Returns the bytes of the request line and the headers, without separators and line ends.
fn head_bytes(head: &Parts) -> usize {
    let target = head.uri.path_and_query().map_or(0, |target| target.as_str().len());
    let headers = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len());
    head.method.as_str().len() + target + headers.sum::<usize>()
}

async fn read_body(head: &Parts, body: Body) -> Result<Bytes, Refusal> {
    let announced = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > MAX_BODY) {
        return Err(Refusal::TooLarge);
    }
    // The error may also mean that the client has disconnected. Such a client reads no response, so
    // any status will do.
    to_bytes(body, MAX_BODY).await.map_err(|_| Refusal::TooLarge)
}

impl From<InvokeError> for Refusal {
    fn from(error: InvokeError) -> Self {
        match error {
            InvokeError::PayloadTooLarge(_) => Self::TooLarge,
            InvokeError::Deadline | InvokeError::Stopped | InvokeError::Throttled => Self::ServiceUnavailable,
            InvokeError::Function(_) | InvokeError::UnknownFunction(_) => Self::InternalServerError,
        }
    }
}

impl Refusal {
    fn response(self) -> Response {
        let (status, message) = match self {
            Self::BadRequest => (StatusCode::BAD_REQUEST, "Bad Request"),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "Unauthorized"),
            Self::NotFound => (StatusCode::NOT_FOUND, "Not Found"),
            Self::HeadersTooLarge => (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "Request Header Fields Too Large"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large"),
            Self::InternalServerError => (StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error"),
            Self::ServiceUnavailable => (StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable"),
        };
        let mut response = Response::new(Body::from(json!({"message": message}).to_string()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self == Self::Unauthorized {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Returns as many random bytes as AWS uses in a request id.
fn random_bytes() -> [u8; 11] {
    let mut bytes = [0; 11];
    fastrand::fill(&mut bytes);
    bytes
}
