//! Reads the event of an API Gateway HTTP API, payload format 2.0.
//!
//! `lambda_http` can turn such an event into an `http::Request`, but some events make it panic.
//! Examples are a malformed Host header, a path that is no URI, and an invalid base64 body. No
//! event may crash a function. The typed event of `aws_lambda_events` does not panic, but refuses
//! the whole event for one bad value, such as a header name with a space. The client would then get
//! an unexplained 500.
//!
//! This module therefore reads the event as plain JSON, member by member. A member that is missing
//! or has another type counts as absent. The module refuses only events that do not come from an
//! HTTP API. Strings borrow from the event.
//!
//! <https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html>

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::content::MAX_BODY_BYTES;
use crate::json::{Members, Value};

/// Pairs of a name and a value. Pairs that come from a JSON object are sorted by name.
pub(crate) type Pairs<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// The parts of an event that the functions use.
#[derive(Debug)]
pub(crate) struct Event<'a> {
    /// The route's key, such as `GET /v1/orders/{id}`. It is `$default` if the source of the event
    /// has no routes.
    pub route_key: Cow<'a, str>,
    pub method: Cow<'a, str>,
    pub raw_path: Cow<'a, str>,
    pub stage: Cow<'a, str>,
    pub request_id: Cow<'a, str>,
    pub query: Option<Pairs<'a>>,
    pub headers: Pairs<'a>,
    /// The gateway has percent-decoded the parameters once.
    pub path_parameters: Pairs<'a>,
    /// The token's claims, which the gateway's authorizer has verified. Empty without a token.
    pub claims: Members<'a>,
    pub body: Body<'a>,
}

/// The request's body, if it could be read.
#[derive(Debug)]
pub(crate) enum Body<'a> {
    Text(Cow<'a, str>),
    /// The body is too large for any route, and was not decoded.
    TooLarge,
    /// The body is marked as base64 and is not valid base64, or the body is not UTF-8.
    Unreadable,
}

impl<'a> Event<'a> {
    /// Reads an event. Returns `None` when it does not come from an HTTP API.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let mut event = Value::parse(text).ok()?.into_members();
        let mut context = members(&mut event, "requestContext");
        let mut http = members(&mut context, "http");
        let method = text_of(&mut http, "method")?;
        let route_key = text_of(&mut event, "routeKey").or_else(|| text_of(&mut context, "routeKey"));
        let encoded = matches!(event.remove("isBase64Encoded"), Some(Value::Boolean(true)));
        let query_parameters = pairs(&mut event, "queryStringParameters");
        let query = match text_of(&mut event, "rawQueryString") {
            Some(raw) => decode_query(&raw),
            None => Some(query_parameters),
        };
        Some(Self {
            route_key: route_key.unwrap_or(Cow::Borrowed(crate::routes::DEFAULT)),
            method,
            raw_path: text_of(&mut event, "rawPath").unwrap_or_default(),
            stage: text_of(&mut context, "stage").unwrap_or_default(),
            request_id: text_of(&mut context, "requestId").unwrap_or_default(),
            query,
            headers: pairs(&mut event, "headers"),
            path_parameters: pairs(&mut event, "pathParameters"),
            claims: members(&mut members(&mut members(&mut context, "authorizer"), "jwt"), "claims"),
            body: body(text_of(&mut event, "body").unwrap_or_default(), encoded),
        })
    }
}

fn members<'a>(of: &mut Members<'a>, name: &str) -> Members<'a> {
    of.remove(name).unwrap_or_default().into_members()
}

fn text_of<'a>(of: &mut Members<'a>, name: &str) -> Option<Cow<'a, str>> {
    of.remove(name).and_then(Value::into_text)
}

fn pairs<'a>(of: &mut Members<'a>, name: &str) -> Pairs<'a> {
    members(of, name).into_iter().filter_map(|(name, value)| Some((name, value.into_text()?))).collect()
}

/// Splits a query as `application/x-www-form-urlencoded`. Returns `None` when a part is not UTF-8.
fn decode_query<'a>(raw: &str) -> Option<Pairs<'a>> {
    let decode = |text: &str| {
        let spaced = text.replace('+', " ");
        percent_encoding::percent_decode_str(&spaced).decode_utf8().ok().map(|text| Cow::Owned(text.into_owned()))
    };
    raw.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name)?, decode(value)?))
        })
        .collect()
}

/// Reads the body. The gateway encodes a body as base64 unless it treats the body's media type as
/// text. For example, it encodes newline-delimited JSON.
fn body(text: Cow<'_, str>, encoded: bool) -> Body<'_> {
    let bytes = if encoded { text.len() / 4 * 3 } else { text.len() };
    if bytes > MAX_BODY_BYTES + 3 {
        Body::TooLarge
    } else if !encoded {
        Body::Text(text)
    } else {
        let decoded = STANDARD.decode(text.as_bytes()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        decoded.map_or(Body::Unreadable, |text| Body::Text(text.into()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_text_without_escapes_borrows_from_the_event() {
        let text = r#"{"routeKey":"GET /v1/x","body":"plain","requestContext":{"http":{"method":"GET"}}}"#;
        let event = Event::parse(text).unwrap();
        assert!(matches!(event.route_key, Cow::Borrowed("GET /v1/x")));
        assert!(matches!(event.body, Body::Text(Cow::Borrowed("plain"))));
    }

    #[test]
    fn members_of_a_wrong_type_are_taken_as_absent() {
        let text = r#"{"routeKey":7,"rawPath":null,"headers":[],"pathParameters":"x","queryStringParameters":null,
            "body":{},"isBase64Encoded":"true","requestContext":{"http":{"method":"GET"},"authorizer":{"jwt":[]}}}"#;
        let event = Event::parse(text).unwrap();
        assert_eq!(event.route_key, "$default");
        assert!(event.headers.is_empty() && event.claims.is_empty() && event.path_parameters.is_empty());
        assert!(matches!(&event.body, Body::Text(text) if text.is_empty()));
    }

    #[test]
    fn an_event_that_does_not_come_from_an_http_api_is_refused() {
        for text in
            ["", "null", "[]", "{}", r#"{"Records":[]}"#, r#"{"httpMethod":"GET","path":"/","requestContext":{}}"#]
        {
            assert!(Event::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_query_is_decoded_once_and_refused_when_it_is_not_utf_8() {
        assert_eq!(
            decode_query("a=1&&b=x+y%2B%252B&c").unwrap(),
            [("a".into(), "1".into()), ("b".into(), "x y+%2B".into()), ("c".into(), "".into())]
        );
        assert!(decode_query("a=%ff").is_none());
    }

    #[test]
    fn the_decoded_query_parameters_replace_a_missing_raw_query() {
        let text = r#"{"queryStringParameters":{"a":"x y"},"requestContext":{"http":{"method":"GET"}}}"#;
        assert_eq!(Event::parse(text).unwrap().query.unwrap(), [("a".into(), "x y".into())]);
    }

    #[test]
    fn a_base64_body_is_decoded_up_to_the_largest_size_that_a_route_accepts() {
        assert!(matches!(body("e30=".into(), true), Body::Text(text) if text == "{}"));
        for bad in ["e30", "%%%%", "/w=="] {
            assert!(matches!(body(bad.into(), true), Body::Unreadable), "{bad}");
        }
        assert!(matches!(body("a".repeat(MAX_BODY_BYTES + 4).into(), false), Body::TooLarge));
        assert!(matches!(body("AAAA".repeat(MAX_BODY_BYTES / 3 + 2).into(), true), Body::TooLarge));
    }
}
