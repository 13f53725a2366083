use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use key_schema::idempotency::StoredResponse;
use lambda_http::aws_lambda_events::apigw::ApiGatewayV2httpResponse;
use lambda_http::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};

use crate::caching::Caching;
use crate::page::LEFT_OUT;
use crate::problem::{Cause, Problem};
use crate::request::Request;
use crate::routes::Speak;

const NO_STORE: &str = "no-store";
/// The end of a page without a cursor.
const NO_CURSOR: &str = "null}";
/// The length of the digest in an ETag. Two bodies of one version have different digests.
pub(crate) const DIGEST_BYTES: usize = 8;
/// Maximum length of a Link header in bytes.
const MAX_LINK_BYTES: usize = 4096;

/// A handler's response.
///
/// Caches may store the response of a public route ([`crate::caching`]), and no other response.
#[derive(Debug)]
pub struct Response {
    status: StatusCode,
    headers: Vec<(Cow<'static, str>, String)>,
    body: Option<String>,
    next_cursor: Option<String>,
    /// The longest time for which a cache may use the response.
    cache_limit: Option<Duration>,
    /// The time for which a cache may use the response, whatever the settings say.
    cache_time: Option<Duration>,
    version: Option<u64>,
    /// Whether parts of the body change without the version.
    has_other_parts: bool,
    /// The error that makes this response a 500. The response stores it, so that building a
    /// response needs no `?` at each step.
    fault: Option<Cause>,
}

/// The stored form of a response, for retries of an idempotent request.
#[derive(Serialize, Deserialize)]
struct Record<'a> {
    status: u16,
    headers: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    body: Option<Cow<'a, str>>,
}

impl Response {
    #[must_use]
    pub fn ok(body: &impl Serialize) -> Self {
        Self::new(StatusCode::OK).json(body)
    }

    /// Creates a 201 with a JSON body and the new record's Location ([`crate::url::location`]).
    #[must_use]
    pub fn created(location: impl Into<String>, body: &impl Serialize) -> Self {
        Self::new(StatusCode::CREATED).header("location", location).json(body)
    }

    /// Creates a 202 with a JSON body: the work has begun and continues in the background.
    #[must_use]
    pub fn accepted(body: &impl Serialize) -> Self {
        Self::new(StatusCode::ACCEPTED).json(body)
    }

    #[must_use]
    pub fn no_content() -> Self {
        Self::new(StatusCode::NO_CONTENT)
    }

    /// Creates a 307: another URL has the resource at the moment.
    #[must_use]
    pub fn redirect(url: impl Into<String>) -> Self {
        Self::new(StatusCode::TEMPORARY_REDIRECT).header("location", url)
    }

    /// Creates a 200 with a list that has only one page, `{"items": […], "next_cursor": null}`. Use
    /// [`crate::PageRequest::answer`] for longer lists.
    #[must_use]
    pub fn all<T: Serialize>(items: &[T]) -> Self {
        Self::page(items, &serde_json::Map::new())
    }

    /// Creates a 200 with a page of a list, without a cursor. `more` must serialize as an object.
    pub(crate) fn page<T: Serialize>(items: &[T], more: &impl Serialize) -> Self {
        #[derive(Serialize)]
        struct List<'a, T, M> {
            items: &'a [T],
            #[serde(flatten)]
            more: &'a M,
            /// The last member, so that [`Response::leading_to`] finds it.
            next_cursor: Option<&'a str>,
        }
        Self::ok(&List { items, more, next_cursor: None })
    }

    /// Adds the cursor of the next page, if there is one, to the body of a page. Also adds the Link
    /// (RFC 8288).
    pub(crate) fn leading_to(mut self, cursor: Option<String>) -> Self {
        if let (Some(cursor), Some(body)) = (&cursor, &mut self.body)
            && body.ends_with(NO_CURSOR)
        {
            body.truncate(body.len() - NO_CURSOR.len());
            // The characters of a cursor need no escapes.
            body.extend(["\"", cursor, "\"}"]);
        }
        self.next(cursor)
    }

    /// Adds a Link to the next page, if there is one.
    pub(crate) fn next(mut self, cursor: Option<String>) -> Self {
        self.next_cursor = cursor;
        self
    }

    /// Adds the number of items that the response leaves out because they cannot be decoded, if there
    /// are any ([`crate::page::LEFT_OUT`]).
    #[must_use]
    pub fn leaving_out(self, items: usize) -> Self {
        if items == 0 { self } else { self.header(LEFT_OUT, items.to_string()) }
    }

    /// Returns the body's size in bytes, escaped as in Lambda's response.
    pub(crate) fn body_bytes(&self) -> usize {
        self.body.as_deref().map_or(0, crate::page::escaped)
    }

    /// Returns whether the body fits in a page, with so many further bytes.
    pub(crate) fn is_page(&self, beside: usize) -> bool {
        let room = crate::page::max_bytes().saturating_sub(beside);
        self.body.as_deref().is_none_or(|body| crate::page::fits(body, room))
    }

    /// Adds the strong ETag `"<version>"`. The version changes with every byte of the body.
    #[must_use]
    pub fn etag(mut self, version: u64) -> Self {
        self.version = Some(version);
        self
    }

    /// Adds the strong ETag `"<version>.<digest>"` to the response of a GET. Parts of the body, such
    /// as the availability, change without the version.
    #[must_use]
    pub fn etag_of_parts(self, version: u64) -> Self {
        Self { has_other_parts: true, ..self.etag(version) }
    }

    /// Adds a header. An invalid header value makes the response a 500.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        let value = value.into();
        match HeaderValue::from_str(&value) {
            Ok(_) => self.headers.push((name.into(), value)),
            Err(error) => self.fault = Some(format!("header {name}: {error}").into()),
        }
        self
    }

    /// Limits the time for which caches may use the response of a public route.
    #[must_use]
    pub const fn fresh_for(mut self, limit: Duration) -> Self {
        self.cache_limit = Some(limit);
        self
    }

    /// Sets the time for which caches may use the response of a public route.
    #[must_use]
    pub const fn kept_for(mut self, time: Duration) -> Self {
        self.cache_time = Some(time);
        self
    }

    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the body, if there is one. Its media type is `application/json`.
    #[must_use]
    pub fn body(&self) -> Option<&str> {
        self.body.as_deref()
    }

    /// Returns the response as an idempotency record stores it, with its headers.
    pub fn stored(&self) -> Result<StoredResponse, Problem> {
        Ok(StoredResponse::Body { status: self.status.as_u16(), body: self.to_record()? })
    }

    fn to_record(&self) -> Result<String, Problem> {
        if let Some(fault) = &self.fault {
            return Err(Problem::internal(fault.to_string()));
        }
        let tag = self.version.map(|version| ("etag".into(), Cow::from(format!("\"{version}\""))));
        let headers = self.headers.iter().map(|(name, value)| (Cow::from(name.as_ref()), Cow::from(value)));
        let headers = headers.chain(tag).collect();
        let record = Record { status: self.status.as_u16(), headers, body: self.body.as_deref().map(Cow::from) };
        serde_json::to_string(&record).map_err(Problem::internal)
    }

    /// Restores the first response from the text of [`Response::stored`], with the header
    /// `Idempotency-Replayed: true`.
    ///
    /// # Errors
    /// 500 `internal` when the text is not such a record.
    pub fn replay(record: &str) -> Result<Self, Problem> {
        let record: Record<'_> = serde_json::from_str(record).map_err(Problem::internal)?;
        let mut response = Self::new(StatusCode::from_u16(record.status).map_err(Problem::internal)?);
        response.headers =
            record.headers.into_iter().map(|(name, value)| (name.into_owned().into(), value.into_owned())).collect();
        response.body = record.body.map(Cow::into_owned);
        Ok(response.header("idempotency-replayed", "true"))
    }

    fn new(status: StatusCode) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: None,
            next_cursor: None,
            cache_limit: None,
            cache_time: None,
            version: None,
            has_other_parts: false,
            fault: None,
        }
    }

    fn json(mut self, body: &impl Serialize) -> Self {
        match serde_json::to_string(body) {
            Ok(body) => self.body = Some(body),
            Err(error) => self.fault = Some(error.into()),
        }
        self
    }

    /// Returns the ETag of the response. Every 200 of a public route has one.
    fn tag(&self, request: &Request<'_>, is_public: bool) -> Option<String> {
        let is_read = request.route().starts_with("GET ") && self.status == StatusCode::OK;
        match self.version {
            Some(version) if is_read && self.has_other_parts => Some(format!("\"{version}.{}\"", self.digest())),
            Some(version) => Some(format!("\"{version}\"")),
            None => (is_public && is_read).then(|| format!("\"d{}\"", self.digest())),
        }
    }

    fn digest(&self) -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, self.body.as_deref().unwrap_or_default().as_bytes());
        digest.as_ref().iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the response for the gateway. `caching` is present for a public route. If the client
    /// has this response already, the status is 304 (RFC 9110, section 13.1.2).
    pub(crate) fn into_reply(self, request: &Request<'_>, caching: Option<Caching>) -> Result<Reply, Problem> {
        let tag = self.tag(request, caching.is_some());
        if let Some(fault) = self.fault {
            return Err(Problem::internal(fault));
        }
        let kept = |max_age| Caching { max_age, stale_while_revalidate: Duration::ZERO };
        let caching = caching.map(|caching| self.cache_time.map_or(caching, kept));
        let cache_control = caching.map_or_else(|| NO_STORE.to_owned(), |caching| caching.header(self.cache_limit));
        let is_read = request.route().starts_with("GET ") && self.status == StatusCode::OK;
        if let Some(tag) = tag.as_deref().filter(|tag| is_read && request.has_seen(tag)) {
            let mut reply = Reply::new(StatusCode::NOT_MODIFIED, request.id(), cache_control);
            reply.header("etag", tag.to_owned());
            return Ok(reply);
        }
        let mut reply = Reply::new(self.status, request.id(), cache_control);
        if let Some(tag) = tag {
            reply.header("etag", tag);
        }
        if self.body.is_some() {
            reply.header("content-type", "application/json".to_owned());
        }
        if let Some(cursor) = &self.next_cursor {
            let link = format!("<{}>; rel=\"next\"", request.url_with_cursor(cursor));
            // Encoding can triple a query. Proxies refuse responses with long headers, and clients
            // find the cursor in the body as well.
            if link.len() <= MAX_LINK_BYTES {
                reply.header("link", link);
            }
        }
        for (name, value) in self.headers {
            reply.header(name, value);
        }
        reply.body = self.body;
        Ok(reply)
    }
}

/// The response for the gateway, in payload format 2.0. Each header occurs once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub status: StatusCode,
    pub headers: BTreeMap<Cow<'static, str>, String>,
    pub body: Option<String>,
}

impl Reply {
    pub(crate) fn problem(problem: &Problem, request_id: &str, speak: Option<Speak>) -> Self {
        let (status, body, kind) = match speak.map(|speak| speak(problem)) {
            Some((status, body)) => (status, body, "application/json"),
            None => (problem.status(), problem.body(request_id), "application/problem+json"),
        };
        let mut reply = Self::new(status, request_id, NO_STORE.to_owned());
        reply.header("content-type", kind.to_owned());
        for (name, value) in problem.headers() {
            reply.header(name, value);
        }
        reply.body = Some(body);
        reply
    }

    fn new(status: StatusCode, request_id: &str, cache_control: String) -> Self {
        let mut reply = Self { status, headers: BTreeMap::new(), body: None };
        // The gateway adds the CORS headers of the request's origin. A cache must not use them for
        // pages of another origin, or of none.
        if cache_control != NO_STORE {
            reply.header("vary", "origin".to_owned());
        }
        reply.header("cache-control", cache_control);
        reply.header("x-content-type-options", "nosniff".to_owned());
        reply.header("x-request-id", request_id.to_owned());
        reply
    }

    fn header(&mut self, name: impl Into<Cow<'static, str>>, value: String) {
        self.headers.insert(name.into(), value);
    }
}

impl Serialize for Reply {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut reply = serializer.serialize_struct("Reply", 4)?;
        reply.serialize_field("statusCode", &self.status.as_u16())?;
        reply.serialize_field("headers", &self.headers)?;
        reply.serialize_field("body", self.body.as_deref().unwrap_or_default())?;
        reply.serialize_field("isBase64Encoded", &false)?;
        reply.end()
    }
}

impl From<Reply> for ApiGatewayV2httpResponse {
    fn from(reply: Reply) -> Self {
        let header = |(name, value): (Cow<'static, str>, String)| {
            Some((HeaderName::try_from(name.as_ref()).ok()?, HeaderValue::try_from(value).ok()?))
        };
        let mut response = Self::default();
        response.status_code = reply.status.as_u16().into();
        response.headers = reply.headers.into_iter().filter_map(header).collect::<HeaderMap>();
        response.body = reply.body.map(Into::into);
        response
    }
}
