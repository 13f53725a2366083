//! Writing documents to every index that is to have them.
//!
//! # One document that spoils a call
//!
//! What is wrong with a document the engine says in the outcome of its operation; but an action that it cannot read (a version that is no long, say)
//! makes it refuse the whole call, with all other documents in it. Such a call is split in halves, down to the single operation that it is about, so
//! that one bad document keeps out no other. How often is bounded ([`MAX_SPLITS`]): what is not taken by then is to be sent again.
//!
//! # Why looking up the targets once a call is enough
//!
//! During a rebuild a collection has two indices that are written to: the one that is read, and the next one, N. A call asks the
//! engine which they are before it writes, and no call believes the answer of another. So only a call under way while N was added
//! can miss N. Its changes were in the table before it asked; the rebuild reads the table, strongly, after N was added; hence it
//! reads these changes or newer ones, and brings them to N itself. From the other side: what the rebuild read may be old by the
//! time it is written, and then N has the newer write already, because that was sent to both. Versions keep the newest.
//!
//! A removal leaves nothing in the table to be read, so a call that missed N would leave N without its tombstone:
//! [`SearchClient::copy_tombstones`] brings those.
//!
//! A call under way while a rebuild is finished may still write to the old index. Its alias is gone, so that write is refused, whether
//! or not the index itself is still there. The call looks the targets up again, once, and goes where they are now.

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

/// The engine cannot read the call.
const BAD_CALL: u16 = 400;
/// The call is larger than the engine, or something before it, takes.
const LARGE_CALL: u16 = 413;
/// How often calls are split at most, of all that is sent together. To find one document among 1,000 takes 10.
const MAX_SPLITS: u32 = 200;

/// The write aliases of each collection.
type Targets = BTreeMap<Collection, Vec<String>>;

/// One operation on its way to one index.
struct Write<'a> {
    /// The operation's position among those given.
    position: usize,
    operation: &'a BulkOperation,
    /// A write alias.
    target: String,
    outcome: BulkOutcome,
}

impl<'a> Write<'a> {
    fn new(position: usize, operation: &'a BulkOperation, target: String) -> Self {
        Self { position, operation, target, outcome: BulkOutcome::Retryable { reason: "not sent".to_owned() } }
    }
}

impl SearchClient {
    /// Writes documents and tombstones to every index of their collection that is written to, and says of each operation, in the order
    /// given, what became of it: the worst of what became of it in any index, [`BulkOutcome::Retryable`] before
    /// [`BulkOutcome::Rejected`] before success.
    ///
    /// Operations that the engine cannot take at the moment are sent again while the limits allow. One for which it refuses a whole call is
    /// [`BulkOutcome::Rejected`], and the others of the call are written without it. An error
    /// means that the engine refuses such calls altogether; operations may have been applied nonetheless,
    /// and all may be sent again.
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
                // They stay as they are, refused, and the caller comes back.
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

    /// Writes to one index alone, as a backfill does. An index that is not written to, or no longer, refuses everything with
    /// [`BulkOutcome::Rejected`] and status 404.
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

    /// Where operations of these collections are to go now: one call.
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

    /// Sends what is not settled, again and again while the limits allow.
    async fn send(&self, writes: &mut [Write<'_>], deadline: Instant) -> Result<(), SearchError> {
        let mut splits = MAX_SPLITS;
        for round in 1.. {
            let open = writes.iter().enumerate();
            let open = open.filter(|(_, write)| matches!(write.outcome, BulkOutcome::Retryable { .. }));
            // The last one is the next: so the first operations are settled first, whatever becomes of the others.
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

/// These writes, as they are sent.
fn part<'a>(
    writes: &'a [Write<'_>],
    positions: &'a [usize],
) -> impl Iterator<Item = (usize, &'a BulkOperation, &'a str)> {
    let writes = positions.iter().filter_map(|n| Some((*n, writes.get(*n)?)));
    writes.map(|(n, write)| (n, write.operation, write.target.as_str()))
}

/// What is to be said of the operations of a call that is not split (any more). The one that the engine refuses alone it refuses for good.
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

/// Drops the writes to indices that are no longer written to, and adds those to the indices that are instead. Whether there are any.
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

/// The outcome of each operation.
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
    fn what_went_to_an_index_of_yesterday_goes_to_that_of_today_once() {
        let (first, second) = (operation("1"), operation("2"));
        let targets = Targets::from([(Collection::Products, vec!["v3".to_owned()])]);
        let mut writes = vec![
            // Both are gone; one write takes their place.
            write(0, &first, "v1", Some(404)),
            write(0, &first, "v2", Some(404)),
            // One has arrived already.
            write(1, &second, "v1", Some(404)),
            write(1, &second, "v3", None),
        ];
        assert!(redirect(&mut writes, &targets));
        let mut targets_left: Vec<_> = writes.iter().map(|write| (write.position, write.target.as_str())).collect();
        targets_left.sort_unstable();
        assert_eq!(targets_left, [(0, "v3"), (1, "v3")]);
    }

    #[test]
    fn an_index_that_is_to_be_there_and_is_not_stays_an_error() {
        let first = operation("1");
        let targets = Targets::from([(Collection::Products, vec!["v1".to_owned()])]);
        let mut writes = vec![write(0, &first, "v1", Some(404))];
        assert!(!redirect(&mut writes, &targets));
        assert!(combined(1, writes).iter().all(BulkOutcome::is_lost));
    }

    #[test]
    fn an_operation_whose_indices_are_all_gone_is_lost() {
        let first = operation("1");
        let mut writes = vec![write(0, &first, "v1", Some(404))];
        assert!(!redirect(&mut writes, &Targets::new()));
        assert!(writes.is_empty());
        assert!(combined(1, writes).iter().all(BulkOutcome::is_lost));
    }
}
