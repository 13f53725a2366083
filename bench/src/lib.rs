//! Measurements. Each prints a table, and writes JSON if asked to; none of them fails because something is slow.
//!
//! ```sh
//! cargo run --release -p bench -- stream
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

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A file, a pipe, a process.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The embedded search engine.
    #[error(transparent)]
    Engine(#[from] emulators::search::Error),
    /// The search client.
    #[error(transparent)]
    Search(#[from] search_index::SearchError),
    /// The search client's settings.
    #[error(transparent)]
    Config(#[from] search_index::ConfigError),
    /// What was measured did not do what it should.
    #[error("{0}")]
    Wrong(String),
}

impl BenchError {
    pub(crate) fn wrong(error: impl ToString) -> Self {
        Self::Wrong(error.to_string())
    }
}

/// The template's file. A measurement runs where its source is, so there always is one.
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
    /// The stream's consumer: records a second and core, CPU and allocations a record, calls a batch; in batches and one search call a record.
    Stream(consumer::StreamArgs),
    /// Baskets imported into a local system of its own while its functions die at random: are the totals the data's?
    Import(import::ImportBenchArgs),
    /// From a function's start to its first answer, and then warm, next to a function that does nothing and to the usual one.
    ColdStart(cold_start::ColdStartArgs),
    /// Which part of a function takes how many of its instructions, next to the usual one.
    Instructions(cold_start::parts::InstructionsArgs),
    /// What clients wait for an answer through the local gateway, next to the same routes in Node.js and Python.
    Latency(latency::LatencyArgs),
    /// Many clients for minutes on all that a shop does: errors, memory, and how soon what was written is found.
    Load(load::LoadArgs),
    /// Every list with 100,000 items, to its end: what a page of it costs, from the first to the last.
    Lists(lists::ListsArgs),
    /// What it costs to build the workspace, from nothing and after a change.
    Builds(builds::BuildsArgs),
    /// Each route with more and more items in the table: requests and capacity, which must stay the same, and latency.
    Growth(growth::GrowthArgs),
    /// Many clients that order the same product: what is left of what one item can take, and what clients see of it.
    Contention(contention::ContentionArgs),
    /// A history imported into a local system of its own and then replayed twice, in random order: does the shop equal its table?
    Replay(replay::ReplayArgs),
    /// Be what a consumer reaches, until standard input ends.
    #[command(hide = true)]
    Around {
        /// With a table of what so many records are about.
        #[arg(long)]
        records: u64,
    },
    /// Be the consumer of a measurement.
    #[command(hide = true)]
    Taker(consumer::TakerArgs),
    /// Be one function of a local system.
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
        Command::Around { records } => many_threads().and_then(|runtime| runtime.block_on(consumer::serve(records))),
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

/// As many threads as a function has.
fn one_thread() -> Result<Runtime, BenchError> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

fn many_threads() -> Result<Runtime, BenchError> {
    Ok(Builder::new_multi_thread().enable_all().build()?)
}
