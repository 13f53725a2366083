//! Errors of requests: `application/problem+json` (RFC 9457) for the client, and the cause for the
//! log.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use key_schema::id::ProductId;
use key_schema::instant::Instant;
use key_schema::money::Money;
use key_schema::quota::Quota;
use lambda_http::http::{HeaderValue, StatusCode};
use serde::Serialize;

pub use crate::code::Code;
use crate::reason::Reason;

/// The value of Retry-After for a temporary problem, in seconds.
const RETRY_AFTER_SECONDS: &str = "1";

/// A cause, which only the log shows.
pub type Cause = Box<dyn Error + Send + Sync>;

/// An error response.
///
/// The client sees the [`Code`] with its status, `detail`, and an entry for each rejected field.
/// The cause ([`Problem::because`]) appears only in the log.
#[derive(Debug)]
pub struct Problem(Box<Inner>);

#[derive(Debug)]
struct Inner {
    code: Code,
    detail: Cow<'static, str>,
    errors: Vec<FieldError>,
    location: Option<String>,
    retry_after: Option<i64>,
    /// The code in the words of a protocol.
    spoken: Option<&'static str>,
    cause: Option<Cause>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// A JSON Pointer (RFC 6901) into the body, such as `/lines/0/quantity`. Empty for the body
    /// itself.
    pub pointer: String,
    /// The error in the field, for people.
    pub detail: Cow<'static, str>,
    /// The product of the order line or cart line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The price of one piece in the quote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_price: Option<Money>,
    /// The current price of one piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_price: Option<Money>,
}

impl FieldError {
    #[must_use]
    pub fn new(pointer: impl Into<String>, detail: impl Into<Cow<'static, str>>) -> Self {
        let (pointer, detail) = (pointer.into(), detail.into());
        Self { pointer, detail, product_id: None, reason: None, old_price: None, new_price: None }
    }

    #[must_use]
    pub fn product(self, id: &ProductId) -> Self {
        Self { product_id: Some(id.to_string()), ..self }
    }

    #[must_use]
    pub fn reason(self, reason: Reason) -> Self {
        Self { reason: Some(reason), ..self }
    }

    #[must_use]
    pub fn prices(self, old_price: Option<Money>, new_price: Option<Money>) -> Self {
        Self { old_price, new_price, ..self }
    }
}

impl Problem {
    /// Creates a problem. `detail` is the text for the client.
    #[must_use]
    pub fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            code,
            detail: detail.into(),
            errors: Vec::new(),
            location: None,
            retry_after: None,
            spoken: None,
            cause: None,
        }))
    }

    /// Creates a 404 `not_found`. `what` is a noun, such as "order".
    #[must_use]
    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("There is no such {what}."))
    }

    #[must_use]
    pub fn unauthenticated() -> Self {
        Self::new(Code::Unauthenticated, "This request needs a token.")
    }

    #[must_use]
    pub fn forbidden() -> Self {
        Self::new(Code::Forbidden, "Only staff can do this.")
    }

    /// Creates a 412 `version_mismatch`: the version in If-Match is not the current version.
    #[must_use]
    pub fn version_mismatch() -> Self {
        Self::new(
            Code::VersionMismatch,
            "The record has changed since you read it. Read it again and repeat the change.",
        )
    }

    /// Creates a 503 `throttled` with Retry-After, for one of the reasons of [`Code::Throttled`].
    #[must_use]
    pub fn throttled(cause: impl Into<Cause>) -> Self {
        Self::new(Code::Throttled, "There are too many requests at the moment. Try again shortly.").because(cause)
    }

    /// Creates a 401 `unauthenticated` for a token whose session has ended.
    #[must_use]
    pub fn signed_out() -> Self {
        Self::new(Code::Unauthenticated, "The session of this token has ended. Sign in again.")
    }

    /// Creates a 503 `unavailable` with Retry-After: a service that the response needs is
    /// unavailable.
    #[must_use]
    pub fn unavailable(cause: impl Into<Cause>) -> Self {
        Self::new(Code::Unavailable, "A part of the service is unavailable. Try again shortly.").because(cause)
    }

    /// Creates a 503 `stock_unavailable`: the product exists, but it cannot be decoded, or its stock
    /// is missing or cannot be decoded.
    #[must_use]
    pub fn stock_unavailable(cause: impl Into<Cause>) -> Self {
        Self::new(Code::StockUnavailable, "The data of a product must be repaired before the product can be sold.")
            .because(cause)
    }

    /// Creates a 500 `internal` with a fixed text. Only the log shows the cause.
    #[must_use]
    pub fn internal(cause: impl Into<Cause>) -> Self {
        Self::new(Code::Internal, "An internal error occurred.").because(cause)
    }

    /// Returns this 404, or a 500 if items were left out because they cannot be decoded. The missing
    /// item may be one of them.
    #[must_use]
    pub fn unless_left_out(self, items: usize) -> Self {
        if items == 0 { self } else { Self::internal("an item that the response needs cannot be decoded") }
    }

    /// Adds the cause for the log. The client never sees it.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Cause>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// Adds an error of one field. `pointer` is a JSON Pointer into the body.
    #[must_use]
    pub fn error(self, pointer: impl Into<String>, detail: impl Into<Cow<'static, str>>) -> Self {
        self.errors([FieldError::new(pointer, detail)])
    }

    #[must_use]
    pub fn errors(mut self, errors: impl IntoIterator<Item = FieldError>) -> Self {
        self.0.errors.extend(errors);
        self
    }

    /// Adds a Location header ([`crate::url::location`]) with the address of the conflicting
    /// record. An address that is not a valid header value is left out.
    #[must_use]
    pub fn location(mut self, location: impl Into<String>) -> Self {
        self.0.location = Some(location.into()).filter(|location| HeaderValue::from_str(location).is_ok());
        self
    }

    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code
    }

    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.0.code.status()
    }

    #[must_use]
    pub fn field_errors(&self) -> &[FieldError] {
        &self.0.errors
    }

    /// Returns the cause with its chain of sources, for the log.
    pub(crate) fn causes(&self) -> Option<String> {
        let mut cause: &dyn Error = self.0.cause.as_deref()?;
        let mut text = cause.to_string();
        while let Some(next) = cause.source() {
            text.push_str(": ");
            text.push_str(&next.to_string());
            cause = next;
        }
        Some(text)
    }

    /// Returns the 429 for a customer who has used up a daily quota.
    #[must_use]
    pub fn quota_exceeded(quota: Quota, now: Instant) -> Self {
        Self::daily_limit(quota.limit(), &quota.name().replace('_', " "), now)
    }

    /// Returns the 429 for a customer who has reached the daily limit of `what`, such as "orders".
    #[must_use]
    pub fn daily_limit(limit: u64, what: &str, now: Instant) -> Self {
        let detail = format!("A customer is limited to {limit} {what} a day. Try again after Retry-After.");
        Self::new(Code::QuotaExceeded, detail).retry_after(now.seconds_left_of_day())
    }

    /// Sets Retry-After, in seconds.
    #[must_use]
    pub fn retry_after(mut self, seconds: i64) -> Self {
        self.0.retry_after = Some(seconds);
        self
    }

    #[cfg(feature = "table")]
    pub(crate) const fn has_retry_after(&self) -> bool {
        self.0.retry_after.is_some()
    }

    /// Gives the problem the code that a protocol has for it.
    #[must_use]
    pub fn spoken(mut self, code: &'static str) -> Self {
        self.0.spoken = Some(code);
        self
    }

    /// Returns the code for a route of a protocol.
    #[must_use]
    pub fn spoken_code(&self) -> &'static str {
        self.0.spoken.unwrap_or_else(|| self.0.code.name())
    }

    /// Returns the text for the client.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// Returns the problem's headers, without the headers that every response has.
    pub(crate) fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        match self.0.code {
            Code::Unauthenticated => headers.push(("www-authenticate", "Bearer".to_owned())),
            // RFC 9110, section 12.5.3.
            Code::UnsupportedContentEncoding => headers.push(("accept-encoding", "identity".to_owned())),
            Code::Throttled | Code::Unavailable | Code::IdempotencyInProgress if self.0.retry_after.is_none() => {
                headers.push(("retry-after", RETRY_AFTER_SECONDS.to_owned()));
            }
            _ => {}
        }
        if let Some(seconds) = self.0.retry_after {
            headers.push(("retry-after", seconds.to_string()));
        }
        if let Some(location) = &self.0.location {
            headers.push(("location", location.clone()));
        }
        headers
    }

    pub(crate) fn body(&self, request_id: &str) -> String {
        let code = self.0.code;
        let shape = Shape {
            kind: format!("urn:bodega:problem:{}", code.name()),
            title: code.title(),
            status: code.status().as_u16(),
            code: code.name(),
            detail: &self.0.detail,
            request_id,
            errors: &self.0.errors,
        };
        // These texts and the number always serialize.
        serde_json::to_string(&shape).unwrap_or_default()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code.name(), self.0.detail)
    }
}

impl Error for Problem {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.cause.as_deref().map(|cause| cause as &(dyn Error + 'static))
    }
}

#[derive(Serialize)]
struct Shape<'a> {
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    status: u16,
    code: &'static str,
    detail: &'a str,
    request_id: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [FieldError],
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn shown(problem: &Problem) -> Value {
        serde_json::from_str(&problem.body("r1")).unwrap_or_default()
    }

    #[test]
    fn the_client_sees_code_detail_and_fields_but_never_the_cause() {
        let problem = Problem::new(Code::InvalidBody, "No.")
            .error("/a", "must not be empty")
            .because(std::io::Error::other("the password is hunter2"));
        assert_eq!(
            shown(&problem),
            json!({
                "type": "urn:bodega:problem:invalid_body", "title": "Invalid body", "status": 422,
                "code": "invalid_body",
                "detail": "No.", "request_id": "r1", "errors": [{"pointer": "/a", "detail": "must not be empty"}],
            })
        );
        assert_eq!(problem.causes().as_deref(), Some("the password is hunter2"));
    }

    #[test]
    fn an_internal_error_does_not_show_its_cause() {
        let problem = Problem::internal("table `Bodega-prod` has no index GSI9");
        assert!(!problem.body("r1").contains("GSI9"));
        assert!(!problem.to_string().contains("GSI9"));
        assert_eq!(shown(&problem).get("errors"), None);
    }

    #[test]
    fn throttled_and_unauthenticated_problems_have_their_headers() {
        assert_eq!(Problem::throttled("full").headers(), [("retry-after", "1".to_owned())]);
        assert_eq!(Problem::unauthenticated().headers(), [("www-authenticate", "Bearer".to_owned())]);
        assert_eq!(Problem::not_found("order").headers(), []);
    }
}
