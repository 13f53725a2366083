//! `bench latency`: what a client waits for an answer through the local gateway, and what CPU a function needs for it.
//!
//! A local system of its own with a small shop, and clients in a closed loop: each sends its next request when it has the answer to the last. The routes that are also
//! written the usual way in Node.js and Python ([`peers`]) are measured in turns, one right after the other in the same system: the same gateway, the same table, the
//! same items. Before anything is measured the peers are shown to do the same ([`check`]), and in the end stock, index and quarantine must say that every order was taken
//! once and whole. A run fails on the first answer that is not the expected one.

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

/// In so many turns each row is measured, so that what else the machine does strikes all rows of a route alike.
const TURNS: u32 = 4;
/// Longest that a function is warmed up.
const WARMING: Duration = Duration::from_secs(2);
/// Steps in which its processes become as many as they may be.
const GROWING: usize = 16;

/// How long, with how many clients, beside whom.
#[derive(Debug, clap::Args)]
pub struct LatencyArgs {
    /// So many requests of each route with each number of clients.
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    requests: u64,
    /// But no longer than so many seconds.
    #[arg(long, value_name = "S", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Clients at once.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1, 16, 64], value_parser = clap::value_parser!(u16).range(1..=256))]
    clients: Vec<u16>,
    /// Only the routes whose name contains this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Processes of a function at most; beyond them requests wait in the gateway.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    environments: u16,
    /// Folder of the functions' own programs, as they are deployed. Without it this program is each of them, unless BODEGA_BOOTSTRAPS names one.
    #[arg(long, value_name = "DIR")]
    functions: Option<PathBuf>,
    /// Leave Node.js and Python out.
    #[arg(long)]
    without_peers: bool,
    /// Write the figures to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the table into docs/performance.md.
    #[arg(long)]
    write: bool,
}

/// What is measured.
#[derive(Debug, Clone)]
pub struct Plan {
    /// So many requests of each row.
    pub requests: u64,
    /// But no longer than this.
    pub time: Duration,
    /// Requests before that to each process of a function.
    pub warm: u64,
    /// Clients at once, one number after the other. Processes only grow more, so the fewest come first.
    pub clients: Vec<u16>,
    /// Processes of a function at most, as the system was started with.
    pub environments: u16,
    /// Only the routes whose name contains this text.
    pub only: String,
    /// The shop: so many products.
    pub products: usize,
    /// And customers.
    pub customers: usize,
    /// And orders of each.
    pub orders: usize,
}

impl Plan {
    /// Requests of a turn, and how long it takes at most.
    fn turn(&self, turn: u32) -> (u64, Duration) {
        let until = |turn: u32| self.requests * u64::from(turn) / u64::from(TURNS);
        (until(turn + 1) - until(turn), self.time / TURNS)
    }
}

/// Measures, prints the table, and writes the figures to a file.
///
/// # Errors
/// [`BenchError::Wrong`] when an answer is not the expected one, or the shop not what was ordered.
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
    // Ends with this value, after the system.
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

/// Fills the shop of a running system, measures, and looks at what has become of the shop.
///
/// # Errors
/// As [`run`].
pub async fn measure(system: &System, plan: &Plan, peers: &[Peer]) -> Result<Vec<Row>, BenchError> {
    let shop = Arc::new(Shop::fill(system, plan).await?);
    for peer in peers {
        check::same(&shop, peer.server).await?;
    }
    let mut rows = Vec::new();
    for clients in &plan.clients {
        for route in Route::ALL.into_iter().filter(|route| route.name().contains(&plan.only)) {
            let peers = peers.iter().map(|peer| peer.server).filter(|_| route.is_usual());
            let servers: Vec<Server> = std::iter::once(Server::Bodega).chain(peers).collect();
            rows.extend(in_turns(&shop, plan, route, &servers, *clients).await?);
        }
    }
    shop.settled().await?;
    Ok(rows)
}

/// One route with so many clients: a row for each who serves it.
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
        // Whoever came first is the last of the next turn.
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
                // What an order sets in motion is done before the next one is measured.
                shop.drain().await?;
            }
        }
    }
    all.sort_by_key(|measured| measured.server);
    Ok(all.into_iter().map(Measured::into_row).collect())
}

/// As many processes as there will be, each of which has answered some requests; then silence.
async fn warm_up(shop: &Arc<Shop>, plan: &Plan, route: Route, server: Server, clients: u16) -> Result<(), BenchError> {
    let function = route.function(server);
    let wanted = clients.min(plan.environments);
    let turn = |clients, requests| Turn { route, server, clients, requests, longest: WARMING, seed: u64::from(TURNS) };
    // No more at once than there are already: started all together, interpreters hinder each other.
    for _ in 0..GROWING {
        let there = u16::try_from(cpu::of(function)?.processes).unwrap_or(u16::MAX);
        if there >= wanted {
            break;
        }
        let some = there.saturating_mul(2).min(wanted);
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
