//! Long random schedules for the whole system: client calls, faults of every backend, and crashes
//! of functions at their crash points.
//!
//! At the end, the search index, the events and the derived items must match the table and its
//! stream ([`bench::replay::compare`]). The test does not compare the responses, because a failed
//! call may have taken effect. A schedule prints its seed before it starts. To run the same
//! requests again:
//! `BODEGA_SEED=<seed> cargo test -p bodega-bench --test endurance schedules`. The timing differs
//! in each run. `BODEGA_STEPS` sets the length of the schedule.

use std::io::Write as _;

use fastrand::Rng;
use futures::StreamExt as _;
use local::System;
use serde_json::{Value, json};

use crate::support::{Clients, assert_equal_to_table, ended_session, if_match, start_embedded, stop};

/// The seeds of every test run, in addition to a random seed. Add each seed that finds a defect.
const SEEDS: [u64; 1] = [20_170_101];
const STEPS: usize = 200;
const CLIENTS: usize = 4;

/// Faults: target, kind, and the maximum number of requests or invocations that the fault hits.
const FAULTS: &[(&str, &str, u32)] = &[
    ("table", "throttle", 30),
    ("table", "error", 20),
    ("table", "reset", 15),
    ("table", "slow", 10),
    ("table", "conflict", 20),
    ("table", "partial", 20),
    ("search", "throttle", 15),
    ("search", "error", 15),
    ("search", "reset", 10),
    ("search", "partial", 20),
    ("bus", "throttle", 15),
    ("bus", "error", 10),
    ("bus", "reset", 10),
    ("bus", "partial", 30),
    ("store", "throttle", 10),
    ("store", "error", 10),
    ("store", "reset", 10),
    ("mail", "throttle", 5),
    ("mail", "error", 5),
    ("function:StreamSearch", "crash", 3),
    ("function:StreamEvents", "crash", 3),
    ("function:StreamEvents", "error", 3),
    ("function:Orders", "crash", 2),
];

/// Crash points: function and point.
const CRASHES: &[(&str, &str)] = &[
    ("StreamSearch", "stream.search.written"),
    ("StreamEvents", "stream.bus.published"),
    ("StreamEvents", "stream.bus.marked"),
    ("StreamEvents", "stream.audit.archived"),
    ("StreamEvents", "stream.audit.recorded"),
    ("StreamEvents", "stream.derived.applied"),
    ("Notifier", "notifier.claimed"),
    ("Fulfilment", "fulfilment.waiting"),
    ("Fulfilment", "fulfilment.admitted"),
    ("Orders", "orders.placed"),
];

#[test]
fn case_40_everything_equals_the_table_after_long_random_schedules_with_faults() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seeds = number("BODEGA_SEED").map_or_else(|| [&SEEDS[..], &[fastrand::u64(..)]].concat(), |seed| vec![seed]);
    let steps = number("BODEGA_STEPS").map_or(STEPS, |steps| usize::try_from(steps).unwrap());
    for seed in seeds {
        // A test holds back the output of `println!` until it ends. This line must also appear if a
        // schedule hangs.
        writeln!(std::io::stderr(), "a schedule of {steps} steps: BODEGA_SEED={seed}").unwrap();
        run(seed, steps);
    }
}

#[tokio::main]
async fn run(seed: u64, steps: usize) {
    let system = start_embedded().await;
    let clients = Clients::new(&system);
    set_up(&clients).await;
    let mut rng = Rng::with_seed(seed);
    let schedule: Vec<(u64, u8)> = (0..steps).map(|_| (rng.u64(..), rng.u8(0..100))).collect();
    futures::stream::iter(schedule)
        .for_each_concurrent(CLIENTS, |(seed, dice)| step(&clients, &system, Rng::with_seed(seed), dice))
        .await;
    // The faults end here, and the system must repair their effects.
    clients.local("DELETE", "/_local/faults", None).await;
    clients.local("POST", "/_local/ttl-sweep", None).await;
    assert_equal_to_table(&system, &format!("BODEGA_SEED={seed}")).await;
    assert_eq!(clients.all("/_local/quarantine").await, [Value::Null; 0], "BODEGA_SEED={seed}");
    messages(&clients, seed).await;
    stop(system).await;
}

/// Checks that each order has exactly one confirmation. A crash after a message is sent and before
/// it is recorded would repeat the message. No schedule here has that crash.
async fn messages(clients: &Clients, seed: u64) {
    let placed = clients.all("/_local/events").await.into_iter().filter(|event| event["type"] == "OrderPlaced");
    let mut placed: Vec<String> = placed.map(|event| event["id"].as_str().unwrap().to_owned()).collect();
    placed.sort();
    placed.dedup();
    let sent = clients.all("/_local/mail").await;
    let confirmations = sent.iter().filter(|mail| mail["tags"]["event"] == "OrderPlaced").count();
    assert_eq!(confirmations, placed.len(), "BODEGA_SEED={seed}");
}

async fn set_up(clients: &Clients) {
    for n in 0..PRODUCTS {
        let body = product(n, 40);
        clients.staff("POST", "/v1/products", &[], Some(&body)).await.expect(201);
    }
    for n in 0..CUSTOMERS {
        let body =
            json!({"id": customer(n), "email": format!("c{n}@example.com"), "username": customer(n), "name": "C"});
        clients.staff("POST", "/v1/customers", &[], Some(&body)).await.expect(201);
    }
    for n in 0..STORES {
        let body = json!({"country": "DE", "city": format!("Köln #{n}"), "name": "Shop"});
        let create = [("if-none-match", "*".to_owned())];
        clients.staff("PUT", &format!("/v1/stores/s{n}"), &create, Some(&body)).await.expect(201);
    }
}

const PRODUCTS: usize = 8;
const CUSTOMERS: usize = 4;
const STORES: usize = 2;

fn customer(n: usize) -> String {
    format!("c{n}")
}

fn product(n: usize, stock: u64) -> Value {
    json!({
        "id": format!("p{n}"), "name": format!("Thing {n}"), "brand": "Private", "category_path": ["GROCERY"],
        "price": {"amount": 129, "currency": "USD"}, "stock": stock,
    })
}

/// Runs one random step: client calls, an expiry, or a change of the faults.
async fn step(clients: &Clients, system: &System, mut rng: Rng, dice: u8) {
    let key = [("idempotency-key", format!("{:x}", rng.u64(..)))];
    let (p, c) = (rng.usize(0..PRODUCTS), rng.usize(0..CUSTOMERS));
    match dice {
        0..=29 => {
            let first = rng.usize(0..PRODUCTS);
            let line = |n: usize| json!({"product_id": format!("p{}", (first + n) % PRODUCTS), "quantity": n + 1});
            let lines: Vec<Value> = (0..rng.usize(1..4)).map(line).collect();
            let store = (rng.bool()).then(|| format!("s{}", rng.usize(0..STORES + 1)));
            let mut body = json!({"customer_id": customer(c), "lines": lines});
            if let Some(store) = store {
                body["store_id"] = store.into();
            }
            let placed = clients.staff("POST", "/v1/orders", &key, Some(&body)).await;
            if let Some(id) = placed.body["id"].as_str() {
                clients.orders.lock().unwrap().push(id.to_owned());
            }
        }
        30..=54 => {
            let order = {
                let orders = clients.orders.lock().unwrap();
                if orders.is_empty() { None } else { Some(orders[rng.usize(0..orders.len())].clone()) }
            };
            let Some(order) = order else { return };
            let found = clients.staff("GET", &format!("/v1/orders/{order}"), &[], None).await;
            let to = match found.body["status"].as_str() {
                Some("pending") => ["paid", "paid", "cancelled"][rng.usize(0..3)],
                Some("paid") => ["picking", "picking", "cancelled"][rng.usize(0..3)],
                Some("picking") => ["shipped", "cancelled"][rng.usize(0..2)],
                Some("shipped") => "delivered",
                Some("delivered") => "returned",
                _ => return,
            };
            let version = if_match(&found);
            clients.staff("POST", &format!("/v1/orders/{order}/status"), &version, Some(&json!({"to": to}))).await;
        }
        55..=62 => {
            let path = format!("/v1/products/p{p}");
            let found = clients.staff("GET", &path, &[], None).await;
            let version = if_match(&found);
            let (method, body) = match rng.u8(0..4) {
                0 => ("DELETE", None),
                _ => ("PATCH", Some(json!({"name": format!("Thing {p} as {}", rng.u16(..))}))),
            };
            if found.status == 404 {
                clients.staff("POST", "/v1/products", &[], Some(&product(p, 30))).await;
            } else {
                clients.staff(method, &path, &version, body.as_ref()).await;
            }
        }
        63..=69 => {
            let set = [0, 5, 50][rng.usize(0..3)];
            let body = json!({"set": set});
            clients.staff("PUT", &format!("/v1/products/p{p}/stock"), &[], Some(&body)).await;
        }
        70..=76 => {
            let path = format!("/v1/products/p{p}/reviews/{}", customer(c));
            let found = clients.staff("GET", &path, &[], None).await;
            let version = match found.body["version"].as_u64() {
                Some(version) => [("if-match", format!("\"{version}\""))],
                None => [("if-none-match", "*".to_owned())],
            };
            let body = json!({"rating": rng.u8(1..6), "title": "So", "text": "so"});
            let method = if found.status == 200 && rng.bool() { "DELETE" } else { "PUT" };
            let body = (method == "PUT").then_some(&body);
            clients.customer(&customer(c), method, &path, &version, body).await;
        }
        77..=80 => {
            let path = format!("/v1/customers/{}", customer(c));
            let found = clients.staff("GET", &path, &[], None).await;
            let version = if_match(&found);
            let tier = ["bronze", "silver", "gold"][rng.usize(0..3)];
            let body = json!({"tier": tier});
            clients.staff("PATCH", &path, &version, Some(&body)).await;
        }
        81..=84 => {
            let method = if rng.bool() { "PUT" } else { "DELETE" };
            clients.staff(method, &format!("/v1/products/p{p}/categories/PARTY~ICE"), &[], None).await;
        }
        85..=88 => ended_session(system, &format!("s{:x}", rng.u64(..))).await,
        89 => drop(clients.local("POST", "/_local/ttl-sweep", None).await),
        90..=94 => {
            let (target, kind, most) = FAULTS[rng.usize(0..FAULTS.len())];
            let (count, seed) = (rng.u32(1..=most), rng.u32(..));
            clients.fault(json!({"target": target, "kind": kind, "rate": 0.3, "count": count, "seed": seed})).await;
        }
        95..=98 => {
            let (function, point) = CRASHES[rng.usize(0..CRASHES.len())];
            let (target, seed) = (format!("function:{function}"), rng.u32(..));
            let fault =
                json!({"target": target, "kind": "crash", "point": point, "rate": 0.5, "count": 1, "seed": seed});
            clients.fault(fault).await;
        }
        _ => drop(clients.local("DELETE", "/_local/faults", None).await),
    }
}
