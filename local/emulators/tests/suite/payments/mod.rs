//! Tests the payment provider with requests in Stripe's wire format.

mod faults;
mod intents;
mod keys;
mod refunds;
mod webhooks;
mod wire;

use std::time::Duration;

use emulators::faults::{Fault, FaultKind};
use emulators::payments::{Account, PaymentServer, Settings};
use serde_json::Value;

const START: i64 = 1_800_000_000;
const INTENTS: &str = "/v1/payment_intents";
const MANUAL: &str = "amount=1000&currency=eur&capture_method=manual&confirm=true&payment_method=pm_card_visa";
const AUTOMATIC: &str = "amount=1000&currency=eur&confirm=true&payment_method=pm_card_visa";

struct Stripe {
    server: PaymentServer,
    client: reqwest::Client,
}

#[derive(Debug, PartialEq)]
struct Reply {
    status: u16,
    is_replayed: bool,
    retry: Option<String>,
    body: Value,
}

impl Stripe {
    /// The clock stands still, so that no test depends on the time that it takes.
    async fn new() -> Self {
        let settings = Settings { seed: 7, stopped_at: Some(START), ..Settings::default() };
        Self { server: PaymentServer::start(settings).await.unwrap(), client: reqwest::Client::new() }
    }

    fn request(&self, method: &str, path: &str, body: &str) -> reqwest::RequestBuilder {
        let url = format!("{}{path}", self.server.url());
        let request = self.client.request(method.parse().unwrap(), url).bearer_auth("sk_test_1");
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        request.header("stripe-version", "2025-03-31.basil").body(body.to_owned())
    }

    async fn post(&self, path: &str, body: &str) -> Reply {
        reply(self.request("POST", path, body)).await.unwrap()
    }

    async fn post_with_key(&self, path: &str, key: &str, body: &str) -> Reply {
        reply(self.request("POST", path, body).header("idempotency-key", key)).await.unwrap()
    }

    async fn get(&self, path: &str) -> Reply {
        reply(self.request("GET", path, "")).await.unwrap()
    }

    /// Creates a payment and returns its id.
    async fn created(&self, body: &str) -> String {
        let created = self.post(INTENTS, body).await;
        let intent = if created.status == 200 { &created.body } else { &created.body["error"]["payment_intent"] };
        intent["id"].as_str().unwrap().to_owned()
    }

    async fn intent(&self, id: &str) -> Value {
        self.get(&format!("{INTENTS}/{id}?expand[]=latest_charge")).await.body
    }

    fn account(&self, id: &str) -> Account {
        self.server.account(id).unwrap()
    }

    fn fault(&self, kind: FaultKind) {
        self.server.faults().add(Fault { kind, rate: 1.0, count: Some(1), seed: 0 }).unwrap();
    }

    fn events_after(&self, count: u64) -> Vec<String> {
        self.server.events(count, usize::MAX).items.into_iter().map(|event| event.kind).collect()
    }
}

impl Reply {
    fn error(&self, member: &str) -> &str {
        self.body["error"][member].as_str().unwrap_or_default()
    }
}

async fn reply(request: reqwest::RequestBuilder) -> reqwest::Result<Reply> {
    let response = request.send().await?;
    let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    assert!(header("request-id").is_some_and(|id| id.starts_with("req_")));
    let (is_replayed, retry) =
        (header("idempotent-replayed").as_deref() == Some("true"), header("stripe-should-retry"));
    let status = response.status().as_u16();
    Ok(Reply { status, is_replayed, retry, body: response.json().await? })
}

/// Waits until a condition holds. It becomes true without further action, so only a failure waits
/// for long.
async fn until(condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap();
}
