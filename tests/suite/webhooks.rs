//! Tests of the webhooks that an endpoint outside gets, through the whole system.

use fixture::receiver::{Received, Receiver};
use local::System;
use serde_json::{Value as Json, json};

use crate::support::client::Call;
use crate::support::shop::{customer, moved, order, path, products};
use crate::support::{drain, with_own_system};

async fn register(system: &System, url: &str, kinds: &[&str]) -> Json {
    let body = json!({ "url": url, "kinds": kinds });
    let create = Call::new("POST", "/v1/webhooks/endpoints").staff().header("idempotency-key", url).json(&body);
    create.send(system).await.expect(201).body
}

async fn deliveries(system: &System, endpoint: &Json) -> Vec<Json> {
    let path = path(&["webhooks", "endpoints", endpoint["id"].as_str().unwrap(), "deliveries"]);
    let found = Call::new("GET", &path).staff().send(system).await.expect(200).body;
    found["items"].as_array().unwrap().clone()
}

fn bodies(received: &[Received]) -> Vec<Json> {
    received.iter().map(|request| serde_json::from_str(&request.body).unwrap()).collect()
}

#[test]
fn an_endpoint_gets_the_life_of_an_order_in_numbered_events() {
    with_own_system(async |system| {
        let receiver = Receiver::start().await;
        let endpoint = register(system, &receiver.url, &["order.*"]).await;
        products(system, &["tea"], 10).await;
        customer(system, "ann").await;
        let placed = order(system, "ann", &[("tea", 2)], "one").await;
        moved(system, placed.clone(), &["paid", "picking", "shipped"]).await;
        drain(system).await;
        let mut events = bodies(&receiver.received());
        events.sort_by_key(|event| event["sequence"].as_u64());
        let told: Vec<_> = events.iter().map(|event| (&event["type"], &event["data"]["to"])).collect();
        let changed = json!("order.status_changed");
        assert_eq!(
            told,
            [
                (&json!("order.placed"), &Json::Null),
                (&changed, &json!("paid")),
                (&changed, &json!("picking")),
                (&changed, &json!("shipped")),
            ]
        );
        assert!(events.iter().all(|event| event["data"]["order_id"] == placed["id"]));
        let log = deliveries(system, &endpoint).await;
        assert_eq!(log.len(), 4);
        assert!(log.iter().all(|delivery| delivery["state"] == "delivered"), "{log:?}");
    });
}

#[test]
fn a_webhook_whose_courier_dies_after_sending_it_is_sent_again_with_the_same_id() {
    with_own_system(async |system| {
        let receiver = Receiver::start().await;
        let endpoint = register(system, &receiver.url, &["order.placed"]).await;
        products(system, &["tea"], 10).await;
        customer(system, "ann").await;
        let fault = json!({ "target": "function:Courier", "kind": "crash", "point": "courier.sent", "count": 1 });
        Call::new("POST", "/_local/faults").json(&fault).send(system).await.expect(204);
        order(system, "ann", &[("tea", 2)], "one").await;
        drain(system).await;
        let [first] = <[_; 1]>::try_from(receiver.received()).unwrap();
        assert_eq!(deliveries(system, &endpoint).await[0]["state"], "pending");
        // After its lease, the delivery is due again.
        let clock = json!({ "target": "function:Courier", "kind": "clock", "seconds": 120 });
        Call::new("POST", "/_local/faults").json(&clock).send(system).await.expect(204);
        let round = || Call::new("POST", "/_local/invoke/Courier").json(&json!({})).send(system);
        round().await.expect(200);
        let [second] = <[_; 1]>::try_from(receiver.received()).unwrap();
        assert_eq!((second.header("webhook-id"), &second.body), (first.header("webhook-id"), &first.body));
        assert_eq!(deliveries(system, &endpoint).await[0]["state"], "delivered");
        round().await.expect(200);
        assert!(receiver.received().is_empty());
    });
}
