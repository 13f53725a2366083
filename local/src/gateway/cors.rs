//! Applies a `CorsConfiguration` as API Gateway does, and answers preflight requests
//! (<https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-cors.html>).
//!
//! This module replaces the CORS layer of `tower-http`, which differs from API Gateway. The layer
//! answers preflight requests with 200 instead of 204. It sends methods and headers even to an
//! origin that is not allowed. It also keeps CORS headers that a function has set.

use axum::body::Body;
use axum::response::Response;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderName, ORIGIN,
};
use http::{HeaderValue, Method, StatusCode};
use template::{Cors, Origins};

/// CORS headers that a function may set. API Gateway drops them if the API has a CORS
/// configuration.
const OWN: [HeaderName; 6] = [
    ACCESS_CONTROL_ALLOW_CREDENTIALS,
    ACCESS_CONTROL_ALLOW_HEADERS,
    ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS,
    ACCESS_CONTROL_MAX_AGE,
];

/// Returns the response to a preflight request, or `None` if the request is not a preflight
/// request.
///
/// The status is 204, and the request needs neither a route nor a token. The response has CORS
/// headers only if the origin, the method and all headers are allowed.
pub(crate) fn preflight(cors: &Cors, method: &Method, headers: &HeaderMap) -> Option<Response> {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let wanted = text(ACCESS_CONTROL_REQUEST_METHOD)?;
    if method != Method::OPTIONS || !headers.contains_key(ORIGIN) {
        return None;
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let asked = text(ACCESS_CONTROL_REQUEST_HEADERS).unwrap_or_default();
    let mut asked = asked.split(',').map(|name| name.trim().to_ascii_lowercase()).filter(|name| !name.is_empty());
    let may = cors.methods.iter().any(|allowed| allowed == wanted) && asked.all(|name| cors.headers.contains(&name));
    if let Some(origin) = allowed_origin(cors, headers).filter(|_| may) {
        let answer = response.headers_mut();
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        insert(answer, ACCESS_CONTROL_ALLOW_METHODS, &cors.methods.join(","));
        insert(answer, ACCESS_CONTROL_ALLOW_HEADERS, &cors.headers.join(","));
        if let Some(seconds) = cors.max_age {
            answer.insert(ACCESS_CONTROL_MAX_AGE, seconds.into());
        }
    }
    Some(response)
}

/// `headers` are the request's headers.
pub(crate) fn share(cors: &Cors, headers: &HeaderMap, answer: &mut HeaderMap) {
    for name in OWN {
        answer.remove(name);
    }
    if let Some(origin) = allowed_origin(cors, headers) {
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        insert(answer, ACCESS_CONTROL_EXPOSE_HEADERS, &cors.exposed.join(","));
    }
}

/// Returns the value for `Access-Control-Allow-Origin` if pages of the request's origin may call
/// the API.
fn allowed_origin(cors: &Cors, headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(ORIGIN)?;
    match &cors.origins {
        Origins::Any => Some(HeaderValue::from_static("*")),
        Origins::These(origins) => {
            origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()).then(|| origin.clone())
        }
    }
}

/// The list contains methods or header names, which are always ASCII.
fn insert(headers: &mut HeaderMap, name: HeaderName, list: &str) {
    if let Some(value) = HeaderValue::from_str(list).ok().filter(|value| !value.is_empty()) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    const SHOP: &str = "https://shop.example";

    fn cors(origins: Origins) -> Cors {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        Cors {
            origins,
            methods: texts(&["GET", "PUT"]),
            headers: texts(&["authorization", "if-match"]),
            exposed: texts(&["etag", "location"]),
            max_age: Some(600),
        }
    }

    fn shop() -> Cors {
        cors(Origins::These(vec!["https://other.example".to_owned(), SHOP.to_owned()]))
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn asked(cors: &Cors, origin: &'static str, method: &'static str, names: &'static str) -> HeaderMap {
        let question =
            [("origin", origin), ("access-control-request-method", method), ("access-control-request-headers", names)];
        let answer = preflight(cors, &Method::OPTIONS, &headers(&question)).unwrap();
        assert_eq!(answer.status(), 204);
        answer.headers().clone()
    }

    #[test]
    fn an_allowed_preflight_request_gets_the_cors_headers() {
        for (method, names) in [("PUT", "authorization,if-match"), ("GET", "Authorization, If-Match"), ("GET", "")] {
            let expected = headers(&[
                ("access-control-allow-origin", SHOP),
                ("access-control-allow-methods", "GET,PUT"),
                ("access-control-allow-headers", "authorization,if-match"),
                ("access-control-max-age", "600"),
            ]);
            assert_eq!(asked(&shop(), SHOP, method, names), expected, "{method} {names}");
        }
        let any = asked(&cors(Origins::Any), "https://elsewhere.example", "GET", "");
        assert_eq!(any["access-control-allow-origin"], "*");
    }

    #[test]
    fn a_refused_preflight_request_gets_no_cors_headers() {
        for (origin, method, names) in [
            ("https://elsewhere.example", "GET", ""),
            ("https://shop.example:8443", "GET", ""),
            ("http://shop.example", "GET", ""),
            ("null", "GET", ""),
            (SHOP, "DELETE", ""),
            (SHOP, "put", ""),
            (SHOP, "PUT", "authorization,x-other"),
        ] {
            assert!(asked(&shop(), origin, method, names).is_empty(), "{origin} {method} {names}");
        }
    }

    #[test]
    fn the_gateway_answers_only_preflight_requests_itself() {
        let question = headers(&[("origin", SHOP), ("access-control-request-method", "GET")]);
        assert!(preflight(&shop(), &Method::GET, &question).is_none());
        assert!(preflight(&shop(), &Method::OPTIONS, &headers(&[("origin", SHOP)])).is_none());
        let nobody = headers(&[("access-control-request-method", "GET")]);
        assert!(preflight(&shop(), &Method::OPTIONS, &nobody).is_none());
    }

    #[test]
    fn only_the_gateways_cors_headers_are_sent_and_only_to_allowed_origins() {
        let own =
            [("etag", "\"1\""), ("access-control-allow-origin", "*"), ("access-control-allow-credentials", "true")];
        let shared = |origin: &'static str| {
            let mut answer = headers(&own);
            share(&shop(), &headers(&[("origin", origin)]), &mut answer);
            answer
        };
        let expected = headers(&[
            ("etag", "\"1\""),
            ("access-control-allow-origin", SHOP),
            ("access-control-expose-headers", "etag,location"),
        ]);
        assert_eq!(shared(SHOP), expected);
        assert_eq!(shared("https://elsewhere.example"), headers(&[("etag", "\"1\"")]));
        let mut answer = headers(&own);
        share(&shop(), &HeaderMap::new(), &mut answer);
        assert_eq!(answer, headers(&[("etag", "\"1\"")]));
    }
}
