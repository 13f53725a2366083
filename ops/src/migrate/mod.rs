//! `ops migrate`: brings stored items to the present form of their entities.
//!
//! Readers accept both forms, and each write of an old item upgrades it. A migration reaches the
//! items that no request writes. A later release can then rely on the new form.
//!
//! A migration is code ([`Migration`]): a name, the entities that it reads, and a pure function.
//! The function returns the writes that bring an old item to the new form.
//!
//! - **Resumable.** The command skips items in their new form. So the table itself holds the
//!   progress, and a second run reads all items but writes nothing.
//! - **Safe in a running shop.** Each write has the condition that the items are unchanged since
//!   they were read. If a request has changed one of them, the command reads the items again.
//! - **Silent.** A migration never changes `version`, and at most increases `rev`. No subscriber
//!   gets an event, because the migrated attributes cause no event. The consumer writes nothing
//!   because of a migrated item, so there is no loop.
//!
//! # Example: another key
//!
//! `stock-partitions` ([`stocks`]) moves each stock from the partition of its product to its own. It
//! shows the parts that a migration to another key needs:
//!
//! - The schema has both keys and the transaction of the move ([`key_schema::product::old_stock`]). Each
//!   missing attribute has a default, so every reader can decode an old item.
//! - A function that does not find a stock moves it with that transaction
//!   ([`workflows::stock::found`]). So the shop sells a product before its stock is migrated. A stock
//!   that was moved costs no further request.
//! - The migration is the same move. If a function moves or changes the stock first, the table refuses
//!   the write, and the command reads the item again.
//! - Old and new item are two items for the stream: a removed one and a new one. Neither causes an
//!   event or a copy ([`stream::derived`]).
//! - `ops verify` counts old stocks, and does not report them as differences.
//!
//! The release after the first one removes all of it except the rule: an item of a released form is
//! readable, or a migration of the release before has written it.

mod catalogue;
mod run;
mod stocks;

use clap::{Args, Subcommand};
use serde::Serialize;

pub use catalogue::{ALL, Migration, Plan, Seen, find};
pub use run::{MigrateOptions, Migrated, Statuses, run as run_migration, status};

use crate::error::OpsError;
use crate::items::Items;
use crate::outcome::Outcome;

const NONE: &str = "this release has no migrations";

/// The commands of `ops migrate`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the migrations of this release.
    List,
    /// Count the items that each migration still has to write. Writes nothing.
    #[command(after_help = "Examples:\n  ops migrate status\n  ops migrate status --segments 16 --max-read-units 2000")]
    Status(Speed),
    /// Run a migration.
    #[command(after_help = "Examples:\n  ops migrate run NAME --dry-run\n  ops migrate run NAME --max-write-units \
                            200\n  ops migrate run NAME --segments 16\n\nThe command may be stopped at any time and \
                            run again.")]
    Run {
        /// The name of the migration, as `list` prints it.
        name: String,
        /// Write nothing. Count the items, and show how they would change.
        #[arg(long)]
        dry_run: bool,
        /// The maximum number of write capacity units per second.
        #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
        max_write_units: u32,
        /// How fast the command reads the table.
        #[command(flatten)]
        speed: Speed,
    },
}

/// How fast a command reads the table.
#[derive(Debug, Clone, Copy, Args)]
pub struct Speed {
    /// The number of table segments that are read in parallel.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(i32).range(1..=64))]
    pub segments: i32,
    /// The maximum number of read capacity units per second.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_read_units: u32,
}

pub(crate) async fn run(command: Command) -> Result<Outcome, OpsError> {
    match command {
        Command::List => {
            let migrations = ALL.iter().map(|migration| Listed { name: migration.name(), about: migration.about() });
            Ok(Outcome::new(&List { migrations: migrations.collect() }, true))
        }
        Command::Status(speed) => {
            let statuses = status(&Items::from_env().await?, &ALL, &MigrateOptions::new(speed)).await?;
            Ok(Outcome::new(&statuses, statuses.is_readable()))
        }
        Command::Run { name, dry_run, max_write_units, speed } => {
            let migration = find(&name).ok_or_else(|| {
                let hint = template::near::hint(&name, ALL.iter().map(|migration| migration.name()));
                OpsError::Usage(format!("there is no migration {name}: `ops migrate list` lists the migrations{hint}"))
            })?;
            let options =
                MigrateOptions { dry_run, max_write_units: Some(max_write_units), ..MigrateOptions::new(speed) };
            let migrated = run_migration(&Items::from_env().await?, migration, &options).await?;
            Ok(Outcome::new(&migrated, migrated.is_complete()))
        }
    }
}

#[derive(Debug, Serialize)]
struct List {
    migrations: Vec<Listed>,
}

#[derive(Debug, Serialize)]
struct Listed {
    name: &'static str,
    about: &'static str,
}

impl std::fmt::Display for List {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.migrations.is_empty() {
            writeln!(f, "{NONE}")?;
        }
        for Listed { name, about } in &self.migrations {
            writeln!(f, "{name:<16}  {about}")?;
        }
        Ok(())
    }
}
