//! A sale: a constant rate of orders, half of them of one product, and the consumer of the stream.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use emulators::table::{Model, Throughput};
use key_schema::id::ProductId;
use serde::Serialize;
use tokio::task::LocalSet;
use tokio::time::Instant;

use super::simulation::{Buyer, Outcome, Simulation, simulated};
use super::stream::{Uncounted, consume};
use crate::BenchError;
use crate::examples::product_id;
use crate::report::{Table, millis, quantile};

/// The products besides the hot one. Each has a stock in one shard.
const COLD: u64 = 1_000;
/// The pieces of each product, more than all orders need.
const PIECES: u64 = 1_000_000_000;
/// The customers for whom the orders are placed.
const CUSTOMERS: u64 = 2_000;
/// The longest wait for the consumer after the last order.
const PATIENCE: Duration = Duration::from_secs(600);
/// The distance between two points of the plot.
const STEP: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
pub(super) struct Sale {
    /// Orders a second.
    pub(super) rate: u32,
    pub(super) seconds: u64,
    /// Shards of the hot product's stock.
    pub(super) shards: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Figures {
    pub(super) rate: u32,
    pub(super) seconds: u64,
    pub(super) shards: u32,
    pub(super) orders: u64,
    /// Until the last order was placed.
    pub(super) orders_per_second: f64,
    pub(super) p50_ms: f64,
    pub(super) p95_ms: f64,
    pub(super) p99_ms: f64,
    /// Without the conflicts of the consumer.
    pub(super) conflicts_per_order: f64,
    pub(super) consumer_conflicts_per_order: f64,
    pub(super) throttles_per_order: f64,
    pub(super) unavailable: u64,
    /// With the writes of the consumer.
    pub(super) write_units_per_order: f64,
    pub(super) most_clients: usize,
    pub(super) lag_p50_ms: f64,
    pub(super) lag_p99_ms: f64,
    /// The age of the oldest uncounted order when the last order was placed.
    pub(super) lag_at_end_s: f64,
    /// The time from the last order until the consumer had counted every order, or nothing if that
    /// took longer than ten minutes.
    pub(super) caught_up_s: Option<f64>,
    pub(super) uncounted: usize,
    pub(super) points: Vec<Point>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Point {
    pub(super) second: f64,
    /// Orders a second since the previous point.
    pub(super) orders_per_second: f64,
    pub(super) lag_s: f64,
}

/// What the clients of the sale share.
#[derive(Default)]
struct Clients {
    idle: RefCell<Vec<Buyer>>,
    created: Cell<u64>,
    under_way: Cell<usize>,
    most: Cell<usize>,
    hot: Cell<u64>,
    cold: Cell<u64>,
    retries: Cell<u64>,
    times: RefCell<Vec<Duration>>,
    failed: RefCell<Option<BenchError>>,
}

pub(super) fn measure(sale: Sale, model: Model) -> Result<Figures, BenchError> {
    simulated(model.seed, async move || LocalSet::new().run_until(run(sale, model)).await)
}

async fn run(sale: Sale, model: Model) -> Result<Figures, BenchError> {
    let shop = Arc::new(Simulation::open(model, true)?);
    let hot = ProductId::new("hot")?;
    shop.sell(&hot, PIECES, sale.shards, false).await?;
    let cold = (0..COLD).map(product_id).collect::<Result<Vec<_>, _>>()?;
    for id in &cold {
        shop.sell(id, PIECES, 1, false).await?;
    }
    let uncounted = Arc::<Mutex<Uncounted>>::default();
    let partitions = model.warm.writes.div_ceil(Throughput::OF_PARTITION.writes);
    let poller = consume(&shop, partitions, &uncounted).await?;
    let (before, begun, clients) = (shop.counts(), Instant::now(), Rc::new(Clients::default()));
    let products = Rc::new((hot, cold));
    let (mut next, mut points, mut counted) = (begun, Vec::new(), 0);
    let end = begun + Duration::from_secs(sale.seconds);
    while next < end {
        tokio::time::sleep_until(next).await;
        begin(&shop, &clients, &products, &uncounted)?;
        next += Duration::from_secs_f64(-(1.0 - fastrand::f64()).ln() / f64::from(sale.rate));
        point(begun, &clients, &uncounted, &mut points, &mut counted);
    }
    while clients.under_way.get() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        point(begun, &clients, &uncounted, &mut points, &mut counted);
    }
    if let Some(error) = clients.failed.take() {
        return Err(error);
    }
    let (took, lag_at_end) = (begun.elapsed(), lock(&uncounted).lag());
    let ended = Instant::now();
    while lock(&uncounted).len() > 0 && ended.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(100)).await;
        point(begun, &clients, &uncounted, &mut points, &mut counted);
    }
    let caught_up = (lock(&uncounted).len() == 0).then(|| ended.elapsed().as_secs_f64());
    drop(poller);
    let after = shop.counts();
    let left = shop.pieces(&products.0).await?;
    let mut pieces = 0;
    for id in &products.1 {
        pieces += PIECES - shop.pieces(id).await?;
    }
    if left != PIECES - clients.hot.get() || pieces != clients.cold.get() {
        return Err(wrong!("the stocks are not exact: {} and {pieces} pieces are gone", PIECES - left));
    }
    let times = clients.times.take();
    let orders = times.len() as f64;
    let at = |thousandths| millis(quantile(&times, thousandths));
    let lags = std::mem::take(&mut lock(&uncounted).lags);
    let uncounted = lock(&uncounted).len();
    Ok(Figures {
        rate: sale.rate,
        seconds: sale.seconds,
        shards: sale.shards,
        orders: times.len() as u64,
        orders_per_second: orders / took.as_secs_f64(),
        p50_ms: at(500),
        p95_ms: at(950),
        p99_ms: at(990),
        conflicts_per_order: shop.conflicts() as f64 / orders,
        consumer_conflicts_per_order: (after.conflicts - before.conflicts - shop.conflicts()) as f64 / orders,
        throttles_per_order: (after.throttles - before.throttles) as f64 / orders,
        unavailable: clients.retries.get(),
        write_units_per_order: (after.write_units - before.write_units) / orders,
        most_clients: clients.most.get(),
        lag_p50_ms: millis(quantile(&lags, 500)),
        lag_p99_ms: millis(quantile(&lags, 990)),
        lag_at_end_s: lag_at_end.as_secs_f64(),
        caught_up_s: caught_up,
        uncounted,
        points,
    })
}

/// Begins an order with an idle client, or with a new one.
fn begin(
    shop: &Arc<Simulation>,
    clients: &Rc<Clients>,
    products: &Rc<(ProductId, Vec<ProductId>)>,
    uncounted: &Arc<Mutex<Uncounted>>,
) -> Result<(), BenchError> {
    let idle = clients.idle.borrow_mut().pop();
    let buyer = match idle {
        Some(buyer) => buyer,
        None => shop.buyer(clients.created.replace(clients.created.get() + 1) % CUSTOMERS)?,
    };
    let (shop, clients, products) = (Arc::clone(shop), Rc::clone(clients), Rc::clone(products));
    let uncounted = Arc::clone(uncounted);
    clients.under_way.set(clients.under_way.get() + 1);
    clients.most.set(clients.most.get().max(clients.under_way.get()));
    let is_hot = fastrand::bool();
    let lines = fastrand::usize(1..=3);
    drop(tokio::task::spawn_local(async move {
        let chosen: Vec<&ProductId> = if is_hot {
            vec![&products.0]
        } else {
            let first = fastrand::usize(..products.1.len());
            products.1.iter().cycle().skip(first).take(lines).collect()
        };
        let began = Instant::now();
        match buyer.order(&shop, &chosen).await {
            Ok(Outcome::Placed { id, retries }) => {
                lock(&uncounted).place(id, Instant::now());
                clients.times.borrow_mut().push(began.elapsed());
                clients.retries.set(clients.retries.get() + retries);
                let pieces = if is_hot { &clients.hot } else { &clients.cold };
                pieces.set(pieces.get() + chosen.len() as u64);
            }
            Ok(Outcome::SoldOut) => drop(clients.failed.replace(Some(wrong!("a product is sold out")))),
            Err(error) => drop(clients.failed.replace(Some(error))),
        }
        clients.under_way.set(clients.under_way.get() - 1);
        clients.idle.borrow_mut().push(buyer);
    }));
    Ok(())
}

/// Adds a point of the plot, if it is due.
fn point(
    begun: Instant,
    clients: &Clients,
    uncounted: &Mutex<Uncounted>,
    points: &mut Vec<Point>,
    counted: &mut usize,
) {
    let last = points.last().map_or(0.0, |point: &Point| point.second);
    let second = begun.elapsed().as_secs_f64();
    if second < last + STEP.as_secs_f64() {
        return;
    }
    let placed = clients.times.borrow().len();
    let orders_per_second = (placed - std::mem::replace(counted, placed)) as f64 / (second - last);
    points.push(Point { second, orders_per_second, lag_s: lock(uncounted).lag().as_secs_f64() });
}

fn lock(uncounted: &Mutex<Uncounted>) -> MutexGuard<'_, Uncounted> {
    uncounted.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn table(figures: &Figures) -> Table {
    let mut table = Table::new("figure | value");
    let caught_up = match figures.caught_up_s {
        Some(seconds) => format!("{seconds:.1} s"),
        None => format!("more than 600 s, {} orders were left", figures.uncounted),
    };
    let Figures { p50_ms, p95_ms, p99_ms, conflicts_per_order, consumer_conflicts_per_order, .. } = figures;
    for (name, value) in [
        ("orders", format!("{} in {} s", figures.orders, figures.seconds)),
        ("orders a second, until the last one was placed", format!("{:.0}", figures.orders_per_second)),
        ("p50, p95 and p99 of an order", format!("{p50_ms:.0}, {p95_ms:.0} and {p99_ms:.0} ms")),
        ("most clients at the same time", figures.most_clients.to_string()),
        ("responses with status 503, each retried", figures.unavailable.to_string()),
        ("conflicts of the orders, per order", format!("{conflicts_per_order:.2}")),
        ("conflicts of the consumer, per order", format!("{consumer_conflicts_per_order:.2}")),
        ("throttled requests, per order", format!("{:.2}", figures.throttles_per_order)),
        ("write units of order and consumer, per order", format!("{:.1}", figures.write_units_per_order)),
        (
            "lag of an order, p50 and p99",
            format!("{:.1} and {:.1} s", figures.lag_p50_ms / 1e3, figures.lag_p99_ms / 1e3),
        ),
        ("lag when the last order was placed", format!("{:.1} s", figures.lag_at_end_s)),
        ("until every order was counted", caught_up),
    ] {
        table.row(format_args!("{name} | {value}"));
    }
    table
}
