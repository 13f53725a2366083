//! Tests of payments from a wallet with several currencies, and of their refunds.

use http_api::sample::{Answered, Call};
use key_schema::money::Money;
use serde_json::{Value, json};

use crate::shop::{Shop, money, order};

fn euros(amount: i64) -> Money {
    Money::new(amount, "EUR".parse().unwrap())
}

/// Places an order of ann for one piece.
async fn placed(shop: &Shop, product: &str) -> Value {
    let placed = shop.send(order(&[(product, 1)], product)).await;
    assert_eq!(placed.status, 201, "{}", placed.body);
    placed.body
}

async fn step(shop: &Shop, order: &Value, body: &Value) -> Answered {
    let call = Call::new("POST /v1/orders/{id}/status").path("id", order["id"].as_str().unwrap()).customer("ann");
    shop.send(call.header("if-match", &format!("\"{}\"", order["version"])).json(body)).await
}

async fn pay(shop: &Shop, order: &Value) -> Answered {
    step(shop, order, &json!({ "to": "paid", "pay_from_wallet": true })).await
}

async fn refund(shop: &Shop, order: &Value, amount: Money, key: &str) -> Answered {
    let call = Call::new("POST /v1/orders/{id}/refunds").path("id", order["id"].as_str().unwrap()).staff("s1");
    shop.send(call.header("idempotency-key", key).json(&json!({ "amount": amount }))).await
}

#[tokio::test]
async fn an_order_is_paid_and_refunded_in_its_own_currency_only() {
    let shop = Shop::open().await;
    shop.priced_product("tea", euros(100)).await;
    let order = placed(&shop, "tea").await;
    shop.store_wallet(&[money(1_000), euros(99)]).await;
    let poor = pay(&shop, &order).await;
    assert_eq!(
        (poor.status, poor.code()),
        (409, Some("insufficient_funds")),
        "a balance in dollars does not pay an order in euros"
    );
    shop.store_wallet(&[money(1_000), euros(130)]).await;
    let paid = pay(&shop, &order).await;
    assert_eq!(paid.status, 200, "{}", paid.body);
    let payment = &paid.body["payments"][0];
    assert_eq!((&payment["method"], &payment["by"]), (&json!("wallet"), &json!("ann")));
    assert_eq!((&payment["amount"], &payment["refunded"]), (&json!(euros(100)), &json!(euros(0))));
    assert_eq!(shop.balances().await, [euros(30), money(1_000)]);
    let wrong = refund(&shop, &order, money(1), "k").await;
    assert_eq!((wrong.status, wrong.pointers()), (422, vec!["/amount/currency"]));
    assert_eq!(refund(&shop, &order, euros(40), "k").await.status, 201);
    assert_eq!(shop.balances().await, [euros(70), money(1_000)]);
    let read = Call::new("GET /v1/orders/{id}").path("id", order["id"].as_str().unwrap()).customer("ann");
    let now = shop.send(read.clone()).await.body;
    assert_eq!(now["payments"][0]["refunded"], json!(euros(40)));
    let cancelled = step(&shop, &now, &json!({ "to": "cancelled" })).await;
    assert_eq!((cancelled.status, &cancelled.body["payments"][0]["refunded"]), (200, &json!(euros(100))));
    assert_eq!(shop.send(read).await.body, cancelled.body);
    let again = shop.send(self::order(&[("tea", 1)], "tea")).await;
    assert_eq!(again.body["payments"], json!([]), "a repeated placement gets the first response");
    assert_eq!(shop.balances().await, [euros(130), money(1_000)], "the rest was refunded");
}

/// A Query is not isolated from the transaction that pays an order, so it may return the paid head
/// without the payment.
#[tokio::test]
async fn an_order_whose_payment_was_not_read_is_neither_cancelled_nor_refunded() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    shop.store_wallet(&[money(1_000)]).await;
    let order = placed(&shop, "tea").await;
    let paid = pay(&shop, &order).await.body;
    let id = |name: &str| paid.pointer(name).unwrap().as_str().unwrap().to_owned();
    let key = format!("TENDER#{}", id("/payments/0/id"));
    shop.delete_at(&format!("ORDER#{}", id("/id")), &key).await;
    let cancelled = step(&shop, &paid, &json!({ "to": "cancelled" })).await;
    assert_eq!(cancelled.status, 503, "{}", cancelled.body);
    assert_eq!(refund(&shop, &paid, money(1), "k").await.status, 503);
    assert_eq!(shop.balances().await, [money(900)]);
}
