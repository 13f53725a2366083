//! Tests of an agent that buys for a guest, through the whole system.

use fixture::receiver::{Received, Receiver};
use local::System;
use ring::hmac;
use serde_json::{Value as Json, json};

use crate::support::client::Call;
use crate::support::shop::{moved, path, products, stock};
use crate::support::{drain, with_own_system, with_system};

struct Agent<'a> {
    system: &'a System,
    key: String,
    profile_url: String,
}

impl<'a> Agent<'a> {
    async fn register(system: &'a System, id: &str, profile_url: &str) -> Self {
        let body = json!({ "name": id, "profile_url": profile_url, "scopes": ["catalog", "checkout", "orders"] });
        let put = Call::new("PUT", &path(&["agents", id])).staff().header("if-none-match", "*").json(&body);
        let key = put.send(system).await.expect(201).body["api_key"].as_str().unwrap().to_owned();
        Self { system, key, profile_url: profile_url.to_owned() }
    }

    fn call(&self, method: &str, path: &str, body: &Json) -> Call {
        let call = Call::new(method, path).header("x-api-key", &self.key);
        let call = call.header("ucp-agent", &format!("profile=\"{}\"", self.profile_url));
        if method == "GET" { call } else { call.json(body) }
    }

    async fn send(&self, method: &str, path: &str, body: &Json) -> Json {
        let answer = self.call(method, path, body).send(self.system).await;
        assert!(answer.is_success(), "{method} {path}: {} {}", answer.status, answer.body);
        answer.body
    }
}

const PROFILE: &str = "https://agent.example/profile";
const VERSION: &str = "2026-04-08";

/// Returns the profile of an agent that has all capabilities, and hears of its orders at this address.
fn profile(webhook_url: &str) -> Json {
    let capability = |name: &str| (format!("dev.ucp.shopping.{name}"), json!([{ "version": VERSION }]));
    let names = ["checkout", "cart", "catalog.search", "catalog.lookup", "discount", "fulfillment", "order"];
    let mut capabilities: serde_json::Map<String, Json> = names.into_iter().map(capability).collect();
    capabilities["dev.ucp.shopping.order"][0]["config"] = json!({ "webhook_url": webhook_url });
    json!({ "ucp": { "version": VERSION, "capabilities": capabilities } })
}

fn card() -> Json {
    let credential = json!({ "type": "token", "token": "pm_card_visa" });
    let card = json!({ "id": "card", "handler_id": "stripe", "type": "card", "credential": credential });
    json!({ "payment": { "instruments": [card] } })
}

fn wanted(product: &str, email: &str) -> Json {
    json!({
        "line_items": [{ "item": { "id": product }, "quantity": 2 }],
        "buyer": { "email": email, "first_name": "Gil" },
    })
}

/// Buys two pieces of a product for a guest. Returns the completed checkout.
async fn buy(agent: &Agent<'_>, product: &str, email: &str) -> Json {
    let wanted = wanted(product, email);
    let mut session = agent.send("POST", "/ucp/checkout-sessions", &wanted).await;
    let own = format!("/ucp/checkout-sessions/{}", session["id"].as_str().unwrap());
    // Other tests may have created a shipping zone or a tax rule.
    if session["status"] == "incomplete" {
        let destination = json!({
            "id": "home", "first_name": "Gil", "street_address": "Main Street 1", "address_locality": "Town",
            "postal_code": "8000", "address_country": "CH",
        });
        let mut addressed = wanted.clone();
        addressed["fulfillment"] = json!({ "methods": [{ "type": "shipping", "destinations": [destination] }] });
        session = agent.send("PUT", &own, &addressed).await;
    }
    assert_eq!(session["status"], "ready_for_complete", "{session}");
    let done = agent.send("POST", &format!("{own}/complete"), &card()).await;
    assert_eq!(done["status"], "completed", "{done}");
    done
}

/// Sends the goods of an order, and gives ten cents back.
async fn send_and_refund(system: &System, id: &str) {
    let staff = |method: &str, rest: &[&str]| Call::new(method, &path(&[&["orders", id], rest].concat())).staff();
    let order = staff("GET", &[]).send(system).await.expect(200).body;
    let shipped = moved(system, order, &["picking", "shipped"]).await;
    let payment = shipped["payments"][0]["id"].as_str().unwrap();
    let refund = staff("POST", &["payments", payment, "refunds"]).header("idempotency-key", id);
    let money = json!({ "amount": 10, "currency": shipped["total"]["currency"] });
    let refund = refund.json(&json!({ "amount": money, "reason": "Broken cup" }));
    refund.send(system).await.expect(201);
}

/// Sends what is due to the endpoints, and returns what this one has got.
async fn heard(system: &System, receiver: &Receiver) -> Vec<Received> {
    drain(system).await;
    Call::new("POST", "/_local/invoke/Courier").json(&json!({})).send(system).await.expect(200);
    receiver.received()
}

/// Sells a product to an agent that hears of its order, in a shop that may send its goods.
pub async fn sell(system: &System, id: &str) {
    let price = json!({ "amount": 500, "currency": "USD" });
    let method = json!({ "id": "parcel", "name": "Parcel", "days": [2, 4], "rates": [{ "price": price }] });
    let zone = Call::new("PUT", &path(&["shipping", "zones", id])).staff().header("if-none-match", "*");
    zone.json(&json!({ "countries": ["CH"], "methods": [method] })).send(system).await.expect(201);
    products(system, &[id], 10).await;
    let receiver = Receiver::start().await;
    receiver.serve(profile(&receiver.url).to_string());
    let agent = Agent::register(system, id, &receiver.url).await;
    buy(&agent, id, "agent-guest@example.com").await;
    drain(system).await;
}

#[test]
fn an_agent_finds_goods_buys_them_for_a_guest_and_hears_of_their_shipment_and_their_refund() {
    with_system(async |system| {
        products(system, &["agent-tea"], 10).await;
        drain(system).await;
        let receiver = Receiver::start().await;
        receiver.serve(profile(&receiver.url).to_string());
        let agent = Agent::register(system, "agent-buyer", &receiver.url).await;
        let profile = Call::new("GET", "/.well-known/ucp").send(system).await.expect(200).body;
        let endpoint = profile["ucp"]["services"]["dev.ucp.shopping"][0]["endpoint"].as_str().unwrap();
        assert!(endpoint.starts_with("http://127.0.0.1:") && endpoint.ends_with("/ucp"), "{endpoint}");
        let found = agent.send("POST", "/ucp/catalog/search", &json!({ "query": "agent-tea" })).await;
        let product = &found["products"][0]["variants"][0];
        assert_eq!(product["id"], "agent-tea", "{found}");

        let done = buy(&agent, product["id"].as_str().unwrap(), "agent-guest@example.com").await;
        let id = done["order"]["id"].as_str().unwrap();

        send_and_refund(system, id).await;
        let seen = agent.send("GET", &format!("/ucp/orders/{id}"), &Json::Null).await;
        assert_eq!(seen["line_items"][0]["quantity"], json!({ "original": 2, "total": 2, "fulfilled": 2 }), "{seen}");
        let events: Vec<_> =
            seen["fulfillment"]["events"].as_array().unwrap().iter().map(|event| &event["type"]).collect();
        assert_eq!(events, ["processing", "shipped"]);
        let adjustment = &seen["adjustments"][0];
        let said = (&adjustment["type"], &adjustment["status"], &adjustment["totals"][0]["amount"]);
        assert_eq!(said, (&json!("refund"), &json!("completed"), &json!(-10)), "{seen}");
        // The agent hears of each step with the whole order.
        let told: Vec<Json> =
            heard(system, &receiver).await.iter().map(|told| serde_json::from_str(&told.body).unwrap()).collect();
        assert!(told.len() >= 4 && told.iter().all(|told| told["id"] == id), "{told:?}");
        let has = |told: &&Json| {
            told["adjustments"] == seen["adjustments"] && told["fulfillment"]["events"] == seen["fulfillment"]["events"]
        };
        assert!(told.iter().any(|told| has(&told)), "{told:?}");
        // The buyer's link opens the order without an account.
        let (_, token) = done["order"]["permalink_url"].as_str().unwrap().split_once("#token=").unwrap();
        let guest = Call::new("GET", &path(&["guest", "orders", id])).header("order-token", token);
        assert_eq!(guest.send(system).await.expect(200).body["status"], "shipped");
    });
}

#[test]
fn an_agent_buys_over_acp_and_hears_of_the_shipment_and_the_refund_with_its_secret() {
    with_own_system(async |system| {
        products(system, &["tea"], 10).await;
        let agent = Agent::register(system, "acme", PROFILE).await;
        let receiver = Receiver::start().await;
        let endpoint = json!({ "url": receiver.url, "kinds": [], "agent": "acme" });
        let create = Call::new("POST", "/v1/webhooks/endpoints").staff().header("idempotency-key", "e");
        let secret = create.json(&endpoint).send(system).await.expect(201).body["secret"].as_str().unwrap().to_owned();
        let post = async |path: &str, body: &Json| {
            let call = Call::new("POST", path).header("authorization", &format!("Bearer {}", agent.key));
            let answer = call.header("api-version", "2026-04-17").header("idempotency-key", path).json(body);
            answer.send(system).await
        };
        let body = json!({ "line_items": [{ "id": "tea", "quantity": 2 }], "currency": "usd", "capabilities": {},
            "buyer": { "full_name": "Gil Roth", "email": "gil@example.com" } });
        let session = post("/acp/checkout_sessions", &body).await.expect(201).body;
        let own = format!("/acp/checkout_sessions/{}", session["id"].as_str().unwrap());
        let credential = json!({ "type": "spt", "token": "spt_card_visa" });
        let paid = json!({ "payment_data": { "handler_id": "card_tokenized",
            "instrument": { "type": "card", "credential": credential } } });
        let done = post(&format!("{own}/complete"), &paid).await.expect(200).body;
        let id = done["order"]["id"].as_str().unwrap();
        send_and_refund(system, id).await;

        let mut told = Vec::new();
        for request in heard(system, &receiver).await {
            // The secret's text is the key, and the signature is that of the second and the body.
            let (time, tag) = request.header("merchant-signature").split_once(",v1=").unwrap();
            let text = format!("{}.{}", time.strip_prefix("t=").unwrap(), request.body);
            let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
            let expected = hmac::sign(&key, text.as_bytes());
            let hexadecimal: String = expected.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(tag, hexadecimal);
            told.push(serde_json::from_str::<Json>(&request.body).unwrap());
        }
        let kinds: Vec<&str> = told.iter().map(|told| told["type"].as_str().unwrap()).collect();
        assert_eq!(kinds.iter().filter(|kind| **kind == "order_create").count(), 1, "{kinds:?}");
        assert!(told.iter().all(|told| told["data"]["id"] == id), "{told:?}");
        let shown = |told: &&Json| {
            let order = &told["data"];
            let events: Vec<&Json> =
                order["fulfillments"][0]["events"].as_array().unwrap().iter().map(|event| &event["type"]).collect();
            let is_back = |total: &Json| total["type"] == "amount_refunded" && total["amount"] == 10;
            (&order["status"], &order["fulfillments"][0]["type"]) == (&json!("shipped"), &json!("shipping"))
                && order["line_items"][0]["quantity"] == json!({ "ordered": 2, "current": 2, "fulfilled": 2 })
                && events == ["processing", "shipped"]
                && order["adjustments"][0]["amount"] == 10
                && order["totals"].as_array().unwrap().iter().any(is_back)
        };
        assert!(told.iter().any(|told| shown(&told)), "{told:?}");
    });
}

#[test]
fn a_purchase_whose_function_dies_after_the_order_is_placed_is_completed_by_its_repetition() {
    with_own_system(async |system| {
        products(system, &["tea"], 10).await;
        let agent = Agent::register(system, "acme", PROFILE).await;
        let session = agent.send("POST", "/ucp/checkout-sessions", &wanted("tea", "gil@example.com")).await;
        let own = format!("/ucp/checkout-sessions/{}", session["id"].as_str().unwrap());
        let fault = json!({ "target": "function:Agents", "kind": "crash", "point": "checkouts.placed", "count": 1 });
        Call::new("POST", "/_local/faults").json(&fault).send(system).await.expect(204);
        let complete = || {
            let call = agent.call("POST", &format!("{own}/complete"), &card());
            call.header("idempotency-key", "once").send(system)
        };
        assert!(complete().await.status >= 500);
        assert_eq!(stock(system, "tea").await, 8);
        let seen = agent.send("GET", &own, &Json::Null).await;
        assert_eq!((&seen["status"], seen.get("order")), (&json!("ready_for_complete"), None), "{seen}");
        let done = complete().await.expect(200).body;
        assert_eq!(done["status"], "completed", "{done}");
        assert_eq!(complete().await.expect(200).body, done);
        assert_eq!(stock(system, "tea").await, 8);
        let found = Call::new("GET", "/v1/orders?status=paid").staff().send(system).await.expect(200).body;
        assert_eq!(found["items"].as_array().unwrap().len(), 1, "{found}");
    });
}
