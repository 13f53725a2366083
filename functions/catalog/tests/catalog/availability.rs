//! Tests of the stock level, and of the exact stock and sales that only staff see.

use http_api::sample::Call;
use serde_json::json;

use crate::shop::Shop;

#[tokio::test]
async fn everybody_sees_a_stock_level_and_only_staff_see_the_numbers() {
    let shop = Shop::open().await;
    let numbers = |id: &str| Call::new("GET /v1/products/{id}/numbers").path("id", id);
    for (stock, level) in [(0, "none"), (1, "low"), (9, "low"), (10, "plenty"), (4_000, "plenty")] {
        let id = format!("p{stock}");
        shop.stock_up(&id, stock).await;
        let page = Call::new("GET /v1/products/{id}").path("id", &id);
        let seen = shop.ok(page.clone()).await;
        // Caches keep one response for everybody, so staff see the same page.
        assert_eq!(shop.ok(page.staff("s1")).await.body, seen.body);
        assert_eq!((&seen.body["in_stock"], &seen.body["availability"]), (&json!(stock > 0), &json!(level)));
        assert!(seen.body.get("stock").is_none() && seen.body.get("sold").is_none(), "{}", seen.body);
        let of_staff = shop.ok(numbers(&id).staff("s1")).await;
        let expected = json!({"product_id": id, "stock": stock, "sold": {"quantity": 0, "orders": 0}, "version": 1});
        assert_eq!((&of_staff.body, of_staff.header("cache-control")), (&expected, Some("no-store")));
        assert_eq!(shop.refusal(numbers(&id).customer("c1")).await, (403, "forbidden".to_owned()));
    }
    assert_eq!(shop.refusal(numbers("p2").staff("s1")).await, (404, "not_found".to_owned()));
}

/// The tag of a page changes with every byte of it, and a change accepts it as the version.
#[tokio::test]
async fn the_tag_of_a_page_changes_with_the_stock_level_and_with_the_rating() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 10).await;
    let page = Call::new("GET /v1/products/{id}").path("id", "p1");
    let tag = async || shop.ok(page.clone()).await.header("etag").unwrap().to_owned();
    let first = tag().await;
    let known = shop.send(page.clone().header("if-none-match", &format!("\"x\", W/{first}"))).await;
    assert_eq!((known.status, known.header("etag"), &known.body), (304, Some(first.as_str()), &json!(null)));
    assert_eq!(known.header("cache-control"), Some("public, max-age=5, stale-while-revalidate=30"));
    let stock = Call::new("PUT /v1/products/{id}/stock").path("id", "p1").json(&json!({"set": 9}));
    assert_eq!(shop.staff(stock).await.status, 200);
    let second = tag().await;
    assert_ne!(first, second);
    assert_eq!(shop.send(page.clone().header("if-none-match", &first)).await.status, 200);
    shop.join("c1").await;
    let review = Call::new("PUT /v1/products/{id}/reviews/{customer}").path("id", "p1").path("customer", "c1");
    let review = review.json(&json!({"rating": 5, "title": "T", "text": "T"})).header("if-none-match", "*");
    assert_eq!(shop.send(review.customer("c1")).await.status, 201);
    let third = tag().await;
    assert_ne!(second, third);
    let change = Call::new("PATCH /v1/products/{id}").path("id", "p1").json(&json!({"summary": "Colder."}));
    assert_eq!(shop.staff(change.clone().header("if-match", &third)).await.status, 200);
    assert_eq!(shop.staff(change.header("if-match", &third)).await.status, 412);
}
