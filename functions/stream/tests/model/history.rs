//! Two histories of a small [`World`], and the consumer for both.

use std::sync::Arc;

use key_schema::customer::Customer;
use key_schema::id::Born;
use key_schema::item::{Entity, FromItem as _, Item, Meta, Stored};
use key_schema::membership::Membership;
use key_schema::money::{Currency, Money};
use key_schema::order::{Order, OrderLine, OrderStatus};
use key_schema::product::{CategoryPath, Copied, Product, ReviewStats, Stock};
use key_schema::session::Session;
use stream::Settings;
use stream::audit::Audit;
use stream::bus::Bus;
use stream::consumer::Consumer;
use stream::derived::Derived;
use stream::search::Search;
use stream::transitions::Rules;

use crate::process::Process;
use crate::territory::Sharing;
use crate::world::{SourceWrite, World};

/// A world in its initial state, and the writes of its sources by shard.
pub struct History {
    pub world: World,
    pub writes: Vec<Vec<SourceWrite>>,
    /// The items that several actors touch.
    pub sharing: Sharing,
}

impl History {
    /// Keeps the given number of first writes of each shard.
    pub fn shortened(mut self, writes: [usize; 2]) -> Self {
        for (shard, left) in self.writes.iter_mut().zip(writes) {
            shard.truncate(left);
        }
        self
    }
}

/// Returns the rules that derive the events of a record.
pub fn rules() -> Rules {
    Rules { table: "model".into(), stock_low: 1 }
}

/// Creates the consumer with every sink in one process.
pub fn consumer(process: &Process) -> Consumer {
    let table = Arc::new(process.clone());
    let sinks: Vec<Box<dyn stream::sink::Sink>> = vec![
        Box::new(Search::new(process.clone())),
        Box::new(Bus::new(table.clone(), process.clone(), rules())),
        Box::new(Audit::new(table.clone(), Arc::new(process.clone()), 1)),
        Box::new(Derived::new(table, 1)),
    ];
    Consumer::new(sinks, Box::new(process.clone()), Settings { concurrency: 1, ..Settings::default() })
}

/// Returns a history: an order is placed, paid and cancelled, a product is created and renamed, and
/// a session expires.
pub fn sold_and_cancelled() -> History {
    let writes = vec![
        vec![
            write(&order(OrderStatus::Pending), |_| item(&order(OrderStatus::Pending))),
            write(&order(OrderStatus::Pending), |now| step(now, OrderStatus::Paid)),
            write(&order(OrderStatus::Pending), |now| step(now, OrderStatus::Cancelled)),
        ],
        vec![
            write(&product(), |_| item(&product())),
            write(&product(), |now| changed::<Product>(now, |product| product.name = "Crushed ice".into())),
            write(&session(), |_| None),
        ],
    ];
    // The derivation of sales reads the order's head.
    let sharing = Sharing { items: vec![order(OrderStatus::Pending).data.key().unwrap()], ..Sharing::default() };
    History { world: world(&[item(&line()), item(&session()), item(&customer())]), writes, sharing }
}

/// Returns a history: a product in two categories is sold out, refilled and sold out again. It is
/// also renamed twice and reviewed.
pub fn copied_from_elsewhere() -> History {
    let writes = vec![
        vec![
            write(&stock(), |now| changed::<Stock>(now, |stock| stock.available = 0)),
            write(&stock(), |now| changed::<Stock>(now, |stock| stock.available = 4)),
            write(&stock(), |now| changed::<Stock>(now, |stock| stock.available = 0)),
        ],
        vec![
            write(&product(), |now| changed::<Product>(now, |product| product.name = "Crushed ice".into())),
            write(&stats(), |_| item(&stats())),
            write(&product(), |now| changed::<Product>(now, |product| product.name = "Cubed ice".into())),
        ],
    ];
    // The deliveries of both shards copy stock and rating to the product, so both change it.
    let items = vec![product().data.key().unwrap()];
    let sharing = Sharing { items, across_shards: true, fed: Some(1) };
    History { world: world(&[item(&product()), item(&stock()), item(&membership())]), writes, sharing }
}

fn world(items: &[Option<Item>]) -> World {
    let mut world = World::default();
    world.stream = vec![Vec::new(), Vec::new()];
    items.iter().flatten().for_each(|item| world.table.put(item.clone()));
    world
}

fn write<T: Entity>(of: &Stored<T>, becomes: fn(Option<&Item>) -> Option<Item>) -> SourceWrite {
    SourceWrite { key: of.data.key().unwrap(), becomes }
}

fn item<T: Entity>(stored: &Stored<T>) -> Option<Item> {
    Some(stored.to_item().unwrap())
}

/// Applies a visible change to the current item.
fn changed<T: Entity>(now: Option<&Item>, change: impl FnOnce(&mut T)) -> Option<Item> {
    let mut stored: Stored<T> = Stored::from_item(now.unwrap().clone()).unwrap();
    change(&mut stored.data);
    stored.meta.version += 1;
    stored.meta.rev += 1;
    item(&stored)
}

fn step(now: Option<&Item>, status: OrderStatus) -> Option<Item> {
    changed::<Order>(now, |order| order.status = status)
}

fn stored<T>(data: T) -> Stored<T> {
    let at = "2017-01-01T00:00:00.000Z".parse().unwrap();
    Stored { meta: Meta { version: 1, rev: 1, born: Born::new("b1").unwrap(), created_at: at, updated_at: at }, data }
}

fn order(status: OrderStatus) -> Stored<Order> {
    stored(Order {
        status,
        ..Order::new(
            "o1".parse().unwrap(),
            "c1".parse().unwrap(),
            "2017-01-01T11:53:26.000Z".parse().unwrap(),
            Money::new(258, Currency::USD),
            1,
        )
    })
}

fn line() -> Stored<OrderLine> {
    stored(OrderLine {
        order_id: "o1".parse().unwrap(),
        line: 1,
        product_id: "p1".parse().unwrap(),
        product_born: Born::counter(),
        name: "Ice".into(),
        thumbnail: None,
        quantity: 2,
        unit_price: Money::new(129, Currency::USD),
        total: Money::new(258, Currency::USD),
        discount: 0,
        discounts: Vec::new(),
        tax: 0,
        tax_rate: None,
        expires_at: None,
        stock_shards: None,
        picks: Default::default(),
    })
}

fn product() -> Stored<Product> {
    stored(Product {
        copied: Copied::of_new(4),
        ..Product::new(
            "p1".parse().unwrap(),
            "Ice".into(),
            "Private".into(),
            Money::new(129, Currency::USD),
            category("GROCERY"),
        )
    })
}

fn category(name: &str) -> CategoryPath {
    CategoryPath::new(vec![name.into()]).unwrap()
}

fn stock() -> Stored<Stock> {
    stored(Stock::new("p1".parse().unwrap(), 4))
}

fn stats() -> Stored<ReviewStats> {
    stored(ReviewStats { product_id: "p1".parse().unwrap(), rating_count: 1, rating_sum: 5 })
}

fn membership() -> Stored<Membership> {
    let Product { id, category_path, retired, thumbnail, name, brand, package_size, price, .. } = product().data;
    let path = category("PARTY");
    stored(Membership { id, path, retired, source_rev: 1, thumbnail, category_path, name, brand, package_size, price })
}

/// Returns the session's owner. The audit sink archives no session without an owner.
fn customer() -> Stored<Customer> {
    stored(Customer {
        addresses: [].into(),
        ..Customer::new("c1".parse().unwrap(), "c1@example.com".parse().unwrap(), "c1".parse().unwrap(), "C".into())
    })
}

fn session() -> Stored<Session> {
    stored(Session {
        sign_in: None,
        id: "s1".parse().unwrap(),
        customer_id: "c1".parse().unwrap(),
        expires_at: "2017-01-01T12:00:00.000Z".parse().unwrap(),
        device: "phone".into(),
    })
}
