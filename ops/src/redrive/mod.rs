//! `ops redrive`: stream records and batches that were set aside, looked at, replayed and discarded.
//!
//! In the bucket of failed records lie records that a sink refused (`quarantine/`, one object a record and consumer) and batches that Lambda gave up
//! (`aws/lambda/`). Both hold the records whole, so both can be replayed: through the consumer's own code, a record over the sinks that have
//! not taken it, a batch over all. The search index is the exception: of the records only the keys count there ([`Present`]). An object goes when every
//! record in it is durable, and not before.

mod kept;
mod present;
mod replay;
mod show;

use std::io::{IsTerminal as _, stdin};

use clap::{Args, Subcommand};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use objects::ObjectStore;

pub use kept::{Kept, names};
pub use present::Present;
pub use replay::{FromEnvironment, Replayed, Sinks, replay};
pub use show::{Discarded, Listed, list, show};

use crate::error::OpsError;
use crate::outcome::Outcome;
use crate::progress::Progress;

/// Objects that are deleted at once.
const CONCURRENCY: usize = 8;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List everything that was set aside.
    List,
    /// Show an object whole: the record or batch, and why.
    Show {
        /// Its name, as `list` gives it.
        name: String,
    },
    /// Take records once more; objects whose records are all durable then are deleted.
    Replay(Chosen),
    /// Delete objects without taking their records.
    Discard {
        /// Which.
        #[command(flatten)]
        chosen: Chosen,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
}

/// Which objects.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Chosen {
    /// Everything.
    #[arg(long)]
    all: bool,
    /// Names, as `list` gives them.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

impl Chosen {
    async fn names(self, store: &ObjectStore) -> Result<Vec<String>, OpsError> {
        if self.all { names(store).await } else { Ok(self.names) }
    }
}

pub(crate) async fn run(command: Command) -> Result<Outcome, OpsError> {
    let store = ObjectStore::from_env("FAILED_RECORDS_BUCKET")?;
    match command {
        Command::List => {
            let listed = list(&store).await?;
            Ok(Outcome::new(&listed, true))
        }
        Command::Show { name } => show(&store, &name).await,
        Command::Replay(chosen) => {
            let names = chosen.names(&store).await?;
            let replayed = replay(&store, &FromEnvironment::new().await?, &names).await?;
            Ok(Outcome::new(&replayed, replayed.is_complete()))
        }
        Command::Discard { chosen, yes } => {
            let names = chosen.names(&store).await?;
            if !yes && !confirmed(names.len())? {
                return Ok(Outcome::new(&Discarded::default(), names.is_empty()));
            }
            let discarded = discard(&store, &names).await?;
            Ok(Outcome::new(&discarded, discarded.gone.is_empty()))
        }
    }
}

/// Asks whoever sits at the terminal.
fn confirmed(objects: usize) -> Result<bool, OpsError> {
    if !stdin().is_terminal() {
        return Err(OpsError::Usage("nobody can be asked here: give --yes".to_owned()));
    }
    eprint!("Delete {objects} objects for good, without taking their records? Type yes: ");
    let mut answer = String::new();
    stdin().read_line(&mut answer).map_err(OpsError::failed)?;
    Ok(answer.trim() == "yes")
}

/// Deletes objects without taking their records.
///
/// # Errors
/// [`OpsError::Usage`] for a name that is of something else; then nothing is deleted.
pub async fn discard(store: &ObjectStore, names: &[String]) -> Result<Discarded, OpsError> {
    names.iter().try_for_each(|name| kept::check(name))?;
    let bar = Progress::new("discard", u64::try_from(names.len()).ok());
    let gone = stream::iter(names)
        .map(|name| async {
            let is_there = kept::is_there(store, name).await?;
            store.delete(name).await?;
            bar.step(1);
            Ok::<_, OpsError>((!is_there).then(|| name.clone()))
        })
        .buffered(CONCURRENCY)
        .try_collect::<Vec<_>>()
        .await?;
    let gone: Vec<String> = gone.into_iter().flatten().collect();
    Ok(Discarded { objects: names.len() - gone.len(), gone })
}
