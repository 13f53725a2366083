//! Measurements of Bodega. Most measurements print a table, and write JSON if an option names a
//! file. A slow result does not fail a measurement, unless it exceeds a generous timeout.
//!
//! ```sh
//! cargo run --release -p bodega-bench -- growth
//! ```

macro_rules! wrong {
    ($($text:tt)*) => { $crate::BenchError(format_args!($($text)*).to_string()) };
}

mod cold_start;
mod contention;
mod examples;
mod growth;
pub mod import;
pub mod latency;
mod load;
mod loaded;
pub mod replay;
mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use local::Options;
use tokio::runtime::Builder;

/// The reason why a measurement failed: the text of an error.
#[derive(Debug)]
pub struct BenchError(String);

impl std::fmt::Display for BenchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for BenchError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Measurements run only in a source tree.
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
    /// Import baskets into a local system while the orders function crashes at random. Compare the
    /// totals with those of the files, and check every invariant of the table.
    Import(import::ImportBenchArgs),
    /// Measure a function from its start to its first response, and warm responses. Compare it with
    /// an empty function, and with a function on lambda_http and the SDK's default features.
    ColdStart(cold_start::ColdStartArgs),
    /// Measure the wait for a response through the local gateway, next to the same routes in
    /// Node.js and Python.
    Latency(latency::LatencyArgs),
    /// Let many clients read, search, fill carts, and place and cancel orders for minutes. Measure
    /// errors, memory, and the time until the search finds a new product.
    Load(load::LoadArgs),
    /// Measure the lists, most other reads and the main writes with more and more items in the
    /// table. A route's requests to the table and their capacity must stay the same.
    Growth(growth::GrowthArgs),
    /// Let many clients order the same product, in simulated time, in a table with DynamoDB's limits.
    /// Measure the rate and the latency of orders by shards of the stock and by clients. Measure a sale,
    /// and how far the consumer of the stream falls behind.
    Contention(contention::ContentionArgs),
    /// Import baskets into a local system. After the consumers have processed its stream, give them
    /// the stream's records twice more, in random order. Compare the search index, the events and
    /// the sales with the table.
    Replay(replay::ReplayArgs),
    /// Run one function of a local system.
    #[command(hide = true)]
    Function {
        /// The function's name in the template.
        logical_id: String,
    },
}

impl Command {
    async fn run(self) -> Result<(), BenchError> {
        match self {
            Self::Import(args) => import::run(args).await,
            Self::ColdStart(args) => cold_start::run(args).await,
            Self::Latency(args) => latency::run(args).await,
            Self::Load(args) => load::run(args).await,
            Self::Growth(args) => growth::run(args).await,
            Self::Contention(args) => contention::run(args).await,
            Self::Replay(args) => replay::run(args).await,
            Self::Function { logical_id } => Ok(local::functions::run(&logical_id).await?),
        }
    }
}

#[must_use]
pub fn main() -> ExitCode {
    let command = Cli::parse().command;
    // A function has one thread, as when it is deployed.
    let mut runtime = match command {
        Command::Function { .. } => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    let runtime = runtime.enable_all().build().map_err(BenchError::from);
    match runtime.and_then(|runtime| runtime.block_on(command.run())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
