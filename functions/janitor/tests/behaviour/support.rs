//! A shop with stock and abandoned orders.

use std::time::Duration;

use aws::s3::Bucket;
use aws::{Credentials, Limits, SharedCredentialsProvider};
use emulators::objects::ObjectServer;
use emulators::table::{Fault, FaultKind, Faults};
use fixture::TestTable;
use futures::future::join_all;
use janitor::Grace;
use janitor::round::{Janitor, ListError, Round};
use key_schema::customer::{self, Customer};
use key_schema::entity::AnyEntity;
use key_schema::id::{Born, CustomerId, OrderId, ProductId};
use key_schema::idempotency::{self, IdempotencyRecord, Scope, StoredResponse};
use key_schema::instant::Instant;
use key_schema::item::{Entity, Stored};
use key_schema::money::{Currency, Money};
use key_schema::order::open::{self, OpenOrder};
use key_schema::order::staged::{self, RESERVED_AT_ONCE, UNDONE_AT_ONCE, Unfinished, Work};
use key_schema::order::{self, Order, OrderLine, OrderStatus, OrderStatusEvent, Step};
use key_schema::product::{self, Stock};
use media::Media;
use objects::ObjectStore;
use staging::{Placing, StagingError};
use table::Table;
use tokio::time;

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
    pub table: Table,
    products: usize,
}

/// An order before it is placed, with its claims.
#[derive(Clone)]
pub struct Plan {
    pub order: Stored<Order>,
    pub lines: Vec<Stored<OrderLine>>,
    pub scope: Scope,
}

impl Shop {
    /// Opens a shop with a customer and this many products.
    pub async fn open(products: usize) -> Self {
        let test = TestTable::create().await;
        let objects = ObjectServer::start(None, &[BUCKET.to_owned(), ARCHIVE.to_owned()]).await.unwrap();
        let shop = Self { table: test.table(), test, objects, products };
        shop.sign_up().await;
        for line in 1..=products {
            shop.stock_up(&product(line), STOCK).await;
        }
        shop
    }

    /// Makes ann a customer.
    pub async fn sign_up(&self) {
        let customer =
            Customer::new(customer(), "ann@example.com".parse().unwrap(), "ann".parse().unwrap(), "Ann".to_owned());
        let customer = Stored::new(customer, Born::new("b1").unwrap(), begun());
        self.table.transact(&customer::create(&customer).unwrap()).await.unwrap().unwrap();
    }

    /// Puts an item unchanged.
    pub async fn put<T: Entity>(&self, data: T) {
        self.put_stored(&Stored::new(data, Born::new("b1").unwrap(), begun())).await;
    }

    /// Puts an item with its metadata unchanged.
    pub async fn put_stored<T: Entity>(&self, stored: &Stored<T>) {
        let item = stored.to_item().unwrap();
        let put = self.test.client().put_item().table_name(self.test.name());
        put.set_item(Some(item.into())).send().await.unwrap();
    }

    pub async fn stock_up(&self, product_id: &ProductId, available: u64) {
        self.put(Stock {
            product_id: product_id.clone(),
            available,
            sellable: true,
            product_born: None,
            last_adjustment: None,
        })
        .await;
    }

    /// Removes the item of a product's stock. The shop itself never does that.
    pub async fn lose_stock(&self, product_id: &ProductId) {
        let get = product::stock(product_id).unwrap();
        let key = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
        let delete = self.test.client().delete_item().table_name(self.test.name());
        let delete = delete.key("PK", key(get.key().pk.as_str())).key("SK", key(get.key().sk.as_str()));
        delete.send().await.unwrap();
    }

    /// Plans an order with this many lines. Line n orders product n.
    pub fn plan(&self, number: u8, lines: usize) -> Plan {
        let id = OrderId::generate(begun(), [number; 10]);
        let scope = Scope { caller: "ann".to_owned(), key: format!("key-{number}") };
        let unfinished = Unfinished { since: begun(), work: Work::Placing { key: Some(scope.clone()), lines: 0 } };
        let order = Order {
            status: OrderStatus::Placing,
            reference: Some(format!("reference-{number}").parse().unwrap()),
            unfinished: Some(unfinished),
            ..Order::new(id.clone(), customer(), begun(), Money::new(100, Currency::USD), lines as u64)
        };
        let born = Born::new(format!("born-{number}")).unwrap();
        let line = |line: usize| OrderLine {
            order_id: id.clone(),
            line: line as u64,
            product_id: product(line),
            product_born: None,
            name: "Tea".to_owned(),
            quantity: QUANTITY,
            unit_price: Money::new(1, Currency::USD),
            total: Money::new(3, Currency::USD),
            expires_at: None,
        };
        let lines = (1..=lines).map(|number| Stored::new(line(number), born.clone(), begun())).collect();
        Plan { order: Stored::new(order, born, begun()), lines, scope }
    }

    /// Places an order of ann that lapses at this instant.
    pub async fn pending(&self, number: u8, lines: usize, lapses_at: Instant) -> Plan {
        let mut plan = self.plan(number, lines);
        (plan.order.data.by_customer, plan.order.data.lapses_at) = (true, Some(lapses_at));
        self.place(&plan).await.unwrap();
        plan
    }

    /// Returns the number of ann's open orders.
    pub async fn open_orders(&self) -> usize {
        let open = self.table.get(&open::get(&customer()).unwrap()).await.unwrap();
        open.map_or(0, |open| open.entries.len())
    }

    /// Returns the number of orders that lapse at some time.
    pub async fn lapsing(&self) -> usize {
        self.table.query(&open::lapsing(Instant::MAX).unwrap()).await.unwrap().items.len()
    }

    /// Returns the last step of an order.
    pub async fn last_step(&self, id: &OrderId) -> OrderStatusEvent {
        let items = self.table.query(&order::read_for_update(id).unwrap()).await.unwrap().items;
        let steps = items.into_iter().filter_map(|item| match item {
            AnyEntity::OrderStatusEvent(step) => Some(step.data),
            _ => None,
        });
        steps.max_by_key(|step| step.at).unwrap()
    }

    /// Begins an order, reserves this many portions of its lines and returns its head.
    pub async fn leave(&self, plan: &Plan, reserved: usize) -> Stored<Order> {
        let claim = idempotency::claim(&record(plan, BEGUN), begun()).unwrap();
        self.table.transact(&staged::begin(&plan.order, Some(claim), None).unwrap()).await.unwrap().unwrap();
        let mut head = plan.order.clone();
        for lines in plan.lines.chunks(RESERVED_AT_ONCE).take(reserved) {
            self.table.transact(&staged::reserve(&head, lines).unwrap()).await.unwrap().unwrap();
            head = staged::counted(&head, lines.len(), true);
        }
        head
    }

    /// Begins an order, reserves all of it and undoes the first portion.
    pub async fn leave_half_undone(&self, plan: &Plan) {
        let head = self.leave(plan, usize::MAX).await;
        let lines: Vec<&Stored<OrderLine>> = plan.lines.iter().take(UNDONE_AT_ONCE).collect();
        self.table.transact(&staged::undo(&head, &lines, begun()).unwrap()).await.unwrap().unwrap();
    }

    /// Places an order like a client.
    pub async fn place(&self, plan: &Plan) -> Result<(), StagingError> {
        let claim = Some(idempotency::claim(&record(plan, BEGUN), begun()).unwrap());
        let known = self.table.get(&open::get(&customer()).unwrap()).await.unwrap();
        let entry = OpenOrder { most: QUANTITY, lines: plan.lines.len() as u64 };
        let open = plan.order.by_customer.then(|| open::enter(&plan.order, entry, known.as_ref()).unwrap());
        let placing = Placing { order: &plan.order, lines: &plan.lines, by: "ann", claim, open, cart: None };
        staging::place(&self.table, placing).await
    }

    /// Places and cancels an order. It is abandoned after this many transactions have given back
    /// stock that the cancellation itself could not.
    pub async fn leave_cancelled(&self, plan: &Plan, given_back: usize) {
        self.place(plan).await.unwrap();
        let head = self.head(&plan.order.id).await.unwrap();
        let lines: Vec<OrderLine> = plan.lines.iter().map(|line| line.data.clone()).collect();
        let step = Step {
            order: &head,
            lines: &lines,
            to: OrderStatus::Cancelled,
            at: begun(),
            by: "ann",
            note: None,
            carrier: None,
            tracking: None,
            money: None,
        };
        self.table.transact(&order::advance(step).unwrap()).await.unwrap().unwrap();
        for _ in 0..given_back {
            let head = self.head(&plan.order.id).await.unwrap();
            let transaction = staged::give_back(&head, &lines, begun()).unwrap().unwrap();
            self.table.transact(&transaction).await.unwrap().unwrap();
        }
    }

    pub async fn head(&self, id: &OrderId) -> Option<Stored<Order>> {
        self.table.get(&order::head(id).unwrap()).await.unwrap()
    }

    /// Returns the number of items in the order's partition.
    pub async fn items(&self, id: &OrderId) -> usize {
        self.table.query(&order::read_for_update(id).unwrap()).await.unwrap().items.len()
    }

    pub async fn record(&self, scope: &Scope) -> Option<IdempotencyRecord> {
        self.table.get(&idempotency::get(scope).unwrap()).await.unwrap().map(|record| record.data)
    }

    /// Asserts that the orders have no items left and everything is in stock.
    pub async fn assert_untouched(&self, plans: &[Plan]) {
        for plan in plans {
            assert_eq!(self.items(&plan.order.id).await, 0);
            assert_eq!(self.record(&plan.scope).await, None);
        }
        self.assert_full().await;
    }

    /// Asserts that everything is in stock.
    pub async fn assert_full(&self) {
        for (line, stock) in (1..).zip(self.stocks().await) {
            assert_eq!(stock, STOCK, "{}", product(line));
        }
    }

    pub async fn stocks(&self) -> Vec<u64> {
        let stock = async |line: usize| {
            let stock = self.table.get(&product::stock(&product(line)).unwrap()).await.unwrap();
            stock.map_or(u64::MAX, |stock| stock.available)
        };
        join_all((1..=self.products).map(stock)).await
    }

    /// Returns the number of all unfinished orders.
    pub async fn unfinished(&self) -> usize {
        self.table.query(&staged::unfinished(Instant::MAX).unwrap()).await.unwrap().items.len()
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

    /// Runs one round without grace.
    pub async fn tidy(&self) -> Round {
        let (round, listed) = self.try_tidy(Duration::from_secs(600)).await;
        listed.unwrap();
        round
    }

    /// Runs one round without grace and with this much time.
    pub async fn try_tidy(&self, time: Duration) -> (Round, Result<(), ListError>) {
        self.janitor().run_round(Instant::now(), Grace::seconds(0), time::Instant::now() + time).await
    }

    pub fn faults(&self) -> &Faults {
        self.test.faults()
    }

    pub fn fault(&self, kind: FaultKind) {
        self.faults().add(Fault { kind, rate: 1.0, count: None, seed: 1 }).unwrap();
    }
}

/// Returns the record of a plan's idempotency key, valid for a day from `at`.
pub fn record(plan: &Plan, at: &str) -> Stored<IdempotencyRecord> {
    let at: Instant = at.parse().unwrap();
    let record = IdempotencyRecord {
        scope: plan.scope.clone(),
        request_hash: "hash".to_owned(),
        answer: StoredResponse::Order(plan.order.id.clone()),
        expires_at: at.plus_seconds(idempotency::LIFETIME_SECONDS),
    };
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

fn customer() -> CustomerId {
    "ann".parse().unwrap()
}
