//! `bench latency`: the wait for a response through the local gateway, and the function's CPU time.
//!
//! It starts a local system with a small shop, and clients in a closed loop: each client sends its
//! next request after the previous response.
//!
//! Some routes also exist in Node.js and Python, written in the usual way ([`peers`]). Their
//! measurements alternate with Bodega's in the same system, with the same gateway, table and items.
//! First, [`check`] compares each peer's responses with Bodega's.
//!
//! Afterwards the stock, the search index and the quarantine must show that each order had all its
//! effects exactly once. A run fails on the first unexpected response.

mod check;
mod clients;
pub(crate) mod cpu;
pub mod peers;
mod report;
pub(crate) mod routes;
pub(crate) mod shop;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use local::{Options, System};

pub use report::Row;
pub use routes::{Route, Server};

use crate::{BenchError, performance};
use clients::Turn;
use peers::{Peer, Stage};
use report::{Measured, Report};
use shop::Shop;

/// The number of turns in which each row is measured. Other load on the machine then affects all
/// rows of a route alike.
const TURNS: u32 = 4;
/// The longest time of one step of a function's warm-up.
const WARMING: Duration = Duration::from_secs(2);
/// The maximum number of steps in which the number of processes grows.
const GROWING: usize = 16;

/// The duration, the numbers of clients, and the peers.
#[derive(Debug, clap::Args)]
pub struct LatencyArgs {
    /// Requests to each route with each number of clients.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    requests: u64,
    /// Longest time for these requests, in seconds.
    #[arg(long, value_name = "S", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Numbers of concurrent clients.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1, 16, 64])]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=256))]
    clients: Vec<u16>,
    /// Only the routes whose name contains this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Maximum number of processes of one function.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    environments: u16,
    /// Folder of the functions' own programs, as deployed. Without it this program runs every
    /// function, unless BODEGA_BOOTSTRAPS names a folder.
    #[arg(long, value_name = "DIR")]
    functions: Option<PathBuf>,
    /// Leave out Node.js and Python.
    #[arg(long)]
    without_peers: bool,
    /// Write the figures to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the table into docs/performance.md.
    #[arg(long)]
    write: bool,
}

/// The plan of a measurement.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Requests of each row.
    pub requests: u64,
    /// Longest time of each row.
    pub time: Duration,
    /// Warm-up requests to each process of a function.
    pub warm: u64,
    /// Numbers of concurrent clients, in ascending order, because the number of processes only
    /// grows.
    pub clients: Vec<u16>,
    /// Maximum number of processes of one function.
    pub environments: u16,
    /// Only the routes whose name contains this text.
    pub only: String,
    /// Number of products in the shop.
    pub products: usize,
    /// Number of customers.
    pub customers: usize,
    /// Number of orders of each customer.
    pub orders: usize,
}

impl Plan {
    /// Returns the requests of a turn, and its longest time.
    fn turn(&self, turn: u32) -> (u64, Duration) {
        let until = |turn: u32| self.requests * u64::from(turn) / u64::from(TURNS);
        (until(turn + 1) - until(turn), self.time / TURNS)
    }
}

/// Measures, prints the table, and writes the figures to a file.
///
/// # Errors
/// [`BenchError::Wrong`] for an unexpected response, or when the shop does not match the orders.
pub async fn run(args: LatencyArgs) -> Result<(), BenchError> {
    let mut clients = args.clients;
    clients.sort_unstable();
    clients.dedup();
    let plan = Plan {
        requests: args.requests,
        time: Duration::from_secs(args.seconds),
        warm: 50,
        clients,
        environments: args.environments,
        only: args.only,
        products: 200,
        customers: 16,
        orders: 20,
    };
    let peers = if args.without_peers { Vec::new() } else { peers::available() };
    let mut options = Options::from_environment(std::env::current_exe()?);
    options.port = 0;
    options.environments = usize::from(plan.environments);
    if args.functions.is_some() {
        options.bootstraps = args.functions;
    }
    // The stage must outlive the system.
    let stage = Stage::set(&options, &peers)?;
    options.template = Some(stage.template());
    options.bootstraps = Some(stage.bootstraps());
    let system = System::start(options).await.map_err(BenchError::wrong)?;
    let measured = measure(&system, &plan, &peers).await;
    system.shutdown().await;
    let report = Report { rows: measured?, peers: peers.iter().map(ToString::to_string).collect(), plan };
    let text = report.markdown();
    print!("{text}");
    if let Some(path) = args.json {
        std::fs::write(path, serde_json::to_string_pretty(&report.rows).map_err(BenchError::wrong)? + "\n")?;
    }
    if args.write {
        performance::write("latency", &text)?;
    }
    Ok(())
}

/// Fills the shop of a running system, measures, and checks the shop afterwards.
///
/// # Errors
/// Like [`run`].
pub async fn measure(system: &System, plan: &Plan, peers: &[Peer]) -> Result<Vec<Row>, BenchError> {
    let shop = Arc::new(Shop::fill(system, plan).await?);
    for peer in peers {
        check::same(&shop, peer.server).await?;
    }
    let mut rows = Vec::new();
    for clients in &plan.clients {
        for route in Route::ALL.into_iter().filter(|route| route.name().contains(&plan.only)) {
            let peers = peers.iter().map(|peer| peer.server).filter(|_| route.has_peers());
            let servers: Vec<Server> = std::iter::once(Server::Bodega).chain(peers).collect();
            rows.extend(in_turns(&shop, plan, route, &servers, *clients).await?);
        }
    }
    shop.settled().await?;
    Ok(rows)
}

/// Measures one route with this many clients. Returns a row for each server.
async fn in_turns(
    shop: &Arc<Shop>,
    plan: &Plan,
    route: Route,
    servers: &[Server],
    clients: u16,
) -> Result<Vec<Row>, BenchError> {
    let mut all: Vec<Measured> = servers.iter().map(|server| Measured::new(route, *server, clients)).collect();
    for server in servers {
        warm_up(shop, plan, route, *server, clients).await?;
    }
    for turn in 0..TURNS {
        // The first server of a turn is the last of the next.
        if turn > 0 {
            all.rotate_left(1);
        }
        let (requests, longest) = plan.turn(turn);
        for measured in &mut all {
            let function = route.function(measured.server);
            let before = cpu::of(function)?;
            let round = Turn { route, server: measured.server, clients, requests, longest, seed: u64::from(turn) };
            let took = round.run(shop).await?;
            let after = cpu::of(function)?;
            measured.add(took, after.cpu.saturating_sub(before.cpu), after.processes);
            if route == Route::Place {
                // Wait for the effects of the orders before the next measurement.
                shop.drain().await?;
            }
        }
    }
    all.sort_by_key(|measured| measured.server);
    Ok(all.into_iter().map(Measured::into_row).collect())
}

/// Starts all processes, sends some requests to each, and waits until the function is idle.
async fn warm_up(shop: &Arc<Shop>, plan: &Plan, route: Route, server: Server, clients: u16) -> Result<(), BenchError> {
    let function = route.function(server);
    let wanted = clients.min(plan.environments);
    let turn = |clients, requests| Turn { route, server, clients, requests, longest: WARMING, seed: u64::from(TURNS) };
    // Each step starts at most as many processes as already run. Interpreters that start together
    // slow each other down.
    for _ in 0..GROWING {
        let there = u16::try_from(cpu::of(function)?.processes).unwrap_or(u16::MAX);
        if there >= wanted {
            break;
        }
        let some = there.saturating_mul(2).clamp(1, wanted);
        turn(some, 2 * u64::from(some)).run(shop).await?;
        cpu::at_rest(function).await?;
    }
    turn(clients, plan.warm * u64::from(wanted)).run(shop).await?;
    cpu::at_rest(function).await?;
    if route == Route::Place {
        shop.drain().await?;
    }
    Ok(())
}
