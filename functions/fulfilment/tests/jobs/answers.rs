//! Tests of the responses to the queue.

use std::collections::BTreeSet;

use bus::queue::Batch;
use fulfilment::message::Step;
use key_schema::order::{OrderNumber, OrderStatus};
use serde_json::json;
use tokio::time;

use crate::support::{Warehouse, batch, message, moved, order, paid};

#[tokio::test]
async fn the_response_names_only_the_message_that_cannot_be_read() {
    let warehouse = Warehouse::open(3).await;
    let poisons = [
        json!({"messageId": "no-json", "body": "{"}),
        json!({"messageId": "no-event", "body": "{\"hello\": 1}"}),
        json!({"messageId": "no-body"}),
        message("unknown-kind", &json!({"id": "0", "type": "OrderEaten", "version": 1})),
        message("unknown-version", &json!({"id": "0", "type": "OrderStatusChanged", "version": 2})),
        message("malformed", &json!({"id": "0", "type": "OrderStatusChanged", "version": 1, "data": {"order_id": ""}})),
    ];
    for (number, poison) in (1..).zip(poisons) {
        let (before, after) = (order(2 * number), order(2 * number + 1));
        for id in [&before, &after] {
            warehouse.set(id, OrderStatus::Paid).await;
        }
        let failed = warehouse.take(&[paid(&before), poison.clone(), paid(&after)]).await;
        assert_eq!(failed, [poison["messageId"].as_str().unwrap()]);
        let mut seen: BTreeSet<_> = warehouse.jobs().await;
        seen.extend(warehouse.waiting().await);
        assert!(seen.contains(&before) && seen.contains(&after));
    }
}

#[tokio::test]
async fn events_for_other_consumers_are_skipped() {
    let warehouse = Warehouse::open(3).await;
    let stock = json!({
        "id": format!("{:032x}", 1), "type": "StockLow", "version": 1, "occurred_at": "2026-11-20T12:00:00.000Z",
        "sequence": 2,
        "data": {"product_id": "p1", "available": 3, "threshold": 10},
    });
    let messages =
        [message("m1", &stock), moved(&order(1), "shipped", "delivered"), moved(&order(1), "pending", "cancelled")];
    assert!(warehouse.take(&messages).await.is_empty());
    assert!(warehouse.jobs().await.is_empty() && warehouse.waiting().await.is_empty());
}

#[tokio::test]
async fn an_order_that_was_placed_with_status_paid_waits_for_a_station() {
    let total = json!({"amount": 129, "currency": "USD"});
    let placed = json!({
        "id": format!("{:032x}", 1), "type": "OrderPlaced", "version": 1, "occurred_at": "2026-11-20T12:00:00.000Z",
        "sequence": 2,
        "data": {
            "order_id": order(1), "number": OrderNumber::of(&order(1)), "reference": null, "customer_id": "c1",
            "by_customer": false, "store_id": null,
            "status": "paid", "totals": {"items": total, "discount": total, "shipping": total, "tax": total, "total": total},
            "shipping_method": null, "country": null, "promotions": [], "line_count": 1, "lines": [],
            "lines_left_out": 1, "placed_at": "2026-11-20T12:00:00.000Z",
        },
    });
    let Batch { records } = batch(&[message("m1", &placed)]);
    assert_eq!(Step::in_message(&records[0]).unwrap(), Step::Wait(order(1)));
}

#[tokio::test]
async fn messages_are_delivered_again_if_no_time_is_left() {
    let warehouse = Warehouse::open(3).await;
    warehouse.set(&order(1), OrderStatus::Paid).await;
    let messages = [paid(&order(1)), moved(&order(2), "paid", "cancelled")];
    let answer = warehouse.picking.take(&batch(&messages), time::Instant::now()).await;
    assert_eq!(answer.failed().len(), 2);
    assert_eq!(
        serde_json::to_value(&answer).unwrap(),
        json!({"batchItemFailures": [
            {"itemIdentifier": messages[0]["messageId"]}, {"itemIdentifier": messages[1]["messageId"]},
        ]})
    );
}

#[test]
fn a_message_without_an_id_fails_the_invocation() {
    assert!(serde_json::from_value::<Batch>(json!({"Records": [{"body": "{}"}]})).is_err());
}
