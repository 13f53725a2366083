//! Sink `search`: updates the search index after changes of products and orders.
//!
//! # Why no schedule of deliveries loses or resurrects a document
//!
//! A document is written with its item's `rev` as external version, and the engine keeps the
//! highest version. `rev` grows with every write of an item. It restarts for a key only after an
//! operator's removal ([`crate::documents`]). Records may therefore arrive twice, late or out of
//! order. The document converges to the newest state that was delivered. The engine refuses an
//! older state with a conflict. The sink treats this conflict as success. A removal writes a
//! tombstone, because the engine forgets the version of a deleted document after a minute. Sequence
//! numbers and clocks decide nothing.
//!
//! Only the state with the highest `rev` matters, so the sink merges the records of one item and
//! sends only that state. A batch is one bulk call. If the engine refuses the call because of one
//! document, the client splits the call ([`search_index::SearchClient::bulk`]). Then only that
//! document is refused.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use search_index::{BulkOperation, BulkOutcome, SearchError};

use crate::batch::Record;
use crate::documents::operation;
use crate::lane::lanes;
use crate::ports::Index;
use crate::sink::Sink;
use crate::verdict::{Reason, Verdict, Verdicts};

/// The status that a bulk response has for an operation with an invalid document.
const BAD_DOCUMENT: u16 = 400;
/// The status that a bulk response has for an operation whose index or alias does not exist.
const NO_INDEX: u16 = 404;

#[derive(Debug)]
pub struct Search<I> {
    index: I,
    /// Whether the indices, mappings and aliases are known to exist.
    ready: AtomicBool,
}

/// The records of one item. One operation settles all of them.
struct Merged {
    operation: BulkOperation,
    /// The position of the record from which the operation is made.
    newest: usize,
    older: Vec<usize>,
}

impl<I: Index> Search<I> {
    /// Creates a sink on this engine. Its first batch creates missing indices.
    #[must_use]
    pub const fn new(index: I) -> Self {
        Self { index, ready: AtomicBool::new(false) }
    }

    /// Creates a sink and the missing indices. If the engine is unavailable, the first batch
    /// creates them.
    pub async fn open(index: I) -> Self {
        let sink = Self::new(index);
        if let Err(error) = sink.ensure().await {
            let check = "SEARCH_ENDPOINT, SEARCH_SERVICE, and the role's permissions on the domain or collection";
            tracing::warn!(cause = %error, check, "the indices are not ready yet: the first batch tries again");
        }
        sink
    }

    async fn ensure(&self) -> Result<(), SearchError> {
        if !self.ready.load(Ordering::Relaxed) {
            self.index.ensure().await?;
            self.ready.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn write(&self, merged: &[Merged]) -> Result<Vec<BulkOutcome>, SearchError> {
        self.ensure().await?;
        let operations: Vec<BulkOperation> = merged.iter().map(|merged| merged.operation.clone()).collect();
        let outcomes = self.index.bulk(&operations).await;
        telemetry::crash_point("stream.search.written");
        outcomes
    }

    fn verdict(&self, outcome: BulkOutcome) -> Verdict {
        match outcome {
            BulkOutcome::Applied | BulkOutcome::Stale => Verdict::Done,
            BulkOutcome::Retryable { reason } => Verdict::Failed(Reason::new("index_unavailable", reason)),
            BulkOutcome::Rejected { status: BAD_DOCUMENT, reason } => {
                Verdict::Refused(Reason::new("index_rejects", reason))
            }
            BulkOutcome::Rejected { status, .. } => {
                if status == NO_INDEX {
                    self.ready.store(false, Ordering::Relaxed);
                }
                // The engine's reason may quote the document, so it is not part of the logged
                // verdict.
                Verdict::Failed(Reason::new("index_refuses", format!("status {status}")))
            }
        }
    }
}

impl<I: Index> Sink for Search<I> {
    fn name(&self) -> &'static str {
        "search"
    }

    fn take<'a>(&'a self, records: &'a [Record<'a>], verdicts: &'a Verdicts) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let merged = merge(records, verdicts);
            if merged.is_empty() {
                return;
            }
            match self.write(&merged).await {
                Ok(outcomes) => {
                    for (merged, outcome) in merged.iter().zip(outcomes) {
                        settle(merged, verdicts, self.verdict(outcome));
                    }
                }
                Err(error) => {
                    let reason = Reason::new("index_unavailable", error);
                    for merged in &merged {
                        settle(merged, verdicts, Verdict::Failed(reason.clone()));
                    }
                }
            }
        })
    }
}

/// Merges the records to one operation per item, and settles records without a document.
fn merge(records: &[Record<'_>], verdicts: &Verdicts) -> Vec<Merged> {
    lanes(records).into_iter().filter_map(|lane| merge_lane(lane, verdicts)).collect()
}

fn merge_lane(lane: Vec<(usize, &Record<'_>)>, verdicts: &Verdicts) -> Option<Merged> {
    let mut merged: Option<Merged> = None;
    for (position, record) in lane {
        let operation = match operation(record) {
            None => {
                verdicts.settle(position, Verdict::Done);
                continue;
            }
            Some(Err(error)) => {
                verdicts.settle(position, Verdict::Refused(Reason::new("malformed_document", error)));
                continue;
            }
            Some(Ok(operation)) => operation,
        };
        match &mut merged {
            None => merged = Some(Merged { operation, newest: position, older: Vec::new() }),
            // The highest `rev` is the newest state, even if a replay delivers it out of order.
            Some(merged) if merged.operation.rev() > operation.rev() => merged.older.push(position),
            Some(merged) => {
                merged.older.push(merged.newest);
                merged.operation = operation;
                merged.newest = position;
            }
        }
    }
    merged
}

/// Settles the records of one item. A failure applies to all of these records. A refusal applies
/// only to the newest record. The older records are done, because the newest state replaces their
/// states.
fn settle(merged: &Merged, verdicts: &Verdicts, verdict: Verdict) {
    let older = match &verdict {
        Verdict::Refused(_) => Verdict::Done,
        shared => shared.clone(),
    };
    for position in &merged.older {
        verdicts.settle(*position, older.clone());
    }
    verdicts.settle(merged.newest, verdict);
}
