//! Tests of tokens on a public route, while the issuer rotates keys, fails and recovers.
//!
//! The library joserfc made the tokens in `tokens/rs256.json`. The private keys that signed them
//! were never stored, and the tokens expire in 9999.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant as Moment};

use fixture::{TestIssuer, Trouble};
use http_api::sample::{Answered, Call};
use http_api::{Caller, Issuer, Problem, Request, Response, Routes};
use key_schema::instant::Instant;
use serde_json::{Value, json};

const ROUTE: &str = "GET /v1/whoami";
const ANONYMOUS: Value = Value::Null;

async fn whoami(issuer: &Issuer, request: &Request<'_>) -> Result<Response, Problem> {
    Ok(Response::ok(&match issuer.caller(request).await? {
        Caller::Anonymous | Caller::Unnamed(_) => ANONYMOUS,
        Caller::SignedIn(caller) => json!({ "sub": caller.id().as_str(), "staff": caller.is_staff() }),
    }))
}

async fn send(issuer: &Issuer, call: Call) -> Answered {
    call.send(&Routes::new().on(ROUTE, |issuer, request| Box::pin(whoami(issuer, request))), issuer).await
}

fn with(token: &str) -> Call {
    Call::new(ROUTE).header("Authorization", &format!("Bearer {token}"))
}

/// Returns the caller that a token identifies.
async fn who(issuer: &Issuer, token: &str) -> Value {
    let answer = send(issuer, with(token)).await;
    assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")), "{}", answer.body);
    answer.body
}

async fn is_unavailable(issuer: &Issuer, token: &str) {
    let answer = send(issuer, with(token)).await;
    assert_eq!((answer.status, answer.code(), answer.header("retry-after")), (503, Some("unavailable"), Some("1")));
}

fn customer(id: &str) -> Value {
    json!({ "sub": id, "staff": false })
}

/// An issuer may sign tokens for several apps. The function accepts only tokens for the configured
/// apps.
#[tokio::test]
async fn a_token_for_any_audience_of_the_list_is_valid() {
    let test = TestIssuer::start().await;
    let issuer = test.known_for("app, backoffice");
    for claims in [json!({"aud": "app"}), json!({"aud": ["x", "backoffice"]}), json!({"aud": "backoffice"})] {
        let mut claims = claims;
        claims["sub"] = json!("ann");
        assert_eq!(who(&issuer, &test.token(&claims)).await, customer("ann"), "{claims}");
    }
    for aud in [json!("app, backoffice"), json!("app,backoffice"), json!(""), json!(["x"]), json!("App")] {
        assert_eq!(who(&issuer, &test.token(&json!({"sub": "ann", "aud": aud}))).await, ANONYMOUS, "{aud}");
    }
}

/// Starts a test issuer, with a clock in seconds that only the test moves.
async fn with_clock() -> (TestIssuer, Issuer, Arc<AtomicI64>) {
    let test = TestIssuer::start().await;
    let ahead = Arc::new(AtomicI64::new(0));
    let (clock, start) = (Arc::clone(&ahead), Instant::now());
    let known = test.known().with_clock(move || start.plus_seconds(clock.load(Ordering::Relaxed)));
    (test, known, ahead)
}

fn seconds(of: Duration) -> i64 {
    of.as_secs().try_into().unwrap()
}

async fn of_the_fixture() -> (TestIssuer, Issuer, Value) {
    let fixture: Value = serde_json::from_str(include_str!("tokens/rs256.json")).unwrap();
    let test = TestIssuer::start_as(Some("https://issuer.example/pool")).await;
    test.show(fixture["key"].clone());
    let known = test.known();
    (test, known, fixture)
}

#[tokio::test]
async fn a_valid_token_identifies_its_caller() {
    let (_test, issuer, fixture) = of_the_fixture().await;
    for (case, held) in fixture["held"].as_object().unwrap() {
        let expected = json!({ "sub": held["sub"], "staff": held["staff"] });
        assert_eq!(who(&issuer, held["token"].as_str().unwrap()).await, expected, "{case}");
    }
}

#[tokio::test]
async fn a_caller_with_an_invalid_token_is_anonymous() {
    let (_test, issuer, fixture) = of_the_fixture().await;
    for (case, token) in fixture["ignored"].as_object().unwrap() {
        assert_eq!(who(&issuer, token.as_str().unwrap()).await, ANONYMOUS, "{case}");
    }
    let good = fixture["held"]["id token"]["token"].as_str().unwrap();
    for header in ["", "Bearer", "Bearer x", &format!("Basic {good}"), &format!("Bearer {good},Bearer {good}")] {
        let answer = send(&issuer, Call::new(ROUTE).header("authorization", header)).await;
        assert_eq!((answer.status, answer.body), (200, ANONYMOUS), "{header}");
    }
}

#[tokio::test]
async fn a_caller_whose_token_is_altered_at_any_position_is_anonymous() {
    let (_test, issuer, fixture) = of_the_fixture().await;
    let good = fixture["held"]["id token"]["token"].as_str().unwrap();
    for at in (0..good.len()).step_by(3) {
        let mut altered = good.to_owned().into_bytes();
        altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
        assert_eq!(who(&issuer, std::str::from_utf8(&altered).unwrap()).await, ANONYMOUS, "{at}");
    }
}

#[tokio::test]
async fn elliptic_curves_are_accepted_and_a_key_verifies_only_signatures_of_its_own_algorithm() {
    let (test, issuer, fixture) = of_the_fixture().await;
    let token = test.token(&json!({ "sub": "ann", "cognito:groups": ["staff"] }));
    assert_eq!(who(&issuer, &token).await, json!({ "sub": "ann", "staff": true }));
    // An elliptic-curve key signs the token. Then the issuer has an RSA key under that key's id.
    test.rotate("second");
    let token = test.token(&json!({ "sub": "ann" }));
    test.keep_only("first");
    let mut posing = fixture["key"].clone();
    posing["kid"] = "second".into();
    test.show(posing);
    assert_eq!(who(&test.known(), &token).await, ANONYMOUS);
}

#[tokio::test]
async fn keys_that_are_unusable_or_not_for_signatures_are_skipped() {
    let (test, _, fixture) = of_the_fixture().await;
    let good = fixture["held"]["id token"]["token"].as_str().unwrap();
    for change in [
        json!({ "use": "enc" }),
        json!({ "use": ["sig"] }),
        json!({ "alg": "RS512" }),
        json!({ "alg": "ES256" }),
        json!({ "kty": "oct", "k": "AAAA" }),
        json!({ "kty": "EC", "crv": "P-521", "x": "AA", "y": "AA" }),
        json!({ "kty": "EC", "crv": "P-256", "x": "AA", "y": "AA" }),
        json!({ "n": "AQAB" }),
        json!({ "n": "not base64" }),
        json!({ "kid": 7 }),
    ] {
        let test = TestIssuer::start_as(Some("https://issuer.example/pool")).await;
        let mut key = fixture["key"].clone();
        key.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        test.show(key);
        assert_eq!(who(&test.known(), good).await, ANONYMOUS, "{change}");
        assert_eq!(who(&test.known(), &test.token(&json!({ "sub": "bob" }))).await, customer("bob"), "{change}");
    }
    drop(test);
}

#[tokio::test]
async fn a_caller_from_the_gateway_is_trusted_without_a_request_to_the_issuer() {
    let (test, issuer, _) = with_clock().await;
    let token = test.token(&json!({ "sub": "ann" }));
    let answer = send(&issuer, with(&token).staff("sam")).await;
    assert_eq!(answer.body, json!({ "sub": "sam", "staff": true }));
    assert_eq!(send(&issuer, Call::new(ROUTE)).await.body, ANONYMOUS);
    assert_eq!(test.asked(), 0);
}

#[tokio::test]
async fn keys_are_fetched_at_the_first_plausible_token_and_cached_for_an_hour() {
    let (test, issuer, ahead) = with_clock().await;
    for vain in [
        json!({ "iss": "https://other" }),
        json!({ "aud": "other" }),
        json!({ "exp": 1 }),
        json!({ "nbf": 9_999_999_999_u64 }),
    ] {
        assert_eq!(who(&issuer, &test.token(&vain)).await, ANONYMOUS);
    }
    assert_eq!(test.asked(), 0);
    let token = test.token(&json!({ "sub": "ann", "exp": 9_999_999_999_u64 }));
    for _ in 0..3 {
        assert_eq!(who(&issuer, &token).await, customer("ann"));
    }
    assert_eq!(test.asked(), 1);
    ahead.store(seconds(Issuer::MAX_AGE) - 2, Ordering::Relaxed);
    assert_eq!((who(&issuer, &token).await, test.asked()), (customer("ann"), 1));
    // The issuer revokes the key. The function refuses the key after an hour.
    test.rotate("second");
    test.keep_only("second");
    ahead.store(seconds(Issuer::MAX_AGE) + 1, Ordering::Relaxed);
    assert_eq!((who(&issuer, &token).await, test.asked()), (ANONYMOUS, 2));
    // If the clock was set back, the keys are fetched again.
    ahead.store(0, Ordering::Relaxed);
    assert_eq!((who(&issuer, &token).await, test.asked()), (ANONYMOUS, 3));
}

#[tokio::test]
async fn fifty_concurrent_callers_fetch_the_keys_once() {
    let (test, issuer, _) = with_clock().await;
    let tokens: Vec<String> = (0..50).map(|n| test.token(&json!({ "sub": format!("c{n}") }))).collect();
    let seen = futures::future::join_all(tokens.iter().map(|token| who(&issuer, token))).await;
    for (n, seen) in seen.into_iter().enumerate() {
        assert_eq!(seen, customer(&format!("c{n}")));
    }
    assert_eq!(test.asked(), 1);
}

#[tokio::test]
async fn a_new_key_is_found_and_an_unknown_key_causes_one_fetch_per_interval() {
    let (test, issuer, ahead) = with_clock().await;
    let interval = seconds(Issuer::UNKNOWN_KEY_INTERVAL);
    let old = test.token(&json!({ "sub": "old" }));
    assert_eq!(who(&issuer, &old).await, customer("old"));
    test.rotate("second");
    let new = test.token(&json!({ "sub": "new" }));
    assert_eq!(
        (who(&issuer, &new).await, test.asked()),
        (ANONYMOUS, 1),
        "an unknown key causes no fetch during the interval"
    );
    ahead.store(interval + 1, Ordering::Relaxed);
    assert_eq!((who(&issuer, &new).await, test.asked()), (customer("new"), 2));
    assert_eq!((who(&issuer, &old).await, test.asked()), (customer("old"), 2));
    test.rotate("hidden");
    let unknown = test.token(&json!({ "sub": "x" }));
    test.keep_only("second");
    for _ in 0..20 {
        assert_eq!(who(&issuer, &unknown).await, ANONYMOUS);
    }
    assert_eq!(test.asked(), 2);
    ahead.store(2 * interval + 2, Ordering::Relaxed);
    for _ in 0..20 {
        assert_eq!(who(&issuer, &unknown).await, ANONYMOUS);
    }
    assert_eq!((test.asked(), who(&issuer, &new).await), (3, customer("new")));
}

#[tokio::test]
async fn a_plausible_token_gets_503_while_the_keys_are_unavailable() {
    for trouble in [
        Trouble::Status(500),
        Trouble::Status(404),
        Trouble::Status(204),
        Trouble::Redirect,
        Trouble::Text("<html>".to_owned()),
        Trouble::Text("{}".to_owned()),
        Trouble::Text(r#"{"keys":{}}"#.to_owned()),
        Trouble::Text(String::new()),
    ] {
        let (test, issuer, ahead) = with_clock().await;
        let token = test.token(&json!({ "sub": "ann" }));
        test.trouble(Some(trouble.clone()));
        for _ in 0..5 {
            is_unavailable(&issuer, &token).await;
        }
        assert_eq!(test.asked(), 1, "the issuer gets no request during the pause: {trouble:?}");
        assert_eq!(who(&issuer, &test.token(&json!({ "sub": "ann", "exp": 1 }))).await, ANONYMOUS);
        assert_eq!(send(&issuer, Call::new(ROUTE)).await.body, ANONYMOUS);
        test.trouble(None);
        is_unavailable(&issuer, &token).await;
        ahead.store(seconds(Issuer::FAILURE_PAUSE) + 1, Ordering::Relaxed);
        assert_eq!((who(&issuer, &token).await, test.asked()), (customer("ann"), 2), "{trouble:?}");
    }
}

#[tokio::test]
async fn a_list_of_keys_beyond_64_kb_is_refused() {
    for (length, is_accepted) in [(64_000, true), (65_536, false)] {
        let test = TestIssuer::start().await;
        test.show(json!({ "kid": "long", "kty": "oct", "k": "x".repeat(length) }));
        let (issuer, token) = (test.known(), test.token(&json!({ "sub": "ann" })));
        if is_accepted {
            assert_eq!(who(&issuer, &token).await, customer("ann"));
        } else {
            is_unavailable(&issuer, &token).await;
        }
    }
}

#[tokio::test]
async fn an_unreachable_or_different_issuer_gives_503_instead_of_an_anonymous_caller() {
    let test = TestIssuer::start_as(Some("https://issuer.example/pool")).await;
    let token = test.token(&json!({ "sub": "ann" }));
    assert_eq!(who(&test.known(), &token).await, customer("ann"));
    // First, no server listens at the issuer's address. Then an issuer with another name responds
    // there.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone = Issuer::new("https://issuer.example/pool", "shop", Some(&format!("http://{free}"))).unwrap();
    is_unavailable(&gone, &token).await;
    let other = TestIssuer::start_as(Some("https://issuer.example/pool/")).await;
    is_unavailable(&other.known_as("https://issuer.example/pool"), &token).await;
    assert_eq!(other.asked(), 0);
}

#[tokio::test]
async fn a_silent_issuer_delays_concurrent_requests_only_briefly() {
    let (test, issuer, _) = with_clock().await;
    let token = test.token(&json!({ "sub": "ann" }));
    test.trouble(Some(Trouble::Silence));
    let begun = Moment::now();
    futures::future::join_all((0..10).map(|_| is_unavailable(&issuer, &token))).await;
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert_eq!(test.asked(), 1);
}

#[tokio::test]
async fn cached_keys_are_used_for_two_hours_while_their_issuer_is_unavailable() {
    let (test, issuer, ahead) = with_clock().await;
    let token = test.token(&json!({ "sub": "ann", "exp": 9_999_999_999_u64 }));
    assert_eq!(who(&issuer, &token).await, customer("ann"));
    test.trouble(Some(Trouble::Status(503)));
    ahead.store(seconds(Issuer::MAX_AGE) + 1, Ordering::Relaxed);
    for _ in 0..3 {
        assert_eq!(who(&issuer, &token).await, customer("ann"));
    }
    assert_eq!(test.asked(), 2);
    test.rotate("second");
    is_unavailable(&issuer, &test.token(&json!({ "sub": "new" }))).await;
    ahead.store(seconds(Issuer::MAX_STALE) - 2, Ordering::Relaxed);
    assert_eq!(who(&issuer, &token).await, customer("ann"));
    ahead.store(seconds(Issuer::MAX_STALE) + 1, Ordering::Relaxed);
    is_unavailable(&issuer, &token).await;
    test.trouble(None);
    ahead.store(seconds(Issuer::MAX_STALE) + 10, Ordering::Relaxed);
    assert_eq!(who(&issuer, &token).await, customer("ann"));
}
