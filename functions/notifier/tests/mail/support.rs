//! A shop with one order, its events, and a scripted post office.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use fixture::TestTable;
use futures::future::poll_fn;
use key_schema::customer::Customer;
use key_schema::id::{Born, CustomerId, OrderId};
use key_schema::instant::Instant;
use key_schema::item::{Entity, Stored};
use key_schema::money::{Currency, Money};
use key_schema::order::{CustomerOrder, OrderLine, OrderStatus};
use key_schema::verification::EmailVerification;
use notifier::event::Delivery;
use notifier::mailer::{MailError, Mailer};
use notifier::message::Message;
use notifier::notifier::{MARGIN, Notifier, SEND_UNTIL};
use serde_json::{Value, json};
use tokio::time::Instant as Clock;

pub const NOW: &str = "2026-11-20T12:00:00.000Z";

pub fn at(text: &str) -> Instant {
    text.parse().unwrap()
}

/// Returns a deadline with time for one attempt. A second attempt fails while the first one runs.
pub fn at_once() -> Clock {
    Clock::now() + SEND_UNTIL + MARGIN
}

/// Returns a deadline that is longer than any test.
pub fn patient() -> Clock {
    Clock::now() + Duration::from_secs(60)
}

/// The fate of the next message.
pub enum Act {
    /// It is refused.
    Fail(MailError),
    /// It is accepted after this action.
    AcceptAfter(Box<dyn Fn() + Send>),
    /// It never arrives, and there is no response.
    LoseIt,
    /// It is accepted, but there is no response.
    LoseTheAnswer,
}

/// An accepted message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub to: String,
    pub subject: String,
    pub text: String,
    pub kind: &'static str,
}

#[derive(Clone, Default)]
pub struct Post {
    sent: Arc<Mutex<Vec<Sent>>>,
    script: Arc<Mutex<VecDeque<Act>>>,
    calls: Arc<Mutex<u32>>,
}

impl Post {
    pub fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    pub fn calls(&self) -> u32 {
        *self.calls.lock().unwrap()
    }

    pub fn next(&self, act: Act) {
        self.script.lock().unwrap().push_back(act);
    }

    fn accept(&self, message: &Message) {
        self.sent.lock().unwrap().push(Sent {
            to: message.to().to_string(),
            subject: message.subject().to_owned(),
            text: message.text().to_owned(),
            kind: message.kind().as_str(),
        });
    }
}

impl Mailer for Post {
    async fn send(&self, message: &Message) -> Result<(), MailError> {
        *self.calls.lock().unwrap() += 1;
        let act = self.script.lock().unwrap().pop_front();
        // A test can make the attempt crash here, before the acceptance. Another such point comes
        // after it.
        tokio::task::yield_now().await;
        match act {
            Some(Act::Fail(error)) => return Err(error),
            Some(Act::LoseIt) => pending().await,
            Some(Act::LoseTheAnswer) => {
                self.accept(message);
                pending::<()>().await;
            }
            Some(Act::AcceptAfter(done)) => {
                done();
                self.accept(message);
            }
            None => self.accept(message),
        }
        tokio::task::yield_now().await;
        Ok(())
    }
}

pub struct Shop {
    pub table: TestTable,
    pub post: Post,
    pub notifier: Notifier<Post>,
    pub customer: CustomerId,
    pub order: OrderId,
}

impl Shop {
    /// Opens a shop with a customer and one order of two lines.
    pub async fn open() -> Self {
        Self::of("Zoë", "zoe@example.com").await
    }

    pub async fn of(name: &str, email: &str) -> Self {
        let table = TestTable::create().await;
        let post = Post::default();
        let notifier = Notifier::new(table.table(), post.clone(), table.codes());
        let order = OrderId::generate(at(NOW), [7; 10]);
        let shop = Self { table, post, notifier, customer: CustomerId::new("c1").unwrap(), order };
        shop.put(Customer::new(shop.customer.clone(), email.parse().unwrap(), "zoe".parse().unwrap(), name.into()))
            .await;
        shop.put(shop.copy()).await;
        for (line, name, amount) in [(1, "ICE - CRUSHED/CUBED", 258), (2, "Milk", 99)] {
            shop.put(OrderLine {
                order_id: shop.order.clone(),
                line,
                product_id: format!("p{line}").parse().unwrap(),
                product_born: None,
                name: name.into(),
                quantity: 3 - line,
                unit_price: usd(129),
                total: usd(amount),
                expires_at: None,
            })
            .await;
        }
        shop
    }

    /// Replaces the customer's profile.
    pub async fn profile(&self, email: &str, email_verified: bool) {
        self.put(Customer {
            email_verified,
            ..Customer::new(self.customer.clone(), email.parse().unwrap(), "zoe".parse().unwrap(), "Zoë".into())
        })
        .await;
    }

    /// Stores a request for a code to this address and returns its event.
    pub async fn requested(&self, number: u32, email: &str, code_expires_at: &str) -> Delivery {
        self.put(EmailVerification {
            customer_id: self.customer.clone(),
            email: email.parse().unwrap(),
            expires_at: at(NOW).plus_seconds(86_400),
            nonce: Some(format!("nonce-{number}")),
            key: self.table.codes().newest().to_owned(),
            code_expires_at: at(code_expires_at),
            tries: 0,
            requested_at: vec![at(NOW)],
        })
        .await;
        let data = json!({"customer_id": self.customer, "expires_at": code_expires_at});
        delivery("EmailVerificationRequested", number, data)
    }

    /// Returns the number of items whose key starts with this text.
    pub async fn count(&self, pk: &str) -> usize {
        let mut items = self.table.client().scan().table_name(self.table.name()).into_paginator().items().send();
        let mut count = 0;
        while let Some(item) = items.next().await {
            count += usize::from(item.unwrap()["PK"].as_s().unwrap().starts_with(pk));
        }
        count
    }

    pub fn copy(&self) -> CustomerOrder {
        CustomerOrder {
            id: self.order.clone(),
            customer_id: self.customer.clone(),
            placed_at: at(NOW),
            reference: None,
            total: usd(357),
            line_count: 2,
            shipped_at: None,
            expires_at: None,
            status: OrderStatus::Pending,
            carrier: None,
            tracking: None,
        }
    }

    pub async fn put<T: Entity>(&self, data: T) {
        let item = Stored::new(data, Born::new("b1").unwrap(), at(NOW)).to_item().unwrap();
        let put = self.table.client().put_item().table_name(self.table.name());
        put.set_item(Some(item.into())).send().await.unwrap();
    }

    pub async fn remove(&self, pk: &str, sk: &str) {
        use aws_sdk_dynamodb::types::AttributeValue::S;
        let delete = self.table.client().delete_item().table_name(self.table.name());
        delete.key("PK", S(pk.into())).key("SK", S(sk.into())).send().await.unwrap();
    }

    /// Returns the event of the order's placing. The number becomes its id.
    pub fn placed(&self, number: u32) -> Delivery {
        let data = json!({
            "order_id": self.order, "reference": null, "customer_id": self.customer, "store_id": null,
            "status": "pending",
            "total": {"amount": 357, "currency": "USD"}, "line_count": 2, "placed_at": NOW,
        });
        delivery("OrderPlaced", number, data)
    }

    /// Returns the event of a status change of the order.
    pub fn moved(&self, number: u32, from: &str, to: &str) -> Delivery {
        let data = json!({
            "order_id": self.order, "customer_id": self.customer, "from": from, "to": to,
            "total": {"amount": 357, "currency": "USD"}, "placed_at": NOW,
        });
        delivery("OrderStatusChanged", number, data)
    }

    /// Returns the event of a status change with a reason.
    pub fn moved_because(&self, number: u32, from: &str, to: &str, reason: &str) -> Delivery {
        let mut delivery = self.moved(number, from, to);
        delivery.detail["data"]["reason"] = json!(reason);
        delivery
    }
}

pub fn delivery(kind: &str, number: u32, data: Value) -> Delivery {
    let event = json!({
        "version": "0", "id": "7f3c2d5e-6a40-4c1f-9b5e-3f0c6b1d2e4a", "detail-type": kind, "source": "bodega",
        "account": "123456789012",
        "time": "2026-11-20T12:00:01Z", "region": "eu-central-1", "resources": [],
        "detail": {"id": format!("{number:032x}"), "type": kind, "version": 1, "occurred_at": NOW, "data": data},
    });
    serde_json::from_value(event).unwrap()
}

fn usd(amount: i64) -> Money {
    Money::new(amount, Currency::USD)
}

/// Polls until the future has waited `polls` times, then drops it like a crash. Returns `None`
/// then.
pub async fn crash_after<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let (mut future, mut left) = (pin!(future), polls);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

/// Runs until the post office has been called `calls` times, then drops the future.
pub async fn crash_when_called<T>(post: &Post, calls: u32, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending if post.calls() >= calls => {
            // Poll once more, so that the script reaches its stopping point.
            context.waker().wake_by_ref();
            match future.as_mut().poll(context) {
                Poll::Ready(value) => Poll::Ready(Some(value)),
                Poll::Pending => Poll::Ready(None),
            }
        }
        Poll::Pending => Poll::Pending,
    })
    .await
}
