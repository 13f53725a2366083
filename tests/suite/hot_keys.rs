//! A key that the table throttles: from the refusal over what CloudWatch counts of it to the counter that is split.

use futures::future::join_all;
use key_schema::counter;
use key_schema::id::CounterName;
use local::System;
use serde_json::{Value as Json, json};

use crate::support::client::Call;
use crate::support::with_own_system;

/// Where the shards of a counter begin: the first one's key.
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

/// A counter of which the table has just refused more than it should have to.
pub async fn heat(system: &System, name: &str) {
    // So many that one minute has enough of them, should another begin meanwhile. Each addition is tried four times.
    throttle(system, name, 1.0, 24).await;
    for number in 0..7 {
        let answer = addition(name, &format!("heat {number}")).send(system).await;
        assert_eq!(answer.status, if number < 6 { 503 } else { 200 });
    }
}

/// What a round of the splitter has done.
pub async fn round(system: &System) -> Json {
    Call::new("POST", "/_local/invoke/Splitter").json(&json!({})).send(system).await.expect(200).body
}

/// Adds 1, again and again while the table refuses it.
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
fn a_counter_whose_key_the_table_throttles_is_split_and_loses_nothing() {
    with_own_system(async |system| {
        let name = "hot-keys";
        add(system, name, "first").await;
        assert_eq!(round(system).await, json!({"throttled": 0, "hot": 0, "split": 0, "full": 0, "failed": 0}));
        throttle(system, name, 0.5, 100).await;
        let keys: Vec<String> = (0..50).map(|number| format!("add {number}")).collect();
        join_all(keys.iter().map(|key| add(system, name, key))).await;
        // The schedule may have been faster.
        let done = round(system).await;
        assert_eq!((&done["hot"], &done["failed"]), (&json!(1), &json!(0)), "{done}");
        assert_eq!(
            round(system).await["split"],
            0,
            "what was counted before a split says nothing of what came after it"
        );
        Call::new("DELETE", "/_local/faults").send(system).await.expect(204);
        let read = Call::new("GET", &format!("/v1/counters/{name}")).staff().send(system).await.expect(200);
        assert_eq!(read.body["value"], 51);
        assert!([2, 4].contains(&read.body["shards"].as_u64().unwrap()), "{}", read.body);
        let elsewhere = json!({"target": "bus", "kind": "throttle", "key": "COUNTER"});
        Call::new("POST", "/_local/faults").json(&elsewhere).send(system).await.expect(400);
    });
}
