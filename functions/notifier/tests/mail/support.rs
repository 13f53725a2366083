//! A shop with one order, its events, and a scripted mail service.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use fixture::TestTable;
use fixture::records::{delivered, detail};
use fixture::seed::{self, usd};
use futures::future::poll_fn;
use key_schema::customer::Customer;
use key_schema::id::{Born, CustomerId, OrderId};
use key_schema::instant::Instant;
use key_schema::item::{Entity, Stored};
use key_schema::order::{CustomerOrder, Order, OrderLine, OrderNumber};
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

/// Returns a deadline that leaves time for one attempt, but no time to wait until the lease of
/// another attempt expires.
pub fn at_once() -> Clock {
    Clock::now() + SEND_UNTIL + MARGIN
}

/// Returns a deadline that is longer than any test.
pub fn patient() -> Clock {
    Clock::now() + Duration::from_secs(60)
}

/// The outcome that the mail service gives the next message.
pub enum Act {
    /// The message is refused.
    Fail(MailError),
    /// The message is accepted after this action.
    AcceptAfter(Box<dyn Fn() + Send>),
    /// The message never arrives, and there is no response.
    LoseIt,
    /// The message is accepted, but there is no response.
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
        // Here, and once more after the acceptance, a test can make the attempt crash.
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
            let line_of = seed::line(&shop.order, line, format!("p{line}").parse().unwrap());
            shop.put(OrderLine { name: name.into(), quantity: 3 - line, total: usd(amount), ..line_of }).await;
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

    /// Stores a request for a code that is sent to this address. Returns the request's event.
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

    pub fn copy(&self) -> CustomerOrder {
        CustomerOrder::of(&Order::new(self.order.clone(), self.customer.clone(), at(NOW), usd(357), 2))
    }

    pub async fn put<T: Entity>(&self, data: T) {
        self.table.put(&Stored::new(data, Born::new("b1").unwrap(), at(NOW))).await;
    }

    /// Returns the order's event `OrderPlaced`. The number becomes the event's id.
    pub fn placed(&self, number: u32) -> Delivery {
        let data = json!({
            "order_id": self.order, "number": OrderNumber::of(&self.order), "reference": null,
            "customer_id": self.customer, "store_id": null,
            "by_customer": true, "status": "pending",
            "totals": {
                "items": usd(357), "discount": usd(0), "shipping": usd(0), "tax": usd(0), "total": usd(357),
            },
            "shipping_method": null, "country": null, "promotions": [], "line_count": 2, "lines": [],
            "lines_left_out": 2, "placed_at": NOW,
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

    /// Returns the event of money that goes back.
    pub fn reversed(&self, number: u32, method: &str, reversal: &str, amount: i64) -> Delivery {
        let data = json!({
            "order_id": self.order, "customer_id": self.customer, "payment_id": "p1", "method": method,
            "reversal": reversal, "amount": usd(amount),
        });
        delivery("PaymentReversed", number, data)
    }

    /// Returns the event of a status change with a reason.
    pub fn moved_because(&self, number: u32, from: &str, to: &str, reason: &str) -> Delivery {
        let mut delivery = self.moved(number, from, to);
        delivery.detail["data"]["reason"] = json!(reason);
        delivery
    }
}

pub fn delivery(kind: &str, number: u32, data: Value) -> Delivery {
    serde_json::from_value(delivered(&detail(kind, number, NOW, &data))).unwrap()
}

/// Runs the future until the mail service has been called `calls` times, then drops the future.
pub async fn crash_when_called<T>(post: &Post, calls: u32, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending if post.calls() >= calls => {
            // Poll once more, so that the attempt reaches the last point where a test can crash it.
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
