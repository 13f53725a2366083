//! `ops analytics`: turns an export into tables that SQL engines query.
//!
//! The command reads only the files of an export, so it uses no capacity of the shop's table. Each
//! table is a folder of compressed JSON lines. The tables of orders have a folder for each day:
//! `orders/day=2017-01-01/data.ndjson.gz`. Athena reads the tables from S3 with the definitions of
//! `docs/analytics.yaml`.
//!
//! The rows have the ids of customers and no other personal data.

mod partitions;
mod rows;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::Args;
use key_schema::entity::AnyEntity;
use key_schema::item::FromItem as _;
use serde::Serialize;

use crate::error::OpsError;
use crate::export::Export;
use crate::outcome::Outcome;
use crate::progress::Progress;
use partitions::Partitions;

/// The arguments of `ops analytics`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ops export --to shop-2026-11-25\n  ops analytics shop-2026-11-25 --to tables\n  \
                        aws s3 sync tables s3://<AnalyticsBucket>/tables --delete\n\nThe folder `tables` is replaced \
                        when the new tables are complete.")]
pub struct AnalyticsArgs {
    /// The folder of a complete export.
    export: PathBuf,
    /// The folder of the tables.
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
}

pub(crate) fn run(args: &AnalyticsArgs) -> Result<Outcome, OpsError> {
    let tables = tables(&Export::open(args.export.clone())?, &args.to)?;
    Ok(Outcome::new(&tables, tables.unreadable == 0))
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tables {
    pub rows: BTreeMap<&'static str, u64>,
    /// The number of partitions. A table without days is one partition.
    pub partitions: usize,
    pub unreadable: u64,
}

impl fmt::Display for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (table, count) in &self.rows {
            writeln!(f, "{count:>10}  {table}")?;
        }
        writeln!(f, "{} partitions", self.partitions)?;
        if self.unreadable > 0 {
            writeln!(f, "NOT IN THE TABLES: {} items cannot be read: see `ops verify`", self.unreadable)?;
        }
        Ok(())
    }
}

/// Writes the tables of an export. At the end, the new folder replaces an earlier folder of tables.
///
/// # Errors
/// [`OpsError::Usage`] when the folder exists and is not a folder of tables.
pub fn tables(export: &Export, to: &Path) -> Result<Tables, OpsError> {
    let progress = Progress::new("analytics", Some(export.counts().values().sum()));
    let mut partitions = Partitions::begin(to)?;
    let mut result = Tables::default();
    for line in export.lines() {
        progress.step(1);
        let row = line?.item.and_then(|item| AnyEntity::from_item(item).ok()).map(|entity| rows::row(&entity));
        match row {
            Some(Ok(Some(row))) => {
                *result.rows.entry(row.table).or_default() += 1;
                partitions.add(&row)?;
            }
            Some(Ok(None)) => {}
            Some(Err(_)) | None => result.unreadable += 1,
        }
    }
    result.partitions = partitions.complete()?;
    Ok(result)
}
