//! Rebuilds an index while it is in use.
//!
//! 1. [`SearchClient::begin_rebuild`] creates the next index, empty, with the current mapping. From
//!    then on every change is written to both indices.
//! 2. A backfill reads every item from the table with strong consistency and writes it to the next
//!    index ([`SearchClient::bulk_into`]). If the backfill and a change write the same document,
//!    their versions decide, and the newer version is kept.
//! 3. [`SearchClient::copy_tombstones`] copies the tombstones, because removed items are no longer
//!    in the table. After a restore of the table from a backup this step is left out.
//! 4. The new index is compared with the table ([`SearchClient::stored_in`],
//!    [`SearchClient::count_in`]).
//! 5. [`SearchClient::finish_rebuild`] moves readers and writers to the new index in one step.
//!    Every search sees either the old index or the new one.
//! 6. [`SearchClient::delete_index`] removes the old index.
//!
//! The aliases are the only state of a rebuild. After a crash [`SearchClient::rebuild_in_progress`]
//! returns the rebuild. The caller then continues with step 2, or calls
//! [`SearchClient::abandon_rebuild`].

use http::Method;
use serde_json::{Value, json};

use crate::bulk::BulkOperation;
use crate::client::{INDEX_EXISTS, SearchClient};
use crate::document::Collection;
use crate::error::SearchError;
use crate::index;
use crate::layout::IndexState;
use crate::query::SearchAfter;
use crate::stored::Kind;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuild {
    collection: Collection,
    old: String,
    new: String,
}

impl Rebuild {
    pub fn collection(&self) -> Collection {
        self.collection
    }

    /// Returns the index that searches read.
    pub fn old(&self) -> &str {
        &self.old
    }

    /// Returns the index that the rebuild fills.
    pub fn new_index(&self) -> &str {
        &self.new
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedPage {
    /// The number of tombstones that the new index now contains. It includes tombstones for which
    /// the index already had a newer write.
    pub copied: u64,
    /// The number of tombstones that the new index did not accept. The page must be copied again.
    pub failed: u64,
    /// The start of the next page, or `None` if this page is not full.
    pub next: Option<SearchAfter>,
}

impl SearchClient {
    /// Creates the next index of the collection. Every call of [`SearchClient::bulk`] that begins
    /// afterwards also writes to this index.
    ///
    /// # Errors
    /// [`SearchError::RebuildInProgress`]: see [`SearchClient::rebuild_in_progress`].
    pub async fn begin_rebuild(&self, collection: Collection) -> Result<Rebuild, SearchError> {
        let in_progress = || SearchError::RebuildInProgress { collection: collection.name() };
        self.ensure_index(collection).await?;
        let indices = self.indices(collection).await?;
        if progress(collection, &indices).is_some() {
            return Err(in_progress());
        }
        let old = indices.iter().find(|index| index.read).map(|index| index.name.clone());
        let old = old.ok_or_else(|| SearchError::Answer(format!("no index of {} is read", collection.name())))?;
        let number = indices.iter().map(|index| index.number).max().unwrap_or_default().saturating_add(1);
        let new = index::name(&self.prefix, collection, number);
        let write_alias = index::write_alias(&self.prefix, collection, number);
        let body = json!({"aliases": {write_alias: {}}});
        match self.json(Method::PUT, &format!("/{new}"), Some(&body)).await?.accepted() {
            // Either another caller has begun a rebuild, or an earlier attempt of this call has
            // begun it and the response was lost.
            Err(SearchError::Rejected { kind, .. }) if kind == INDEX_EXISTS => Err(in_progress()),
            Err(error) => Err(error),
            Ok(_) => Ok(Rebuild { collection, old, new }),
        }
    }

    /// Returns the collection's rebuild that was begun and neither finished nor abandoned.
    pub async fn rebuild_in_progress(&self, collection: Collection) -> Result<Option<Rebuild>, SearchError> {
        Ok(progress(collection, &self.layout_of(collection).await?))
    }

    /// Copies a page of tombstones from the old index to the new index. A page has `size`
    /// tombstones, at most 10,000.
    ///
    /// The caller must copy all pages, and must begin after the backfill. It must also wait for at
    /// least the writers' [`crate::Limits::total`] after [`SearchClient::begin_rebuild`] has
    /// returned. Then all calls that do not write to the new index have ended.
    ///
    /// Do not call this method when the table was restored from a backup. The items that were
    /// removed after the backup are then in the table again. Their tombstones would make the engine
    /// reject their documents. The new index does not need these tombstones, because the restored
    /// table's stream has no writes from before the restore.
    pub async fn copy_tombstones(
        &self,
        rebuild: &Rebuild,
        size: u32,
        after: Option<&SearchAfter>,
    ) -> Result<CopiedPage, SearchError> {
        if after.is_none() {
            self.refresh_in(&rebuild.old).await?;
        }
        let page = self.documents_in(&rebuild.old, Kind::Tombstones, size, after).await?;
        let tombstones = page.items.into_iter().map(|item| {
            let at = item.stored.deleted_at().unwrap_or(UNKNOWN_TIME);
            BulkOperation::tombstone(rebuild.collection, item.document_id, item.stored.rev, at)
        });
        let outcomes = self.bulk_into(&rebuild.new, &tombstones.collect::<Result<Vec<_>, _>>()?).await?;
        let copied = outcomes.iter().filter(|outcome| outcome.is_durable()).count() as u64;
        Ok(CopiedPage { copied, failed: outcomes.len() as u64 - copied, next: page.next })
    }

    /// Moves readers and writers to the new index in one step. It is idempotent.
    ///
    /// It first makes all writes to the new index visible. OpenSearch Serverless has no call for
    /// that, so there the caller must wait until [`SearchClient::count_in`] agrees with the table.
    ///
    /// # Errors
    /// [`SearchError::Request`] if the rebuild was abandoned.
    pub async fn finish_rebuild(&self, rebuild: &Rebuild) -> Result<(), SearchError> {
        let indices = self.layout_of(rebuild.collection).await?;
        if is_finished(rebuild, &indices) {
            return Ok(());
        }
        if !indices.iter().any(|index| index.name == rebuild.new && index.written) {
            return Err(SearchError::Request(format!("{} is not being filled by a rebuild", rebuild.new)));
        }
        self.refresh_in(&rebuild.new).await?;
        let alias = self.alias(rebuild.collection);
        let mut actions = vec![json!({"add": {"index": rebuild.new, "alias": alias}})];
        for index in indices.iter().filter(|index| index.name != rebuild.new) {
            let write_alias = index::write_alias(&self.prefix, rebuild.collection, index.number);
            let remove = |alias: &str| json!({"remove": {"index": index.name, "alias": alias}});
            actions.extend(index.read.then(|| remove(&alias)));
            actions.extend(index.written.then(|| remove(&write_alias)));
        }
        let body = json!({"actions": actions});
        match self.json(Method::POST, "/_aliases", Some(&body)).await?.accepted() {
            // An earlier attempt, whose response was lost, may have moved the aliases already.
            Err(error @ SearchError::Rejected { .. }) => {
                let indices = self.layout_of(rebuild.collection).await?;
                if is_finished(rebuild, &indices) { Ok(()) } else { Err(error) }
            }
            other => other.map(drop),
        }
    }

    /// Abandons a rebuild and deletes the index that it was filling. It is idempotent.
    ///
    /// # Errors
    /// [`SearchError::Request`] if the rebuild was finished.
    pub async fn abandon_rebuild(&self, rebuild: &Rebuild) -> Result<(), SearchError> {
        let indices = self.layout_of(rebuild.collection).await?;
        if indices.iter().any(|index| index.name == rebuild.new && index.read) {
            return Err(SearchError::Request(format!("{} is in use", rebuild.new)));
        }
        self.remove(&rebuild.new).await
    }

    /// Deletes an index without aliases, such as the old index of a rebuild. A missing index
    /// counts as deleted.
    ///
    /// # Errors
    /// [`SearchError::Request`] for an index that is in use, or that does not have this client's
    /// prefix.
    pub async fn delete_index(&self, index: &str) -> Result<(), SearchError> {
        let (collection, _) = self.write_alias(index)?;
        let indices = self.indices(collection).await?;
        if indices.iter().any(|other| other.name == index && !other.aliases.is_empty()) {
            return Err(SearchError::Request(format!("{index} is in use")));
        }
        self.remove(index).await
    }

    async fn remove(&self, index: &str) -> Result<(), SearchError> {
        match self.json(Method::DELETE, &format!("/{index}"), None::<&Value>).await?.accepted() {
            Err(SearchError::Rejected { status: 404, .. }) => Ok(()),
            other => other.map(drop),
        }
    }
}

/// The `deleted_at` that a copy gets if the original tombstone has no `deleted_at`.
const UNKNOWN_TIME: &str = "1970-01-01T00:00:00.000Z";

/// Returns the rebuild in progress: an index that is written but not read, while another index is
/// read.
fn progress(collection: Collection, indices: &[IndexState]) -> Option<Rebuild> {
    let old = indices.iter().find(|index| index.read)?;
    let new = indices.iter().rev().find(|index| index.written && !index.read)?;
    Some(Rebuild { collection, old: old.name.clone(), new: new.name.clone() })
}

fn is_finished(rebuild: &Rebuild, indices: &[IndexState]) -> bool {
    indices.iter().all(|index| {
        let new = index.name == rebuild.new;
        index.read == new && index.written == new
    }) && indices.iter().any(|index| index.name == rebuild.new)
}
