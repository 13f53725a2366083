//! `bench load`: many clients use the shop for minutes. They read products, overviews and orders,
//! search, fill carts, and place and cancel orders. Every response must be right, the functions'
//! memory must not grow, and the search must find new products soon.
//!
//! A run has no limit for latencies. It fails for one of these reasons:
//!
//! - an unexpected response
//! - a missing, duplicate or incomplete order
//! - a new record in the quarantine
//! - a function with growing memory
//! - a product that the search does not find within [`FOUND_WITHIN`]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fastrand::Rng;
use local::{Options, System};
use reqwest::{RequestBuilder, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::BenchError;
use crate::latency::routes::{LINES, Route, Server};
use crate::latency::shop::Shop;
use crate::latency::{Plan, cpu};
use crate::report::{Output, Table, millis, quantile};

/// Initial products, and initial orders of each customer.
const PRODUCTS: usize = 200;
const ORDERS: usize = 2;
const ENVIRONMENTS: usize = 4;
const SAMPLE_INTERVAL: Duration = Duration::from_secs(2);
/// Interval at which a product is created and searched for.
const PROBE: Duration = Duration::from_secs(5);
/// The maximum time until the search finds the product.
const FOUND_WITHIN: Duration = Duration::from_secs(60);
/// The maximum ratio of a function's average memory in the last third of the run to that in the
/// second third. A leak of a few kilobytes per request exceeds this ratio in two minutes.
const GROWTH: f64 = 1.25;
/// The functions that handle the load.
const FUNCTIONS: [&str; 6] = ["Catalog", "Customers", "Orders", "Search", "StreamSearch", "StreamEvents"];

/// The average memory of each function's processes in MB, in the order of [`FUNCTIONS`].
type MemorySample = [f64; FUNCTIONS.len()];

/// The number of clients and the duration.
#[derive(Debug, clap::Args)]
pub struct LoadArgs {
    /// Concurrent clients. Each sends its next request after the previous response.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=256))]
    clients: u16,
    /// Duration in seconds.
    #[arg(long, value_name = "S", default_value_t = 120, value_parser = clap::value_parser!(u64).range(6..=36_000))]
    seconds: u64,
    #[command(flatten)]
    output: Output,
}

/// A client's next request. [`Action::random`] has the percentages.
#[derive(Debug, Clone, Copy)]
enum Action {
    Read(Route),
    PlaceOrder,
    /// Cancels the client's own order right after it was placed.
    CancelOrder,
    PutCartLine,
    ReadCart,
}

impl Action {
    fn random(rng: &mut Rng) -> Self {
        match rng.u8(0..100) {
            0..40 => Self::Read(Route::Product),
            40..52 => Self::Read(Route::Overview),
            52..64 => Self::Read(Route::Orders),
            64..76 => Self::Read(Route::Search),
            76..86 => Self::PlaceOrder,
            86..95 => Self::PutCartLine,
            _ => Self::ReadCart,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Read(route) => route.name(),
            Self::PlaceOrder => Route::Place.name(),
            Self::CancelOrder => "POST /v1/orders/{id}/status",
            Self::PutCartLine => "PUT /v1/customers/{id}/cart/items/{product}",
            Self::ReadCart => "GET /v1/customers/{id}/cart",
        }
    }

    const fn expected(self) -> StatusCode {
        match self {
            Self::PlaceOrder => StatusCode::CREATED,
            _ => StatusCode::OK,
        }
    }
}

#[derive(Debug, Default)]
struct Run {
    /// The durations of requests with the expected response, by kind of request.
    done: Mutex<BTreeMap<&'static str, Vec<Duration>>>,
    wrong: Mutex<BTreeMap<String, u64>>,
    cancelled: AtomicU64,
}

pub async fn run(args: LoadArgs) -> Result<(), BenchError> {
    let mut options = Options::from_environment(std::env::current_exe()?);
    options.environments = ENVIRONMENTS;
    options.log = local::Log::Off;
    let system = System::start(options).await?;
    let loaded = load(&system, &args).await;
    system.shutdown().await;
    let (text, figures) = loaded?;
    args.output.publish("load", &text, &figures)
}

#[derive(Debug, Serialize)]
struct Figures {
    request: &'static str,
    answered: usize,
    p50_ms: f64,
    p99_ms: f64,
}

async fn load(system: &System, args: &LoadArgs) -> Result<(String, Vec<Figures>), BenchError> {
    let plan = Plan { products: PRODUCTS, customers: usize::from(args.clients), orders: ORDERS, ..Plan::default() };
    let shop = Arc::new(Shop::fill(system, &plan).await?);
    let run = Arc::new(Run::default());
    let until = Instant::now() + Duration::from_secs(args.seconds);
    let mut clients: JoinSet<()> = (0..args.clients)
        .map(|client| Arc::clone(&run).client(usize::from(client), Arc::clone(&shop), until))
        .collect();
    let (memory, probes) = tokio::join!(memory(until), probe(&shop, until));
    while let Some(client) = clients.join_next().await {
        client?;
    }
    let ended = Instant::now();
    let (memory, probes) = (memory?, probes?);
    shop.settled().await?;
    let report = Report { args, run: &run, memory: &memory, probes: &probes, drained: ended.elapsed() };
    report.verdict()?;
    let figures = report.figures();
    Ok((report.markdown(&figures), figures))
}

impl Run {
    async fn client(self: Arc<Self>, client: usize, shop: Arc<Shop>, until: Instant) {
        let mut rng = Rng::with_seed(client as u64);
        while Instant::now() < until {
            let action = Action::random(&mut rng);
            let answer = self.send(action, request(action, &shop, client, &mut rng)).await;
            if let (Action::PlaceOrder, Some(order)) = (action, answer) {
                shop.placed(LINES as u64);
                if rng.bool() && self.send(Action::CancelOrder, cancellation(&shop, client, &order)).await.is_some() {
                    shop.returned(LINES as u64);
                    self.cancelled.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    async fn send(&self, action: Action, request: RequestBuilder) -> Option<Value> {
        let sent = Instant::now();
        let answered = async {
            let answer = request.send().await?;
            Ok::<_, reqwest::Error>((answer.status(), answer.bytes().await?))
        };
        let (status, body) = match answered.await {
            Ok((status, body)) if status == action.expected() => (status, body),
            Ok((status, body)) => {
                self.count_error(action, &format!("{status} {}", String::from_utf8_lossy(&body)));
                return None;
            }
            Err(error) => {
                self.count_error(action, &error.to_string());
                return None;
            }
        };
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.entry(action.name()).or_default().push(sent.elapsed());
        drop(done);
        match serde_json::from_slice(&body) {
            Ok(body) => Some(body),
            Err(error) => {
                self.count_error(action, &format!("{status} with {error}"));
                None
            }
        }
    }

    fn count_error(&self, action: Action, what: &str) {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        *wrong.entry(format!("{}: {what}", action.name())).or_default() += 1;
    }
}

fn request(action: Action, shop: &Shop, client: usize, rng: &mut Rng) -> RequestBuilder {
    let customer = shop.customer(client);
    let cart = format!("/customers/{}/cart", customer.id);
    match action {
        Action::Read(route) => route.request(shop, Server::Bodega, client, shop.number(), rng),
        Action::PutCartLine => {
            let item = format!("{cart}/items/{}", shop.product(rng.usize(..PRODUCTS)));
            shop.put(&item, &json!({"quantity": rng.u8(1..9)})).bearer_auth(&customer.token)
        }
        Action::ReadCart => shop.get(Server::Bodega, &cart).bearer_auth(&customer.token),
        Action::PlaceOrder | Action::CancelOrder => {
            Route::Place.request(shop, Server::Bodega, client, shop.number(), rng)
        }
    }
}

fn cancellation(shop: &Shop, client: usize, order: &Value) -> RequestBuilder {
    let id = order.get("id").and_then(Value::as_str).unwrap_or_default();
    let request = shop.post(Server::Bodega, &format!("/orders/{id}/status"), &json!({"to": "cancelled"}));
    request.bearer_auth(&shop.customer(client).token).header("if-match", "\"1\"")
}

/// Returns the average memory of each function's processes in MB, at each reading.
async fn memory(until: Instant) -> Result<Vec<MemorySample>, BenchError> {
    let mut samples = Vec::new();
    while Instant::now() < until {
        tokio::time::sleep(SAMPLE_INTERVAL).await;
        let mut sample = MemorySample::default();
        for (megabytes, function) in sample.iter_mut().zip(FUNCTIONS) {
            let spent = cpu::of(function)?;
            *megabytes = spent.memory as f64 / spent.processes.max(1) as f64 / 1e6;
        }
        samples.push(sample);
    }
    Ok(samples)
}

fn thirds(values: &[f64]) -> [f64; 3] {
    let third = values.len() / 3;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (first, rest) = values.split_at(third);
    let (second, last) = rest.split_at(third.min(rest.len()));
    [first, second, last].map(mean)
}

/// Creates products during the run. Returns the time until the search found each of them.
async fn probe(shop: &Shop, until: Instant) -> Result<Vec<Duration>, BenchError> {
    let mut waits = Vec::new();
    while Instant::now() < until {
        let word = format!("probe{:08x}", shop.number());
        shop.create_named(&word).await?;
        let written = Instant::now();
        while !shop.finds(&word).await? {
            if written.elapsed() > FOUND_WITHIN {
                return Err(wrong!("the search does not find a product {FOUND_WITHIN:?} after its creation"));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        waits.push(written.elapsed());
        tokio::time::sleep(PROBE.saturating_sub(written.elapsed())).await;
    }
    Ok(waits)
}

struct Report<'r> {
    args: &'r LoadArgs,
    run: &'r Run,
    memory: &'r [MemorySample],
    probes: &'r [Duration],
    /// The time from the last response until the stream was processed and the shop was checked.
    drained: Duration,
}

impl Report<'_> {
    /// Returns the average memory of all functions in the three thirds of the run.
    fn average(&self) -> [f64; 3] {
        let mean = |sample: &MemorySample| sample.iter().sum::<f64>() / sample.len() as f64;
        thirds(&self.memory.iter().map(mean).collect::<Vec<_>>())
    }

    fn verdict(&self) -> Result<(), BenchError> {
        let wrong = self.run.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        if !wrong.is_empty() {
            let count: u64 = wrong.values().sum();
            let shown: Vec<String> =
                wrong.iter().take(10).map(|(what, count)| format!("{count} times {what}")).collect();
            return Err(wrong!("{count} responses were unexpected:\n{}", shown.join("\n")));
        }
        for (at, function) in FUNCTIONS.iter().enumerate() {
            let readings: Vec<f64> = self.memory.iter().filter_map(|sample| sample.get(at).copied()).collect();
            let [_, second, last] = thirds(&readings);
            if last > second * GROWTH {
                return Err(wrong!("a process of {function} grew from {second:.1} MB to {last:.1} MB"));
            }
        }
        Ok(())
    }

    fn figures(&self) -> Vec<Figures> {
        let done = self.run.done.lock().unwrap_or_else(PoisonError::into_inner);
        let figures = done.iter().map(|(request, latencies)| Figures {
            request,
            answered: latencies.len(),
            p50_ms: millis(quantile(latencies, 500)),
            p99_ms: millis(quantile(latencies, 990)),
        });
        figures.collect()
    }

    /// `.ci/run load` counts its rows and reads the sentence below the table.
    fn markdown(&self, figures: &[Figures]) -> String {
        let mut table = Table::new("request | answered | p50 ms | p99 ms");
        for Figures { request, answered, p50_ms, p99_ms } in figures {
            table.row(format_args!("`{request}` | {answered} | {p50_ms:.1} | {p99_ms:.1}"));
        }
        let total: usize = figures.iter().map(|figures| figures.answered).sum();
        let [first, second, last] = self.average();
        let slowest = self.probes.iter().max().copied().unwrap_or_default();
        format!(
            "{table}\n\
             {total} requests of {} clients in {} s. Every response was as expected. A function's process had \
             {first:.1}, {second:.1} and {last:.1} MB in the three thirds of the run. The run created {} products, and \
             the search found each within {:.1} s. The stream was processed, and the shop was checked, {:.1} s after \
             the last response. Each order existed once, and the stock matched the orders.\n",
            self.args.clients,
            self.args.seconds,
            self.probes.len(),
            slowest.as_secs_f64(),
            self.drained.as_secs_f64(),
        )
    }
}
