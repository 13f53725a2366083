//! `bench contention`: many clients order the same product at once, in a table with DynamoDB's
//! transaction times.
//!
//! A transaction in progress blocks all others on its items. So one item accepts at most one order
//! per duration of a transaction. The measurement shows which share of that rate remains under
//! contention, and which responses clients receive. Every order must be placed exactly once.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use local::{Options, System};
use reqwest::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

use crate::BenchError;

/// Products without contention. Each order has one of them in addition to the hot one.
const COLD: usize = 50;
/// Maximum requests for one order. After them the measurement fails.
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

/// The figures for one number of clients.
#[derive(Debug, Serialize)]
struct Figures {
    clients: u16,
    orders: u64,
    orders_per_second: f64,
    /// Share of the maximum rate that one item allows.
    share_of_most: f64,
    /// Requests to the table that conflicted with a transaction in progress.
    conflicts_per_order: f64,
    /// Responses with status 503. The client retried after each.
    unavailable: u64,
    median_ms: u128,
    p95_ms: u128,
    slowest_ms: u128,
}

/// Measures, prints the table, and writes the figures to a file.
///
/// # Errors
/// [`BenchError::Wrong`] when an order is not placed, or when the remaining stock is wrong.
pub async fn run(args: ContentionArgs) -> Result<(), BenchError> {
    let mut options = Options::from_environment(std::env::current_exe()?);
    options.port = 0;
    options.transaction_time = Some(Duration::from_millis(args.transaction_ms));
    // As in Lambda, each concurrent client can have its own environment.
    options.environments = usize::from(args.clients.iter().copied().max().unwrap_or(1));
    let system = System::start(options).await.map_err(BenchError::wrong)?;
    let measured = measure(&system, &args).await;
    system.shutdown().await;
    let figures = measured?;
    print!("{}", table(&figures));
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&figures).map_err(BenchError::wrong)?;
        std::fs::write(path, text + "\n")?;
    }
    Ok(())
}

async fn measure(system: &System, args: &ContentionArgs) -> Result<Vec<Figures>, BenchError> {
    let shop = Shop { system, http: reqwest::Client::new() };
    for n in 0..COLD {
        shop.product(&format!("cold-{n}"), args.orders.saturating_mul(args.clients.len() as u64)).await?;
    }
    let mut figures = Vec::new();
    for clients in &args.clients {
        // This round starts the environments, so that the measured round does not wait for them.
        shop.round(&format!("warm-{clients}"), *clients, u64::from(*clients)).await?;
        let conflicts = system.conflicts();
        let mut round = shop.round(&format!("hot-{clients}"), *clients, args.orders).await?;
        round.times.sort_unstable();
        let at = |percent: usize| {
            let place = (round.times.len() * percent / 100).min(round.times.len().saturating_sub(1));
            round.times.get(place).map_or(0, Duration::as_millis)
        };
        let per_second = float(args.orders) / round.took.as_secs_f64().max(f64::EPSILON);
        figures.push(Figures {
            clients: *clients,
            orders: args.orders,
            orders_per_second: per_second,
            share_of_most: per_second * float(args.transaction_ms) / 1000.0,
            conflicts_per_order: float(system.conflicts() - conflicts) / float(args.orders),
            unavailable: round.unavailable,
            median_ms: at(50),
            p95_ms: at(95),
            slowest_ms: at(100),
        });
    }
    Ok(figures)
}

fn float(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

struct Round {
    took: Duration,
    /// The time from an order's first request to its last response.
    times: Vec<Duration>,
    unavailable: u64,
}

/// The API of the local system.
struct Shop<'s> {
    system: &'s System,
    http: reqwest::Client,
}

impl Shop<'_> {
    /// Places orders of one product by concurrent clients.
    async fn round(&self, hot: &str, clients: u16, orders: u64) -> Result<Round, BenchError> {
        self.product(hot, orders).await?;
        let buyers: Vec<String> = (0..clients).map(|n| format!("{hot}-buyer-{n}")).collect();
        for buyer in &buyers {
            let body =
                json!({"id": buyer, "email": format!("{buyer}@example.com"), "username": buyer, "name": "Somebody"});
            self.create("customers", &body).await?;
        }
        let (next, unavailable) = (AtomicU64::new(0), AtomicU64::new(0));
        let started = Instant::now();
        let queues = buyers.iter().map(async |buyer| {
            let mut times = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= orders {
                    return Ok::<_, BenchError>(times);
                }
                let began = Instant::now();
                unavailable.fetch_add(self.order(hot, buyer, number).await?, Ordering::Relaxed);
                times.push(began.elapsed());
            }
        });
        let times: Vec<Result<Vec<Duration>, BenchError>> =
            futures::stream::iter(queues).buffer_unordered(usize::from(clients)).collect().await;
        let took = started.elapsed();
        let times = times.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
        let left = self.stock(hot).await?;
        if left != Some(0) {
            return Err(BenchError::Wrong(format!("{hot}: after {orders} orders the stock is {left:?}, not 0")));
        }
        Ok(Round { took, times, unavailable: unavailable.into_inner() })
    }

    /// Places an order and retries with the same key. Returns the number of retries.
    async fn order(&self, hot: &str, buyer: &str, number: u64) -> Result<u64, BenchError> {
        let cold = format!("cold-{}", fastrand::usize(..COLD));
        let lines = json!([{"product_id": hot, "quantity": 1}, {"product_id": cold, "quantity": 1}]);
        let body = json!({"customer_id": buyer, "lines": lines});
        for again in 0..TRIES {
            let request = self.http.post(format!("{}/v1/orders", self.system.url())).json(&body);
            let request = request.bearer_auth(self.system.token(buyer, &[]));
            let answer = request.header("idempotency-key", format!("{hot}-{number}")).send().await;
            let answer = answer.map_err(BenchError::wrong)?;
            match answer.status() {
                StatusCode::CREATED => return Ok(again),
                StatusCode::SERVICE_UNAVAILABLE => tokio::time::sleep(pause(&answer)).await,
                other => return Err(BenchError::Wrong(format!("the response to an order is {other}, not 201"))),
            }
        }
        Err(BenchError::Wrong(format!("an order was not placed in {TRIES} requests")))
    }

    async fn product(&self, id: &str, stock: u64) -> Result<(), BenchError> {
        let price = json!({"amount": 129, "currency": "USD"});
        let body = json!({
            "id": id, "name": id, "brand": "Private", "category_path": ["CONTENTION"], "price": price, "stock": stock,
        });
        self.create("products", &body).await
    }

    async fn create(&self, what: &str, body: &Value) -> Result<(), BenchError> {
        let request = self.http.post(format!("{}/v1/{what}", self.system.url())).json(body);
        let answer = request.bearer_auth(self.system.token("bench", &["staff".to_owned()])).send().await;
        match answer.map_err(BenchError::wrong)?.status() {
            StatusCode::CREATED => Ok(()),
            other => Err(BenchError::Wrong(format!("the response to POST {what} is {other}, not 201"))),
        }
    }

    async fn stock(&self, product: &str) -> Result<Option<u64>, BenchError> {
        let request = self.http.get(format!("{}/v1/products/{product}", self.system.url()));
        let answer = request.bearer_auth(self.system.token("bench", &["staff".to_owned()])).send().await;
        let product: Value = answer.map_err(BenchError::wrong)?.json().await.map_err(BenchError::wrong)?;
        Ok(product.get("stock").and_then(Value::as_u64))
    }
}

/// Returns the wait from `Retry-After`, or [`PAUSE`].
fn pause(answer: &reqwest::Response) -> Duration {
    let seconds = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
    seconds.map_or(PAUSE, Duration::from_secs)
}

fn table(figures: &[Figures]) -> String {
    let mut table = format!(
        "{:>7} {:>7} {:>9} {:>12} {:>15} {:>5} {:>10} {:>8} {:>11}\n",
        "clients", "orders", "orders/s", "share of max", "conflicts/order", "503", "median ms", "p95 ms", "slowest ms"
    );
    for figure in figures {
        // Writing to a string does not fail.
        let _ = writeln!(
            table,
            "{:>7} {:>7} {:>9.1} {:>11.0}% {:>15.1} {:>5} {:>10} {:>8} {:>11}",
            figure.clients,
            figure.orders,
            figure.orders_per_second,
            figure.share_of_most * 100.0,
            figure.conflicts_per_order,
            figure.unavailable,
            figure.median_ms,
            figure.p95_ms,
            figure.slowest_ms
        );
    }
    table
}
