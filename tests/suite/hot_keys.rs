//! Tests a throttled key: the table refuses requests, CloudWatch counts them, and the splitter
//! splits the counter.

use futures::future::join_all;
use key_schema::id::CounterName;
use key_schema::{counter, product};
use local::System;
use serde_json::{Value as Json, json};

use crate::support::client::Call;
use crate::support::shop::products;
use crate::support::with_own_system;

fn first_shard(name: &str) -> String {
    counter::read(&CounterName::new(name).unwrap()).unwrap().keys()[1].pk.as_str().to_owned()
}

fn addition(name: &str, key: &str) -> Call {
    let call = Call::new("POST", &format!("/v1/counters/{name}")).header("idempotency-key", key);
    call.json(&json!({"add": 1}))
}

async fn throttle(system: &System, name: &str, rate: f64, count: u32) {
    let key = first_shard(name);
    let fault = json!({"target": "table", "kind": "throttle", "rate": rate, "count": count, "key": key});
    Call::new("POST", "/_local/faults").json(&fault).send(system).await.expect(204);
}

/// Makes the table throttle a counter until it counts as hot.
pub async fn heat(system: &System, name: &str) {
    // Each addition makes four attempts. If a new minute begins meanwhile, the faults still reach
    // the threshold in one of the two minutes.
    throttle(system, name, 1.0, 24).await;
    let mut answers = Vec::new();
    for number in 0..7 {
        answers.push(addition(name, &format!("heat {number}")).send(system).await.status);
    }
    // A scheduled run of the splitter may split the counter meanwhile. The new shard is not
    // throttled.
    assert!(answers[0] == 503 && answers.iter().all(|status| [200, 503].contains(status)), "{answers:?}");
}

/// Runs the splitter once and returns its report.
pub async fn round(system: &System) -> Json {
    Call::new("POST", "/_local/invoke/Splitter").json(&json!({})).send(system).await.expect(200).body
}

/// Makes the table throttle a stock until the splitter gives it more shards. Two hours later, the
/// splitter merges them.
pub async fn spread(system: &System, id: &str) {
    products(system, &[id], 100).await;
    let stock = product::stock(&id.parse().unwrap()).unwrap().key().pk.as_str().to_owned();
    let fault = json!({"target": "table", "kind": "throttle", "rate": 1.0, "count": 24, "key": stock});
    Call::new("POST", "/_local/faults").json(&fault).send(system).await.expect(204);
    for _ in 0..7 {
        Call::new("GET", &format!("/v1/products/{id}")).send(system).await;
    }
    Call::new("DELETE", "/_local/faults").send(system).await.expect(204);
    // A scheduled run of the splitter may have split the stock already.
    round(system).await;
    let clock = json!({"target": "function:Splitter", "kind": "clock", "seconds": 2 * 60 * 60});
    Call::new("POST", "/_local/faults").json(&clock).send(system).await.expect(204);
    let done = round(system).await;
    assert_eq!((&done["merged"], &done["failed"]), (&json!(1), &json!(0)), "{done}");
    Call::new("DELETE", "/_local/faults").send(system).await.expect(204);
}

/// Adds 1 to the counter. Retries while the table throttles the request.
async fn add(system: &System, name: &str, key: &str) {
    for _ in 0..50 {
        let answer = addition(name, key).send(system).await;
        if answer.status != 503 {
            answer.expect(200);
            return;
        }
    }
    panic!("no answer to {key}")
}

#[test]
fn a_counter_whose_key_the_table_throttles_is_split_and_loses_no_addition() {
    with_own_system(async |system| {
        let name = "hot-keys";
        add(system, name, "first").await;
        assert_eq!(
            round(system).await,
            json!({"throttled": 0, "hot": 0, "split": 0, "full": 0, "moves": 0, "merged": 0, "failed": 0})
        );
        throttle(system, name, 0.5, 100).await;
        let keys: Vec<String> = (0..50).map(|number| format!("add {number}")).collect();
        join_all(keys.iter().map(|key| add(system, name, key))).await;
        // A scheduled run of the splitter may have split the counter already.
        let done = round(system).await;
        assert_eq!((&done["hot"], &done["failed"]), (&json!(1), &json!(0)), "{done}");
        assert_eq!(round(system).await["split"], 0, "the splitter ignores the counts before a split");
        Call::new("DELETE", "/_local/faults").send(system).await.expect(204);
        let read = Call::new("GET", &format!("/v1/counters/{name}")).staff().send(system).await.expect(200);
        assert_eq!(read.body["value"], 51);
        assert!([2, 4].contains(&read.body["shards"].as_u64().unwrap()), "{}", read.body);
        let elsewhere = json!({"target": "bus", "kind": "throttle", "key": "COUNTER"});
        Call::new("POST", "/_local/faults").json(&elsewhere).send(system).await.expect(400);
    });
}
