//! Tests of the catalogue. Tests of the whole system search.

use fixture::seed;
use serde_json::{Value, json};

use crate::shop::{Shop, codes, refused, usd};

const SEARCH: &str = "POST /ucp/catalog/search";
const LOOKUP: &str = "POST /ucp/catalog/lookup";
const PRODUCT: &str = "POST /ucp/catalog/product";

async fn shop() -> Shop {
    let shop = Shop::open().await;
    shop.priced("shirt", 900, 0).await;
    for (id, size, price, stock) in [("shirt-s", "S", 900, 0), ("shirt-m", "M", 1000, 4), ("shirt-l", "L", 1100, 2)] {
        shop.vary("shirt", seed::product(id, usd(price)), size, stock).await;
    }
    shop
}

fn ids(values: &Value) -> Vec<&str> {
    values.as_array().unwrap().iter().map(|value| value["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_lookup_finds_products_and_variants_by_their_ids() {
    let shop = shop().await;
    shop.priced("old", 100, 1).await;
    shop.retire("old").await;
    let lookup = |body: &Value| shop.acme.call(LOOKUP).json(body);
    let body = json!({ "ids": ["tea", "shirt", "shirt-l", "old", "nothing", "tea"] });
    let found = shop.expect(200, lookup(&body)).await;
    let products = &found["products"];
    assert_eq!(ids(products), ["shirt", "tea"], "{found}");
    assert_eq!(ids(&products[0]["variants"]), ["shirt-m", "shirt-l"]);
    let input = |at: usize| products[0]["variants"][at]["inputs"][0].clone();
    assert_eq!(input(0), json!({ "id": "shirt", "match": "featured" }));
    assert_eq!(input(1), json!({ "id": "shirt-l", "match": "exact" }));
    assert_eq!(products[0]["price_range"], json!({ "min": usd(900), "max": usd(1100) }));
    assert_eq!(codes(&found), ["not_found", "not_found"]);

    let cheap = shop.expect(200, lookup(&json!({ "ids": ["tea", "shirt-l"], "filters": { "price": { "max": 600 } } })));
    assert_eq!(ids(&cheap.await["products"]), ["tea"]);
    // The featured variant is one that the filters admit.
    let body = json!({ "ids": ["shirt"], "filters": { "price": { "min": 1050 } } });
    let dear = shop.expect(200, lookup(&body)).await;
    assert_eq!(ids(&dear["products"][0]["variants"]), ["shirt-l"], "{dear}");
    let other = json!({ "ids": ["tea"], "filters": { "categories": ["NOWHERE"] } });
    assert_eq!(shop.expect(200, lookup(&other)).await["products"], json!([]));
    let many: Vec<String> = (0..21).map(|number| format!("p{number}")).collect();
    assert_eq!(refused(&shop.send(lookup(&json!({ "ids": many }))).await), (400, "request_too_large"));
    assert_eq!(refused(&shop.send(lookup(&json!({ "ids": [] }))).await), (400, "invalid_request"));
    assert_eq!(codes(&shop.expect(200, lookup(&json!({ "ids": ["", "\u{7}"] }))).await), ["not_found", "not_found"]);
}

#[tokio::test]
async fn a_product_shows_the_variants_that_have_the_selected_options() {
    let shop = shop().await;
    let read = |body: &Value| shop.acme.call(PRODUCT).json(body);
    let plain = shop.expect(200, read(&json!({ "id": "tea" }))).await;
    assert_eq!(ids(&plain["product"]["variants"]), ["tea"], "{plain}");
    let large = json!({ "id": "shirt", "selected": [{ "name": "size", "label": "L" }] });
    let large = shop.expect(200, read(&large)).await;
    assert_eq!(ids(&large["product"]["variants"]), ["shirt-l"], "{large}");
    assert_eq!(large["product"]["selected"], json!([{ "name": "size", "label": "L" }]));
    let values = &large["product"]["options"][0]["values"];
    assert_eq!(values.as_array().unwrap().len(), 3, "{large}");
    // No option is left, so no variant is selected.
    let none = json!({ "id": "shirt", "selected": [{ "name": "size", "label": "XXL" }] });
    let none = shop.expect(200, read(&none)).await;
    assert_eq!((&none["product"]["selected"], ids(&none["product"]["variants"]).len()), (&json!([]), 3), "{none}");
    let by_variant = shop.expect(200, read(&json!({ "id": "shirt-s" }))).await;
    assert_eq!(by_variant["product"]["variants"][0]["id"], "shirt-s");
    assert_eq!(by_variant["product"]["variants"][0]["availability"]["available"], false);
    assert_eq!(codes(&shop.expect(200, read(&json!({ "id": "nothing" }))).await), ["not_found"]);
    assert_eq!(refused(&shop.send(read(&json!({ "id": 1 }))).await), (400, "invalid_request"));
}

#[tokio::test]
async fn a_shop_without_an_engine_has_no_search() {
    let shop = Shop::open().await;
    let answer = shop.send(shop.acme.call(SEARCH).json(&json!({ "query": "tea" }))).await;
    assert_eq!(refused(&answer), (503, "search_disabled"), "{}", answer.body);
}
