//! Building an index anew while it is in use.
//!
//! Searches read the old index until the new one is whole, so nobody sees an empty or half one; changes go to both from the beginning, so nothing is
//! lost or stale at the swap. What the steps are and why they suffice is said in `search_index`; here they are taken:
//!
//! 1. the new index is made, and every change goes to it too;
//! 2. the table is read strongly, and every item that is searched for goes to the new index under its `rev`;
//! 3. tombstones are copied, so that a late record of something removed does not bring it back; not before every call has ended that did not know
//!    of the new index;
//! 4. the new index is compared with the table both ways, and repaired, until a comparison finds nothing;
//! 5. one call moves readers and writers.
//!
//! A table that was restored from a backup is a new table with a new stream: what the old one told is about items that are not, or not any
//! more. Its tombstones would keep out what the restored table holds, and no record can come that they are there for. So they are not copied then
//! ([`RebuildOptions::restored`]).
//!
//! The old index is kept until `prune` or the next rebuild: a batch under way at the swap may still ask for it, and an operator who does not like
//! what he sees can put the alias back.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use search_index::{BulkOperation, Collection, Kind, Rebuild, SearchClient};
use serde::Serialize;
use tokio::time::{Instant, sleep, sleep_until};

use super::compare::{Compared, Comparison};
use super::documents::{Expected, entity, expected};
use super::drift::Drift;
use super::upkeep::prune_collection;
use super::write::{Target, write};
use crate::error::OpsError;
use crate::items::Items;
use crate::outcome::Outcome;
use crate::pace::Pace;
use crate::progress::Progress;

/// How often the new index is compared with the table at most. In a busy shop something is always on its way, so the last comparison may have
/// repaired something: it saw every item, and what it repaired is acknowledged.
const PASSES: u32 = 5;
/// How often a page of tombstones is copied until the engine has taken all of it.
const COPIES: u32 = 10;
/// Tombstones in a page.
const TOMBSTONES: u32 = 1_000;
/// How often the count of documents is asked for, a second apart: OpenSearch Serverless shows what was written after up to half a minute.
const COUNTS: u32 = 60;

/// With which index a rebuild begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// A new one.
    New,
    /// That of a rebuild that was stopped.
    Resume,
}

/// What a rebuild is told.
#[derive(Debug, Clone)]
pub struct RebuildOptions {
    /// What to rebuild.
    pub collections: Vec<Collection>,
    /// Items of the table read a second, at most.
    pub rate: Option<u32>,
    /// With which index.
    pub start: Start,
    /// Whether the table was restored from a backup, so that tombstones are of another history, and are not copied.
    pub restored: bool,
    /// How long a call of whoever writes to the index may take.
    pub longest_call: Duration,
}

/// What came of a rebuild.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rebuilt {
    /// By collection.
    pub collections: Vec<RebuiltCollection>,
}

/// What came of the rebuild of one collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RebuiltCollection {
    /// Which.
    pub collection: &'static str,
    /// The index that was read.
    pub old: String,
    /// The index that was filled.
    pub new: String,
    /// Whether it is read now.
    pub swapped: bool,
    /// Items that were written by the backfill.
    pub written: u64,
    /// Tombstones that were copied.
    pub tombstones: u64,
    /// Documents that searches find in the new index.
    pub documents: u64,
    /// How often the new index was compared with the table.
    pub passes: u32,
    /// What these comparisons found, and repaired if possible.
    pub drift: Drift,
}

impl Rebuilt {
    /// Whether every collection is read from its new index.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.collections.iter().all(|collection| collection.swapped)
    }
}

impl fmt::Display for Rebuilt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rebuilt in &self.collections {
            let RebuiltCollection { collection, old, new, written, tombstones, documents, passes, drift, .. } = rebuilt;
            writeln!(
                f,
                "{collection}: {new} holds {documents} documents ({written} written, {tombstones} tombstones copied)"
            )?;
            writeln!(f, "  compared {passes} times; differences on the way: {drift}")?;
            if rebuilt.swapped {
                writeln!(f, "  it is read now; {old} is kept until `ops search prune`")?;
            } else {
                writeln!(f, "  NOT SWAPPED, {old} is still read; see to the differences, then --resume or --abandon")?;
            }
            if drift.ahead > 0 {
                writeln!(
                    f,
                    "  the index remembers what the table has forgotten: --abandon, then rebuild with --restored"
                )?;
            }
        }
        Ok(())
    }
}

/// Builds indices anew.
///
/// # Errors
/// [`OpsError::Usage`] when a rebuild is in progress that this one was not told to resume, or none is to be resumed.
pub async fn rebuild(client: &SearchClient, items: &Items, options: &RebuildOptions) -> Result<Rebuilt, OpsError> {
    let pace = Pace::new(options.rate);
    let rebuilds = begin(client, options).await?;
    let earlier = EarlierCalls::until_now(options.longest_call);
    let written = backfill(client, items, &rebuilds, options.start, &pace).await?;
    let mut collections = Vec::new();
    for rebuild in &rebuilds {
        let tombstones = if options.restored { 0 } else { copy_tombstones(client, rebuild, &earlier).await? };
        let verified = verify(client, items, rebuild, &pace).await?;
        if verified.accepted {
            client.finish_rebuild(rebuild).await?;
        }
        collections.push(RebuiltCollection {
            collection: rebuild.collection().name(),
            old: rebuild.old().to_owned(),
            new: rebuild.new_index().to_owned(),
            swapped: verified.accepted,
            written: written.get(&rebuild.collection()).copied().unwrap_or_default(),
            tombstones,
            documents: verified.documents,
            passes: verified.passes,
            drift: verified.drift,
        });
    }
    Ok(Rebuilt { collections })
}

/// Gives up what was begun of the rebuilds of some collections.
///
/// # Errors
/// [`OpsError`].
pub async fn abandon(client: &SearchClient, collections: &[Collection]) -> Result<Outcome, OpsError> {
    let mut abandoned = Abandoned { indices: Vec::new() };
    for collection in collections {
        if let Some(rebuild) = client.rebuild_in_progress(*collection).await? {
            client.abandon_rebuild(&rebuild).await?;
            abandoned.indices.push(rebuild.new_index().to_owned());
        }
    }
    Ok(Outcome::new(&abandoned, true))
}

#[derive(Serialize)]
struct Abandoned {
    indices: Vec<String>,
}

impl fmt::Display for Abandoned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.indices.is_empty() {
            return f.write_str("no rebuild was in progress");
        }
        write!(f, "abandoned and deleted: {}", self.indices.join(", "))
    }
}

async fn begin(client: &SearchClient, options: &RebuildOptions) -> Result<Vec<Rebuild>, OpsError> {
    let mut running = BTreeMap::new();
    for collection in &options.collections {
        if let Some(rebuild) = client.rebuild_in_progress(*collection).await? {
            running.insert(*collection, rebuild);
        }
    }
    match options.start {
        Start::Resume if running.is_empty() => Err(OpsError::Usage("there is no rebuild to resume".to_owned())),
        Start::Resume => Ok(running.into_values().collect()),
        // Asked for all collections before the first is begun.
        Start::New => match running.keys().next() {
            Some(collection) => {
                let name = collection.name();
                Err(OpsError::Usage(format!("a rebuild of {name} is in progress: give --resume or --abandon")))
            }
            None => {
                let mut rebuilds = Vec::new();
                for collection in &options.collections {
                    prune_collection(client, *collection).await?;
                    rebuilds.push(client.begin_rebuild(*collection).await?);
                }
                Ok(rebuilds)
            }
        },
    }
}

/// Brings every item of the table to the new indices: one scan for all collections.
async fn backfill(
    client: &SearchClient,
    items: &Items,
    rebuilds: &[Rebuild],
    start: Start,
    pace: &Pace,
) -> Result<BTreeMap<Collection, u64>, OpsError> {
    let entities: Vec<&str> = rebuilds.iter().map(|rebuild| entity(rebuild.collection())).collect();
    let counters: Vec<AtomicU64> = rebuilds.iter().map(|_| AtomicU64::new(0)).collect();
    let bar = Progress::new("backfill", items.estimate().await?);
    items
        .scan(&entities, pace, &bar, async |page| {
            // An item that cannot be read is counted by the comparison.
            let page: Vec<Expected> = page.into_iter().filter_map(|item| expected(item).ok().flatten()).collect();
            for (rebuild, counter) in rebuilds.iter().zip(&counters) {
                let here = page.iter().filter(|expected| expected.operation.collection() == rebuild.collection());
                let mut operations: Vec<BulkOperation> = here.map(|expected| expected.operation.clone()).collect();
                if start == Start::Resume {
                    operations = missing(client, rebuild.new_index(), operations).await?;
                }
                let count = u64::try_from(operations.len()).unwrap_or(u64::MAX);
                // What is refused is missing, and found to be by the comparison.
                write(client, Target::Index(rebuild.new_index()), operations).await?;
                counter.fetch_add(count, Ordering::Relaxed);
            }
            Ok(())
        })
        .await?;
    let counts = counters.into_iter().map(AtomicU64::into_inner);
    Ok(rebuilds.iter().map(Rebuild::collection).zip(counts).collect())
}

/// The operations that the index has neither taken nor something newer instead of.
async fn missing(
    client: &SearchClient,
    index: &str,
    operations: Vec<BulkOperation>,
) -> Result<Vec<BulkOperation>, OpsError> {
    let ids: Vec<String> = operations.iter().map(|operation| operation.document_id().to_owned()).collect();
    let stored = client.stored_in(index, &ids).await?;
    let open = operations.into_iter().zip(stored);
    let open = open.filter(|(operation, stored)| stored.as_ref().is_none_or(|stored| stored.rev < operation.rev()));
    Ok(open.map(|(operation, _)| operation).collect())
}

/// Calls that asked where to write before the new index was there. One of them may bring a tombstone to the old index alone.
struct EarlierCalls {
    ended: Instant,
}

impl EarlierCalls {
    /// Those that began by now, none of which takes longer than this. A rebuild that is resumed was begun earlier, nobody knows when.
    fn until_now(longest: Duration) -> Self {
        Self { ended: Instant::now() + longest }
    }

    /// Waits until none of them is under way.
    async fn end(&self) {
        sleep_until(self.ended).await;
    }
}

async fn copy_tombstones(client: &SearchClient, rebuild: &Rebuild, earlier: &EarlierCalls) -> Result<u64, OpsError> {
    earlier.end().await;
    let (mut copied, mut after, mut attempts) = (0, None, 0);
    // Ends with the tombstones: every page begins behind the one before, and is tried so often.
    loop {
        let page = client.copy_tombstones(rebuild, TOMBSTONES, after.as_ref()).await?;
        if page.failed > 0 {
            attempts += 1;
            if attempts == COPIES {
                let reason = format!("{} tombstones are not taken", page.failed);
                return Err(OpsError::Unreachable { what: "the search engine", reason });
            }
            continue;
        }
        copied += page.copied;
        match page.next {
            Some(next) => (after, attempts) = (Some(next), 0),
            None => return Ok(copied),
        }
    }
}

struct Verified {
    accepted: bool,
    passes: u32,
    documents: u64,
    drift: Drift,
}

/// Compares and repairs until nothing is found.
async fn verify(client: &SearchClient, items: &Items, rebuild: &Rebuild, pace: &Pace) -> Result<Verified, OpsError> {
    let comparison = Comparison {
        client,
        items,
        collection: rebuild.collection(),
        index: Some(rebuild.new_index()),
        repair: true,
        // What is on its way comes anyway; to bring it now costs less than to wait.
        settle: Duration::ZERO,
        pace,
    };
    let mut drift = Drift::default();
    let mut documents = 0;
    for pass in 1..=PASSES {
        let compared = comparison.run().await?;
        if compared.drift.ahead > 0 {
            // Versions forbid to repair them, and no comparison finds them otherwise.
            documents = client.count_in(rebuild.new_index(), Kind::Live).await?;
            drift.add(compared.drift);
            return Ok(Verified { accepted: false, passes: pass, documents, drift });
        }
        let is_whole = shows_all(client, rebuild.new_index(), &compared).await?;
        documents = client.count_in(rebuild.new_index(), Kind::Live).await?;
        let (found, refused) = (compared.drift.repairable(), compared.drift.refused);
        let unrepaired = compared.drift.unrepaired;
        // What one pass could not repair the next one finds again.
        drift.unrepaired = 0;
        drift.add(compared.drift);
        if refused > 0 {
            // They would be refused again.
            return Ok(Verified { accepted: false, passes: pass, documents, drift });
        }
        if is_whole && (found == 0 || pass == PASSES && unrepaired == 0) {
            return Ok(Verified { accepted: true, passes: pass, documents, drift });
        }
    }
    Ok(Verified { accepted: false, passes: PASSES, documents, drift })
}

/// Waits until searches would find as many documents as there are items, less those that were changing meanwhile.
async fn shows_all(client: &SearchClient, index: &str, compared: &Compared) -> Result<bool, OpsError> {
    let changing = compared.in_flight + compared.drift.repairable();
    for _ in 0..COUNTS {
        client.refresh_in(index).await?;
        if client.count_in(index, Kind::Live).await? + changing >= compared.live {
            return Ok(true);
        }
        sleep(Duration::from_secs(1)).await;
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn calls_that_began_before_a_rebuild_are_waited_for_and_not_a_second_time() {
        let (began, longest) = (Instant::now(), Duration::from_secs(5));
        let earlier = EarlierCalls::until_now(longest);
        // The backfill.
        sleep(Duration::from_secs(2)).await;
        for _ in 0..2 {
            earlier.end().await;
            let took = began.elapsed();
            assert!(took >= longest && took < longest + Duration::from_millis(10), "{took:?}");
        }
    }
}
