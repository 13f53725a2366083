//! A shop with stock and abandoned orders.

use std::io;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws::s3::Bucket;
use aws::{Credentials, Limits, SharedCredentialsProvider};
use emulators::objects::ObjectServer;
use fixture::TestTable;
use fixture::seed::{self, usd};
use futures::future::join_all;
use janitor::Grace;
use janitor::round::{Janitor, ListError, Round};
use key_schema::customer;
use key_schema::id::{Born, CustomerId, OrderId, ProductId};
use key_schema::idempotency::{self, IdempotencyRecord, Scope, StoredResponse};
use key_schema::instant::Instant;
use key_schema::item::{Entity, Stored};
use key_schema::order::OrderItem;
use key_schema::order::open::{self, OpenOrder};
use key_schema::order::staged::{self, RESERVED_AT_ONCE, UNDONE_AT_ONCE, Unfinished, Work};
use key_schema::order::{
    self, Order, OrderAction, OrderLine, OrderNumber, OrderStatus, OrderStatusEvent, PlacedOrder, Step,
};
use key_schema::product;
use key_schema::request::Guarded;
use storage::media::Media;
use storage::objects::ObjectStore;
use tokio::time;
use workflows::staging::{self, StagingError};

/// The bucket of pictures.
pub const BUCKET: &str = "bodega-media";
/// The bucket of expired items.
pub const ARCHIVE: &str = "bodega-archive";
/// The time at which all orders began.
const BEGUN: &str = "2026-11-20T12:00:00.000Z";
/// The stock of every product.
const STOCK: u64 = 10;
/// The number of pieces in every line.
const QUANTITY: u64 = 3;

pub struct Shop {
    test: TestTable,
    pub objects: ObjectServer,
    products: usize,
}

impl Deref for Shop {
    type Target = TestTable;

    fn deref(&self) -> &Self::Target {
        &self.test
    }
}

/// An order before it is placed, with its claims.
#[derive(Clone)]
pub struct Plan {
    pub order: Stored<Order>,
    pub lines: Vec<Stored<OrderLine>>,
    pub scope: Scope,
    /// The counts of the promotions that the order uses.
    pub uses: Vec<(OrderAction, Guarded)>,
}

impl Shop {
    /// Opens a shop with a customer and this many products.
    pub async fn open(products: usize) -> Self {
        // Without a subscriber, a log line that another test reaches first stays disabled.
        let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry());
        let test = TestTable::create().await;
        let objects = ObjectServer::start(None, &[BUCKET.to_owned(), ARCHIVE.to_owned()]).await.unwrap();
        let shop = Self { test, objects, products };
        shop.sign_up().await;
        for line in 1..=products {
            shop.stock_up(&product(line), STOCK).await;
        }
        shop
    }

    /// Signs up ann. Her profile was created when the orders began.
    pub async fn sign_up(&self) {
        self.transact(&customer::create(&stored(seed::customer("ann"))).unwrap()).await;
    }

    /// Writes an item without any check. The item's creation is the time at which the orders began.
    pub async fn seed<T: Entity>(&self, data: T) {
        self.put(&stored(data)).await;
    }

    pub async fn stock_up(&self, product_id: &ProductId, available: u64) {
        self.seed(seed::stock(product_id.clone(), available)).await;
    }

    /// Removes the item of a product's stock. No function ever does that.
    pub async fn lose_stock(&self, product_id: &ProductId) {
        self.delete(product::stock(product_id).unwrap().key()).await;
    }

    /// Plans an order with this many lines. Line n is for product n.
    pub fn plan(&self, number: u8, lines: usize) -> Plan {
        let id = OrderId::generate(begun(), [number; 10]);
        let scope = Scope { caller: "ann".to_owned(), key: format!("key-{number}") };
        let unfinished = Unfinished { since: begun(), work: Work::Placing { key: Some(scope.clone()), lines: 0 } };
        let order = Order {
            status: OrderStatus::Placing,
            reference: Some(format!("reference-{number}").parse().unwrap()),
            unfinished: Some(unfinished),
            ..Order::new(id.clone(), customer(), begun(), usd(100), lines as u64)
        };
        let born = Born::new(format!("born-{number}")).unwrap();
        let line = |line: usize| {
            let data = OrderLine { quantity: QUANTITY, ..seed::line(&id, line as u64, product(line)) };
            Stored::new(data, born.clone(), begun())
        };
        let lines = (1..=lines).map(line).collect();
        Plan { order: Stored::new(order, born, begun()), lines, scope, uses: Vec::new() }
    }

    /// Places an order of ann that must be paid by this instant.
    pub async fn pending(&self, number: u8, lines: usize, lapses_at: Instant) -> Plan {
        let mut plan = self.plan(number, lines);
        (plan.order.data.by_customer, plan.order.data.lapses_at) = (true, Some(lapses_at));
        self.place(&plan).await.unwrap();
        plan
    }

    /// Returns the number of ann's open orders.
    pub async fn open_orders(&self) -> usize {
        let open = self.own().get(&open::get(&customer()).unwrap()).await.unwrap();
        open.map_or(0, |open| open.entries.len())
    }

    /// Returns the number of unpaid orders that a janitor will cancel.
    pub async fn lapsing(&self) -> usize {
        self.own().query(&open::lapsing(Instant::MAX).unwrap()).await.unwrap().items.len()
    }

    /// Returns the last step of an order.
    pub async fn last_step(&self, id: &OrderId) -> OrderStatusEvent {
        let items = self.own().query(&order::read_for_update(id).unwrap()).await.unwrap().items;
        let steps = items.into_iter().filter_map(|item| match item {
            OrderItem::OrderStatusEvent(step) => Some(step.data),
            _ => None,
        });
        steps.max_by_key(|step| step.at).unwrap()
    }

    /// Begins an order, reserves the stock of its first lines in this many transactions, and
    /// returns its head.
    pub async fn leave(&self, plan: &Plan, reserved: usize) -> Stored<Order> {
        let claim = idempotency::claim(&record(plan, BEGUN), begun()).unwrap();
        let with = [vec![(OrderAction::Idempotency, claim)], plan.uses.clone()].concat();
        self.transact(&staged::begin(&plan.order, &with).unwrap()).await;
        let mut head = plan.order.clone();
        for lines in plan.lines.chunks(RESERVED_AT_ONCE).take(reserved) {
            self.transact(&staged::reserve(&head, lines).unwrap()).await;
            head = staged::counted(&head, lines.len(), true);
        }
        head
    }

    /// Begins an order, reserves the stock of all its lines, and undoes the first lines in one
    /// transaction.
    pub async fn leave_half_undone(&self, plan: &Plan) {
        let head = self.leave(plan, usize::MAX).await;
        self.transact(&staged::undo(&head, &plan.lines[..UNDONE_AT_ONCE], begun()).unwrap()).await;
    }

    /// Places an order like a client.
    pub async fn place(&self, plan: &Plan) -> Result<(), StagingError> {
        let mut with = vec![(OrderAction::Idempotency, idempotency::claim(&record(plan, BEGUN), begun()).unwrap())];
        let known = self.own().get(&open::get(&customer()).unwrap()).await.unwrap();
        let entry = OpenOrder { most: QUANTITY, lines: plan.lines.len() as u64 };
        if plan.order.by_customer {
            with.push((OrderAction::Open, open::enter(&plan.order, entry, known.as_ref()).unwrap()));
        }
        staging::place(self.own(), PlacedOrder::new(plan.order.clone(), plan.lines.clone(), "ann"), &with).await
    }

    /// Places and cancels an order, and then returns its stock in only this many further
    /// transactions.
    pub async fn leave_cancelled(&self, plan: &Plan, given_back: usize) {
        self.place(plan).await.unwrap();
        let head = self.head(&plan.order.id).await.unwrap();
        let step = Step::new(&head, &plan.lines, OrderStatus::Cancelled, begun(), "ann");
        self.transact(&order::transition(step).unwrap()).await;
        for _ in 0..given_back {
            let head = self.head(&plan.order.id).await.unwrap();
            let transaction = staged::give_back(&head, &plan.lines, begun()).unwrap().unwrap();
            self.transact(&transaction).await;
        }
    }

    pub async fn head(&self, id: &OrderId) -> Option<Stored<Order>> {
        self.own().get(&order::head(id).unwrap()).await.unwrap()
    }

    /// Returns the number of items in the order's partition.
    pub async fn items(&self, id: &OrderId) -> usize {
        self.own().query(&order::read_for_update(id).unwrap()).await.unwrap().items.len()
    }

    pub async fn record(&self, scope: &Scope) -> Option<IdempotencyRecord> {
        self.own().get(&idempotency::get(scope).unwrap()).await.unwrap().map(|record| record.data)
    }

    /// Asserts that the orders have no items left and that every product has its full stock.
    pub async fn assert_untouched(&self, plans: &[Plan]) {
        for plan in plans {
            assert_eq!(self.items(&plan.order.id).await, 0);
            assert_eq!(self.record(&plan.scope).await, None);
            let number = order::numbered(OrderNumber::of(&plan.order.id)).unwrap();
            assert!(self.own().get(&number).await.unwrap().is_none());
        }
        self.assert_full().await;
    }

    /// Asserts that every product has its full stock.
    pub async fn assert_full(&self) {
        for (line, stock) in (1..).zip(self.stocks().await) {
            assert_eq!(stock, STOCK, "{}", product(line));
        }
    }

    pub async fn stocks(&self) -> Vec<u64> {
        let stock = async |line: usize| {
            let stock = self.own().get(&product::stock(&product(line)).unwrap()).await.unwrap();
            stock.map_or(u64::MAX, |stock| stock.available)
        };
        join_all((1..=self.products).map(stock)).await
    }

    /// Returns the number of all unfinished orders.
    pub async fn unfinished(&self) -> usize {
        self.own().query(&staged::unfinished(Instant::MAX).unwrap()).await.unwrap().items.len()
    }

    pub fn media(&self) -> Media {
        Media::new(self.bucket(BUCKET))
    }

    fn archive(&self) -> ObjectStore {
        let limits = Limits { attempts: 2, backoff: Duration::from_millis(1), ..Limits::default() };
        ObjectStore::new(self.bucket(ARCHIVE).with_limits(limits))
    }

    fn bucket(&self, name: &str) -> Bucket {
        let credentials = SharedCredentialsProvider::new(Credentials::new("local", "local", None, None, "test"));
        Bucket::new(name, "us-east-1", Some(self.objects.url()), credentials).unwrap()
    }

    pub fn janitor(&self) -> Janitor {
        Janitor::new(self.test.table(), self.media(), self.archive())
    }

    /// Runs one round without a grace period.
    pub async fn tidy(&self) -> Round {
        let (round, listed) = self.try_tidy(Duration::from_secs(600)).await;
        listed.unwrap();
        round
    }

    /// Runs one round without a grace period and with this much time.
    pub async fn try_tidy(&self, time: Duration) -> (Round, Result<(), ListError>) {
        self.janitor().run_round(Instant::now(), Grace::seconds(0), time::Instant::now() + time).await
    }
}

/// Collects log lines as JSON while it exists. It works only for tests on one thread.
pub struct Log {
    lines: Arc<Mutex<Vec<u8>>>,
    _default: tracing::subscriber::DefaultGuard,
}

struct Writer(Arc<Mutex<Vec<u8>>>);

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    pub fn open() -> Self {
        let lines = Arc::<Mutex<Vec<u8>>>::default();
        let to = Arc::clone(&lines);
        let subscriber = tracing_subscriber::fmt().json().flatten_event(true);
        let subscriber = subscriber.with_writer(move || Writer(Arc::clone(&to))).finish();
        Self { lines, _default: tracing::subscriber::set_default(subscriber) }
    }

    /// Returns message, order and reason of each line about an order.
    pub fn orders(&self) -> Vec<[String; 3]> {
        let text = String::from_utf8(self.lines.lock().unwrap().clone()).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let part = |line: &serde_json::Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
        lines
            .filter(|line| line["order"].is_string())
            .map(|line| ["message", "order", "reason"].map(|name| part(&line, name)))
            .collect()
    }
}

/// Returns the record of a plan's idempotency key, valid for a day from `at`.
pub fn record(plan: &Plan, at: &str) -> Stored<IdempotencyRecord> {
    let at: Instant = at.parse().unwrap();
    let answer = StoredResponse::Order(plan.order.id.clone());
    let record = seed::idempotency_record(plan.scope.clone(), answer, at);
    Stored::new(record, plan.order.meta.born.clone(), at)
}

/// Returns a round with these results.
pub fn done(found: u32, undone: u32, finished: u32, failed: u32) -> Round {
    Round { found, undone, finished, failed, ..Round::default() }
}

/// Returns the round without the values that depend on the clock.
pub fn counts(round: Round) -> Round {
    Round { oldest: Duration::ZERO, ..round }
}

pub fn begun() -> Instant {
    BEGUN.parse().unwrap()
}

pub fn product(line: usize) -> ProductId {
    format!("p{line}").parse().unwrap()
}

/// Returns an item that was created when the orders began.
fn stored<T: Entity>(data: T) -> Stored<T> {
    Stored::new(data, Born::new("b1").unwrap(), begun())
}

fn customer() -> CustomerId {
    "ann".parse().unwrap()
}
