//! `ops export`: writes the items of the table to files that `ops import` restores.
//!
//! Each segment of the scan has a file. After each page the command makes the file durable, and
//! then stores the position of the scan in a second file. So after an interruption the next run
//! continues at that position, and the files contain each item of the scan exactly once.
//!
//! A scan is not a snapshot: an item that changes during the scan is in the files in its state
//! before or after the change. For the state at one point in time, restore the table from its
//! backup and export the restored table.
//!
//! A line is `{"Item": {…}}`, the format of DynamoDB's own exports to S3 ("DynamoDB table export
//! output format", Developer Guide). So DynamoDB's import from S3 reads the files, too.

mod folder;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use clap::Args;
use futures::future::try_join_all;
use serde::Serialize;

pub(crate) use folder::write_private;
pub use folder::{Export, Line, Manifest};

use crate::error::OpsError;
use crate::items::{Items, Walk};
use crate::migrate::Speed;
use crate::outcome::Outcome;
use crate::pace::Pace;
use crate::progress::Progress;
use crate::verify;

/// The arguments of `ops export`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ops export --to shop-2026-11-25\n  ops export --to orders --entity Order --entity \
                        OrderLine --entity OrderStatusEvent\n  ops export --to shop-2026-11-25 --segments 16 \
                        --max-read-units 4000\n\nThe command may be stopped at any time and run again with the same \
                        folder. The files contain personal data."
)]
pub struct ExportArgs {
    /// The folder to write. The command creates it, or continues the export of a stopped run.
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// Export only items of this entity. May be given more than once.
    #[arg(long, value_name = "NAME", value_parser = verify::entity)]
    entity: Vec<String>,
    /// How fast the command reads the table.
    #[command(flatten)]
    speed: Speed,
}

pub(crate) async fn run(args: ExportArgs) -> Result<Outcome, OpsError> {
    let ExportArgs { to, mut entity, speed } = args;
    entity.sort_unstable();
    entity.dedup();
    let items = Items::from_env().await?;
    let exported = export(&items, to, entity, speed).await?;
    Ok(Outcome::new(&exported, true))
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exported {
    pub items: BTreeMap<String, u64>,
    pub bytes: u64,
}

impl fmt::Display for Exported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (entity, count) in &self.items {
            writeln!(f, "{count:>10}  {entity}")?;
        }
        writeln!(f, "{} items exported, {} bytes", self.items.values().sum::<u64>(), self.bytes)
    }
}

/// Exports the items of these entities to a folder, or all items if the list is empty.
///
/// # Errors
/// [`OpsError::Usage`] when the folder has the export of another table or of other entities.
pub async fn export(items: &Items, to: PathBuf, entities: Vec<String>, speed: Speed) -> Result<Exported, OpsError> {
    let mut export = Export::begin(to, items.name(), &entities, speed.segments)?;
    // A continued run uses the number of segments of the first run, because the stored positions
    // belong to those segments.
    let parts = export.parts()?;
    let (units, progress) = (Pace::new(Some(speed.max_read_units)), Progress::new("export", items.estimate().await?));
    let names: Vec<&str> = entities.iter().map(String::as_str).collect();
    let walk = Walk { entities: &names, segments: export.segments(), units: &units, progress: &progress };
    let walk = &walk;
    let segments = (0..).zip(parts).map(async |(segment, mut part)| {
        if part.is_complete() {
            return Ok(part);
        }
        let after = part.next();
        let pages = items.segment(walk, segment, after.as_ref(), async |page, next| part.append(&page, next.as_ref()));
        pages.await?;
        Ok::<_, OpsError>(part)
    });
    export.complete(try_join_all(segments).await?)?;
    Ok(Exported { items: export.counts(), bytes: export.bytes() })
}
