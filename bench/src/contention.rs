//! `bench contention`: many clients order the same product at once, in a table whose transactions
//! take as long as DynamoDB's.
//!
//! A transaction in progress blocks all other transactions on its items. So a product accepts at
//! most one order per duration of a transaction. The measurement compares the real rate with this
//! maximum, and counts the responses that clients receive. Every order must be placed exactly once.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _};
use local::{Options, System};
use reqwest::StatusCode;
use serde::Serialize;
use serde_json::json;

use crate::BenchError;
use crate::latency::shop::Shop;
use crate::latency::{Plan, Server};
use crate::report::{Table, quantile, write_json};

/// Each order has one of these products and the product that all clients order.
const COLD: usize = 50;
/// If this many requests do not place the order, the measurement fails.
const TRIES: u64 = 200;
/// The wait before a retry, if the response does not specify one.
const PAUSE: Duration = Duration::from_millis(500);

/// The number of orders and of clients.
#[derive(Debug, clap::Args)]
pub struct ContentionArgs {
    /// Orders for each number of clients.
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    orders: u64,
    /// Numbers of concurrent clients.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1, 4, 16, 32])]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    clients: Vec<u16>,
    /// Duration of a transaction, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    transaction_ms: u64,
    /// Write the figures to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Figures {
    clients: u16,
    orders: u64,
    orders_per_second: f64,
    /// The rate of orders, as a share of the maximum rate that one item allows.
    share_of_most: f64,
    /// Requests to the table that conflicted with a transaction in progress.
    conflicts_per_order: f64,
    /// Responses with status 503. The client retried after each.
    unavailable: u64,
    median_ms: u128,
    p95_ms: u128,
    slowest_ms: u128,
}

pub async fn run(args: ContentionArgs) -> Result<(), BenchError> {
    let mut options = Options::from_environment(std::env::current_exe()?);
    options.port = 0;
    options.transaction_time = Some(Duration::from_millis(args.transaction_ms));
    // As in Lambda, each concurrent client can have its own environment.
    options.environments = usize::from(args.clients.iter().copied().max().unwrap_or(1));
    let system = System::start(options).await?;
    let measured = measure(&system, &args).await;
    system.shutdown().await;
    let figures = measured?;
    print!("{}", table(&figures));
    write_json(args.json.as_deref(), &figures)
}

async fn measure(system: &System, args: &ContentionArgs) -> Result<Vec<Figures>, BenchError> {
    let most = args.clients.iter().copied().max().unwrap_or(1);
    let plan = Plan { products: COLD, customers: usize::from(most), ..Plan::default() };
    let shop = Shop::fill(system, &plan).await?;
    let mut figures = Vec::new();
    for clients in &args.clients {
        // This round starts the environments, so that the measured round does not wait for them.
        round(&shop, &format!("warm-{clients}"), *clients, u64::from(*clients)).await?;
        let conflicts = system.conflicts();
        let Round { took, times, unavailable } = round(&shop, &format!("hot-{clients}"), *clients, args.orders).await?;
        let orders = args.orders as f64;
        let per_second = orders / took.as_secs_f64().max(f64::EPSILON);
        let at = |thousandths| quantile(&times, thousandths).as_millis();
        figures.push(Figures {
            clients: *clients,
            orders: args.orders,
            orders_per_second: per_second,
            share_of_most: per_second * args.transaction_ms as f64 / 1000.0,
            conflicts_per_order: (system.conflicts() - conflicts) as f64 / orders,
            unavailable,
            median_ms: at(500),
            p95_ms: at(950),
            slowest_ms: at(1_000),
        });
    }
    Ok(figures)
}

struct Round {
    took: Duration,
    /// The time from an order's first request to its last response.
    times: Vec<Duration>,
    unavailable: u64,
}

async fn round(shop: &Shop, hot: &str, clients: u16, orders: u64) -> Result<Round, BenchError> {
    shop.create_product(hot, 0, orders).await?;
    let (next, unavailable) = (AtomicU64::new(0), AtomicU64::new(0));
    let started = Instant::now();
    let queues = (0..clients).map(async |client| {
        let mut times = Vec::new();
        while next.fetch_add(1, Ordering::Relaxed) < orders {
            let began = Instant::now();
            unavailable.fetch_add(order(shop, hot, client).await?, Ordering::Relaxed);
            times.push(began.elapsed());
        }
        Ok::<_, BenchError>(times)
    });
    let times: Vec<Vec<Duration>> =
        futures::stream::iter(queues).buffer_unordered(usize::from(clients)).try_collect().await?;
    let took = started.elapsed();
    let left = shop.stock(hot).await?;
    if left != 0 {
        return Err(wrong!("{hot}: after {orders} orders the stock is {left}, not 0"));
    }
    Ok(Round { took, times: times.concat(), unavailable: unavailable.into_inner() })
}

/// Places an order and retries with the same key. Returns the number of retries.
async fn order(shop: &Shop, hot: &str, client: u16) -> Result<u64, BenchError> {
    let cold = shop.product(fastrand::usize(..));
    let lines = json!([{"product_id": hot, "quantity": 1}, {"product_id": cold, "quantity": 1}]);
    let body = json!({"customer_id": shop.customer(usize::from(client)).id, "lines": lines});
    let key = shop.number().to_string();
    for again in 0..TRIES {
        // Staff places the order, because a customer has a limit of unpaid orders.
        let request = shop.post(Server::Bodega, "/orders", &body).bearer_auth(shop.staff());
        let answer = request.header("idempotency-key", &key).send().await?;
        match answer.status() {
            StatusCode::CREATED => return Ok(again),
            StatusCode::SERVICE_UNAVAILABLE => tokio::time::sleep(pause(&answer)).await,
            other => return Err(wrong!("the response to an order is {other}, not 201")),
        }
    }
    Err(wrong!("an order was not placed in {TRIES} requests"))
}

/// Returns the wait from `Retry-After`, or [`PAUSE`].
fn pause(answer: &reqwest::Response) -> Duration {
    let seconds = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
    seconds.map_or(PAUSE, Duration::from_secs)
}

fn table(figures: &[Figures]) -> Table {
    let mut table = Table::new(
        "clients | orders | orders/s | share of the maximum | conflicts per order | 503 | median ms | p95 ms | slowest ms",
    );
    for figures in figures {
        let Figures { clients, orders, orders_per_second, conflicts_per_order, unavailable, .. } = figures;
        let Figures { median_ms, p95_ms, slowest_ms, .. } = figures;
        let share = figures.share_of_most * 100.0;
        table.row(format_args!(
            "{clients} | {orders} | {orders_per_second:.1} | {share:.0}% | {conflicts_per_order:.1} | {unavailable} | \
            {median_ms} | {p95_ms} | {slowest_ms}"
        ));
    }
    table
}
