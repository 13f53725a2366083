//! Compares one index with the table, in both directions.
//!
//! A comparison first scans the table, and compares each item with the version and fields of its
//! document. Then it lists the documents that searches find, and checks that each has an item.
//!
//! A suspected difference may be a change that has not reached the index yet. So it is checked
//! again after a wait, with a strong read of the item. Only the second check counts differences.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use key_schema::instant::Instant;
use key_schema::item::{Item, MAX_COUNT, key_of};
use key_schema::key::{Key, shown};
use search_index::{BulkOperation, Collection, IndexedDocument, Kind, SearchClient, StoredSource};
use serde::Serialize;

use super::documents::{Expected, entity, expected, source};
use super::drift::{Difference, Drift};
use super::write::{Target, write};
use crate::error::OpsError;
use crate::items::Items;
use crate::pace::Pace;
use crate::progress::Progress;

/// The number of documents that are checked, and repaired, at once.
const CHUNK: usize = 250;
/// This number limits the memory for a badly damaged index.
const SUSPECTS: usize = 5_000;
const PAGE: u32 = 500;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Compared {
    pub(crate) items: u64,
    /// The number of items that searches must find.
    pub(crate) live: u64,
    /// The number of documents that searches find.
    pub(crate) documents: u64,
    /// The number of suspected differences that the second check did not confirm.
    pub(crate) in_flight: u64,
    pub(crate) drift: Drift,
}

pub(crate) struct Comparison<'a> {
    pub(crate) client: &'a SearchClient,
    pub(crate) items: &'a Items,
    pub(crate) collection: Collection,
    /// The index to compare and repair. If it is `None`, the comparison reads the index that
    /// searches read, and repairs go to every index that receives changes.
    pub(crate) index: Option<&'a str>,
    pub(crate) repair: bool,
    /// The wait before a suspected difference is checked again.
    pub(crate) settle: Duration,
    pub(crate) pace: &'a Pace,
}

#[derive(Default)]
struct Found {
    compared: Compared,
    /// The keys of items whose documents look wrong.
    suspects: Vec<Key>,
}

impl Comparison<'_> {
    pub(crate) async fn run(&self) -> Result<Compared, OpsError> {
        let found = Mutex::new(Found::default());
        let bar = Progress::new(self.collection.name(), self.items.estimate().await?);
        self.items
            .scan(&[entity(self.collection)], self.pace, &bar, async |items| {
                self.page_of_table(items, &found).await?;
                self.settle_suspects(&found, SUSPECTS).await
            })
            .await?;
        drop(bar);
        self.settle_suspects(&found, 1).await?;
        let mut compared = found.into_inner().unwrap_or_else(PoisonError::into_inner).compared;
        self.documents(&mut compared).await?;
        Ok(compared)
    }

    async fn page_of_table(&self, items: Vec<Item>, found: &Mutex<Found>) -> Result<(), OpsError> {
        let (expected, unreadable) = sorted(items);
        let mut suspects = Vec::new();
        for chunk in expected.chunks(CHUNK) {
            for (expected, stored) in chunk.iter().zip(self.stored(&ids(chunk)).await?) {
                if difference(expected, stored.as_ref())?.is_some() {
                    suspects.push(expected.key.clone());
                }
            }
        }
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.compared.items += count(expected.len());
        found.compared.live += count(expected.iter().filter(|expected| expected.is_live()).count());
        for (key, reason) in unreadable {
            found.compared.drift.unreadable(shown(&key), reason);
        }
        found.suspects.append(&mut suspects);
        Ok(())
    }

    /// Checks the suspected differences again, if there are at least `at_least` of them.
    async fn settle_suspects(&self, found: &Mutex<Found>, at_least: usize) -> Result<(), OpsError> {
        let suspects = {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            if found.suspects.len() < at_least { Vec::new() } else { std::mem::take(&mut found.suspects) }
        };
        if suspects.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(self.settle).await;
        let mut compared = Compared::default();
        for keys in suspects.chunks(CHUNK) {
            self.settle(keys, &mut compared).await?;
        }
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.compared.in_flight += compared.in_flight;
        found.compared.drift.add(compared.drift);
        Ok(())
    }

    async fn settle(&self, keys: &[Key], compared: &mut Compared) -> Result<(), OpsError> {
        let present = self.items.get(keys).await?;
        let (expected, _) = sorted(present.into_values().collect());
        // An item that was removed meanwhile counts as in flight. If searches still find its
        // document, `documents` counts the document as orphaned.
        compared.in_flight += count(keys.len() - expected.len());
        let (mut repairs, mut ahead) = (Vec::new(), Vec::new());
        for (expected, stored) in expected.iter().zip(self.stored(&ids(&expected)).await?) {
            match (difference(expected, stored.as_ref())?, stored) {
                (None, _) => compared.in_flight += 1,
                (Some(Difference::Ahead), Some(stored)) => ahead.push((expected.key.clone(), stored.rev)),
                (Some(difference), _) => {
                    if compared.drift.note(shown(&expected.key), difference) {
                        repairs.push((Some(expected.key.clone()), expected.operation.clone()));
                    }
                }
            }
        }
        self.ahead(&ahead, compared).await?;
        self.repair(repairs, &mut compared.drift).await
    }

    /// Checks documents that were newer than their items. The items were read before the documents
    /// and may have changed since, so the function reads the items again. Only a document that is
    /// newer than the current item is ahead.
    async fn ahead(&self, documents: &[(Key, u64)], compared: &mut Compared) -> Result<(), OpsError> {
        if documents.is_empty() {
            return Ok(());
        }
        let keys: Vec<Key> = documents.iter().map(|(key, _)| key.clone()).collect();
        let present = self.items.get(&keys).await?;
        let (expected, _) = sorted(present.into_values().collect());
        let present: HashMap<&Key, u64> =
            expected.iter().map(|expected| (&expected.key, expected.operation.rev())).collect();
        for (key, rev) in documents {
            if present.get(key).is_some_and(|present| present < rev) {
                compared.drift.note(shown(key), Difference::Ahead);
            } else {
                compared.in_flight += 1;
            }
        }
        Ok(())
    }

    /// Counts the documents that searches find, and checks that each has an item.
    async fn documents(&self, compared: &mut Compared) -> Result<(), OpsError> {
        match self.index {
            Some(index) => self.client.refresh_in(index).await?,
            None => self.client.refresh().await?,
        }
        let bar = Progress::new("documents", Some(compared.live));
        let mut after = None;
        // The loop ends, because every page starts after the previous one.
        loop {
            let page = match self.index {
                Some(index) => self.client.documents_in(index, Kind::Live, PAGE, after.as_ref()).await?,
                None => self.client.documents(self.collection, Kind::Live, PAGE, after.as_ref()).await?,
            };
            compared.documents += count(page.items.len());
            bar.step(page.items.len());
            self.orphans(page.items, &mut compared.drift).await?;
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Counts the documents without an item. If the comparison repairs, replaces each of these
    /// documents with a tombstone of the next version.
    async fn orphans(&self, documents: Vec<IndexedDocument>, drift: &mut Drift) -> Result<(), OpsError> {
        let suspects = self.without_item(documents).await?;
        if suspects.is_empty() {
            return Ok(());
        }
        // If an item was just removed, its tombstone may not have reached the index yet.
        tokio::time::sleep(self.settle).await;
        let ids: Vec<String> = suspects.into_iter().map(|document| document.document_id).collect();
        let stored = ids.iter().zip(self.stored(&ids).await?);
        let still = stored.filter_map(|(id, stored)| {
            Some(IndexedDocument { document_id: id.clone(), stored: stored.filter(|stored| !stored.is_tombstone())? })
        });
        let orphans = self.without_item(still.collect()).await?;
        for orphan in &orphans {
            let key = source(self.collection, &orphan.document_id, &orphan.stored);
            drift.orphaned(key.map_or_else(|| orphan.document_id.clone(), |key| shown(&key)));
        }
        let now = Instant::now().to_string();
        let repairs = orphans.into_iter().map(|orphan| {
            // The engine refuses a version above `MAX_COUNT`. A document that already has version
            // `MAX_COUNT` can be written again with the same version.
            let rev = orphan.stored.rev.saturating_add(1).min(MAX_COUNT);
            Ok((None, BulkOperation::tombstone(self.collection, orphan.document_id, rev, &now)?))
        });
        let repairs = repairs.collect::<Result<Vec<_>, OpsError>>()?;
        self.repair(repairs, drift).await
    }

    async fn without_item(&self, documents: Vec<IndexedDocument>) -> Result<Vec<IndexedDocument>, OpsError> {
        let key = |document: &IndexedDocument| source(self.collection, &document.document_id, &document.stored);
        let documents: Vec<_> = documents.into_iter().map(|document| (key(&document), document)).collect();
        let keys: Vec<Key> = documents.iter().filter_map(|(key, _)| key.clone()).collect();
        let present = self.items.get(&keys).await?;
        let gone = |key: &Option<Key>| key.as_ref().is_none_or(|key| !present.contains_key(key));
        Ok(documents.into_iter().filter(|(key, _)| gone(key)).map(|(_, document)| document).collect())
    }

    /// Writes the repairs. Each repair comes with the key of its item, or `None` if there is no
    /// item.
    async fn repair(&self, repairs: Vec<(Option<Key>, BulkOperation)>, drift: &mut Drift) -> Result<(), OpsError> {
        if !self.repair || repairs.is_empty() {
            return Ok(());
        }
        let target = self.index.map_or(Target::All, Target::Index);
        let id = |operation: &BulkOperation| operation.document_id().to_owned();
        let keys: HashMap<_, _> =
            repairs.iter().filter_map(|(key, operation)| Some((id(operation), key.clone()?))).collect();
        let repairs = repairs.into_iter().map(|(_, operation)| operation).collect();
        let written = write(self.client, target, repairs).await?;
        let named = |id: &str| keys.get(id).map_or_else(|| id.to_owned(), shown);
        for refused in &written.refused {
            drift.refused(named(&refused.document_id), refused.status);
        }
        for id in self.unrepaired(&written.stale, &keys).await? {
            drift.unrepaired(named(&id));
        }
        Ok(())
    }

    /// Returns the ids of the documents that still differ after the engine rejected their repairs
    /// as stale. Usually a newer write has already repaired the document, so no difference remains.
    /// But the engine also remembers the version of a deleted document. Such a document stays
    /// missing.
    async fn unrepaired(&self, stale: &[BulkOperation], keys: &HashMap<String, Key>) -> Result<Vec<String>, OpsError> {
        if stale.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<String> = stale.iter().map(|operation| operation.document_id().to_owned()).collect();
        let mut suspects: HashMap<String, Option<StoredSource>> = HashMap::new();
        for (operation, stored) in stale.iter().zip(self.stored(&ids).await?) {
            if stored.as_ref().map_or(!operation.is_tombstone(), |stored| stored.rev < operation.rev()) {
                suspects.insert(operation.document_id().to_owned(), stored);
            }
        }
        // A document without a key still exists without an item, so it counts as unrepaired.
        let known: Vec<Key> = suspects.keys().filter_map(|id| keys.get(id)).cloned().collect();
        let mut unrepaired: Vec<String> = suspects.keys().filter(|id| !keys.contains_key(*id)).cloned().collect();
        let (expected, _) = sorted(self.items.get(&known).await?.into_values().collect());
        for expected in &expected {
            let stored = suspects.get(expected.operation.document_id()).and_then(Option::as_ref);
            if difference(expected, stored)?.is_some() {
                unrepaired.push(expected.operation.document_id().to_owned());
            }
        }
        Ok(unrepaired)
    }

    async fn stored(&self, ids: &[String]) -> Result<Vec<Option<StoredSource>>, OpsError> {
        Ok(match self.index {
            Some(index) => self.client.stored_in(index, ids).await?,
            None => self.client.stored(self.collection, ids).await?,
        })
    }
}

/// An expected tombstone may be missing, because tombstones are purged.
fn difference(expected: &Expected, stored: Option<&StoredSource>) -> Result<Option<Difference>, OpsError> {
    let Some(stored) = stored else { return Ok(expected.is_live().then_some(Difference::Missing)) };
    let mut fields = stored.differences(&expected.operation)?;
    fields.retain(|field| field != "rev");
    Ok(match stored.rev.cmp(&expected.operation.rev()) {
        Ordering::Greater => Some(Difference::Ahead),
        Ordering::Less => Some(Difference::Stale),
        Ordering::Equal if fields.is_empty() => None,
        Ordering::Equal => Some(Difference::Different(fields)),
    })
}

/// Returns the expected documents of the items, and each item that cannot be read with the reason.
fn sorted(items: Vec<Item>) -> (Vec<Expected>, Vec<(Key, String)>) {
    let mut unreadable = Vec::new();
    let expected = items.into_iter().filter_map(|item| {
        let key = key_of(&item);
        expected(item).unwrap_or_else(|error| {
            unreadable.extend(key.map(|key| (key, error.to_string())));
            None
        })
    });
    let expected = expected.collect();
    (expected, unreadable)
}

fn ids(expected: &[Expected]) -> Vec<String> {
    expected.iter().map(|expected| expected.operation.document_id().to_owned()).collect()
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
