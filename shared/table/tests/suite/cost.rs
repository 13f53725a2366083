//! Measures the cost of every access pattern on items of typical size, and compares it with
//! `docs/cost.json` and `docs/cost.md`.
//!
//! Read units are the units that the table reports. The emulators do not agree on the write units
//! of transactions, so the test computes all write units from the sizes of the items. It follows
//! DynamoDB's published rules:
//!
//! - A write costs one unit for each started KB of the item. If the write changes the item's size,
//!   the larger size counts. In a transaction it costs twice as much. A condition check costs as
//!   much as a write.
//! - Each index entry that is added, changed or removed costs further units.
//!
//! For a write outside a transaction, the computed units must equal the units that the table
//! reports.

mod agents;
mod community;
mod documents;
mod large;
mod meter;
mod moves;
mod organizations;
mod pictures;
mod pricing;
mod series;
mod shop;
mod support;
mod variants;
mod wallets;
mod webhooks;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use key_schema::mail::MailState;
use key_schema::order::{self, OrderStatus, PlacedOrder, Step};
use key_schema::pattern::{Operation, Pattern};
use key_schema::recipient::{self, RecipientHash, StopReason};
use key_schema::region::SaleRegion;
use key_schema::{archive, expiration, heartbeat, mail, mark, picking, reach, region, registry, sales};
use serde::{Deserialize, Serialize};
use telemetry::correlation;

use self::meter::{Bench, Cost};
use self::shop::{customers, orders, places, products, verifications};
use crate::data::{self, at, customer_id, order_id, product_id};

/// On-demand prices in us-east-1 since 2024-11-01, in dollars per million request units.
/// <https://aws.amazon.com/dynamodb/pricing/on-demand/>
const READ_PRICE: f64 = 0.125;
const WRITE_PRICE: f64 = 0.625;
const PRICES_OF: &str = "on-demand, us-east-1, since 2024-11-01";

/// An id as long as the id of an API Gateway request. In a deployment an item stores the id of the
/// request that wrote it.
const REQUEST: &str = "JKJaXmPLvHcESHA=";

#[tokio::test]
async fn every_access_pattern_has_the_cost_in_docs_cost_md() {
    // The future is boxed, because it is large.
    correlation::caused_by(Some(REQUEST), Box::pin(measure())).await;
}

async fn measure() {
    let mut bench = Bench::create().await;
    customers(&mut bench).await;
    verifications(&mut bench).await;
    products(&mut bench).await;
    orders(&mut bench).await;
    rest(&mut bench).await;
    pictures::measure(&mut bench).await;
    wallets::measure(&mut bench).await;
    community::measure(&mut bench).await;
    support::measure(&mut bench).await;
    series::measure(&mut bench).await;
    large::measure(&mut bench).await;
    organizations::measure(&mut bench).await;
    documents::measure(&mut bench).await;
    moves::measure(&mut bench).await;
    variants::measure(&mut bench).await;
    agents::measure(&mut bench).await;
    webhooks::measure(&mut bench).await;
    start(&mut bench).await;
    let measured: std::collections::BTreeSet<&str> = bench.costs.iter().map(|cost| cost.pattern.id).collect();
    let missing: Vec<&str> = registry::all().map(|pattern| pattern.id).filter(|id| !measured.contains(id)).collect();
    assert!(missing.is_empty(), "not measured: {missing:?}");
    let rows = rows(&bench.costs);
    fresh_data(&rows);
    fresh_page(&rows);
}

/// A line of `docs/cost.json`. The test makes `docs/cost.md` from it, and `ops cost` reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Row {
    pattern: String,
    on: String,
    requests: u32,
    /// The number of half read units. An eventually consistent read costs half a unit.
    half_read_units: u32,
    /// The write units of the table and of each index.
    write_units: BTreeMap<String, usize>,
    items: u32,
    bytes: u64,
    /// The number of items of each entity. For a write, these are the changed items. For a read,
    /// they are the items at its keys or in its range.
    entities: BTreeMap<String, u32>,
}

/// Returns the measurements in the order of the registry.
fn rows(costs: &[Cost]) -> Vec<Row> {
    let row = |cost: &Cost| Row {
        pattern: cost.pattern.id.to_owned(),
        on: cost.on.clone(),
        requests: cost.requests,
        half_read_units: (cost.read_units * 2.0) as u32,
        write_units: cost.write_units.iter().map(|(index, units)| ((*index).to_owned(), *units)).collect(),
        items: cost.items,
        bytes: cost.bytes,
        entities: cost.entities.clone(),
    };
    registry::all().flat_map(|known| costs.iter().filter(|cost| cost.pattern.id == known.id).map(row)).collect()
}

fn render(rows: &[Row]) -> String {
    let mut text = format!(
        "# Cost of every access pattern\n\n\
         `UPDATE_DOCS=1 cargo test -p bodega-table` measures [cost.json](cost.json) and generates this page from it. \
         Without the variable, the test\n\
         compares both with its measurements, and fails when the cost of a pattern changes. The embedded table \
         reports the read units. The test computes the write units from the items' sizes.\n\
         `ops cost` makes a [bill](cost-report.md) from the same data. Prices: {PRICES_OF}.\n\
         A million read units cost {READ_PRICE} dollars, and a million write units {WRITE_PRICE} dollars.\n\n\
         | pattern | measured on | requests | read units | write units | items | bytes | dollars per million |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    );
    for Row { pattern, on, requests, half_read_units, write_units, items, bytes, .. } in rows {
        let (read_units, write_units) = (f64::from(*half_read_units) / 2.0, write_units.values().sum::<usize>());
        let price = read_units * READ_PRICE + write_units as f64 * WRITE_PRICE;
        writeln!(
            text,
            "| `{pattern}` | {on} | {requests} | {read_units} | {write_units} | {items} | {bytes} | {price:.3} |"
        )
        .unwrap();
    }
    text + &several_requests(rows)
}

/// Lists the patterns that take more than one request. Checks that all of them are sharded lists.
fn several_requests(rows: &[Row]) -> String {
    let several =
        registry::all().filter(|pattern| rows.iter().any(|row| row.pattern == pattern.id && row.requests > 1));
    let several: Vec<&Pattern> = several.collect();
    for pattern in &several {
        assert_eq!(pattern.operation, Operation::ShardedQuery, "{} takes more than one request", pattern.id);
    }
    let names: Vec<String> = several.iter().map(|pattern| format!("`{}`", pattern.id)).collect();
    format!(
        "\n## More than one request\n\n\
         Only sharded lists take more than one request: one per shard, all at the same time. Many clients write to \
         these lists, and one partition takes 1,000 write units\n\
         a second. A sharded list costs at least half a read unit per shard. [Requests and \
         capacity](design/capacity.md) lists the routes that take several requests.\n\n\
         {}\n",
        names.join(", ")
    )
}

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Compares the measurements with `docs/cost.json`, which has one measurement in each line.
fn fresh_data(rows: &[Row]) {
    let path = docs("cost.json");
    let embedded = std::env::var_os("AWS_ENDPOINT_URL_DYNAMODB").is_none();
    if embedded && std::env::var_os("UPDATE_DOCS").is_some() {
        let lines: Vec<String> = rows.iter().map(|row| serde_json::to_string(row).unwrap()).collect();
        std::fs::write(&path, format!("[\n{}\n]\n", lines.join(",\n"))).unwrap();
    }
    let pinned: Vec<Row> =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap_or_default()).unwrap_or_default();
    // Engines other than the embedded table round the read units of index entries differently.
    // Everything else must be the same.
    let compared = |row: &Row| if embedded { row.clone() } else { Row { half_read_units: 0, ..row.clone() } };
    let stale = "docs/cost.json is stale: run UPDATE_DOCS=1 cargo test -p bodega-table";
    assert_eq!(rows.len(), pinned.len(), "{stale}");
    for (now, then) in rows.iter().zip(&pinned) {
        assert_eq!(compared(now), compared(then), "{stale}");
    }
}

/// Compares `docs/cost.md` with the page of these measurements.
fn fresh_page(rows: &[Row]) {
    let (path, text) = (docs("cost.md"), render(rows));
    let embedded = std::env::var_os("AWS_ENDPOINT_URL_DYNAMODB").is_none();
    if embedded && std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let pinned = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(!embedded || text == pinned, "docs/cost.md is stale: run UPDATE_DOCS=1 cargo test -p bodega-table");
}

async fn rest(bench: &mut Bench) {
    for number in 1..=25 {
        let (head, lines) = data::order(number, 5);
        let counted_at = SaleRegion::of(&head, None, region::store_of(&head));
        let apply = sales::apply(&head, &lines, &sales::Derived::default(), counted_at, at(0)).unwrap().remove(0);
        if number == 1 {
            bench.transact("5 lines", apply).await;
            let mut shipped = head.clone();
            (shipped.data.status, shipped.meta.rev) = (OrderStatus::Shipped, head.meta.rev + 1);
            let query = sales::derived(&order_id(1)).unwrap();
            let seen: sales::Derived = bench.table.query(&query).await.unwrap().items.into_iter().collect();
            let place = seen.region.clone().unwrap().data;
            let _ = bench.table.meter().take();
            let apply = sales::apply(&shipped, &lines, &seen, place, at(0)).unwrap().remove(0);
            bench.transact("5 lines of a shipped order", apply).await;
        } else {
            bench.table.transact(&apply).await.unwrap().unwrap();
        }
    }
    let _ = bench.table.meter().take();
    let sold = sales::of_product(&product_id(1), 2026, at(0), at(1000)).unwrap().limit(20);
    bench.query("a page of 20", 20, sold).await;
    bench.query("5 lines and their region", 6, sales::derived(&order_id(1)).unwrap()).await;
    places(bench).await;
    pricing::rules(bench).await;
    pricing::promotions(bench).await;
    expired(bench).await;
    let marks = data::marks(10);
    bench.batch_write("10 events", mark::keep(&marks).unwrap()).await;
    let ids: Vec<_> = marks.iter().map(|mark| mark.event_id.as_str()).collect();
    bench.batch_get("10 events", mark::known("bus", ids).unwrap()).await;
    subscribers(bench).await;
}

/// Measures the read at a function's start, which [`table::Meter`] does not count.
async fn start(bench: &mut Bench) {
    let nothing = reach::nothing().unwrap();
    let key = nothing.key();
    let get = bench.test.client().get_item().table_name(bench.test.name());
    let get = get.key("PK", AttributeValue::S(key.pk.to_string())).key("SK", AttributeValue::S(key.sk.to_string()));
    let answer = get.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await.unwrap();
    assert_eq!(answer.item, None);
    let read_units = answer.consumed_capacity.unwrap().capacity_units.unwrap();
    let (pattern, on) = (nothing.pattern(), "one start".to_owned());
    let (write_units, entities) = (BTreeMap::new(), BTreeMap::new());
    bench.costs.push(Cost { pattern, on, requests: 1, read_units, write_units, items: 0, bytes: 0, entities });
    bench.table.reach(&nothing).await;
    assert!(bench.table.meter().take().is_empty());
}

/// Measures mails about the first order, and eleven paid orders. Ten orders get a picking station
/// one after the other, and one order waits.
async fn subscribers(bench: &mut Bench) {
    bench.batch_get("customer, for a placed order", mail::prepare(&customer_id(1), None).unwrap()).await;
    let prepare = mail::prepare(&customer_id(1), Some(&order_id(1))).unwrap();
    bench.batch_get("customer and order, after a change", prepare).await;
    let (first, second) = (data::mail(1), data::mail(2));
    let to = RecipientHash::of(&"ada@example.com".parse().unwrap());
    bench.transact("one event", mail::claim(&first, &to, false, at(0)).unwrap()).await;
    bench.write("one event", mail::settle(&first.event_id, MailState::Sent, at(1)).unwrap()).await;
    bench.table.transact(&mail::claim(&second, &to, false, at(0)).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    bench.write("one event", mail::release(&second.data, at(1)).unwrap()).await;
    bench.transact("one event", mail::reclaim(&second, &to, at(2)).unwrap()).await;
    bench.write("one address", recipient::stop(&to, StopReason::Bounce, at(2)).unwrap()).await;
    bench.write("one address", recipient::lift(&to).unwrap()).await;
    for number in 4..=14 {
        let head = data::order(number, 5).0;
        let step = Step::new(&head, &[], OrderStatus::Paid, at(300), "staff-7");
        bench.table.transact(&order::transition(step).unwrap()).await.unwrap().unwrap();
        let (job, born) = (data::waiting(number), data::born(number));
        let _ = bench.table.meter().take();
        let admit = picking::admit(&job.order_id, 10, &born, at(301)).unwrap();
        if number == 13 {
            bench.transact("one order", picking::wait(&job).unwrap()).await;
            bench.transact("the last of 10 stations", admit).await;
        } else {
            bench.table.transact(&picking::wait(&job).unwrap()).await.unwrap().unwrap();
            if number < 13 {
                bench.table.transact(&admit).await.unwrap().unwrap();
            }
        }
    }
    let _ = bench.table.meter().take();
    bench.get("10 stations taken", picking::stations().unwrap()).await;
    bench.query("one waiting order", 1, picking::waiting().unwrap().limit(20)).await;
    bench.transact("one of 10 stations", picking::leave(&order_id(4), &data::born(4), at(302)).unwrap()).await;
}

async fn expired(bench: &mut Bench) {
    // `shop::orders` has cancelled this order, so it is closed.
    let items = bench.table.query(&order::read_for_update(&order_id(2)).unwrap()).await.unwrap().items;
    let (order, expires_at, at) = (PlacedOrder::of(items).unwrap(), at(86_400), at(200));
    let retire = order::retire(&order, expires_at, at).unwrap().remove(0);
    let _ = bench.table.meter().take();
    bench.transact("5 lines and 2 status changes", retire).await;
    let entry = data::expiration();
    bench.write("one removal", expiration::record(&entry).unwrap()).await;
    bench.query("one removal", 1, expiration::of_day(&entry.removed_at.day()).unwrap().limit(20)).await;
    bench.write("the first heartbeat", heartbeat::beat(at).unwrap()).await;
    bench.get("a customer with one address", archive::owner(&customer_id(1)).unwrap()).await;
    let archived = data::order(60, 5).0.to_item().unwrap();
    let restored = archive::restored(archived, at, expires_at).unwrap();
    bench.write("one head", archive::restore(&restored).unwrap()).await;
}
