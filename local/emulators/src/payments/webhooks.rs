//! Signed events, and their delivery to one endpoint (<https://docs.stripe.com/webhooks>).

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::redirect::Policy;
use ring::hmac;
use serde::{Deserialize, Serialize};

/// Time after which an endpoint's response counts as missing.
const PATIENCE: Duration = Duration::from_secs(20);

/// An event of a payment. `body` is the JSON of Stripe's event object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub id: String,
    /// The type, such as `payment_intent.succeeded`.
    pub kind: String,
    pub intent: String,
    pub created: i64,
    pub body: String,
}

/// One attempt to deliver an event: the body, and the header `Stripe-Signature`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub event: String,
    pub body: String,
    pub signature: String,
}

/// When and how the events are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Each event once, in order, right after its request.
    #[default]
    AtOnce,
    /// Like `AtOnce`, but each event twice.
    Twice,
    /// Like `AtOnce`, but the events of a request in reverse order.
    Reversed,
    /// The events wait until a test delivers them.
    Held,
    /// The events are never delivered.
    Never,
}

/// A callback that sends a delivery to the endpoint. It returns whether the endpoint accepted it.
pub type SendDelivery = Box<dyn Fn(Delivery) -> BoxFuture<'static, bool> + Send + Sync>;

/// The endpoint that gets the events.
pub struct Webhook {
    send: SendDelivery,
    secrets: Vec<String>,
}

impl Webhook {
    /// Each of the secrets signs each event, as while a secret is replaced.
    #[must_use]
    pub fn new(secrets: Vec<String>, send: SendDelivery) -> Self {
        Self { send, secrets }
    }

    /// Creates an endpoint that gets the events by HTTP.
    pub fn at(url: &str, secrets: Vec<String>) -> reqwest::Result<Self> {
        let client = reqwest::Client::builder().timeout(PATIENCE).redirect(Policy::none()).build()?;
        let url = url.to_owned();
        let send = move |delivery: Delivery| -> BoxFuture<'static, bool> {
            let request = client.post(&url).header("stripe-signature", delivery.signature);
            let request = request.header("content-type", "application/json; charset=utf-8").body(delivery.body);
            Box::pin(async move { request.send().await.is_ok_and(|response| response.status().is_success()) })
        };
        Ok(Self::new(secrets, Box::new(send)))
    }
}

/// Returns the header `Stripe-Signature` for a body, with one `v1` for each secret. The `v0` is a
/// fake signature that Stripe adds in test mode, which the receiver must ignore:
/// <https://docs.stripe.com/webhooks#verify-manually>.
#[must_use]
pub fn sign<S: AsRef<str>>(secrets: &[S], at: i64, body: &str) -> String {
    let mut header = format!("t={at}");
    for secret in secrets {
        header.push_str(",v1=");
        header.push_str(&tag(secret.as_ref(), at, body));
    }
    header.push_str(",v0=");
    header.push_str(&tag("", at, body));
    header
}

fn tag(secret: &str, at: i64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, format!("{at}.{body}").as_bytes());
    tag.as_ref().iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[derive(Default)]
pub(super) struct Webhooks(Mutex<Queue>);

#[derive(Default)]
pub(super) struct Queue {
    pub(super) mode: Mode,
    pub(super) endpoint: Option<Arc<Webhook>>,
    pub(super) pending: VecDeque<Event>,
}

impl Webhooks {
    pub(super) fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Queues events. Returns whether to deliver them now.
    pub(super) fn add(&mut self, events: Vec<Event>, capacity: usize) -> bool {
        if self.mode == Mode::Never || self.endpoint.is_none() {
            return false;
        }
        self.pending.extend(events);
        while self.pending.len() > capacity {
            self.pending.pop_front();
        }
        self.mode != Mode::Held && !self.pending.is_empty()
    }

    /// Takes the pending events, in the order and number of their deliveries.
    pub(super) fn take(&mut self) -> Vec<Event> {
        let events: Vec<Event> = self.pending.drain(..).collect();
        match self.mode {
            Mode::Twice => events.into_iter().flat_map(|event| [event.clone(), event]).collect(),
            Mode::Reversed => events.into_iter().rev().collect(),
            Mode::AtOnce | Mode::Held | Mode::Never => events,
        }
    }
}

impl Webhook {
    pub(super) fn delivery(&self, event: &Event, at: i64, is_signed_wrongly: bool) -> Delivery {
        let signature = match is_signed_wrongly {
            true => sign(&["whsec_of_another_endpoint"], at, &event.body),
            false => sign(&self.secrets, at, &event.body),
        };
        Delivery { event: event.id.clone(), body: event.body.clone(), signature }
    }

    pub(super) async fn send(&self, delivery: Delivery) -> bool {
        (self.send)(delivery).await
    }
}
