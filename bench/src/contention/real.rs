//! The same orders in real time: over sockets, through the local gateway, with the same limits and
//! durations in front of the table.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use emulators::table::Model;
use futures::{StreamExt as _, TryStreamExt as _};
use local::{Options, System};
use reqwest::StatusCode;
use serde_json::json;

use super::grid::Figures;
use crate::BenchError;
use crate::latency::shop::Shop;
use crate::latency::{Plan, Server};

/// Two cores cannot serve more clients at the rates that more shards allow.
const MOST_CLIENTS: u16 = 32;
const MOST_SHARDS: u32 = 16;
/// If this many requests do not place the order, the measurement fails.
const TRIES: u64 = 200;
/// The wait before a retry, if the response does not specify one.
const PAUSE: Duration = Duration::from_millis(500);

/// Measures every number of clients with every number of shards.
pub(super) async fn measure(
    orders: u64,
    shards: &[u32],
    clients: &[u16],
    model: Model,
) -> Result<Vec<Figures>, BenchError> {
    let mut options = Options::from_environment(std::env::current_exe()?);
    options.port = 0;
    options.limits = Some(model);
    // As in Lambda, each concurrent client can have its own environment.
    let clients: Vec<u16> = clients.iter().copied().filter(|clients| *clients <= MOST_CLIENTS).collect();
    options.environments = usize::from(clients.iter().copied().max().unwrap_or(1));
    let customers = options.environments;
    let system = System::start(options).await?;
    let measured = async {
        let shop = Shop::fill(&system, &Plan { products: 1, customers, ..Plan::default() }).await?;
        let mut figures = Vec::new();
        for shards in shards.iter().filter(|shards| **shards <= MOST_SHARDS) {
            for clients in &clients {
                // This round starts the environments, so that the measured round does not wait for
                // them.
                round(&system, &shop, &format!("warm-{shards}-{clients}"), *shards, *clients, u64::from(*clients))
                    .await?;
                figures
                    .push(round(&system, &shop, &format!("hot-{shards}-{clients}"), *shards, *clients, orders).await?);
            }
        }
        Ok(figures)
    };
    let measured = measured.await;
    system.shutdown().await;
    measured
}

async fn round(
    system: &System,
    shop: &Shop,
    hot: &str,
    shards: u32,
    clients: u16,
    orders: u64,
) -> Result<Figures, BenchError> {
    let initial = orders * 10;
    shop.create_product(hot, 0, initial).await?;
    let spread = shop.put(&format!("/products/{hot}/stock/shards"), &json!({"shards": shards}));
    shop.json(spread.bearer_auth(shop.staff()), StatusCode::OK).await?;
    let (before, begun) = (system.counts(), Instant::now());
    let (next, unavailable, placed) = (Cell::new(0), Cell::new(0), RefCell::new(Vec::new()));
    let queues = (0..clients).map(async |client| {
        while next.replace(next.get() + 1) < orders {
            let start = Instant::now();
            let retries = order(shop, hot, client).await?;
            unavailable.set(unavailable.get() + retries);
            placed.borrow_mut().push((begun.elapsed(), start.elapsed()));
        }
        Ok::<_, BenchError>(())
    });
    let () = futures::stream::iter(queues).buffer_unordered(usize::from(clients)).try_collect().await?;
    let (after, placed) = (system.counts(), placed.into_inner());
    let left = shop.stock(hot).await?;
    if left != initial - orders {
        return Err(wrong!("{hot}: after {orders} orders {left} of {initial} pieces are left"));
    }
    Ok(Figures::new(shards, clients, &placed, unavailable.get(), (before, after)))
}

/// Places an order and retries with the same key. Returns the number of retries.
async fn order(shop: &Shop, hot: &str, client: u16) -> Result<u64, BenchError> {
    let lines = json!([{"product_id": hot, "quantity": 1}]);
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
