//! Tests of the endpoints for webhooks, and of the log of deliveries.

use fixture::CURSOR_KEYS;
use fixture::seed::{agent, stored};
use http_api::sample::Call;
use key_schema::id::{AgentId, DeliveryId, EndpointId};
use key_schema::instant::Instant;
use key_schema::webhook_delivery::{Attempt, DeliveryState, LIFETIME_SECONDS, WebhookDelivery};
use key_schema::webhook_endpoint::{self, MAX_ENDPOINTS, WebhookEndpoint};
use key_schema::webhook_secret::WebhookKeys;
use serde_json::{Value, json};

use crate::shop::{Function, Shop};

const CREATE: &str = "POST /v1/webhooks/endpoints";
const LIST: &str = "GET /v1/webhooks/endpoints";
const READ: &str = "GET /v1/webhooks/endpoints/{id}";
const CHANGE: &str = "PUT /v1/webhooks/endpoints/{id}";
const RENEW: &str = "POST /v1/webhooks/endpoints/{id}/secret";
const REMOVE: &str = "DELETE /v1/webhooks/endpoints/{id}";
const DELIVERIES: &str = "GET /v1/webhooks/endpoints/{id}/deliveries";
const DELIVERY: &str = "GET /v1/webhooks/endpoints/{id}/deliveries/{delivery}";
const REDELIVER: &str = "POST /v1/webhooks/endpoints/{id}/deliveries/{delivery}/redelivery";

fn wanted() -> Value {
    json!({ "url": "https://erp.example/hook?shop=1", "kinds": ["order.*", "stock.low"], "description": "The ERP" })
}

fn create(body: &Value) -> Call {
    Call::new(CREATE).staff("sam").json(body)
}

fn at(route: &'static str, endpoint: &Value) -> Call {
    Call::new(route).path("id", endpoint["id"].as_str().unwrap()).staff("sam")
}

fn change(endpoint: &Value, version: u64, body: &Value) -> Call {
    at(CHANGE, endpoint).header("if-match", &format!("\"{version}\"")).json(body)
}

async fn store_delivery(shop: &Shop, endpoint: &Value, number: u8) -> String {
    let id = DeliveryId::generate(Instant::EPOCH.plus_seconds(number.into()), [number; 10]);
    shop.put(&stored(WebhookDelivery {
        id: id.clone(),
        endpoint_id: endpoint["id"].as_str().unwrap().parse::<EndpointId>().unwrap(),
        event_id: format!("{number:032x}"),
        kind: "order.placed".to_owned(),
        body: r#"{"type":"order.placed"}"#.to_owned(),
        signed_headers: None,
        state: DeliveryState::Failed,
        due_at: None,
        tries: 10,
        expires_at: Instant::now().plus_seconds(LIFETIME_SECONDS),
        attempts: vec![Attempt { at: Instant::EPOCH, milliseconds: 12, status: Some(500), error: None }],
    }))
    .await;
    id.to_string()
}

/// Sends each route, in an order in which all succeed, and calls `sent` after each.
pub async fn each(shop: &Shop, function: &Function, mut sent: impl FnMut(&'static str)) {
    let mut endpoint = Value::Null;
    for _ in 0..2 {
        endpoint = function.ok(create(&wanted()).header("idempotency-key", "w")).await.body;
        sent(CREATE);
    }
    shop.put(&stored(agent("acme"))).await;
    function.ok(create(&json!({ "url": "https://agent.example", "kinds": [], "agent": "acme" }))).await;
    sent(CREATE);
    function.ok(Call::new(LIST).staff("sam")).await;
    sent(LIST);
    function.ok(change(&endpoint, 1, &wanted())).await;
    sent(CHANGE);
    let delivery = store_delivery(shop, &endpoint, 1).await;
    let about = |route| {
        let call = at(route, &endpoint);
        let call = if route == RENEW { call.header("if-match", "\"2\"") } else { call };
        if route == DELIVERY || route == REDELIVER { call.path("delivery", &delivery) } else { call }
    };
    for route in [READ, RENEW, DELIVERIES, DELIVERY, REDELIVER, REMOVE] {
        function.ok(about(route)).await;
        sent(route);
    }
}

#[tokio::test]
async fn staff_register_change_and_remove_an_endpoint_and_see_its_secret_once() {
    let function = Shop::open().await.function();
    let made = function.send(create(&wanted())).await;
    assert_eq!(made.status, 201);
    let (endpoint, secret) = (&made.body, made.body["secret"].as_str().unwrap());
    assert!(secret.starts_with("whsec_") && secret.len() == 50, "a secret of 32 bytes");
    assert_eq!(
        (&endpoint["kinds"], &endpoint["enabled"], &endpoint["failing_since"]),
        (&json!(["order.*", "stock.low"]), &json!(true), &Value::Null)
    );
    let read = function.ok(at(READ, endpoint)).await;
    assert_eq!((read.body.get("secret"), read.version()), (None, Some(1)));
    assert!(!function.ok(Call::new(LIST).staff("sam")).await.body.to_string().contains("whsec_"));
    let items = function.items("WEBHOOKS").await;
    assert_eq!(items.len(), 2);
    assert!(!serde_json::to_string(&items).unwrap().contains(&secret["whsec_".len()..]), "no item has the secret");

    let off = json!({ "url": "https://other.example", "kinds": ["*"], "enabled": false });
    let changed = function.ok(change(endpoint, 1, &off)).await.body;
    assert_eq!(
        (&changed["url"], &changed["disabled_reason"], &changed["description"]),
        (&off["url"], &json!("staff"), &Value::Null)
    );
    let again = function.ok(change(endpoint, 2, &off)).await.body;
    assert_eq!(again["disabled_at"], changed["disabled_at"]);
    assert_eq!(function.refusal(change(endpoint, 2, &off)).await, (412, "version_mismatch".to_owned()));
    let on = function.ok(change(endpoint, 3, &wanted())).await.body;
    assert_eq!((&on["enabled"], &on["disabled_at"]), (&json!(true), &Value::Null));
    for _ in 0..2 {
        assert_eq!(function.send(at(REMOVE, endpoint)).await.status, 204);
    }
    for route in [READ, RENEW, DELIVERIES] {
        let call = at(route, endpoint).header("if-match", "\"4\"");
        assert_eq!(function.refusal(call).await, (404, "not_found".to_owned()), "{route}");
    }
    assert_eq!(function.refusal(change(endpoint, 4, &off)).await, (404, "not_found".to_owned()));
}

#[tokio::test]
async fn a_repeated_registration_makes_one_endpoint_and_shows_its_secret_again() {
    let function = Shop::open().await.function();
    let first = function.ok(create(&wanted()).header("idempotency-key", "k")).await;
    let again = function.ok(create(&wanted()).header("idempotency-key", "k")).await;
    assert_eq!((again.status, &again.body), (201, &first.body));
    assert_eq!(function.ok(Call::new(LIST).staff("sam")).await.body["items"].as_array().unwrap().len(), 1);
    let records = function.items("IDEMPOTENCY#").await;
    assert!(!serde_json::to_string(&records).unwrap().contains("whsec_"), "no record has the secret");
    let other = json!({ "url": "https://b.example", "kinds": ["*"] });
    let refused = function.refusal(create(&other).header("idempotency-key", "k")).await;
    assert_eq!(refused, (422, "idempotency_key_reused".to_owned()));
}

#[tokio::test]
async fn a_new_secret_leaves_two_former_ones_valid_for_a_day() {
    let function = Shop::open().await.function();
    let endpoint = function.ok(create(&wanted())).await.body;
    let mut secrets = vec![endpoint["secret"].clone()];
    let mut renewed = Value::Null;
    for version in 1..=3 {
        let renew = at(RENEW, &endpoint).header("if-match", &format!("\"{version}\""));
        renewed = function.ok(renew.clone()).await.body;
        assert_eq!(function.refusal(renew).await, (412, "version_mismatch".to_owned()));
        secrets.push(renewed["secret"].clone());
    }
    let instant = |name: &str| renewed[name].as_str().unwrap().parse::<Instant>().unwrap();
    assert_eq!(instant("former_secret_ends_at"), instant("secret_created_at").plus_seconds(24 * 60 * 60));
    let id: EndpointId = endpoint["id"].as_str().unwrap().parse().unwrap();
    let stored = function.table().get(&webhook_endpoint::get(&id).unwrap()).await.unwrap().unwrap();
    let keys = WebhookKeys::new(CURSOR_KEYS).unwrap();
    let kept: Vec<Value> = stored.secrets.iter().map(|seed| keys.secret(&id, seed).unwrap().text().into()).collect();
    assert_eq!(kept, [secrets[3].clone(), secrets[2].clone(), secrets[1].clone()]);
}

#[tokio::test]
async fn a_url_that_is_not_public_and_an_unknown_kind_are_refused() {
    let mut function = Shop::open().await.function();
    for (url, says) in [
        ("http://erp.example", "an https URL"),
        ("erp.example", "an https URL"),
        ("https://sam@erp.example", "no user name"),
        ("https://erp.example#top", "no user name and fragment"),
        ("https://10.0.0.1/hook", "a private address"),
        ("https://[fd00:ec2::254]/latest", "a private address"),
    ] {
        let answer = function.send(create(&json!({ "url": url, "kinds": ["*"] }))).await;
        assert_eq!((answer.status, answer.pointers()), (422, vec!["/url"]), "{url}");
        assert!(answer.body.to_string().contains(says), "{}", answer.body);
    }
    for kinds in [json!([]), json!(["order"]), json!(["OrderPlaced"]), json!(["order.*", "orders.*"])] {
        let answer = function.send(create(&json!({ "url": "https://a.example", "kinds": kinds }))).await;
        assert_eq!((answer.status, answer.code()), (422, Some("invalid_body")), "{kinds}");
    }
    for call in [Call::new(LIST).customer("ann"), Call::new(CREATE).customer("ann").json(&wanted())] {
        assert_eq!(function.refusal(call).await, (403, "forbidden".to_owned()));
    }
    function.0.app.webhooks = None;
    assert_eq!(function.refusal(create(&wanted())).await, (503, "webhooks_disabled".to_owned()));
}

#[tokio::test]
async fn a_shop_has_at_most_twenty_endpoints() {
    let function = Shop::open().await.function();
    for _ in 0..MAX_ENDPOINTS {
        function.ok(create(&wanted())).await;
    }
    assert_eq!(function.refusal(create(&wanted())).await, (409, "too_many_endpoints".to_owned()));
    let all = function.ok(Call::new(LIST).staff("sam")).await.body;
    function.ok(at(REMOVE, &all["items"][0])).await;
    function.ok(create(&wanted())).await;
}

#[tokio::test]
async fn staff_can_close_and_open_the_endpoint_from_a_profile_and_nothing_else() {
    let shop = Shop::open().await;
    let function = shop.function();
    let agent: AgentId = "acme".parse().unwrap();
    let own = EndpointId::generate(Instant::EPOCH, [9; 10]);
    shop.put(&stored(WebhookEndpoint {
        id: own.clone(),
        agent: Some(agent),
        secrets: Vec::new(),
        failing_since: None,
        url: "https://agent.example/orders".to_owned(),
        kinds: [].into(),
        description: None,
        disabled: None,
    }))
    .await;
    let list = function.ok(Call::new(LIST).staff("sam")).await.body;
    let shown = &list["items"][0];
    assert_eq!((&shown["agent"], &shown["kinds"], &shown["enabled"]), (&json!("acme"), &json!([]), &json!(true)));
    let but = |name: &str, value: Value| {
        let mut body = json!({ "url": "https://agent.example/orders", "kinds": [] });
        body[name] = value;
        body
    };
    let closed = function.ok(change(shown, 1, &but("enabled", json!(false)))).await.body;
    assert_eq!((&closed["enabled"], &closed["disabled_reason"]), (&json!(false), &json!("staff")));
    let opened = function.ok(change(shown, 2, &but("enabled", json!(true)))).await.body;
    assert_eq!((&opened["enabled"], &opened["agent"]), (&json!(true), &json!("acme")));
    for (name, value, pointer) in [
        ("url", json!("https://other.example"), "/url"),
        ("kinds", json!(["*"]), "/kinds"),
        ("agent", json!("other"), "/agent"),
    ] {
        let answer = function.send(change(shown, 3, &but(name, value))).await;
        assert_eq!((answer.status, answer.pointers()), (422, vec![pointer]), "{}", answer.body);
    }
    for route in [RENEW, REMOVE] {
        let answer = function.send(at(route, shown).header("if-match", "\"3\"")).await;
        assert_eq!((answer.status, answer.code()), (409, Some("conflict")), "{route}: {}", answer.body);
    }
    // Any other endpoint needs kinds.
    let answer = function.send(create(&but("kinds", json!([])))).await;
    assert_eq!((answer.status, answer.pointers()), (422, vec!["/kinds"]), "{}", answer.body);
    let other = function.ok(create(&wanted())).await.body;
    let answer = function.send(change(&other, 1, &but("kinds", json!([])))).await;
    assert_eq!((answer.status, answer.pointers()), (422, vec!["/kinds"]), "{}", answer.body);
}

#[tokio::test]
async fn an_endpoint_that_staff_register_for_an_agent_has_a_secret_and_no_kinds() {
    let shop = Shop::open().await;
    let function = shop.function();
    let body = json!({ "url": "https://agent.example/order_events", "kinds": [], "agent": "acme" });
    let answer = function.send(create(&body)).await;
    assert_eq!((answer.status, answer.pointers()), (422, vec!["/agent"]), "an unknown agent: {}", answer.body);
    shop.put(&stored(agent("acme"))).await;
    let made = function.ok(create(&body)).await.body;
    assert_eq!((&made["agent"], &made["kinds"], made["secret"].is_string()), (&json!("acme"), &json!([]), true));
    // Staff replace its address and its secret, and no other agent gets it.
    let mut other = body.clone();
    other["url"] = json!("https://agent.example/other");
    let moved = function.ok(change(&made, 1, &other)).await.body;
    assert_eq!((&moved["url"], &moved["agent"]), (&other["url"], &json!("acme")));
    for (name, value) in [("kinds", json!(["*"])), ("agent", json!("other"))] {
        let mut wrong = body.clone();
        wrong[name] = value;
        let answer = function.send(change(&made, 2, &wrong)).await;
        assert_eq!((answer.status, answer.pointers()), (422, vec![format!("/{name}").as_str()]), "{}", answer.body);
    }
    let renewed = function.ok(at(RENEW, &made).header("if-match", "\"2\"")).await.body;
    assert!(renewed["secret"].is_string() && renewed["secret"] != made["secret"]);
    assert_eq!(function.send(at(REMOVE, &made)).await.status, 204);
    let plain = function.ok(create(&wanted())).await.body;
    let mut given = wanted();
    given["agent"] = json!("acme");
    let answer = function.send(change(&plain, 1, &given)).await;
    assert_eq!((answer.status, answer.pointers()), (422, vec!["/agent"]), "{}", answer.body);
}

#[tokio::test]
async fn staff_see_what_was_delivered_and_send_it_again() {
    let shop = Shop::open().await;
    let function = shop.function();
    let endpoint = function.ok(create(&wanted())).await.body;
    let other = function.ok(create(&wanted())).await.body;
    let mut ids = Vec::new();
    for number in 1..=3 {
        ids.push(store_delivery(&shop, &endpoint, number).await);
    }
    let (all, _) = function.all(&at(DELIVERIES, &endpoint), 2).await;
    let listed: Vec<&str> = all.iter().map(|delivery| delivery["id"].as_str().unwrap()).collect();
    assert_eq!(listed, [ids[2].as_str(), &ids[1], &ids[0]]);
    assert_eq!((&all[0]["state"], &all[0]["attempts"][0]["status"]), (&json!("failed"), &json!(500)));
    assert!(all[0].get("body").is_none());
    let read = function.ok(at(DELIVERY, &endpoint).path("delivery", &ids[0])).await.body;
    assert_eq!(read["body"], r#"{"type":"order.placed"}"#);
    let due = function.send(at(REDELIVER, &endpoint).path("delivery", &ids[0])).await;
    assert_eq!((due.status, &due.body["state"], &due.body["tries"]), (202, &json!("pending"), &json!(0)));
    for route in [DELIVERY, REDELIVER] {
        let refused = function.refusal(at(route, &other).path("delivery", &ids[0])).await;
        assert_eq!(refused, (404, "not_found".to_owned()), "{route}");
    }
}
