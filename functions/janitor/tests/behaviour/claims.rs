//! Tests of an order whose claims expired and now belong to another order.

use key_schema::idempotency::StoredResponse;
use key_schema::order::ReferenceClaim;

use crate::support::{Shop, counts, done, record};

#[tokio::test]
async fn claims_that_now_belong_to_another_order_are_kept() {
    let shop = Shop::open(1).await;
    let left = shop.plan(1, 1);
    shop.leave(&left, 1).await;
    // The idempotency key and the reference expired, and another order uses both.
    let mut other = shop.plan(2, 1);
    other.scope = left.scope.clone();
    shop.seed(record(&other, "2026-11-21T12:00:01.000Z").data).await;
    let reference = left.order.reference.clone().unwrap();
    shop.seed(ReferenceClaim { reference: reference.clone(), order_id: other.order.id.clone(), customer_id: None })
        .await;

    assert_eq!(counts(shop.tidy().await), done(1, 1, 0, 0));
    assert_eq!(shop.items(&left.order.id).await, 0);
    shop.assert_full().await;
    assert_eq!(shop.record(&other.scope).await.unwrap().answer, StoredResponse::Order(other.order.id.clone()));
    // The reference is still taken.
    let mut third = shop.plan(3, 1);
    third.order.data.reference = Some(reference);
    assert!(shop.place(&third).await.is_err());
    shop.assert_full().await;
}

#[tokio::test]
async fn the_claim_of_a_placed_order_stays_when_another_order_of_the_caller_is_undone() {
    let shop = Shop::open(1).await;
    let (placed, left) = (shop.plan(1, 1), shop.plan(2, 1));
    shop.place(&placed).await.unwrap();
    shop.leave(&left, 1).await;
    shop.tidy().await;
    assert!(shop.record(&placed.scope).await.is_some());
    assert_eq!(shop.record(&left.scope).await, None);
    assert_eq!(shop.stocks().await, [7]);
}
