//! `ops search`: compares the search index with the table, repairs it, and rebuilds it.

mod compare;
mod documents;
mod drift;
mod rebuild;
mod reconcile;
mod upkeep;
mod write;

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use search_index::{Collection, Limits, SearchClient};

pub(crate) use documents::expected;
pub use drift::{Drift, NamedDifference};
pub use rebuild::{RebuildOptions, Rebuilt, Start, abandon, rebuild};
pub use reconcile::{ReconcileOptions, Reconciled, reconcile};
pub use upkeep::{probe, prune, purge, status};

use crate::error::OpsError;
use crate::items::Items;
use crate::outcome::Outcome;

/// The commands of `ops search`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the indices and the numbers of their documents.
    Status,
    /// Fill a new index from the table while the old one stays in use, then swap them in one step.
    ///
    /// The old index is kept until `prune` or the next rebuild.
    Rebuild(RebuildArgs),
    /// Compare index and table in both directions, and repair each difference.
    Reconcile(ReconcileArgs),
    /// Delete tombstones that no replay can need any more.
    Purge {
        /// Delete tombstones older than this. The default is also the minimum: the time for which a
        /// stream record can be replayed, and a reserve.
        #[arg(long, value_name = "DAYS")]
        older_than: Option<u32>,
    },
    /// Delete the indices that earlier rebuilds left behind.
    Prune,
    /// Test which features the engine supports.
    Probe,
}

/// The collections to work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Which {
    /// Products.
    Products,
    /// Orders.
    Orders,
    /// All collections.
    All,
}

impl Which {
    fn collections(self) -> Vec<Collection> {
        match self {
            Self::Products => vec![Collection::Products],
            Self::Orders => vec![Collection::Orders],
            Self::All => Collection::ALL.to_vec(),
        }
    }
}

/// The options of a rebuild.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ops search rebuild\n  ops search rebuild --collection products --rate 500\n  ops search \
                        rebuild --resume\n  ops search rebuild --restored\n\nWhile a rebuild is unfinished, a second \
                        one ends with status 2: resume or abandon the first."
)]
pub struct RebuildArgs {
    /// The collections to rebuild.
    #[arg(long, value_enum, default_value_t = Which::All)]
    collection: Which,
    /// The maximum number of table items to read per second, of every kind.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Resume a rebuild that was stopped. Documents that its index already has are not written
    /// again.
    #[arg(long, conflicts_with = "abandon")]
    resume: bool,
    /// Abandon a rebuild that was stopped, and delete its index.
    #[arg(long)]
    abandon: bool,
    /// Copy nothing from the old index, not even the tombstones of removed items. Use this option
    /// if the table was restored from a backup.
    #[arg(long, conflicts_with = "abandon")]
    restored: bool,
}

/// The options of a reconciliation.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ops search reconcile --dry-run\n  ops search reconcile --collection orders --rate \
                        500\n\nRun it again after a minute if a document that somebody deleted is NOT repaired."
)]
pub struct ReconcileArgs {
    /// The collections to compare.
    #[arg(long, value_enum, default_value_t = Which::All)]
    collection: Which,
    /// The maximum number of table items to read per second, of every kind.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Repair nothing. The exit status is 1 if there is any difference.
    #[arg(long)]
    dry_run: bool,
    /// How long a change may take to reach the index before it counts as a difference.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=300))]
    settle: u64,
}

pub(crate) async fn run(command: Command) -> Result<Outcome, OpsError> {
    let client = SearchClient::from_env()?;
    match command {
        Command::Status => status(&client).await,
        Command::Rebuild(args) => {
            let collections = args.collection.collections();
            if args.abandon {
                return abandon(&client, &collections).await;
            }
            let start = if args.resume { Start::Resume } else { Start::New };
            // The functions that write to the index have the same limits.
            let longest_call = Limits::default().total;
            let options = RebuildOptions { collections, rate: args.rate, start, restored: args.restored, longest_call };
            let rebuilt = rebuild(&client, &Items::from_env().await?, &options).await?;
            Ok(Outcome::new(&rebuilt, rebuilt.is_complete()))
        }
        Command::Reconcile(args) => {
            let options = ReconcileOptions {
                collections: args.collection.collections(),
                rate: args.rate,
                dry_run: args.dry_run,
                settle: Duration::from_secs(args.settle),
            };
            let reconciled = reconcile(&client, &Items::from_env().await?, &options).await?;
            Ok(Outcome::new(&reconciled, reconciled.is_clean()))
        }
        Command::Purge { older_than } => purge(&client, older_than).await,
        Command::Prune => prune(&client).await,
        Command::Probe => probe(&client).await,
    }
}
