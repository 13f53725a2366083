//! Reads one shard for one mapping and distributes its records to the lanes.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::lane::{Entry, Lane};
use crate::mapping::{Attention, MappingState, ShardState, count};
use crate::poller::Backoff;
use crate::source::SharedSource;
use crate::{Page, Record, SourceError, Start, StreamCall};

/// Maximum number of groups of records that wait for one lane. A group comes from one page. The
/// limit keeps a reader from reading too far ahead.
const MAX_WAITING_GROUPS: usize = 2;
/// Maximum number of records read beyond the first unsettled record. When one lane retries a
/// failing item, the other lanes continue up to this limit.
const MAX_AHEAD: usize = 20_000;

/// Processes a shard until it is closed and all its records are settled. Dropping the future also
/// ends its lanes.
pub(crate) async fn run(source: Arc<SharedSource>, mapping: Arc<MappingState>, shard: Arc<ShardState>) {
    let mut lanes = JoinSet::new();
    let senders = (0..mapping.mapping.settings.parallelization_factor.max(1))
        .map(|_| {
            let (sender, receiver) = mpsc::channel(MAX_WAITING_GROUPS);
            let lane = Lane::new(Arc::clone(&mapping), Arc::clone(&shard), receiver);
            lanes.spawn(lane.run());
            sender
        })
        .collect();
    let reader = Reader { source, mapping, shard, senders };
    // `read` consumes the reader and thereby drops the senders. The lanes then finish their records
    // and end.
    tokio::join!(reader.read(), async {
        while let Some(ended) = lanes.join_next().await {
            if let Err(error) = ended {
                // The records of the lane stay unsettled, so they do not count as processed.
                tracing::error!(%error, "a lane of the stream panicked");
            }
        }
    });
}

struct Reader {
    source: Arc<SharedSource>,
    mapping: Arc<MappingState>,
    shard: Arc<ShardState>,
    senders: Vec<mpsc::Sender<Vec<Entry>>>,
}

impl Reader {
    async fn read(self) {
        let pace = self.mapping.pace;
        let mut idle = Backoff::new(pace.idle, pace.idle_most);
        let mut trouble = Backoff::new(pace.retry, pace.retry_most);
        let mut start = self.shard.start.clone();
        let mut iterator = self.shard.iterator.clone();
        // The subscription covers the whole loop, so a request that arrives during a read is seen
        // after the read.
        let mut attention = self.mapping.attention.subscribe();
        loop {
            let nudge = attention.borrow().nudges;
            match self.page(&start, iterator.take()).await {
                Ok(page) => {
                    trouble.reset();
                    self.shard.reader().trouble = None;
                    let is_empty = page.records.is_empty();
                    if let Some(last) = page.records.last() {
                        start = Start::After(last.sequence().clone());
                        idle.reset();
                    }
                    iterator = page.next;
                    self.distribute(page.records).await;
                    if is_empty {
                        self.shard.reader().see_end(nudge);
                        self.mapping.notify();
                    }
                    if iterator.is_none() {
                        return;
                    }
                    if is_empty {
                        wait_for_records(&mut attention, &mut idle).await;
                    }
                }
                Err(SourceError::Expired) => {}
                Err(SourceError::Trimmed) => start = Start::TrimHorizon,
                Err(error) => {
                    tracing::warn!(%error, shard = self.shard.id, "the stream cannot be read");
                    self.shard.reader().trouble = Some(error);
                    self.mapping.notify();
                    sleep(trouble.next()).await;
                }
            }
        }
    }

    async fn page(&self, start: &Start, iterator: Option<String>) -> Result<Page, SourceError> {
        let iterator = match iterator {
            Some(iterator) => iterator,
            None => {
                self.mapping.mapping.may(StreamCall::GetShardIterator)?;
                let source = self.source.get();
                source.iterator(&self.shard.id, start.clone()).await?
            }
        };
        // The permission is also checked for a page that another mapping has read, because on AWS
        // each mapping reads its own page.
        self.mapping.mapping.may(StreamCall::GetRecords)?;
        self.source.records(&iterator).await
    }

    /// Records of one item always use the same lane. Waits while a lane is full.
    async fn distribute(&self, records: Vec<Arc<Record>>) {
        let mut groups: Vec<Vec<Entry>> = self.senders.iter().map(|_| Vec::new()).collect();
        let (mut filtered, mut read) = (0, Vec::with_capacity(records.len()));
        {
            let mut reader = self.shard.reader();
            for record in records {
                let passes = !record.is_unchanged() && self.mapping.mapping.filter.matches(record.event());
                let number = reader.admit(&record, !passes);
                read.push((Arc::clone(&record), passes));
                if !passes {
                    filtered += 1;
                    continue;
                }
                let lanes = u64::try_from(groups.len()).unwrap_or(1);
                let lane = usize::try_from(record.key_hash() % lanes).unwrap_or_default();
                if let Some(group) = groups.get_mut(lane) {
                    group.push(Entry { number, record });
                }
            }
        }
        // The lanes get the records later, so their verdicts replace this one.
        self.mapping.history.read(&read);
        if filtered > 0 {
            count(&self.mapping.counts.filtered, filtered);
            self.mapping.notify();
        }
        for (group, sender) in groups.into_iter().zip(&self.senders) {
            if !group.is_empty() {
                // A lane ends only when its sender is dropped, so sending loses no records.
                let _ = sender.send(group).await;
            }
        }
        let mut changed = self.mapping.changed.subscribe();
        while self.shard.reader().checkpoint.len() > MAX_AHEAD {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Waits at the end of the stream, longer each time. The wait ends early when a caller waits for
/// the poller.
async fn wait_for_records(attention: &mut watch::Receiver<Attention>, idle: &mut Backoff) {
    if attention.borrow().drains > 0 {
        idle.reset();
    }
    tokio::select! {
        () = sleep(idle.next()) => {}
        _ = attention.changed() => idle.reset(),
    }
}
