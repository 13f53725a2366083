//! Tests of the lists of orders, of invoices, and of staff's notes about orders.

use http_api::sample::{Answered, Call};
use key_schema::instant::Instant;
use serde_json::{Value, json};

use crate::shop::{Shop, moved, order, staff_order};

async fn placed(shop: &Shop, key: &str) -> Value {
    let placed = shop.send(order(&[("tea", 1)], key)).await;
    assert_eq!(placed.status, 201, "{}", placed.body);
    placed.body
}

fn of(route: &'static str, order: &Value) -> Call {
    Call::new(route).path("id", order["id"].as_str().unwrap())
}

fn ids(answer: &Answered) -> Vec<&str> {
    answer.body["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn staff_lists_the_orders_of_a_status_and_an_order_moves_to_the_list_of_its_new_status() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    let (stays, goes) = (placed(&shop, "1").await, placed(&shop, "2").await);
    assert_eq!(shop.send(moved(&goes, "paid")).await.status, 200);
    let list = |status: &str| Call::new("GET /v1/orders").query("status", status);
    assert_eq!(ids(&shop.send(list("pending").staff("sam")).await), [stays["id"].as_str().unwrap()]);
    assert_eq!(ids(&shop.send(list("paid").staff("sam")).await), [goes["id"].as_str().unwrap()]);
    assert_eq!(shop.refusal(list("placing").staff("sam")).await, (400, "invalid_parameter".to_owned()));
}

#[tokio::test]
async fn invoices_are_numbered_without_gaps_and_each_order_has_one_invoice() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    let mut orders = Vec::new();
    for key in ["1", "2", "3", "4"] {
        orders.push(placed(&shop, key).await);
    }
    let issue = |order: &Value| shop_call(order).staff("sam");
    // Each order gets two requests, and all requests run concurrently.
    let calls = orders.iter().chain(&orders).map(|order| shop.send(issue(order)));
    let issued = futures::future::join_all(calls).await;
    assert!(issued.iter().all(|answer| [200, 201].contains(&answer.status)), "{issued:?}");
    let number = |answer: &Answered| answer.body["number"].as_u64().unwrap();
    let mut numbers: Vec<u64> = issued.iter().map(number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 1, 2, 2, 3, 3, 4, 4]);
    let get = |n: &str| Call::new("GET /v1/invoices/{number}").path("number", n);
    let first = shop.send(get("1").customer("ann")).await;
    assert_eq!((first.status, &first.body["total"]["amount"]), (200, &json!(100)));
    assert_eq!(shop.send(get("1").customer("bob")).await.status, 404);
    assert_eq!(shop.send(get("5").staff("sam")).await.status, 404);
    let cancelled = placed(&shop, "5").await;
    assert_eq!(shop.send(moved(&cancelled, "cancelled")).await.status, 200);
    let refused = shop.send(issue(&cancelled)).await;
    assert_eq!((refused.status, refused.code()), (409, Some("illegal_transition")));
    let next = placed(&shop, "6").await;
    assert_eq!(number(&shop.send(issue(&next)).await), 5);
}

fn shop_call(order: &Value) -> Call {
    of("POST /v1/orders/{id}/invoice", order)
}

#[tokio::test]
async fn an_order_may_be_placed_up_to_five_minutes_ahead_of_the_functions_clock() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    for (ahead, status) in [(290, 201), (320, 422)] {
        let at = Instant::now().plus_seconds(ahead).to_string();
        let placed = shop.send(staff_order(&[("tea", 1)], &ahead.to_string(), &json!({ "placed_at": at }))).await;
        assert_eq!(placed.status, status, "{}", placed.body);
    }
}

#[tokio::test]
async fn a_note_has_its_author_and_needs_an_order() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    let order = placed(&shop, "1").await;
    let added = shop.send(of("POST /v1/orders/{id}/log", &order).json(&json!({ "text": "x" })).staff("sam")).await;
    assert_eq!((added.status, &added.body["by"]), (201, &json!("sam")));
    let missing = Call::new("POST /v1/orders/{id}/log").path("id", "none").json(&json!({ "text": "x" }));
    assert_eq!(shop.send(missing.staff("sam")).await.status, 404);
}
