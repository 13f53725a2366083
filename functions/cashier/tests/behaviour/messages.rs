//! Tests of the messages of the queue.

use fixture::seed::usd;
use key_schema::order::OrderStatus;
use key_schema::payment::{CaptureMode, PaymentStatus};
use payments::{Capture, Provider as _};
use serde_json::json;

use crate::support::{TOTAL, Till, message, notified, order};

#[tokio::test]
async fn a_message_for_a_known_payment_settles_the_order() {
    let till = Till::open().await;
    for (number, capture, status, captured) in [
        (1, CaptureMode::AtOnce, PaymentStatus::Captured, TOTAL),
        (2, CaptureMode::AtShipping, PaymentStatus::Authorised, 0),
    ] {
        let (id, intent) = till.confirmed(number, capture).await;
        assert_eq!(till.read(&id).await.head.status, OrderStatus::Pending);
        // The provider delivers an event at least once.
        let messages = [notified("m1", &intent, Some(&id)), notified("m2", &intent, Some(&id))];
        assert!(till.take(&messages).await.is_empty());
        let order = till.read(&id).await;
        let payment = &order.payments[0];
        assert_eq!((order.head.status, payment.status, payment.captured), (OrderStatus::Paid, status, captured));
        assert_eq!(order.history.len(), 2, "the order is paid once");
    }
}

#[tokio::test]
async fn a_message_without_an_order_is_resolved_by_the_provider() {
    let till = Till::open().await;
    let (id, intent) = till.confirmed(1, CaptureMode::AtOnce).await;
    assert!(till.take(&[notified("m1", &intent, None)]).await.is_empty());
    assert_eq!(till.read(&id).await.head.status, OrderStatus::Paid);
}

#[tokio::test]
async fn a_message_about_a_payment_of_no_order_is_acknowledged() {
    let till = Till::open().await;
    let (id, intent) = till.confirmed(1, CaptureMode::AtOnce).await;
    // Another deployment uses the same account.
    let theirs = till.stripe.create(&order(9), usd(TOTAL), Capture::AtOnce, "theirs").await.unwrap();
    let messages = [
        notified("no-such-order", &theirs.id, None),
        notified("no-such-order-either", &theirs.id, Some(&order(9))),
        notified("not-of-this-order", &theirs.id, Some(&id)),
        notified("ours", &intent, Some(&id)),
    ];
    assert!(till.take(&messages).await.is_empty());
    let order = till.read(&id).await;
    assert_eq!((order.head.status, order.payments.len()), (OrderStatus::Paid, 1));
}

#[tokio::test]
async fn the_response_names_only_the_messages_that_cannot_be_read() {
    let till = Till::open().await;
    let (id, intent) = till.confirmed(1, CaptureMode::AtOnce).await;
    let stock = json!({
        "id": format!("{:032x}", 1), "type": "StockLow", "version": 1, "occurred_at": "2026-11-20T12:00:00.000Z",
        "sequence": 2,
        "data": {"product_id": "p1", "available": 3, "threshold": 10},
    });
    let messages = [
        json!({"messageId": "no-json", "body": "{"}),
        json!({"messageId": "no-body"}),
        message("unknown-kind", &json!({"id": "0", "type": "OrderEaten", "version": 1})),
        message("of-others", &stock),
        notified("ours", &intent, Some(&id)),
    ];
    assert_eq!(till.take(&messages).await, ["no-json", "no-body", "unknown-kind"]);
    assert_eq!(till.read(&id).await.head.status, OrderStatus::Paid);
}

#[tokio::test]
async fn messages_during_an_outage_of_the_provider_are_delivered_again() {
    let till = Till::open().await;
    let (id, intent) = till.confirmed(1, CaptureMode::AtOnce).await;
    let messages = [notified("with-order", &intent, Some(&id)), notified("without-order", &intent, None)];
    till.fail();
    assert_eq!(till.take(&messages).await, ["with-order", "without-order"]);
    assert_eq!(till.read(&id).await.head.status, OrderStatus::Pending);
    till.recover();
    assert!(till.take(&messages).await.is_empty());
    assert_eq!(till.read(&id).await.head.status, OrderStatus::Paid);
}
