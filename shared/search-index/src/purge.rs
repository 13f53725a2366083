//! Removes tombstones that are no longer needed.
//!
//! # When a tombstone may be removed
//!
//! A tombstone makes the engine reject older writes that arrive later. Stream records cause these
//! writes, and a record is delivered only for a limited time after the change that it describes:
//!
//! | delivery | possible for |
//! | --- | --- |
//! | from the stream, with all retries: DynamoDB keeps a record for 24 hours | 1 day |
//! | from S3, which keeps failed and quarantined records for 30 days | 30 days |
//!
//! Together these are 31 days from the change. Every older change of the item happened before
//! `deleted_at`, so its write arrives at most 31 days after `deleted_at`. This is true even if the
//! tombstone itself was written later. Four more days are a reserve for clock differences, and for
//! operators who keep failed records from S3 while they inspect them.
//!
//! `ops redrive` reads the item before it writes, so it never writes an old state. The 30 days for
//! S3 protect against a tool that does not read first. After a restore of the table from a backup,
//! tombstones do not matter: the index is rebuilt without them.
//!
//! # Why a purge never deletes a document that was created again
//!
//! A tombstone is deleted on the condition that its sequence number and primary term are unchanged.
//! Every later write changes these two numbers, so the deletion then fails with a conflict. A
//! deletion with an external version is no alternative: OpenSearch would create a missing index to
//! record it, even with `require_alias`. The deletion names the index in which the tombstone was
//! found, so a concurrent change of an alias does not redirect it.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::{NDJSON, SearchClient};
use crate::document::Collection;
use crate::error::SearchError;
use crate::outcome::{self, BulkOutcome};
use crate::query::{SearchAfter, is_deleted, set_after};
use crate::transport::Call;

/// The minimum lifetime of a tombstone, in days after the removal of its item. It is the sum of 1
/// day in the stream, 30 days among failed records, and a reserve of 4 days.
pub const TOMBSTONE_LIFETIME_DAYS: u32 = 35;

/// The maximum number of tombstones in one call, which sends them in one bulk request.
pub const MAX_PURGE: u32 = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgePage {
    /// The number of tombstones in the page. All of them are old enough to be deleted.
    pub found: u64,
    pub purged: u64,
    /// The number of tombstones that were replaced since the search, by a newer document or
    /// tombstone. The newer one is kept.
    pub replaced: u64,
    /// The number of tombstones that the engine failed to delete. The next purge finds them again.
    pub failed: u64,
    /// The start of the next page, or `None` if this page is not full.
    pub next: Option<SearchAfter>,
}

impl SearchClient {
    /// Removes the tombstones with a `deleted_at` before `older_than` (RFC 3339 UTC with
    /// milliseconds) from the index that searches read, oldest first. One call removes at most
    /// `size` and at most [`MAX_PURGE`] of them, and starts after the position `after`.
    ///
    /// `older_than` must be at least [`TOMBSTONE_LIFETIME_DAYS`] days ago.
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

    /// Deletes the tombstones that have not changed since the search. If the response of a
    /// successful attempt is lost, the retry gets a conflict and the tombstone counts as replaced.
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
    delete: &'a DocumentState,
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
    at: DocumentState,
    sort: Vec<Value>,
}

/// A state of a document: the fields of a search hit that identify the state. They are also the
/// condition of the deletion.
#[derive(Serialize, Deserialize)]
struct DocumentState {
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
    fn a_tombstone_is_deleted_on_the_condition_that_it_is_unchanged() {
        let hit = json!({"_index": "i-v1", "_id": "0a", "_seq_no": 7, "_primary_term": 2, "sort": [1, "0a"]});
        assert_eq!(
            delete_line(&serde_json::from_value(hit).unwrap()).unwrap(),
            "{\"delete\":{\"_index\":\"i-v1\",\"_id\":\"0a\",\"if_seq_no\":7,\"if_primary_term\":2}}\n"
        );
    }

    #[test]
    fn tombstones_are_kept_longer_than_any_record_can_be_delivered() {
        let (stream, failed_records) = (1, 30);
        assert!(TOMBSTONE_LIFETIME_DAYS > stream + failed_records);
    }
}
