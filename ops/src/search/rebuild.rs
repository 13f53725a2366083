//! Rebuilds an index while it is in use.
//!
//! Searches read the old index until the new one is complete, so no search sees an empty or
//! incomplete index. Changes go to both indices from the beginning, so the swap loses no change.
//! `search_index` explains why these steps suffice:
//!
//! 1. The rebuild creates the new index. From then on, every change also goes to the new index.
//! 2. It reads the table strongly and writes every item of the collection to the new index under
//!    the item's `rev`.
//! 3. It copies the tombstones, so that a late record of a removed item does not restore its
//!    document. Before that, it waits for the end of all calls that did not know the new index.
//! 4. It compares the new index with the table in both directions and repairs it, until a
//!    comparison finds nothing.
//! 5. It moves the aliases of readers and writers to the new index in one call.
//!
//! # After a restore of the table
//!
//! A table that was restored from a backup is a new table with a new stream. The old tombstones
//! have versions of the lost table, and could hide items of the restored table. Stream records of
//! the lost table can no longer arrive. So the tombstones are not copied
//! ([`RebuildOptions::restored`]).
//!
//! # The old index
//!
//! The old index is kept until `prune` or the next rebuild. A batch that is under way at the swap
//! may still use it, and an operator can move the alias back to it.

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

/// The maximum number of comparisons of the new index with the table. In a busy shop, some changes
/// are always on their way to the index, so even the last comparison may make repairs. The new
/// index is then complete too, because the engine acknowledged the repairs.
const PASSES: u32 = 5;
/// The maximum number of attempts to copy a page of tombstones completely.
const COPIES: u32 = 10;
const TOMBSTONES: u32 = 1_000;
/// The maximum number of times that the documents are counted, one second apart. OpenSearch
/// Serverless shows a write after up to half a minute.
const COUNTS: u32 = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    New,
    /// The index of a rebuild that was stopped.
    Resume,
}

#[derive(Debug, Clone)]
pub struct RebuildOptions {
    pub collections: Vec<Collection>,
    /// The maximum number of table items to read per second, or `None` for no limit.
    pub rate: Option<u32>,
    pub start: Start,
    /// Whether the table was restored from a backup. Then the tombstones are not copied.
    pub restored: bool,
    /// The maximum duration of a call by a writer of the index.
    pub longest_call: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rebuilt {
    pub collections: Vec<RebuiltCollection>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RebuiltCollection {
    pub collection: &'static str,
    /// The index that searches read before the rebuild.
    pub old: String,
    /// The index that the rebuild filled.
    pub new: String,
    /// Whether searches read the new index now.
    pub swapped: bool,
    pub written: u64,
    pub tombstones: u64,
    pub documents: u64,
    pub passes: u32,
    /// The differences that the comparisons found, and repaired if possible.
    pub drift: Drift,
}

impl Rebuilt {
    /// Returns whether searches read the new index of every collection.
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
            writeln!(f, "  compared {passes} times; differences found: {drift}")?;
            if rebuilt.swapped {
                writeln!(f, "  searches read {new} now; {old} is kept until `ops search prune`")?;
            } else {
                writeln!(
                    f,
                    "  NOT SWAPPED, searches still read {old}; fix the differences, then use --resume or --abandon"
                )?;
            }
            drift.lines(f)?;
            if drift.unreadable > 0 {
                writeln!(f, "  the new index would lack the unreadable items: repair them, then use --resume")?;
            }
            if drift.ahead > 0 {
                writeln!(
                    f,
                    "  the index has newer versions than the table: use --abandon, then rebuild with --restored"
                )?;
            }
        }
        Ok(())
    }
}

/// Rebuilds indices.
///
/// # Errors
/// [`OpsError::Usage`] when a rebuild is in progress and `start` is not [`Start::Resume`], or when
/// there is no rebuild to resume.
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
        // The code above has checked all collections before the first rebuild begins.
        Start::New => match running.keys().next() {
            Some(collection) => {
                let name = collection.name();
                Err(OpsError::Usage(format!("a rebuild of {name} is in progress: use --resume or --abandon")))
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

/// Writes every item of the collections to the new indices, with one scan for all collections.
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
            // An item that cannot be read is skipped here. The comparison counts it.
            let page: Vec<Expected> = page.into_iter().filter_map(|item| expected(item).ok().flatten()).collect();
            for (rebuild, counter) in rebuilds.iter().zip(&counters) {
                let here = page.iter().filter(|expected| expected.operation.collection() == rebuild.collection());
                let mut operations: Vec<BulkOperation> = here.map(|expected| expected.operation.clone()).collect();
                if start == Start::Resume {
                    operations = missing(client, rebuild.new_index(), operations).await?;
                }
                let count = u64::try_from(operations.len()).unwrap_or(u64::MAX);
                // A refused document is missing from the index, so the comparison finds it.
                write(client, Target::Index(rebuild.new_index()), operations).await?;
                counter.fetch_add(count, Ordering::Relaxed);
            }
            Ok(())
        })
        .await?;
    let counts = counters.into_iter().map(AtomicU64::into_inner);
    Ok(rebuilds.iter().map(Rebuild::collection).zip(counts).collect())
}

/// Returns the operations for which the index has no document, or only an older document.
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

/// The calls of writers that looked up their indices before the new index existed. Such a call may
/// write a tombstone to the old index and not to the new one.
struct EarlierCalls {
    ended: Instant,
}

impl EarlierCalls {
    /// Covers the calls that have begun by now, each of which takes at most `longest`. A resumed
    /// rebuild also waits for these calls, because it does not know when the index was created.
    fn until_now(longest: Duration) -> Self {
        Self { ended: Instant::now() + longest }
    }

    async fn end(&self) {
        sleep_until(self.ended).await;
    }
}

async fn copy_tombstones(client: &SearchClient, rebuild: &Rebuild, earlier: &EarlierCalls) -> Result<u64, OpsError> {
    earlier.end().await;
    let (mut copied, mut after, mut attempts) = (0, None, 0);
    // The loop ends, because each page starts after the previous one and has limited attempts.
    loop {
        let page = client.copy_tombstones(rebuild, TOMBSTONES, after.as_ref()).await?;
        if page.failed > 0 {
            attempts += 1;
            if attempts == COPIES {
                let reason = format!("{} tombstones were refused", page.failed);
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

/// Compares and repairs until a comparison finds nothing.
async fn verify(client: &SearchClient, items: &Items, rebuild: &Rebuild, pace: &Pace) -> Result<Verified, OpsError> {
    let comparison = Comparison {
        client,
        items,
        collection: rebuild.collection(),
        index: Some(rebuild.new_index()),
        repair: true,
        // It costs less to write the changes that are on their way than to wait for them.
        settle: Duration::ZERO,
        pace,
    };
    let mut drift = Drift::default();
    let mut documents = 0;
    for pass in 1..=PASSES {
        let compared = comparison.run().await?;
        if compared.drift.ahead > 0 || compared.drift.unreadable > 0 {
            // Another pass would find these differences again. The new index would lack the
            // documents of unreadable items, which the old index may have.
            documents = client.count_in(rebuild.new_index(), Kind::Live).await?;
            drift.add(compared.drift);
            return Ok(Verified { accepted: false, passes: pass, documents, drift });
        }
        let is_whole = shows_all(client, rebuild.new_index(), &compared).await?;
        documents = client.count_in(rebuild.new_index(), Kind::Live).await?;
        let (found, refused) = (compared.drift.repairable(), compared.drift.refused);
        let unrepaired = compared.drift.unrepaired;
        // This pass has counted the unrepaired differences of the earlier passes again.
        drift.unrepaired = 0;
        drift.named.retain(|named| named.kind != "unrepaired");
        drift.add(compared.drift);
        if refused > 0 {
            // The engine would refuse these documents again.
            return Ok(Verified { accepted: false, passes: pass, documents, drift });
        }
        if is_whole && (found == 0 || pass == PASSES && unrepaired == 0) {
            return Ok(Verified { accepted: true, passes: pass, documents, drift });
        }
    }
    Ok(Verified { accepted: false, passes: PASSES, documents, drift })
}

/// Waits until searches find a document for every live item, except for items that were changing.
/// Returns whether searches find these documents in time.
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
    async fn a_rebuild_waits_once_for_calls_that_began_before_it() {
        let (began, longest) = (Instant::now(), Duration::from_secs(5));
        let earlier = EarlierCalls::until_now(longest);
        // The backfill takes a part of `longest`.
        sleep(Duration::from_secs(2)).await;
        for _ in 0..2 {
            earlier.end().await;
            let took = began.elapsed();
            assert!(took >= longest && took < longest + Duration::from_millis(10), "{took:?}");
        }
    }
}
