//! `ops archive`: lists, shows and restores expired items.
//!
//! When DynamoDB removes an expired session, cart or retired order, the stream's consumer archives
//! it. Each item of an order has its own object. A session or a cart is archived only if its
//! customer still has a profile that is older than the item.
//!
//! A restore writes an item only if no item has its key. So a second restore changes nothing. The
//! item's `rev` grows by two, because its removal used the next `rev`. An order is restored
//! without its addresses, because the archive has none, and without a time to live. Its head is
//! written last, so that no reader finds an incomplete order. The stream's consumer then indexes
//! the order again.
//!
//! A restored session or cart gets a new time to live. A session that its owner ended by signing
//! out was never archived, so a restore cannot revive it.

mod restore;

use std::fmt;

use clap::{Args, Subcommand};
use key_schema::expiration::{self, Expiration, RemovedBy};
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use serde::Serialize;
use storage::objects::ObjectStore;
use table::Table;

pub use restore::{Restored, restore_object, restore_order};

use crate::error::OpsError;
use crate::outcome::{Outcome, Shown};

const DAY_SECONDS: i64 = 24 * 60 * 60;
const PREFIX: &str = "expired/";
const PAGE: usize = 100;

/// The commands of `ops archive`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the items that expired on a day.
    List {
        /// The day, in UTC.
        #[arg(long, value_name = "YYYY-MM-DD")]
        day: String,
    },
    /// Show an archived item.
    Show {
        /// The name of the object, as `list` shows it.
        name: String,
    },
    /// Restore archived sessions and carts, and archived orders with all their items. The archive
    /// has no addresses.
    Restore(RestoreArgs),
}

/// The items to restore.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ops archive restore --order <ID>\n  ops archive restore --days 7 <NAME>\n\nA restore \
                        never overwrites an item. The head of an order is written last, and only if all lines exist."
)]
pub struct RestoreArgs {
    /// Names of objects, as `list` prints them. The name of an order's head restores the whole
    /// order.
    #[arg(value_name = "NAME", required_unless_present = "order")]
    names: Vec<String>,
    /// Restore the order with this id. May be given more than once.
    #[arg(long, value_name = "ID")]
    order: Vec<String>,
    /// The time to live of a restored session or cart, in days.
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

/// The items that expired on a day, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExpirationList {
    pub expirations: Vec<Expiration>,
}

impl fmt::Display for ExpirationList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Expiration { kind, removed_at, removed_by, archive, .. } in &self.expirations {
            let removed_by = match removed_by {
                RemovedBy::Ttl => "expired",
                RemovedBy::Unknown => "unknown",
            };
            let archive = archive.as_deref().unwrap_or("not archived: its customer had no older profile");
            writeln!(f, "{removed_at}  {kind:<8}  {removed_by:<7}  {archive}")?;
        }
        write!(f, "{} expired", self.expirations.len())
    }
}

/// Lists the items that expired on a day (`2017-01-01`, UTC), newest first.
///
/// # Errors
/// [`OpsError::Usage`] when `day` is no date.
pub async fn list(table: &Table, day: &str) -> Result<ExpirationList, OpsError> {
    if format!("{day}T00:00:00.000Z").parse::<Instant>().is_err() {
        return Err(OpsError::Usage(format!("--day must be a date such as 2017-01-01, not {day}")));
    }
    let mut expirations = Vec::new();
    let mut after = None;
    // The loop ends, because every page starts after the previous one.
    loop {
        let page = table.query(&expiration::of_day(day)?.limit(PAGE).after(after)).await?;
        expirations.extend(page.items.into_iter().map(|entry| entry.data));
        after = page.next;
        if after.is_none() {
            return Ok(ExpirationList { expirations });
        }
    }
}

/// Refuses a name that is not the name of an archived item.
fn check(name: &str) -> Result<(), OpsError> {
    if name.starts_with(PREFIX) {
        return Ok(());
    }
    Err(OpsError::Usage(format!("{name:?} is no archived item: see `ops archive list`")))
}

async fn show(store: &ObjectStore, name: &str) -> Result<Outcome, OpsError> {
    let Some(body) = store.get(name).await? else {
        return Err(OpsError::Failed(format!("{name} does not exist")));
    };
    Ok(Outcome::new(&Shown::new(&body), true))
}
