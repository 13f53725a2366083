//! Writes documents to every index that must have them.
//!
//! # When one document makes the engine refuse a whole call
//!
//! Normally the engine reports an invalid document in the outcome of its operation. But if it
//! cannot read an operation's action line (for example because the version is too large), it
//! refuses the whole call. The client splits a refused call into halves, down to the single bad
//! operation, so that one document does not block others. After [`MAX_SPLITS`] splits the client
//! stops, and the caller must send the remaining operations again.
//!
//! # Why one lookup of the targets for each call is enough
//!
//! During a rebuild a collection has two written indices: the index that searches read, and the
//! next index, N. Every call looks up its targets before it writes. So only a call that was in
//! progress while N was added can miss N. The changes of such a call were in the table before its
//! lookup. The rebuild reads the table with strong consistency after N was added. So it finds
//! these changes or newer ones, and writes them to N.
//!
//! Conversely, the rebuild may write data that has become outdated. The write of the newer data
//! goes to both indices, so N has it or gets it. N keeps the write with the higher version.
//!
//! A removed item is not in the table. If the call with its tombstone missed N,
//! [`SearchClient::copy_tombstones`] copies the tombstone to N.
//!
//! A call that is in progress when a rebuild finishes may still write to the old index. The write
//! alias of that index is gone, so the engine refuses the write, whether or not the index still
//! exists. The call then looks up the targets once more and writes to the current targets.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use tokio::time::Instant;

use crate::bulk::{self, BulkOperation, BulkRequest};
use crate::client::{NDJSON, SearchClient};
use crate::document::Collection;
use crate::error::SearchError;
use crate::index;
use crate::outcome::{self, BulkOutcome};
use crate::transport::Call;

/// The status with which the engine refuses a call that it cannot read.
const BAD_CALL: u16 = 400;
/// The status with which the engine or a proxy refuses a call that is too large.
const LARGE_CALL: u16 = 413;
/// The maximum number of split calls in one [`SearchClient::send`]. Finding one document among
/// 1,000 takes 10 splits.
const MAX_SPLITS: u32 = 200;

/// The write aliases of each collection.
type Targets = BTreeMap<Collection, Vec<String>>;

struct Write<'a> {
    position: usize,
    operation: &'a BulkOperation,
    target: String,
    outcome: BulkOutcome,
}

impl<'a> Write<'a> {
    fn new(position: usize, operation: &'a BulkOperation, target: String) -> Self {
        Self { position, operation, target, outcome: BulkOutcome::Retryable { reason: "not sent".to_owned() } }
    }
}

impl SearchClient {
    /// Writes documents and tombstones to every written index of their collection. Returns the
    /// outcome of each operation in the given order. It is the worst outcome of all indices:
    /// [`BulkOutcome::Retryable`] is worse than [`BulkOutcome::Rejected`], which is worse than
    /// success.
    ///
    /// Operations with transient failures are sent again while the limits allow. If the engine
    /// refuses a whole call because of one operation, that operation is [`BulkOutcome::Rejected`],
    /// and the others are written without it. An error means that the engine refuses every bulk
    /// call, or that its response cannot be read. Even then some operations may have been applied.
    /// The caller may send all of them again.
    pub async fn bulk(&self, operations: &[BulkOperation]) -> Result<Vec<BulkOutcome>, SearchError> {
        let deadline = self.transport.deadline();
        let targets = match self.targets(operations, deadline).await {
            Err(SearchError::Unavailable { reason, .. }) => {
                return Ok(vec![BulkOutcome::Retryable { reason }; operations.len()]);
            }
            targets => targets?,
        };
        let mut writes = Vec::with_capacity(operations.len());
        for (position, operation) in operations.iter().enumerate() {
            let targets = targets_of(&targets, operation).iter().cloned();
            writes.extend(targets.map(|target| Write::new(position, operation, target)));
        }
        self.send(&mut writes, deadline).await?;
        if writes.iter().any(|write| write.outcome.is_lost()) {
            match self.targets(operations, deadline).await {
                // The writes keep their outcome, status 404. The caller sends the operations again.
                Err(SearchError::Unavailable { .. }) => {}
                targets => {
                    if redirect(&mut writes, &targets?) {
                        self.send(&mut writes, deadline).await?;
                    }
                }
            }
        }
        Ok(combined(operations.len(), writes))
    }

    /// Writes to only one index, as a backfill does. An index that has no write alias (any more)
    /// refuses all operations with [`BulkOutcome::Rejected`] and status 404.
    pub async fn bulk_into(&self, index: &str, operations: &[BulkOperation]) -> Result<Vec<BulkOutcome>, SearchError> {
        let (collection, target) = self.write_alias(index)?;
        if operations.iter().any(|operation| operation.collection() != collection) {
            return Err(SearchError::Request(format!("{index} is the index of another collection")));
        }
        let writes = operations.iter().enumerate();
        let mut writes: Vec<_> = writes.map(|(n, operation)| Write::new(n, operation, target.clone())).collect();
        self.send(&mut writes, self.transport.deadline()).await?;
        Ok(combined(operations.len(), writes))
    }

    /// Returns the current write aliases of the operations' collections, with one call.
    async fn targets(&self, operations: &[BulkOperation], deadline: Instant) -> Result<Targets, SearchError> {
        let mut collections: Vec<_> = operations.iter().map(BulkOperation::collection).collect();
        collections.sort_unstable();
        collections.dedup();
        if collections.is_empty() {
            return Ok(Targets::new());
        }
        let layout = self.layout(&collections, deadline).await?;
        let aliases = layout.into_iter().map(|(collection, indices)| {
            let written = indices.into_iter().filter(|index| index.written);
            (collection, written.map(|index| index::write_alias(&self.prefix, collection, index.number)).collect())
        });
        Ok(aliases.collect())
    }

    /// Sends all writes that have no final outcome. Repeats this while the limits allow it.
    async fn send(&self, writes: &mut [Write<'_>], deadline: Instant) -> Result<(), SearchError> {
        let mut splits = MAX_SPLITS;
        for round in 1.. {
            let open = writes.iter().enumerate();
            let open = open.filter(|(_, write)| matches!(write.outcome, BulkOutcome::Retryable { .. }));
            // The list is processed from its end. It is reversed so that the first operations are
            // sent first.
            let mut requests = bulk::requests(open.map(|(n, write)| (n, write.operation, write.target.as_str())))?;
            requests.reverse();
            while let Some(request) = requests.pop() {
                let settled = match self.bulk_request(&request, deadline).await {
                    Err(SearchError::Rejected { status: BAD_CALL | LARGE_CALL, .. })
                        if request.positions.len() > 1 && splits > 0 =>
                    {
                        splits -= 1;
                        let (first, second) = request.positions.split_at(request.positions.len() / 2);
                        for half in [second, first] {
                            requests.extend(bulk::requests(part(writes, half))?);
                        }
                        continue;
                    }
                    settled => settled_or_refused(settled, request.positions.len())?,
                };
                for (position, outcome) in request.positions.iter().zip(settled) {
                    if let Some(write) = writes.get_mut(*position) {
                        write.outcome = outcome;
                    }
                }
            }
            let settled = !writes.iter().any(|write| matches!(write.outcome, BulkOutcome::Retryable { .. }));
            if settled || !self.transport.pause(round, deadline).await {
                break;
            }
        }
        Ok(())
    }

    async fn bulk_request(&self, request: &BulkRequest, deadline: Instant) -> Result<Vec<BulkOutcome>, SearchError> {
        let count = request.positions.len();
        let call =
            Call { method: Method::POST, path: "/_bulk", content_type: NDJSON, body: request.body.clone().into() };
        match self.transport.call(&call, deadline).await {
            Ok(answer) => outcome::outcomes(&answer.accepted()?.body, count),
            Err(SearchError::Unavailable { reason, .. }) => Ok(vec![BulkOutcome::Retryable { reason }; count]),
            Err(error) => Err(error),
        }
    }
}

fn part<'a>(
    writes: &'a [Write<'_>],
    positions: &'a [usize],
) -> impl Iterator<Item = (usize, &'a BulkOperation, &'a str)> {
    let writes = positions.iter().filter_map(|n| Some((*n, writes.get(*n)?)));
    writes.map(|(n, write)| (n, write.operation, write.target.as_str()))
}

/// Returns the outcomes of a call that is not split further. If the engine refused a call with a
/// single operation, that operation is rejected.
fn settled_or_refused(
    settled: Result<Vec<BulkOutcome>, SearchError>,
    operations: usize,
) -> Result<Vec<BulkOutcome>, SearchError> {
    match settled {
        Err(SearchError::Rejected { status: BAD_CALL | LARGE_CALL, kind, reason }) => Ok(if operations == 1 {
            vec![BulkOutcome::Rejected { status: BAD_CALL, reason: format!("{kind}: {reason}") }]
        } else {
            let reason = "the engine refuses the call, and it was split too often".to_owned();
            vec![BulkOutcome::Retryable { reason }; operations]
        }),
        settled => settled,
    }
}

fn targets_of<'a>(targets: &'a Targets, operation: &BulkOperation) -> &'a [String] {
    targets.get(&operation.collection()).map(Vec::as_slice).unwrap_or_default()
}

/// Replaces writes to targets that no longer exist with writes to the current targets. Returns
/// whether it added a write.
fn redirect(writes: &mut Vec<Write<'_>>, targets: &Targets) -> bool {
    let is_gone =
        |write: &Write<'_>| write.outcome.is_lost() && !targets_of(targets, write.operation).contains(&write.target);
    let (gone, mut kept): (Vec<_>, Vec<_>) = std::mem::take(writes).into_iter().partition(is_gone);
    let before = kept.len();
    let mut there: BTreeSet<_> = kept.iter().map(|write| (write.position, write.target.clone())).collect();
    for write in gone {
        for target in targets_of(targets, write.operation) {
            if there.insert((write.position, target.clone())) {
                kept.push(Write::new(write.position, write.operation, target.clone()));
            }
        }
    }
    let added = kept.len() > before;
    *writes = kept;
    added
}

fn combined(count: usize, writes: Vec<Write<'_>>) -> Vec<BulkOutcome> {
    let mut outcomes: Vec<Vec<BulkOutcome>> = vec![Vec::new(); count];
    for write in writes {
        if let Some(outcomes) = outcomes.get_mut(write.position) {
            outcomes.push(write.outcome);
        }
    }
    outcomes.into_iter().map(BulkOutcome::of_all).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn operation(id: &str) -> BulkOperation {
        BulkOperation::tombstone(Collection::Products, id.to_owned(), 1, "2017-01-01T00:00:00.000Z").unwrap()
    }

    fn write<'a>(position: usize, operation: &'a BulkOperation, target: &str, status: Option<u16>) -> Write<'a> {
        let rejected = status.map(|status| BulkOutcome::Rejected { status, reason: String::new() });
        let outcome = rejected.unwrap_or(BulkOutcome::Applied);
        Write { outcome, ..Write::new(position, operation, target.to_owned()) }
    }

    #[test]
    fn a_write_to_a_replaced_index_goes_once_to_the_current_index() {
        let (first, second) = (operation("1"), operation("2"));
        let targets = Targets::from([(Collection::Products, vec!["v3".to_owned()])]);
        let mut writes = vec![
            // Both targets are gone, so one new write replaces both writes.
            write(0, &first, "v1", Some(404)),
            write(0, &first, "v2", Some(404)),
            // One of these writes has already succeeded.
            write(1, &second, "v1", Some(404)),
            write(1, &second, "v3", None),
        ];
        assert!(redirect(&mut writes, &targets));
        let mut targets_left: Vec<_> = writes.iter().map(|write| (write.position, write.target.as_str())).collect();
        targets_left.sort_unstable();
        assert_eq!(targets_left, [(0, "v3"), (1, "v3")]);
    }

    #[test]
    fn a_write_to_a_missing_current_index_keeps_its_error() {
        let first = operation("1");
        let targets = Targets::from([(Collection::Products, vec!["v1".to_owned()])]);
        let mut writes = vec![write(0, &first, "v1", Some(404))];
        assert!(!redirect(&mut writes, &targets));
        assert!(combined(1, writes).iter().all(BulkOutcome::is_lost));
    }

    #[test]
    fn an_operation_without_an_existing_index_is_rejected() {
        let first = operation("1");
        let mut writes = vec![write(0, &first, "v1", Some(404))];
        assert!(!redirect(&mut writes, &Targets::new()));
        assert!(writes.is_empty());
        assert!(combined(1, writes).iter().all(BulkOutcome::is_lost));
    }
}
