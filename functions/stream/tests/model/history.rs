//! Two small worlds: what the shop does to them, and the consumer that follows.

use std::sync::Arc;

use key_schema::customer::{Customer, Tier};
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

/// A world at its beginning, and the shop's writes by shard.
pub struct History {
    pub world: World,
    pub writes: Vec<Vec<SourceWrite>>,
    /// What not one alone touches.
    pub sharing: Sharing,
}

impl History {
    /// Less of the shop's writes.
    pub fn shortened(mut self, writes: [usize; 2]) -> Self {
        for (shard, left) in self.writes.iter_mut().zip(writes) {
            shard.truncate(left);
        }
        self
    }
}

/// What decides which events a record is.
pub fn rules() -> Rules {
    Rules { table: "model".into(), stock_low: 1 }
}

/// The consumer with every sink, as one process runs it.
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

/// An order is placed, paid and cancelled; a product is created and changed; a session expires.
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
    // The order's head is read when its sales are derived.
    let sharing = Sharing { items: vec![order(OrderStatus::Pending).data.key().unwrap()], ..Sharing::default() };
    History { world: world(&[item(&line()), item(&session()), item(&customer())]), writes, sharing }
}

/// A stock runs out, comes back and runs out; a product that is listed twice is renamed twice and reviewed.
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
    // Stock and rating are copied to the product, by the deliveries of both shards; and that is a change of the product.
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

/// A change that people see, to the item as it is now.
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
        id: "o1".parse().unwrap(),
        customer_id: "c1".parse().unwrap(),
        status,
        placed_at: "2017-01-01T11:53:26.000Z".parse().unwrap(),
        reference: None,
        store_id: None,
        total: Money::new(258, Currency::USD),
        line_count: 1,
        expires_at: None,
        unfinished: None,
        invoice_number: None,
        paid_from_wallet: false,
        refunded: 0,
    })
}

fn line() -> Stored<OrderLine> {
    stored(OrderLine {
        order_id: "o1".parse().unwrap(),
        line: 1,
        product_id: "p1".parse().unwrap(),
        name: "Ice".into(),
        quantity: 2,
        unit_price: Money::new(129, Currency::USD),
        total: Money::new(258, Currency::USD),
        expires_at: None,
    })
}

fn product() -> Stored<Product> {
    stored(Product {
        id: "p1".parse().unwrap(),
        category_path: category("GROCERY"),
        retired: false,
        copied: Copied::of_new(4),
        name: "Ice".into(),
        brand: "Private".into(),
        package_size: None,
        price: Money::new(129, Currency::USD),
        summary: None,
    })
}

fn category(name: &str) -> CategoryPath {
    CategoryPath::new(vec![name.into()]).unwrap()
}

fn stock() -> Stored<Stock> {
    stored(Stock { product_id: "p1".parse().unwrap(), available: 4, sellable: true, last_adjustment: None })
}

fn stats() -> Stored<ReviewStats> {
    stored(ReviewStats { product_id: "p1".parse().unwrap(), rating_count: 1, rating_sum: 5 })
}

fn membership() -> Stored<Membership> {
    let Product { id, category_path, retired, name, brand, package_size, price, .. } = product().data;
    let path = category("PARTY");
    stored(Membership { id, path, retired, source_rev: 1, category_path, name, brand, package_size, price })
}

/// Whose the session is: of nobody it would not be archived.
fn customer() -> Stored<Customer> {
    stored(Customer {
        id: "c1".parse().unwrap(),
        email: "c1@example.com".parse().unwrap(),
        username: "c1".parse().unwrap(),
        tier: Tier::Bronze,
        place: None,
        name: "C".into(),
        addresses: [].into(),
    })
}

fn session() -> Stored<Session> {
    stored(Session {
        id: "s1".parse().unwrap(),
        customer_id: "c1".parse().unwrap(),
        expires_at: "2017-01-01T12:00:00.000Z".parse().unwrap(),
        device: "phone".into(),
    })
}
