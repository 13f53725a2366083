//! Measures endpoints of webhooks, and deliveries to them.

use key_schema::agent::Agent;
use key_schema::id::{DeliveryId, EndpointId};
use key_schema::item::Stored;
use key_schema::webhook_delivery::{self, Attempt, DeliveryState, WebhookDelivery};
use key_schema::webhook_endpoint::{self, Disabled, DisabledReason, WebhookEndpoint};
use key_schema::webhook_secret::SecretSeed;

use super::meter::Bench;
use crate::data::{self, at};

/// About as many bytes as the event of an order with 5 lines.
const BODY_BYTES: usize = 2_000;

pub(super) async fn measure(bench: &mut Bench) {
    let id = EndpointId::generate(at(0), [1; 10]);
    for number in 1..=5 {
        let own = if number == 1 { id.clone() } else { EndpointId::generate(at(0), [number; 10]) };
        let create = webhook_endpoint::create(&data::stored(endpoint(own), number), None).unwrap();
        if number == 1 {
            bench.transact("one endpoint, without a key", create).await;
        } else {
            bench.table.transact(&create).await.unwrap().unwrap();
        }
    }
    let _ = bench.table.meter().take();
    let one = bench.get("one endpoint", webhook_endpoint::get(&id).unwrap()).await;
    bench.query("5 endpoints", 5, webhook_endpoint::list().unwrap()).await;
    let change = webhook_endpoint::change(&one.data, one.meta.version, true, at(1)).unwrap();
    let one = bench.update("one endpoint", change).await;
    bench.write("one endpoint", webhook_endpoint::fails(&id, at(2)).unwrap()).await;
    deliveries(bench, &id).await;
    let disabled = Disabled { reason: DisabledReason::Gone, at: at(3) };
    bench
        .table
        .write(&webhook_endpoint::disable(&id, one.meta.version, disabled, None).unwrap())
        .await
        .unwrap()
        .unwrap();
    let _ = bench.table.meter().take();
    bench.transact("one endpoint", webhook_endpoint::remove(&id, at(4)).unwrap()).await;
}

/// Measures how an agent gets its endpoint.
pub(super) async fn adopt(bench: &mut Bench, agent: &Stored<Agent>) {
    let own = WebhookEndpoint { agent: Some(agent.id.clone()), ..endpoint(webhook_endpoint::id_of_agent(agent)) };
    let adopt = webhook_endpoint::adopt(&data::stored(own, 9), agent).unwrap();
    bench.transact("the endpoint of an agent", adopt).await;
}

async fn deliveries(bench: &mut Bench, endpoint: &EndpointId) {
    for number in 2..=20 {
        let delivery = data::stored(delivery(endpoint, number), number);
        bench.table.write(&webhook_delivery::add(&delivery).unwrap()).await.unwrap().unwrap();
    }
    let _ = bench.table.meter().take();
    let one = data::stored(delivery(endpoint, 1), 1);
    let id = one.id.clone();
    bench.write("an event of 2 KB", webhook_delivery::add(&one).unwrap()).await;
    bench.query("20 of 20 deliveries", 20, webhook_delivery::due(endpoint, at(60)).unwrap()).await;
    let claim = webhook_delivery::claim(endpoint, &id, at(60), at(120)).unwrap();
    let claimed = bench.update("an event of 2 KB", claim).await.data;
    let attempt = Attempt { at: at(61), milliseconds: 120, status: Some(204), error: None };
    let (tried, state) = (claimed.with(attempt), DeliveryState::Delivered);
    let settle = webhook_delivery::settle(&tried, at(120), None, state, at(62)).unwrap();
    bench.write("an event of 2 KB", settle).await;
    bench.get("an event of 2 KB", webhook_delivery::get(endpoint, &id).unwrap()).await;
    bench.query("20 of 20 deliveries", 20, webhook_delivery::list(endpoint).unwrap()).await;
    bench.update("an event of 2 KB", webhook_delivery::redeliver(endpoint, &id, at(63)).unwrap()).await;
}

fn endpoint(id: EndpointId) -> WebhookEndpoint {
    let seed = SecretSeed { key: "k1".to_owned(), nonce: "n".repeat(36), created_at: at(0), ends_at: None };
    WebhookEndpoint {
        id,
        agent: None,
        secrets: vec![seed],
        failing_since: None,
        url: "https://erp.example/webhooks/bodega".to_owned(),
        kinds: ["order.*".to_owned(), "stock.low".to_owned()].into(),
        description: Some("The warehouse".to_owned()),
        disabled: None,
    }
}

fn delivery(endpoint: &EndpointId, number: u8) -> WebhookDelivery {
    WebhookDelivery {
        id: DeliveryId::generate(at(0), [number; 10]),
        endpoint_id: endpoint.clone(),
        event_id: format!("{number:032x}"),
        kind: "order.placed".to_owned(),
        body: "b".repeat(BODY_BYTES),
        signed_headers: None,
        state: DeliveryState::Pending,
        due_at: Some(at(60)),
        tries: 1,
        expires_at: at(webhook_delivery::LIFETIME_SECONDS),
        attempts: Vec::new(),
    }
}
