//! Builds the event that a function receives for a request: API Gateway's payload format 2.0
//! (<https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html>).

use std::collections::BTreeMap;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderName, USER_AGENT};
use http::request::Parts;
use percent_encoding::percent_decode_str;
use serde_json::{Value as Json, json};
use time::OffsetDateTime;

use super::routes::Match;

/// Facts about a request that are neither in its head nor in its body.
pub struct Context<'a> {
    /// The decoded path.
    pub path: &'a str,
    pub found: &'a Match<'a>,
    /// The token's claims. `None` if the route has no authorizer.
    pub claims: Option<&'a BTreeMap<String, String>>,
    /// Identifies the request in logs and in the response.
    pub request_id: &'a str,
    pub source: IpAddr,
    /// Host and port of the gateway itself.
    pub host: &'a str,
    pub at: OffsetDateTime,
}

/// Returns the event as JSON, or `None` if the decoded query string is not UTF-8.
#[must_use]
pub fn build(head: &Parts, body: &Bytes, context: &Context<'_>) -> Option<Json> {
    let route_key = context.found.route.key();
    let path = context.path;
    let query = head.uri.query().unwrap_or_default();
    let user_agent = head.headers.get(USER_AGENT).map(text).unwrap_or_default();
    let domain = context.host.split(':').next().unwrap_or_default();
    let mut request_context = json!({
        "accountId": "000000000000",
        "apiId": "local",
        "domainName": domain,
        "domainPrefix": domain.split('.').next().unwrap_or_default(),
        "http": {
            "method": head.method.as_str(),
            "path": path,
            "protocol": "HTTP/1.1",
            "sourceIp": context.source.to_string(),
            "userAgent": user_agent,
        },
        "requestId": context.request_id,
        "routeKey": route_key,
        "stage": "$default",
        "time": common_log_time(context.at),
        "timeEpoch": i64::try_from(context.at.unix_timestamp_nanos() / 1_000_000).unwrap_or(0),
    });
    if let (Some(claims), Some(fields)) = (context.claims, request_context.as_object_mut()) {
        let authorizer = json!({"jwt": {"claims": claims, "scopes": null}});
        fields.insert("authorizer".to_owned(), authorizer);
    }
    let mut event = json!({
        "version": "2.0",
        "routeKey": route_key,
        "rawPath": path,
        "rawQueryString": query,
        "headers": headers(&head.headers, context),
        "requestContext": request_context,
        "isBase64Encoded": false,
    });
    let fields = event.as_object_mut()?;
    let cookies: Vec<String> = head
        .headers
        .get_all(COOKIE)
        .iter()
        .flat_map(|value| {
            let value = text(value);
            let split = value.split(';').map(|cookie| cookie.trim().to_owned());
            split.collect::<Vec<_>>()
        })
        .collect();
    if !cookies.is_empty() {
        fields.insert("cookies".to_owned(), json!(cookies));
    }
    let parameters = query_parameters(query)?;
    if !parameters.is_empty() {
        fields.insert("queryStringParameters".to_owned(), json!(parameters));
    }
    if !context.found.parameters.is_empty() {
        let parameters: BTreeMap<&str, &str> =
            context.found.parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
        fields.insert("pathParameters".to_owned(), json!(parameters));
    }
    if !body.is_empty() {
        let plain = is_text(&head.headers).then(|| std::str::from_utf8(body).ok()).flatten();
        let (body, encoded) = match plain {
            Some(text) => (text.to_owned(), false),
            None => (STANDARD.encode(body), true),
        };
        fields.insert("body".to_owned(), Json::from(body));
        fields.insert("isBase64Encoded".to_owned(), Json::from(encoded));
    }
    Some(event)
}

/// Returns a header's value as the authorizer and the function see it.
///
/// API Gateway joins the values of a repeated header with commas. So a request with two headers
/// `authorization` has an invalid token
/// (<https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-parameter-mapping.html>).
pub fn header(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let values: Vec<String> = headers.get_all(name).iter().map(text).collect();
    (!values.is_empty()).then(|| values.join(","))
}

/// Returns the headers with lower-case names. Values of a repeated header are joined with commas.
///
/// Cookies have a separate field. `Host` is always the gateway's host, because AWS routes by this
/// header. A request with another host would not arrive.
fn headers(headers: &HeaderMap, context: &Context<'_>) -> BTreeMap<String, String> {
    let others = headers.keys().filter(|name| *name != COOKIE && *name != HOST);
    let mut joined: BTreeMap<String, String> =
        others.filter_map(|name| Some((name.as_str().to_owned(), header(headers, name)?))).collect();
    let port = context.host.rsplit(':').next().unwrap_or_default();
    for (name, value) in [
        // As in any request, the default port is left out.
        ("host", context.host.trim_end_matches(":443")),
        ("x-forwarded-for", &context.source.to_string()),
        ("x-forwarded-port", port),
        ("x-forwarded-proto", "http"),
    ] {
        joined.insert(name.to_owned(), value.to_owned());
    }
    joined
}

/// Returns the decoded parameters. Values of a repeated name are joined with commas.
fn query_parameters(query: &str) -> Option<BTreeMap<String, String>> {
    let mut joined: BTreeMap<String, String> = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode(value)?;
        joined
            .entry(decode(name)?)
            .and_modify(|all| {
                all.push(',');
                all.push_str(&value);
            })
            .or_insert(value);
    }
    Some(joined)
}

fn decode(text: &str) -> Option<String> {
    let text = text.replace('+', " ");
    let decoded = percent_decode_str(&text).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

/// Returns whether API Gateway passes a body of this type as text. It encodes other bodies in
/// Base64, including bodies without a type.
fn is_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(text).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    kind.starts_with("text/")
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
        || matches!(kind.as_str(), "application/json" | "application/xml" | "application/javascript")
}

fn text(value: &http::HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Formats a time like `12/Mar/2020:19:03:58 +0000`.
fn common_log_time(at: OffsetDateTime) -> String {
    let at = at.to_offset(time::UtcOffset::UTC);
    let month = at.month().to_string();
    let month = month.get(..3).unwrap_or(&month);
    let (hour, minute, second) = at.to_hms();
    format!("{:02}/{month}/{}:{hour:02}:{minute:02}:{second:02} +0000", at.day(), at.year())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use std::net::Ipv4Addr;

    use http::Request;
    use template::Route;

    use super::*;

    fn event(request: Request<&'static [u8]>, claims: Option<&BTreeMap<String, String>>) -> Json {
        try_event(request, claims).unwrap()
    }

    fn try_event(request: Request<&'static [u8]>, claims: Option<&BTreeMap<String, String>>) -> Option<Json> {
        let (head, body) = request.into_parts();
        let route = Route {
            method: "PUT".to_owned(),
            path: "/v1/things/{id}".to_owned(),
            function: "Things".to_owned(),
            authorizer: None,
        };
        let found = Match { route: &route, parameters: vec![("id", "a b".to_owned())] };
        let context = Context {
            path: "/v1/things/a b",
            found: &found,
            claims,
            request_id: "r1",
            source: Ipv4Addr::LOCALHOST.into(),
            host: "127.0.0.1:3000",
            at: OffsetDateTime::from_unix_timestamp(1_583_348_638).unwrap(),
        };
        build(&head, &Bytes::from_static(body), &context)
    }

    fn put(uri: &str) -> http::request::Builder {
        Request::put(uri)
    }

    #[test]
    fn a_request_is_an_event_of_payload_2_0() {
        let claims = BTreeMap::from([("sub".to_owned(), "c1".to_owned())]);
        let request = put("/v1/things/a%20b?x=1&y=%2C+2&x=3")
            .header("Content-Type", "application/json; charset=utf-8")
            .header("User-Agent", "test/1")
            .header("X-Many", "one")
            .header("X-Many", "two")
            .header("Cookie", "a=1; b=2")
            .body(&b"{\"a\":1}"[..])
            .unwrap();
        assert_eq!(
            event(request, Some(&claims)),
            json!({
                "version": "2.0",
                "routeKey": "PUT /v1/things/{id}",
                "rawPath": "/v1/things/a b",
                "rawQueryString": "x=1&y=%2C+2&x=3",
                "cookies": ["a=1", "b=2"],
                "headers": {
                    "content-type": "application/json; charset=utf-8",
                    "host": "127.0.0.1:3000",
                    "user-agent": "test/1",
                    "x-forwarded-for": "127.0.0.1",
                    "x-forwarded-port": "3000",
                    "x-forwarded-proto": "http",
                    "x-many": "one,two",
                },
                "queryStringParameters": {"x": "1,3", "y": ", 2"},
                "pathParameters": {"id": "a b"},
                "requestContext": {
                    "accountId": "000000000000",
                    "apiId": "local",
                    "authorizer": {"jwt": {"claims": {"sub": "c1"}, "scopes": null}},
                    "domainName": "127.0.0.1",
                    "domainPrefix": "127",
                    "http": {
                        "method": "PUT",
                        "path": "/v1/things/a b",
                        "protocol": "HTTP/1.1",
                        "sourceIp": "127.0.0.1",
                        "userAgent": "test/1",
                    },
                    "requestId": "r1",
                    "routeKey": "PUT /v1/things/{id}",
                    "stage": "$default",
                    "time": "04/Mar/2020:19:03:58 +0000",
                    "timeEpoch": 1_583_348_638_000_i64,
                },
                "body": "{\"a\":1}",
                "isBase64Encoded": false,
            })
        );
    }

    #[test]
    fn a_body_that_is_not_text_is_encoded() {
        for (kind, body) in [
            ("application/octet-stream", &b"\x00\xff"[..]),
            ("application/x-ndjson", b"{}\n"),
            ("application/json", b"\xff"),
        ] {
            let request = put("/v1/things/x").header("content-type", kind);
            let event = event(request.body(body).unwrap(), None);
            assert_eq!(event["isBase64Encoded"], true, "{kind}");
            let decoded = STANDARD.decode(event["body"].as_str().unwrap()).unwrap();
            assert_eq!(decoded, body);
        }
    }

    #[test]
    fn absent_parts_of_a_request_are_absent_in_its_event() {
        let event = event(put("/v1/things/x").body(&b""[..]).unwrap(), None);
        for field in ["body", "cookies", "queryStringParameters"] {
            assert!(event.get(field).is_none(), "{field}");
        }
        assert!(event["requestContext"].get("authorizer").is_none());
        assert_eq!(event["rawQueryString"], "");
    }

    #[test]
    fn the_event_has_the_host_of_the_gateway_and_not_the_host_that_the_client_sent() {
        let request = put("/v1/things/x").header("Host", "1.2.3.999.x");
        let event = event(request.body(&b""[..]).unwrap(), None);
        assert_eq!(event["headers"]["host"], "127.0.0.1:3000");
    }

    #[test]
    fn a_query_that_is_not_utf8_has_no_event() {
        let request = put("/v1/things/x?a=%FF").body(&b""[..]).unwrap();
        assert!(try_event(request, None).is_none());
    }
}
