//! Converts a function's result into an HTTP response (API Gateway's payload format 2.0).

use axum::body::Body;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, SET_COOKIE, TRANSFER_ENCODING};
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::{Map, Value as Json};

/// Reads a function's result. Returns `None` if API Gateway would not accept the result. A result
/// without a status code becomes a JSON body with status 200.
#[must_use]
pub fn read(payload: &[u8]) -> Option<Response> {
    let json: Json = serde_json::from_slice(payload).ok()?;
    match json {
        Json::Object(fields) if fields.contains_key("statusCode") => structured(&fields),
        bare => {
            let body = match bare {
                Json::String(text) => text,
                other => other.to_string(),
            };
            let mut response = Response::new(Body::from(body));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Some(response)
        }
    }
}

/// Ignores the field `multiValueHeaders`, because format 2.0 does not have this field.
fn structured(fields: &Map<String, Json>) -> Option<Response> {
    let status = fields.get("statusCode")?.as_u64()?;
    let status = StatusCode::from_u16(u16::try_from(status).ok()?).ok()?;
    let encoded = match fields.get("isBase64Encoded") {
        None | Some(Json::Null | Json::Bool(false)) => false,
        Some(Json::Bool(true)) => true,
        Some(_) => return None,
    };
    let body = match fields.get("body") {
        None | Some(Json::Null) => Body::empty(),
        Some(Json::String(text)) if encoded => Body::from(STANDARD.decode(text).ok()?),
        Some(Json::String(text)) => Body::from(text.clone()),
        Some(_) => return None,
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;

    let none = Map::new();
    let headers = match fields.get("headers") {
        None | Some(Json::Null) => &none,
        Some(Json::Object(headers)) => headers,
        Some(_) => return None,
    };
    for (name, value) in headers {
        let value = match value {
            Json::String(text) => text.clone(),
            Json::Number(_) | Json::Bool(_) => value.to_string(),
            _ => return None,
        };
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        if [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING].contains(&name) {
            continue; // These headers describe the connection, which belongs to the gateway.
        }
        let value = HeaderValue::from_str(&value).ok()?;
        response.headers_mut().insert(name, value);
    }
    for cookie in fields.get("cookies").and_then(Json::as_array).into_iter().flatten() {
        let cookie = HeaderValue::from_str(cookie.as_str()?).ok()?;
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    Some(response)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use axum::body::to_bytes;
    use serde_json::json;

    use super::*;

    async fn body(response: Response) -> Vec<u8> {
        to_bytes(response.into_body(), 1024).await.unwrap().to_vec()
    }

    fn answer(json: &Json) -> Option<Response> {
        read(json.to_string().as_bytes())
    }

    #[tokio::test]
    async fn the_status_and_headers_and_cookies_and_body_come_from_the_functions_result() {
        let response = answer(&json!({
            "statusCode": 201,
            "headers": {"ETag": "\"1\"", "retry-after": 3, "content-length": "999"},
            "multiValueHeaders": {"x-old": ["1"]},
            "cookies": ["a=1", "b=2"],
            "body": "{}",
        }))
        .unwrap();
        assert_eq!(response.status(), 201);
        assert_eq!(response.headers()["etag"], "\"1\"");
        assert_eq!(response.headers()["retry-after"], "3");
        assert!(response.headers().get("content-length").is_none());
        assert!(response.headers().get("x-old").is_none());
        assert_eq!(response.headers().get_all("set-cookie").iter().count(), 2);
        assert_eq!(body(response).await, b"{}");
    }

    #[tokio::test]
    async fn an_encoded_body_is_decoded() {
        let response = answer(&json!({"statusCode": 200, "body": "AP8=", "isBase64Encoded": true})).unwrap();
        assert_eq!(body(response).await, b"\x00\xff");
    }

    #[tokio::test]
    async fn an_answer_without_a_status_is_a_body_of_json() {
        let response = answer(&json!({"a": 1})).unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "application/json");
        assert_eq!(body(response).await, br#"{"a":1}"#);
        assert_eq!(body(answer(&json!("text")).unwrap()).await, b"text");
    }

    #[test]
    fn a_malformed_response_is_refused() {
        for json in [
            json!({"statusCode": "200"}),
            json!({"statusCode": 99}),
            json!({"statusCode": 70_000}),
            json!({"statusCode": 200, "body": {}}),
            json!({"statusCode": 200, "body": "*", "isBase64Encoded": true}),
            json!({"statusCode": 200, "headers": []}),
            json!({"statusCode": 200, "headers": {"a": []}}),
            json!({"statusCode": 200, "headers": {"a b": "c"}}),
            json!({"statusCode": 200, "headers": {"a": "b\nc"}}),
            json!({"statusCode": 200, "cookies": [1]}),
        ] {
            assert!(answer(&json).is_none(), "{json}");
        }
        assert!(read(b"not json").is_none());
    }
}
