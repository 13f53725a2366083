//! Tests of the notes of a day, and of the routes for only the lines or only the history of an
//! order.

use std::collections::BTreeSet;

use http_api::sample::{Answered, Call};
use key_schema::id::{LogId, OrderId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::lists::FIRST;
use key_schema::order::{OrderLog, OrderStatus};
use serde_json::{Value, json};

use crate::shop::{Shop, moved, order};

fn of_day(day: &str) -> Call {
    Call::new("GET /v1/log").query("day", day).staff("sam")
}

/// Returns the n-th note of a day. Each instant has three notes. The notes belong to 40 orders in
/// turn.
fn line(day: &str, n: u32) -> Stored<OrderLog> {
    let midnight: Instant = format!("{day}T00:00:00Z").parse().unwrap();
    let at = midnight.plus_seconds(i64::from(n / 3 * 80));
    let bytes = |n: u32| [[0; 6].as_slice(), &n.to_be_bytes()].concat().try_into().unwrap();
    let (id, order_id) = (LogId::generate(at, bytes(n * 7919 % 10_000)), OrderId::generate(midnight, bytes(n % 40)));
    let line = OrderLog { id, order_id, at, by: "sam".to_owned(), text: format!("note {n}"), list_shards: FIRST };
    Stored::new(line, fixture::seed::born(), at)
}

fn texts(items: &[Value]) -> Vec<&str> {
    items.iter().map(|line| line["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_log_of_a_day_is_merged_in_order_from_all_shards_at_the_same_cost_per_page() {
    let shop = Shop::open().await;
    let mut lines: Vec<_> = (0..2000).map(|n| line("2026-11-20", n)).collect();
    shop.put_all(["2026-11-19", "2026-11-21"].map(|day| line(day, 0))).await;
    shop.put_all(lines.clone()).await;
    let shards: BTreeSet<u32> = lines.iter().map(|line| FIRST.of(line.order_id.as_str())).collect();
    assert_eq!(shards.len(), 4);
    lines.sort_by_key(|line| (line.at, line.id.to_string()));
    let expected: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    for limit in [100, 17] {
        let (found, mut requests) = shop.all(&of_day("2026-11-20"), limit).await;
        assert_eq!(texts(&found), expected, "in pages of {limit}");
        // A page costs one request per shard, and one request for the notes. A few pages need a
        // second request to a shard.
        requests.pop();
        let again = requests.iter().filter(|requests| **requests > 5).count();
        assert!(requests.iter().all(|requests| *requests <= 7) && again * 10 <= requests.len(), "{requests:?}");
    }
    let first = &lines[0];
    let expected = json!({
        "id": first.id, "order_id": first.order_id, "at": "2026-11-20T00:00:00.000Z", "by": "sam", "text": first.text,
    });
    let page = shop.ok(of_day("2026-11-20").query("limit", "1")).await;
    assert_eq!(page.body["items"], Value::from(vec![expected]));
    assert_eq!(shop.ok(of_day("1999-01-01")).await.body, json!({ "items": [], "next_cursor": null }));
}

#[tokio::test]
async fn a_new_note_is_in_the_log_of_its_day() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    let placed = shop.expect(201, order(&[("tea", 1)], "k")).await;
    let on = |route: &'static str| Call::new(route).path("id", placed["id"].as_str().unwrap()).staff("sam");
    let added = shop.expect(201, on("POST /v1/orders/{id}/log").json(&json!({ "text": "Fragile." }))).await;
    let day = &added["at"].as_str().unwrap()[..10];
    assert_eq!(shop.ok(of_day(day)).await.body["items"], Value::from(vec![added]));
}

async fn part(shop: &Shop, part: &str, order: &Value) -> Answered {
    let route = if part == "lines" { "GET /v1/orders/{id}/lines" } else { "GET /v1/orders/{id}/history" };
    shop.send(Call::new(route).path("id", order["id"].as_str().unwrap()).customer("ann")).await
}

#[tokio::test]
async fn lines_alone_and_history_alone_take_one_query_each() {
    let shop = Shop::open().await;
    let products: Vec<String> = (0..130).map(|n| format!("p{n}")).collect();
    for product in &products {
        shop.product(product, 10).await;
    }
    let lines: Vec<(&str, u64)> = products.iter().map(|product| (product.as_str(), 1)).collect();
    let placed = shop.expect(201, order(&lines, "k")).await;
    shop.expect(200, moved(&placed, "paid").staff("sam")).await;
    let whole = Call::new("GET /v1/orders/{id}").path("id", placed["id"].as_str().unwrap()).customer("ann");
    let whole = shop.expect(200, whole).await;
    for (name, pattern) in [("lines", "orders.with-lines"), ("history", "orders.with-history")] {
        shop.requests();
        let answer = part(&shop, name, &placed).await;
        assert_eq!(shop.requests().into_iter().collect::<Vec<_>>(), [(pattern, 1)]);
        assert_eq!((answer.status, answer.version()), (200, Some(2)), "{}", answer.body);
        assert_eq!(answer.body, json!({ "items": whole[name], "next_cursor": null }));
    }
}

#[tokio::test]
async fn an_order_that_is_invisible_has_neither_lines_nor_history() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    let placed = shop.expect(201, order(&[("tea", 1)], "k")).await;
    let mut head = shop.head(&placed).await;
    for (status, expires_at) in
        [(OrderStatus::Placing, None), (OrderStatus::Delivered, Some(Instant::now().plus_seconds(-1)))]
    {
        head.data.status = status;
        head.data.expires_at = expires_at;
        shop.put(&head).await;
        for name in ["lines", "history"] {
            assert_eq!(part(&shop, name, &placed).await.status, 404, "{name} of {status}");
        }
    }
    // A read that overlaps with a transaction may miss some items.
    head.data.expires_at = None;
    shop.put(&head).await;
    for (_, sk) in shop.keys("ORDER#").await {
        if sk != "ORDER" {
            shop.delete_at(&format!("ORDER#{}", placed["id"].as_str().unwrap()), &sk).await;
        }
    }
    for name in ["lines", "history"] {
        assert_eq!(part(&shop, name, &placed).await.status, 404, "{name}");
    }
}
