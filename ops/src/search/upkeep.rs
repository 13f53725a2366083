use std::fmt;

use key_schema::instant::Instant;
use search_index::{Collection, IndexState, Kind, MAX_PURGE, SearchClient, TOMBSTONE_LIFETIME_DAYS};
use serde::Serialize;

use crate::error::OpsError;
use crate::outcome::Outcome;

const DAY_SECONDS: i64 = 24 * 60 * 60;

#[derive(Serialize)]
struct Status {
    indices: Vec<IndexStatus>,
}

#[derive(Serialize)]
struct IndexStatus {
    index: String,
    role: &'static str,
    documents: u64,
    tombstones: u64,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for IndexStatus { index, role, documents, tombstones } in &self.indices {
            writeln!(f, "{index}: {role}; {documents} documents, {tombstones} tombstones")?;
        }
        if self.indices.is_empty() {
            f.write_str("there are no indices")?;
        }
        Ok(())
    }
}

/// Lists the indices and the numbers of their documents. The outcome is clean if every collection
/// has an index that is both read and written.
pub async fn status(client: &SearchClient) -> Result<Outcome, OpsError> {
    let mut status = Status { indices: Vec::new() };
    let mut whole = true;
    for collection in Collection::ALL {
        let indices = client.indices(collection).await?;
        whole &= indices.iter().any(|index| index.read && index.written);
        for index in indices {
            status.indices.push(IndexStatus {
                role: role(&index),
                documents: client.count_in(&index.name, Kind::Live).await?,
                tombstones: client.count_in(&index.name, Kind::Tombstones).await?,
                index: index.name,
            });
        }
    }
    Ok(Outcome::new(&status, whole))
}

fn role(index: &IndexState) -> &'static str {
    match (index.read, index.written) {
        (true, true) => "in use",
        (true, false) => "read, NOT WRITTEN",
        (false, true) => "being filled by a rebuild",
        (false, false) => "left over",
    }
}

#[derive(Serialize)]
struct Pruned {
    deleted: Vec<String>,
    any: bool,
}

impl fmt::Display for Pruned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.any {
            return f.write_str("there are no indices under this SEARCH_INDEX_PREFIX, neither in use nor left over");
        }
        if self.deleted.is_empty() {
            return f.write_str("no index is left over");
        }
        write!(f, "deleted: {}", self.deleted.join(", "))
    }
}

/// Deletes the indices without an alias. As with [`status`], the outcome is not clean if there is
/// no index at all.
pub async fn prune(client: &SearchClient) -> Result<Outcome, OpsError> {
    let mut pruned = Pruned { deleted: Vec::new(), any: false };
    for collection in Collection::ALL {
        let indices = client.indices(collection).await?;
        pruned.any |= !indices.is_empty();
        pruned.deleted.append(&mut delete_left_over(client, indices).await?);
    }
    Ok(Outcome::new(&pruned, pruned.any))
}

/// Deletes the indices of one collection that have no alias. Returns their names.
pub(crate) async fn prune_collection(client: &SearchClient, collection: Collection) -> Result<Vec<String>, OpsError> {
    delete_left_over(client, client.indices(collection).await?).await
}

async fn delete_left_over(client: &SearchClient, indices: Vec<IndexState>) -> Result<Vec<String>, OpsError> {
    let left_over = indices.into_iter().filter(|index| index.aliases.is_empty());
    let mut deleted = Vec::new();
    for index in left_over {
        client.delete_index(&index.name).await?;
        deleted.push(index.name);
    }
    Ok(deleted)
}

#[derive(Serialize, Default)]
struct Purged {
    removed_before: String,
    purged: u64,
    replaced: u64,
    failed: u64,
}

impl fmt::Display for Purged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { removed_before, purged, replaced, failed } = self;
        write!(f, "tombstones of removals before {removed_before}: {purged} purged")?;
        if *replaced > 0 {
            write!(f, ", {replaced} overwritten meanwhile")?;
        }
        if *failed > 0 {
            write!(f, ", {failed} not deleted: run the command again")?;
        }
        Ok(())
    }
}

/// Deletes the tombstones of removals at least `older_than` days ago.
///
/// # Errors
/// [`OpsError::Usage`] if `older_than` is less than [`TOMBSTONE_LIFETIME_DAYS`].
pub async fn purge(client: &SearchClient, older_than: Option<u32>) -> Result<Outcome, OpsError> {
    let days = older_than.unwrap_or(TOMBSTONE_LIFETIME_DAYS);
    if days < TOMBSTONE_LIFETIME_DAYS {
        let message =
            format!("--older-than must be at least {TOMBSTONE_LIFETIME_DAYS}: a record may be replayed for that long");
        return Err(OpsError::Usage(message));
    }
    let removed_before = Instant::now().plus_seconds(-i64::from(days) * DAY_SECONDS).to_string();
    let mut purged = Purged { removed_before, ..Purged::default() };
    for collection in Collection::ALL {
        let mut after = None;
        // The loop ends, because every page starts after the previous one.
        loop {
            let before = &purged.removed_before;
            let page = client.purge_tombstones(collection, before, MAX_PURGE, after.as_ref()).await?;
            purged.purged += page.purged;
            purged.replaced += page.replaced;
            purged.failed += page.failed;
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
    }
    let clean = purged.failed == 0;
    Ok(Outcome::new(&purged, clean))
}

#[derive(Serialize)]
struct Probed {
    external_versions: bool,
    require_alias: bool,
    conditional_delete: bool,
    refresh: bool,
}

impl fmt::Display for Probed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |works| if works { "yes" } else { "no" };
        writeln!(f, "external versions:    {} (without them the index is not used)", word(self.external_versions))?;
        writeln!(f, "require_alias:        {}", word(self.require_alias))?;
        writeln!(f, "conditional deletion: {} (without it tombstones are not purged)", word(self.conditional_delete))?;
        write!(f, "refresh on demand:    {}", word(self.refresh))
    }
}

/// Tests which features the engine supports.
///
/// # Errors
/// [`OpsError::Failed`] when the engine does not respect versions.
pub async fn probe(client: &SearchClient) -> Result<Outcome, OpsError> {
    client.ensure_indices().await?;
    let support = client.probe().await?;
    let probed = Probed {
        external_versions: true,
        require_alias: support.require_alias,
        conditional_delete: support.conditional_delete,
        refresh: support.refresh,
    };
    Ok(Outcome::new(&probed, true))
}
