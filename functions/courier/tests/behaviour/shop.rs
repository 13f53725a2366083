//! A table with endpoints, and a courier.

use std::ops::Deref;
use std::time::Duration;

use aws::{Reach, Tls};
use aws_sdk_dynamodb::types::AttributeValue;
use bus::queue::Batch;
use courier::{Courier, Tally};
use fixture::records::{delivered, detail};
use fixture::{CURSOR_KEYS, TestTable, seed};
use key_schema::agent;
use key_schema::id::EndpointId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::webhook_delivery::{self, DeliveryState, WebhookDelivery};
use key_schema::webhook_endpoint::{self, WebhookEndpoint};
use key_schema::webhook_secret::{SecretSeed, WebhookKeys};
use serde_json::{Value, json};
use tokio::time;

const ROOTS: &[u8] = include_bytes!("../../../../shared/aws/roots/amazon-trust-services.pem");

pub struct Shop {
    test: TestTable,
    pub courier: Courier,
    pub keys: WebhookKeys,
}

impl Deref for Shop {
    type Target = TestTable;

    fn deref(&self) -> &TestTable {
        &self.test
    }
}

impl Shop {
    pub async fn open() -> Self {
        Self::reaching(Reach::Any).await
    }

    pub async fn reaching(reach: Reach) -> Self {
        let test = TestTable::create().await;
        let keys = || WebhookKeys::new(CURSOR_KEYS).unwrap();
        let tls = Tls::trusting(ROOTS).unwrap();
        let courier = Courier::new(test.table(), Some(keys()), tls, reach);
        Self { test, courier, keys: keys() }
    }

    /// Registers an endpoint that wants these kinds.
    pub async fn register(&self, number: u8, url: &str, kinds: &[&str]) -> EndpointId {
        let id = EndpointId::generate(Instant::EPOCH, [number; 10]);
        let endpoint = WebhookEndpoint {
            id: id.clone(),
            agent: None,
            secrets: vec![nonce(&format!("nonce-{number}"), Instant::EPOCH)],
            failing_since: None,
            url: url.to_owned(),
            kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
            description: None,
            disabled: None,
        };
        self.transact(&webhook_endpoint::create(&seed::stored(endpoint), None).unwrap()).await;
        id
    }

    /// Keeps the message of an agent's order for the endpoint from the agent's profile, or for that with these
    /// secrets.
    pub async fn notice(&self, url: &str, body: &str, secrets: &[SecretSeed]) -> EndpointId {
        let agent = seed::stored(seed::agent("acme"));
        self.transact(&agent::create(&agent).unwrap()).await;
        let endpoint = WebhookEndpoint {
            id: webhook_endpoint::id_of_agent(&agent),
            agent: Some(agent.id.clone()),
            secrets: secrets.to_vec(),
            failing_since: None,
            url: url.to_owned(),
            kinds: [].into(),
            description: None,
            disabled: None,
        };
        let headers = [("ucp-agent", "profile=\"https://shop.example\""), ("webhook-timestamp", "1700000000")];
        let (event, now) = (format!("{:032x}", 7), Instant::now());
        let delivery = WebhookDelivery {
            id: webhook_delivery::id_of(&event, now),
            endpoint_id: endpoint.id.clone(),
            event_id: event,
            kind: if secrets.is_empty() { "ucp.order" } else { "acp.order" }.to_owned(),
            body: body.to_owned(),
            signed_headers: secrets
                .is_empty()
                .then(|| headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into()),
            state: DeliveryState::Pending,
            due_at: Some(now),
            tries: 0,
            expires_at: now.plus_seconds(webhook_delivery::LIFETIME_SECONDS),
            attempts: Vec::new(),
        };
        let id = endpoint.id.clone();
        self.transact(&webhook_endpoint::adopt(&seed::stored(endpoint), &agent).unwrap()).await;
        self.table().write(&webhook_delivery::add(&seed::stored(delivery)).unwrap()).await.unwrap().unwrap();
        id
    }

    pub async fn endpoint(&self, id: &EndpointId) -> Stored<WebhookEndpoint> {
        self.table().get(&webhook_endpoint::get(id).unwrap()).await.unwrap().unwrap()
    }

    /// Returns the deliveries to an endpoint, the newest one first.
    pub async fn deliveries(&self, id: &EndpointId) -> Vec<Stored<WebhookDelivery>> {
        self.table().query(&webhook_delivery::list(id).unwrap()).await.unwrap().items
    }

    /// Returns the only delivery to an endpoint.
    pub async fn delivery(&self, id: &EndpointId) -> WebhookDelivery {
        let [only] = <[_; 1]>::try_from(self.deliveries(id).await).unwrap();
        only.data
    }

    /// Handles messages, and returns the ids of those that failed.
    pub async fn take(&self, messages: &[Value]) -> (Vec<String>, Tally) {
        let batch: Batch = serde_json::from_value(json!({ "Records": messages })).unwrap();
        let (answer, tally) = Box::pin(self.courier.take(&batch, self.stop())).await;
        (answer.failed().into_iter().map(str::to_owned).collect(), tally)
    }

    /// Runs a round with everything that waits for a later attempt due now.
    pub async fn run_round(&self, id: &EndpointId) -> Tally {
        for delivery in self.deliveries(id).await.into_iter().filter(|delivery| delivery.due_at.is_some()) {
            let (pk, sk) = (format!("ENDPOINT#{id}"), format!("DELIVERY#{}", delivery.id));
            let now = Instant::now();
            self.set(&pk, &sk, "due_at", AttributeValue::S(now.to_string())).await;
            self.set(&pk, &sk, "GSI3SK", AttributeValue::S(format!("{now}#{}", delivery.id))).await;
        }
        Box::pin(self.courier.run_round(self.stop())).await.unwrap()
    }

    pub fn stop(&self) -> time::Instant {
        time::Instant::now() + Duration::from_secs(40)
    }
}

pub fn nonce(nonce: &str, created_at: Instant) -> SecretSeed {
    SecretSeed { key: "test".to_owned(), nonce: nonce.to_owned(), created_at, ends_at: None }
}

/// Returns a message with an event of now. The event's id is `number` in hexadecimal.
pub fn message(kind: &str, number: u32, data: &Value) -> Value {
    let detail = detail(kind, number, &Instant::now().to_string(), data);
    json!({ "messageId": format!("m{number}"), "body": delivered(&detail).to_string() })
}

/// Returns a message about a low stock.
pub fn low(number: u32) -> Value {
    message("StockLow", number, &json!({ "product_id": "tea", "available": 3, "threshold": 10 }))
}
