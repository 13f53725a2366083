//! Sends every writing request from many clients at once, and then once more. The stored result must
//! equal the result of a single request.
//!
//! The test runs two systems with equal data, one after the other. The first system receives each
//! request from all clients at the same time. The second system receives each request once. The
//! exceptions are the operations in `EACH_TIME`. The second system repeats their requests as often
//! as they succeeded in the first system. A difference between the systems means a duplicate, lost
//! or partial write.
//!
//! The features' own tests cover races between *different* requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use futures::future::join_all;
use key_schema::category::relocation::SETTLING_SECONDS;
use local::System;
use regex::Regex;
use serde_json::{Map, Value as Json, json};

use crate::support::client::{Answer, Call};
use crate::support::openapi::{Operation, api};
use crate::support::shop::{all, customer_call, path, products, stock};
use crate::support::world::{Good, World};
use crate::support::{drain, table, with_own_system};

/// Clients that send the same request at the same time.
const CLIENTS: usize = 16;

/// Attributes that differ between any two systems: ids, times, hashes of them, secrets, and the
/// number of writes.
const INCIDENTAL: [&str; 18] = [
    "version",
    "rev",
    "born",
    "created_at",
    "updated_at",
    "ttl",
    "shard",
    "request_hash",
    "req",
    "event_id",
    "sign_in",
    "token_hash",
    "claim",
    "order_number",
    "intent",
    "key_hash",
    "secrets",
    "failing_since",
];

/// A random number or id selects the shard, so only the sum of the shards is comparable.
const SHARDED: [&str; 3] = ["CounterShard", "LikeCount", "PlaceSales"];

/// Matches ids that Bodega generates, and times.
static OWN: LazyLock<Regex> = LazyLock::new(|| {
    let id = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
    Regex::new(&format!(r"{id}|\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")).unwrap()
});

/// Operations that write again on each retry. They take neither an Idempotency-Key nor If-Match.
const EACH_TIME: [&str; 6] =
    ["addLogLine", "createGuestCart", "createSession", "splitCounter", "uploadContent", "uploadPicture"];

#[test]
fn a_request_that_many_clients_send_concurrently_is_done_only_once() {
    let (crowd, done) = with_own_system(async |system| {
        let world = World::create(system).await;
        let (mut phases, mut done, mut complaints) = (Vec::new(), BTreeMap::new(), Vec::new());
        for method in PHASES {
            for operation in writes(method) {
                let good = world.good(system, operation).await;
                let calls: Vec<_> = (0..CLIENTS).map(|_| good.call().send(system)).collect();
                let mut answers = join_all(calls).await;
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
    assert_eq!(done.len(), api().operations().filter(|operation| operation.method != "GET").count() - 1);
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
            .map(|item| format!("{:?} after one request, {:?} after many: {item}", alone.get(item), crowd.get(item)))
            .collect();
        assert!(differences.is_empty(), "after every {method}:\n{}", differences.join("\n"));
    }
}

/// Methods in the order of the requests. Deletions come last.
const PHASES: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

/// Returns the writes with this method. Each report of a view counts, so it is left out.
fn writes(method: &str) -> Vec<Operation<'static>> {
    let is_written = |operation: &Operation<'_>| operation.method == method && !operation.path.ends_with("/views");
    api().in_working_order().into_iter().filter(is_written).collect()
}

/// The last response belongs to the retry after the concurrent requests.
fn complaint(operation: Operation<'_>, good: &Good, answers: &[Answer]) -> Option<String> {
    let mut outcomes: BTreeMap<(u16, &str), usize> = BTreeMap::new();
    for answer in answers {
        *outcomes.entry((answer.status, answer.code())).or_default() += 1;
    }
    let again = answers.last().unwrap();
    let wrong = |what: &str| Some(format!("{what}: {outcomes:?}, at last {} {}", again.status, again.body));
    // On a busy machine a conflict can outlast the retries of a function. Then the client gets 503.
    let is_listed = |status: u16| operation.responses().any(|(listed, _)| listed == status.to_string());
    let documented = |answer: &Answer| answer.status == 503 || is_listed(answer.status);
    if !answers.iter().all(documented) {
        return wrong("a response has a status that openapi.yaml does not list");
    }
    let done: Vec<&Answer> = answers.iter().filter(|answer| answer.is_success()).collect();
    let Some(first) = done.first() else {
        // A removal that ends with 503 may be complete. Then its repetition gets 404.
        let is_removed = again.status == 404 && answers.iter().any(|answer| answer.status == 503);
        return if is_removed { None } else { wrong("no request succeeded") };
    };
    let alike = done.iter().all(|answer| answer.body == first.body);
    let has = |name: &str| good.headers.iter().any(|(header, _)| header == name);
    if has("idempotency-key") && !(alike && again.is_success()) {
        return wrong("successful responses with one key differ");
    }
    // A repeated status change may receive the same response again.
    if has("if-match") && !alike {
        return wrong("more than one request changed the same version");
    }
    None
}

/// A move waits as long as an older request may run, so the janitor's clock is set forward.
async fn end_moves(system: &System) {
    let clock = json!({ "target": "function:Janitor", "kind": "clock", "seconds": SETTLING_SECONDS });
    Call::new("POST", "/_local/faults").json(&clock).send(system).await.expect(204);
    let round = Call::new("POST", "/_local/invoke/Janitor").json(&json!({})).send(system).await.expect(200).body;
    assert_eq!(round["failed"], 0, "{round}");
    Call::new("DELETE", "/_local/faults").send(system).await.expect(204);
}

/// Counts the stored items, without the attributes that differ between any two systems.
async fn stored(system: &System) -> BTreeMap<String, u64> {
    end_moves(system).await;
    drain(system).await;
    let mut items: BTreeMap<String, u64> = BTreeMap::new();
    for item in table::scan(system).await.into_values() {
        let Json::Object(mut item) = item else { panic!("{item} is no item") };
        // How often a webhook was tried depends on the time.
        if item["entity"]["S"] == "WebhookDelivery" {
            continue;
        }
        let is_key = |name: &str| name.ends_with("PK") || name.ends_with("SK");
        // These attributes contain the `rev` of the source of a copy.
        let is_source = |name: &str| name.ends_with("_rev");
        item.retain(|name, _| !INCIDENTAL.contains(&name.as_str()) && !is_key(name) && !is_source(name));
        let count = if SHARDED.contains(&item["entity"]["S"].as_str().unwrap()) { numbers(&mut item) } else { 1 };
        let text = OWN.replace_all(&Json::Object(item).to_string(), "*").into_owned();
        *items.entry(text).or_default() += count;
    }
    items
}

/// Removes an item's numbers and returns their sum.
fn numbers(item: &mut Map<String, Json>) -> u64 {
    let number = |value: &Json| value["N"].as_str().map(|text| text.parse::<u64>().unwrap());
    let sum = item.values().filter_map(number).sum();
    item.retain(|_, value| value.get("N").is_none());
    sum
}

const BUYERS: usize = 200;
const USES: usize = 50;

#[test]
fn of_200_clients_with_a_quote_exactly_50_use_the_last_50_uses_of_a_coupon() {
    with_own_system(async |system| {
        products(system, &["tea"], 1_000).await;
        let coupon = json!({
            "id": "spring", "name": "Spring", "code": "SPRING", "kind": "amount",
            "value": { "amount": 29, "currency": "USD" }, "limit_total": USES, "limit_per_customer": 1,
        });
        Call::new("POST", "/v1/promotions").staff().json(&coupon).send(system).await.expect(201);
        let ids: Vec<String> = (0..BUYERS).map(|number| format!("client-{number}")).collect();
        all(system, ids.iter().map(|id| customer_call(id)))
            .await
            .into_iter()
            .for_each(|answer| drop(answer.expect(201)));
        let cart = |id: &str, rest: &[&str]| path(&[&["customers", id, "cart"], rest].concat());
        let fill =
            |id: &String| Call::new("PUT", &cart(id, &["items", "tea"])).customer(id).json(&json!({ "quantity": 1 }));
        all(system, ids.iter().map(fill)).await.into_iter().for_each(|answer| drop(answer.expect(200)));
        let quote =
            |id: &String| Call::new("POST", &cart(id, &["quote"])).customer(id).json(&json!({ "codes": ["spring"] }));
        let quotes = all(system, ids.iter().map(quote)).await;
        let checkout = |(id, quote): (&String, Answer)| {
            let body = json!({ "quote_id": quote.expect(200).body["id"] });
            let call = Call::new("POST", &cart(id, &["checkout"])).customer(id).json(&body);
            call.header("idempotency-key", "once").settled(system)
        };
        let answers = join_all(ids.iter().zip(quotes).map(checkout)).await;
        let placed: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 201).collect();
        let refused = answers.iter().filter(|answer| (answer.status, answer.code()) == (409, "promotion_used_up"));
        assert_eq!((placed.len(), refused.count()), (USES, BUYERS - USES));
        let paid = json!({ "amount": 100, "currency": "USD" });
        assert!(placed.iter().all(|answer| answer.body["total"] == paid));
        assert_eq!(stock(system, "tea").await, 950);
        let promotion = Call::new("GET", "/v1/promotions/spring").staff().send(system).await.expect(200).body;
        assert_eq!(promotion["uses"], USES);
    });
}
