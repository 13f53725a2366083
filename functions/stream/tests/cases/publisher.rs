//! The event bus of a test: scripted, an endpoint with EventBridge's protocol, or embedded.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws::{Api, Credentials, Service, SharedCredentialsProvider};
use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use bus::{Data, Event, EventBus, Limits, Outcome};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use stream::ports::Publisher;
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// Returns the subject of an event: a text by which the tests distinguish events.
pub fn subject(event: &Event) -> String {
    match &event.data {
        Data::OrderPlaced(data) => data.order_id.to_string(),
        Data::OrderStatusChanged(data) => format!("{} {}", data.order_id, data.to),
        Data::StockLow(data) => data.product_id.to_string(),
        Data::ReviewPosted(data) => data.product_id.to_string(),
        Data::CustomerTierChanged(data) => data.customer_id.to_string(),
        Data::EmailVerificationRequested(data) => data.customer_id.to_string(),
        Data::PaymentNotified(data) => data.intent.clone(),
        Data::PaymentReversed(data) => data.payment_id.to_string(),
    }
}

fn subjects(events: &[Event]) -> Vec<String> {
    events.iter().map(subject).collect()
}

type Rule = Box<dyn Fn(&Event) -> Outcome + Send + Sync>;

/// A scripted bus.
#[derive(Clone, Default)]
pub struct ScriptedBus(Arc<Script>);

#[derive(Default)]
struct Script {
    rule: Mutex<Option<Rule>>,
    calls: Mutex<Vec<Vec<Event>>>,
    published: Mutex<Vec<Event>>,
    hangs: Mutex<bool>,
    hanging: Notify,
}

impl ScriptedBus {
    /// Sets the rule for the outcome of each event from now on.
    pub fn tell(&self, rule: impl Fn(&Event) -> Outcome + Send + Sync + 'static) {
        *self.0.rule.lock().unwrap() = Some(Box::new(rule));
    }

    /// Fails the events with these subjects from now on.
    pub fn fail(&self, fails: &[&str]) {
        let fails: Vec<String> = fails.iter().map(|subject| (*subject).to_owned()).collect();
        self.tell(move |event| if fails.contains(&subject(event)) { retryable() } else { Outcome::Published });
    }

    /// Accepts every event from now on.
    pub fn recover(&self) {
        *self.0.rule.lock().unwrap() = None;
        *self.0.hangs.lock().unwrap() = false;
    }

    /// Accepts every event from now on, but never responds.
    pub fn hang(&self) {
        *self.0.hangs.lock().unwrap() = true;
    }

    /// Waits until the bus has accepted events to which it does not respond.
    pub async fn hanging(&self) {
        self.0.hanging.notified().await;
    }

    /// Returns the subjects of the events of each call.
    pub fn calls(&self) -> Vec<Vec<String>> {
        self.0.calls.lock().unwrap().iter().map(|call| subjects(call)).collect()
    }

    /// Returns the accepted events, in order.
    pub fn published(&self) -> Vec<Event> {
        self.0.published.lock().unwrap().clone()
    }

    /// Returns the subjects of the accepted events.
    pub fn subjects(&self) -> Vec<String> {
        subjects(&self.published())
    }
}

pub fn retryable() -> Outcome {
    Outcome::Retryable { reason: "injected".to_owned() }
}

impl Publisher for ScriptedBus {
    fn publish<'a>(&'a self, events: &'a [Event]) -> BoxFuture<'a, Vec<Outcome>> {
        Box::pin(async move {
            self.0.calls.lock().unwrap().push(events.to_vec());
            let outcomes: Vec<Outcome> = {
                let rule = self.0.rule.lock().unwrap();
                events.iter().map(|event| rule.as_ref().map_or(Outcome::Published, |rule| rule(event))).collect()
            };
            let taken = events.iter().zip(&outcomes).filter(|(_, outcome)| **outcome == Outcome::Published);
            self.0.published.lock().unwrap().extend(taken.map(|(event, _)| event.clone()));
            if *self.0.hangs.lock().unwrap() {
                self.0.hanging.notify_one();
                std::future::pending::<()>().await;
            }
            outcomes
        })
    }
}

/// Returns the real publisher for an endpoint. It retries failed entries for 500 ms only.
pub fn event_bus(endpoint: &str, bytes: usize) -> EventBus {
    let credentials = SharedCredentialsProvider::new(Credentials::new("local", "local", None, None, "test"));
    let service = Service::of(Api::EventBridge, "us-east-1", Some(endpoint), credentials).unwrap();
    let service = service.with_limits(aws::Limits::once(Duration::from_secs(3)));
    EventBus::new(service, "shop".to_owned()).with_limits(Limits { bytes, budget: Duration::from_millis(500) })
}

/// An endpoint with EventBridge's protocol. It fails one entry of its first response.
#[derive(Clone, Default)]
pub struct ScriptedEndpoint {
    fails: usize,
    calls: Arc<Mutex<Vec<Vec<String>>>>,
}

impl ScriptedEndpoint {
    /// Creates an endpoint that fails one entry of its first call. The `number` of the entry counts
    /// from 1.
    pub fn failing(number: usize) -> Self {
        Self { fails: number, ..Self::default() }
    }

    /// Starts the endpoint and returns its address.
    pub async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/", post(put_events)).with_state(self.clone());
        tokio::spawn(async { axum::serve(listener, router).await });
        endpoint
    }

    /// Returns the ids of the events of each call.
    pub fn calls(&self) -> Vec<Vec<String>> {
        self.calls.lock().unwrap().clone()
    }
}

async fn put_events(State(endpoint): State<ScriptedEndpoint>, body: String) -> Json<Value> {
    let request: Value = serde_json::from_str(&body).unwrap();
    let details = request["Entries"].as_array().unwrap().iter().map(|entry| entry["Detail"].as_str().unwrap());
    let ids: Vec<String> = details.map(|detail| detail.parse::<Event>().unwrap().id.to_string()).collect();
    let mut calls = endpoint.calls.lock().unwrap();
    let failing = if calls.is_empty() { endpoint.fails } else { 0 };
    let results: Vec<Value> = (1..=ids.len())
        .map(|number| match number == failing {
            true => json!({"ErrorCode": "ThrottlingException", "ErrorMessage": "injected"}),
            false => json!({"EventId": format!("e{number}")}),
        })
        .collect();
    calls.push(ids);
    Json(json!({"FailedEntryCount": u8::from(failing > 0), "Entries": results}))
}
