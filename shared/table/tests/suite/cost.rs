//! Measures the cost of every access pattern on items of typical size, and compares it with
//! `docs/cost.md`.
//!
//! Reads are counted as the table reports them. Writes are counted from the items' sizes before and
//! after, by DynamoDB's published rules, because the emulators disagree on transactions:
//!
//! - A write costs one unit for each started KB of the larger image, and twice that in a
//!   transaction, condition checks included.
//! - Each index entry that is added, changed or removed costs further units.
//!
//! For a write outside a transaction, the table's own figure must agree.

mod community;
mod documents;
mod large;
mod moves;
mod organizations;
mod pictures;
mod series;
mod support;
mod wallets;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use fixture::TestTable;
use key_schema::change::Change;
use key_schema::customer::Names;
use key_schema::customer::{self, Customer, CustomerChanges as _, Tier, TierIndexKey};
use key_schema::entity::AnyEntity;
use key_schema::id::{AddressName, Born, StoreId};
use key_schema::index::INDEXES;
use key_schema::item::{Entity, FromItem, Item, Stored, index_entry_size, key_of, size};
use key_schema::key::{Index, Key};
use key_schema::mail::MailState;
use key_schema::order::{self, OrderStatus, Placement, Step};
use key_schema::pattern::{Operation, Pattern};
use key_schema::place::SalePlace;
use key_schema::product::{CategoryPath, Product, ProductChanges as _};
use key_schema::recipient::{self, RecipientHash, StopReason};
use key_schema::registry;
use key_schema::request::{BatchGet, BatchWrite, Get, Query, Single, Transaction, Write};
use key_schema::revocation::SignIn;
use key_schema::session::SessionIndexKey;
use key_schema::verification::{self, EmailVerification};
use key_schema::{
    archive, cart, category, erasure, expiration, heartbeat, idempotency, mail, mark, membership, picking, place,
    product, reach, review, revocation, sales, session,
};
use table::Table;
use telemetry::correlation;

use crate::data::{self, at, customer_id, order_id, product_id};

/// On-demand prices in us-east-1 since 2024-11-01, in dollars per million request units.
/// <https://aws.amazon.com/dynamodb/pricing/on-demand/>
const READ_PRICE: f64 = 0.125;
const WRITE_PRICE: f64 = 0.625;
const PRICES_OF: &str = "on-demand, us-east-1, since 2024-11-01";

/// The cost of one use of a pattern.
struct Cost {
    pattern: &'static Pattern,
    on: String,
    requests: u32,
    read_units: f64,
    write_units: f64,
    items: u32,
    bytes: u64,
}

struct Bench {
    test: TestTable,
    table: Table,
    costs: Vec<Cost>,
}

impl Bench {
    async fn create() -> Self {
        let test = TestTable::create().await;
        let table = test.table();
        Self { test, table, costs: Vec::new() }
    }

    /// Returns all items of the table. A test may use Scan.
    async fn everything(&self) -> BTreeMap<Key, Item> {
        let mut all = BTreeMap::new();
        let mut pages = self
            .test
            .client()
            .scan()
            .table_name(self.test.name())
            .consistent_read(true)
            .into_paginator()
            .items()
            .send();
        while let Some(item) = pages.next().await {
            let item: Item = item.unwrap().into();
            all.insert(key_of(&item).unwrap(), item);
        }
        all
    }

    fn reads(&mut self, on: &str) {
        let measured = self.table.meter().take();
        let [one] = measured.as_slice() else { panic!("one pattern at a time: {measured:?}") };
        self.costs.push(Cost {
            pattern: one.pattern,
            on: on.to_owned(),
            requests: one.requests,
            read_units: one.capacity_units,
            write_units: 0.0,
            items: one.items,
            bytes: one.bytes,
        });
    }

    async fn get<T: FromItem>(&mut self, on: &str, get: Get<T>) -> T {
        let found = self.table.get(&get).await.unwrap().expect(on);
        self.reads(on);
        found
    }

    async fn batch_get<T: FromItem>(&mut self, on: &str, get: BatchGet<T>) {
        assert!(self.table.batch_get(&get).await.unwrap().iter().any(Option::is_some), "{on}");
        self.reads(on);
    }

    async fn query<T: FromItem>(&mut self, on: &str, expected: usize, query: Query<T>) {
        assert_eq!(self.table.query(&query).await.unwrap().items.len(), expected, "{on}");
        self.reads(on);
    }

    async fn writes(&mut self, on: &str, before: BTreeMap<Key, Item>, factor: usize, checks: usize) {
        let after = self.everything().await;
        let measured = self.table.meter().take();
        let [one] = measured.as_slice() else { panic!("one pattern at a time: {measured:?}") };
        let changed = before.keys().chain(after.keys()).collect::<std::collections::BTreeSet<_>>();
        let mut units = 0;
        for key in changed {
            let (old, new) = (before.get(key), after.get(key));
            if old != new {
                units += factor * write_units(old.into_iter().chain(new).map(size).max().unwrap_or(0));
                units += INDEXES.into_iter().map(|index| index_units(old, new, index)).sum::<usize>();
            }
        }
        assert!(units > 0, "{on} changed nothing");
        let write_units = (units + checks) as f64;
        if factor == 1 {
            assert_eq!(one.capacity_units, write_units, "{on}: the table's own figure");
        }
        self.costs.push(Cost {
            pattern: one.pattern,
            on: on.to_owned(),
            requests: one.requests,
            read_units: 0.0,
            write_units,
            items: 0,
            bytes: 0,
        });
    }

    /// Writes an item without any condition, and without measuring it.
    async fn seed<T: Entity>(&self, item: &Stored<T>) {
        let put = self.test.client().put_item().table_name(self.test.name());
        put.set_item(Some(item.to_item().unwrap().into())).send().await.unwrap();
    }

    async fn write(&mut self, on: &str, write: Single<()>) {
        let before = self.everything().await;
        self.table.write(&write).await.unwrap().unwrap();
        self.writes(on, before, 1, 0).await;
    }

    async fn update<T: FromItem>(&mut self, on: &str, write: Single<T>) -> T {
        let before = self.everything().await;
        let item = self.table.update(&write).await.unwrap().unwrap();
        self.writes(on, before, 1, 0).await;
        item
    }

    async fn batch_write(&mut self, on: &str, write: BatchWrite) {
        let before = self.everything().await;
        assert!(self.table.batch_write(&write).await.unwrap().is_empty());
        self.writes(on, before, 1, 0).await;
    }

    async fn transact<L: Clone + std::fmt::Debug>(&mut self, on: &str, transaction: Transaction<L>) {
        let before = self.everything().await;
        self.table.transact(&transaction).await.unwrap().unwrap();
        let checked = transaction.actions().iter().filter_map(|(_, guarded)| match &guarded.write {
            Write::Check { key } => before.get(key),
            _ => None,
        });
        let checks = checked.map(|item| 2 * write_units(size(item))).sum();
        self.writes(on, before, 2, checks).await;
    }
}

/// Returns one unit for each started KB, and at least one.
fn write_units(bytes: usize) -> usize {
    bytes.div_ceil(1024).max(1)
}

fn index_units(old: Option<&Item>, new: Option<&Item>, index: Index) -> usize {
    let entry = |item: Option<&Item>| {
        let item = item?;
        let size = index_entry_size(item, index)?;
        let keys = [index.partition_attribute(), index.sort_attribute()].map(|name| item.get(name).cloned());
        let shown: Vec<_> = index.projected().iter().map(|name| item.get(*name).cloned()).collect();
        Some((size, keys, shown))
    };
    match (entry(old), entry(new)) {
        (None, None) => 0,
        (None, Some((size, ..))) | (Some((size, ..)), None) => write_units(size),
        (Some((before, old_keys, _)), Some((after, new_keys, _))) if old_keys != new_keys => {
            write_units(before) + write_units(after)
        }
        (Some((_, _, old)), Some((_, _, new))) if old == new => 0,
        (Some((before, ..)), Some((after, ..))) => write_units(before.max(after)),
    }
}

/// As long as an API Gateway request id. In a deployment every item has one.
const REQUEST: &str = "JKJaXmPLvHcESHA=";

#[tokio::test]
async fn every_access_pattern_has_the_cost_in_docs_cost_md() {
    // Boxed, because the measurement is one deep future.
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
    start(&mut bench).await;
    let measured: std::collections::BTreeSet<&str> = bench.costs.iter().map(|cost| cost.pattern.id).collect();
    let missing: Vec<&str> = registry::all().map(|pattern| pattern.id).filter(|id| !measured.contains(id)).collect();
    assert!(missing.is_empty(), "not measured: {missing:?}");
    compare(&render(&bench.costs));
}

fn render(costs: &[Cost]) -> String {
    let mut text = format!(
        "# Cost of every access pattern\n\n\
         `UPDATE_DOCS=1 cargo test -p table` generates this page. Without the variable the test compares it, and fails \
         when the cost of a\n\
         pattern changes. The embedded table reports the read units. The write units follow from the items' sizes. \
         Prices: {PRICES_OF}.\n\
         A million read units cost {READ_PRICE} dollars, and a million write units {WRITE_PRICE} dollars.\n\n\
         | pattern | measured on | requests | read units | write units | items | bytes | dollars per million |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    );
    for registered in registry::all() {
        for cost in costs.iter().filter(|cost| cost.pattern.id == registered.id) {
            let Cost { pattern, on, requests, read_units, write_units, items, bytes } = cost;
            let price = read_units * READ_PRICE + write_units * WRITE_PRICE;
            writeln!(
                text,
                "| `{}` | {on} | {requests} | {read_units} | {write_units} | {items} | {bytes} | {price:.3} |",
                pattern.id
            )
            .unwrap();
        }
    }
    text + &several_requests(costs)
}

/// Lists the patterns that take more than one request. Only sharded lists may.
fn several_requests(costs: &[Cost]) -> String {
    let several =
        registry::all().filter(|pattern| costs.iter().any(|cost| cost.pattern.id == pattern.id && cost.requests > 1));
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

fn compare(text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cost.md");
    let embedded = std::env::var_os("AWS_ENDPOINT_URL_DYNAMODB").is_none();
    if embedded && std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let pinned = std::fs::read_to_string(&path).unwrap_or_default();
    // Other engines round the read units of index entries differently. Everything else must be the
    // same.
    let shown = |line: &str| if embedded { line.to_owned() } else { without_read_units(line) };
    assert_eq!(
        text.lines().count(),
        pinned.lines().count(),
        "docs/cost.md is stale: run UPDATE_DOCS=1 cargo test -p table"
    );
    for (line, (now, then)) in text.lines().zip(pinned.lines()).enumerate() {
        assert_eq!(shown(now), shown(then), "docs/cost.md line {}: run UPDATE_DOCS=1 cargo test -p table", line + 1);
    }
}

/// Returns a row without its read units and its price.
fn without_read_units(line: &str) -> String {
    let cells = line.split('|').enumerate().filter(|(column, _)| !matches!(column, 4 | 8));
    cells.map(|(_, cell)| cell).collect::<Vec<_>>().join("|")
}

/// Measures a customer who verifies the email address.
async fn verifications(bench: &mut Bench) {
    let mut profile = data::customer(200);
    profile.data.email_verified = false;
    bench.table.transact(&customer::create(&profile).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    let nonce = "00112233445566778899aabbccddeeff";
    let born = Born::new("verification").unwrap();
    let next = EmailVerification::next(None, &profile, (nonce.to_owned(), "k1"), born, at(0)).unwrap();
    bench.transact("one address", verification::request(&next, None).unwrap()).await;
    bench.batch_get("one address", verification::read(&profile.id).unwrap()).await;
    bench.update("one code", verification::count_try(&profile.id, nonce, at(1)).unwrap()).await;
    bench.transact("one code", verification::verify(&profile, Some(nonce), at(1)).unwrap()).await;
}

async fn customers(bench: &mut Bench) {
    for number in 1..=25 {
        let create = customer::create(&data::customer(number)).unwrap();
        if number == 1 {
            bench.transact("a customer with one address", create).await;
        } else {
            bench.table.transact(&create).await.unwrap().unwrap();
        }
    }
    let _ = bench.table.meter().take();
    let id = customer_id(1);
    let one = bench.get("one customer", customer::get(&id).unwrap()).await;
    bench.get("one customer", customer::read_for_update(&id).unwrap()).await;
    let change = Change::<Customer>::visible(at(1)).name(&"Augusta Ada King".to_owned()).unwrap();
    let one = bench.update("the name", customer::update(&one, change).unwrap()).await;
    let index_key = TierIndexKey { tier: Tier::Gold, created_at: one.meta.created_at, id: &id };
    let change = Change::visible(at(2)).enter(&index_key).unwrap();
    let one = bench.update("the tier: the index entry moves", customer::update(&one, change).unwrap()).await;
    let email = "ada@example.com".parse().unwrap();
    let names = Names { email: &email, email_verified: true, username: &one.username };
    let rename = customer::rename(&one, names, Change::visible(at(3)), at(3)).unwrap();
    bench.transact("another email address", rename).await;
    let work = AddressName::new("work").unwrap();
    bench.update("a second address", customer::put_address(&id, &work, &data::address(), None, at(4)).unwrap()).await;
    bench.update("the second address", customer::remove_address(&id, &work, None, at(5)).unwrap()).await;
    bench.get("one claim", customer::by_email("ADA@example.com").unwrap()).await;
    bench.query("a page of 20", 20, customer::by_tier(Tier::Bronze).unwrap().limit(20)).await;
    let ids: Vec<_> = (1..=20).map(customer_id).collect();
    bench.batch_get("a page of 20", customer::hydrate(&ids).unwrap()).await;
    let last = bench.table.get(&customer::read_for_update(&customer_id(25)).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    let last = bench.update("a customer with one address", customer::begin_erasure(&last, at(6)).unwrap()).await;
    bench.transact("a customer with one address", customer::delete(&last, at(6)).unwrap()).await;

    bench.query("one erasure", 1, erasure::pending(at(6)).unwrap()).await;
    let pending = erasure::Pending { customer_id: last.id.clone(), created_at: at(6) };
    bench.write("one erasure", erasure::done(&pending).unwrap()).await;

    for number in 1..=5 {
        let create = session::create(&data::session(number)).unwrap();
        if number == 1 {
            bench.transact("one session", create).await;
        } else {
            bench.table.transact(&create).await.unwrap().unwrap();
        }
    }
    let _ = bench.table.meter().take();
    let one = data::session(1);
    bench.get("one session", session::get(&one.id).unwrap()).await;
    let index_key = SessionIndexKey { customer_id: &id, expires_at: at(172_800), id: &one.id };
    bench.update("one session: its index entry moves", session::extend(&index_key, &one.device, at(1)).unwrap()).await;
    bench.query("5 sessions", 5, session::active(&id, at(1)).unwrap()).await;
    bench.query("5 sessions", 5, session::of_customer(&id).unwrap()).await;
    bench.transact("one session: it and two revocations", session::end(&one, at(1)).unwrap()).await;
    let sign_in = SignIn::of(&id, one.id.as_str());
    bench.get("a token whose session has ended", revocation::get(&sign_in).unwrap()).await;
    let rest: Vec<_> = (2..=5).map(|number| data::session(number).data.id).collect();
    bench.batch_get("4 sessions", session::read_all(&rest).unwrap()).await;
    let sessions: Vec<_> = (2..=5).map(data::session).collect();
    bench.batch_write("4 sessions", session::revoke_all(&sessions, at(1)).unwrap()).await;
    bench.batch_write("4 sessions", session::end_all(&rest).unwrap()).await;

    bench.write("a cart of one line", cart::create(&data::cart(1), at(0)).unwrap()).await;
    for number in 2..=5 {
        let line = cart::CartLine { quantity: 2, added_at: at(0) };
        let put = cart::put_line(&id, &product_id(number), &line, at(0)).unwrap();
        if number == 5 {
            bench.update("the fifth line", put).await;
        } else {
            bench.table.update(&put).await.unwrap().unwrap();
            let _ = bench.table.meter().take();
        }
    }
    bench.get("a cart of 5 lines", cart::get(&id).unwrap()).await;
    bench.update("one of 5 lines", cart::remove_line(&id, &product_id(5), at(0)).unwrap()).await;
    bench.write("a cart of 4 lines", cart::discard(&id).unwrap()).await;
}

async fn products(bench: &mut Bench) {
    for number in 1..=25 {
        let create = product::create(&data::product(number), 1000, &[]).unwrap();
        if number == 1 {
            bench.transact("one product", create).await;
        } else {
            bench.table.transact(&create).await.unwrap().unwrap();
        }
    }
    let _ = bench.table.meter().take();
    let many: Vec<_> = (101..=150).map(data::product).collect();
    bench.transact("50 products", product::create_many(many.iter().map(|product| (product, 1000))).unwrap()).await;
    let id = product_id(1);
    for number in 1..=21 {
        let create = review::create(&data::review(number)).unwrap();
        if number == 2 {
            bench.transact("one review", create).await;
        } else {
            bench.table.transact(&create).await.unwrap().unwrap();
        }
        let _ = bench.table.meter().take();
    }
    bench.query("one product", 3, product::page(&id).unwrap()).await;
    let one = bench.get("one product", product::read_for_update(&id).unwrap()).await;
    let ids: Vec<_> = (1..=20).map(product_id).collect();
    bench.batch_get("20 products", product::many(&ids).unwrap()).await;
    let change = Change::<Product>::visible(at(1)).price(&data::usd(149)).unwrap();
    bench.update("the price", product::update(&id, change, one.meta.version).unwrap()).await;
    bench.query("a page of 20", 20, product::in_category(&data::path()).unwrap().limit(20)).await;
    bench.transact("one product", product::retire(&product_id(150), 1, at(1)).unwrap()).await;
    let retired: Stored<Product> =
        bench.table.get(&product::read_for_update(&product_id(150)).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    let revive = product::revive(&retired, &data::product(150), 1000, &[]).unwrap();
    bench.transact("one product", revive).await;
    bench.update("one stock", product::set_stock(&id, 900, at(1)).unwrap()).await;
    bench.get("one stock", product::stock(&id).unwrap()).await;
    adjust(bench).await;
    copies(bench).await;
    memberships(bench).await;
    bench.transact("2 KB of text", product::create_content(&data::content(1), None).unwrap()).await;
    bench.batch_get("2 KB of text", product::content(&id).unwrap()).await;

    let (reviewer, one) = (customer_id(2), data::review(2));
    bench.get("one review", review::get(&id, &reviewer).unwrap()).await;
    bench.get("one review", review::read_for_update(&id, &reviewer).unwrap()).await;
    bench.batch_get("one product", review::stats(&id).unwrap()).await;
    bench.query("a page of 20", 20, review::newest(&id).unwrap().limit(20)).await;
    bench.query("a page of 20", 20, review::best(&id).unwrap().limit(20)).await;
    bench.query("one review", 1, review::by_customer(&reviewer).unwrap().limit(20)).await;
    bench.transact("another rating", review::change(&one, 5, &one.title, &one.text, at(9)).unwrap()).await;
    let changed = bench.table.get(&review::read_for_update(&id, &reviewer).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    bench.transact("one review", review::delete(&changed, at(10)).unwrap()).await;

    let dairy = category::CategoryNode::new(CategoryPath::new(vec!["DAIRY".to_owned()]).unwrap());
    bench.transact("one category", category::create(&data::stored(dairy, 1), None).unwrap()).await;
    bench.batch_write("a path of 3", category::add(&data::nodes()).unwrap()).await;
    bench.batch_get("a path of 3", category::known(data::path().lineage().collect::<Vec<_>>().iter()).unwrap()).await;
    bench.transact("one category", category::describe(&data::about()).unwrap()).await;
    bench.batch_get("one category", category::get(&data::path()).unwrap()).await;
    let redescribe = category::redescribe(&data::path(), &Some("Ice".to_owned()), &None, 1, at(1)).unwrap();
    bench.update("one category", redescribe).await;
    bench.query("one child", 1, category::children(&data::path().parent().unwrap()).unwrap()).await;
    bench.batch_get("2 ancestors", category::ancestors(&data::path()).unwrap()).await;
}

async fn copies(bench: &mut Bench) {
    let id = product_id(2);
    let mut stock: Stored<product::Stock> = bench.table.get(&product::stock(&id).unwrap()).await.unwrap().unwrap();
    (stock.meta.rev, stock.data.available) = (stock.meta.rev + 1, 0);
    let _ = bench.table.meter().take();
    bench.write("one product", product::copy_stock(&stock).unwrap()).await;
    let stats = product::ReviewStats { product_id: id, rating_count: 1, rating_sum: 5 };
    bench.write("one product", product::copy_rating(&data::stored(stats, 2)).unwrap()).await;
}

async fn memberships(bench: &mut Bench) {
    let path = |name: &str| CategoryPath::new(vec!["SUMMER".to_owned(), name.to_owned()]).unwrap();
    let mut known: Option<Stored<membership::ProductCategories>> = None;
    for number in 1..=3 {
        let product = bench.table.get(&product::read_for_update(&product_id(3)).unwrap()).await.unwrap().unwrap();
        let path = path(&format!("PARTY {number}"));
        let add = membership::add(&product, &path, known.as_ref(), &data::born(number), at(1)).unwrap();
        let _ = bench.table.meter().take();
        if number == 3 {
            bench.transact("the third category", add).await;
        } else {
            bench.table.transact(&add).await.unwrap().unwrap();
        }
        known = bench.table.batch_get(&membership::lists([&product.id]).unwrap()).await.unwrap().remove(0);
        let _ = bench.table.meter().take();
    }
    let (id, known) = (product_id(3), known.unwrap());
    bench.batch_get("one product", membership::prepare(&id).unwrap()).await;
    bench.batch_get("one product", membership::lists([&id]).unwrap()).await;
    bench.query("3 categories", 3, membership::of_product(&id).unwrap()).await;
    let mut renamed: Stored<Product> = bench.table.get(&product::read_for_update(&id).unwrap()).await.unwrap().unwrap();
    renamed.meta.rev += 1;
    renamed.data.name = "ICE - CUBED 22 LB".to_owned();
    let _ = bench.table.meter().take();
    bench.write("another name", membership::refresh(&renamed, &path("PARTY 1")).unwrap()).await;
    bench.transact("one of 3 categories", membership::remove(&known, &path("PARTY 2"), at(2)).unwrap()).await;
}

async fn places(bench: &mut Bench) {
    let city = "Springfield".to_owned();
    let id = StoreId::new("364").unwrap();
    let store = place::StoreLocation { id, country: "US".to_owned(), city, name: "By the lake".to_owned() };
    bench.write("one shop", place::create(&data::stored(store.clone(), 1)).unwrap()).await;
    bench.get("one shop", place::get(&store.id).unwrap()).await;
    bench.get("one shop", place::read_for_update(&store.id).unwrap()).await;
    bench.update("one shop", place::change(&store, 1, at(1)).unwrap()).await;
    let month = "2026-01".parse().unwrap();
    let parts = bench.table.query(&place::sales("US", &month, None).unwrap()).await.unwrap().items.len();
    let _ = bench.table.meter().take();
    bench.query("a country's month", parts, place::sales("US", &month, None).unwrap()).await;
    let one = "unknown~364".parse().unwrap();
    bench.query("another shop without sales", 0, place::sales("US", &month, Some(&one)).unwrap()).await;
}

async fn adjust(bench: &mut Bench) {
    let claim = idempotency::claim(&data::record(99), at(0)).unwrap();
    let seen = bench.table.get(&product::stock(&product_id(1)).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    let reason = "found behind the shelf".to_owned();
    let adjustment = product::Adjustment { by: 5, reason, staff: customer_id(7), at: at(1) };
    let available = seen.moved(5).unwrap();
    bench.transact("one stock, with a key", product::adjust_stock(&seen, available, adjustment, claim).unwrap()).await;
}

async fn orders(bench: &mut Bench) {
    let id = customer_id(1);
    bench.batch_get("customer and product", cart::prepare(&id, &product_id(1)).unwrap()).await;
    let ids: Vec<_> = (1..=5).map(product_id).collect();
    bench.batch_get("5 lines", cart::products(&ids).unwrap()).await;
    bench.batch_get("customer and 5 products", order::prepare(&id, false, Some(&data::scope(1)), &ids).unwrap()).await;
    for number in 1..=25 {
        let (head, lines) = data::order(number, 5);
        let claim = Some(idempotency::claim(&data::record(number), at(0)).unwrap());
        let place =
            order::place(Placement { order: &head, lines: &lines, by: id.as_str(), claim, open: None, cart: None })
                .unwrap();
        if number == 1 {
            bench.transact("5 lines with reference and key", place).await;
        } else {
            bench.table.transact(&place).await.unwrap().unwrap();
        }
    }
    let _ = bench.table.meter().take();
    bench.get("one record", idempotency::get(&data::scope(1)).unwrap()).await;
    bench.query("5 lines", 7, order::get(&order_id(1)).unwrap()).await;
    bench.query("5 lines", 7, order::read_for_update(&order_id(1)).unwrap()).await;
    bench.query("5 lines", 5, order::lines(&order_id(1)).unwrap()).await;
    bench.get("one head", order::head(&order_id(1)).unwrap()).await;
    let (head, lines) = data::order(1, 5);
    let lines: Vec<_> = lines.into_iter().map(|line| line.data).collect();
    fn step<'a>(order: &'a Stored<order::Order>, lines: &'a [order::OrderLine], to: OrderStatus) -> Step<'a> {
        Step { order, lines, to, at: at(100), by: "staff-7", note: None, carrier: None, tracking: None, money: None }
    }
    bench.transact("paid", order::advance(step(&head, &lines, OrderStatus::Paid)).unwrap()).await;
    let (second, _) = data::order(2, 5);
    bench
        .transact("cancelled: 5 stocks return", order::advance(step(&second, &lines, OrderStatus::Cancelled)).unwrap())
        .await;
    let mut third = data::order(3, 5).0;
    for to in [OrderStatus::Paid, OrderStatus::Picking] {
        let step = Step { at: at(100 + i64::try_from(third.meta.version).unwrap()), ..step(&third, &lines, to) };
        let moved = order::advance(step).unwrap();
        bench.table.transact(&moved).await.unwrap().unwrap();
        third.meta.version += 1;
        third.data.status = to;
    }
    let _ = bench.table.meter().take();
    bench
        .transact(
            "shipped: enters the index of shipments",
            order::advance(step(&third, &lines, OrderStatus::Shipped)).unwrap(),
        )
        .await;
    bench.query("a page of 20", 20, order::of_customer(&id, None, None).unwrap().limit(20)).await;
    bench.query("profile and 20 orders", 21, customer::overview(&id).unwrap()).await;
    bench.query("a page of 20", 20, order::by_status(OrderStatus::Pending, None, None).unwrap().limit(20)).await;
    bench.query("one shipment", 1, order::shipments(&id, None).unwrap().limit(20)).await;
    bench.transact("one line", order::add_log(&data::log(1)).unwrap()).await;
    bench.query("one line", 1, order::log(&order_id(1)).unwrap().limit(20)).await;
}

async fn rest(bench: &mut Bench) {
    for number in 1..=25 {
        let (head, lines) = data::order(number, 5);
        let counted_at = SalePlace::of(&head, None, place::store_of(&head));
        let apply = sales::apply(&head, &lines, &sales::Derived::default(), counted_at).unwrap().remove(0);
        if number == 1 {
            bench.transact("5 lines", apply).await;
        } else {
            bench.table.transact(&apply).await.unwrap().unwrap();
        }
    }
    let _ = bench.table.meter().take();
    let sold = sales::of_product(&product_id(1), 2026, at(0), at(1000)).unwrap().limit(20);
    bench.query("a page of 20", 20, sold).await;
    bench.query("5 lines and their place", 6, sales::derived(&order_id(1)).unwrap()).await;
    places(bench).await;
    expired(bench).await;
    let marks = data::marks(10);
    bench.batch_write("10 events", mark::keep(&marks).unwrap()).await;
    let ids: Vec<_> = marks.iter().map(|mark| mark.event_id.as_str()).collect();
    bench.batch_get("10 events", mark::known("bus", ids).unwrap()).await;
    subscribers(bench).await;
}

/// Measures the read at a function's start. The meter does not show it, because no client request
/// needs it.
async fn start(bench: &mut Bench) {
    let nothing = reach::nothing().unwrap();
    let key = nothing.key();
    let get = bench.test.client().get_item().table_name(bench.test.name());
    let get = get.key("PK", AttributeValue::S(key.pk.to_string())).key("SK", AttributeValue::S(key.sk.to_string()));
    let answer = get.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await.unwrap();
    assert_eq!(answer.item, None);
    let read_units = answer.consumed_capacity.unwrap().capacity_units.unwrap();
    let (pattern, on) = (nothing.pattern(), "one start".to_owned());
    bench.costs.push(Cost { pattern, on, requests: 1, read_units, write_units: 0.0, items: 0, bytes: 0 });
    bench.table.reach(&nothing).await;
    assert!(bench.table.meter().take().is_empty());
}

/// Measures mails about the first order, and ten picking stations that paid orders take one after
/// the other.
async fn subscribers(bench: &mut Bench) {
    bench.batch_get("customer and order", mail::prepare(&customer_id(1), &order_id(1)).unwrap()).await;
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
        let step = Step {
            order: &head,
            lines: &[],
            to: OrderStatus::Paid,
            at: at(300),
            by: "staff-7",
            note: None,
            carrier: None,
            tracking: None,
            money: None,
        };
        bench.table.transact(&order::advance(step).unwrap()).await.unwrap().unwrap();
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
    // This order has been cancelled above, so it is closed.
    let items = bench.table.query(&order::read_for_update(&order_id(2)).unwrap()).await.unwrap().items;
    let (mut head, mut lines, mut history) = (None, Vec::new(), Vec::new());
    for item in items {
        match item {
            AnyEntity::Order(order) => head = Some(order),
            AnyEntity::OrderLine(line) => lines.push(line),
            AnyEntity::OrderStatusEvent(event) => history.push(event),
            _ => {}
        }
    }
    let (order, expires_at, at) = (&head.unwrap(), at(86_400), at(200));
    let retirement = order::Retirement { order, lines: &lines, history: &history, expires_at, at };
    let retire = order::retire(retirement).unwrap().remove(0);
    let _ = bench.table.meter().take();
    bench.transact("5 lines and 2 steps", retire).await;
    let entry = data::expiration();
    bench.write("one removal", expiration::record(&entry).unwrap()).await;
    bench.query("one removal", 1, expiration::of_day(&entry.removed_at.day()).unwrap().limit(20)).await;
    bench.write("the first beat", heartbeat::beat(at).unwrap()).await;
    bench.get("a customer with one address", archive::owner(&customer_id(1)).unwrap()).await;
    let archived = data::order(60, 5).0.to_item().unwrap();
    let restored = archive::restored(archived, at, expires_at).unwrap();
    bench.write("one head", archive::restore(&restored).unwrap()).await;
}
