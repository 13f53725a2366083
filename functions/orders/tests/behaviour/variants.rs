//! Tests of orders for variants and for their parents, which customers cannot buy.

use fixture::seed;
use http_api::sample::{Answered, Call};
use key_schema::promotion::{Goods, Promotion};
use serde_json::json;

use crate::promotions::{discounts, ten};
use crate::shop::{Shop, money, moved, order, reasons, staff_order};

/// Opens a shop with tea, and with a shirt in the size M.
async fn shop_with_a_shirt() -> Shop {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    shop.product("shirt", 0).await;
    shop.vary("shirt", seed::product("shirt-m", money(250)), "M", 5).await;
    shop
}

fn assert_refused(answer: &Answered, pointer: &str) {
    assert_eq!((answer.status, answer.code()), (409, Some("has_variants")), "{}", answer.body);
    assert_eq!((answer.pointers(), reasons(answer)), (vec![pointer], vec!["has_variants"]));
    assert!(!answer.body.to_string().contains("stock"), "{}", answer.body);
}

#[tokio::test]
async fn an_order_of_a_parent_is_refused() {
    let shop = shop_with_a_shirt().await;
    let lines = [("tea", 1), ("shirt", 1)];
    assert_refused(&shop.send(order(&lines, "k")).await, "/lines/1/product_id");
    assert_refused(&shop.send(staff_order(&lines, "k", &json!({}))).await, "/lines/1/product_id");
    assert_eq!(shop.stock("tea").await, 10);
}

#[tokio::test]
async fn a_cart_with_a_parent_gets_no_quote_and_no_checkout() {
    let shop = shop_with_a_shirt().await;
    shop.fill_cart(&[("tea", 1), ("shirt", 1)]).await;
    let quote = Call::new("POST /v1/customers/{id}/cart/quote").path("id", "ann").customer("ann");
    assert_refused(&shop.send(quote.json(&json!({}))).await, "/items/1/product_id");
    assert_refused(&shop.check_out(&json!({})).await, "/items/1/product_id");
    assert!(shop.has_cart().await);
}

#[tokio::test]
async fn an_ordered_variant_has_its_own_price_and_stock() {
    let shop = shop_with_a_shirt().await;
    let placed = shop.send(order(&[("shirt-m", 2)], "k")).await;
    assert_eq!((placed.status, &placed.body["total"]["amount"]), (201, &json!(500)), "{}", placed.body);
    assert_eq!(placed.body["lines"][0]["name"], "shirt-m");
    assert_eq!((shop.stock("shirt-m").await, shop.stock("shirt").await), (3, 0));
    assert_eq!(shop.send(moved(&placed.body, "cancelled")).await.status, 200);
    assert_eq!(shop.stock("shirt-m").await, 5);
}

#[tokio::test]
async fn a_promotion_that_names_a_parent_applies_to_its_variants() {
    let shop = shop_with_a_shirt().await;
    let shirts = Goods::Products(vec!["shirt".parse().unwrap()]);
    shop.promote(Promotion { applies_to: shirts, ..ten() }).await;
    shop.fill_cart(&[("tea", 1), ("shirt-m", 2)]).await;
    let placed = shop.buy_with(&["TEN"]).await;
    assert_eq!((placed.status, discounts(&placed.body)), (201, vec![("ten", 50)]), "{}", placed.body);
}

#[tokio::test]
async fn an_order_from_before_the_first_variant_returns_no_pieces_to_the_parent() {
    let shop = Shop::open().await;
    shop.product("shirt", 3).await;
    let earlier = shop.send(order(&[("shirt", 3)], "k")).await;
    assert_eq!(earlier.status, 201, "{}", earlier.body);
    shop.vary("shirt", seed::product("shirt-m", money(250)), "M", 5).await;
    assert_eq!(shop.send(moved(&earlier.body, "cancelled")).await.status, 200);
    assert_eq!((shop.stock("shirt").await, shop.stock("shirt-m").await), (0, 5));
}
