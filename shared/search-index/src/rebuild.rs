//! Rebuilding an index while it is in use.
//!
//! 1. [`SearchClient::begin_rebuild`] makes the next index, empty, with the mapping of today, and from then on every change is written
//!    to both.
//! 2. Every item is read from the table, strongly, and written into it ([`SearchClient::bulk_into`]); versions keep the newest of
//!    what the backfill and the changes bring.
//! 3. [`SearchClient::copy_tombstones`] brings what is no longer in the table; after a restore of the table it is left out.
//! 4. What the new index holds is compared with the table ([`SearchClient::stored_in`], [`SearchClient::count_in`]).
//! 5. [`SearchClient::finish_rebuild`] moves readers and writers to it in one step: every search sees the whole of either the old index
//!    or the new one.
//! 6. [`SearchClient::delete_index`] removes the old one.
//!
//! The state of a rebuild is in the aliases alone. After a crash [`SearchClient::rebuild_in_progress`] finds it again, to go on at step 2 or
//! to [`SearchClient::abandon_rebuild`].

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

/// A rebuild that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuild {
    collection: Collection,
    old: String,
    new: String,
}

impl Rebuild {
    /// What is rebuilt.
    pub fn collection(&self) -> Collection {
        self.collection
    }

    /// The index that is read.
    pub fn old(&self) -> &str {
        &self.old
    }

    /// The index that is filled.
    pub fn new_index(&self) -> &str {
        &self.new
    }
}

/// What came of copying a page of tombstones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedPage {
    /// Tombstones that the new index has now, or has something newer instead of.
    pub copied: u64,
    /// Those that it did not take; the page is to be copied again.
    pub failed: u64,
    /// Where the next page begins; `None` on the last one.
    pub next: Option<SearchAfter>,
}

impl SearchClient {
    /// Makes the next index of the collection and adds it to those that are written to.
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
            // Somebody else's rebuild, or this one, if the first answer was lost; whoever calls can see to it.
            Err(SearchError::Rejected { kind, .. }) if kind == INDEX_EXISTS => Err(in_progress()),
            Err(error) => Err(error),
            Ok(_) => Ok(Rebuild { collection, old, new }),
        }
    }

    /// The rebuild of a collection that was begun and neither finished nor abandoned.
    pub async fn rebuild_in_progress(&self, collection: Collection) -> Result<Option<Rebuild>, SearchError> {
        Ok(progress(collection, &self.layout_of(collection).await?))
    }

    /// Copies a page of the old index's tombstones to the new one: `size` of them, at most 10,000.
    ///
    /// To be called for all pages, after the backfill and not before [`crate::Limits::total`] of whoever writes has passed since
    /// [`SearchClient::begin_rebuild`] answered: a call that began before, and knew of the old index alone, has ended by then. The caller sees to
    /// that.
    ///
    /// Not to be called when the table was restored from a backup: tombstones of what happened after the backup would keep out what the table holds
    /// now, and the restored table's stream tells nothing that they are there for.
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

    /// Moves readers and writers to the new index, in one step. May be called again.
    ///
    /// Everything that was written to the new index is made visible first, except on OpenSearch Serverless, which cannot be told to:
    /// there the caller is to wait until [`SearchClient::count_in`] agrees with the table.
    ///
    /// # Errors
    /// [`SearchError::Request`] if the rebuild is not in progress, having been abandoned.
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
            // Done by an attempt whose answer was lost?
            Err(error @ SearchError::Rejected { .. }) => {
                let indices = self.layout_of(rebuild.collection).await?;
                if is_finished(rebuild, &indices) { Ok(()) } else { Err(error) }
            }
            other => other.map(drop),
        }
    }

    /// Gives a rebuild up and deletes what was filled so far. May be called again.
    ///
    /// # Errors
    /// [`SearchError::Request`] if it was finished.
    pub async fn abandon_rebuild(&self, rebuild: &Rebuild) -> Result<(), SearchError> {
        let indices = self.layout_of(rebuild.collection).await?;
        if indices.iter().any(|index| index.name == rebuild.new && index.read) {
            return Err(SearchError::Request(format!("{} is in use", rebuild.new)));
        }
        self.remove(&rebuild.new).await
    }

    /// Deletes an index that no alias names, such as the old one of a rebuild. One that is not there is deleted.
    ///
    /// # Errors
    /// [`SearchError::Request`] for an index that is in use, or not of this shop.
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

/// For a tombstone that does not say when.
const UNKNOWN_TIME: &str = "1970-01-01T00:00:00.000Z";

/// An index that is written and not read, beside one that is read, is being filled.
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
