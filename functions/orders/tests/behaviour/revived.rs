//! Tests of orders for a product that was retired and then revived under the same id.

use key_schema::id::{Born, ProductId};
use key_schema::product::Stock;

use crate::shop::{Shop, moved, order, stored};

#[tokio::test]
async fn a_cancelled_order_of_a_retired_product_returns_no_pieces_to_the_revived_product() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    shop.product("rice", 10).await;
    let earlier = shop.send(order(&[("tea", 3), ("rice", 2)], "earlier")).await;
    assert_eq!(earlier.status, 201, "{}", earlier.body);
    shop.revive("tea", 5).await;

    let cancelled = shop.send(moved(&earlier.body, "cancelled")).await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.body);
    assert_eq!((shop.stock("tea").await, shop.stock("rice").await), (5, 10));
    // Later orders take pieces of the revived product and return them.
    let later = shop.send(order(&[("tea", 4)], "later")).await;
    assert_eq!((later.status, &later.body["total"]["amount"]), (201, &800.into()), "{}", later.body);
    assert_eq!(shop.stock("tea").await, 1);
    assert_eq!(shop.send(moved(&later.body, "cancelled")).await.status, 200);
    assert_eq!(shop.stock("tea").await, 5);
}

/// The order was computed with the price that the product had before its retirement.
#[tokio::test]
async fn an_order_whose_product_is_revived_between_read_and_transaction_is_sent_again() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    let stock = |product_born| Stock {
        product_id: ProductId::new("tea").unwrap(),
        available: 10,
        sellable: true,
        product_born,
        last_adjustment: None,
    };
    shop.put(&stored(stock(Some(Born::new("next").unwrap())))).await;
    let refused = shop.send(order(&[("tea", 3)], "k")).await;
    assert_eq!((refused.status, shop.stock("tea").await), (503, 10), "{}", refused.body);
    shop.put(&stored(stock(None))).await;
    assert_eq!(shop.send(order(&[("tea", 3)], "k")).await.status, 201);
}
