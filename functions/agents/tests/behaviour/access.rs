//! Tests of the keys and the scopes of agents.

use http_api::sample::Call;
use serde_json::{Value, json};

use crate::shop::{CREATE, PUT_AGENT, READ, Shop, codes, on_host, profile, refused, registration, wanted, with};

pub const ROUTES: [&str; 13] = [
    "POST /ucp/checkout-sessions",
    "GET /ucp/checkout-sessions/{id}",
    "PUT /ucp/checkout-sessions/{id}",
    "POST /ucp/checkout-sessions/{id}/complete",
    "POST /ucp/checkout-sessions/{id}/cancel",
    "POST /ucp/carts",
    "GET /ucp/carts/{id}",
    "PUT /ucp/carts/{id}",
    "POST /ucp/carts/{id}/cancel",
    "POST /ucp/catalog/search",
    "POST /ucp/catalog/lookup",
    "POST /ucp/catalog/product",
    "GET /ucp/orders/{id}",
];

/// Builds a request of a route, with an id that does not exist.
pub fn request(route: &'static str) -> Call {
    let call = if route.contains("{id}") { on_host(route).path("id", "none") } else { on_host(route) };
    if route.starts_with("GET") { call } else { call.json(&json!({})) }
}

#[tokio::test]
async fn every_route_for_agents_needs_the_present_key_of_an_agent() {
    let shop = Shop::open().await;
    let other = shop.agent("other").await;
    let key = &shop.acme.key;
    let (secret, foreign) = (key.strip_prefix("acme.").unwrap(), format!("other.{}", &key["acme.".len()..]));
    let named = format!("profile=\"{}\"", profile("acme"));
    let is_known = |route: &str| shop.routes.keys().filter(|known| known.contains("/ucp/")).any(|known| known == route);
    assert!(ROUTES.iter().all(|route| is_known(route)));
    assert_eq!(shop.routes.keys().filter(|known| known.contains(" /ucp/")).count(), ROUTES.len());
    for route in ROUTES {
        for wrong in ["", "acme", "acme.", secret, &foreign, "nobody.00", &format!("{key}0"), &"k".repeat(201)] {
            let call = request(route).header("ucp-agent", &named).header("x-api-key", wrong);
            let answer = shop.send(call).await;
            assert_eq!(refused(&answer), (401, "unauthenticated"), "{route} {wrong}: {}", answer.body);
        }
        for call in [request(route).header("ucp-agent", &named), request(route).staff("sam")] {
            assert_eq!(refused(&shop.send(call).await), (401, "unauthenticated"), "{route}");
        }
        let keyed = |header: &str| request(route).header("x-api-key", key).header("ucp-agent", header);
        for header in ["", "acme", "profile=\"http://agent.example/acme\""] {
            let answer = shop.send(keyed(header)).await;
            assert_eq!(refused(&answer), (400, "invalid_profile_url"), "{route} {header}");
        }
        let answer = shop.send(keyed(&format!("profile=\"{}\"", profile("other")))).await;
        assert_eq!(refused(&answer), (403, "profile_not_trusted"), "{route}");
        let message = &answer.body["messages"][0];
        assert_eq!((&message["type"], &message["code"]), (&json!("error"), &json!("profile_not_trusted")));
    }
    assert_eq!(shop.send(other.call(CREATE).json(&wanted(&[("tea", 1)]))).await.status, 201);
}

#[tokio::test]
async fn a_new_key_and_a_removed_agent_take_effect_at_once() {
    let shop = Shop::open().await;
    let session = shop.ready().await;
    let renew = Call::new("POST /v1/agents/{id}/key").path("id", "acme").staff("sam");
    let renewed = shop.expect(200, renew.clone()).await;
    let before = shop.acme.clone();
    assert_eq!(refused(&shop.send(before.about(READ, &session)).await), (401, "unauthenticated"));
    let mut after = before;
    after.key = renewed["api_key"].as_str().unwrap().to_owned();
    assert_eq!(shop.expect(200, after.about(READ, &session)).await["id"], session["id"]);

    let remove = Call::new("DELETE /v1/agents/{id}").path("id", "acme").staff("sam");
    assert_eq!(shop.send(remove.clone()).await.status, 204);
    assert_eq!(refused(&shop.send(after.about(READ, &session)).await), (401, "unauthenticated"));
    assert_eq!(shop.send(remove).await.status, 204);
    assert_eq!(shop.refusal(renew).await, (404, "not_found".to_owned()));

    // Another company gets the same id later.
    let next = shop.agent("acme").await;
    assert_eq!(refused(&shop.send(after.about(READ, &session)).await), (401, "unauthenticated"));
    assert_eq!(codes(&shop.expect(200, next.about(READ, &session)).await), ["not_found"]);
}

#[tokio::test]
async fn an_agent_may_do_what_its_scopes_say() {
    let shop = Shop::open().await;
    for (scope, allowed) in [("catalog", "/catalog/"), ("checkout", "/c"), ("orders", "/orders/")] {
        let agent = shop.agent_with(scope, &with(registration(scope), &json!({ "scopes": [scope] }))).await;
        for route in ROUTES {
            let call = request(route).header("x-api-key", &agent.key);
            let answer = shop.send(call.header("ucp-agent", &format!("profile=\"{}\"", profile(scope)))).await;
            let is_of_checkout = route.contains("/carts") || route.contains("/checkout-sessions");
            let is_allowed = if scope == "checkout" { is_of_checkout } else { route.contains(allowed) };
            assert_eq!(refused(&answer) != (403, "forbidden"), is_allowed, "{scope} {route}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn only_staff_register_agents_and_the_key_is_shown_once() {
    let shop = Shop::open().await;
    let put = |id: &str| Call::new(PUT_AGENT).path("id", id);
    for call in [put("x"), put("x").customer("ann")] {
        let call = call.header("if-none-match", "*").json(&registration("x"));
        assert!(matches!(shop.send(call).await.status, 401 | 403));
    }
    let key = &shop.acme.key;
    let text = |items: &[_]| format!("{items:?}");
    assert!(key.starts_with("acme.") && key.len() == 69, "{key}");
    assert!(!text(&shop.items("").await).contains(&key[5..]), "the table holds the key");
    let read = shop.send(Call::new("GET /v1/agents/{id}").path("id", "acme").staff("sam")).await;
    assert_eq!((read.status, read.version(), read.body.get("api_key")), (200, Some(1), None));
    assert_eq!(read.body["checkouts_per_day"], 10_000);

    let change = with(registration("acme"), &json!({ "name": "Acme", "checkouts_per_day": 3 }));
    let changed = shop.send(put("acme").staff("sam").header("if-match", "\"1\"").json(&change)).await;
    assert_eq!((changed.status, changed.version(), &changed.body["name"]), (200, Some(2), &json!("Acme")));
    assert_eq!(changed.body.get("api_key"), None);
    shop.ready().await;
    for (call, refusal) in [
        (put("acme").header("if-match", "\"1\""), (412, "version_mismatch")),
        (put("none").header("if-match", "\"1\""), (404, "not_found")),
        (put("acme").header("if-none-match", "*"), (409, "already_exists")),
    ] {
        let answer = shop.send(call.staff("sam").json(&change)).await;
        assert_eq!(refused(&answer), refusal, "{}", answer.body);
    }
    for (more, pointer) in [
        (json!({ "profile_url": "http://agent.example/x" }), "/profile_url"),
        (json!({ "profile_url": "https://" }), "/profile_url"),
        (json!({ "scopes": [] }), "/scopes"),
        (json!({ "scopes": ["all"] }), "/scopes/0"),
        (json!({ "checkouts_per_day": 0 }), "/checkouts_per_day"),
        (json!({ "api_key": "acme.1" }), "/api_key"),
        (json!({ "name": "" }), "/name"),
    ] {
        let call = put("x").staff("sam").header("if-none-match", "*").json(&with(registration("x"), &more));
        let answer = shop.send(call).await;
        assert_eq!((answer.status, answer.pointers()), (422, vec![pointer]), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_shop_has_at_most_fifty_agents() {
    let shop = Shop::open().await;
    for number in 2..=50 {
        shop.agent(&format!("a{number:02}")).await;
    }
    let put = |id: &str| Call::new(PUT_AGENT).path("id", id).staff("sam").header("if-none-match", "*");
    let full = shop.send(put("one-more").json(&registration("one-more"))).await;
    assert_eq!(refused(&full), (409, "too_many_agents"));
    let list = shop.expect(200, Call::new("GET /v1/agents").staff("sam")).await;
    let items = list["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["id"], &list["next_cursor"]), (50, &json!("a02"), &Value::Null));
    shop.ok(Call::new("DELETE /v1/agents/{id}").path("id", "a50").staff("sam")).await;
    shop.agent("one-more").await;
}
