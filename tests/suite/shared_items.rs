//! Finds the items that requests for two different customers both write. Generates the table of
//! these items in docs/design/hot-items.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use key_schema::product::MAX_STOCK_SHARDS;
use key_schema::{counter, like, region};
use local::System;
use serde_json::{Value as Json, json};

use crate::support::client::Call;
use crate::support::shop::{customer, moved, order, path, products, step};
use crate::support::table::scan;
use crate::support::{drain, root, with_own_system};

/// The maximum write units per second of one partition.
const PARTITION_UNITS: u32 = 1000;
const PRODUCT: &str = "shared-product";
const STAR: &str = "shared-star";
const REQUESTS: [&str; 10] = [
    "an order of one line is placed",
    "the order is paid",
    "the order gets an invoice",
    "the order is cancelled",
    "another order is shipped",
    "a product is liked",
    "a product is reviewed",
    "money is sent to one wallet",
    "a member joins a team",
    "a client adds to a counter",
];

/// The unmeasured cells of a row in the generated table.
struct Shared {
    entity: &'static str,
    /// The write units of one write. If the write is in a transaction, this number is already
    /// doubled.
    units: u32,
    /// The number of items that share the writes.
    items: u32,
    /// The number of partitions that hold these items.
    partitions: u32,
    beyond: &'static str,
}

fn known() -> Vec<Shared> {
    let row = |entity, units, items, beyond| Shared { entity, units, items, partitions: items, beyond };
    vec![
        row("Stock", 2, MAX_STOCK_SHARDS, "503 with `Retry-After`; a stock begins with one shard"),
        row(
            "ProductSales",
            2,
            MAX_STOCK_SHARDS,
            "the stream's records wait for a retry; as many items as shards of the stock",
        ),
        row(
            "PlaceSales",
            2,
            region::SHARDS.0,
            "the stream's records wait for a retry; transactions on one item also conflict",
        ),
        row("Tally", 2, 1, "the stream's records wait for a retry; no order is lost or refused"),
        Shared {
            partitions: 1,
            ..row("Rank", 1, 3, "the stream's records wait for a retry; all items are in one partition")
        },
        row("PickingStations", 1, 1, "messages return to the queue for a retry"),
        row("InvoiceCounter", 2, 1, "503 with `Retry-After`; consecutive numbers need one counter"),
        Shared {
            partitions: 1,
            ..row("LikeCount", 2, like::COUNTERS.0, "503 with `Retry-After`; all items are in the product's partition")
        },
        row("ReviewStats", 2, 1, "503 with `Retry-After`"),
        row("Product", 1, 1, "the stream's records wait for a retry"),
        row("Wallet", 2, 1, "503 with `Retry-After`; give a payee several wallets"),
        row("Organization", 2, 1, "503 with `Retry-After`"),
        row("Team", 2, 1, "503 with `Retry-After`"),
        row("CounterShard", 2, counter::MAX_SHARDS, "429 from the route's limit; a counter begins with one shard"),
    ]
}

async fn acts(system: &System, request: &str, who: &str) {
    let post = |path: &str, body: Json| Call::new("POST", path).staff().json(&body);
    let new = |call: Call| call.header("if-none-match", "*");
    let key = format!("{request} {who}");
    let call = match request {
        "an order of one line is placed" => {
            order(system, who, &[(PRODUCT, 1)], &key).await;
            return;
        }
        "the order is paid" => step(&newest(system, who).await, "paid").staff(),
        "another order is shipped" => step(&oldest(system, who).await, "shipped").staff(),
        "the order gets an invoice" => {
            let id = newest(system, who).await["id"].as_str().unwrap().to_owned();
            Call::new("POST", &path(&["orders", &id, "invoice"])).staff()
        }
        "the order is cancelled" => step(&newest(system, who).await, "cancelled").staff(),
        "a product is liked" => Call::new("PUT", &path(&["customers", who, "likes", PRODUCT])).staff(),
        "a product is reviewed" => {
            let review = json!({ "rating": 4, "title": "T", "text": "T" });
            new(Call::new("PUT", &path(&["products", PRODUCT, "reviews", who])).staff().json(&review))
        }
        "money is sent to one wallet" => {
            let amount = json!({ "amount": 1, "currency": "USD" });
            let transfer = json!({ "from": who, "to": STAR, "amount": amount });
            post("/v1/transfers", transfer).header("idempotency-key", &key)
        }
        "a member joins a team" => {
            let body = json!({ "role": "member", "team": "team" });
            Call::new("PUT", &path(&["organizations", "shared-club", "members", who])).staff().json(&body)
        }
        "a client adds to a counter" => post("/v1/counters/shared", json!({ "add": 1 })),
        other => panic!("the test has no request for {other:?}"),
    };
    let answer = call.send(system).await;
    assert!((200..300).contains(&answer.status), "{key}: {}", answer.body);
}

async fn newest(system: &System, who: &str) -> Json {
    orders(system, who).await.remove(0)
}

async fn oldest(system: &System, who: &str) -> Json {
    orders(system, who).await.pop().unwrap()
}

/// Returns the current state of the customer's orders.
async fn orders(system: &System, who: &str) -> Vec<Json> {
    let list = Call::new("GET", &path(&["customers", who, "orders"])).staff().send(system).await.expect(200);
    let mut orders = Vec::new();
    for order in list.body["items"].as_array().unwrap() {
        let call = Call::new("GET", &path(&["orders", order["id"].as_str().unwrap()])).staff();
        orders.push(call.send(system).await.expect(200).body);
    }
    orders
}

/// Counts the writes of each item so far. All items of an entity in `split` count as one item.
async fn written(system: &System, split: &BTreeSet<&str>) -> BTreeMap<(String, String), u64> {
    drain(system).await;
    let mut written = BTreeMap::new();
    for ((pk, sk), item) in scan(system).await {
        let entity = item["entity"]["S"].as_str().unwrap().to_owned();
        let key = if split.contains(entity.as_str()) { String::new() } else { format!("{pk} {sk}") };
        let rev: u64 = item["rev"]["N"].as_str().unwrap().parse().unwrap();
        *written.entry((entity, key)).or_default() += rev;
    }
    written
}

/// Returns each action's writes to shared items: action, entity and number of writes.
async fn measured(system: &System) -> Vec<(&'static str, String, u64)> {
    let people = ["shared-ann", "shared-bob", "shared-cat"];
    for id in people.into_iter().chain([STAR]) {
        customer(system, id).await;
        let amount = json!({ "amount": 5000, "currency": "USD" });
        let deposit = Call::new("POST", &path(&["customers", id, "wallet", "deposits"])).staff();
        deposit.json(&json!({ "amount": amount })).header("idempotency-key", id).send(system).await.expect(201);
    }
    products(system, &[PRODUCT], 1000).await;
    let club = json!({ "id": "shared-club", "name": "N" });
    Call::new("POST", "/v1/organizations").staff().json(&club).send(system).await.expect(201);
    let team = Call::new("PUT", &path(&["organizations", "shared-club", "teams", "team"])).staff();
    team.header("if-none-match", "*").json(&json!({ "name": "N" })).send(system).await.expect(201);

    for id in people {
        let placed = order(system, id, &[(PRODUCT, 1)], &format!("another {id}")).await;
        moved(system, placed, &["paid", "picking"]).await;
    }
    let split = known().into_iter().filter(|row| row.items > 1).map(|row| row.entity).collect();
    let mut rows = Vec::new();
    for request in REQUESTS {
        let mut states = Vec::new();
        for who in people {
            acts(system, request, who).await;
            states.push(written(system, &split).await);
        }
        let change = |from: usize| -> BTreeMap<&(String, String), u64> {
            let writes = states[from + 1].iter().map(|(key, rev)| (key, rev - states[from].get(key).unwrap_or(&0)));
            writes.filter(|(_, writes)| *writes > 0).collect()
        };
        let (first, second) = (change(0), change(1));
        for (key, writes) in second {
            if let Some(before) = first.get(key) {
                assert_eq!(writes, *before, "{request}: {key:?}");
                rows.push((request, key.0.clone(), writes));
            }
        }
    }
    // The tallies of a day and of all time have equal rows.
    rows.dedup();
    rows
}

fn table(rows: &[(&str, String, u64)]) -> String {
    let mut table = "| action | item | writes | write units | items | maximum per second | beyond that rate |\n\
                     | --- | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for (request, entity, writes) in rows {
        let known = known();
        let row = known.iter().find(|row| row.entity == entity);
        let Shared { units, items, partitions, beyond, .. } =
            row.unwrap_or_else(|| panic!("{request}: no row for {entity}"));
        // A cancelled order lowers the first item, whichever item has counted it.
        let is_of_first = (*request, entity.as_str()) == ("the order is cancelled", "ProductSales");
        let (items, partitions) = if is_of_first { (&1, &1) } else { (items, partitions) };
        let used = u32::try_from(*writes).unwrap() * units;
        let most = PARTITION_UNITS * partitions / used;
        writeln!(table, "| {request} | `{entity}` | {writes} | {used} | {items} | {most} | {beyond} |").unwrap();
    }
    table
}

#[test]
fn the_table_of_shared_items_agrees_with_the_writes_of_requests() {
    let rows = with_own_system(async |system| measured(system).await);
    let (file, [begin, end]) =
        (root().join("docs/design/hot-items.md"), ["<!-- shared items -->\n", "<!-- /shared items -->"]);
    let text = std::fs::read_to_string(&file).unwrap();
    let (before, rest) = text.split_once(begin).unwrap();
    let (kept, after) = rest.split_once(end).unwrap();
    let fresh = table(&rows);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, format!("{before}{begin}{fresh}{end}{after}")).unwrap();
        return;
    }
    assert!(kept == fresh, "docs/design/hot-items.md is stale, UPDATE_DOCS=1 writes it:\n{fresh}");
}
