//! The event bus of a test: a script, EventBridge's wire in the words of a script, or the embedded one.

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

/// What an event is about, to tell events apart in tests.
pub fn subject(event: &Event) -> String {
    match &event.data {
        Data::OrderPlaced(data) => data.order_id.to_string(),
        Data::OrderStatusChanged(data) => format!("{} {}", data.order_id, data.to),
        Data::StockLow(data) => data.product_id.to_string(),
        Data::ReviewPosted(data) => data.product_id.to_string(),
        Data::CustomerTierChanged(data) => data.customer_id.to_string(),
    }
}

fn subjects(events: &[Event]) -> Vec<String> {
    events.iter().map(subject).collect()
}

type Rule = Box<dyn Fn(&Event) -> Outcome + Send + Sync>;

/// A bus that does as it is told.
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
    /// From now on the outcome of each event is what the rule says.
    pub fn tell(&self, rule: impl Fn(&Event) -> Outcome + Send + Sync + 'static) {
        *self.0.rule.lock().unwrap() = Some(Box::new(rule));
    }

    /// From now on it does not take the events with these subjects.
    pub fn fail(&self, fails: &[&str]) {
        let fails: Vec<String> = fails.iter().map(|subject| (*subject).to_owned()).collect();
        self.tell(move |event| if fails.contains(&subject(event)) { retryable() } else { Outcome::Published });
    }

    /// From now on it takes everything.
    pub fn recover(&self) {
        *self.0.rule.lock().unwrap() = None;
        *self.0.hangs.lock().unwrap() = false;
    }

    /// From now on it takes everything and never answers.
    pub fn hang(&self) {
        *self.0.hangs.lock().unwrap() = true;
    }

    /// Waits until it has taken what it does not answer.
    pub async fn hanging(&self) {
        self.0.hanging.notified().await;
    }

    /// The subjects of the events of each call.
    pub fn calls(&self) -> Vec<Vec<String>> {
        self.0.calls.lock().unwrap().iter().map(|call| subjects(call)).collect()
    }

    /// What it took, in order.
    pub fn published(&self) -> Vec<Event> {
        self.0.published.lock().unwrap().clone()
    }

    /// The same, subjects alone.
    pub fn subjects(&self) -> Vec<String> {
        subjects(&self.published())
    }
}

pub fn retryable() -> Outcome {
    Outcome::Retryable { reason: "told to".to_owned() }
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

/// The publisher itself, for an endpoint; it sends failed entries again for some milliseconds only.
pub fn event_bus(endpoint: &str, bytes: usize) -> EventBus {
    let credentials = SharedCredentialsProvider::new(Credentials::new("local", "local", None, None, "test"));
    let service = Service::of(Api::EventBridge, "us-east-1", Some(endpoint), credentials).unwrap();
    let service = service.with_limits(aws::Limits::once(Duration::from_secs(3)));
    EventBus::new(service, "shop".to_owned()).with_limits(Limits { bytes, budget: Duration::from_millis(500) })
}

/// An endpoint with EventBridge's wire that fails one entry of its first answer, and remembers what it was sent.
#[derive(Clone, Default)]
pub struct ScriptedEndpoint {
    fails: usize,
    calls: Arc<Mutex<Vec<Vec<String>>>>,
}

impl ScriptedEndpoint {
    /// Fails the entry with this number, from 1, of the first call.
    pub fn failing(number: usize) -> Self {
        Self { fails: number, ..Self::default() }
    }

    /// Starts it, and gives its address.
    pub async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/", post(put_events)).with_state(self.clone());
        tokio::spawn(async { axum::serve(listener, router).await });
        endpoint
    }

    /// The ids of the events of each call.
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
            true => json!({"ErrorCode": "ThrottlingException", "ErrorMessage": "told to"}),
            false => json!({"EventId": format!("e{number}")}),
        })
        .collect();
    calls.push(ids);
    Json(json!({"FailedEntryCount": u8::from(failing > 0), "Entries": results}))
}
