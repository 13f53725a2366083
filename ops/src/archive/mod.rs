//! `ops archive`: what expired, listed, shown and brought back.
//!
//! The stream archives every session, cart and retired order that DynamoDB removes, an order item by item. Restoring puts items back as they
//! were, in the next version, where there is nothing: whoever used the key since keeps it, and a second restore finds everything there. An
//! order comes back whole, without a time to live, its head last, so that nobody finds half of one; the stream brings it back into the search index.
//!
//! A session or a cart can be restored too and gets a new time to live. A session that somebody signed out of was never archived, so none comes back
//! against its owner's will.

mod restore;

use std::fmt;

use clap::{Args, Subcommand};
use key_schema::expiration::{self, Expiration, RemovedBy};
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use objects::ObjectStore;
use serde::Serialize;
use table::Table;

pub use restore::{Restored, restore_object, restore_order};

use crate::error::OpsError;
use crate::outcome::{Outcome, Shown};

const DAY_SECONDS: i64 = 24 * 60 * 60;
/// What the names of all archived items begin with.
const PREFIX: &str = "expired/";
/// Entries that are asked for at once.
const PAGE: usize = 100;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List what expired on a day.
    List {
        /// The day, in UTC.
        #[arg(long, value_name = "YYYY-MM-DD")]
        day: String,
    },
    /// Show an archived item.
    Show {
        /// The name of its object, as `list` gives it.
        name: String,
    },
    /// Bring archived items back: an order with everything that belongs to it, a session, a cart.
    Restore(RestoreArgs),
}

/// What is restored.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// Names of objects, as `list` gives them. Of an order that of its head, which stands for the whole order.
    #[arg(value_name = "NAME", required_unless_present = "order")]
    names: Vec<String>,
    /// An order, by its id. May be given more than once.
    #[arg(long, value_name = "ID")]
    order: Vec<String>,
    /// How long a restored session or cart lives.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=30))]
    days: u16,
}

pub(crate) async fn run(command: Command) -> Result<Outcome, OpsError> {
    match command {
        Command::List { day } => {
            let listed = list(&Table::from_env().await?, &day).await?;
            Ok(Outcome::new(&listed, true))
        }
        Command::Show { name } => {
            check(&name)?;
            show(&store().await?, &name).await
        }
        Command::Restore(args) => {
            for name in &args.names {
                check(name)?;
            }
            let (table, store) = (Table::from_env().await?, store().await?);
            let until = Instant::now().plus_seconds(i64::from(args.days) * DAY_SECONDS);
            let mut restored = Restored::default();
            for id in &args.order {
                let id: OrderId = id.parse().map_err(|error| OpsError::Usage(format!("--order {error}")))?;
                restored.add(restore_order(&table, &store, &id).await?);
            }
            for name in &args.names {
                restored.add(restore_object(&table, &store, name, until).await?);
            }
            Ok(Outcome::new(&restored, restored.is_complete()))
        }
    }
}

async fn store() -> Result<ObjectStore, OpsError> {
    Ok(ObjectStore::from_env("ARCHIVE_BUCKET")?)
}

/// What expired on a day, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// The entries of the audit.
    pub expirations: Vec<Expiration>,
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Expiration { kind, removed_at, removed_by, archive, .. } in &self.expirations {
            let removed_by = match removed_by {
                RemovedBy::Ttl => "expired",
                RemovedBy::Unknown => "unknown",
            };
            let archive = archive.as_deref().unwrap_or("not archived: whose it was is no customer");
            writeln!(f, "{removed_at}  {kind:<8}  {removed_by:<7}  {archive}")?;
        }
        write!(f, "{} expired", self.expirations.len())
    }
}

/// Lists what expired on a day (`2017-01-01`, UTC), newest first.
///
/// # Errors
/// [`OpsError::Usage`] when it is no day.
pub async fn list(table: &Table, day: &str) -> Result<Listed, OpsError> {
    if format!("{day}T00:00:00.000Z").parse::<Instant>().is_err() {
        return Err(OpsError::Usage(format!("--day {day} is no day such as 2017-01-01")));
    }
    let mut expirations = Vec::new();
    let mut after = None;
    // Ends with the day: every page begins behind the one before.
    loop {
        let page = table.query(&expiration::of_day(day)?.limit(PAGE).after(after)).await?;
        expirations.extend(page.items.into_iter().map(|entry| entry.data));
        after = page.next;
        if after.is_none() {
            return Ok(Listed { expirations });
        }
    }
}

/// Refuses a name that is of something else.
fn check(name: &str) -> Result<(), OpsError> {
    if name.starts_with(PREFIX) {
        return Ok(());
    }
    Err(OpsError::Usage(format!("{name:?} is no archived item: see `ops archive list`")))
}

async fn show(store: &ObjectStore, name: &str) -> Result<Outcome, OpsError> {
    let Some(body) = store.get(name).await? else {
        return Err(OpsError::Failed(format!("{name} is not there")));
    };
    Ok(Outcome::new(&Shown::new(&body), true))
}
