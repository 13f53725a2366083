//! Tests of the Agentic Commerce Protocol. Its own JSON Schema checks the requests and the responses.

use std::sync::LazyLock;

use boon::{Compiler, SchemaIndex, Schemas};
use http_api::sample::{Answered, Call};
use key_schema::order::OrderStatus;
use key_schema::promotion::Conditions;
use serde_json::{Value, json};

use crate::shop::{Shop, on_host, registration, with};

pub const CREATE: &str = "POST /acp/checkout_sessions";
pub const READ: &str = "GET /acp/checkout_sessions/{id}";
pub const UPDATE: &str = "POST /acp/checkout_sessions/{id}";
pub const COMPLETE: &str = "POST /acp/checkout_sessions/{id}/complete";
pub const CANCEL: &str = "POST /acp/checkout_sessions/{id}/cancel";

/// The schemas of the protocol's repository, without their texts.
fn schema() -> Value {
    serde_json::from_str(include_str!("../acp.schema.json")).unwrap()
}

pub fn check(name: &str, value: &Value) {
    static SCHEMA: LazyLock<Value> = LazyLock::new(schema);
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    let location = "https://bodega.example/acp";
    compiler.add_resource(location, with(SCHEMA.clone(), &json!({ "$id": location }))).unwrap();
    let index: SchemaIndex = compiler.compile(&format!("{location}#/$defs/{name}"), &mut schemas).unwrap();
    if let Err(error) = schemas.validate(value, index) {
        panic!("{name}: {error:#}\n{value}");
    }
}

/// Checks a checkout. The schema of a completed one forbids its own member `order`, which is checked alone.
fn check_session(session: &Value) {
    let mut rest = session.clone();
    if let Some(order) = rest.as_object_mut().unwrap().remove("order") {
        check("Order", &order);
    }
    check("CheckoutSession", &rest);
}

#[tokio::test]
async fn an_agent_finds_the_shop_by_its_domain() {
    let shop = Shop::open().await;
    let answer = shop.send(on_host("GET /.well-known/acp.json")).await;
    assert!(answer.header("cache-control").is_some_and(|control| control.starts_with("public, max-age=3600")));
    check("DiscoveryResponse", &answer.body);
    assert_eq!(answer.body["api_base_url"], "https://api.example/acp");
}

pub fn call(shop: &Shop, route: &'static str, key: &str) -> Call {
    let bearer = format!("Bearer {}", shop.acme.key);
    let call = on_host(route).header("authorization", &bearer).header("api-version", "2026-04-17");
    if route.starts_with("GET") { call } else { call.header("idempotency-key", key) }
}

pub fn about(shop: &Shop, route: &'static str, session: &Value, key: &str) -> Call {
    call(shop, route, key).path("id", session["id"].as_str().unwrap())
}

pub fn wanted(quantity: u64) -> Value {
    json!({ "line_items": [{ "id": "tea", "quantity": quantity }], "currency": "usd", "capabilities": {} })
}

pub fn buyer() -> Value {
    json!({ "buyer": { "full_name": "Gil Roth", "email": "gil@example.com" } })
}

pub fn address(country: &str) -> Value {
    json!({ "fulfillment_details": { "name": "Gil Roth", "email": "gil@example.com", "phone_number": "+41791234567",
        "address": { "name": "Gil Roth", "line_one": "Main Street 1", "city": "Town", "state": "", "country": country,
            "postal_code": "8000" } } })
}

pub fn card(token: &str) -> Value {
    let body = json!({ "payment_data": { "handler_id": "card_tokenized",
        "instrument": { "type": "card", "credential": { "type": "spt", "token": token } } } });
    check("CheckoutSessionCompleteRequest", &body);
    body
}

async fn begin(shop: &Shop, key: &str, body: &Value) -> Value {
    let session = shop.expect(201, call(shop, CREATE, key).json(body)).await;
    check_session(&session);
    session
}

fn codes(session: &Value) -> Vec<(&str, &str)> {
    let messages = session["messages"].as_array().unwrap().iter();
    messages.map(|message| (message["code"].as_str().unwrap(), message["param"].as_str().unwrap_or_default())).collect()
}

fn refused(answer: &Answered) -> (u16, &str) {
    check("Error", &answer.body);
    (answer.status, answer.code().unwrap_or_default())
}

#[tokio::test]
async fn an_agent_buys_as_a_guest_and_changes_only_what_it_names() {
    let shop = Shop::open().await;
    shop.ship().await;
    shop.promote("TEN", Conditions::default()).await;
    let started = begin(&shop, "c", &wanted(2)).await;
    assert_eq!(started["status"], "not_ready_for_payment");
    let missing = codes(&started);
    assert!(missing.contains(&("missing", "$.buyer.email")), "{missing:?}");
    assert!(missing.contains(&("missing", "$.fulfillment_details.address")), "{missing:?}");

    let mut key = 0;
    let mut update = async |more: &Value| {
        check("CheckoutSessionUpdateRequest", more);
        key += 1;
        let session = shop.expect(200, about(&shop, UPDATE, &started, &key.to_string()).json(more)).await;
        check_session(&session);
        session
    };
    let addressed = update(&address("CH")).await;
    assert_eq!((&addressed["status"], codes(&addressed)), (&json!("ready_for_payment"), vec![]), "{addressed}");
    assert_eq!(addressed["buyer"]["email"], "gil@example.com");
    assert_eq!(addressed["selected_fulfillment_options"][0]["option_id"], "parcel");
    let options: Vec<&Value> =
        addressed["fulfillment_options"].as_array().unwrap().iter().map(|option| &option["id"]).collect();
    assert_eq!(options, ["parcel", "courier"]);
    let chosen =
        json!({ "selected_fulfillment_options": [{ "type": "shipping", "option_id": "courier", "item_ids": [] }] });
    let chosen = update(&chosen).await;
    assert_eq!(chosen["selected_fulfillment_options"][0]["option_id"], "courier");
    let reduced = update(&json!({ "discounts": { "codes": ["TEN", "WRONG"] } })).await;
    assert_eq!(reduced["discounts"]["applied"][0]["amount"], 100);
    assert_eq!(reduced["discounts"]["rejected"][0]["code"], "WRONG");
    let more = update(&json!({ "line_items": [{ "id": "tea" }, { "id": "tea" }, { "id": "tea" }] })).await;
    assert_eq!((&more["line_items"][0]["quantity"], &more["line_items"][0]["unit_amount"]), (&json!(3), &json!(500)));
    let total = |session: &Value, kind: &str| {
        session["totals"]
            .as_array()
            .unwrap()
            .iter()
            .find(|total| total["type"] == kind)
            .map(|total| total["amount"].clone())
    };
    // 15 dollars less ten percent, and the courier for 20.
    assert_eq!((total(&more, "subtotal"), total(&more, "total")), (Some(json!(1350)), Some(json!(3350))));
    assert_eq!(more["fulfillment_details"]["address"]["line_one"], "Main Street 1");

    let done = shop.expect(200, about(&shop, COMPLETE, &started, "pay").json(&card("spt_card_visa"))).await;
    check_session(&done);
    assert_eq!((&done["status"], &done["order"]["checkout_session_id"]), (&json!("completed"), &started["id"]));
    assert_eq!((&done["order"]["status"], &done["order"]["totals"]), (&json!("confirmed"), &done["totals"]));
    let orders = shop.orders().await;
    assert_eq!(
        (orders[0].head.status, orders[0].head.total.amount, shop.stock("tea").await),
        (OrderStatus::Paid, 3350, 7)
    );
    let again = shop.expect(200, about(&shop, COMPLETE, &started, "pay").json(&card("spt_card_visa"))).await;
    assert_eq!((&again["order"], shop.orders().await.len()), (&done["order"], 1));
    let read = shop.expect(200, about(&shop, READ, &started, "")).await;
    check_session(&read);
    assert_eq!(read["order"], done["order"]);
    let answer = shop.send(about(&shop, CANCEL, &started, "x")).await;
    assert_eq!(refused(&answer), (405, "not_cancelable"));
}

#[tokio::test]
async fn an_agent_without_the_scope_of_orders_sees_that_its_order_is_placed_and_no_more() {
    let mut shop = Shop::open().await;
    shop.acme = shop.agent_with("poor", &with(registration("poor"), &json!({ "scopes": ["checkout"] }))).await;
    let session = begin(&shop, "c", &with(wanted(1), &buyer())).await;
    let done = shop.expect(200, about(&shop, COMPLETE, &session, "pay").json(&card("spt_card_visa"))).await;
    check_session(&done);
    let names: Vec<&String> = done["order"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["checkout_session_id", "id", "order_number", "permalink_url", "type"]);
}

#[tokio::test]
async fn null_clears_what_an_agent_has_said() {
    let shop = Shop::open().await;
    let session = begin(&shop, "c", &with(wanted(1), &with(buyer(), &address("CH")))).await;
    let cleared = json!({ "buyer": null, "fulfillment_details": null });
    let cleared = shop.expect(200, about(&shop, UPDATE, &session, "u").json(&cleared)).await;
    check_session(&cleared);
    assert_eq!((cleared.get("buyer"), cleared.get("fulfillment_details")), (None, None));
    let empty = shop.send(about(&shop, UPDATE, &session, "v").json(&json!({ "line_items": [] }))).await;
    assert_eq!(refused(&empty), (400, "invalid"));
}

#[tokio::test]
async fn the_contact_is_the_buyer_as_far_as_the_agent_names_none() {
    let shop = Shop::open().await;
    let mailed = |email: &str| json!({ "fulfillment_details": { "name": "Ann Roth", "email": email } });
    let session = begin(&shop, "c", &with(wanted(1), &mailed("typo@example.com"))).await;
    assert_eq!(session["buyer"]["email"], "typo@example.com");
    let update = async |key: &str, more: Value| {
        shop.expect(200, about(&shop, UPDATE, &session, key).json(&more)).await["buyer"].clone()
    };
    assert_eq!(update("1", mailed("ann@example.com")).await["email"], "ann@example.com");
    let named = update("2", json!({ "buyer": { "email": "gil@example.com" } })).await;
    assert_eq!((&named["email"], &named["first_name"]), (&json!("gil@example.com"), &json!("Ann Roth")));
    assert_eq!(update("3", json!({ "fulfillment_details": null })).await["email"], "gil@example.com");
}

#[tokio::test]
async fn only_a_change_that_counts_cancels_an_order_that_waits_for_its_payment() {
    let shop = Shop::open().await;
    let session = begin(&shop, "c", &with(wanted(2), &buyer())).await;
    shop.send(about(&shop, COMPLETE, &session, "pay").json(&card("spt_card_chargeDeclined"))).await;
    let status = async || shop.orders().await[0].head.status;
    assert_eq!((status().await, shop.stock("tea").await), (OrderStatus::Pending, 8));
    let long = json!({ "buyer": { "email": "x".repeat(5000) } });
    for (key, wrong) in [("1", json!({ "line_items": [] })), ("2", long), ("3", json!({ "line_items": "tea" }))] {
        let answer = shop.send(about(&shop, UPDATE, &session, key).json(&wrong)).await;
        assert_eq!((answer.status, status().await), (400, OrderStatus::Pending), "{}", answer.body);
    }
    shop.expect(200, about(&shop, UPDATE, &session, "4").json(&json!({}))).await;
    assert_eq!((status().await, shop.stock("tea").await), (OrderStatus::Cancelled, 10));
}

#[tokio::test]
async fn a_key_is_required_and_belongs_to_one_endpoint_and_one_meaning() {
    let shop = Shop::open().await;
    let body = with(wanted(1), &buyer());
    let bare = || call(&shop, CREATE, "").json(&body);
    assert_eq!(refused(&shop.send(bare().header("idempotency-key", "")).await).0, 400);
    let first = shop.send(call(&shop, CREATE, "k").header("request-id", "r1").json(&body)).await;
    assert_eq!((first.header("idempotency-key"), first.header("request-id")), (Some("k"), Some("r1")));
    assert_eq!(first.header("idempotent-replayed"), None);
    let odd = shop.send(call(&shop, CREATE, "odd").header("request-id", "r\u{e9}").json(&body)).await;
    assert_eq!((odd.status, odd.header("request-id")), (201, None), "{}", odd.body);
    let other_spelling = r#"{ "buyer": {"email": "gil@example.com", "full_name": "Gil Roth"}, "capabilities": {},
        "currency": "usd", "line_items": [{"quantity": 1.0, "id": "tea"}] }"#;
    let text = call(&shop, CREATE, "k").header("content-type", "application/json").body(other_spelling);
    for call in [call(&shop, CREATE, "k").json(&body), text] {
        let again = shop.send(call).await;
        assert_eq!((again.status, &again.body["id"]), (201, &first.body["id"]), "{}", again.body);
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
    }
    for other in [with(wanted(2), &buyer()), with(body.clone(), &json!({ "discounts": null }))] {
        let answer = shop.send(call(&shop, CREATE, "k").json(&other)).await;
        assert_eq!(refused(&answer), (422, "idempotency_conflict"));
    }
    // Another endpoint has its own keys.
    let cancelled = shop.send(about(&shop, CANCEL, &first.body, "k")).await;
    assert_eq!((cancelled.status, &cancelled.body["status"]), (200, &json!("canceled")), "{}", cancelled.body);
    check_session(&cancelled.body);
    assert_eq!(shop.send(about(&shop, CANCEL, &first.body, "k")).await.status, 200, "the first response");
    assert_eq!(refused(&shop.send(about(&shop, CANCEL, &first.body, "l")).await), (405, "not_cancelable"));
}

#[tokio::test]
async fn an_error_has_the_protocols_form() {
    let shop = Shop::open().await;
    let other = shop.agent("other").await;
    let poor = shop.agent_with("poor", &with(registration("poor"), &json!({ "scopes": ["catalog"] }))).await;
    let session = begin(&shop, "c", &wanted(1)).await;
    let body = wanted(1);
    let create = || call(&shop, CREATE, "k").json(&body);
    for (call, refusal) in [
        (create().header("authorization", ""), (401, "unauthenticated")),
        (create().header("authorization", &shop.acme.key), (401, "unauthenticated")),
        (create().header("authorization", &format!("Bearer {}0", shop.acme.key)), (401, "unauthenticated")),
        (create().header("authorization", &format!("Bearer {}", poor.key)), (403, "forbidden")),
        (create().header("api-version", ""), (400, "unsupported_api_version")),
        (create().header("api-version", "2025-09-29"), (400, "unsupported_api_version")),
        (call(&shop, CREATE, "k").json(&json!({ "currency": "usd" })), (400, "invalid")),
        (call(&shop, CREATE, "k").json(&json!({ "line_items": [{ "id": "none" }] })), (400, "out_of_stock")),
        (about(&shop, READ, &json!({ "id": "none" }), ""), (404, "not_found")),
        (about(&shop, COMPLETE, &json!({ "id": "none" }), "k").json(&card("spt_x")), (404, "not_found")),
        (
            about(&shop, READ, &session, "").header("authorization", &format!("Bearer {}", other.key)),
            (404, "not_found"),
        ),
    ] {
        let answer = shop.send(call).await;
        assert_eq!(refused(&answer), refusal, "{}", answer.body);
    }
    let answer = shop.send(on_host(CREATE).header("authorization", &format!("Bearer {}", shop.acme.key))).await;
    assert_eq!(refused(&answer), (400, "missing_api_version"));
    assert_eq!(answer.body["supported_versions"], json!(["2026-04-17"]));

    let ready = shop.expect(200, about(&shop, UPDATE, &session, "u").json(&buyer())).await;
    let no_token = "$.payment_data.instrument.credential.token";
    for (token, param) in [("tok_1", no_token), ("spt_card_chargeDeclined", "$.payment_data")] {
        let seen = shop.expect(200, about(&shop, COMPLETE, &ready, token).json(&card(token))).await;
        check_session(&seen);
        assert_eq!(codes(&seen), [("payment_declined", param)], "{seen}");
        assert_eq!((&seen["status"], seen.get("order")), (&json!("ready_for_payment"), None));
    }
}
