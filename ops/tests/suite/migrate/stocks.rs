//! Tests of the migration `stock-partitions`, while functions take orders and change stocks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use aws::s3::Bucket;
use aws::{Credentials, SharedCredentialsProvider};
use aws_sdk_dynamodb::Client;
use emulators::objects::ObjectServer;
use fixture::{Harness, TestTable, crash_after, seed, with_writer};
use futures::future::join_all;
use http_api::Services;
use http_api::sample::{Answered, Call};
use key_schema::id::ProductId;
use key_schema::item::{Entity as _, FromItem as _, Item, Stored, entity_name, key_of};
use key_schema::product::{self, Product, STOCK_LOW, Stock};
use ops::Items;
use ops::items::set;
use ops::migrate::{ALL, MigrateOptions, Migrated, Migration, find, run_migration, status};
use ops::verify::{Kind, verify};
use proptest::prelude::*;
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};
use storage::media::Media;
use stream::consumer::Consumer;
use stream::derived::Derived;
use stream::sink::Sink;
use table::Table;

use super::{OPTIONS, all, record, records_between};
use crate::shop::{PanickingQuarantine, Shop};
use crate::verify::options;

const NAME: &str = "stock-partitions";
/// The number of pieces that the tests of single requests start with.
const PIECES: u64 = 10;

fn migration() -> &'static dyn Migration {
    find(NAME).unwrap()
}

fn id(id: &str) -> ProductId {
    ProductId::new(id).unwrap()
}

/// Returns the pieces of each product, under either key. Each product has its stock only once.
async fn pieces(test: &TestTable) -> BTreeMap<String, u64> {
    let mut shards = BTreeMap::new();
    for item in test.items("").await.into_iter().filter(|item| entity_name(item).unwrap() == Stock::ENTITY) {
        let stock = Stored::<Stock>::from_item(item).unwrap();
        let other = shards.insert((stock.product_id.to_string(), stock.shard), stock.available);
        assert_eq!(other, None, "{} has two stocks", stock.product_id);
    }
    let mut pieces = BTreeMap::new();
    for ((product, _), available) in shards {
        *pieces.entry(product).or_default() += available;
    }
    pieces
}

/// The functions that read and change stocks, over one table.
struct Functions {
    test: Arc<TestTable>,
    orders: Harness<orders::App>,
    catalog: Harness<catalog::App>,
    customers: Harness<Services>,
    _objects: ObjectServer,
}

impl Functions {
    async fn open() -> Self {
        let test = Arc::new(TestTable::create().await);
        test.sign_up("ann").await;
        let client = test.client();
        Self::over(&test, &client).await
    }

    /// Opens functions that reach the table with this client.
    async fn over(test: &Arc<TestTable>, client: &Client) -> Self {
        let objects = ObjectServer::start(None, &["bodega-media".to_owned()]).await.unwrap();
        let credentials = SharedCredentialsProvider::new(Credentials::new("local", "local", None, None, "test"));
        let media = Media::new(Bucket::new("bodega-media", "us-east-1", Some(objects.url()), credentials).unwrap());
        let services = |test: &TestTable| Services {
            table: Table::new(client.clone(), test.name().to_owned()),
            ..test.services()
        };
        let app = |test: &TestTable| catalog::App {
            services: services(test),
            media,
            stock_low: STOCK_LOW,
            view_time: Duration::from_secs(10),
        };
        Self {
            test: Arc::clone(test),
            orders: Harness::over(test, orders::routes(), |test| orders::App::new(services(test))),
            catalog: Harness::over(test, catalog::routes(), app),
            customers: Harness::over(test, customers::routes(), services),
            _objects: objects,
        }
    }

    fn items(&self) -> Items {
        Items::new(self.test.client(), self.test.name().to_owned())
    }

    /// Creates a product whose stock has the form of an earlier table.
    async fn sell(&self, product: &str, pieces: u64) {
        self.test.sell(seed::product(product, seed::usd(100)), pieces).await;
        self.test.age_stock(product).await;
    }

    async fn migrate(&self) -> Migrated {
        run_migration(&self.items(), migration(), &OPTIONS).await.unwrap()
    }

    async fn order(&self, lines: &[(&str, u64)], key: &str) -> Answered {
        let line = |(product, quantity): &(&str, u64)| json!({ "product_id": product, "quantity": quantity });
        let body = json!({ "customer_id": "ann", "lines": lines.iter().map(line).collect::<Vec<_>>() });
        let call = Call::new("POST /v1/orders").staff("sam").header("idempotency-key", key).json(&body);
        self.orders.settled(call).await
    }

    async fn cancel(&self, order: &Value) -> Answered {
        let call = Call::new("POST /v1/orders/{id}/status").path("id", order["id"].as_str().unwrap()).staff("sam");
        let call = call.header("if-match", &format!("\"{}\"", order["version"]));
        self.orders.settled(call.json(&json!({ "to": "cancelled" }))).await
    }

    async fn staff(&self, route: &'static str, product: &str, body: &Value) -> Answered {
        let call = Call::new(route).path("id", product).staff("sam").json(body);
        self.catalog.settled(call.header("idempotency-key", &format!("{:x}", fastrand::u128(..)))).await
    }

    async fn set(&self, product: &str, pieces: u64) -> Answered {
        self.staff("PUT /v1/products/{id}/stock", product, &json!({ "set": pieces })).await
    }

    async fn adjust(&self, product: &str, by: i64) -> Answered {
        let body = json!({ "adjust": by, "reason": "recount" });
        self.staff("POST /v1/products/{id}/stock/adjustments", product, &body).await
    }

    async fn numbers(&self, product: &str) -> Answered {
        self.catalog.settled(Call::new("GET /v1/products/{id}/numbers").path("id", product).staff("sam")).await
    }
}

#[tokio::test]
async fn the_command_moves_old_stocks_and_a_second_run_writes_nothing() {
    let shop = Shop::open().await;
    for number in 0..300 {
        let product = format!("p{number}");
        shop.table.sell(seed::product(&product, seed::usd(100)), number).await;
        if number % 3 > 0 {
            shop.table.age_stock(&product).await;
        }
    }
    let before = all(&shop).await;
    let pieces_before = pieces(&shop.table).await;
    assert_eq!(ALL.map(|migration| migration.name()), [NAME]);
    let counts = status(&shop.items, &ALL, &OPTIONS).await.unwrap();
    assert_eq!(counts.to_string(), "stock-partitions  200 to migrate, 100 in the new form, 0 keep the old form\n");
    let dry = run_migration(&shop.items, migration(), &MigrateOptions { dry_run: true, ..OPTIONS }).await.unwrap();
    assert_eq!((dry.migrated, dry.done, dry.sample.clone()), (200, 100, vec!["Stock under another key".to_owned()]));
    assert!(all(&shop).await == before, "a dry run writes nothing");
    let migrated = run_migration(&shop.items, migration(), &OPTIONS).await.unwrap();
    assert!(migrated.is_complete() && migrated.migrated == 200 && migrated.kept.is_empty(), "{migrated}");
    let after = all(&shop).await;
    // Only the two attributes and the key differ: `rev`, `version` and the times stay.
    for (key, item) in &before {
        let Ok(Stock::ENTITY) = entity_name(item) else {
            assert_eq!(after.get(key), Some(item));
            continue;
        };
        let new = Stored::<Stock>::from_item(item.clone()).unwrap().to_item().unwrap();
        assert_eq!(after.get(&key_of(&new).unwrap()), Some(&new));
    }
    assert_eq!((after.len(), pieces(&shop.table).await), (before.len(), pieces_before));
    let again = run_migration(&shop.items, migration(), &OPTIONS).await.unwrap();
    assert_eq!((again.migrated, again.done), (0, 300), "{again}");
    assert!(all(&shop).await == after, "a second run writes nothing");
    let counts = status(&shop.items, &ALL, &OPTIONS).await.unwrap();
    assert_eq!(counts.to_string(), "stock-partitions  0 to migrate, 300 in the new form, 0 keep the old form\n");
}

/// The function and the command write the same item.
#[tokio::test]
async fn a_function_moves_a_stock_like_the_command() {
    let (one, two) = (Functions::open().await, Functions::open().await);
    let stock = seed::stored(seed::stock(id("tea"), PIECES));
    for functions in [&one, &two] {
        functions.sell("tea", PIECES).await;
        functions.test.put_item(seed::old_form(&stock)).await;
    }
    one.migrate().await;
    workflows::stock::found::<()>(two.test.own(), &id("tea")).await.unwrap().unwrap();
    let stocks = async |functions: &Functions| functions.test.items("STOCK#").await;
    assert_eq!(
        (stocks(&one).await, stocks(&two).await),
        (vec![stock.to_item().unwrap()], vec![stock.to_item().unwrap()])
    );
    for functions in [&one, &two] {
        assert!(functions.test.keys("PRODUCT#tea").await.iter().all(|(_, sk)| sk != "PRODUCT#STOCK"));
    }
}

/// During a deployment, functions of the former version still sell old stocks.
#[tokio::test]
async fn a_move_of_a_stock_that_has_changed_since_it_was_read_is_refused() {
    let functions = Functions::open().await;
    functions.sell("tea", PIECES).await;
    let table = functions.test.own();
    let read = table.get(&product::old_stock(&id("tea")).unwrap()).await.unwrap().unwrap();
    let mut sold = read.clone();
    (sold.data.available, sold.meta.rev) = (PIECES - 4, read.meta.rev + 1);
    functions.test.put_item(seed::old_form(&sold)).await;
    assert!(table.transact(&product::move_stock(&read).unwrap()).await.unwrap().is_err());
    assert_eq!(functions.order(&[("tea", PIECES)], "all").await.status, 409);
    assert_eq!(functions.order(&[("tea", PIECES - 4)], "rest").await.status, 201);
    assert_eq!(pieces(&functions.test).await["tea"], 0);
}

/// A shop in maintenance is only read.
#[tokio::test]
async fn pages_and_carts_show_a_stock_that_is_not_moved_and_write_nothing() {
    let functions = Functions::open().await;
    functions.sell("tea", PIECES).await;
    let put = Call::new("PUT /v1/customers/{id}/cart/items/{product}").path("id", "ann").path("product", "tea");
    assert_eq!(functions.customers.send(put.customer("ann").json(&json!({ "quantity": 2 }))).await.status, 200);
    let before = functions.test.items("").await;
    let page = functions.catalog.send(Call::new("GET /v1/products/{id}").path("id", "tea")).await;
    assert_eq!((&page.body["availability"], page.header("x-left-out")), (&json!("plenty"), None));
    assert_eq!(functions.numbers("tea").await.body["stock"], json!(PIECES));
    let cart = Call::new("GET /v1/customers/{id}/cart").path("id", "ann").customer("ann");
    assert_eq!(functions.customers.send(cart).await.body["items"][0]["in_stock"], true);
    let quote = Call::new("POST /v1/customers/{id}/cart/quote").path("id", "ann").customer("ann").json(&json!({}));
    assert_eq!(functions.orders.send(quote).await.body["lines"][0]["available"], true);
    assert_eq!(functions.test.items("").await, before);
}

/// A request to a shop, and what it does to the stock of the tea.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    Order,
    Cancellation,
    Adjustment,
    Set,
    Shards,
    Page,
    Cart,
    Retirement,
    Revival,
    Import,
    Variant,
}

impl Request {
    const ALL: [Self; 11] = [
        Self::Order,
        Self::Cancellation,
        Self::Adjustment,
        Self::Set,
        Self::Shards,
        Self::Page,
        Self::Cart,
        Self::Retirement,
        Self::Revival,
        Self::Import,
        Self::Variant,
    ];

    /// Prepares the tea, and gives its stock the form of an earlier table. Returns the order of a
    /// cancellation.
    async fn prepare(self, functions: &Functions) -> Value {
        let test = &functions.test;
        test.sell(seed::product("tea", seed::usd(100)), if self == Self::Variant { 0 } else { PIECES }).await;
        let order = match self {
            Self::Cancellation => functions.order(&[("tea", 4)], "first").await.body,
            Self::Revival | Self::Import => {
                test.retire("tea").await;
                Value::Null
            }
            _ => Value::Null,
        };
        test.age_stock("tea").await;
        order
    }

    /// Sends the request, and checks its response. Returns the expected number of pieces.
    async fn send(self, functions: &Functions, order: &Value) -> u64 {
        let product = |id: &str| {
            json!({
                "id": id, "name": "Tea", "brand": "B", "category_path": ["GROCERY"], "stock": 7,
                "price": { "amount": 100, "currency": "USD" },
            })
        };
        let create = async |body: Value| {
            functions.catalog.settled(Call::new("POST /v1/products").staff("sam").json(&body)).await
        };
        let (answer, status, left) = match self {
            Self::Order => (functions.order(&[("tea", PIECES)], "all").await, 201, 0),
            Self::Cancellation => (functions.cancel(order).await, 200, PIECES),
            Self::Adjustment => (functions.adjust("tea", -3).await, 200, PIECES - 3),
            Self::Set => (functions.set("tea", 5).await, 200, 5),
            Self::Shards => {
                let answer =
                    functions.staff("PUT /v1/products/{id}/stock/shards", "tea", &json!({ "shards": 4 })).await;
                (answer, 200, PIECES)
            }
            Self::Page => {
                let answer = functions.numbers("tea").await;
                assert_eq!((&answer.body["stock"], answer.header("x-left-out")), (&json!(PIECES), None));
                (answer, 200, PIECES)
            }
            Self::Cart => {
                let put = Call::new("PUT /v1/customers/{id}/cart/items/{product}").path("id", "ann").customer("ann");
                let answer =
                    functions.customers.settled(put.path("product", "tea").json(&json!({ "quantity": 2 }))).await;
                assert_eq!(answer.body["in_stock"], true, "{}", answer.body);
                (answer, 200, PIECES)
            }
            Self::Retirement => {
                let call = Call::new("DELETE /v1/products/{id}").path("id", "tea").staff("sam");
                (functions.catalog.settled(call.header("if-match", "\"1\"")).await, 204, PIECES)
            }
            Self::Revival => (create(product("tea")).await, 201, 7),
            Self::Import => {
                let call = Call::new("POST /v1/products/import").staff("sam");
                let call = call.header("content-type", "application/x-ndjson").body(format!("{}\n", product("tea")));
                let answer = functions.catalog.settled(call).await;
                assert_eq!(answer.body["results"][0]["status"], "created", "{}", answer.body);
                (answer, 200, 7)
            }
            Self::Variant => {
                let mut variant = product("tea-small");
                variant["parent"] = json!("tea");
                variant["options"] = json!({ "size": "S" });
                (create(variant).await, 201, 0)
            }
        };
        assert_eq!(answer.status, status, "{self:?}: {}", answer.body);
        left
    }
}

async fn check(request: Request, functions: &Functions, left: u64, when: &str) {
    let stored = pieces(&functions.test).await;
    assert_eq!(stored.get("tea"), Some(&left), "{request:?} {when}: {stored:?}");
    // The stock continues the `rev` of the old one, so the product's copy sees later changes.
    let stock = functions.test.own().get(&product::stock(&id("tea")).unwrap()).await.unwrap();
    let product = functions.test.own().get(&product::read_for_update(&id("tea")).unwrap()).await.unwrap().unwrap();
    assert!(stock.is_none_or(|stock| stock.meta.rev >= product.copied.stock_rev), "{request:?} {when}");
}

/// The whole migration runs before each request that a function sends to the table, in turn.
#[tokio::test(flavor = "multi_thread")]
async fn every_request_of_a_function_may_meet_the_migration() {
    for request in Request::ALL {
        for pause in 0.. {
            let functions = Functions::open().await;
            let order = request.prepare(&functions).await;
            let (items, sent) = (functions.items(), Arc::new(AtomicU32::new(0)));
            let counted = Arc::clone(&sent);
            let client = with_writer(&functions.test.client(), move |_| {
                let (items, sent) = (items.clone(), Arc::clone(&counted));
                async move {
                    if sent.fetch_add(1, Ordering::Relaxed) == pause {
                        let migrated = run_migration(&items, migration(), &OPTIONS).await.unwrap();
                        assert!(migrated.is_complete());
                    }
                }
            });
            let paused = Functions::over(&functions.test, &client).await;
            let left = request.send(&paused, &order).await;
            check(request, &functions, left, &format!("after {pause} requests")).await;
            functions.migrate().await;
            check(request, &functions, left, "migrated").await;
            if sent.load(Ordering::Relaxed) <= pause {
                assert!(pause > 1, "{request:?}");
                break;
            }
        }
    }
}

/// A function sends a whole request before each request of the command, in turn.
#[tokio::test(flavor = "multi_thread")]
async fn every_request_of_the_migration_may_meet_a_function() {
    for request in Request::ALL {
        for pause in 0.. {
            let functions = Arc::new(Functions::open().await);
            let order = request.prepare(&functions).await;
            let (sent, left) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(u32::MAX)));
            let (counted, expected, other) = (Arc::clone(&sent), Arc::clone(&left), Arc::clone(&functions));
            let client = with_writer(&functions.test.client(), move |_| {
                let (sent, left, functions) = (Arc::clone(&counted), Arc::clone(&expected), Arc::clone(&other));
                let order = order.clone();
                async move {
                    if sent.fetch_add(1, Ordering::Relaxed) == pause {
                        let now = request.send(&functions, &order).await;
                        left.store(u32::try_from(now).unwrap(), Ordering::Relaxed);
                    }
                }
            });
            let items = Items::new(client, functions.test.name().to_owned());
            // One segment has the same requests in each run.
            let options = MigrateOptions { segments: 1, ..OPTIONS };
            let migrated = run_migration(&items, migration(), &options).await.unwrap();
            assert!(migrated.is_complete() && migrated.kept.is_empty(), "{request:?}: {migrated}");
            if sent.load(Ordering::Relaxed) <= pause {
                assert!(pause > 2, "{request:?}: {pause}");
                break;
            }
            let left = u64::from(left.load(Ordering::Relaxed));
            check(request, &functions, left, &format!("before request {pause} of the command")).await;
        }
    }
}

const PRODUCTS: [&str; 3] = ["tea", "milk", "rye"];

/// A step of a shop that is being migrated.
#[derive(Debug, Clone)]
enum Step {
    /// An order of these products, by their positions.
    Order(Vec<(usize, u64)>),
    /// The cancellation of the n-th order, if it is open.
    Cancel(usize),
    Adjust(usize, i64),
    Set(usize, u64),
    Read(usize),
    /// A run of the command that is killed at this wait for a response.
    Migrate(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let lines = proptest::collection::btree_map(0..PRODUCTS.len(), 1..4_u64, 1..=PRODUCTS.len());
    prop_oneof![
        4 => lines.prop_map(|lines| Step::Order(lines.into_iter().collect())),
        2 => (0..8_usize).prop_map(Step::Cancel),
        2 => (0..PRODUCTS.len(), -4..5_i64).prop_map(|(at, by)| Step::Adjust(at, if by == 0 { 5 } else { by })),
        1 => (0..PRODUCTS.len(), 0..9_u64).prop_map(|(at, pieces)| Step::Set(at, pieces)),
        1 => (0..PRODUCTS.len()).prop_map(Step::Read),
        3 => (0..9_usize).prop_map(Step::Migrate),
    ]
}

/// The response to an order, and its products with their quantities.
type Placed = (Value, Vec<(usize, u64)>);

/// Takes the steps in a shop whose stocks are old, and compares each response and the pieces with a
/// model.
async fn walk(steps: &[Step]) {
    let functions = Functions::open().await;
    let mut model = [6_u64, 0, 3];
    for (product, pieces) in PRODUCTS.iter().zip(model) {
        functions.sell(product, pieces).await;
    }
    let mut orders: Vec<Option<Placed>> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Order(lines) => {
                let wanted: Vec<_> = lines.iter().map(|(at, quantity)| (PRODUCTS[*at], *quantity)).collect();
                let answer = functions.order(&wanted, &format!("k{number}")).await;
                let fits = lines.iter().all(|(at, quantity)| model[*at] >= *quantity);
                assert_eq!(answer.status, if fits { 201 } else { 409 }, "{step:?}: {}", answer.body);
                if fits {
                    lines.iter().for_each(|(at, quantity)| model[*at] -= quantity);
                    orders.push(Some((answer.body, lines.clone())));
                }
            }
            Step::Cancel(at) => {
                if let Some((order, lines)) = orders.get_mut(*at).and_then(Option::take) {
                    let answer = functions.cancel(&order).await;
                    assert_eq!(answer.status, 200, "{}", answer.body);
                    lines.iter().for_each(|(at, quantity)| model[*at] += quantity);
                }
            }
            Step::Adjust(at, by) => {
                let answer = functions.adjust(PRODUCTS[*at], *by).await;
                let after = model[*at].checked_add_signed(*by);
                assert_eq!(answer.status, if after.is_some() { 200 } else { 409 }, "{step:?}: {}", answer.body);
                model[*at] = after.unwrap_or(model[*at]);
            }
            Step::Set(at, pieces) => {
                assert_eq!(functions.set(PRODUCTS[*at], *pieces).await.status, 200);
                model[*at] = *pieces;
            }
            Step::Read(at) => assert_eq!(functions.numbers(PRODUCTS[*at]).await.body["stock"], json!(model[*at])),
            Step::Migrate(waits) => {
                let items = functions.items();
                let _ = crash_after(*waits, run_migration(&items, migration(), &OPTIONS)).await;
            }
        }
        let expected: BTreeMap<_, _> = PRODUCTS.map(str::to_owned).into_iter().zip(model).collect();
        assert_eq!(pieces(&functions.test).await, expected, "after step {number}: {step:?}");
    }
    assert!(functions.migrate().await.is_complete());
    assert_eq!(functions.migrate().await.migrated, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_shop_that_is_being_migrated_behaves_like_one_that_is_not(steps in proptest::collection::vec(step(), 1..24)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(walk(&steps));
    }
}

/// Orders, cancellations and adjustments run all the time. Meanwhile the command is killed after each
/// of its requests, and runs again.
#[tokio::test(flavor = "multi_thread")]
async fn orders_that_come_in_during_killed_runs_lose_and_double_no_piece() {
    const TEAS: usize = 60;
    const START: u64 = 1_000;
    let functions = Functions::open().await;
    for number in 0..TEAS {
        functions.sell(&format!("p{number}"), START).await;
    }
    let names: Vec<String> = (0..TEAS).map(|number| format!("p{number}")).collect();
    let customer = async |worker: usize| {
        let mut taken: BTreeMap<String, i64> = BTreeMap::new();
        for round in 0..20 {
            let lines: Vec<(&str, u64)> =
                (0..3).map(|line| (names[(worker * 7 + round * 3 + line) % TEAS].as_str(), 1 + line as u64)).collect();
            let placed = functions.order(&lines, &format!("w{worker}r{round}")).await;
            assert_eq!(placed.status, 201, "{}", placed.body);
            if (worker + round).is_multiple_of(3) {
                let cancelled = functions.cancel(&placed.body).await;
                assert_eq!(cancelled.status, 200, "{}", cancelled.body);
            } else {
                lines.iter().for_each(|(id, pieces)| *taken.entry((*id).to_owned()).or_default() += *pieces as i64);
            }
        }
        taken
    };
    let staff = async || {
        let mut taken: BTreeMap<String, i64> = BTreeMap::new();
        for round in 0..40 {
            let (name, by) = (&names[round * 11 % TEAS], if round % 2 == 0 { 5 } else { -7 });
            let adjusted = functions.adjust(name, by).await;
            assert_eq!(adjusted.status, 200, "{}", adjusted.body);
            *taken.entry(name.clone()).or_default() -= by;
        }
        taken
    };
    let operator = async || {
        for waits in 1.. {
            let items = functions.items();
            if let Some(migrated) = crash_after(waits, run_migration(&items, migration(), &OPTIONS)).await {
                assert!(migrated.unwrap().is_complete());
                return waits;
            }
        }
        0
    };
    let customers = join_all((0..4).map(customer));
    let (runs, taken, adjusted) = tokio::join!(operator(), customers, staff());
    assert!(runs > 5, "{runs}");
    let mut expected: BTreeMap<String, i64> = names.iter().map(|name| (name.clone(), START as i64)).collect();
    for (name, pieces) in taken.into_iter().flatten().chain(adjusted) {
        *expected.get_mut(&name).unwrap() -= pieces;
    }
    functions.migrate().await;
    let left: BTreeMap<String, i64> =
        pieces(&functions.test).await.into_iter().map(|(name, pieces)| (name, pieces as i64)).collect();
    assert_eq!(left, expected);
    let old: Vec<_> =
        functions.test.keys("PRODUCT#").await.into_iter().filter(|(_, sk)| sk.ends_with("STOCK")).collect();
    assert_eq!(old, []);
}

async fn product_of(shop: &Shop, product: &str) -> Stored<Product> {
    shop.table.own().get(&product::read_for_update(&id(product)).unwrap()).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_move_causes_no_event_and_no_write_of_the_consumer() {
    let shop = Shop::open().await;
    for (product, pieces) in [("tea", 0), ("milk", 3), ("rye", 50)] {
        shop.table.sell(seed::product(product, seed::usd(100)), pieces).await;
        shop.table.age_stock(product).await;
    }
    let old = all(&shop).await;
    run_migration(&shop.items, migration(), &OPTIONS).await.unwrap();
    let new = all(&shop).await;
    let mut records = records_between(&old, &new);
    let names: BTreeSet<&str> = records.iter().map(|record| record["eventName"].as_str().unwrap()).collect();
    assert_eq!((records.len(), names), (6, BTreeSet::from(["INSERT", "REMOVE"])));
    let (consumer, published) = crate::events::deriving(&shop);
    crate::shop::deliver_to(&consumer, &records).await;
    records.reverse();
    crate::shop::deliver_to(&consumer, &records).await;
    shop.deliver(&records).await;
    assert_eq!(*published.lock().unwrap(), Vec::<String>::new());
    assert!(all(&shop).await == new, "the consumer writes nothing");
}

/// The old item and the new one are in different partitions, so their records may arrive in any order.
#[tokio::test]
async fn the_availability_follows_the_last_change_before_and_after_a_move() {
    for late in [false, true] {
        let shop = Shop::open().await;
        shop.table.sell(seed::product("tea", seed::usd(100)), 1).await;
        let stock = |available: u64, rev: u64| {
            let mut stock = seed::stored(seed::stock(id("tea"), available));
            stock.meta.rev = rev;
            stock
        };
        let (one, none, some) = (stock(1, 1), stock(0, 2), stock(4, 3));
        let [old_one, old_none] = [&one, &none].map(seed::old_form);
        let [none, some] = [none, some].map(|stock| stock.to_item().unwrap());
        let unreadable = set(old_one.clone(), "available", AttributeValue::S("?".to_owned()));
        let derived: Vec<Box<dyn Sink>> = vec![Box::new(Derived::new(Arc::new(shop.table.table()), 2))];
        let consumer = Consumer::new(derived, Box::new(PanickingQuarantine), stream::Settings::default());
        let deliver = async |old: Option<&Item>, new: Option<&Item>| {
            crate::shop::deliver_to(&consumer, &[record(1, old, new)]).await;
            product_of(&shop, "tea").await.copied.in_stock
        };
        shop.table.put_item(old_none.clone()).await;
        shop.table.delete(&one.key().unwrap()).await;
        if !late {
            // The consumer copies the value even if it cannot read the former one.
            assert!(!deliver(Some(&unreadable), Some(&old_none)).await);
        }
        deliver(Some(&old_none), None).await;
        deliver(None, Some(&none)).await;
        shop.table.delete(&key_of(&old_none).unwrap()).await;
        shop.table.put_item(some.clone()).await;
        assert!(deliver(Some(&none), Some(&some)).await);
        assert!(deliver(Some(&old_one), Some(&old_none)).await, "a late record of the old item changes nothing");
    }
}

#[tokio::test]
async fn verify_counts_old_stocks_and_reports_only_one_beside_the_present_stock() {
    let test = TestTable::create().await;
    let items = Items::new(test.client(), test.name().to_owned());
    for (product, pieces) in [("tea", 5), ("milk", 0), ("shirt", 0)] {
        test.sell(seed::product(product, seed::usd(100)), pieces).await;
    }
    test.vary("shirt", seed::product("shirt-m", seed::usd(100)), "M", 2).await;
    for product in ["tea", "milk", "shirt"] {
        test.age_stock(product).await;
    }
    let before = test.items("").await;
    for fix in [false, true] {
        let verified = verify(&items, &options(fix)).await.unwrap();
        assert!(verified.is_clean() && verified.findings.is_empty(), "{verified}");
        assert_eq!(verified.to_migrate, 3);
        assert!(verified.to_string().contains("3 items have an earlier form: see `ops migrate status`"), "{verified}");
    }
    assert_eq!(test.items("").await, before, "a repair writes nothing");

    // An unreadable old stock is a finding, and no repair writes a stock beside it.
    test.spoil("PRODUCT#milk", "PRODUCT#STOCK", "available").await;
    let spoilt = verify(&items, &options(true)).await.unwrap();
    assert_eq!((spoilt.left(), spoilt.found[&Kind::Unreadable].left), (1, 1), "{spoilt}");
    test.set("PRODUCT#milk", "PRODUCT#STOCK", "available", aws_sdk_dynamodb::types::AttributeValue::N("0".into()))
        .await;

    // An import of an old export writes old stocks beside the present ones.
    assert_eq!(run_migration(&items, migration(), &OPTIONS).await.unwrap().migrated, 3);
    let imported = seed::old_form(&seed::stored(seed::stock(id("tea"), 99)));
    test.put_item(imported).await;
    let kept = run_migration(&items, migration(), &OPTIONS).await.unwrap();
    assert_eq!((kept.migrated, kept.kept.values().sum::<u64>()), (0, 1), "{kept}");
    let found = verify(&items, &options(false)).await.unwrap();
    assert_eq!((found.left(), found.found[&Kind::Orphan].left), (1, 1), "{found}");
    let fixed = verify(&items, &options(true)).await.unwrap();
    assert!(fixed.is_clean() && fixed.repaired() == 1 && fixed.to_migrate == 0, "{fixed}");
    assert_eq!(pieces(&test).await["tea"], 5);
}
