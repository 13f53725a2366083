//! `ops redrive`: lists, shows, replays and discards stream records and batches that were set
//! aside.
//!
//! The bucket of failed records contains records that a consumer could not process (`quarantine/`),
//! and batches that Lambda gave up (`aws/lambda/`). The objects contain the complete records, so
//! the consumer's own code replays them. A record is replayed to the sinks that have not processed
//! it. A batch is replayed to all sinks. The search index gets the present state of the items that
//! the records name ([`Present`]).
//!
//! An object is deleted only when its sinks have stored the effects of every record in it. A record
//! whose effects are stored is called durable.

mod objects;
mod present;
mod replay;
mod show;

use std::io::{IsTerminal as _, stdin};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use storage::objects::ObjectStore;

pub use objects::{FailedObject, Images, names};
pub use present::Present;
pub use replay::{FromEnvironment, Replayed, Sinks, replay, replay_with};
pub use show::{Discarded, ObjectList, list, show};

use crate::error::OpsError;
use crate::item;
use crate::outcome::Outcome;
use crate::progress::Progress;

const CONCURRENCY: usize = 8;

/// The commands of `ops redrive`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List everything that was set aside, with the kind and the reason.
    ///
    /// docs/operations/failed-records.md explains each kind.
    List,
    /// Show a complete object: the record or batch, and the reason.
    Show {
        /// The name of the object, as `list` prints it.
        name: String,
    },
    /// Process records again. Delete each object whose records were all processed.
    ///
    /// A record is replayed to the sinks that have not processed it, and a batch that Lambda gave
    /// up to all sinks. The search index gets the present state of the item.
    #[command(after_help = "Examples:\n  ops redrive replay --all\n  ops redrive replay \
                            quarantine/2026-11-21/0f3c-search.json\n  ops redrive replay --old old.json \
                            quarantine/2026-11-21/0f3c-bus.json")]
    Replay {
        /// The objects to replay.
        #[command(flatten)]
        chosen: Chosen,
        /// Replay one record with this old image instead of its own, which cannot be read. The file
        /// has the corrected item in DynamoDB's JSON. The record's events are then published.
        #[arg(long, value_name = "FILE", conflicts_with = "all")]
        old: Option<PathBuf>,
        /// Replay one record with this new image instead of its own.
        #[arg(long, value_name = "FILE", conflicts_with = "all")]
        new: Option<PathBuf>,
    },
    /// Delete objects without processing their records.
    Discard {
        /// The objects to delete.
        #[command(flatten)]
        chosen: Chosen,
        /// Delete without a confirmation.
        #[arg(long)]
        yes: bool,
    },
}

/// The choice of objects.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Chosen {
    /// All objects.
    #[arg(long)]
    all: bool,
    /// Names, as `list` prints them.
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
        Command::Replay { chosen, old, new } => {
            let names = chosen.names(&store).await?;
            let images = Images {
                old: old.map(|path| item::parse(&path)).transpose()?,
                new: new.map(|path| item::parse(&path)).transpose()?,
            };
            let replayed = replay_with(&store, &FromEnvironment::new().await?, &names, &images).await?;
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

fn confirmed(objects: usize) -> Result<bool, OpsError> {
    if !stdin().is_terminal() {
        return Err(OpsError::Usage("there is no terminal to confirm at: use --yes".to_owned()));
    }
    eprint!("Delete {objects} objects for ever, without replaying their records? Type yes: ");
    let mut answer = String::new();
    stdin().read_line(&mut answer).map_err(OpsError::failed)?;
    Ok(answer.trim() == "yes")
}

/// Deletes objects without processing their records.
///
/// # Errors
/// [`OpsError::Usage`] for a name that is not the name of a record or batch that was set aside.
/// Then nothing is deleted.
pub async fn discard(store: &ObjectStore, names: &[String]) -> Result<Discarded, OpsError> {
    names.iter().try_for_each(|name| objects::check(name))?;
    let bar = Progress::new("discard", u64::try_from(names.len()).ok());
    let gone = stream::iter(names)
        .map(|name| async {
            let is_there = objects::is_there(store, name).await?;
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
