//! Tests of a product's long description.

use http_api::sample::Call;
use serde_json::json;

use crate::shop::Shop;

fn put(text: &str) -> Call {
    Call::new("PUT /v1/products/{id}/content").path("id", "p1").json(&json!({"text": text}))
}

fn get() -> Call {
    Call::new("GET /v1/products/{id}/content").path("id", "p1")
}

#[tokio::test]
async fn content_is_created_once_and_replaced_at_its_version() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let created = shop.staff(put("# Ice\n\tcold").header("if-none-match", "*")).await;
    assert_eq!((created.status, created.version()), (201, Some(1)));
    assert_eq!(created.header("location"), Some("/v1/products/p1/content"));
    let again = shop.staff(put("other").header("if-none-match", "*")).await;
    assert_eq!((again.status, again.code()), (409, Some("already_exists")));
    let read = shop.send(get()).await;
    assert_eq!((read.status, &read.body), (200, &created.body));
    assert_eq!(read.header("cache-control"), Some("public, max-age=5, stale-while-revalidate=30"));
    let replaced = shop.staff(put("colder").header("if-match", "\"1\"")).await;
    assert_eq!((replaced.status, replaced.version(), &replaced.body["text"]), (200, Some(2), &json!("colder")));
    assert_eq!(shop.send(get()).await.body, replaced.body);
    let stale = shop.staff(put("coldest").header("if-match", "\"1\"")).await;
    assert_eq!((stale.status, stale.code()), (412, Some("version_mismatch")));
    assert_eq!(shop.product("p1").await.version(), Some(1), "a new text does not change the product's version");
}

#[tokio::test]
async fn a_write_needs_a_product_and_the_content_that_it_replaces() {
    let shop = Shop::open().await;
    assert_eq!(shop.staff(put("x").header("if-none-match", "*")).await.status, 404);
    assert_eq!(shop.staff(put("x").header("if-match", "\"1\"")).await.status, 404);
    shop.stock_up("p1", 1).await;
    assert_eq!(shop.staff(put("x").header("if-match", "\"1\"")).await.status, 404);
}

#[tokio::test]
async fn the_content_of_a_product_without_a_text_is_null_and_has_no_version() {
    let shop = Shop::open().await;
    assert_eq!(shop.send(get()).await.status, 404);
    shop.stock_up("p1", 1).await;
    let none = shop.send(get()).await;
    assert_eq!(none.body, json!({"product_id": "p1", "text": null, "version": null, "updated_at": null}));
    assert_eq!(
        (none.status, none.version(), none.header("cache-control")),
        (200, None, Some("public, max-age=5, stale-while-revalidate=30"))
    );
    let empty = shop.staff(put("").header("if-none-match", "*")).await;
    assert_eq!((empty.status, &empty.body["text"], empty.version()), (201, &json!(""), Some(1)));
    assert_eq!(shop.send(get()).await.body, empty.body);
}

#[tokio::test]
async fn content_has_up_to_100_kilobytes() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let most = "é".repeat(51_200);
    let answer = shop.staff(put(&format!("{most}x")).header("if-none-match", "*")).await;
    assert_eq!((answer.status, answer.pointers()), (422, vec!["/text"]));
    assert_eq!(shop.staff(put(&most).header("if-none-match", "*")).await.status, 201);
    assert_eq!(shop.send(get()).await.body["text"], json!(most));
}

#[tokio::test]
async fn a_retired_product_shows_no_content() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    shop.staff(put("x").header("if-none-match", "*")).await;
    shop.staff(Call::new("DELETE /v1/products/{id}").path("id", "p1").header("if-match", "\"1\"")).await;
    assert_eq!(shop.send(get()).await.status, 404);
    assert_eq!(shop.staff(put("y").header("if-match", "\"1\"")).await.status, 404);
}
