//! DELETE of a customer.

use http_api::sample::{Answered, Call};
use key_schema::id::CustomerId;
use key_schema::order;
use serde_json::{Value, json};

use crate::shop::{Shop, if_match};

async fn erase(shop: &Shop, version: u64) -> Answered {
    let call = Call::new("DELETE /v1/customers/{id}").path("id", "ann").customer("ann");
    shop.send(if_match(call, version)).await
}

async fn sessions(shop: &Shop) -> usize {
    let call = Call::new("GET /v1/customers/{id}/sessions").path("id", "ann").query("limit", "100").customer("ann");
    shop.send(call).await.body["items"].as_array().unwrap().len()
}

async fn cart(shop: &Shop) -> Value {
    shop.send(Call::new("GET /v1/customers/{id}/cart").path("id", "ann").customer("ann")).await.body
}

#[tokio::test]
async fn erasure_takes_profile_sessions_and_cart_and_leaves_the_orders() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    shop.product("p0").await;
    shop.order("ann", "p0", 0).await;
    shop.cart("ann", 1, 60).await;
    // More than one page of them.
    for n in 0..130 {
        shop.session("ann", &format!("s{n}"), 60 + n).await;
    }
    shop.session("bob", "bobs", 60).await;

    let answer = erase(&shop, 1).await;
    assert_eq!((answer.status, &answer.body), (204, &Value::Null));
    assert_eq!(shop.read("ann").await.status, 404);
    assert_eq!(sessions(&shop).await, 0);
    assert_eq!(cart(&shop).await, json!({ "items": [], "expires_at": null }));
    let ann = CustomerId::new("ann").unwrap();
    let orders = shop.store.table.query(&order::of_customer(&ann, None, None).unwrap()).await.unwrap();
    assert_eq!(orders.items.len(), 1);
    let bobs = Call::new("DELETE /v1/sessions/{id}").path("id", "bobs").customer("bob");
    assert_eq!(shop.send(bobs).await.status, 204);
    let list = shop.send(Call::new("GET /v1/customers").query("tier", "bronze").staff("s")).await;
    assert_eq!(list.body["items"], json!([]));

    assert_eq!(erase(&shop, 1).await.status, 404);
}

#[tokio::test]
async fn erasure_needs_the_version_and_otherwise_touches_nothing() {
    let shop = Shop::open().await;
    let ann = shop.customer("ann").await;
    shop.session("ann", "s", 60).await;
    shop.cart("ann", 1, 60).await;
    let without = shop.send(Call::new("DELETE /v1/customers/{id}").path("id", "ann").customer("ann")).await;
    assert_eq!((without.status, without.code()), (428, Some("if_match_missing")));
    let stale = erase(&shop, 2).await;
    assert_eq!((stale.status, stale.code()), (412, Some("version_mismatch")));
    assert_eq!(shop.read("ann").await.body, ann);
    assert_eq!(sessions(&shop).await, 1);
    assert_eq!(cart(&shop).await["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn of_an_erasure_and_a_change_at_once_one_happens_whole() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let change = Call::new("PATCH /v1/customers/{id}")
        .path("id", "ann")
        .customer("ann")
        .json(&json!({ "email": "x@example.com" }));
    let (erased, changed) = futures::future::join(erase(&shop, 1), shop.send(if_match(change, 1))).await;
    if erased.status == 204 {
        assert!([404, 412].contains(&changed.status), "{}", changed.body);
        assert_eq!(shop.read("ann").await.status, 404);
        assert!(shop.find("x@example.com").await.is_empty());
    } else {
        assert_eq!((erased.status, changed.status), (412, 200));
        assert_eq!(shop.find("x@example.com").await, [changed.body]);
    }
    assert!(shop.find("ann@example.com").await.is_empty());
}

#[tokio::test]
async fn who_was_erased_may_sign_up_again() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    assert_eq!(erase(&shop, 1).await.status, 204);
    shop.customer("ann").await;
    assert_eq!(shop.read("ann").await.version(), Some(1));
}
