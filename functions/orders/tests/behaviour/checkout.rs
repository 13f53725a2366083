//! Tests of the checkout of a cart.

use serde_json::json;

use crate::shop::{Shop, checkout, errors, money, reasons};

#[tokio::test]
async fn a_checkout_at_other_prices_than_the_customer_has_seen_is_refused() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    shop.product("rice", 10).await;
    shop.fill_cart(&[("tea", 2), ("rice", 1)]).await;
    shop.reprice("tea", money(125)).await;

    let refused = shop.check_out(&json!({ "expected_total": money(300) })).await;
    assert_eq!((refused.status, refused.code()), (409, Some("price_changed")), "{}", refused.body);
    let detail = "is 300 USD, but the order's total is now 350 USD (minor units)";
    assert_eq!(errors(&refused), [("/expected_total", "", detail)]);
    assert_eq!((shop.has_cart().await, shop.stock("tea").await), (true, 10));

    let placed = shop.check_out(&json!({ "expected_total": money(350) })).await;
    assert_eq!((placed.status, &placed.body["total"]), (201, &json!(money(350))), "{}", placed.body);
    assert_eq!((shop.has_cart().await, shop.stock("tea").await), (false, 8));
}

#[tokio::test]
async fn the_same_amount_in_another_currency_is_another_total() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    shop.fill_cart(&[("tea", 1)]).await;
    let euros = json!({ "expected_total": { "amount": 100, "currency": "EUR" } });
    assert_eq!(shop.check_out(&euros).await.code(), Some("price_changed"));
}

#[tokio::test]
async fn without_an_expected_total_the_current_prices_apply() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    shop.fill_cart(&[("tea", 1)]).await;
    shop.reprice("tea", money(125)).await;
    assert_eq!(shop.check_out(&json!({})).await.body["total"], json!(money(125)));
}

#[tokio::test]
async fn a_repeated_checkout_returns_the_first_order_though_the_price_has_changed_since() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    shop.fill_cart(&[("tea", 1)]).await;
    let attempt = || checkout().header("idempotency-key", "k").json(&json!({ "expected_total": money(100) }));
    let first = shop.send(attempt()).await;
    assert_eq!(first.status, 201, "{}", first.body);
    shop.reprice("tea", money(125)).await;
    let again = shop.send(attempt()).await;
    assert_eq!((again.status, &again.body), (201, &first.body));
}

/// Cart, quote and order have their lines in the sequence in which the customer added them.
#[tokio::test]
async fn a_refused_checkout_names_the_product_and_the_line_of_the_cart() {
    let shop = Shop::open().await;
    for (product, stock) in [("tea", 1), ("rice", 10), ("salt", 0)] {
        shop.product(product, stock).await;
    }
    shop.fill_cart(&[("tea", 2), ("salt", 3), ("rice", 1)]).await;
    let short = shop.check_out(&json!({})).await;
    assert_eq!((short.status, short.code()), (409, Some("insufficient_stock")));
    let lines = [("/items/0/quantity", "tea", "not enough in stock"), ("/items/1/quantity", "salt", "out of stock")];
    assert_eq!((errors(&short), reasons(&short)), (lines.to_vec(), vec!["insufficient_stock", "out_of_stock"]));

    shop.retire("salt").await;
    let gone = shop.check_out(&json!({})).await;
    assert_eq!((gone.status, gone.code()), (422, Some("unknown_product")));
    assert_eq!(errors(&gone), [("/items/1/product_id", "salt", "is not in the catalogue")]);
    assert_eq!(reasons(&gone), ["unknown_product"]);
}

#[tokio::test]
async fn a_checkout_without_a_cart_is_refused() {
    let refused = Shop::open().await.check_out(&json!({})).await;
    assert_eq!((refused.status, refused.code()), (422, Some("cart_empty")), "{}", refused.body);
}

#[tokio::test]
async fn the_refusal_of_a_too_large_total_names_the_lines_of_the_cart() {
    let shop = Shop::open().await;
    for product in ["tea", "rice"] {
        shop.product(product, 10).await;
        shop.reprice(product, money(6_000_000_000_000)).await;
    }
    shop.fill_cart(&[("tea", 1), ("rice", 1)]).await;
    let refused = shop.check_out(&json!({})).await;
    assert_eq!((refused.status, refused.pointers()), (422, vec!["/items"]), "{}", refused.body);
}
