use crate::{SequenceNumber, SourceError};

/// How far a poller has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// One entry for each mapping, in the order in which they were given.
    pub mappings: Vec<MappingProgress>,
}

/// How far one mapping has come. Counts are of records, since the start, unless they say otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MappingProgress {
    /// The function of the mapping.
    pub function: String,
    /// Where it is in each shard that the stream still has.
    pub shards: Vec<ShardProgress>,
    /// Read and not yet settled.
    pub pending: usize,
    /// Taken by the function.
    pub delivered: u64,
    /// Left out by the filter, or of a write that changed nothing.
    pub filtered: u64,
    /// Given up, and kept by the destination if there is one.
    pub discarded: u64,
    /// Given up, and lost because the destination failed too.
    pub lost: u64,
    /// Calls of the function.
    pub invocations: u64,
    /// Calls of which something has to be tried again or is given up.
    pub failed_invocations: u64,
}

/// Where a mapping is in one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardProgress {
    /// The shard.
    pub shard_id: String,
    /// The last record before which, itself included, all are settled.
    pub position: Option<SequenceNumber>,
    /// Whether the shard is closed and everything in it settled.
    pub finished: bool,
    /// Why it cannot be read, when the last read failed: what is unread is not counted anywhere.
    pub trouble: Option<SourceError>,
}
