//! DELETE of a customer.

use http_api::sample::{Answered, Call};
use key_schema::id::{CustomerId, ProductId};
use key_schema::{customer, follow, graph, like, order};
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

/// How often something is liked, by the likes themselves and by the count.
async fn likes(shop: &Shop, product: &str) -> (usize, u64) {
    let product = ProductId::new(product).unwrap();
    let likers = shop.store.table.query(&like::likers(&product).unwrap()).await.unwrap().items;
    let counted = shop.store.table.query(&like::of_product(&product).unwrap()).await.unwrap().items;
    (likers.len(), like::total(&counted).unwrap())
}

async fn edges(shop: &Shop, id: &str) -> usize {
    let id = CustomerId::new(id).unwrap();
    let own = shop.store.table.query(&graph::own(&id).unwrap().limit(1000)).await.unwrap().items;
    let followers = shop.store.table.query(&follow::followers(&id).unwrap().limit(1000)).await.unwrap().items;
    own.len() + followers.len()
}

#[tokio::test]
async fn erasure_takes_the_edges_from_and_to_the_customer_and_leaves_the_counts_right() {
    let shop = Shop::open().await;
    let products: Vec<String> = (0..23).map(|n| format!("p{n}")).collect();
    for product in &products {
        shop.product(product).await;
    }
    let everybody: Vec<String> =
        ["ann".to_owned(), "bob".to_owned()].into_iter().chain((0..118).map(|n| format!("c{n}"))).collect();
    for id in &everybody {
        shop.customer(id).await;
    }
    for product in &products {
        shop.like("ann", product).await;
    }
    shop.like("bob", "p0").await;
    shop.retire("p1").await;
    // More than one page of each.
    for id in &everybody[1..] {
        shop.follow("ann", id).await;
        shop.follow(id, "ann").await;
    }
    shop.follow("bob", "c1").await;
    assert_eq!(likes(&shop, "p0").await, (2, 2));
    assert_eq!(edges(&shop, "ann").await, 23 + 2 * 119);

    assert_eq!(erase(&shop, 1).await.status, 204);
    assert_eq!(edges(&shop, "ann").await, 0);
    assert_eq!(edges(&shop, "bob").await, 2, "one like, one follow");
    assert_eq!(likes(&shop, "p0").await, (1, 1));
    for product in &products[2..] {
        assert_eq!(likes(&shop, product).await, (0, 0), "{product}");
    }
}

#[tokio::test]
async fn an_erasure_that_broke_off_goes_on_when_it_is_repeated() {
    let shop = Shop::open().await;
    shop.product("p0").await;
    for id in ["ann", "bob"] {
        shop.customer(id).await;
    }
    shop.like("ann", "p0").await;
    shop.follow("ann", "bob").await;
    shop.follow("bob", "ann").await;
    // After the profile, before the rest.
    let ann = CustomerId::new("ann").unwrap();
    let profile = shop.store.table.get(&customer::edit(&ann).unwrap()).await.unwrap().unwrap();
    shop.store.table.transact(&customer::delete(&profile).unwrap()).await.unwrap();
    assert_eq!(erase(&shop, 1).await.status, 404);
    assert_eq!((edges(&shop, "ann").await, edges(&shop, "bob").await), (0, 0));
    assert_eq!(likes(&shop, "p0").await, (0, 0));
}
