//! Tests of request bodies.

use http_api::sample::Call;
use serde_json::json;

use super::{app, is, post, routes, send};

#[tokio::test]
async fn bodies_that_are_not_json_are_malformed_and_bodies_that_break_the_rules_are_invalid() {
    for malformed in
        ["", "{", "{\"name\":\"a\"", "nope", "{\"name\":\"a\",\"name\":\"b\"}", "{\"name\":\"\\udead\"}", "\u{0}"]
    {
        is(&send(post().header("content-type", "application/json").body(malformed)).await, 400, "malformed_json");
    }
    for (invalid, pointers) in [
        ("[]", vec![""]),
        ("{}", vec!["/name"]),
        (r#"{"name":null}"#, vec!["/name"]),
        (r#"{"name":"a\u0000"}"#, vec!["/name"]),
        (r#"{"name":7,"x~/":1}"#, vec!["/name", "/x~0~1"]),
        (
            r#"{"name":"a","lines":[{"product_id":"","quantity":1.0},{"quantity":1e2},
                {"product_id":"p","quantity":99999999999999999999}]}"#,
            vec![
                "/lines/0/product_id",
                "/lines/0/quantity",
                "/lines/1/product_id",
                "/lines/1/quantity",
                "/lines/2/quantity",
            ],
        ),
        (r#"{"name":"a","lines":[]}"#, vec!["/lines"]),
        (r#"{"name":1e400}"#, vec![""]),
    ] {
        let answer = send(post().body(invalid)).await;
        is(&answer, 422, "invalid_body");
        assert_eq!(answer.pointers(), pointers, "{invalid}");
    }
}

#[tokio::test]
async fn the_type_and_size_of_a_body_are_checked_before_it_is_read() {
    for (media_type, status) in [
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/json; charset=utf-16", 415),
        ("application/json;charset=utf-8", 201),
        ("APPLICATION/JSON", 201),
    ] {
        assert_eq!(
            send(post().header("content-type", media_type).body(r#"{"name":"a"}"#)).await.status,
            status,
            "{media_type}"
        );
    }
    let fits = format!("{{\"name\":\"a\"{}}}", " ".repeat(http_api::BODY_LIMIT - 12));
    assert_eq!(send(post().body(fits.clone())).await.status, 201);
    is(&send(post().body(fits + " ")).await, 413, "body_too_large");
}

#[tokio::test]
async fn a_compressed_body_is_refused_for_its_encoding() {
    let packed = |coding: &str| post().header("content-encoding", coding).body("H4sIAAAAAAAA");
    for coding in ["gzip", "br", "GZIP", "gzip,identity"] {
        let answer = send(packed(coding)).await;
        is(&answer, 415, "unsupported_content_encoding");
        assert_eq!(answer.header("accept-encoding"), Some("identity"), "{coding}");
    }
    let mut event = packed("gzip").event();
    event["isBase64Encoded"] = true.into();
    let answer = routes().answer(&app(), serde_json::from_value(event).unwrap()).await;
    assert_eq!(answer.status_code, 415);
    assert_eq!(send(post().header("content-encoding", "identity").body(r#"{"name":"a"}"#)).await.status, 201);
}

#[tokio::test]
async fn the_gateways_base64_is_decoded() {
    let mut event = post().body("eyJuYW1lIjoiYSJ9").event();
    event["isBase64Encoded"] = true.into();
    let answer = routes().answer(&app(), serde_json::from_value(event.clone()).unwrap()).await;
    assert_eq!(answer.status_code, 201);
    event["body"] = "%".into();
    assert_eq!(routes().answer(&app(), serde_json::from_value(event).unwrap()).await.status_code, 400);
}

#[tokio::test]
async fn lines_are_numbered_as_the_client_counts_them() {
    let import = |media_type: &str| {
        Call::new("POST /v1/things/import").header("content-type", media_type).body("{\"a\":1}\r\n\n{\"b\"\n{}")
    };
    let answer = send(import("application/x-ndjson")).await;
    assert_eq!(
        answer.body["results"],
        json!([{"line": 1, "ok": true}, {"line": 3, "ok": false}, {"line": 4, "ok": true}])
    );
    is(&send(import("application/json")).await, 415, "unsupported_media_type");
    let large = " ".repeat(http_api::MAX_BODY_BYTES + 1);
    is(&send(import("application/x-ndjson").body(large)).await, 413, "body_too_large");
}
