use std::fmt;
use std::time::Duration;

use search_index::{Collection, SearchClient};
use serde::Serialize;

use super::compare::Comparison;
use super::drift::Drift;
use crate::error::OpsError;
use crate::items::Items;
use crate::pace::Pace;

#[derive(Debug, Clone)]
pub struct ReconcileOptions {
    pub collections: Vec<Collection>,
    /// The maximum number of table items to read per second, or `None` for no limit.
    pub rate: Option<u32>,
    pub dry_run: bool,
    /// How long a change may take to reach the index before it counts as a difference.
    pub settle: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reconciled {
    pub dry_run: bool,
    pub collections: Vec<ReconciledCollection>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReconciledCollection {
    pub collection: &'static str,
    pub items: u64,
    pub documents: u64,
    /// The number of changes that had not reached the index yet.
    pub in_flight: u64,
    /// The differences, repaired where possible unless this was a dry run.
    pub drift: Drift,
}

impl Reconciled {
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let left = |drift: &Drift| if self.dry_run { !drift.is_none() } else { drift.beyond_repair() > 0 };
        !self.collections.iter().any(|collection| left(&collection.drift))
    }
}

impl fmt::Display for Reconciled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ReconciledCollection { collection, items, documents, in_flight, drift } in &self.collections {
            writeln!(f, "{collection}: {items} items, {documents} documents, {in_flight} changes on their way")?;
            let what =
                if self.dry_run { "differences, not repaired" } else { "differences, repaired where that is possible" };
            writeln!(f, "  {what}: {drift}")?;
            for (field, count) in &drift.fields {
                writeln!(f, "    in {field}: {count}")?;
            }
            drift.lines(f)?;
            if drift.ahead > 0 {
                writeln!(f, "  documents ahead of the table need `ops search rebuild --restored`")?;
            }
            if drift.unrepaired > 0 {
                writeln!(
                    f,
                    "  the engine refused repairs as too old: for a minute it remembers the version of a deleted \
                    document; run the command again after that"
                )?;
            }
        }
        Ok(())
    }
}

/// Compares the table in both directions with the index that searches read. Writes repairs to every
/// index that receives changes.
pub async fn reconcile(
    client: &SearchClient,
    items: &Items,
    options: &ReconcileOptions,
) -> Result<Reconciled, OpsError> {
    let pace = Pace::new(options.rate);
    let mut collections = Vec::new();
    for collection in &options.collections {
        let comparison = Comparison {
            client,
            items,
            collection: *collection,
            index: None,
            repair: !options.dry_run,
            settle: options.settle,
            pace: &pace,
        };
        let compared = comparison.run().await?;
        collections.push(ReconciledCollection {
            collection: collection.name(),
            items: compared.items,
            documents: compared.documents,
            in_flight: compared.in_flight,
            drift: compared.drift,
        });
    }
    Ok(Reconciled { dry_run: options.dry_run, collections })
}
