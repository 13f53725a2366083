//! Lanes: the records of one item in order, concurrent with the lanes of other items.

use std::collections::HashMap;
use std::future::Future;

use futures::StreamExt as _;
use futures::stream;
use key_schema::key::Key;
use telemetry::correlation;
use tracing::{Instrument as _, info_span};

use crate::batch::Record;
use crate::verdict::{Verdict, Verdicts};

/// The records of one item with their positions in the batch, in the order of the batch.
pub type Lane<'r> = Vec<(usize, &'r Record<'r>)>;

/// Groups the records of a batch into lanes. The lanes are in the order of their first records.
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

/// Takes the records of a lane one at a time and in order, and up to `concurrency` lanes at once.
/// Earlier lanes begin first.
///
/// After a failure the lane's other records are not attempted and stay unfinished, because a later
/// record must not overtake an earlier one. Other lanes continue, because their records can be
/// taken again without harm. A refused record does not stop its lane. It is quarantined, and the
/// lane's later records have newer states of the item.
pub async fn each<'r, F, T>(records: &'r [Record<'r>], concurrency: usize, verdicts: &'r Verdicts, take: F)
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
                // A derived item gets the id of the request that made the change.
                let verdict = correlation::caused_by(cause, take(record)).instrument(span).await;
                let failed = matches!(verdict, Verdict::Failed(_));
                verdicts.settle(position, verdict);
                if failed {
                    break;
                }
            }
        })
        .await;
}
