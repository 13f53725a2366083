//! Tests that each route uses the access patterns that it declares.

use fixture::{Recorder, seed};
use http_api::sample::Call;
use key_schema::promotion::Conditions;
use serde_json::{Value, json};

use crate::access::{ROUTES, request};
use crate::acp;
use crate::shop::{
    CANCEL, COMPLETE, CREATE, ORDER, PUT_AGENT, READ, REPLACE, Shop, on_host, payment, profile, registration, shipping,
    usd, wanted, with,
};

const CREATE_CART: &str = "POST /ucp/carts";

/// Sends a request after the cached settings have expired.
async fn send(recorder: &mut Recorder<'_, Shop>, status: u16, call: Call) -> Value {
    recorder.shop.wait(30);
    recorder.expect(status, call).await
}

async fn manage(recorder: &mut Recorder<'_, Shop>) {
    let put = |condition: &str, tag: &str| Call::new(PUT_AGENT).path("id", "robot").staff("sam").header(condition, tag);
    let body = registration("robot");
    send(recorder, 201, put("if-none-match", "*").json(&body)).await;
    send(recorder, 200, put("if-match", "\"1\"").json(&body)).await;
    send(recorder, 200, Call::new("GET /v1/agents").staff("sam")).await;
    for (status, route) in
        [(200, "GET /v1/agents/{id}"), (200, "POST /v1/agents/{id}/key"), (204, "DELETE /v1/agents/{id}")]
    {
        send(recorder, status, Call::new(route).path("id", "robot").staff("sam")).await;
    }
}

/// Creates a checkout of three teas with everything, and sends this and two further requests twice each.
async fn check_out(recorder: &mut Recorder<'_, Shop>) -> Value {
    let acme = recorder.shop.acme.clone();
    let more = with(shipping("CH", None), &json!({ "discounts": { "codes": ["TEN", "WRONG"] } }));
    let body = with(wanted(&[("tea", 3), ("shirt-m", 1), ("nothing", 1)]), &more);
    let mut session = Value::Null;
    for _ in 0..2 {
        session = send(recorder, 201, acme.call(CREATE).header("idempotency-key", "k1").json(&body)).await;
    }
    for _ in 0..2 {
        let replace = acme.about(REPLACE, &session).header("idempotency-key", "k2").json(&body);
        send(recorder, 200, replace).await;
    }
    recorder.shop.reprice("tea", 550).await;
    send(recorder, 200, acme.about(READ, &session)).await;
    session
}

async fn carts(recorder: &mut Recorder<'_, Shop>) {
    let acme = recorder.shop.acme.clone();
    let body = with(wanted(&[("tea", 1)]), &json!({ "discounts": { "codes": ["TEN", "WRONG"] } }));
    let mut cart = Value::Null;
    for _ in 0..2 {
        cart = send(recorder, 201, acme.call(CREATE_CART).header("idempotency-key", "c1").json(&body)).await;
    }
    for (route, key) in [("PUT /ucp/carts/{id}", "c2"), ("GET /ucp/carts/{id}", "")] {
        let call = acme.about(route, &cart).header("idempotency-key", key);
        send(recorder, 200, if key.is_empty() { call } else { call.json(&body) }).await;
    }
    for status in [201, 200] {
        send(recorder, status, acme.call(CREATE).json(&json!({ "cart_id": cart["id"] }))).await;
    }
    send(recorder, 200, acme.about("POST /ucp/carts/{id}/cancel", &cart).header("idempotency-key", "c3")).await;
}

async fn buy(recorder: &mut Recorder<'_, Shop>, session: &Value) {
    let acme = recorder.shop.acme.clone();
    let complete = |token: &str, key: &str| {
        let buyer = json!({ "buyer": { "email": "eva@example.com", "first_name": "Eva" } });
        acme.about(COMPLETE, session).header("idempotency-key", key).json(&with(payment(token), &buyer))
    };
    // The price changes once.
    recorder.shop.reprice("tea", 600).await;
    send(recorder, 200, complete("pm_card_visa", "k3")).await;
    let body = with(wanted(&[("tea", 2), ("shirt-m", 1)]), &shipping("CH", None));
    for token in ["pm_card_chargeDeclined", "pm_card_threeDSecure2Required"] {
        send(recorder, 200, complete(token, token)).await;
        send(recorder, 200, acme.about(READ, session)).await;
        send(recorder, 200, acme.about(REPLACE, session).json(&body)).await;
    }
    send(recorder, 200, complete("pm_card_chargeDeclined", "k4")).await;
    send(recorder, 200, complete("pm_card_visa", "k5")).await;
    let done = send(recorder, 200, complete("pm_card_visa", "k5")).await;
    assert_eq!(done["status"], "completed", "{done}");
    send(recorder, 200, acme.call(ORDER).path("id", done["order"]["id"].as_str().unwrap())).await;
    let other = recorder.shop.check_out(&[("tea", 1)]).await;
    let address = with(wanted(&[("tea", 1)]), &shipping("CH", None));
    send(recorder, 200, acme.about(REPLACE, &other).json(&address)).await;
    send(recorder, 200, acme.complete(&other, "pm_card_chargeDeclined")).await;
    for _ in 0..2 {
        send(recorder, 200, acme.about(CANCEL, &other).header("idempotency-key", "k6")).await;
    }
}

/// Buys over the Agentic Commerce Protocol.
async fn buy_over_acp(recorder: &mut Recorder<'_, Shop>) {
    let body = with(acp::wanted(2), &json!({ "discounts": { "codes": ["TEN", "WRONG"] } }));
    let mut session = Value::Null;
    for _ in 0..2 {
        session = send(recorder, 201, acp::call(recorder.shop, acp::CREATE, "c").json(&body)).await;
    }
    let about = |shop: &Shop, route, key: &str| acp::about(shop, route, &session, key);
    let ready = with(acp::buyer(), &acp::address("CH"));
    for _ in 0..2 {
        send(recorder, 200, about(recorder.shop, acp::UPDATE, "u").json(&ready)).await;
    }
    send(recorder, 200, about(recorder.shop, acp::COMPLETE, "none").json(&acp::card("none"))).await;
    recorder.shop.reprice("tea", 650).await;
    send(recorder, 200, about(recorder.shop, acp::READ, "")).await;
    recorder.shop.reprice("tea", 700).await;
    send(recorder, 200, about(recorder.shop, acp::COMPLETE, "k0").json(&acp::card("pm_card_visa"))).await;
    for token in ["pm_card_chargeDeclined", "pm_card_threeDSecure2Required"] {
        send(recorder, 200, about(recorder.shop, acp::COMPLETE, token).json(&acp::card(token))).await;
        send(recorder, 200, about(recorder.shop, acp::READ, "")).await;
        send(recorder, 200, about(recorder.shop, acp::UPDATE, &format!("u{token}")).json(&ready)).await;
    }
    send(recorder, 200, about(recorder.shop, acp::COMPLETE, "k1").json(&acp::card("pm_card_chargeDeclined"))).await;
    for _ in 0..2 {
        let done =
            send(recorder, 200, about(recorder.shop, acp::COMPLETE, "k2").json(&acp::card("pm_card_visa"))).await;
        assert_eq!(done["status"], "completed", "{done}");
    }
    let more = with(acp::wanted(1), &ready);
    let other = send(recorder, 201, acp::call(recorder.shop, acp::CREATE, "d").json(&more)).await;
    let about = |shop: &Shop, route, key: &str| acp::about(shop, route, &other, key);
    send(recorder, 200, about(recorder.shop, acp::COMPLETE, "k3").json(&acp::card("pm_card_chargeDeclined"))).await;
    for _ in 0..2 {
        send(recorder, 200, about(recorder.shop, acp::CANCEL, "x")).await;
    }
}

#[tokio::test]
async fn every_route_uses_exactly_the_recorded_patterns() {
    let shop = Shop::open().await;
    shop.ship().await;
    shop.promote("TEN", Conditions::default()).await;
    shop.priced("shirt", 900, 0).await;
    shop.vary("shirt", seed::product("shirt-m", usd(900)), "M", 50).await;
    shop.set_stock("tea", 100).await;
    let mut recorder = Recorder::new(&shop);
    manage(&mut recorder).await;
    for page in ["GET /.well-known/ucp", "GET /.well-known/ucp/2026-04-08", "GET /.well-known/acp.json"] {
        send(&mut recorder, 200, on_host(page)).await;
    }
    let acme = &shop.acme;
    let search = acme.call("POST /ucp/catalog/search").json(&json!({ "query": "tea" }));
    send(&mut recorder, 503, search).await;
    let lookup = json!({ "ids": ["tea", "shirt", "nothing"] });
    send(&mut recorder, 200, acme.call("POST /ucp/catalog/lookup").json(&lookup)).await;
    send(&mut recorder, 200, acme.call("POST /ucp/catalog/product").json(&json!({ "id": "shirt-m" }))).await;
    carts(&mut recorder).await;
    let session = check_out(&mut recorder).await;
    buy(&mut recorder, &session).await;
    buy_over_acp(&mut recorder).await;
    let changes = ROUTES.into_iter().filter(|route| !route.starts_with("GET") && !route.contains("/catalog/"));
    for (number, route) in changes.enumerate() {
        // A result that changes nothing is stored with its key.
        let body = with(wanted(&[("nothing", 1)]), &payment("pm_card_visa"));
        let call =
            request(route).header("x-api-key", &acme.key).header("idempotency-key", &format!("n{number}")).json(&body);
        send(&mut recorder, 200, call.header("ucp-agent", &format!("profile=\"{}\"", profile("acme")))).await;
    }
    for route in ROUTES {
        // The signature names the agent, before it is found to be malformed.
        let call = request(route).header("signature", "").header("signature-input", "");
        recorder.send(call.header("ucp-agent", &format!("profile=\"{}\"", profile("acme")))).await;
    }
    recorder.assert_recorded();
}
