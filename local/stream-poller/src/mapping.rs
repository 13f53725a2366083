use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio::sync::watch;

use crate::checkpoint::Checkpoint;
use crate::history::MappingHistory;
use crate::{
    Destination, Filter, Invoke, MappingProgress, MappingSettings, Pace, Record, Role, SettingsError, ShardProgress,
    SourceError, Start, StreamCall,
};

pub struct Mapping {
    pub(crate) settings: MappingSettings,
    pub(crate) filter: Filter,
    pub(crate) function: Arc<dyn Invoke>,
    pub(crate) on_failure: Option<Arc<dyn Destination>>,
    role: Option<Arc<dyn Role>>,
}

impl Mapping {
    /// Creates a mapping with settings that AWS would accept. Without an `on_failure` destination,
    /// given-up records are only counted and logged.
    pub fn new(
        settings: MappingSettings,
        function: Arc<dyn Invoke>,
        on_failure: Option<Arc<dyn Destination>>,
    ) -> Result<Self, SettingsError> {
        settings.check()?;
        let filter = Filter::new(&settings.filters)
            .map_err(|source| SettingsError::Filter { function: settings.function.clone(), source })?;
        Ok(Self { settings, filter, function, on_failure, role: None })
    }

    /// Without a role, permissions are not checked.
    #[must_use]
    pub fn with_role(mut self, role: Arc<dyn Role>) -> Self {
        self.role = Some(role);
        self
    }

    pub(crate) fn may(&self, call: StreamCall) -> Result<(), SourceError> {
        self.role.as_ref().map_or(Ok(()), |role| role.check(call)).map_err(SourceError::Denied)
    }
}

/// Requests from a poller's callers to its tasks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attention {
    /// Number of nudges so far. A nudge is a request to read the stream at once. A read that begins
    /// when this number is at least `n` is newer than nudge `n`.
    pub(crate) nudges: u64,
    /// Number of callers that wait until the poller has settled all records. While there is such a
    /// caller, batches do not wait for more records.
    pub(crate) drains: usize,
}

pub(crate) struct MappingState {
    pub(crate) mapping: Mapping,
    pub(crate) pace: Pace,
    pub(crate) stream_arn: String,
    pub(crate) counts: Counts,
    pub(crate) history: MappingHistory,
    pub(crate) attention: watch::Sender<Attention>,
    /// Signals every change of the state of any mapping.
    pub(crate) changed: watch::Sender<()>,
    shards: Mutex<Shards>,
}

#[derive(Default)]
struct Shards {
    list: Vec<Arc<ShardState>>,
    /// The number of nudges when `list` was requested.
    listed: Option<u64>,
}

#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) delivered: AtomicU64,
    pub(crate) filtered: AtomicU64,
    pub(crate) discarded: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) invocations: AtomicU64,
    pub(crate) failed_invocations: AtomicU64,
}

pub(crate) fn count(counter: &AtomicU64, records: usize) {
    counter.fetch_add(u64::try_from(records).unwrap_or(u64::MAX), Ordering::Relaxed);
}

impl MappingState {
    pub(crate) fn new(
        mapping: Mapping,
        pace: Pace,
        stream_arn: String,
        attention: watch::Sender<Attention>,
        changed: watch::Sender<()>,
        history: MappingHistory,
    ) -> Self {
        let (counts, shards) = (Counts::default(), Mutex::default());
        Self { mapping, pace, stream_arn, counts, history, attention, changed, shards }
    }

    pub(crate) fn notify(&self) {
        self.changed.send_replace(());
    }

    pub(crate) fn shards(&self) -> Vec<Arc<ShardState>> {
        self.lock().list.clone()
    }

    /// Replaces the list of shards with a list that was requested at the nudge `after`.
    pub(crate) fn set_shards(&self, list: Vec<Arc<ShardState>>, after: u64) {
        let mut shards = self.lock();
        shards.list = list;
        shards.listed = Some(after);
        drop(shards);
        self.notify();
    }

    pub(crate) fn was_listed_after(&self, nudge: u64) -> bool {
        self.lock().listed.is_some_and(|listed| listed >= nudge)
    }

    pub(crate) fn progress(&self) -> MappingProgress {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut progress = MappingProgress {
            function: self.mapping.settings.function.clone(),
            delivered: load(&self.counts.delivered),
            filtered: load(&self.counts.filtered),
            discarded: load(&self.counts.discarded),
            lost: load(&self.counts.lost),
            invocations: load(&self.counts.invocations),
            failed_invocations: load(&self.counts.failed_invocations),
            ..MappingProgress::default()
        };
        for shard in self.shards() {
            let reader = shard.reader();
            progress.pending += reader.checkpoint.unsettled();
            progress.shards.push(ShardProgress {
                shard_id: shard.id.clone(),
                position: reader.checkpoint.position().cloned(),
                finished: reader.finished,
                trouble: reader.trouble.clone(),
            });
        }
        progress
    }

    fn lock(&self) -> MutexGuard<'_, Shards> {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct ShardState {
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    /// The starting position. For [`Start::Latest`], `iterator` is an iterator from the start of
    /// the poller.
    pub(crate) start: Start,
    pub(crate) iterator: Option<String>,
    reader: Mutex<ReaderState>,
}

#[derive(Debug)]
pub(crate) struct ReaderState {
    pub(crate) checkpoint: Checkpoint,
    pub(crate) started: bool,
    /// Whether the shard is closed and all its records are settled.
    pub(crate) finished: bool,
    /// The error of the last read, if it failed.
    pub(crate) trouble: Option<SourceError>,
    /// The number of nudges when the last empty read began.
    end_seen: Option<u64>,
    /// The latest creation time of all records that were read.
    newest: SystemTime,
}

impl ShardState {
    pub(crate) fn new(id: String, parent: Option<String>, start: Start, iterator: Option<String>) -> Self {
        Self {
            id,
            parent,
            start,
            iterator,
            reader: Mutex::new(ReaderState {
                checkpoint: Checkpoint::default(),
                started: false,
                finished: false,
                trouble: None,
                end_seen: None,
                newest: SystemTime::UNIX_EPOCH,
            }),
        }
    }

    pub(crate) fn reader(&self) -> MutexGuard<'_, ReaderState> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReaderState {
    /// A record with `settled` needs no delivery.
    pub(crate) fn admit(&mut self, record: &Record, settled: bool) -> u64 {
        self.newest = self.newest.max(record.created());
        self.checkpoint.push(record.sequence().clone(), settled)
    }

    /// Remembers an empty read that began at this nudge.
    pub(crate) fn see_end(&mut self, nudge: u64) {
        self.end_seen = Some(nudge);
    }

    /// Returns whether all records written before a nudge at `time` have been read. An empty read
    /// that began at the nudge or later is proof. If the stream never pauses, no read is empty.
    /// Then a record newer than `time` is proof.
    pub(crate) fn has_read_up_to(&self, nudge: u64, time: SystemTime) -> bool {
        self.end_seen.is_some_and(|seen| seen >= nudge) || self.newest > time
    }
}
