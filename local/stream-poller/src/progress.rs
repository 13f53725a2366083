use crate::{SequenceNumber, SourceError};

/// The progress of a poller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// One entry for each mapping, in the order in which the caller passed them.
    pub mappings: Vec<MappingProgress>,
}

/// The progress of one mapping. Counts are of records since the start, unless stated otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MappingProgress {
    /// Name of the mapping's function.
    pub function: String,
    /// Progress in each shard that the stream still has.
    pub shards: Vec<ShardProgress>,
    /// Read and not yet settled.
    pub pending: usize,
    /// Processed by the function.
    pub delivered: u64,
    /// Dropped by the filter, or because the write changed nothing.
    pub filtered: u64,
    /// Given up. The destination, if there is one, has stored them.
    pub discarded: u64,
    /// Given up and lost, because the destination failed too.
    pub lost: u64,
    /// Calls of the function.
    pub invocations: u64,
    /// Calls in which at least one record failed.
    pub failed_invocations: u64,
}

/// The progress of a mapping in one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardProgress {
    /// Id of the shard.
    pub shard_id: String,
    /// The last record up to which, inclusive, all records are settled.
    pub position: Option<SequenceNumber>,
    /// Whether the shard is closed and all its records are settled.
    pub finished: bool,
    /// The error of the last read, if it failed. Unread records are not in any count.
    pub trouble: Option<SourceError>,
}
