//! `bench contention`: many clients order the same product at once, in a table with DynamoDB's
//! limits.
//!
//! The large figures are of simulated time ([`simulation`]): one product with many shards and
//! clients ([`grid`]), and a sale with the consumer of the stream ([`mix`]). A smaller measurement
//! in real time ([`real`]) has the same limits and durations. docs/contention.md explains the
//! figures.

mod grid;
mod mix;
mod page;
mod real;
mod simulation;
mod stream;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use emulators::table::{Model, Throughput, Times};
use serde::Serialize;

use crate::BenchError;
use crate::report::write_json;

#[derive(Debug, clap::Args)]
pub struct ContentionArgs {
    /// Numbers of concurrent clients.
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    #[arg(default_values_t = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512])]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=4096))]
    clients: Vec<u16>,
    /// Numbers of shards of the stock.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1, 4, 16, 64])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    shards: Vec<u32>,
    /// Orders of each measurement. With many clients, each client places at least 8.
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(10..=100_000))]
    orders: u64,
    /// Mean duration of a transaction, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    transaction_ms: u64,
    /// Warm throughput of the table and of each index, in write units a second.
    #[arg(long, value_name = "UNITS", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    warm: u32,
    /// Orders a second of the sale, or 0 for no sale.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    rate: u32,
    /// Duration of the sale, in seconds of simulated time.
    #[arg(long, value_name = "S", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Seed of all random numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Also place this many orders over sockets in real time, with up to 16 shards and 32 clients.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=100_000))]
    real: u64,
    /// Write the figures to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the tables and plots into docs/contention.md.
    #[arg(long)]
    write: bool,
}

#[derive(Debug, Serialize)]
struct Figures {
    simulated: Vec<grid::Figures>,
    sale: Option<mix::Figures>,
    real: Vec<grid::Figures>,
}

pub async fn run(args: ContentionArgs) -> Result<(), BenchError> {
    let times = Times { transaction: Duration::from_millis(args.transaction_ms), ..Times::default() };
    let model = Model { warm: Throughput { writes: args.warm, reads: args.warm }, times, seed: args.seed };
    let simulated = tokio::task::block_in_place(|| simulate(&args, model))?;
    println!("{}", grid::table(&simulated));
    if args.write {
        page::grid(&simulated)?;
        page::targets(&simulated, None)?;
    }
    let shards = args.shards.iter().copied().max().unwrap_or(1);
    let sale = mix::Sale { rate: args.rate, seconds: args.seconds, shards };
    let sale = (args.rate > 0).then(|| tokio::task::block_in_place(|| mix::measure(sale, model))).transpose()?;
    if let Some(sale) = &sale {
        println!("{}", mix::table(sale));
        if args.write {
            page::sale(sale)?;
            page::targets(&simulated, Some(sale))?;
        }
    }
    let real =
        if args.real > 0 { real::measure(args.real, &args.shards, &args.clients, model).await? } else { Vec::new() };
    if !real.is_empty() {
        println!("{}", grid::table(&real));
        if args.write {
            page::real(&real)?;
        }
    }
    write_json(args.json.as_deref(), &Figures { simulated, sale, real })
}

/// Measures every number of clients with every number of shards. The measurements are independent, so
/// each core makes one at a time.
fn simulate(args: &ContentionArgs, model: Model) -> Result<Vec<grid::Figures>, BenchError> {
    let load =
        |shards: u32, clients: u16| grid::Load { shards, clients, orders: args.orders, stock: 10, is_fixed: true };
    let of_shards = |shards: &u32| args.clients.iter().map(|clients| load(*shards, *clients)).collect::<Vec<_>>();
    let loads: Vec<grid::Load> = args.shards.iter().flat_map(of_shards).collect();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(load) = loads.get(number) else { return };
            let figures = grid::measure(*load, model);
            done.lock().unwrap_or_else(PoisonError::into_inner).insert(number, figures);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, NonZeroUsize::get) {
            scope.spawn(work);
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}
