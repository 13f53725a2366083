//! A warehouse: orders with a status, messages about them, and the stations in the table.

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bus::queue::Batch;
use fixture::TestTable;
use fixture::records::{delivered, detail};
use fixture::seed::usd;
use fulfilment::picking::Picking;
use key_schema::id::{Born, OrderId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::{Order, OrderStatus};
use key_schema::picking;
use serde_json::{Value, json};
use tokio::time;

const PLACED: &str = "2026-11-20T12:00:00.000Z";

pub struct Warehouse {
    test: TestTable,
    pub picking: Picking,
}

impl Deref for Warehouse {
    type Target = TestTable;

    fn deref(&self) -> &Self::Target {
        &self.test
    }
}

impl Warehouse {
    pub async fn open(stations: usize) -> Self {
        let test = TestTable::create().await;
        Self { picking: Picking::new(test.table(), stations), test }
    }

    /// Returns the queue of the same warehouse with another number of stations.
    pub fn with(&self, stations: usize) -> Picking {
        Picking::new(self.test.table(), stations)
    }

    /// Stores an order with this status.
    pub async fn set(&self, id: &OrderId, status: OrderStatus) {
        let at: Instant = PLACED.parse().unwrap();
        let order = Order { status, ..Order::new(id.clone(), "c1".parse().unwrap(), at, usd(129), 1) };
        self.put(&Stored::new(order, Born::new("b1").unwrap(), at)).await;
    }

    /// Returns the orders that have a station.
    pub async fn jobs(&self) -> BTreeSet<OrderId> {
        let stations = self.own().get(&picking::stations().unwrap()).await.unwrap();
        stations.map(|stations| stations.data.jobs).unwrap_or_default()
    }

    /// Returns the waiting orders, longest wait first.
    pub async fn waiting(&self) -> Vec<OrderId> {
        let page = self.own().query(&picking::waiting().unwrap()).await.unwrap();
        page.items.into_iter().map(|job| job.data.order_id).collect()
    }

    /// Takes messages in one batch and returns the ids of the failed messages.
    pub async fn take(&self, messages: &[Value]) -> Vec<String> {
        take(&self.picking, messages).await
    }

    /// Marks the order as paid and delivers the message about it.
    pub async fn pay(&self, id: &OrderId) {
        self.set(id, OrderStatus::Paid).await;
        assert!(self.take(&[paid(id)]).await.is_empty());
    }
}

pub async fn take(picking: &Picking, messages: &[Value]) -> Vec<String> {
    let answer = picking.take(&batch(messages), far()).await;
    answer.failed().into_iter().map(ToOwned::to_owned).collect()
}

pub fn far() -> time::Instant {
    time::Instant::now() + Duration::from_secs(60)
}

pub fn batch(messages: &[Value]) -> Batch {
    serde_json::from_value(json!({"Records": messages})).unwrap()
}

pub fn order(number: u8) -> OrderId {
    OrderId::generate(PLACED.parse::<Instant>().unwrap().plus_millis(number.into()), [number; 10])
}

pub fn paid(id: &OrderId) -> Value {
    moved(id, "pending", "paid")
}

/// Returns a message about a status change of the order.
pub fn moved(id: &OrderId, from: &str, to: &str) -> Value {
    let data = json!({
        "order_id": id, "customer_id": "c1", "from": from, "to": to, "total": {"amount": 129, "currency": "USD"},
        "placed_at": PLACED,
    });
    message(&format!("{id}-{to}"), &detail("OrderStatusChanged", 7, PLACED, &data))
}

pub fn message(id: &str, detail: &Value) -> Value {
    let body = delivered(detail).to_string();
    json!({"messageId": id, "receiptHandle": "h", "body": body, "attributes": {}, "messageAttributes": {}})
}

/// Polls the future to its end, and calls `disturb` when the future has waited `polls` times.
/// Returns the result, and whether `disturb` was called.
pub async fn disturbed_after<T>(polls: usize, disturb: impl Fn(), future: impl Future<Output = T>) -> (T, bool) {
    let (mut future, mut waits) = (pin!(future), 0);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready((value, waits > polls)),
        Poll::Pending => {
            if waits == polls {
                disturb();
            }
            waits += 1;
            Poll::Pending
        }
    })
    .await
}
