//! Removing tombstones that have done their work.
//!
//! # When a tombstone may go
//!
//! It is there for writes that come after it although they are older. What brings such a write is a record of the table's stream, and a
//! record can be delivered for a bounded time after the change that it tells of:
//!
//! | how | how long |
//! | --- | --- |
//! | from the stream itself, with all retries: DynamoDB keeps a record for 24 hours | 1 day |
//! | from there to S3, given up or quarantined, kept for 30 days and redriven on the last of them | 30 days |
//!
//! A redrive reads the item before it writes, so 30 of the 31 days are for a defect or a tool that does not. Everything older than the
//! removal was recorded before it, so nothing of the kind comes later than 31 days after `deleted_at`, whenever the tombstone itself was
//! written. Four more days are for clocks that differ, and for somebody who moved the files to look at them.
//! A restore of the table from a backup is no replay: the index is rebuilt, without the tombstones.
//!
//! # Why a document that came back survives
//!
//! A tombstone is deleted as it was found: on the condition that its sequence number and primary term, which every write changes, are
//! still the same. Anything written since, of whatever version, makes that a conflict. It is also the one kind of deletion that creates no
//! index: with an external version, OpenSearch would make one to note the deletion in, even though an alias was required. The
//! deletion names the index that the tombstone was found in, so that an alias that moves in between does not lead it astray.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::{NDJSON, SearchClient};
use crate::document::Collection;
use crate::error::SearchError;
use crate::outcome::{self, BulkOutcome};
use crate::query::{SearchAfter, is_deleted, set_after};
use crate::transport::Call;

/// How many days after the removal a tombstone is kept at least: 1 in the stream, 30 among failed records, 4 to spare.
pub const TOMBSTONE_LIFETIME_DAYS: u32 = 35;

/// Tombstones that are purged in one go at most: one bulk request.
pub const MAX_PURGE: u32 = 1_000;

/// What came of purging a page of tombstones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgePage {
    /// Tombstones that were old enough.
    pub found: u64,
    /// Those that are gone.
    pub purged: u64,
    /// Those that something was written over meanwhile, a newer document or tombstone, which stays.
    pub replaced: u64,
    /// Those that the engine did not delete now; they are found again.
    pub failed: u64,
    /// Where the next page begins; `None` on the last one.
    pub next: Option<SearchAfter>,
}

impl SearchClient {
    /// Removes tombstones from the index that is read, oldest first: those of documents that were removed before `older_than` (RFC 3339 UTC with
    /// milliseconds), at most `size` of them (at most [`MAX_PURGE`]), beginning after the end of another page.
    ///
    /// `older_than` is to be [`TOMBSTONE_LIFETIME_DAYS`] ago, or earlier.
    pub async fn purge_tombstones(
        &self,
        collection: Collection,
        older_than: &str,
        size: u32,
        after: Option<&SearchAfter>,
    ) -> Result<PurgePage, SearchError> {
        let size = size.min(MAX_PURGE);
        let mut body = json!({
            "query": {"bool": {"filter": [is_deleted(), {"range": {"deleted_at": {"lt": older_than}}}]}},
            "sort": [{"deleted_at": "asc"}, {"document_id": "asc"}],
            "size": size,
            "seq_no_primary_term": true,
            "_source": false,
        });
        set_after(&mut body, after);
        let found: FoundAnswer = self.read(&self.alias(collection), "_search", &body).await?;
        let found = found.hits.hits;
        let full = found.len() as u64 >= u64::from(size);
        let next = found.last().filter(|_| full).map(|hit| SearchAfter(hit.sort.clone()));
        let outcomes = self.delete(&found).await?;
        let count = |wanted: fn(&BulkOutcome) -> bool| outcomes.iter().filter(|outcome| wanted(outcome)).count() as u64;
        let (purged, replaced) =
            (count(|outcome| *outcome == BulkOutcome::Applied), count(|outcome| *outcome == BulkOutcome::Stale));
        let found = outcomes.len() as u64;
        Ok(PurgePage { found, purged, replaced, failed: found - purged - replaced, next })
    }

    /// Deletes what is still as it was found. An attempt whose answer was lost is not told from a conflict, and counts as one.
    async fn delete(&self, found: &[Found]) -> Result<Vec<BulkOutcome>, SearchError> {
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let mut body = String::new();
        for found in found {
            body.push_str(&delete_line(found)?);
        }
        let call = Call { method: Method::POST, path: "/_bulk", content_type: NDJSON, body: body.into() };
        let answer = self.transport.call(&call, self.transport.deadline()).await?.accepted()?;
        outcome::outcomes(&answer.body, found.len())
    }
}

fn delete_line(found: &Found) -> Result<String, SearchError> {
    let line = serde_json::to_string(&DeleteAction { delete: &found.at });
    line.map(|line| line + "\n").map_err(|error| SearchError::Request(error.to_string()))
}

#[derive(Serialize)]
struct DeleteAction<'a> {
    delete: &'a Place,
}

#[derive(Deserialize)]
struct FoundAnswer {
    hits: FoundHits,
}

#[derive(Deserialize)]
struct FoundHits {
    hits: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    #[serde(flatten)]
    at: Place,
    sort: Vec<Value>,
}

/// One state of one document, as a hit names it and as a deletion asks for it.
#[derive(Serialize, Deserialize)]
struct Place {
    #[serde(rename = "_index")]
    index: String,
    #[serde(rename = "_id")]
    id: String,
    #[serde(rename(deserialize = "_seq_no", serialize = "if_seq_no"))]
    seq_no: u64,
    #[serde(rename(deserialize = "_primary_term", serialize = "if_primary_term"))]
    primary_term: u64,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_tombstone_is_deleted_on_the_condition_that_it_is_as_it_was_found() {
        let hit = json!({"_index": "i-v1", "_id": "0a", "_seq_no": 7, "_primary_term": 2, "sort": [1, "0a"]});
        assert_eq!(
            delete_line(&serde_json::from_value(hit).unwrap()).unwrap(),
            "{\"delete\":{\"_index\":\"i-v1\",\"_id\":\"0a\",\"if_seq_no\":7,\"if_primary_term\":2}}\n"
        );
    }

    #[test]
    fn a_tombstone_outlives_every_replay() {
        let (stream, failed_records) = (1, 30);
        assert!(TOMBSTONE_LIFETIME_DAYS > stream + failed_records);
    }
}
