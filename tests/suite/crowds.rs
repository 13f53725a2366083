//! Every route that writes, tried by 50 clients at once with one and the same request, and then once more: the shop is left as if one had sent it once.
//!
//! Two shops begin alike. In the first each request of the API is sent once; in the second all clients send it at the same moment. Whatever the second has
//! more or other than the first was done twice, lost or half done. How races between *different* requests end is tried where each feature is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use local::System;
use regex::Regex;
use serde_json::{Map, Value as Json};

use crate::support::client::Answer;
use crate::support::openapi::{Operation, api};
use crate::support::world::{Good, World};
use crate::support::{drain, table, with_own_system};

/// Clients that send the same request at the same moment.
const CLIENTS: usize = 50;

/// What each item has of its own in every shop: ids, instants, sums over either, and how often it was written.
const INCIDENTAL: [&str; 10] =
    ["version", "rev", "born", "created_at", "updated_at", "ttl", "shard", "request_hash", "req", "event_id"];

/// Entities that count in shards, at random or by a random id: their sum counts.
const SHARDED: [&str; 3] = ["CounterShard", "LikeCount", "PlaceSales"];

/// Ids that the shop gives, and instants.
static OWN: LazyLock<Regex> = LazyLock::new(|| {
    let id = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
    Regex::new(&format!(r"{id}|\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")).unwrap()
});

/// What a repetition does once more, as its description says: nothing tells a second one from the first.
const EACH_TIME: [&str; 5] = ["addLogLine", "createSession", "splitCounter", "uploadContent", "uploadPicture"];

#[test]
fn what_50_clients_send_at_once_and_again_is_done_once() {
    let (crowd, done) = with_own_system(async |system| {
        let world = World::create(system).await;
        let (mut phases, mut done, mut complaints) = (Vec::new(), BTreeMap::new(), Vec::new());
        for method in PHASES {
            for operation in writes(method) {
                let good = world.good(system, operation).await;
                let calls: Vec<_> = (0..CLIENTS).map(|_| good.call().send(system)).collect();
                let mut answers = futures::future::join_all(calls).await;
                answers.push(good.call().send(system).await);
                complaints
                    .extend(complaint(operation, &good, &answers).map(|text| format!("{}: {text}", operation.key())));
                done.insert(operation.key(), answers.iter().filter(|answer| answer.is_success()).count());
            }
            phases.push(stored(system).await);
        }
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
        (phases, done)
    });
    assert_eq!(done.len(), api().operations().filter(|operation| operation.method != "GET").count());
    let alone = with_own_system(async |system| {
        let world = World::create(system).await;
        let mut phases = Vec::new();
        for method in PHASES {
            for operation in writes(method) {
                let good = world.good(system, operation).await;
                let id = operation.own["operationId"].as_str().unwrap();
                let times = if EACH_TIME.contains(&id) { done[&operation.key()] } else { 1 };
                for _ in 0..times {
                    let answer = good.call().send(system).await;
                    assert!(answer.is_success(), "{}: {} {}", operation.key(), answer.status, answer.body);
                }
            }
            phases.push(stored(system).await);
        }
        phases
    });
    for ((method, alone), crowd) in PHASES.iter().zip(alone).zip(crowd) {
        let items: BTreeSet<&String> = alone.keys().chain(crowd.keys()).collect();
        let differences: Vec<String> = items
            .into_iter()
            .filter(|item| alone.get(*item) != crowd.get(*item))
            .map(|item| format!("{:?} of one, {:?} of the crowd: {item}", alone.get(item), crowd.get(item)))
            .collect();
        assert!(differences.is_empty(), "after every {method}:\n{}", differences.join("\n"));
    }
}

/// What deletes comes last.
const PHASES: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

/// The operations of a method; the customer, whose things the others are, goes last.
fn writes(method: &str) -> Vec<Operation<'static>> {
    let mut operations: Vec<_> = api().operations().filter(|operation| operation.method == method).collect();
    operations
        .sort_by_key(|operation| (operation.path == "/v1/customers/{id}", std::cmp::Reverse(operation.path.len())));
    operations
}

/// What is wrong with the answers to one request of many clients, of which the last came after all others.
fn complaint(operation: Operation<'_>, good: &Good, answers: &[Answer]) -> Option<String> {
    let mut outcomes: BTreeMap<(u16, &str), usize> = BTreeMap::new();
    for answer in answers {
        *outcomes.entry((answer.status, answer.code())).or_default() += 1;
    }
    let again = answers.last().unwrap();
    let wrong = |what: &str| Some(format!("{what}: {outcomes:?}, at last {} {}", again.status, again.body));
    let documented = |answer: &Answer| operation.responses().any(|(status, _)| status == answer.status.to_string());
    if !answers.iter().all(documented) {
        return wrong("an answer that is not described");
    }
    let done: Vec<&Answer> = answers.iter().filter(|answer| answer.is_success()).collect();
    let Some(first) = done.first() else { return wrong("nobody got through") };
    let alike = done.iter().all(|answer| answer.body == first.body);
    let has = |name: &str| good.headers.iter().any(|(header, _)| header == name);
    if has("idempotency-key") && !(alike && again.is_success()) {
        return wrong("not all were told the same");
    }
    // A move that was made may be told again.
    if has("if-match") && !alike {
        return wrong("more than one changed the same version");
    }
    None
}

/// What is stored, without what is different in every shop: how often each item.
async fn stored(system: &System) -> BTreeMap<String, u64> {
    drain(system).await;
    let mut items: BTreeMap<String, u64> = BTreeMap::new();
    for item in table::scan(system).await.into_values() {
        let Json::Object(mut item) = item else { panic!("{item} is no item") };
        let is_key = |name: &str| name.ends_with("PK") || name.ends_with("SK");
        // The revision of what is copied here.
        let is_source = |name: &str| name.ends_with("_rev");
        item.retain(|name, _| !INCIDENTAL.contains(&name.as_str()) && !is_key(name) && !is_source(name));
        let count = if SHARDED.contains(&item["entity"]["S"].as_str().unwrap()) { numbers(&mut item) } else { 1 };
        let text = OWN.replace_all(&Json::Object(item).to_string(), "*").into_owned();
        *items.entry(text).or_default() += count;
    }
    items
}

/// Takes an item's numbers out of it, and adds them up.
fn numbers(item: &mut Map<String, Json>) -> u64 {
    let number = |value: &Json| value["N"].as_str().map(|text| text.parse::<u64>().unwrap());
    let sum = item.values().filter_map(number).sum();
    item.retain(|_, value| value.get("N").is_none());
    sum
}
