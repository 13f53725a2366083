use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio::runtime::Builder;

use crate::error::OpsError;
use crate::outcome::Outcome;
use crate::{
    analytics, archive, capacity, cost, customer, doctor, explain, export, feed, hot, import, item, local, migrate,
    orders, payments, prewarm, redrive, rotate, search, shards, verify,
};

/// Operate a running shop: its table, its search index, the records that were set aside, and the
/// expired items.
///
/// Reads the same environment variables as the functions. Exit status: 0 done, 1 something is wrong
/// or unfinished, 2 usage error, 3 a service cannot be reached, 130 stopped with Ctrl-C.
#[derive(Debug, Parser)]
#[command(name = "ops", version)]
struct Cli {
    /// Use the environment of the local system at this address, such as http://127.0.0.1:3000.
    #[arg(long, global = true, value_name = "URL", value_parser = local::address)]
    local: Option<String>,
    /// Print the summary as JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare the search index with the table, repair it, or rebuild it.
    #[command(subcommand)]
    Search(search::Command),
    /// List, show, replay or discard stream records and batches that were set aside.
    #[command(subcommand)]
    Redrive(redrive::Command),
    /// List, show or restore items that DynamoDB removed because they expired.
    #[command(subcommand)]
    Archive(archive::Command),
    /// Show an order in every state, or retire closed orders.
    #[command(subcommand, visible_alias = "order")]
    Orders(orders::Command),
    /// Compare the payments of a day with the payment provider, and repair differences.
    #[command(subcommand)]
    Payments(payments::Command),
    /// Write all data of a customer to a file.
    #[command(subcommand)]
    Customer(customer::Command),
    /// Show, write or delete one item by its key.
    #[command(subcommand)]
    Item(item::Command),
    /// Check every invariant of the table, and repair differences.
    Verify(verify::VerifyArgs),
    /// Bring stored items to the present form of their entities.
    #[command(subcommand)]
    Migrate(migrate::Command),
    /// Write the items of the table to files.
    Export(export::ExportArgs),
    Feed(feed::FeedArgs),
    /// Write the items of an export to a table.
    Import(import::ImportArgs),
    /// Turn an export into partitioned tables for Athena and other query engines.
    Analytics(analytics::AnalyticsArgs),
    Capacity(capacity::CapacityArgs),
    Cost(cost::CostArgs),
    Doctor(doctor::DoctorArgs),
    Explain(explain::ExplainArgs),
    Hot(hot::HotArgs),
    Prewarm(prewarm::PrewarmArgs),
    Rotate(rotate::RotateArgs),
    Shards(shards::ShardsArgs),
}

#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // The error is ignored: it means that the output is closed.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let runtime = match Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&OpsError::failed(error)),
    };
    if let Some(url) = &cli.local {
        let arguments = without_local(std::env::args().skip(1));
        return runtime.block_on(local::run_again(url, &arguments)).unwrap_or_else(|error| refuse(&error));
    }
    match runtime.block_on(run(cli.command)) {
        Ok(outcome) => {
            say(&outcome.render(cli.json));
            ExitCode::from(outcome.exit_code())
        }
        Err(error) => refuse(&error),
    }
}

async fn run(command: Command) -> Result<Outcome, OpsError> {
    match command {
        Command::Search(command) => search::run(command).await,
        Command::Redrive(command) => redrive::run(command).await,
        Command::Archive(command) => archive::run(command).await,
        Command::Orders(command) => orders::run(command).await,
        Command::Payments(command) => payments::run(command).await,
        Command::Customer(command) => customer::run(command).await,
        Command::Item(command) => item::run(command).await,
        Command::Verify(args) => verify::run(args).await,
        Command::Migrate(command) => migrate::run(command).await,
        Command::Export(args) => export::run(args).await,
        Command::Feed(args) => feed::run(args).await,
        Command::Import(args) => import::run(args).await,
        Command::Analytics(args) => analytics::run(&args),
        Command::Capacity(args) => capacity::run(args).await,
        Command::Cost(args) => cost::run(&args),
        Command::Doctor(args) => doctor::run(args).await,
        Command::Hot(args) => hot::run(args).await,
        Command::Prewarm(args) => prewarm::run(args).await,
        Command::Rotate(args) => rotate::run(args).await,
        Command::Shards(args) => shards::run(args).await,
        Command::Explain(args) => explain::run(&args),
    }
}

fn without_local(arguments: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut is_value = false;
    for argument in arguments {
        if std::mem::take(&mut is_value) || argument.starts_with("--local=") {
            continue;
        }
        is_value = argument == "--local";
        if !is_value {
            kept.push(argument);
        }
    }
    kept
}

fn refuse(error: &OpsError) -> ExitCode {
    eprintln!("ops: {error}");
    ExitCode::from(error.exit_code())
}

/// Writes a line to standard output. Errors are ignored, because the reader of a pipe may have
/// closed it.
fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_restarted_process_gets_all_arguments_except_local() {
        let given = ["search", "--local", "http://x", "status", "--local=http://y", "--json"].map(str::to_owned);
        assert_eq!(without_local(given), ["search", "status", "--json"]);
    }
}
