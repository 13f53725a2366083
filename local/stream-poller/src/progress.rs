use crate::{SequenceNumber, SourceError};

/// The progress of a poller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// One entry for each mapping, in the order in which the caller passed them.
    pub mappings: Vec<MappingProgress>,
}

/// The progress of one mapping. All counts except `pending` begin at the start of the poller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MappingProgress {
    /// Name of the mapping's function.
    pub function: String,
    /// Progress in each shard that the stream still has.
    pub shards: Vec<ShardProgress>,
    /// Records that the poller has read and not yet settled.
    pub pending: usize,
    /// Records that the function has processed.
    pub delivered: u64,
    /// Records that the poller dropped, because the filter excludes them or the write changed
    /// nothing.
    pub filtered: u64,
    /// Records on which the poller gave up. The destination, if there is one, has stored them.
    pub discarded: u64,
    /// Records on which the poller gave up, and which are lost because the destination failed too.
    pub lost: u64,
    /// Attempts to call the function.
    pub invocations: u64,
    /// Attempts after which at least one record is unprocessed.
    pub failed_invocations: u64,
}

/// The progress of a mapping in one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardProgress {
    /// Id of the shard.
    pub shard_id: String,
    /// The last record up to which all records are settled.
    pub position: Option<SequenceNumber>,
    /// Whether the shard is closed and all its records are settled.
    pub finished: bool,
    /// The error of the last read, if it failed. No count includes unread records.
    pub trouble: Option<SourceError>,
}
