//! Tests that a Lambda function responds to every invocation, even a malformed one.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::time::Duration;

use lambda_http::http::StatusCode;
use lambda_runtime::LambdaEvent;
use proptest::prelude::*;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::fields::{array, boolean, instant, integer, long_text, map, money, parsed, text};
use crate::{BODY_LIMIT, Keys, Object, Payload, Problem, Request, Response, Routes, sample::Call};
use key_schema::cursor::Cursors;
use key_schema::id::{CustomerId, ProductId};

async fn ask(cursors: &Keys<Cursors>, request: &Request<'_>) -> Result<Response, Problem> {
    let page = request.page(cursors, "test", &[]).await;
    let asked = [
        request.path::<CustomerId>("id").and_then(|id| request.owner(&id)).map(|_| ()),
        request.staff().map(|_| ()),
        request.if_match().map(|_| ()),
        request.precondition().map(|_| ()),
        request.idempotency_key().map(|_| ()),
        request.fingerprint().map(|_| ()),
        request.query_instant("from").map(|_| ()),
        request
            .lines(BODY_LIMIT)
            .map(|lines| lines.map(|(_, line)| Object::parse(line).is_ok()).filter(|ok| *ok).count())
            .map(|_| ()),
        request.object().and_then(read_everything),
    ];
    let response = page?.answer(&[1], |_| Some("A#B".to_owned())).await?;
    let first_problem = asked.into_iter().find_map(Result::err);
    first_problem.map_or(Ok(response), Err)
}

fn read_everything(mut body: Object<'_>) -> Result<(), Problem> {
    let text = body.required("text", text(1..=5));
    let long = body.optional("long", long_text(1..=5));
    let integer = body.replaced("integer", integer(i64::MIN..=i64::MAX));
    let flag = body.changed("flag", boolean);
    let id = body.optional("id", parsed::<ProductId>);
    let at = body.optional("at", instant);
    let price = body.optional("price", money(0..=i64::MAX));
    let lines = body.optional("lines", array(0..=3, |line| line.object()?.finish(Some(()))));
    let names = body.optional("names", map::<ProductId, _>(3, boolean));
    let texts = text.zip(long).zip(id).zip(at).zip(names);
    body.finish(texts.zip(integer).zip(flag).zip(price).zip(lines))?;
    Ok(())
}

fn cursors() -> Keys<Cursors> {
    Keys::known(Cursors::new("k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=").unwrap())
}

/// Sends an event through all code between the runtime and the handler. The handler calls most
/// readers of [`Request`] and [`Object`].
fn answer(event: Option<&str>) -> Value {
    let routes = Routes::new()
        .on("POST /v1/things/{id}", |cursors, request| Box::pin(ask(cursors, request)))
        .on("GET /v1/things/{id}", |cursors, request| Box::pin(ask(cursors, request)))
        .on("GET /v1/things", |cursors, request| Box::pin(ask(cursors, request)));
    let served = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(routes.serve(
        &cursors(),
        event,
        "r1",
        Duration::from_secs(1),
    ));
    let line =
        crate::observe::line(&served, Duration::ZERO, &[], "r1", None).to_json(std::time::SystemTime::UNIX_EPOCH);
    assert!(!line.contains('\n'));
    let reply = serde_json::to_value(&served.reply).unwrap();
    let status = reply["statusCode"].as_u64().unwrap();
    assert!((200..600).contains(&status), "{reply}");
    assert_ne!(status, 500, "{reply}");
    for (name, value) in reply["headers"].as_object().unwrap() {
        assert!(lambda_http::http::HeaderValue::from_str(value.as_str().unwrap()).is_ok(), "{name}: {value}");
    }
    reply
}

fn code(reply: &Value) -> String {
    let body: Value = serde_json::from_str(reply["body"].as_str().unwrap()).unwrap();
    body["code"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn an_invalid_event_gets_a_problem_and_not_a_function_error() {
    for event in [None, Some(""), Some("{"), Some("null"), Some(r#"{"Records":[]}"#), Some(r#"{"body":"\ud800"}"#)] {
        let reply = answer(event);
        assert_eq!(
            (reply["statusCode"].as_u64(), code(&reply).as_str()),
            (Some(400), "malformed_request"),
            "{event:?}"
        );
    }
}

#[test]
fn the_runtime_accepts_every_payload() {
    for payload in [&b""[..], b"{", b"\xff", b"nul", b"{\"a\":\"\xff\"}", b"{} trailing"] {
        let read = Payload::deserialize(&mut serde_json::Deserializer::from_slice(payload)).unwrap();
        let event = LambdaEvent::new(read, lambda_runtime::Context::default());
        answer(event.payload.0.as_deref().map(serde_json::value::RawValue::get));
    }
}

#[test]
fn an_event_gets_a_response_even_if_it_makes_the_adapter_of_lambda_http_panic() {
    let odd: [fn(&mut Value); 5] = [
        |event| event["headers"]["host"] = "abc.execute-api.127.0.0.1".into(),
        |event| event["rawPath"] = "\\ not a path <>".into(),
        |event| event["requestContext"]["domainName"] = "::::".into(),
        |event| {
            event["isBase64Encoded"] = true.into();
            event["body"] = "not base64!".into();
        },
        |event| event["headers"]["a header with spaces"] = "\u{0}".into(),
    ];
    for change in odd {
        let mut event = Call::new("POST /v1/things/{id}").path("id", "t1").event();
        change(&mut event);
        assert_eq!(code(&answer(Some(&event.to_string()))), "unauthenticated", "{event}");
    }
}

#[test]
fn the_sample_event_of_sam_gets_a_response() {
    // The event is from `sam local generate-event apigateway http-api-proxy`, without the
    // irrelevant members.
    let event = json!({
        "version": "2.0", "routeKey": "$default", "rawPath": "/path/to/resource",
        "rawQueryString": "parameter1=value1&parameter1=value2&parameter2=value", "cookies": ["cookie1", "cookie2"],
        "headers": {"Header1": "value1", "Header2": "value1,value2"},
        "queryStringParameters": {"parameter1": "value1,value2", "parameter2": "value"},
        "requestContext": {
            "authentication": {"clientCert": {"clientCertPem": "CERT_CONTENT"}},
            "authorizer": {"jwt": {"claims": {"claim1": "value1"}, "scopes": ["scope1", "scope2"]}},
            "http": {
                "method": "POST", "path": "/path/to/resource", "protocol": "HTTP/1.1", "sourceIp": "192.168.0.1/32",
            },
            "requestId": "id", "routeKey": "$default", "stage": "$default", "timeEpoch": 1_583_348_638_390_u64,
        },
        "body": "eyJ0ZXN0IjoiYm9keSJ9", "pathParameters": {"parameter1": "value1"}, "isBase64Encoded": true,
    });
    let reply = answer(Some(&event.to_string()));
    assert_eq!((reply["statusCode"].as_u64(), reply["headers"]["x-request-id"].as_str()), (Some(404), Some("id")));
    let mut event = event;
    event["rawPath"] = "/v1/things/t%231".into();
    assert_eq!(code(&answer(Some(&event.to_string()))), "invalid_parameter");
    event["rawQueryString"] = "".into();
    assert_eq!(code(&answer(Some(&event.to_string()))), "unauthenticated");
}

#[test]
fn a_defect_of_a_handler_is_a_500_without_details() {
    let routes = Routes::new()
        .on("GET /header", |(), _| Box::pin(async { Ok(Response::no_content().header("location", "a\r\nb")) }))
        .on("GET /body", |(), _| Box::pin(async { Ok(Response::ok(&std::collections::BTreeMap::from([((1, 2), 3)]))) }))
        .on("GET /path", |(), request| {
            Box::pin(async { request.path::<CustomerId>("id").map(|_| Response::no_content()) })
        });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    for route in ["GET /header", "GET /body", "GET /path"] {
        let event = Call::new(route).event().to_string();
        let reply = runtime.block_on(routes.serve(&(), Some(&event), "r1", Duration::from_secs(1))).reply;
        assert_eq!(reply.status, StatusCode::INTERNAL_SERVER_ERROR, "{route}");
        assert!(reply.body.unwrap().contains("\"detail\":\"An internal error occurred.\""));
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|map| map.into_iter().collect::<Value>()),
        ]
    })
}

const PLACES: &[&str] = &[
    "/version",
    "/routeKey",
    "/rawPath",
    "/rawQueryString",
    "/headers",
    "/queryStringParameters",
    "/pathParameters",
    "/requestContext",
    "/body",
    "/isBase64Encoded",
    "/requestContext/authorizer",
    "/requestContext/authorizer/jwt",
    "/requestContext/authorizer/jwt/claims",
    "/requestContext/authorizer/jwt/claims/sub",
    "/requestContext/authorizer/jwt/claims/cognito:groups",
    "/requestContext/http",
    "/requestContext/http/method",
    "/requestContext/stage",
    "/requestContext/requestId",
    "/requestContext/routeKey",
    "/headers/content-type",
    "/headers/if-match",
    "/headers/if-none-match",
    "/headers/idempotency-key",
    "/pathParameters/id",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_text_as_an_event_makes_the_function_panic(event in any::<String>()) {
        answer(Some(&event));
    }

    #[test]
    fn no_value_in_any_place_of_an_event_makes_the_function_panic(
        place in prop::sample::select(PLACES), value in any_json(), default in any::<bool>(),
    ) {
        let mut event = Call::new("GET /v1/things/{id}").path("id", "t1").staff("s1").query("limit", "5")
            .header("if-match", "\"1\"").header("if-none-match", "*").header("idempotency-key", "k")
            .json(&json!({"text": "a"})).event();
        *event.pointer_mut(place).unwrap() = value;
        if default {
            event["routeKey"] = "$default".into();
        }
        answer(Some(&event.to_string()));
    }

    #[test]
    fn no_text_in_any_request_makes_the_function_panic(
        id in any::<String>(), query in any::<String>(), header in any::<String>(), body in any::<String>(),
        encoded in any::<bool>(),
    ) {
        let mut event = Call::new("GET /v1/things/{id}").path("id", &id).staff("s1").header("if-match", &header)
            .header("idempotency-key", &header).header("content-type", &header).body(body).event();
        event["rawQueryString"] = format!("cursor={query}&limit={query}&{query}").into();
        event["isBase64Encoded"] = encoded.into();
        answer(Some(&event.to_string()));
    }

    #[test]
    fn no_body_makes_the_readers_panic(body in any_json(), name in prop::sample::select(
        &["text", "long", "integer", "flag", "id", "at", "price", "lines", "names", "other"][..])) {
        let document = json!({ "text": "a", name: body }).to_string();
        if let Ok(object) = Object::parse(&document) {
            let _ = read_everything(object);
        }
    }
}
