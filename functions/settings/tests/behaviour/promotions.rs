//! Tests of staff's routes for promotions.

use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::join_all;
use http_api::sample::{Answered, Call};
use key_schema::promotion::MAX_AUTOMATIC;
use serde_json::{Value, json};

use crate::shop::{Function, Shop};

fn at(route: &'static str, id: &str) -> Call {
    Call::new(route).path("id", id).staff("sam")
}

fn new(body: &Value) -> Call {
    Call::new("POST /v1/promotions").staff("sam").json(body)
}

fn patch(id: &str, version: u64, body: &Value) -> Call {
    at("PATCH /v1/promotions/{id}", id).header("if-match", &format!("\"{version}\"")).json(body)
}

fn delete(id: &str, version: u64) -> Call {
    at("DELETE /v1/promotions/{id}", id).header("if-match", &format!("\"{version}\""))
}

fn usd(amount: i64) -> Value {
    json!({ "amount": amount, "currency": "USD" })
}

/// Returns a promotion of 10 % with this id and code.
fn ten(id: &str, code: Option<&str>) -> Value {
    json!({ "id": id, "code": code, "name": "Ten", "kind": "percentage", "value": 1000 })
}

fn with(body: Value, more: &Value) -> Value {
    let mut body = body;
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// Returns a successful call of each route, in an order in which they succeed.
pub fn calls() -> Vec<(&'static str, Call)> {
    let limited = with(ten("a", None), &json!({ "limit_total": 5 }));
    vec![
        ("POST /v1/promotions", new(&limited).header("idempotency-key", "k")),
        ("POST /v1/promotions", new(&limited).header("idempotency-key", "k")),
        ("GET /v1/promotions", Call::new("GET /v1/promotions").staff("sam")),
        ("GET /v1/promotions/{id}", at("GET /v1/promotions/{id}", "a")),
        ("PATCH /v1/promotions/{id}", patch("a", 1, &json!({ "name": "Ten percent" }))),
        ("DELETE /v1/promotions/{id}", delete("a", 2)),
    ]
}

async fn ids(function: &Function) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let call = Call::new("GET /v1/promotions").query("limit", "2").staff("sam");
        let call = cursor.iter().fold(call, |call, cursor| call.query("cursor", cursor));
        let page = function.send(call).await.body;
        ids.extend(page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return ids,
        }
    }
}

fn refused(answer: &Answered) -> (u16, &str, Vec<&str>) {
    (answer.status, answer.code().unwrap_or_default(), answer.pointers())
}

#[tokio::test]
async fn staff_create_read_change_and_delete_a_promotion_by_its_version() {
    let function = Shop::open().await.function();
    let whole = json!({
        "id": "summer", "name": "Summer sale", "code": "SUMMER", "kind": "amount", "value": usd(500),
        "applies_to": { "category": ["GROCERY", "ICE"] },
        "conditions": { "min_amount": usd(2000), "tier": "silver", "first_order": true,
            "from": "2026-06-01T00:00:00.000Z", "until": "2026-09-01T00:00:00.000Z" },
        "limit_total": 100, "limit_per_customer": 2, "exclusive": true, "priority": -5,
    });
    let made = function.send(new(&whole)).await;
    assert_eq!((made.status, made.header("location")), (201, Some("/v1/promotions/summer")), "{}", made.body);
    for (name, value) in whole.as_object().unwrap() {
        assert_eq!(made.body[name], *value, "{name}");
    }
    assert_eq!((&made.body["uses"], made.version()), (&json!(0), Some(1)));

    let change = json!({
        "name": "Sale", "value": usd(600), "applies_to": "all", "limit_total": 200, "limit_per_customer": null,
        "exclusive": false, "priority": 3, "conditions": { "tier": null, "until": "2026-10-01T00:00:00.000Z" },
    });
    let changed = function.send(patch("summer", 1, &change)).await;
    assert_eq!((changed.status, changed.version()), (200, Some(2)), "{}", changed.body);
    let conditions = json!({ "min_amount": usd(2000), "first_order": true, "from": "2026-06-01T00:00:00.000Z",
        "until": "2026-10-01T00:00:00.000Z" });
    assert_eq!(changed.body["conditions"], conditions);
    assert_eq!((&changed.body["limit_total"], &changed.body["limit_per_customer"]), (&json!(200), &Value::Null));
    let read = function.send(at("GET /v1/promotions/{id}", "summer")).await;
    assert_eq!((read.status, &read.body), (200, &changed.body));

    for late in [patch("summer", 1, &change), delete("summer", 1)] {
        assert_eq!(function.send(late).await.status, 412);
    }
    assert_eq!(function.send(delete("summer", 2)).await.status, 204);
    for gone in [at("GET /v1/promotions/{id}", "summer"), patch("summer", 2, &change), delete("summer", 2)] {
        assert_eq!(function.send(gone).await.status, 404);
    }
}

#[tokio::test]
async fn an_invalid_promotion_is_refused_field_by_field() {
    let function = Shop::open().await.function();
    let of = |kind: &str, value: Value| json!({ "name": "N", "kind": kind, "value": value });
    let cases = [
        (json!({ "name": "N", "kind": "percentage" }), vec!["/value"]),
        (of("percentage", json!(0)), vec!["/value"]),
        (of("percentage", json!(10_001)), vec!["/value"]),
        (of("percentage", usd(1)), vec!["/value"]),
        (of("amount", json!({ "buy": 1, "get": 1 })), vec!["/value"]),
        (of("amount", usd(0)), vec!["/value/amount"]),
        (of("buy_x_get_y", json!({ "buy": 0, "get": 1001 })), vec!["/value/buy", "/value/get"]),
        (of("free_shipping", json!(1)), vec!["/value"]),
        (with(ten("a/b", None), &json!({ "name": " " })), vec!["/id", "/name"]),
        (with(ten("a", Some("\u{200B}")), &json!({})), vec!["/code"]),
        (with(ten("a", None), &json!({ "applies_to": "some" })), vec!["/applies_to"]),
        (with(ten("a", None), &json!({ "applies_to": {} })), vec!["/applies_to"]),
        (
            with(ten("a", None), &json!({ "applies_to": { "products": [], "category": [""] } })),
            vec!["/applies_to/products", "/applies_to/category/0"],
        ),
        (
            with(
                ten("a", None),
                &json!({ "conditions": { "from": "2026-06-01T00:00:00Z", "until": "2026-06-01T00:00:00Z" } }),
            ),
            vec!["/conditions/until"],
        ),
        (
            with(
                of("amount", json!({ "amount": 1, "currency": "EUR" })),
                &json!({ "conditions": { "min_amount": usd(1) } }),
            ),
            vec!["/value/currency"],
        ),
        (
            with(
                ten("a", None),
                &json!({ "applies_to": { "products": (0..100).map(|n| format!("{n:0>100}")).collect::<Vec<_>>() } }),
            ),
            vec!["/applies_to"],
        ),
    ];
    for (body, pointers) in cases {
        let answer = function.send(new(&body)).await;
        assert_eq!(refused(&answer), (422, "invalid_body", pointers), "{body}");
    }
    assert_eq!(ids(&function).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_change_keeps_kind_and_code_and_adds_no_limit() {
    let function = Shop::open().await.function();
    assert_eq!(function.send(new(&ten("a", Some("A")))).await.status, 201);
    for (change, pointer) in [
        (json!({ "kind": "amount" }), "/kind"),
        (json!({ "code": "B" }), "/code"),
        (json!({ "value": usd(1) }), "/value"),
        (json!({ "limit_total": 5 }), "/limit_total"),
        (json!({ "limit_per_customer": 5 }), "/limit_per_customer"),
        (json!({ "name": null }), "/name"),
    ] {
        let answer = function.send(patch("a", 1, &change)).await;
        assert_eq!(refused(&answer), (422, "invalid_body", vec![pointer]), "{change}");
    }
    let free = json!({ "id": "f", "name": "Free", "kind": "free_shipping" });
    assert_eq!(function.send(new(&free)).await.status, 201);
    let answer = function.send(patch("f", 1, &json!({ "value": 1 }))).await;
    assert_eq!(refused(&answer), (422, "invalid_body", vec!["/value"]));
}

#[tokio::test]
async fn ids_are_used_once_and_codes_become_free_again() {
    let function = Shop::open().await.function();
    assert_eq!(function.send(new(&ten("a", Some("Süß")))).await.status, 201);
    let id = function.send(new(&ten("a", None))).await;
    assert_eq!(refused(&id), (409, "already_exists", vec!["/id"]));
    assert_eq!(id.header("location"), Some("/v1/promotions/a"));
    let code = function.send(new(&ten("b", Some("SÜSS")))).await;
    assert_eq!(refused(&code), (409, "already_exists", vec!["/code"]));
    assert_eq!(function.send(delete("a", 1)).await.status, 204);
    assert_eq!(refused(&function.send(new(&ten("a", None))).await), (409, "already_exists", vec!["/id"]));
    assert_eq!(function.send(new(&ten("b", Some("SÜSS")))).await.status, 201);
    let generated = function.send(new(&json!({ "name": "N", "kind": "free_shipping" }))).await;
    assert_eq!(generated.status, 201, "{}", generated.body);
    assert!(generated.body["id"].as_str().unwrap().len() == 36, "{}", generated.body);
}

#[tokio::test]
async fn a_repeated_creation_with_a_key_creates_no_second_promotion() {
    let function = Shop::open().await.function();
    let body = json!({ "name": "N", "kind": "free_shipping" });
    let keyed = || new(&body).header("idempotency-key", "k");
    let (first, again) = (function.send(keyed()).await, function.send(keyed()).await);
    assert_eq!((first.status, again.status, &again.body), (201, 201, &first.body), "{}", first.body);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let other = new(&json!({ "name": "M", "kind": "free_shipping" })).header("idempotency-key", "k");
    assert_eq!(function.send(other).await.code(), Some("idempotency_key_reused"));
    assert_eq!(ids(&function).await.len(), 1);
}

#[tokio::test]
async fn one_list_has_promotions_with_and_without_a_code() {
    let function = Shop::open().await.function();
    for (id, code) in [("b", None), ("d", Some("D")), ("a", Some("A")), ("c", None), ("e", Some("E"))] {
        assert_eq!(function.send(new(&ten(id, code))).await.status, 201);
    }
    assert_eq!(ids(&function).await, ["a", "b", "c", "d", "e"]);
}

#[tokio::test]
async fn the_list_and_each_promotion_show_the_uses_that_a_limit_counts() {
    let shop = Shop::open().await;
    let function = shop.function();
    let limited = json!({ "limit_total": 5 });
    for body in [with(ten("a", Some("A")), &limited), with(ten("b", None), &limited), ten("c", None)] {
        assert_eq!(function.send(new(&body)).await.status, 201);
    }
    for (id, uses) in [("a", "2"), ("b", "3")] {
        shop.set(&format!("PROMOTION#{id}"), "USES", "uses", AttributeValue::N(uses.into())).await;
    }
    function.requests();
    let page = function.send(Call::new("GET /v1/promotions").staff("sam")).await.body;
    assert_eq!(function.requests(), [("promotions.list", 2), ("promotions.uses", 1)].into());
    let listed = page["items"].as_array().unwrap();
    let uses: Vec<_> = listed.iter().map(|promotion| promotion.get("uses")).collect();
    assert_eq!(uses, [Some(&json!(2)), Some(&json!(3)), None]);
    for (id, promotion) in ["a", "b", "c"].into_iter().zip(listed) {
        assert_eq!(function.send(at("GET /v1/promotions/{id}", id)).await.body, *promotion, "{id}");
    }
    shop.spoil("PROMOTION#a", "USES", "uses").await;
    let page = function.send(Call::new("GET /v1/promotions").staff("sam")).await;
    assert_eq!((page.status, page.header("x-left-out")), (200, Some("1")), "{}", page.body);
}

#[tokio::test]
async fn concurrent_requests_create_at_most_the_permitted_number_of_automatic_promotions() {
    let shop = Shop::open().await;
    let function = shop.function();
    for number in 2..MAX_AUTOMATIC {
        assert_eq!(function.send(new(&ten(&format!("p{number:02}"), None))).await.status, 201);
    }
    let more: Vec<_> = (0..4).map(|number| ten(&format!("q{number}"), None)).collect();
    let answers = join_all(more.iter().map(|body| function.send(new(body)))).await;
    let made = answers.iter().filter(|answer| answer.status == 201).count();
    let full = answers.iter().filter(|answer| answer.code() == Some("too_many_rules")).count();
    assert_eq!((made, full), (2, 2));
    assert_eq!(function.send(new(&ten("coded", Some("CODE")))).await.status, 201);
    assert_eq!(function.send(delete("p02", 1)).await.status, 204);
    assert_eq!(function.send(new(&ten("last", None))).await.status, 201);
}
