//! Tests that each route uses the access patterns that it declares.

use std::time::SystemTime;

use fixture::{Recorder, seed};
use http_api::sample::Call;
use key_schema::category::CategoryNode;
use key_schema::item::Entity as _;
use key_schema::leaderboard::{Board, Period};
use key_schema::media::MediaKind;
use key_schema::product::CategoryPath;
use serde_json::json;
use storage::media::Expected;

use crate::shop::{Shop, product, with};

/// Returns calls that together cover every code path on which the function reaches the table.
fn calls() -> Vec<Call> {
    let call = |route: &'static str| {
        let call =
            Call::new(route).staff("s1").header("idempotency-key", "k").header("content-type", "application/json");
        let call = call.path("id", "p1").path("customer", "c1").path("path", "NEW~BELOW");
        call.path("picture", "x").path("upload", "text")
    };
    let absent = |call: Call| call.header("if-none-match", "*");
    let at = |call: Call, version| call.header("if-match", version);
    let with_body = |call: Call, body| call.json(&body);
    let lines = |products: &[serde_json::Value]| {
        let lines: String = products.iter().map(|product| format!("{product}\n")).collect();
        call("POST /v1/products/import").header("content-type", "application/x-ndjson").body(lines)
    };
    let further = |route| call(route).path("path", "FURTHER");
    let best = |call: Call| call.query("sort", "best");
    let review = || json!({"rating": 5, "title": "x", "text": "y"});
    let variant = |id| with(with(product(id, 1), "parent", json!("parent")), "options", json!({"size": "M"}));
    let other = with(product("p2", 1), "category_path", json!(["OTHER"]));
    vec![
        call("GET /v1/categories/{path}/products"),
        call("GET /v1/categories/{path}/children"),
        call("GET /v1/categories"),
        call("GET /v1/categories/{path}/subtree"),
        with_body(call("POST /v1/products"), product("p1", 5)),
        with_body(call("POST /v1/products"), product("p1", 5)),
        call("GET /v1/products").query("ids", "p1"),
        call("GET /v1/products/{id}").query("include", "content,pictures,reviews"),
        // The id of this request is in the sample of views.
        call("GET /v1/products/{id}/numbers"),
        call("POST /v1/products/{id}/views"),
        call("POST /v1/products/{id}/views").id("view-34"),
        call("GET /v1/leaderboards/{by}").path("by", "likes"),
        at(with_body(call("PATCH /v1/products/{id}"), json!({"category_path": ["MOVED"]})), "\"1\""),
        at(with_body(call("PATCH /v1/products/{id}"), json!({"name": "x"})), "\"1\""),
        absent(with_body(call("PUT /v1/products/{id}/content"), json!({"text": "x"}))),
        at(with_body(call("PUT /v1/products/{id}/content"), json!({"text": "y"})), "\"1\""),
        call("GET /v1/products/{id}/content"),
        at(call("PUT /v1/products/{id}/content/uploads/{upload}"), "\"2\""),
        with_body(call("POST /v1/products/{id}/content/uploads"), json!({"content_type": "text/plain", "bytes": 4})),
        with_body(call("POST /v1/products/{id}/pictures"), json!({"content_type": "image/png", "bytes": 4})),
        with_body(call("PUT /v1/products/{id}/pictures/{picture}"), json!({})),
        with_body(call("PUT /v1/products/{id}/pictures/{picture}"), json!({"alt": "Ice"})),
        call("GET /v1/products/{id}/pictures"),
        call("GET /v1/products/{id}/pictures/{picture}"),
        call("DELETE /v1/products/{id}/pictures/{picture}"),
        further("PUT /v1/products/{id}/categories/{path}"),
        further("GET /v1/categories/{path}/products"),
        further("DELETE /v1/products/{id}/categories/{path}"),
        with_body(call("PUT /v1/products/{id}/stock"), json!({"set": 3})),
        with_body(call("POST /v1/products/{id}/stock/adjustments"), json!({"adjust": 1, "reason": "x"})),
        with_body(call("POST /v1/products/{id}/stock/adjustments"), json!({"adjust": 1, "reason": "x"})),
        with_body(call("PUT /v1/products/{id}/stock/shards"), json!({"shards": 2})),
        call("GET /v1/products/{id}"),
        with_body(call("PUT /v1/products/{id}/stock"), json!({"set": 4})),
        with_body(
            call("POST /v1/products/{id}/stock/adjustments").header("idempotency-key", "k3"),
            json!({"adjust": 1, "reason": "x"}),
        ),
        absent(with_body(call("PUT /v1/locations/{id}").path("id", "ulm"), json!({"name": "Ulm"}))),
        at(with_body(call("PUT /v1/locations/{id}").path("id", "ulm"), json!({"name": "Ulm 2"})), "\"1\""),
        call("GET /v1/locations/{id}").path("id", "ulm"),
        call("GET /v1/locations"),
        with_body(call("PUT /v1/products/{id}/stock"), json!({"set": 4, "location": "ulm"})),
        with_body(call("PUT /v1/products/{id}/stock"), json!({"set": 4, "location": "bern"})),
        with_body(
            call("POST /v1/products/{id}/stock/adjustments").header("idempotency-key", "k4"),
            json!({"adjust": 1, "reason": "x", "location": "ulm"}),
        ),
        call("GET /v1/products/{id}/stock").query("location", "ulm"),
        call("GET /v1/products/{id}/stock"),
        absent(with_body(call("PUT /v1/products/{id}/reviews/{customer}"), review())),
        at(with_body(call("PUT /v1/products/{id}/reviews/{customer}"), review()), "\"1\""),
        call("GET /v1/products/{id}/reviews/{customer}"),
        call("GET /v1/products/{id}/reviews"),
        best(call("GET /v1/products/{id}/reviews")),
        call("GET /v1/customers/{id}/reviews"),
        call("GET /v1/reviews/recent"),
        Call::new("GET /v1/customers/{id}/reviews/{product}").path("id", "c1").path("product", "p1").customer("c1"),
        Call::new("GET /v1/reviews").staff("s1"),
        Call::new("GET /v1/reviews").query("product", "p1").staff("s1"),
        Call::new("GET /v1/reviews").query("product", "p1").query("sort", "best").staff("s1"),
        at(call("DELETE /v1/products/{id}/reviews/{customer}"), "\"2\""),
        absent(with_body(call("PUT /v1/categories/{path}"), json!({}))),
        at(with_body(call("PUT /v1/categories/{path}"), json!({})), "\"1\""),
        at(with_body(call("PUT /v1/categories/{path}"), json!({})), "\"2\""),
        at(with_body(call("PUT /v1/categories/{path}"), json!({})), "\"2\""),
        call("GET /v1/categories/{path}"),
        call("GET /v1/categories/{path}/ancestors"),
        call("POST /v1/categories/{path}/move").path("path", "MOVING~B").json(&json!({"to": ["PLACE", "NEW", "TO"]})),
        at(call("DELETE /v1/products/{id}"), "\"2\""),
        at(call("DELETE /v1/products/{id}"), "\"2\""),
        with_body(call("POST /v1/products"), product("p1", 5)),
        lines(&[product("p1", 5), other.clone()]),
        lines(&[with(product("p1", 5), "name", json!("New"))]),
        at(call("DELETE /v1/products/{id}"), "\"5\""),
        lines(&[product("p1", 5), other]),
        with_body(call("POST /v1/products"), product("parent", 0)),
        with_body(call("POST /v1/products"), variant("p3")),
        at(call("DELETE /v1/products/{id}").path("id", "p3"), "\"1\""),
        with_body(call("POST /v1/products"), variant("p3")),
        with_body(call("PUT /v1/products/{id}/stock").path("id", "parent"), json!({"set": 3})),
        with_body(call("PUT /v1/products/{id}/stock/shards").path("id", "parent"), json!({"shards": 2})),
        with_body(
            call("POST /v1/products/{id}/stock/adjustments").path("id", "parent").header("idempotency-key", "k2"),
            json!({"adjust": 1, "reason": "x"}),
        ),
    ]
}

/// Creates a category that exercises every case of a move. It has described subcategories, a
/// product with a membership, and products in a subcategory without a node. Below the new path
/// there is already a described category.
async fn prepare_a_move(shop: &Shop) {
    for id in ["p8", "p9"] {
        let moving = with(product(id, 1), "category_path", json!(["MOVING", "B", "C"]));
        assert_eq!(shop.staff(Call::new("POST /v1/products").json(&moving)).await.status, 201);
    }
    let further = Call::new("PUT /v1/products/{id}/categories/{path}").path("id", "p9").path("path", "MOVING~B");
    assert_eq!(shop.staff(further).await.status, 201);
    for path in ["MOVING~B~X", "MOVING~B~Y", "PLACE~NEW~TO~X"] {
        let put = Call::new("PUT /v1/categories/{path}").path("path", path).header("if-none-match", "*");
        assert_eq!(shop.staff(put.json(&json!({"title": path}))).await.status, 201);
    }
    for path in ["MOVING~B~C", "PLACE~NEW", "PLACE~NEW~TO"] {
        shop.delete(&CategoryNode::new(CategoryPath::from_segment(path).unwrap()).key().unwrap()).await;
    }
}

#[tokio::test]
async fn every_route_uses_exactly_the_recorded_patterns() {
    let shop = Shop::open().await;
    shop.join("c1").await;
    prepare_a_move(&shop).await;
    shop.rank("p8", Board::Likes, Period::day(seed::today().await), 3).await;
    for (kind, id, content_type) in [(MediaKind::Picture, "x", "image/png"), (MediaKind::Content, "text", "text/plain")]
    {
        let name = kind.pending(&"p1".parse().unwrap(), &id.parse().unwrap());
        let expected = Expected { content_type, bytes: 4, sha256: None };
        let upload = shop.app.media.upload(&name, expected, SystemTime::now()).await.unwrap();
        let put = reqwest::Client::new().put(upload.url).header("content-type", content_type).body("1234");
        assert!(put.send().await.unwrap().status().is_success());
    }
    let mut recorder = Recorder::new(&shop);
    for call in calls() {
        let (route, answer) = recorder.send(call).await;
        assert!(answer.status < 500, "{route}: {}", answer.body);
    }
    let set = Call::new("PUT /v1/products/{id}/stock").path("id", "p8").staff("s1").json(&json!({"set": 3}));
    // The stock of an earlier table.
    shop.age_stock("p8").await;
    recorder.expect(200, Call::new("GET /v1/products/{id}").path("id", "p8")).await;
    recorder.expect(200, set.clone()).await;
    shop.delete_at("STOCK#p8#main#00000000000000000000", "STOCK").await;
    recorder.expect(503, set).await;
    recorder.assert_recorded();
}
