//! Tests of the permissions of all routes.

use http_api::sample::Call;
use serde_json::json;

use crate::shop::{Shop, product};

const STAFF_ONLY: &[&str] = &[
    "POST /v1/products",
    "POST /v1/products/import",
    "PATCH /v1/products/{id}",
    "DELETE /v1/products/{id}",
    "PUT /v1/products/{id}/content",
    "POST /v1/products/{id}/content/uploads",
    "PUT /v1/products/{id}/content/uploads/{upload}",
    "POST /v1/products/{id}/pictures",
    "PUT /v1/products/{id}/pictures/{picture}",
    "DELETE /v1/products/{id}/pictures/{picture}",
    "PUT /v1/products/{id}/categories/{path}",
    "DELETE /v1/products/{id}/categories/{path}",
    "PUT /v1/products/{id}/stock",
    "POST /v1/products/{id}/stock/adjustments",
    "PUT /v1/categories/{path}",
    "POST /v1/categories/{path}/move",
];
const OWNED: &[&str] = &[
    "PUT /v1/products/{id}/reviews/{customer}",
    "DELETE /v1/products/{id}/reviews/{customer}",
    "GET /v1/customers/{id}/reviews",
];
const PUBLIC: &[&str] = &[
    "GET /v1/products/{id}",
    "GET /v1/products/{id}/content",
    "GET /v1/products/{id}/pictures",
    "GET /v1/products/{id}/pictures/{picture}",
    "GET /v1/products/{id}/reviews",
    "GET /v1/products/{id}/reviews/{customer}",
    "GET /v1/reviews/recent",
    "GET /v1/leaderboards/{by}",
    "GET /v1/categories/{path}",
    "GET /v1/categories/{path}/products",
    "GET /v1/categories/{path}/children",
    "GET /v1/categories/{path}/ancestors",
    "GET /v1/categories/{path}/subtree",
    "GET /v1/categories",
];

fn call(route: &'static str) -> Call {
    let call = Call::new(route).header("if-match", "\"1\"").header("idempotency-key", "k").json(&json!({}));
    call.path("id", "p1")
        .path("customer", "c1")
        .path("path", "GROCERY")
        .path("picture", "x")
        .path("upload", "x")
        .path("by", "likes")
}

#[test]
fn every_route_of_the_template_exists_and_requires_a_token_where_the_template_does() {
    let template = concat!(env!("CARGO_MANIFEST_DIR"), "/../../template.yaml");
    let template = template::Template::read(template.as_ref()).unwrap();
    let mut expected: Vec<(String, bool)> = template
        .routes
        .iter()
        .filter(|route| route.function == "Catalog")
        .map(|route| (route.key(), route.authorizer.is_none()))
        .collect();
    let known = [STAFF_ONLY, OWNED, PUBLIC].concat().into_iter();
    let mut known: Vec<_> = known.map(|key| (key.to_owned(), PUBLIC.contains(&key))).collect();
    let routes = catalog::routes();
    let mut keys: Vec<&str> = routes.keys().collect();
    expected.sort();
    known.sort();
    keys.sort_unstable();
    assert_eq!(known, expected);
    assert_eq!(keys, expected.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>());
}

#[tokio::test]
async fn only_staff_write_the_catalogue() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 5).await;
    let before = shop.product("p1").await.body;
    for route in STAFF_ONLY {
        let anonymous = shop.send(call(route)).await;
        assert_eq!((anonymous.status, anonymous.code()), (401, Some("unauthenticated")), "{route}");
        let customer = shop.send(call(route).customer("c1")).await;
        assert_eq!((customer.status, customer.code()), (403, Some("forbidden")), "{route}");
    }
    assert_eq!(shop.product("p1").await.body, before);
}

#[tokio::test]
async fn anonymous_callers_and_other_customers_cannot_reach_a_customers_items() {
    let shop = Shop::open().await;
    for route in OWNED {
        assert_eq!(shop.send(call(route)).await.status, 401, "{route}");
        let other = shop.send(call(route).path("id", "p1").customer("c2")).await;
        assert_eq!((other.status, other.code()), (404, Some("not_found")), "{route}");
    }
}

#[tokio::test]
async fn anybody_can_read_the_catalogue_and_a_missing_item_is_not_found() {
    let shop = Shop::open().await;
    // A leaderboard exists even if it is empty, so its route does not return 404.
    for route in PUBLIC.iter().filter(|route| route.contains('{') && !route.contains("{by}")) {
        let missing = shop.send(call(route)).await;
        assert_eq!((missing.status, missing.code()), (404, Some("not_found")), "{route}");
    }
}

#[tokio::test]
async fn invalid_ids_are_refused_and_all_other_ids_work() {
    let shop = Shop::open().await;
    for bad in ["", "a\u{7}b", "a/b", "a?b", "50%", "a\\b", ".", "..", &"x".repeat(129)] {
        let answer = shop.send(Call::new("GET /v1/products/{id}").path("id", bad)).await;
        assert_eq!((answer.status, answer.code()), (422, Some("invalid_id")), "{bad:?}");
        let refused = shop.staff(Call::new("POST /v1/products").json(&product(bad, 1))).await;
        assert!(refused.status == 422 && refused.pointers().contains(&"/id"), "{bad:?}: {}", refused.body);
    }
    for bad in ["A B", "a_", "_4", "_41", "_c3_a4", "A~", "~", "ä", &["A"; 9].join("~")] {
        for route in PUBLIC.iter().filter(|route| route.contains("{path}")) {
            let answer = shop.send(Call::new(route).path("path", bad)).await;
            assert_eq!((answer.status, answer.code()), (422, Some("invalid_id")), "{route} {bad:?}");
        }
        for route in STAFF_ONLY.iter().filter(|route| route.contains("{id}/categories/{path}")) {
            let answer = shop.staff(Call::new(route).path("id", "p1").path("path", bad)).await;
            assert_eq!((answer.status, answer.code()), (422, Some("invalid_id")), "{route} {bad:?}");
        }
    }
    for id in ["a+b#c&d e", "$", "a@b|c_d", "Ünïcödé 製品", "...", "~"] {
        let created = shop.staff(Call::new("POST /v1/products").json(&product(id, 1))).await;
        assert_eq!(created.status, 201, "{}", created.body);
        assert_eq!(shop.product(id).await.body["id"], id);
    }
}
