use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::history::{History, MappingHistory};
use crate::mapping::{Attention, Mapping, MappingState, ShardState};
use crate::source::SharedSource;
use crate::{Delivery, SequenceNumber, SourceError, Start, StartingPosition, StreamCall, StreamSource};

mod follow;

/// The waits of a poller. The default suits a stream on the same machine.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// The first wait at the end of the stream. Each further wait is twice as long, up to
    /// `idle_most`.
    pub idle: Duration,
    /// The longest wait at the end of the stream.
    pub idle_most: Duration,
    /// The first wait before the retry of a failed call or read. Each further wait is twice as
    /// long, up to `retry_most`.
    pub retry: Duration,
    pub retry_most: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            idle: Duration::from_millis(20),
            idle_most: Duration::from_millis(160),
            retry: Duration::from_millis(100),
            retry_most: Duration::from_secs(5),
        }
    }
}

/// A series of waits. Each wait is twice as long as the wait before it, but not longer than `last`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    first: Duration,
    last: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(first: Duration, last: Duration) -> Self {
        Self { first, last, next: first }
    }

    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.next.min(self.last);
        self.next = wait.saturating_mul(2);
        wait
    }

    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// One entry for each mapping, in the order in which the caller passed them.
    pub mappings: Vec<MappingProgress>,
}

/// The progress of one mapping. All counts except `pending` are totals since the start of the
/// poller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MappingProgress {
    pub function: String,
    pub shards: Vec<ShardProgress>,
    /// Number of records that were read but are not yet settled.
    pub pending: usize,
    pub delivered: u64,
    /// Records that the poller dropped, because the filter excludes them or the write changed
    /// nothing.
    pub filtered: u64,
    /// Records that the poller gave up. If there is a destination, it has stored them.
    pub discarded: u64,
    /// Records that the poller gave up and that the destination failed to store.
    pub lost: u64,
    pub invocations: u64,
    /// Attempts that left at least one record unprocessed.
    pub failed_invocations: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardProgress {
    pub shard_id: String,
    /// The last record that is settled and has no unsettled record before it.
    pub position: Option<SequenceNumber>,
    /// Whether the shard is closed and all its records are settled.
    pub finished: bool,
    /// The error of the last read, if it failed. The counts do not include unread records.
    pub trouble: Option<SourceError>,
}

/// Feeds functions from a stream. Dropping the value ends the poller and abandons calls in
/// progress.
pub struct Poller {
    mappings: Vec<Arc<MappingState>>,
    history: Arc<History>,
    attention: watch::Sender<Attention>,
    changed: watch::Sender<()>,
    consumed: watch::Receiver<Option<SequenceNumber>>,
    // Dropping this field ends every task.
    _tasks: JoinSet<()>,
}

impl Poller {
    /// Starts to follow `source` for each of `mappings`. Needs a Tokio runtime.
    ///
    /// When this function returns, a mapping with the starting position `Latest` has its position.
    /// The mapping receives all records written from then on.
    ///
    /// # Errors
    /// [`SourceError`] if the stream cannot be reached, or if a mapping's role lacks a permission
    /// for the first calls. Later errors are retried.
    pub async fn start(source: impl StreamSource, mappings: Vec<Mapping>, pace: Pace) -> Result<Self, SourceError> {
        let attention = watch::Sender::new(Attention::default());
        let changed = watch::Sender::new(());
        for mapping in &mappings {
            mapping.may(StreamCall::DescribeStream)?;
        }
        let shards = source.shards().await?;
        let stream_arn = source.stream_arn().to_owned();
        let source = Arc::new(SharedSource::new(source));
        let functions = mappings.iter().map(|mapping| mapping.settings.function.clone()).collect();
        let history = Arc::new(History::new(functions));
        let mut states = Vec::new();
        let mut tasks = JoinSet::new();
        for (number, mapping) in mappings.into_iter().enumerate() {
            let latest = mapping.settings.starting_position == StartingPosition::Latest;
            let mut list = Vec::new();
            for shard in &shards {
                let (start, iterator) = if latest {
                    mapping.may(StreamCall::GetShardIterator)?;
                    let place = source.get().iterator(&shard.id, Start::Latest).await?;
                    (Start::Latest, Some(place))
                } else {
                    (Start::TrimHorizon, None)
                };
                let (id, parent) = (shard.id.clone(), shard.parent.clone());
                list.push(Arc::new(ShardState::new(id, parent, start, iterator)));
            }
            let own = MappingHistory { history: Arc::clone(&history), mapping: number };
            let state = MappingState::new(mapping, pace, stream_arn.clone(), attention.clone(), changed.clone(), own);
            let state = Arc::new(state);
            state.set_shards(list, 0);
            tasks.spawn(follow::run(Arc::clone(&source), Arc::clone(&state), attention.subscribe()));
            states.push(state);
        }
        let (consumed, receiver) = watch::channel(None);
        tasks.spawn(report_consumed(states.clone(), changed.subscribe(), consumed));
        Ok(Self { mappings: states, history, attention, changed, consumed: receiver, _tasks: tasks })
    }

    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress { mappings: self.mappings.iter().map(|state| state.progress()).collect() }
    }

    /// Returns at most `limit` of the newest 1,000 records that were read, after the record with the
    /// number `after`. The oldest record comes first.
    #[must_use]
    pub fn deliveries(&self, after: u64, limit: usize) -> Vec<Delivery> {
        self.history.after(after, limit)
    }

    /// Returns a receiver of the last record up to which every mapping has settled all records. The
    /// value changes with the progress of the mappings. A stream of one shard may be trimmed up to
    /// that record. With several shards, the value is the lowest position in the unfinished shards.
    #[must_use]
    pub fn consumed(&self) -> watch::Receiver<Option<SequenceNumber>> {
        self.consumed.clone()
    }

    /// Makes the poller read the stream at once, even if it is waiting at the end of the stream.
    pub fn nudge(&self) {
        self.attention.send_modify(|attention| attention.nudges += 1);
    }

    /// Waits until every mapping has settled all records that were in the stream at the call. To
    /// settle a record means to deliver it, filter it out or discard it.
    ///
    /// During the wait, batches do not wait for their window to end. While a function keeps
    /// failing, the call returns only after the poller has given up the records. So use a timeout.
    /// The call does not wait for records that are written later. But if the stream never pauses,
    /// the call may wait for later records of the same second.
    pub async fn drained(&self) {
        let time = SystemTime::now();
        let (_drain, nudge) = Drain::begin(&self.attention);
        let mut changed = self.changed.subscribe();
        let mut targets = HashMap::new();
        loop {
            let mut passed = true;
            for (index, mapping) in self.mappings.iter().enumerate() {
                passed &= mapping.was_listed_after(nudge);
                for shard in mapping.shards() {
                    let reader = shard.reader();
                    let target = targets.entry((index, shard.id.clone())).or_insert(None);
                    if target.is_none() && reader.has_read_up_to(nudge, time) {
                        *target = Some(reader.checkpoint.end());
                    }
                    passed &= reader.finished || target.is_some_and(|target| reader.checkpoint.first() >= target);
                }
            }
            // The wait cannot fail, because this value owns the sender.
            if passed || changed.changed().await.is_err() {
                return;
            }
        }
    }
}

/// While this value exists, the poller's tasks know that a caller waits until all records are
/// settled.
struct Drain<'a>(&'a watch::Sender<Attention>);

impl<'a> Drain<'a> {
    /// Begins the wait. Also returns the number of nudges, including the nudge of this wait.
    fn begin(attention: &'a watch::Sender<Attention>) -> (Self, u64) {
        let mut nudge = 0;
        attention.send_modify(|attention| {
            attention.drains += 1;
            attention.nudges += 1;
            nudge = attention.nudges;
        });
        (Self(attention), nudge)
    }
}

impl Drop for Drain<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|attention| attention.drains -= 1);
    }
}

async fn report_consumed(
    mappings: Vec<Arc<MappingState>>,
    mut changed: watch::Receiver<()>,
    consumed: watch::Sender<Option<SequenceNumber>>,
) {
    while changed.changed().await.is_ok() {
        let lowest = lowest_position(&mappings);
        consumed.send_if_modified(|current| {
            let moved = lowest.is_some() && *current != lowest;
            if moved {
                *current = lowest;
            }
            moved
        });
    }
}

/// Returns `None` while a mapping has no position in such a shard.
fn lowest_position(mappings: &[Arc<MappingState>]) -> Option<SequenceNumber> {
    let mut lowest = None;
    for shard in mappings.iter().flat_map(|mapping| mapping.shards()) {
        let reader = shard.reader();
        if reader.finished {
            continue;
        }
        let position = reader.checkpoint.position()?;
        if lowest.as_ref().is_none_or(|lowest| position < lowest) {
            lowest = Some(position.clone());
        }
    }
    lowest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_a_reset_returns_to_the_first() {
        let mut backoff = Backoff::new(Duration::from_millis(20), Duration::from_millis(70));
        let waits: Vec<u128> = (0..4).map(|_| backoff.next().as_millis()).collect();
        assert_eq!(waits, [20, 40, 70, 70]);
        backoff.reset();
        assert_eq!(backoff.next(), Duration::from_millis(20));
    }
}
