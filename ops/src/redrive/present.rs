//! The search sink of a replay: it indexes what is in the table now, whatever the records say.
//!
//! A record that was set aside is old, and what made it fail may be in it: a name too long for the engine, say, and since corrected. So each item that the
//! records are about is read strongly and its present state is written, under its own `rev`. If there is none any more, a tombstone beyond the
//! newest state that the records know of is.

use std::collections::HashMap;

use futures::future::BoxFuture;
use key_schema::instant::Instant;
use key_schema::item::Item;
use key_schema::key::Key;
use search_index::{BulkOperation, BulkOutcome, SearchClient, SearchError, document_id};
use stream::batch::Record;
use stream::documents::written;
use stream::lane::{Lane, lanes};
use stream::ledger::{Ledger, Reason, Verdict};
use stream::sink::Sink;

use crate::items::Items;
use crate::search::expected;

/// The status of a document that the engine does not like, as opposed to one of the call or the index.
const BAD_DOCUMENT: u16 = 400;

/// The sink.
#[derive(Debug)]
pub struct Present {
    client: SearchClient,
    items: Items,
}

impl Present {
    /// Over this engine and table.
    #[must_use]
    pub const fn new(client: SearchClient, items: Items) -> Self {
        Self { client, items }
    }

    async fn write(&self, lanes: &[Lane<'_>]) -> Vec<Verdict> {
        let keys: Vec<Key> =
            lanes.iter().filter_map(|lane| lane.first()).map(|(_, record)| record.key.clone()).collect();
        let present = match self.items.get(&keys).await {
            Ok(present) => present,
            Err(error) => return vec![Verdict::Failed(Reason::new("table", error)); lanes.len()],
        };
        let mut verdicts = Vec::with_capacity(lanes.len());
        let mut operations = Vec::new();
        for lane in lanes {
            // `None` until the engine has answered.
            verdicts.push(match operation(lane, &present) {
                Ok(None) => Some(Verdict::Done),
                Ok(Some(operation)) => {
                    operations.push(operation);
                    None
                }
                Err(reason) => Some(Verdict::Refused(reason)),
            });
        }
        let mut outcomes = self.bulk(&operations).await.into_iter();
        let unanswered = || Verdict::Failed(Reason::new("index_unavailable", "no answer"));
        verdicts.into_iter().map(|verdict| verdict.or_else(|| outcomes.next()).unwrap_or_else(unanswered)).collect()
    }

    async fn bulk(&self, operations: &[BulkOperation]) -> Vec<Verdict> {
        if operations.is_empty() {
            return Vec::new();
        }
        match self.client.bulk(operations).await {
            Ok(outcomes) => outcomes.into_iter().map(verdict).collect(),
            Err(error) => vec![Verdict::Failed(Reason::new("index_unavailable", error)); operations.len()],
        }
    }
}

impl Sink for Present {
    fn name(&self) -> &'static str {
        "search"
    }

    fn take<'a>(&'a self, records: &'a [Record<'a>], ledger: &'a Ledger) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let lanes = lanes(records);
            for (lane, verdict) in lanes.iter().zip(self.write(&lanes).await) {
                for (position, _) in lane {
                    ledger.settle(*position, verdict.clone());
                }
            }
        })
    }
}

/// What the index shall hold for the item of a lane; `None` if it is not searched for.
fn operation(lane: &Lane<'_>, present: &HashMap<Key, Item>) -> Result<Option<BulkOperation>, Reason> {
    let Some((_, first)) = lane.first() else { return Ok(None) };
    if let Some(item) = present.get(&first.key) {
        let expected = expected(item.clone()).map_err(|error| Reason::new("malformed_item", error))?;
        return Ok(expected.map(|expected| expected.operation));
    }
    // The newest state that the records know of.
    let mut newest: Option<BulkOperation> = None;
    for (_, record) in lane {
        let Some(image) = record.change.after().or_else(|| record.change.before()) else { continue };
        let id = document_id(record.key.pk.as_str(), record.key.sk.as_str());
        let Some(operation) = written(id, image) else { continue };
        let operation = operation.map_err(malformed)?;
        if newest.as_ref().is_none_or(|newest| newest.rev() < operation.rev()) {
            newest = Some(operation);
        }
    }
    let tombstone = newest.map(|newest| {
        let (id, rev) = (newest.document_id().to_owned(), newest.rev().saturating_add(1));
        BulkOperation::tombstone(newest.collection(), id, rev, &Instant::now().to_string())
    });
    tombstone.transpose().map_err(malformed)
}

fn malformed(error: SearchError) -> Reason {
    Reason::new("malformed_document", error)
}

fn verdict(outcome: BulkOutcome) -> Verdict {
    match outcome {
        BulkOutcome::Applied | BulkOutcome::Stale => Verdict::Done,
        BulkOutcome::Retryable { reason } => Verdict::Failed(Reason::new("index_unavailable", reason)),
        BulkOutcome::Rejected { status: BAD_DOCUMENT, reason } => {
            Verdict::Refused(Reason::new("index_rejects", reason))
        }
        BulkOutcome::Rejected { status, .. } => {
            Verdict::Failed(Reason::new("index_refuses", format!("status {status}")))
        }
    }
}
