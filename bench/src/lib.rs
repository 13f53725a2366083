//! Measurements of Bodega. Each prints a table, and writes JSON on request. A measurement never
//! fails because the machine is slow.
//!
//! ```sh
//! cargo run --release -p bodega-bench -- stream
//! ```

mod builds;
mod cold_start;
mod consumer;
mod contention;
mod examples;
mod growth;
pub mod import;
pub mod latency;
mod lists;
mod load;
mod loaded;
mod performance;
pub mod records;
pub mod replay;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use local::Options;
use tokio::runtime::{Builder, Runtime};

/// The reason that a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A file, a pipe or a process failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The embedded search engine failed.
    #[error(transparent)]
    Engine(#[from] emulators::search::Error),
    /// The search client failed.
    #[error(transparent)]
    Search(#[from] search_index::SearchError),
    /// The search client's settings are invalid.
    #[error(transparent)]
    Config(#[from] search_index::ConfigError),
    /// The measured system gave a wrong result.
    #[error("{0}")]
    Wrong(String),
}

impl BenchError {
    pub(crate) fn wrong(error: impl ToString) -> Self {
        Self::Wrong(error.to_string())
    }
}

/// Returns the template's path. Without a configured template it is the one in the source tree,
/// which a measurement always has.
fn template_file(options: &Options) -> PathBuf {
    let of_the_source = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml");
    options.template_file().unwrap_or_else(of_the_source)
}

/// Measures Bodega.
#[derive(Debug, Parser)]
#[command(name = "bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure the stream's consumer: records per second and core, CPU and allocations per record,
    /// calls per batch. Compare batches with one search call per record.
    Stream(consumer::StreamArgs),
    /// Import baskets into a local system while its functions crash at random, and compare the
    /// totals with the data's.
    Import(import::ImportBenchArgs),
    /// Measure a function from its start to its first response, and warm responses. Compare it with
    /// an empty function and with one made in the usual way.
    ColdStart(cold_start::ColdStartArgs),
    /// Count the instructions of each part of a function, next to those of a function made in the
    /// usual way.
    Instructions(cold_start::parts::InstructionsArgs),
    /// Measure the wait for a response through the local gateway, next to the same routes in
    /// Node.js and Python.
    Latency(latency::LatencyArgs),
    /// Run many clients for minutes on all features of a shop. Measure errors, memory, and the time
    /// until the search finds a write.
    Load(load::LoadArgs),
    /// Read every list with 100,000 items to its end, and measure the cost of a page from the first
    /// to the last.
    Lists(lists::ListsArgs),
    /// Measure builds of the workspace, from an empty folder and after a change.
    Builds(builds::BuildsArgs),
    /// Measure each route with more and more items in the table. Requests and capacity must stay
    /// the same.
    Growth(growth::GrowthArgs),
    /// Let many clients order the same product. Measure which share of one item's maximum rate
    /// remains, and the responses.
    Contention(contention::ContentionArgs),
    /// Import a history into a local system, replay it twice in random order, and compare the shop
    /// with its table.
    Replay(replay::ReplayArgs),
    /// Run the backends of a consumer until standard input ends.
    #[command(hide = true)]
    Backends {
        /// Fill the table with the items of this many records.
        #[arg(long)]
        records: u64,
    },
    /// Run the consumer of a measurement.
    #[command(hide = true)]
    Taker(consumer::TakerArgs),
    /// Run one function of a local system.
    #[command(hide = true)]
    Function {
        /// The function's name in the template.
        logical_id: String,
    },
}

/// Runs the program with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    let command = Cli::parse().command;
    let measured = match command {
        Command::Stream(args) => many_threads().and_then(|runtime| runtime.block_on(consumer::run(args))),
        Command::Import(args) => many_threads().and_then(|runtime| runtime.block_on(import::run(args))),
        Command::ColdStart(args) => many_threads().and_then(|runtime| runtime.block_on(cold_start::run(args))),
        Command::Instructions(args) => {
            many_threads().and_then(|runtime| runtime.block_on(cold_start::parts::run(args)))
        }
        Command::Latency(args) => many_threads().and_then(|runtime| runtime.block_on(latency::run(args))),
        Command::Load(args) => many_threads().and_then(|runtime| runtime.block_on(load::run(args))),
        Command::Lists(args) => many_threads().and_then(|runtime| runtime.block_on(lists::run(args))),
        Command::Builds(args) => builds::run(&args),
        Command::Growth(args) => many_threads().and_then(|runtime| runtime.block_on(growth::run(args))),
        Command::Contention(args) => many_threads().and_then(|runtime| runtime.block_on(contention::run(args))),
        Command::Replay(args) => many_threads().and_then(|runtime| runtime.block_on(replay::run(args))),
        Command::Backends { records } => many_threads().and_then(|runtime| runtime.block_on(consumer::serve(records))),
        Command::Taker(args) => one_thread().and_then(|runtime| runtime.block_on(consumer::take(args))),
        Command::Function { logical_id } => one_thread()
            .and_then(|runtime| runtime.block_on(local::functions::run(&logical_id)).map_err(BenchError::wrong)),
    };
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns a runtime with one thread, as a deployed function has.
fn one_thread() -> Result<Runtime, BenchError> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

fn many_threads() -> Result<Runtime, BenchError> {
    Ok(Builder::new_multi_thread().enable_all().build()?)
}
