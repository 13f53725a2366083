//! S3's CORS responses for web pages of other origins
//! (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/cors.html>).

use bytes::Bytes;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderName, HeaderValue, ORIGIN, VARY,
};
use hyper::{HeaderMap, Method, Request, StatusCode};

use super::problem::Problem;
use crate::endpoint::{Answer, plain};

/// A CORS rule of a bucket. An origin or a header may contain one `*`, which matches any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorsRule {
    pub origins: Vec<String>,
    /// Allowed methods, in upper case.
    pub methods: Vec<String>,
    /// Allowed headers, in lower case.
    pub headers: Vec<String>,
    /// Response headers that a page may read.
    pub exposed: Vec<String>,
    /// Seconds for which a browser may cache this rule.
    pub max_age: Option<u32>,
}

/// Returns the response to a preflight request, or `None` for any other request. A preflight
/// request needs no signature.
pub(super) fn preflight(rules: &[CorsRule], request: &Request<Bytes>) -> Option<Answer> {
    if request.method() != Method::OPTIONS {
        return None;
    }
    let Some(origin) = text(request.headers(), &ORIGIN) else {
        return Some(Problem::no_origin().answer());
    };
    let method = text(request.headers(), &ACCESS_CONTROL_REQUEST_METHOD).unwrap_or_default();
    let wanted = text(request.headers(), &ACCESS_CONTROL_REQUEST_HEADERS).unwrap_or_default();
    let wanted: Vec<String> =
        wanted.split(',').map(|name| name.trim().to_ascii_lowercase()).filter(|name| !name.is_empty()).collect();
    let is_fit = |rule: &&CorsRule| {
        rule.allows(origin, method) && wanted.iter().all(|name| rule.headers.iter().any(|pattern| fits(pattern, name)))
    };
    let Some(rule) = rules.iter().find(is_fit) else {
        return Some(Problem::cors(!rules.is_empty()).answer());
    };
    let mut answer = plain(StatusCode::OK);
    let headers = answer.headers_mut();
    rule.tell(origin, headers);
    insert(headers, ACCESS_CONTROL_ALLOW_HEADERS, &wanted.join(", "));
    Some(answer)
}

pub(super) fn share(rules: &[CorsRule], request: &Request<Bytes>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(origin) = text(request.headers(), &ORIGIN)
        && let Some(rule) = rules.iter().find(|rule| rule.allows(origin, request.method().as_str()))
    {
        rule.tell(origin, &mut headers);
    }
    headers
}

impl CorsRule {
    fn allows(&self, origin: &str, method: &str) -> bool {
        self.methods.iter().any(|allowed| allowed == method) && self.origins.iter().any(|pattern| fits(pattern, origin))
    }

    fn tell(&self, origin: &str, headers: &mut HeaderMap) {
        if self.origins.iter().any(|pattern| pattern == "*") {
            insert(headers, ACCESS_CONTROL_ALLOW_ORIGIN, "*");
        } else {
            insert(headers, ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            insert(headers, ACCESS_CONTROL_ALLOW_CREDENTIALS, "true");
        }
        insert(headers, ACCESS_CONTROL_ALLOW_METHODS, &self.methods.join(", "));
        insert(headers, ACCESS_CONTROL_EXPOSE_HEADERS, &self.exposed.join(", "));
        insert(headers, VARY, "Origin, Access-Control-Request-Headers, Access-Control-Request-Method");
        if let Some(seconds) = self.max_age {
            headers.insert(ACCESS_CONTROL_MAX_AGE, seconds.into());
        }
    }
}

fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, end)) => text.strip_prefix(start).is_some_and(|rest| rest.ends_with(end)),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Some(value) = HeaderValue::from_str(value).ok().filter(|value| !value.is_empty()) {
        headers.insert(name, value);
    }
}
