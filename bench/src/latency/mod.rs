//! `bench latency` measures the wait for a response through the local gateway, and the function's
//! CPU time.
//!
//! It starts a local system with a small shop, and concurrent clients. Each client sends its next
//! request after the previous response.
//!
//! Some routes also exist in Node.js and Python, with the AWS SDK and plain objects ([`peers`]).
//! The peers' measurements alternate with Bodega's in the same system, with the same gateway, table
//! and items. First, [`check`] compares each peer's responses with Bodega's.
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

use crate::BenchError;
use crate::report::Output;
use clients::Turn;
use peers::{Peer, Stage};
use report::{Measured, Report};
use shop::Shop;

/// The requests of each row are divided into this many turns, and the rows of a route alternate.
/// Other load on the machine then affects these rows alike.
const TURNS: u32 = 4;
/// The maximum duration of one step of a function's warm-up.
const WARMING: Duration = Duration::from_secs(2);
/// The maximum number of steps in which the number of processes grows.
const GROWING: usize = 16;

/// The plan of the measurement, and the measured programs.
#[derive(Debug, clap::Args)]
pub struct LatencyArgs {
    #[command(flatten)]
    plan: Plan,
    /// Folder of the functions' own programs, as deployed. Without it this program runs every
    /// function, unless BODEGA_BOOTSTRAPS names a folder.
    #[arg(long, value_name = "DIR")]
    functions: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// The plan of a measurement.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Plan {
    /// Requests to each route with each number of clients.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub requests: u64,
    /// Longest time for these requests, in seconds.
    #[arg(long, value_name = "S", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub seconds: u64,
    /// Numbers of concurrent clients.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1, 16, 64])]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=256))]
    pub clients: Vec<u16>,
    /// Only the routes whose name contains this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub only: String,
    /// Maximum number of processes of one function.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub environments: u16,
    /// Warm-up requests to each process of a function.
    #[arg(skip = 50_u64)]
    pub warm: u64,
    /// Number of products in the shop.
    #[arg(skip = 200_usize)]
    pub products: usize,
    /// Number of customers.
    #[arg(skip = 16_usize)]
    pub customers: usize,
    /// Number of orders of each customer.
    #[arg(skip = 20_usize)]
    pub orders: usize,
}

impl Plan {
    /// Returns the number of requests of a turn, and its maximum duration.
    fn turn(&self, turn: u32) -> (u64, Duration) {
        let until = |turn: u32| self.requests * u64::from(turn) / u64::from(TURNS);
        (until(turn + 1) - until(turn), Duration::from_secs(self.seconds) / TURNS)
    }
}

pub async fn run(args: LatencyArgs) -> Result<(), BenchError> {
    let mut plan = args.plan;
    // The number of processes never shrinks, so the lowest number of clients comes first.
    plan.clients.sort_unstable();
    plan.clients.dedup();
    let peers = peers::available();
    let mut options = Options::from_environment(std::env::current_exe()?);
    options.port = 0;
    options.environments = usize::from(plan.environments);
    if args.functions.is_some() {
        options.bootstraps = args.functions;
    }
    // The system runs the programs in this folder, so the folder must exist until the system stops.
    let stage = Stage::set(&options, &peers)?;
    options.template = Some(stage.template());
    options.bootstraps = Some(stage.bootstraps());
    let system = System::start(options).await?;
    let measured = measure(&system, &plan, &peers).await;
    system.shutdown().await;
    let report = Report { rows: measured?, peers: peers.iter().map(ToString::to_string).collect(), plan };
    args.output.publish("latency", &report.markdown(), &report.rows)
}

/// Fills the shop of a running system, measures, and checks the shop afterwards.
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
        // The servers rotate, so that no server always comes first.
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
    // Each step at most doubles the number of processes, because interpreters that start together
    // slow each other down.
    for _ in 0..GROWING {
        let running = u16::try_from(cpu::of(function)?.processes).unwrap_or(u16::MAX);
        if running >= wanted {
            break;
        }
        let some = running.saturating_mul(2).clamp(1, wanted);
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
