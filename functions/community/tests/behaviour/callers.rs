//! Tests of the route without an authorizer: the function itself verifies the token.

use fixture::Trouble;
use futures::future::join_all;
use http_api::sample::{Answered, Call};
use serde_json::{Value, json};

use crate::town::{Town, count_of};

/// Builds the request for a product's likes with a token, but without claims from the gateway.
fn asked_with(token: &str) -> Call {
    count_of("p").header("authorization", &format!("Bearer {token}"))
}

async fn seen(town: &Town, call: Call) -> Value {
    let answer = town.ok(call).await;
    // The response depends on the caller, so no cache may keep it.
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    answer.body
}

fn of(count: u64, liked_by_me: bool) -> Value {
    json!({ "count": count, "liked_by_me": liked_by_me })
}

#[tokio::test]
async fn a_valid_token_costs_one_more_read_than_an_anonymous_request() {
    let town = Town::open(&["a"], &["p"]).await;
    let cost = async |call: Call| {
        town.ok(call).await;
        let mut used: Vec<_> =
            town.app.services.table.meter().take().iter().map(|cost| (cost.pattern.id, cost.requests)).collect();
        used.sort_unstable();
        used
    };
    assert_eq!(cost(count_of("p")).await, [("likes.count", 1), ("likes.product", 1)]);
    assert_eq!(cost(asked_with("x.y.z")).await, [("likes.count", 1), ("likes.product", 1)]);
    let token = town.issuer.token(&json!({ "sub": "a" }));
    assert_eq!(cost(asked_with(&token)).await, [("likes.count", 1), ("likes.get", 1), ("likes.product", 1)]);
}

#[tokio::test]
async fn a_request_with_a_token_gets_503_while_the_issuer_is_unreachable() {
    let town = Town::open(&["a"], &["p"]).await;
    town.like("a", "p").await;
    town.issuer.trouble(Some(Trouble::Status(500)));
    let token = town.issuer.token(&json!({ "sub": "a" }));
    let answer: Answered = town.send(asked_with(&token)).await;
    assert_eq!((answer.status, answer.code(), answer.header("retry-after")), (503, Some("unavailable"), Some("1")));
    assert_eq!(seen(&town, count_of("p")).await, of(1, false), "a request without a token succeeds");
    assert_eq!(seen(&town, asked_with("none")).await, of(1, false));
}

#[tokio::test]
async fn fifty_concurrent_callers_each_see_only_their_own_like() {
    let names: Vec<String> = (0..50).map(|n| format!("c{n}")).collect();
    let everybody: Vec<&str> = names.iter().map(String::as_str).collect();
    let town = Town::open(&everybody, &["p"]).await;
    for name in everybody.iter().step_by(2) {
        town.like(name, "p").await;
    }
    let tokens: Vec<String> = everybody.iter().map(|name| town.issuer.token(&json!({ "sub": name }))).collect();
    let answers = join_all(tokens.iter().map(|token| seen(&town, asked_with(token)))).await;
    for (n, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer, of(25, n % 2 == 0), "{n}");
    }
    assert_eq!(town.issuer.asked(), 1);
}

/// On the routes with an authorizer the gateway verifies the token. There the function trusts only
/// the gateway's claims.
#[tokio::test]
async fn a_token_that_the_gateway_did_not_verify_gives_no_access() {
    let town = Town::open(&["a"], &["p"]).await;
    let token = format!("Bearer {}", town.issuer.token(&json!({ "sub": "a", "cognito:groups": ["staff"] })));
    for call in [
        Call::new("PUT /v1/customers/{id}/likes/{product}").path("id", "a").path("product", "p"),
        Call::new("GET /v1/customers/{id}/likes").path("id", "a"),
        Call::new("GET /v1/products/{id}/likers").path("id", "p"),
    ] {
        assert_eq!(town.send(call.header("authorization", &token)).await.code(), Some("unauthenticated"));
    }
    assert_eq!((town.count("p").await, town.issuer.asked()), (0, 0));
}
