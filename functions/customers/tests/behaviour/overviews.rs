//! Tests of the overview: profile and newest orders in one Query.

use http_api::sample::{Answered, Call};
use serde_json::json;

use crate::shop::{Shop, ids, if_match};

async fn overview(shop: &Shop, id: &str) -> Answered {
    shop.send(Call::new("GET /v1/customers/{id}/overview").path("id", id).customer(id)).await
}

#[tokio::test]
async fn the_overview_has_the_profile_and_the_newest_20_orders_and_costs_one_query() {
    let shop = Shop::open().await;
    let ann = shop.customer("ann").await;
    // The partition of `ann2` sorts next to that of `ann`.
    shop.customer("ann2").await;
    shop.product("p0").await;
    shop.order("ann2", "p0", 0).await;
    let mut placed: Vec<String> = Vec::new();
    for count in [0, 1, 20, 25] {
        while placed.len() < count {
            let minute = i64::try_from(placed.len()).unwrap() + 1;
            placed.push(shop.order("ann", "p0", minute).await);
        }
        let _ = shop.app.table.meter().take();
        let answer = overview(&shop, "ann").await;
        let measured: Vec<_> =
            shop.app.table.meter().take().iter().map(|measured| (measured.pattern.id, measured.requests)).collect();
        assert_eq!(measured, [("customers.overview", 1)]);
        assert_eq!((answer.status, &answer.body["customer"]), (200, &ann));
        let newest: Vec<&str> = placed.iter().rev().take(20).map(String::as_str).collect();
        assert_eq!(ids(&answer.body["orders"]), newest, "{count} orders");
    }
}

#[tokio::test]
async fn an_order_shows_its_summary() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    shop.product("p0").await;
    let id = shop.order("ann", "p0", 0).await;
    let expected = json!([{
        "id": id, "reference": null, "customer_id": "ann", "status": "pending",
        "total": { "amount": 100, "currency": "USD" },
        "placed_at": "2023-11-14T22:13:20.000Z", "line_count": 1,
    }]);
    assert_eq!(overview(&shop, "ann").await.body["orders"], expected);
}

#[tokio::test]
async fn orders_without_a_profile_have_no_overview() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    shop.product("p0").await;
    shop.order("ann", "p0", 0).await;
    let erase = Call::new("DELETE /v1/customers/{id}").path("id", "ann").customer("ann");
    assert_eq!(shop.send(if_match(erase, 1)).await.status, 204);
    let answer = overview(&shop, "ann").await;
    assert_eq!((answer.status, answer.code()), (404, Some("not_found")));
}
