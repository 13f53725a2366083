//! Lanes: the records of one item, in order; the lanes of different items side by side.

use std::collections::HashMap;
use std::future::Future;

use futures::StreamExt as _;
use futures::stream;
use key_schema::key::Key;
use telemetry::correlation;
use tracing::{Instrument as _, info_span};

use crate::batch::Record;
use crate::ledger::{Ledger, Verdict};

/// The records of one item with their positions in the batch, in the order of the batch.
pub type Lane<'r> = Vec<(usize, &'r Record<'r>)>;

/// Sorts a batch into lanes, by their first records.
#[must_use]
pub fn lanes<'r>(records: &'r [Record<'r>]) -> Vec<Lane<'r>> {
    let mut lanes: Vec<Lane<'r>> = Vec::new();
    let mut known: HashMap<&Key, usize> = HashMap::new();
    for (position, record) in records.iter().enumerate() {
        let lane = *known.entry(&record.key).or_insert(lanes.len());
        match lanes.get_mut(lane) {
            Some(lane) => lane.push((position, record)),
            None => lanes.push(vec![(position, record)]),
        }
    }
    lanes
}

/// Takes records one at a time: in order inside a lane, up to `concurrency` lanes at once, earlier lanes first.
///
/// Behind a failure the rest of its lane is not attempted, because a later record would then be taken before an earlier one; it stays unfinished. Other
/// lanes go on: what they make durable is taken again without harm. A refused record does not stop its lane: it is set aside, and the records behind
/// it carry the item's newer state.
pub async fn each<'r, F, T>(records: &'r [Record<'r>], concurrency: usize, ledger: &'r Ledger, take: F)
where
    F: Fn(&'r Record<'r>) -> T,
    T: Future<Output = Verdict>,
{
    let take = &take;
    stream::iter(lanes(records))
        .for_each_concurrent(concurrency, |lane| async move {
            for (position, record) in lane {
                let cause = record.origin.cause.as_deref();
                let span =
                    info_span!("record", sequence_number = record.origin.sequence.as_str(), correlation_id = cause);
                // What is derived from a change is written for the request that made it.
                let verdict = correlation::caused_by(cause, take(record)).instrument(span).await;
                let failed = matches!(verdict, Verdict::Failed(_));
                ledger.settle(position, verdict);
                if failed {
                    break;
                }
            }
        })
        .await;
}
