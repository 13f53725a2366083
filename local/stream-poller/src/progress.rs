use crate::{SequenceNumber, SourceError};

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
