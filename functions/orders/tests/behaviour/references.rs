//! Tests of references. They are unique for each customer, and among the orders that staff place.

use http_api::sample::{Answered, Call};
use serde_json::json;

use crate::shop::{Shop, moved, staff_order};

fn own(customer: &str, reference: &str, key: &str) -> Call {
    let lines = json!([{ "product_id": "tea", "quantity": 1 }]);
    let body = json!({ "customer_id": customer, "reference": reference, "lines": lines });
    Call::new("POST /v1/orders").customer(customer).header("idempotency-key", key).json(&body)
}

fn staffs(reference: &str, key: &str) -> Call {
    staff_order(&[("tea", 1)], key, &json!({ "reference": reference }))
}

fn is_refused(second: &Answered, first: &Answered) -> bool {
    (second.status, second.code()) == (409, Some("already_exists"))
        && second.header("location") == first.header("location")
}

#[tokio::test]
async fn a_reference_is_unique_for_each_customer_and_among_the_orders_of_staff() {
    let shop = Shop::open().await;
    shop.sign_up("bob").await;
    shop.product("tea", 100).await;
    let ann = shop.send(own("ann", "4711", "k1")).await;
    let bob = shop.send(own("bob", "4711", "k1")).await;
    let staff = shop.send(staffs("4711", "k1")).await;
    for placed in [&ann, &bob, &staff] {
        assert_eq!((placed.status, &placed.body["reference"]), (201, &json!("4711")), "{}", placed.body);
    }
    assert!(is_refused(&shop.send(own("ann", "4711", "k2")).await, &ann));
    assert!(is_refused(&shop.send(own("bob", "4711", "k2")).await, &bob));
    assert!(is_refused(&shop.send(staffs("4711", "k2")).await, &staff));
    assert_eq!(shop.stock("tea").await, 97);
    // Even the reference of a cancelled order cannot be used again.
    assert_eq!(shop.send(moved(&ann.body, "cancelled")).await.status, 200);
    assert!(is_refused(&shop.send(own("ann", "4711", "k3")).await, &ann));
}

/// Each pair of reference and customer needs its own key, even if the reference or the customer's
/// id contains the keys' separator.
#[tokio::test]
async fn different_pairs_of_reference_and_customer_have_different_claims() {
    let shop = Shop::open().await;
    shop.sign_up("b#c").await;
    shop.sign_up("c").await;
    shop.product("tea", 100).await;
    for (customer, reference) in [("b#c", "a"), ("c", "a#b")] {
        assert_eq!(shop.send(own(customer, reference, "k")).await.status, 201, "{customer} {reference}");
    }
    assert_eq!(shop.send(staffs("a#b#c", "k")).await.status, 201);
}

#[tokio::test]
async fn a_refused_order_of_many_lines_frees_its_reference() {
    let shop = Shop::open().await;
    let products: Vec<String> = (0..60).map(|number| format!("p{number:02}")).collect();
    for (at, product) in products.iter().enumerate() {
        shop.product(product, if at == 59 { 0 } else { 5 }).await;
    }
    let order = |key: &str, count: usize| {
        let lines: Vec<_> =
            products.iter().take(count).map(|product| json!({ "product_id": product, "quantity": 1 })).collect();
        let body = json!({ "customer_id": "ann", "reference": "r", "lines": lines });
        Call::new("POST /v1/orders").customer("ann").header("idempotency-key", key).json(&body)
    };
    assert_eq!(shop.send(order("k1", 60)).await.code(), Some("insufficient_stock"));
    let placed = shop.send(order("k2", 59)).await;
    assert_eq!(placed.status, 201, "{}", placed.body);
    assert!(is_refused(&shop.send(order("k3", 58)).await, &placed));
}
