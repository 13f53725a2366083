//! Tests of stock locations, and of the stock at a further location.

use futures::future::join_all;
use http_api::sample::{Answered, Call};
use serde_json::{Value, json};

use crate::shop::{Shop, each, product, with};

fn put(id: &str) -> Call {
    Call::new("PUT /v1/locations/{id}").path("id", id)
}

async fn create(shop: &Shop, id: &str) -> Answered {
    shop.staff(put(id).header("if-none-match", "*").json(&json!({"name": format!("Warehouse {id}")}))).await
}

async fn list(shop: &Shop) -> Value {
    shop.staff(Call::new("GET /v1/locations")).await.body
}

fn set(product: &str, location: &str, pieces: u64) -> Call {
    let call = Call::new("PUT /v1/products/{id}/stock").path("id", product);
    call.json(&json!({"set": pieces, "location": location}))
}

fn adjust(location: &str, by: i64, key: &str) -> Call {
    let call = Call::new("POST /v1/products/{id}/stock/adjustments").path("id", "p1").header("idempotency-key", key);
    call.json(&json!({"adjust": by, "reason": "delivery", "location": location}))
}

async fn stock(shop: &Shop, location: &str) -> Value {
    let call = Call::new("GET /v1/products/{id}/stock").path("id", "p1").query("location", location);
    shop.staff(call).await.body["stock"].clone()
}

#[tokio::test]
async fn main_exists_before_staff_name_it() {
    let shop = Shop::open().await;
    let main = list(&shop).await["items"][0].clone();
    assert_eq!((&main["id"], &main["name"], &main["version"]), (&json!("main"), &json!("main"), &json!(0)));
    let read = shop.staff(Call::new("GET /v1/locations/{id}").path("id", "main")).await;
    assert_eq!((&read.body, read.header("etag")), (&main, None));
    let changed = shop.staff(put("main").header("if-match", "\"0\"").json(&json!({"name": "x"}))).await;
    assert_eq!((changed.status, changed.code()), (412, Some("version_mismatch")), "only a creation can name it");
    let body = json!({"name": "Hall 1", "address": {
        "name": "Ice Ltd", "line1": "Hafenstr. 1", "city": "Ulm", "postal_code": "89073", "country": "DE",
    }});
    let named = shop.staff(put("main").header("if-none-match", "*").json(&body)).await;
    assert_eq!((named.status, named.version(), &named.body["address"]["city"]), (201, Some(1), &json!("Ulm")));
    assert_eq!(list(&shop).await["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_location_is_created_once_and_changed_at_its_version() {
    let shop = Shop::open().await;
    let created = create(&shop, "ulm").await;
    assert_eq!((created.status, created.header("location")), (201, Some("/v1/locations/ulm")), "{}", created.body);
    let again = create(&shop, "ulm").await;
    assert_eq!((again.status, again.code()), (409, Some("already_exists")));
    let change = |version: &str, id| put(id).header("if-match", version).json(&json!({"name": "Ulm"}));
    let changed = shop.staff(change("\"1\"", "ulm")).await;
    assert_eq!((changed.status, changed.version(), &changed.body["name"]), (200, Some(2), &json!("Ulm")));
    assert_eq!(shop.staff(change("\"1\"", "ulm")).await.status, 412);
    assert_eq!(shop.staff(change("\"1\"", "bern")).await.status, 404);
    assert_eq!(shop.staff(put("ulm").json(&json!({"name": "x"}))).await.status, 428);
    assert_eq!(shop.send(Call::new("GET /v1/locations").customer("c1")).await.status, 403);
    let listed = shop.staff(Call::new("GET /v1/locations")).await;
    assert_eq!(each(&listed, "id"), ["main", "ulm"]);
}

#[tokio::test]
async fn a_shop_has_at_most_fifty_locations() {
    let shop = Shop::open().await;
    let created = join_all((0..60).map(|number| {
        let shop = &shop;
        async move {
            let call = put(&format!("l{number:02}")).header("if-none-match", "*").json(&json!({"name": "x"}));
            shop.settled(call.staff("s1")).await
        }
    }))
    .await;
    let full: Vec<_> = created.iter().filter(|answer| answer.code() == Some("too_many_locations")).collect();
    assert_eq!((full.len(), full[0].status), (10, 409));
    // `main` comes on top, before and after staff name it.
    assert_eq!(list(&shop).await["items"].as_array().unwrap().len(), 51);
    assert_eq!(create(&shop, "main").await.status, 201);
    let listed = list(&shop).await["items"].as_array().unwrap().clone();
    assert_eq!((listed.len(), &listed[50]["version"]), (51, &json!(1)));
}

#[tokio::test]
async fn a_stock_at_a_further_location_is_not_for_sale() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 5).await;
    create(&shop, "ulm").await;
    assert_eq!(stock(&shop, "ulm").await, 0);
    assert_eq!(shop.staff(set("p1", "ulm", 7)).await.body, json!({"stock": 7}));
    let added = shop.staff(adjust("ulm", 3, "k1")).await;
    assert_eq!((added.status, added.body["stock"].clone()), (200, json!(10)), "{}", added.body);
    assert_eq!(shop.staff(adjust("ulm", 3, "k1")).await.body, added.body, "a repetition has no effect");
    assert_eq!([stock(&shop, "ulm").await, stock(&shop, "main").await], [json!(10), json!(5)]);
    assert_eq!(shop.product("p1").await.body["stock"], 5, "customers buy the pieces of `main`");
    assert_eq!(shop.staff(set("p1", "main", 0)).await.status, 200);
    let page = shop.product("p1").await.body;
    assert_eq!((&page["availability"], stock(&shop, "ulm").await), (&json!("none"), json!(10)));
    let short = shop.staff(adjust("ulm", -11, "k2")).await;
    assert_eq!((short.status, short.code()), (409, Some("insufficient_stock")));
    let first = shop.staff(adjust("ulm", -10, "k3")).await;
    assert_eq!(first.body["stock"], 0);
    assert!(shop.keys("STOCK#p1#ulm").await.len() == 1);
}

#[tokio::test]
async fn concurrent_adjustments_at_a_new_location_all_count() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 0).await;
    create(&shop, "ulm").await;
    let keys: Vec<String> = (0..8).map(|number| format!("k{number}")).collect();
    let answers = join_all(keys.iter().map(|key| shop.settled(adjust("ulm", 2, key).staff("s1")))).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert_eq!(stock(&shop, "ulm").await, 16);
}

#[tokio::test]
async fn only_products_for_sale_have_stock_and_only_at_locations_that_exist() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 0).await;
    for call in [set("p1", "bern", 1), adjust("bern", 1, "k1")] {
        let refused = shop.staff(call).await;
        assert_eq!((refused.status, refused.code()), (404, Some("not_found")), "{}", refused.body);
    }
    create(&shop, "ulm").await;
    assert_eq!(shop.staff(set("p2", "ulm", 1)).await.status, 404);
    assert_eq!(shop.staff(set("p1", "ulm", 7)).await.status, 200);
    let variant = with(with(product("p3", 1), "parent", json!("p1")), "options", json!({"size": "M"}));
    assert_eq!(shop.staff(Call::new("POST /v1/products").json(&variant)).await.status, 201);
    for call in [set("p1", "ulm", 1), adjust("ulm", 1, "k2")] {
        let refused = shop.staff(call).await;
        assert_eq!((refused.status, refused.code()), (409, Some("has_variants")), "{}", refused.body);
    }
    let read = shop.staff(Call::new("GET /v1/products/{id}/stock").path("id", "p1")).await;
    assert_eq!((read.status, read.code()), (409, Some("has_variants")));
    // The pieces from before the first variant can leave.
    assert_eq!(shop.staff(adjust("ulm", -5, "k3")).await.body["stock"], 2);
    assert_eq!(shop.staff(set("p1", "ulm", 0)).await.status, 200);
    assert_eq!(stock(&shop, "ulm").await, 0);
}
