//! Tests of stock: setting it, adjusting it, and repeating an adjustment.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::join_all;
use http_api::sample::Call;
use key_schema::leaderboard::{Board, Period};
use lambda_http::aws_lambda_events::apigw::ApiGatewayV2httpResponse;
use serde_json::json;

use crate::shop::{Shop, each, product, with};

fn adjust(by: i64, key: &str) -> Call {
    let body = json!({"adjust": by, "reason": "delivery"});
    Call::new("POST /v1/products/{id}/stock/adjustments").path("id", "p1").header("idempotency-key", key).json(&body)
}

async fn stock(shop: &Shop) -> u64 {
    shop.product("p1").await.body["stock"].as_u64().unwrap()
}

/// Returns the raw HTTP response.
async fn raw(shop: &Shop, call: Call) -> ApiGatewayV2httpResponse {
    let event = serde_json::from_value(call.staff("s1").event()).unwrap();
    shop.routes.answer(&shop.app, event).await
}

#[tokio::test]
async fn a_stock_is_set_and_the_product_keeps_its_version() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 5).await;
    let set = |id| Call::new("PUT /v1/products/{id}/stock").path("id", id).json(&json!({"set": 12}));
    let answer = shop.staff(set("p1")).await;
    assert_eq!((answer.status, &answer.body), (200, &json!({"stock": 12})));
    let read = shop.product("p1").await;
    assert_eq!((read.version(), &read.body["stock"]), (Some(1), &json!(12)));
    assert_eq!(shop.staff(set("p2")).await.status, 404);
}

#[tokio::test]
async fn a_missing_product_has_no_stock_to_adjust() {
    let shop = Shop::open().await;
    let call = Call::new("POST /v1/products/{id}/stock/adjustments").path("id", "p2").header("idempotency-key", "k");
    assert_eq!(shop.staff(call.json(&json!({"adjust": 1, "reason": "x"}))).await.status, 404);
}

#[tokio::test]
async fn a_stock_never_goes_below_zero_and_never_grows_beyond_its_limit() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 5).await;
    let answer = shop.staff(adjust(-6, "k1")).await;
    assert_eq!((answer.status, answer.code(), answer.pointers()), (409, Some("insufficient_stock"), vec!["/adjust"]));
    let answer = shop.staff(adjust(1_000_000_000_000, "k2")).await;
    assert_eq!((answer.status, answer.pointers()), (422, vec!["/adjust"]));
    assert_eq!(
        shop.staff(adjust(-5, "k1")).await.body,
        json!({"stock": 0}),
        "a refused request does not use up its key"
    );
}

#[tokio::test]
async fn a_repetition_gets_the_first_response_byte_for_byte_and_has_no_effect() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 5).await;
    let first = raw(&shop, adjust(3, "k")).await;
    shop.staff(adjust(10, "k2")).await;
    let again = raw(&shop, adjust(3, "k")).await;
    assert_eq!((again.status_code, again.body), (first.status_code, first.body));
    assert_eq!(first.headers.get("idempotency-replayed"), None);
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(stock(&shop).await, 18);
    let other = shop.staff(adjust(4, "k")).await;
    assert_eq!((other.status, other.code()), (422, Some("idempotency_key_reused")));
    let elsewhere = shop.send(adjust(3, "k").staff("s2")).await;
    assert_eq!(elsewhere.body, json!({"stock": 21}), "keys of different callers are independent");
}

#[tokio::test]
async fn a_repetition_is_answered_even_when_its_first_attempt_used_up_the_stock_or_the_product_is_gone() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 5).await;
    assert_eq!(shop.staff(adjust(-5, "k")).await.body, json!({"stock": 0}));
    assert_eq!(shop.staff(adjust(-5, "k")).await.body, json!({"stock": 0}));
    shop.staff(Call::new("DELETE /v1/products/{id}").path("id", "p1").header("if-match", "\"1\"")).await;
    assert_eq!(shop.staff(adjust(-5, "k")).await.body, json!({"stock": 0}));
    assert_eq!(shop.staff(adjust(-5, "new")).await.status, 404);
}

#[tokio::test]
async fn fifty_concurrent_adjustments_all_take_effect_and_each_response_is_exact() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1000).await;
    let calls = (0..50_i64).map(|n| {
        let by = if n % 2 == 0 { n + 1 } else { -n };
        let shop = &shop;
        async move { (by, shop.settled(adjust(by, &format!("k{n}")).staff("s1")).await) }
    });
    let answers = join_all(calls).await;
    let sum: i64 = answers.iter().map(|(by, _)| by).sum();
    assert_eq!(stock(&shop).await, u64::try_from(1000 + sum).unwrap());
    // Each response minus its own adjustment equals another response, or the initial stock. So all
    // adjustments form one chain.
    let after: BTreeSet<i64> = answers.iter().map(|(_, answer)| answer.body["stock"].as_i64().unwrap()).collect();
    for (by, answer) in &answers {
        assert_eq!(answer.status, 200, "{}", answer.body);
        let before = answer.body["stock"].as_i64().unwrap() - by;
        assert!(before == 1000 || after.contains(&before), "{before} was never the stock");
    }
}

/// The product exists, so 404 and 422 would be wrong, and a retry does not help.
#[tokio::test]
async fn every_route_of_a_product_without_a_readable_stock_answers_503_with_its_own_code() {
    let shop = Shop::open().await;
    let calls = || {
        let of = |route: &'static str| Call::new(route).path("id", "p1");
        [
            of("GET /v1/products/{id}"),
            adjust(1, "k"),
            of("DELETE /v1/products/{id}").header("if-match", "\"1\""),
            of("PATCH /v1/products/{id}").header("if-match", "\"1\"").json(&json!({"name": "Tea"})),
        ]
    };
    let set = || Call::new("PUT /v1/products/{id}/stock").path("id", "p1").json(&json!({"set": 12}));
    let is_unavailable = |answer: &http_api::sample::Answered| {
        assert_eq!((answer.status, answer.code()), (503, Some("stock_unavailable")), "{}", answer.body);
    };
    shop.stock_up("p1", 5).await;
    shop.delete_at("STOCK#p1#main#00000000000000000000", "STOCK").await;
    for call in calls().into_iter().chain([set()]) {
        is_unavailable(&shop.staff(call).await);
    }
    shop.stock_up("p2", 5).await;
    shop.set("STOCK#p2#main#00000000000000000000", "STOCK", "available", AttributeValue::S("abc".to_owned())).await;
    for call in [Call::new("GET /v1/products/{id}").path("id", "p2"), adjust(1, "k").path("id", "p2")] {
        is_unavailable(&shop.staff(call).await);
    }
}

#[tokio::test]
async fn a_page_leaves_out_an_unreadable_product_and_says_how_many() {
    let shop = Shop::open().await;
    for id in ["p1", "p2", "p3"] {
        shop.stock_up(id, 5).await;
    }
    let list = || Call::new("GET /v1/categories/{path}/products").path("path", "GROCERY");
    let whole = shop.staff(list()).await;
    assert_eq!((whole.header("x-left-out"), whole.body["items"].as_array().unwrap().len()), (None, 3));
    shop.set("PRODUCT#p2", "PRODUCT", "price", AttributeValue::S("abc".to_owned())).await;
    let page = shop.staff(list()).await;
    assert_eq!((page.status, page.header("x-left-out")), (200, Some("1")), "{}", page.body);
    let ids: Vec<_> = page.body["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["p1", "p3"]);
    let named = shop.send(Call::new("GET /v1/products").query("ids", "p3,p2,p1")).await;
    assert_eq!((named.header("x-left-out"), each(&named, "id")), (Some("1"), vec!["p3", "p1"]), "{}", named.body);
    for product in ["p1", "p2"] {
        shop.rank(product, Board::Likes, Period::All, 1).await;
    }
    let board = shop.send(Call::new("GET /v1/leaderboards/{by}").path("by", "likes").query("period", "all")).await;
    assert_eq!((board.header("x-left-out"), each(&board, "product_id")), (Some("1"), vec!["p1"]), "{}", board.body);
}

#[tokio::test]
async fn staff_spread_set_adjust_and_merge_a_stock_in_shards() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 100).await;
    let shards = |id: &str, number: u32| {
        Call::new("PUT /v1/products/{id}/stock/shards").path("id", id).json(&json!({ "shards": number }))
    };
    for _ in 0..2 {
        assert_eq!(shop.ok(shards("p1", 16).staff("s1")).await.body, json!({"shards": 16, "stock": 100}));
        assert_eq!(shop.pieces("p1").await.len(), 16);
    }
    assert_eq!(stock(&shop).await, 100);
    // Additional pieces come into the first shard. Removed pieces come from where they are.
    assert_eq!(shop.staff(adjust(50, "k1")).await.body, json!({"stock": 150}));
    assert_eq!(shop.staff(adjust(50, "k1")).await.body, json!({"stock": 150}), "a repetition has no effect");
    assert_eq!(shop.staff(adjust(-140, "k2")).await.body, json!({"stock": 10}));
    assert_eq!(shop.refusal(adjust(-11, "k3").staff("s1")).await, (409, "insufficient_stock".to_owned()));
    assert_eq!((stock(&shop).await, shop.pieces("p1").await.iter().sum::<u64>()), (10, 10));
    // Another number levels the pieces.
    shop.ok(shards("p1", 4).staff("s1")).await;
    assert_eq!(shop.pieces("p1").await, [3, 3, 2, 2]);
    let set = Call::new("PUT /v1/products/{id}/stock").path("id", "p1").json(&json!({"set": 9}));
    assert_eq!(shop.staff(set).await.body, json!({"stock": 9}));
    assert_eq!(shop.pieces("p1").await, [3, 2, 2, 2]);
    shop.ok(shards("p1", 1).staff("s1")).await;
    assert_eq!(shop.pieces("p1").await, [9]);
    for (id, number, expected) in [("p2", 4, "not_found"), ("p1", 0, "invalid_body"), ("p1", 65, "invalid_body")] {
        assert_eq!(shop.refusal(shards(id, number).staff("s1")).await.1, expected, "{id} {number}");
    }
    assert_eq!(shop.refusal(shards("p1", 4).customer("ann")).await, (403, "forbidden".to_owned()));
}

/// A page of a stock in shards costs as much as another page. Its level is an estimate.
#[tokio::test]
async fn the_page_of_a_product_in_shards_reads_one_shard_and_staff_see_the_exact_number() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 100).await;
    shop.spread("p1", 4).await;
    shop.requests();
    let page = Call::new("GET /v1/products/{id}").path("id", "p1");
    let seen = shop.ok(page.clone()).await.body;
    assert_eq!(shop.requests(), [("products.page", 1), ("stock.show", 1)].into());
    assert_eq!((&seen["in_stock"], &seen["availability"]), (&json!(true), &json!("plenty")));
    // The last pieces are in another shard than the first.
    shop.set_shards("p1", &[0, 0, 7, 0]).await;
    let seen = shop.ok(page).await.body;
    assert_eq!((&seen["in_stock"], &seen["availability"]), (&json!(true), &json!("low")));
    assert_eq!(stock(&shop).await, 7);
}

#[tokio::test]
async fn a_product_whose_stock_is_in_shards_is_retired_and_becomes_a_parent_with_one_shard() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 10).await;
    shop.spread("p1", 4).await;
    let retire = Call::new("DELETE /v1/products/{id}").path("id", "p1").header("if-match", "\"1\"");
    assert_eq!(shop.staff(retire).await.status, 204);
    assert_eq!(shop.pieces("p1").await, [10]);
    shop.stock_up("p2", 0).await;
    shop.spread("p2", 4).await;
    let variant = with(with(product("p2-m", 3), "parent", json!("p2")), "options", json!({"size": "M"}));
    let created = shop.staff(Call::new("POST /v1/products").json(&variant)).await;
    assert_eq!(created.status, 201, "{}", created.body);
    assert_eq!(shop.pieces("p2").await, [0]);
    shop.stock_up("p3", 5).await;
    shop.spread("p3", 4).await;
    let variant = with(with(product("p3-m", 3), "parent", json!("p3")), "options", json!({"size": "M"}));
    assert_eq!(shop.refusal(Call::new("POST /v1/products").json(&variant).staff("s1")).await.1, "parent_has_stock");
}
