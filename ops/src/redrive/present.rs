//! The search index as the target of a replay. It gets the present state of the items, and not the
//! state in the records.
//!
//! A record that was set aside is old, and its content may be the cause of the failure. Examples
//! are a name that is too long for the engine, and an invalid item that was repaired later. So a
//! replay uses only the keys in the records. It reads each item strongly and writes its present
//! state under the item's own `rev`.
//!
//! If the item no longer exists, the replay writes a tombstone. The tombstone's version is higher
//! than the newest `rev` in the item's records. If none of these records can be read, the
//! tombstone's version is higher than the version of the document in the index.

use std::collections::HashSet;

use key_schema::instant::Instant;
use key_schema::item::{Item, MAX_COUNT, key_of};
use key_schema::key::Key;
use search_index::{BulkOperation, BulkOutcome, Collection, SearchClient, SearchError, document_id};
use serde::Deserialize;
use stream::batch::{Batch, Event, Record};
use stream::documents::written;
use stream::lane::lanes;
use stream::verdict::Reason;

use crate::items::Items;
use crate::search::expected;

/// The status for a document that the engine does not accept. Other statuses are about the call or
/// the index.
const BAD_DOCUMENT: u16 = 400;

#[derive(Debug)]
pub struct Present {
    client: SearchClient,
    items: Items,
}

/// An item's key, with the records that name the item.
struct Touched<'r> {
    key: Key,
    records: Vec<&'r Record<'r>>,
}

impl Present {
    #[must_use]
    pub const fn new(client: SearchClient, items: Items) -> Self {
        Self { client, items }
    }

    /// Indexes the present state of the items that the records name. Returns a reason for each item
    /// or record that is not durable.
    pub async fn take(&self, event: &Event) -> Vec<Reason> {
        let batch = match Batch::decode(event) {
            Ok(batch) => batch,
            Err(error) => return vec![Reason::new("malformed_record", error)],
        };
        let (touched, mut reasons) = touched(&batch);
        let keys: Vec<Key> = touched.iter().map(|touched| touched.key.clone()).collect();
        let mut present = match self.items.get(&keys).await {
            Ok(present) => present,
            Err(error) => return vec![Reason::new("table", error)],
        };
        let mut operations = Vec::new();
        for touched in &touched {
            let operation = match present.remove(&touched.key) {
                Some(item) => expected(item)
                    .map(|expected| expected.map(|expected| expected.operation))
                    .map_err(|error| Reason::new("malformed_item", error)),
                None => self.absent(touched).await,
            };
            match operation {
                Ok(operation) => operations.extend(operation),
                Err(reason) => reasons.push(reason),
            }
        }
        reasons.extend(self.write(&operations).await);
        reasons
    }

    /// Returns the operation for an item that does not exist, or `None` if there is nothing to
    /// remove.
    async fn absent(&self, touched: &Touched<'_>) -> Result<Option<BulkOperation>, Reason> {
        let id = document_id(touched.key.pk.as_str(), touched.key.sk.as_str());
        let mut newest: Option<(Collection, u64)> = None;
        for record in &touched.records {
            let Some(image) = record.change.after().or_else(|| record.change.before()) else { continue };
            let Some(operation) = written(id.clone(), image) else { continue };
            let operation = operation.map_err(malformed)?;
            newest = newest.max(Some((operation.collection(), operation.rev())));
        }
        if touched.records.is_empty() {
            let ids = [id.clone()];
            for collection in Collection::ALL {
                let stored = self.client.stored(collection, &ids).await.map_err(unavailable)?;
                let live = stored.into_iter().flatten().find(|stored| !stored.is_tombstone());
                newest = newest.max(live.map(|stored| (collection, stored.rev)));
            }
        }
        let tombstone = newest.map(|(collection, rev)| {
            let beyond = rev.saturating_add(1).min(MAX_COUNT);
            BulkOperation::tombstone(collection, id, beyond, &Instant::now().to_string())
        });
        tombstone.transpose().map_err(malformed)
    }

    async fn write(&self, operations: &[BulkOperation]) -> Vec<Reason> {
        if operations.is_empty() {
            return Vec::new();
        }
        match self.client.bulk(operations).await {
            Ok(outcomes) => outcomes.into_iter().filter_map(reason).collect(),
            Err(error) => vec![unavailable(error)],
        }
    }
}

/// Returns the items that the records name, each once, and a reason for each record that names no
/// item.
fn touched<'b>(batch: &'b Batch<'_>) -> (Vec<Touched<'b>>, Vec<Reason>) {
    let mut touched = Vec::new();
    for lane in lanes(&batch.records) {
        let records: Vec<_> = lane.into_iter().map(|(_, record)| record).collect();
        let Some(key) = records.first().map(|record| record.key.clone()) else { continue };
        touched.push(Touched { key, records });
    }
    let mut known: HashSet<Key> = touched.iter().map(|touched| touched.key.clone()).collect();
    let mut reasons = Vec::new();
    for malformed in &batch.malformed {
        match key_in(malformed.origin.text) {
            Some(key) if known.insert(key.clone()) => touched.push(Touched { key, records: Vec::new() }),
            Some(_) => {}
            None => reasons.push(malformed.reason.clone()),
        }
    }
    (touched, reasons)
}

/// Returns the key from a record that cannot be decoded as a whole.
fn key_in(record: &str) -> Option<Key> {
    #[derive(Deserialize)]
    struct Named {
        dynamodb: Keys,
    }
    #[derive(Deserialize)]
    struct Keys {
        #[serde(rename = "Keys")]
        keys: Item,
    }
    key_of(&serde_json::from_str::<Named>(record).ok()?.dynamodb.keys)
}

fn malformed(error: SearchError) -> Reason {
    Reason::new("malformed_document", error)
}

fn unavailable(error: SearchError) -> Reason {
    Reason::new("index_unavailable", error)
}

/// Returns `None` if the index has it or a newer version.
fn reason(outcome: BulkOutcome) -> Option<Reason> {
    match outcome {
        BulkOutcome::Applied | BulkOutcome::Stale => None,
        BulkOutcome::Retryable { reason } => Some(Reason::new("index_unavailable", reason)),
        BulkOutcome::Rejected { status: BAD_DOCUMENT, reason } => Some(Reason::new("index_rejects", reason)),
        BulkOutcome::Rejected { status, .. } => Some(Reason::new("index_refuses", format!("status {status}"))),
    }
}
