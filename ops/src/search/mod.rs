//! `ops search`: the search index, compared with the table, repaired, and built anew.

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
pub use drift::Drift;
pub use rebuild::{RebuildOptions, Rebuilt, Start, abandon, rebuild};
pub use reconcile::{ReconcileOptions, Reconciled, reconcile};
pub use upkeep::{probe, prune, purge, status};

use crate::error::OpsError;
use crate::items::Items;
use crate::outcome::Outcome;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Which indices there are, and how many documents they hold.
    Status,
    /// Fill a new index from the table while the old one goes on, and swap them in one step.
    ///
    /// The old index is kept until `prune` or the next rebuild.
    Rebuild(RebuildArgs),
    /// Compare index and table both ways and repair each difference.
    Reconcile(ReconcileArgs),
    /// Delete tombstones that no replay can need any more.
    Purge {
        /// Those that are older than this; not less than the longest possible replay, which is the default.
        #[arg(long, value_name = "DAYS")]
        older_than: Option<u32>,
    },
    /// Delete the indices that are left over from rebuilds.
    Prune,
    /// Find out by trying what the engine supports.
    Probe,
}

/// Which collections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Which {
    /// Products.
    Products,
    /// Orders.
    Orders,
    /// All of them.
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

/// What a rebuild is told.
#[derive(Debug, Args)]
pub struct RebuildArgs {
    /// What to rebuild.
    #[arg(long, value_enum, default_value_t = Which::All)]
    collection: Which,
    /// Items of the table read a second, at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Go on with a rebuild that was stopped: what its index holds already is not written again.
    #[arg(long, conflicts_with = "abandon")]
    resume: bool,
    /// Give up a rebuild that was stopped, and delete its index.
    #[arg(long)]
    abandon: bool,
    /// The table was restored from a backup: take nothing over from the old index, not even what it knows to be removed.
    #[arg(long, conflicts_with = "abandon")]
    restored: bool,
}

/// What a reconciliation is told.
#[derive(Debug, Args)]
pub struct ReconcileArgs {
    /// What to compare.
    #[arg(long, value_enum, default_value_t = Which::All)]
    collection: Which,
    /// Items of the table read a second, at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Repair nothing; exit status 1 if there is anything to repair.
    #[arg(long)]
    dry_run: bool,
    /// How long a change may be on its way to the index before it counts as a difference.
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
            // The functions have the same limits.
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
