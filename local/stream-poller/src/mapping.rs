//! What the tasks of one mapping share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio::sync::watch;

use crate::ledger::Ledger;
use crate::{
    Destination, Filter, Invoke, MappingProgress, MappingSettings, Pace, Record, Role, SettingsError, ShardProgress,
    SourceError, Start, StreamCall,
};

/// A function to be fed from the stream.
pub struct Mapping {
    pub(crate) settings: MappingSettings,
    pub(crate) filter: Filter,
    pub(crate) function: Arc<dyn Invoke>,
    pub(crate) on_failure: Option<Arc<dyn Destination>>,
    role: Option<Arc<dyn Role>>,
}

impl Mapping {
    /// A mapping with settings that AWS would take too. What is given up without an `on_failure`
    /// destination is only counted and logged.
    ///
    /// # Errors
    /// [`SettingsError`] names the setting or the filter that AWS would refuse.
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

    /// The same, reading the stream as this role; without one nobody is asked.
    #[must_use]
    pub fn with_role(mut self, role: Arc<dyn Role>) -> Self {
        self.role = Some(role);
        self
    }

    /// Whether the stream may be called so for it.
    pub(crate) fn may(&self, call: StreamCall) -> Result<(), SourceError> {
        self.role.as_ref().map_or(Ok(()), |role| role.ask(call)).map_err(SourceError::Denied)
    }
}

/// What the callers of a poller ask of its tasks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attention {
    /// Grows with each request to look at the stream at once. It is also the clock by which a caller
    /// knows what was looked at after its request: a read or list that began at its number or later.
    pub(crate) nudges: u64,
    /// Callers that wait for the poller to catch up: nobody waits for fuller batches meanwhile.
    pub(crate) drains: usize,
}

/// A running mapping.
pub(crate) struct MappingState {
    pub(crate) mapping: Mapping,
    pub(crate) pace: Pace,
    pub(crate) stream_arn: String,
    pub(crate) counts: Counts,
    pub(crate) attention: watch::Sender<Attention>,
    /// Told whenever something in here has changed.
    pub(crate) changed: watch::Sender<()>,
    shards: Mutex<Shards>,
}

#[derive(Default)]
struct Shards {
    list: Vec<Arc<ShardState>>,
    /// The nudge after which the list was asked for.
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
    ) -> Self {
        Self { mapping, pace, stream_arn, counts: Counts::default(), attention, changed, shards: Mutex::default() }
    }

    pub(crate) fn tell(&self) {
        self.changed.send_replace(());
    }

    pub(crate) fn shards(&self) -> Vec<Arc<ShardState>> {
        self.lock().list.clone()
    }

    /// Replaces the list of shards by one asked for after the nudge `after`.
    pub(crate) fn set_shards(&self, list: Vec<Arc<ShardState>>, after: u64) {
        let mut shards = self.lock();
        shards.list = list;
        shards.listed = Some(after);
        drop(shards);
        self.tell();
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
            let marks = shard.marks();
            progress.pending += marks.ledger.unsettled();
            progress.shards.push(ShardProgress {
                shard_id: shard.id.clone(),
                position: marks.ledger.position().cloned(),
                finished: marks.finished,
                trouble: marks.trouble.clone(),
            });
        }
        progress
    }

    fn lock(&self) -> MutexGuard<'_, Shards> {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One shard, as one mapping goes through it.
pub(crate) struct ShardState {
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    /// Where to begin, and the place itself where it had to be asked for at once.
    pub(crate) start: Start,
    pub(crate) iterator: Option<String>,
    marks: Mutex<Marks>,
}

/// How far the mapping is in the shard.
#[derive(Debug)]
pub(crate) struct Marks {
    pub(crate) ledger: Ledger,
    /// Whether somebody reads it already.
    pub(crate) started: bool,
    /// Whether it is closed and everything in it is settled.
    pub(crate) finished: bool,
    /// Why the last read failed, if it did.
    pub(crate) trouble: Option<SourceError>,
    /// The nudge after which the last read began that found no more records.
    end_seen: Option<u64>,
    /// The latest time of creation among the records read.
    newest: SystemTime,
}

impl ShardState {
    pub(crate) fn new(id: String, parent: Option<String>, start: Start, iterator: Option<String>) -> Self {
        Self {
            id,
            parent,
            start,
            iterator,
            marks: Mutex::new(Marks {
                ledger: Ledger::default(),
                started: false,
                finished: false,
                trouble: None,
                end_seen: None,
                newest: SystemTime::UNIX_EPOCH,
            }),
        }
    }

    pub(crate) fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Marks {
    /// Takes in the next record of the shard; a `settled` one needs no delivery.
    pub(crate) fn admit(&mut self, record: &Record, settled: bool) -> u64 {
        self.newest = self.newest.max(record.created());
        self.ledger.push(record.sequence().clone(), settled)
    }

    /// A read that began after this nudge found nothing.
    pub(crate) fn see_end(&mut self, nudge: u64) {
        self.end_seen = Some(nudge);
    }

    /// Whether all that was written before a nudge has been read, `time` being when it was given.
    /// The time is for streams that never rest: what was written later has been read from them.
    pub(crate) fn has_read_up_to(&self, nudge: u64, time: SystemTime) -> bool {
        self.end_seen.is_some_and(|seen| seen >= nudge) || self.newest > time
    }
}
